// Package elfhost holds the sources that authors of plugins build against, so
// that `elfhost plugin new` works without a network: a plugin made offline
// carries them in a folder of its own.
package elfhost

import "embed"

// Kit is abi and pdk, the packages below it included, with the licence. Tests
// are in it, too; who copies it leaves them out.
//
//go:embed LICENSE abi/*.go pdk/*.go pdk/golden/*.go pdk/pdktest/*.go pdk/pdkhttp/*.go
var Kit embed.FS
