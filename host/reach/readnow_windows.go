package reach

import "os"

// readNow is never asked: pipes have no deadlines here.
func readNow(*os.File, []byte) int { return 0 }
