//go:build !linux

package reach

import "syscall"

func (group) sweep() {}

func awaitZombie(int) bool { return false }

// dieWithHost: this kernel ends nobody for a host that was killed. A Keeper does.
func dieWithHost(*syscall.SysProcAttr) {}

// watch: processes are counted on Linux only.
func (j *Job) watch(Program) {}
