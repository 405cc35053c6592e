// Files, clocks and the rest: abi.md, section 5.
#include "elf1.h"

#define WASI(name) IMPORT("wasi_snapshot_preview1", #name) u32 name
WASI(path_open)(u32 dir, u32 flags, const char *path, u32 n, u32 oflags, u64 rights, u64 inherit, u32 fdflags, u32 *fd);
WASI(path_symlink)(const char *old, u32 n, u32 dir, const char *path, u32 m);
WASI(path_link)(u32 od, u32 flags, const char *old, u32 n, u32 dir, const char *path, u32 m);
WASI(fd_read)(u32 fd, const void *iov, u32 n, u32 *got);
WASI(fd_write)(u32 fd, const void *iov, u32 n, u32 *put);
WASI(fd_close)(u32 fd);
WASI(fd_readdir)(u32 fd, void *buf, u32 n, u64 cookie, u32 *used);
WASI(fd_prestat_get)(u32 fd, void *out);
WASI(args_sizes_get)(u32 *n, u32 *size);
WASI(environ_sizes_get)(u32 *n, u32 *size);
WASI(clock_time_get)(u32 id, u64 precision, u64 *t);
WASI(random_get)(void *buf, u32 n);
WASI(sock_send)(u32 fd, const void *iov, u32 n, u32 flags, u32 *sent);
WASI(proc_raise)(u32 sig);

enum { CREATE = 1, DIRECTORY = 2, TRUNCATE = 8, READ = 2, WRITE = 64 };

static u8 buf[4096];

static u32 open(const char *path, u32 oflags, u64 rights, u32 *fd) {
  return path_open(3, 1, path, len_(path), oflags, rights, 0, 0, fd);
}

static void read_file(const char *path) {
  u32 fd, no = open(path, 0, READ, &fd), got;
  if (no) { put("errno "), put_num(no); return; }
  u32 iov[2] = {(u32)buf, sizeof buf};
  no = fd_read(fd, iov, 1, &got);
  if (no) { put("read errno "), put_num(no); return; }
  put_bytes(buf, got);
}

static void write_file(const char *path, const char *text) {
  u32 fd, no = open(path, CREATE | TRUNCATE, WRITE, &fd), n;
  if (no) { put("errno "), put_num(no); return; }
  u32 iov[2] = {(u32)text, len_(text)};
  no = fd_write(fd, iov, 1, &n);
  put_num(no ? no : fd_close(fd));
}

EXPORT("elf_call") u64 elf_call(const char *tool, u32 tool_len, const char *args, u32 args_len) {
  (void)args, (void)args_len;
  u32 a, b, fd;
  u64 t;
  begin(0);
  TOOL(read) { read_file("ws/a.txt"); return finish(); }
  TOOL(read_missing) { read_file("ws/none.txt"); return finish(); }
  TOOL(read_outside) { read_file("etc/passwd"); return finish(); }
  TOOL(read_above) { read_file("ws/../../etc/passwd"); return finish(); }
  TOOL(read_other) { read_file("ws/other/b.txt"); return finish(); }
  TOOL(write) { write_file("ws/out.txt", "written"); return finish(); }
  TOOL(write_git) { write_file("ws/.git/hooks/pre-commit", "#!/bin/sh"); return finish(); }
  TOOL(symlink) { put_num(path_symlink("/etc/passwd", 11, 3, "ws/link", 7)); return finish(); }
  TOOL(link) { put_num(path_link(3, 0, "ws/a.txt", 8, 3, "ws/hard", 7)); return finish(); }
  TOOL(root) { // always opens; empty without a right
    put_num(open(".", DIRECTORY, 1 << 14, &fd));
    a = 0;
    fd_readdir(fd, buf, sizeof buf, 0, &a);
    put(" "), put_num(fd_prestat_get(3, buf)), put(" "), put_num(fd_prestat_get(4, buf));
    int ws = 0;
    for (u32 i = 0; i + 2 <= a; i++) ws |= buf[i] == 'w' && buf[i + 1] == 's';
    put(ws ? " ws" : " empty");
    return finish();
  }
  TOOL(close_root) { // belongs to this call alone
    put_num(fd_close(3)), put(" "), read_file("ws/a.txt");
    return finish();
  }
  TOOL(keep_open) {
    put_num(open("ws/a.txt", 0, READ, &fd)), put(" "), put_num(fd);
    return finish();
  }
  TOOL(still_open) {
    u32 iov[2] = {(u32)buf, 16}, got;
    put_num(fd_read(4, iov, 1, &got));
    return finish();
  }
  TOOL(nul) { put_num(path_open(3, 0, "ws/a\0.txt", 9, 0, READ, 0, 0, &fd)); return finish(); }
  TOOL(long_path) {
    for (u32 i = 0; i < sizeof buf; i++) buf[i] = 'x';
    put_num(path_open(3, 0, (const char *)buf, sizeof buf + 1, 0, READ, 0, 0, &fd));
    return finish();
  }
  TOOL(arguments) { args_sizes_get(&a, &b); put_num(a), put(" "), environ_sizes_get(&a, &b), put_num(a); return finish(); }
  TOOL(clock) { put_num(clock_time_get(0, 1, &t)), put(t % 1000000 ? " fine" : " coarse"), put(t > 1500000000000000000ull ? " now" : " then"); return finish(); }
  TOOL(cpu_clock) { put_num(clock_time_get(2, 1, &t)); return finish(); }
  TOOL(random) {
    put_num(random_get(&t, 8)), put(" "), put_num((long long)(t >> 1));
    return finish();
  }
  TOOL(streams) {
    u32 iov[2] = {(u32)"to the log\n", 11}, got;
    put_num(fd_write(1, iov, 1, &got)), put(" "), put_num(fd_write(2, iov, 1, &got));
    u32 in[2] = {(u32)buf, 16};
    put(" "), put_num(fd_read(0, in, 1, &got)), put(" "), put_num(got);
    return finish();
  }
  TOOL(socket) { u32 iov[2] = {(u32)buf, 1}; put_num(sock_send(3, iov, 1, 0, &a)); return finish(); }
  TOOL(raise) { put_num(proc_raise(9)); return finish(); }
  TOOL(pointers) { // outside the memory is EFAULT, not a trap
    put_num(random_get((void *)0xfffffff0u, 0x20)), put(" "), put_num(clock_time_get(0, 1, (u64 *)0xfffffffcu));
    return finish();
  }
  begin(1);
  put("no such tool");
  return finish();
}
