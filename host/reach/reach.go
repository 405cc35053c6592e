// Package reach acts for a grant. Every effect that leaves the process goes
// through one of its brokers, and every broker asks the call's rights first:
// files over os.Root, HTTP with its own dialing, programs, secrets, key-value
// stores. Builtin tools, the sandbox, MCP, models and hubs use the same ones.
package reach
