// How calls end: abi.md, sections 3 and 4.
#include "elf1.h"

IMPORT("elf:io", "take") i32 take(void *dst, u32 n);
IMPORT("wasi_snapshot_preview1", "proc_exit") void proc_exit(u32 code);

struct subscription { u64 user; u32 kind, pad; u32 clock, pad2; u64 timeout, precision; u32 flags, pad3; };
IMPORT("wasi_snapshot_preview1", "poll_oneoff") u32 poll_oneoff(const void *in, void *out, u32 n, u32 *got);

__attribute__((noinline)) static u32 deep(volatile u32 *n) {
  if (*n == 0xffffffff) return 0; // does not happen
  ++*n;
  return deep(n) + *n;
}

EXPORT("elf_call") u64 elf_call(const char *tool, u32 tool_len, const char *args, u32 args_len) {
  (void)args, (void)args_len;
  begin(0);
  TOOL(unreachable) __builtin_trap();
  TOOL(outside) return *(volatile u64 *)0xfffffff0u;
  TOOL(spin) for (volatile u32 i = 0;;) i++;
  TOOL(recurse) { volatile u32 n = 1; put_num(deep(&n)); return finish(); }
  TOOL(flood) for (;;) take(heap_, 0);
  TOOL(exit_zero) proc_exit(0);
  TOOL(exit_one) proc_exit(1);
  TOOL(sleep) {
    struct subscription s = {0};
    u8 event[32];
    u32 got;
    s.clock = 1, s.timeout = 3600000000000ull;
    poll_oneoff(&s, event, 1, &got);
    put("slept an hour");
    return finish();
  }
  TOOL(memory) {
    u32 n = 0;
    while (__builtin_wasm_memory_grow(0, 16) != (u32)-1) n++;
    put(n < 4096 ? "refused" : "endless");
    return finish();
  }
  TOOL(long_output) return reply_at((u32)heap_, 3 << 16);
  put("alive");
  return finish();
}
