// Package pdk is the kit for writing an elfhost plugin in Go. A plugin is a
// main package that registers typed tools in an init function:
//
//	type args struct {
//		Name string `json:"name" desc:"Who to greet."`
//	}
//
//	func init() {
//		pdk.Tool(pdk.Spec{Name: "hello", Description: "Greets somebody."}, hello)
//	}
//
//	func hello(ctx context.Context, in args) (string, error) {
//		return "Hello, " + in.Name + "!", nil
//	}
//
//	func main() { pdk.Main() }
//
// It is built with the standard toolchain:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o plugin.wasm .
//
// Every capability is a function of its own ([Fetch], [Complete], [KVGet], …).
// What a plugin does not call is not linked, so the imports of the wasm are the
// most that it could ever do; the host shows them to the person who installs it.
// Files need no function: package os works on the virtual root, where /ws is
// the workspace, as far as the person granted it.
//
// A guest runs one call at a time in a fresh sandbox. Nothing that a tool keeps
// in a variable lives on to the next call; [KVSet] is there for that.
//
// The same code runs natively under go test: see package pdktest.
package pdk
