package reach

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
)

// helperFD is where the helper reads what to do.
const helperFD = 3

// sandboxMain runs in a process of its own, which it confines for good.
func sandboxMain(args []string) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, "elfhost: error: sandbox:", err)
		return 126 // as shells say "found, but cannot be run"
	}
	if len(args) != 1 {
		return fail(fmt.Errorf("%s is started by elfhost itself", SandboxVerb))
	}
	in := os.NewFile(helperFD, "jail")
	data, err := io.ReadAll(io.LimitReader(in, 16<<20))
	in.Close()
	if err != nil {
		return fail(fmt.Errorf("reading what to do: %w", err))
	}
	var j jail
	if err := json.Unmarshal(data, &j); err != nil {
		return fail(fmt.Errorf("reading what to do: %w", err))
	}
	// Capabilities, no_new_privs and filters belong to a thread: this one starts
	// the program.
	runtime.LockOSThread()
	switch args[0] {
	case Namespaces:
		code, err := enterNamespaces(j)
		if err != nil {
			return fail(err)
		}
		return code
	case Landlock:
		return fail(enterLandlock(j)) // returns on failure only
	}
	return fail(fmt.Errorf("there is no sandbox %q", args[0]))
}
