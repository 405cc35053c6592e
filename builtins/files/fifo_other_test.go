//go:build !unix

package files

func mkfifo(string) bool { return false }
