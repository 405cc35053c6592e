// elf_describe names the tools: abi.md, section 1.
#include "elf1.h"

EXPORT("elf_describe") u64 describe(void) {
  begin(0);
  put("{\"abi\":\"elf/1\",\"tools\":[{\"name\":\"first\",\"description\":\"The first.\",\"inputSchema\":{\"type\":\"object\"}},"
      "{\"name\":\"second\",\"description\":\"The second.\",\"inputSchema\":{\"type\":\"object\"},\"readOnly\":true}]}");
  return finish();
}

EXPORT("elf_call") u64 elf_call(const char *tool, u32 tool_len, const char *args, u32 args_len) {
  (void)args, (void)args_len;
  begin(0);
  put("called "), put_bytes(tool, tool_len);
  return finish();
}
