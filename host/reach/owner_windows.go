package reach

import (
	"io/fs"
	"os"
)

func keepOwner(*os.File, fs.FileInfo) {}
