//go:build !linux

package reach

func probeNetlink() {}
