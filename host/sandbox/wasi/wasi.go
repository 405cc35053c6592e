// Package wasi is WASI preview 1 for sandboxed calls, over the file broker of
// host/reach.
//
// It exists because wazero's own cannot carry an instance that is reset in
// place: there the descriptor table outlives the reset, file operations and
// sleeps take no context, and folder mounts follow links out of the mount.
// Here a System holds everything that belongs to one call: the descriptor
// table, the rights, the clocks. A new call gets a new System, whatever the
// last one left open or closed.
//
// The only preopen is "/", descriptor 3. It always opens, and shows what the
// rights allow at the moment of each access. There are no sockets, and a guest
// can make no links.
package wasi

import (
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// ModuleName is the name that guests import.
const ModuleName = "wasi_snapshot_preview1"

// Func is one function of WASI.
type Func struct {
	Name    string
	Full    string // with the module's name
	params  []api.ValueType
	results []api.ValueType
	run     func(ctx context.Context, s *System, m Memory, p []uint64) Errno
}

// Call runs f for s. The parameters are on the stack, and the result is put
// there. It panics with a *sys.ExitError for proc_exit, which ends the guest.
func (f *Func) Call(ctx context.Context, s *System, m Memory, stack []uint64) {
	no := f.run(ctx, s, m, stack)
	if len(f.results) > 0 {
		stack[0] = uint64(no)
	}
}

// Waits reports whether a call with these parameters may wait for something. The
// others work on the guest's memory and on what the System holds; a stream of
// the host's takes no context, so that nothing could end a wait for it.
func (f *Func) Waits(s *System, stack []uint64) bool {
	switch f.Name {
	case "args_get", "args_sizes_get", "environ_get", "environ_sizes_get", "clock_res_get", "clock_time_get",
		"fd_fdstat_get", "fd_prestat_get", "fd_prestat_dir_name", "sched_yield", "proc_exit":
		return false
	case "fd_write":
		d := s.at(stack[0])
		return d != nil && d.stream < 0
	}
	return true
}

// Params are the types of the parameters. They are not to be changed.
func (f *Func) Params() []api.ValueType { return f.params }

// Signatures lists the functions with their types, for an allow-list.
func Signatures() map[string]wasmbin.FuncType {
	list := map[string]wasmbin.FuncType{}
	for _, f := range functions() {
		list[f.Name] = wasmbin.FuncType{Params: f.params, Results: f.results}
	}
	return list
}

// Bind is how a host runs the functions: it finds the System of the call that
// is on its way and invokes f.Call, with whatever limits and records it wants
// around it.
type Bind func(ctx context.Context, mod api.Module, f *Func, stack []uint64)

// Export adds all functions of preview 1 to b, and returns them.
func Export(b wazero.HostModuleBuilder, bind Bind) []*Func {
	all := functions()
	for _, f := range all {
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(
			func(ctx context.Context, mod api.Module, stack []uint64) { bind(ctx, mod, f, stack) },
		), f.params, f.results).WithName(f.Name).Export(f.Name)
	}
	return all
}

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

func functions() []*Func {
	def := func(name string, run func(context.Context, *System, Memory, []uint64) Errno, params ...api.ValueType) *Func {
		return &Func{Name: name, Full: ModuleName + "." + name, params: params, results: []api.ValueType{i32}, run: run}
	}
	exit := def("proc_exit", procExit, i32)
	exit.results = nil
	return []*Func{
		def("args_get", argsGet, i32, i32),
		def("args_sizes_get", argsSizesGet, i32, i32),
		def("environ_get", environGet, i32, i32),
		def("environ_sizes_get", environSizesGet, i32, i32),
		def("clock_res_get", clockResGet, i32, i32),
		def("clock_time_get", clockTimeGet, i32, i64, i32),
		def("fd_advise", fdAdvise, i32, i64, i64, i32),
		def("fd_allocate", fdAllocate, i32, i64, i64),
		def("fd_close", fdClose, i32),
		def("fd_datasync", fdSync, i32),
		def("fd_fdstat_get", fdFdstatGet, i32, i32),
		def("fd_fdstat_set_flags", fdFdstatSetFlags, i32, i32),
		def("fd_fdstat_set_rights", fdFdstatSetRights, i32, i64, i64),
		def("fd_filestat_get", fdFilestatGet, i32, i32),
		def("fd_filestat_set_size", fdFilestatSetSize, i32, i64),
		def("fd_filestat_set_times", fdFilestatSetTimes, i32, i64, i64, i32),
		def("fd_pread", fdPread, i32, i32, i32, i64, i32),
		def("fd_prestat_get", fdPrestatGet, i32, i32),
		def("fd_prestat_dir_name", fdPrestatDirName, i32, i32, i32),
		def("fd_pwrite", fdPwrite, i32, i32, i32, i64, i32),
		def("fd_read", fdRead, i32, i32, i32, i32),
		def("fd_readdir", fdReaddir, i32, i32, i32, i64, i32),
		def("fd_renumber", fdRenumber, i32, i32),
		def("fd_seek", fdSeek, i32, i64, i32, i32),
		def("fd_sync", fdSync, i32),
		def("fd_tell", fdTell, i32, i32),
		def("fd_write", fdWrite, i32, i32, i32, i32),
		def("path_create_directory", pathCreateDirectory, i32, i32, i32),
		def("path_filestat_get", pathFilestatGet, i32, i32, i32, i32, i32),
		def("path_filestat_set_times", pathFilestatSetTimes, i32, i32, i32, i32, i64, i64, i32),
		def("path_link", pathLink, i32, i32, i32, i32, i32, i32, i32),
		def("path_open", pathOpen, i32, i32, i32, i32, i32, i64, i64, i32, i32),
		def("path_readlink", pathReadlink, i32, i32, i32, i32, i32, i32),
		def("path_remove_directory", pathRemoveDirectory, i32, i32, i32),
		def("path_rename", pathRename, i32, i32, i32, i32, i32, i32),
		def("path_symlink", pathSymlink, i32, i32, i32, i32, i32),
		def("path_unlink_file", pathUnlinkFile, i32, i32, i32),
		def("poll_oneoff", pollOneoff, i32, i32, i32, i32),
		exit,
		def("proc_raise", notSupported, i32),
		def("sched_yield", schedYield),
		def("random_get", randomGet, i32, i32),
		def("sock_accept", sock, i32, i32, i32),
		def("sock_recv", sock, i32, i32, i32, i32, i32, i32),
		def("sock_send", sock, i32, i32, i32, i32, i32),
		def("sock_shutdown", sock, i32, i32),
	}
}

// notSupported answers what preview 1 has and nobody serves: signals.
func notSupported(context.Context, *System, Memory, []uint64) Errno { return eNOSYS }

func schedYield(context.Context, *System, Memory, []uint64) Errno { return success }

// sock answers every socket function: no descriptor is a socket.
func sock(_ context.Context, s *System, _ Memory, p []uint64) Errno {
	if s.at(p[0]) == nil {
		return eBADF
	}
	return eNOTSOCK
}

func procExit(_ context.Context, _ *System, _ Memory, p []uint64) Errno {
	panic(sys.NewExitError(uint32(p[0])))
}
