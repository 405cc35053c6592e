// Initialisation has nobody's rights: abi.md, section 6.
#include "elf1.h"

OP(kv_get, "elf:kv", "get");
OP(log_write, "elf:log", "write");
IMPORT("wasi_snapshot_preview1", "path_open")
u32 path_open(u32 dir, u32 flags, const char *path, u32 n, u32 oflags, u64 rights, u64 inherit, u32 fdflags, u32 *fd);

static i32 get, log;
static u32 errno;

EXPORT("_initialize") void initialize(void) {
  u32 fd;
  get = ASK(kv_get, "{\"key\":\"k\"}", "");
  log = ASK(log_write, "{}", "starting");
  errno = path_open(3, 0, "ws/a.txt", 8, 0, 2, 0, 0, &fd);
}

EXPORT("elf_call") u64 elf_call(const char *tool, u32 tool_len, const char *args, u32 args_len) {
  (void)tool, (void)tool_len, (void)args, (void)args_len;
  begin(0);
  put_num(get), put(" "), put_num(log), put(errno ? " no file" : " a file");
  return finish();
}
