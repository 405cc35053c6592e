// What a call leaves behind, and what a snapshot shares: abi.md, sections 1 and 6.
#include "elf1.h"

static u32 counter, made;
static u8 big[200000];

EXPORT("_initialize") void initialize(void) { made = 42; }

EXPORT("elf_call") u64 elf_call(const char *tool, u32 tool_len, const char *args, u32 args_len) {
  (void)args, (void)args_len;
  begin(0);
  TOOL(count) { put_num(++counter); return finish(); }
  TOOL(made) { put_num(made++); return finish(); }
  TOOL(grow) {
    put_num(__builtin_wasm_memory_size(0));
    put(__builtin_wasm_memory_grow(0, 3) < 0x10000 ? " grew" : " did not grow");
    return finish();
  }
  TOOL(dirty) {
    int clean = 1;
    for (u32 i = 0; i < sizeof big; i += 64) clean &= !big[i], big[i] = 1;
    put(clean ? "clean" : "dirty");
    return finish();
  }
  TOOL(trap) {
    counter = 7;
    __builtin_trap();
  }
  return finish();
}
