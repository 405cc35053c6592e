package fault

import "slices"

// Code is one kind of error a person may meet.
type Code struct {
	ID      string `json:"id"`
	Exit    int    `json:"exit"`
	Title   string `json:"title"`
	Explain string `json:"explain"` // what it means and what to do, whole sentences
}

// The codes. Numbers are never used twice: E10xx usage and configuration,
// E11xx models, E12xx rights, E13xx plugins, E14xx limits, E15xx the machine, E16xx hubs.
var codes = []Code{
	{"E1001", ExitUsage, "wrong usage", "A flag, an argument or a verb is not one that elfhost has. `elfhost help` lists the verbs, `elfhost VERB --help` the flags of one."},
	{"E1002", ExitUsage, "bad configuration", "A configuration, policy or grants file does not parse, or holds an unknown key. elfhost stops rather than run under rules it could not read. The error names the file and the line; `elfhost policy check` lists everything that is wrong with a policy, and `elfhost config explain KEY` shows what a key may hold."},
	{"E1003", ExitUsage, "bad arguments for a tool", "The JSON after the tool's name is not an object, or does not fit the tool's schema. `elfhost tools NAME` shows the schema and an example."},
	{"E1004", ExitUsage, "no such folder", "The folder given with --dir does not exist or is not a folder."},
	{"E1101", ExitUsage, "no model", "No key for a model vendor is set and no local model server answers. Set ANTHROPIC_API_KEY or OPENAI_API_KEY, start Ollama or llama.cpp, or name one with --model. Without a model these work: demo, call, tools, plugin inspect."},
	{"E1102", ExitTryAgain, "the model is busy", "The vendor answered that it is overloaded or that a rate limit is reached, and went on doing so after the retries. Try again later."},
	{"E1103", ExitFailed, "the model failed", "The vendor refused the request or its answer could not be read. The error carries the vendor's own words."},
	{"E1104", ExitFailed, "the answer does not fit", "The final answer has to fit the JSON Schema of --json-schema, and the model did not manage it in three tries. A simpler schema, or another model, may help."},
	{"E1201", ExitRefused, "a question that nobody could answer", "A tool needed a person's consent, and standard input is not a terminal (or --no-input was given), so the answer was no. The hint names the rule that would allow it: give it with --allow for this run, or with `elfhost grant add` for good."},
	{"E1202", ExitRefused, "denied by a person", "The person who was asked said no. Run it again and choose another answer, or grant it beforehand with `elfhost grant add`."},
	{"E1203", ExitRefused, "no grant covers it", "A plugin or tool tried to reach a file, host, program or secret that nobody granted. The hint has the narrowest grant that would allow it. `elfhost grant list` shows what is granted."},
	{"E1204", ExitRefused, "forbidden by policy", "A policy file, the session's mode or the list of commands that are never run (`rm -rf /` and the like) forbids it, and no answer to a question can allow it. The hint names the file and the line of the rule, or the list; `elfhost policy explain` says what policies decide about a package or a call."},
	{"E1205", ExitRefused, "a hook refused it", "A program that [[hooks]] in your config.toml puts before prompts said no, or failed: a guard that does not work lets nothing through. Its reason is in the error; `elfhost config explain hooks` names the file and the line."},
	{"E1207", ExitRefused, "not what was to be trusted", "The files that this folder would start programs with are not those that --accept names, or they cannot be read as a whole. `elfhost trust` shows them with their digest. For an MCP server, `elfhost mcp agree NAME` shows its changed tools with theirs."},
	{"E1208", ExitFailed, "no such grant", "There is nothing of that kind to take back where it was looked for. `elfhost grant list` shows what is granted and in which file; --user looks in the user's grants, without it in this project's."},
	{"E1301", ExitFailed, "no such tool", "No tool of that name is registered in this session. `elfhost tools` lists those that are."},
	{"E1302", ExitFailed, "not a plugin", "The file is not a WebAssembly core module that elfhost can run. The error says what it is instead. `elfhost plugin inspect FILE` shows what elfhost sees in it."},
	{"E1303", ExitFailed, "the tool failed", "The tool ran and answered with an error. Its own words are above."},
	{"E1304", ExitFailed, "no such plugin", "No plugin of that name is installed. `elfhost plugin list` shows those that are."},
	{"E1305", ExitRefused, "the module asks for more than its manifest", "The module imports a capability that elf.toml does not name in a [[need]]. The author has to declare it, with a reason, so that people see it before they install."},
	{"E1306", ExitUsage, "not a recording", "The file is not a recording that `elfhost call --record` made, or the call that was to be recorded never entered a plugin's module: native tools are not recorded."},
	{"E1307", ExitFailed, "the replay differs", "The module, run again against the recorded answers, asked something else, answered something else or used other fuel. The error shows the first difference. The same module and host do not differ: the recording was changed, or was made by another engine version."},
	{"E1308", ExitFailed, "no such skill", "No skill of that name lies in your own folders or in the project's. `elfhost skill list --all` shows all of them, with the reason where one cannot be used."},
	{"E1309", ExitFailed, "not a grammar", "The file is not a tree-sitter grammar that elfhost can run: a WebAssembly side module with a dylink.0 section and the export tree_sitter_NAME, as `tree-sitter build --wasm` makes it. The error says what it is instead."},
	{"E1310", ExitFailed, "an MCP server failed", "The MCP server could not be started or reached, or did not answer in time. The error carries its own last words. `elfhost mcp test NAME` tries again and lists its tools; `elfhost mcp list` shows all servers."},
	{"E1311", ExitFailed, "the plugin does not build", "The compiler is missing, or refused the sources. Its own words are above."},
	{"E1312", ExitFailed, "the plugin does not pass", "A test, a case of testdata/cases or a check of the plugin failed. The lines above say which, and what it answered instead."},
	{"E1313", ExitFailed, "the host does not conform", "A host did not do what the contract elf/1 says (docs/abi.md). The lines above say in which cases, and what it did instead; `elfhost conformance export DIR` writes the suite with its sources."},
	{"E1320", ExitFailed, "the package is refused", "The package breaks a rule of the format, and nothing of it was installed: a name that leads out of it, a link, a device, two names that are one file on some systems, an archive that unpacks to too much, a script or a program beside its Wasm module, an elf.toml that cannot be read. The error says which. Code in a package is Wasm only; --without-scripts installs the rest of one that holds scripts."},
	{"E1321", ExitRefused, "not what was signed or promised", "The bytes are not those that a digest, a signature, a hub or the publisher's pinned key stand for. Nothing was installed. The error says what differs. Where a publisher changed keys, and told you so elsewhere than in the package, `elfhost key forget PUBLISHER` lets the next key be pinned."},
	{"E1322", ExitFailed, "the version stays", "The package is pinned to its version, is older than the one that is installed, or has no earlier version to go back to. Nothing changed. `elfhost plugin info NAME` shows its versions."},
	{"E1323", ExitFailed, "the installed packages are not as they were", "elfhost.lock, or files of an installed package, were changed after elfhost wrote them, or another elfhost changed them meanwhile. elfhost repairs and overwrites nothing by itself: `elfhost plugin verify` lists what differs. Move edited files away and install again; restore elfhost.lock from a copy or from version control."},
	{"E1324", ExitFailed, "the package cannot be had", "No source has the package, its hub cannot be reached or its metadata has expired, or the network may not be used here. What is installed keeps working."},
	{"E1325", ExitFailed, "the package was not installed", "Something failed while the package was fetched or stored. Nothing was changed; the error carries the cause."},
	{"E1326", ExitRefused, "stored, and waiting for a person", "The package asks for rights, or something about it is unusual, and nobody was there to agree. It is stored and verified, and it is not in use; an installed version stays as it was. `elfhost plugin enable NAME`, or `elfhost plugin update NAME`, shows the screen and asks; a script agrees to exactly that screen with --accept and its digest."},
	{"E1327", ExitRefused, "not what was accepted", "--accept names the digest of another screen than this package shows here: the package, what it asks for, its signer, or the policy is another. Look at the screen, and accept its digest."},
	{"E1401", ExitLimit, "step limit", "The agent used all its steps. --max-steps allows more."},
	{"E1402", ExitLimit, "budget", "The agent used its budget. --max-cost allows more."},
	{"E1403", ExitUsage, "a budget that would stop nothing", "There is a budget, and the price of the model is not known: neither the provider's own table nor config.toml has it, so that what it costs cannot be counted. Name the price in config.toml as [prices.\"PROVIDER/MODEL\"], or leave the budget out."},
	{"E1501", ExitFailed, "state cannot be written", "elfhost could not write to its state folder. `elfhost doctor` names the folder and what is wrong with it."},
	{"E1502", ExitFailed, "the audit log is broken", "A record of the audit log was changed, removed or reordered, or the log ends before its head says. The error names the first bad record. Keep the file: it is evidence."},
	{"E1503", ExitFailed, "the engine failed", "The sandbox could not compile or start a module that was accepted before. `elfhost plugin warm` builds it again; `elfhost doctor` checks the machine."},
	{"E1504", ExitInterrupted, "interrupted", "Ctrl-C, or the signal of another program, ended the work. What a tool had done by then stays done; the transcript says which calls were cut short."},
	{"E1505", ExitUsage, "no such session", "No session of that name, or beginning so, is kept, or it belongs to another folder. `elfhost session list --all` shows all of them with their folders."},
	{"E1506", ExitTryAgain, "the session is in use", "Another elfhost is working on this session. Wait until it is done, or go on with a copy: --fork."},
	{"E1507", ExitFailed, "the kept sessions cannot be read", "The file that keeps sessions is damaged, is something else, or was written by a newer elfhost. Nothing in it was changed. Moved away, with the files beside it that begin with its name, it makes room for a new one; --no-session keeps nothing and needs none."},
	{"E1601", ExitFailed, "not on a hub", "No hub of that name is known, or the hub has no such package or version. `elfhost hub list` shows the hubs, `elfhost hub search` finds packages."},
	{"E1602", ExitTryAgain, "the hub cannot be reached", "The hub's server did not answer, or answered with an error or with something else than a hub. Nothing was changed; what is installed keeps working."},
	{"E1603", ExitRefused, "the hub was refused", "What the hub sent is not what its keys signed: it is older than what was seen before, signed by other keys than those of the pinned root, or its bytes differ. This can be an attack, a broken mirror or a server in the middle of an update. Nothing of it was used. If it stays so, ask who keeps the hub, by another way than the hub itself."},
	{"E1604", ExitRefused, "the hub's metadata has expired", "A hub's metadata counts for a limited time, so that nobody can show an old state for ever. What is installed keeps working; nothing new is installed before the hub was signed again (`elfhost hub sign` on its side) or, for a mirror or a bundle, carried over again."},
	{"E1605", ExitFailed, "no network may be used", "This needs the network, and --offline, offline = true in config.toml, or a policy says that none may be used. Hubs in folders and bundles work without: `elfhost hub mirror` and `elfhost plugin bundle` make them."},
	{"E1606", ExitRefused, "not published", "The package breaks a rule of the hub: its form is refused, it is not signed, the version is published already with other bytes, or its name belongs to another key. The hub is as it was."},
	{"E1607", ExitFailed, "a key of the hub is missing", "The key that has to sign this is not in the folder of keys, or needs its passphrase. --keys names further folders, such as one on a stick."},
	{"E1608", ExitFailed, "a registry wants a log-in", "The OCI registry wants credentials, and none are known for it, or those that are known do not open it. They are read from REGISTRY_AUTH_FILE, DOCKER_CONFIG or ~/.docker/config.json. Credential helpers are programs, and elfhost starts none: docs/oci.md shows how to log in to a file instead."},
}

// Codes lists all, by number.
func Codes() []Code { return slices.Clone(codes) }

// Lookup finds a code.
func Lookup(id string) (Code, bool) {
	i := slices.IndexFunc(codes, func(c Code) bool { return c.ID == id })
	if i < 0 {
		return Code{}, false
	}
	return codes[i], true
}
