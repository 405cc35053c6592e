package main

import (
	"fmt"
	"sync"
	"testing"

	"github.com/elfhost/elfhost/builtins/files"
	"github.com/elfhost/elfhost/internal/config"
)

// Calls of one session that end at the same time keep a whole state: that of
// one of them.
func TestStateOfCallsAtOnce(t *testing.T) {
	paths := config.Paths{State: t.TempDir()}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 100 {
				st, err := openCallState(paths, "x")
				if err != nil {
					t.Error(err)
					return
				}
				for k := range 10 * (i + 1) { // of other lengths
					st.files.Saw(fmt.Sprintf("/ws/%d/%d", i, k), files.Stamp{Size: 1, Sum: "x"})
				}
				if err := st.save(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
