// Replies of a guest: abi.md, section 1.
#include "elf1.h"

EXPORT("elf_call") u64 elf_call(const char *tool, u32 tool_len, const char *args, u32 args_len) {
  TOOL(text) { begin(0); put("plain text"); return finish(); }
  TOOL(error) { begin(1); put("It did not work. Try something else."); return finish(); }
  TOOL(content) {
    begin(2);
    put("{\"content\":[{\"type\":\"text\",\"text\":\"a block\"}],\"structuredContent\":{\"n\":1}}");
    return finish();
  }
  TOOL(content_error) { begin(2); put("{\"content\":[{\"type\":\"text\",\"text\":\"no\"}],\"isError\":true}"); return finish(); }
  TOOL(image) { begin(2); put("{\"content\":[{\"type\":\"image\",\"data\":\"AAEC\",\"mimeType\":\"image/png\"}]}"); return finish(); }
  TOOL(arguments) { begin(0); put_bytes(args, args_len); return finish(); }
  TOOL(name) { begin(0); put_bytes(tool, tool_len); return finish(); }
  TOOL(no_text) { begin(0); return finish(); }
  TOOL(bad_utf8) { begin(0); put("a\xff" "b"); return finish(); }
  TOOL(empty) return 0;
  TOOL(unknown_kind) { begin(3); put("x"); return finish(); }
  TOOL(outside) return reply_at(0xfffffff0u, 0x20);
  TOOL(huge) return reply_at(16, 0x7fffffffu);
  TOOL(not_json) { begin(2); put("{\"content\":[{"); return finish(); }
  TOOL(not_a_number) { begin(2); put("{\"content\":[],\"structuredContent\":{\"n\":NaN}}"); return finish(); }
  TOOL(infinite) { begin(2); put("{\"content\":[],\"structuredContent\":{\"n\":1e999}}"); return finish(); }
  TOOL(twice) { begin(2); put("{\"content\":[],\"content\":[]}"); return finish(); }
  TOOL(nothing) { begin(2); put("{}"); return finish(); }
  TOOL(unknown_block) { begin(2); put("{\"content\":[{\"type\":\"sculpture\"}]}"); return finish(); }
  TOOL(deep) {
    begin(2);
    put("{\"content\":[],\"structuredContent\":{\"a\":");
    for (int i = 0; i < 200; i++) put("[");
    for (int i = 0; i < 200; i++) put("]");
    put("}}");
    return finish();
  }
  begin(1);
  put("no such tool");
  return finish();
}
