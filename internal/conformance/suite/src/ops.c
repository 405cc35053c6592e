// Operations: how they are called, their codes, and rights. abi.md, sections 2 and 3.
#include "elf1.h"

IMPORT("elf:io", "take") i32 take(void *dst, u32 n);
IMPORT("elf:io", "error") i32 last_error(void);
OP(log_write, "elf:log", "write");
OP(progress, "elf:progress", "report");
OP(kv_get, "elf:kv", "get");
OP(kv_set, "elf:kv", "set");
OP(kv_delete, "elf:kv", "delete");
OP(kv_list, "elf:kv", "list");
OP(env_get, "elf:env", "get");
OP(env_list, "elf:env", "list");
OP(placeholder, "elf:secret", "placeholder");
OP(http, "elf:net", "http");
OP(generate, "elf:model", "generate");
OP(call, "elf:tool", "call");

static u8 buf[1 << 16];

// put_reply takes the pending reply and puts its header and body down.
static void put_reply(i32 n) {
  if (n < 4) return;
  take(buf, sizeof buf);
  u32 h;
  copy_((u8 *)&h, buf, 4);
  put_bytes(buf + 4, h);
  put("|");
  put_bytes(buf + 4 + h, (u32)n - 4 - h);
}

static void code(i32 n) {
  put_num(n < 0 ? n : 0);
  put(" ");
}

EXPORT("elf_call") u64 elf_call(const char *tool, u32 tool_len, const char *args, u32 args_len) {
  (void)args, (void)args_len;
  i32 n;
  begin(0);
  // --- elf:io ---
  TOOL(take_nothing) { put_num(take(buf, 16)); return finish(); }
  TOOL(no_error) { put_num(last_error()); return finish(); }
  TOOL(error_text) {
    code(ASK(kv_get, "{\"key\":\"none\"}", ""));
    n = last_error();
    put(n > 0 && take(buf, (u32)n) == n ? "says why" : "says nothing");
    return finish();
  }
  TOOL(pieces) {
    code(ASK(kv_set, "{\"key\":\"k\"}", "value"));
    n = ASK(kv_get, "{\"key\":\"k\"}", "");
    i32 a = take(buf, 3), b = take(buf + 3, 100), c = take(buf, 1), d = take(buf, 1);
    put(a == 3 && b == n - 3 ? "whole " : "broken ");
    put_num(c), put(" "), put_num(d);
    return finish();
  }
  TOOL(dropped) { // the next operation drops what was pending, also when it fails
    ASK(kv_set, "{\"key\":\"k\"}", "value");
    ASK(kv_get, "{\"key\":\"k\"}", "");
    code(ASK(kv_get, "{\"key\":\"none\"}", ""));
    put_num(take(buf, 16));
    return finish();
  }
  TOOL(leave) { // something pending at the end of a call
    ASK(kv_set, "{\"key\":\"k\"}", "value");
    put(ASK(kv_get, "{\"key\":\"k\"}", "") > 0 ? "left" : "nothing");
    return finish();
  }
  TOOL(take_outside) {
    ASK(kv_set, "{\"key\":\"k\"}", "value");
    ASK(kv_get, "{\"key\":\"k\"}", "");
    put_num(take((void *)0xfffffff0u, 0x20));
    return finish();
  }
  // --- requests ---
  TOOL(unknown_key) { code(ASK(kv_get, "{\"key\":\"k\",\"colour\":1}", "")); return finish(); }
  TOOL(double_key) { code(ASK(kv_get, "{\"key\":\"k\",\"key\":\"l\"}", "")); return finish(); }
  TOOL(wrong_type) { code(ASK(kv_get, "{\"key\":1}", "")); return finish(); }
  TOOL(not_json) { code(ASK(kv_get, "{\"key\":", "")); return finish(); }
  TOOL(no_frame) { code(kv_get(buf, 3)); return finish(); }
  TOOL(header_too_long) { // longer than the frame
    u32 h = 1000;
    copy_(frame_buf_, &h, 4);
    code(kv_get(frame_buf_, 10));
    return finish();
  }
  TOOL(outside) { code(kv_get((void *)0xfffffff0u, 0x20)); return finish(); }
  TOOL(far_outside) { code(kv_get((void *)0xffff0000u, 0xffffff)); return finish(); }
  TOOL(too_large) { code(kv_get(0, 0xffffffffu)); return finish(); }
  TOOL(empty_header) { // {} is meant
    u32 h = 0;
    copy_(frame_buf_, &h, 4);
    code(kv_list(frame_buf_, 4));
    return finish();
  }
  // --- log and progress need no right ---
  TOOL(log) { code(ASK(log_write, "{\"level\":\"warn\"}", "a line\x1b[2J")), put_num(take(buf, 1)); return finish(); }
  TOOL(bad_level) { code(ASK(log_write, "{\"level\":\"loud\"}", "x")); return finish(); }
  TOOL(progress) { code(ASK(progress, "{\"message\":\"half\",\"done\":1,\"total\":2}", "")); return finish(); }
  // --- kv ---
  TOOL(kv) {
    code(ASK(kv_get, "{\"key\":\"a\"}", ""));
    code(ASK(kv_set, "{\"key\":\"a\"}", "one"));
    code(ASK(kv_set, "{\"key\":\"b\"}", "two"));
    put_reply(ASK(kv_get, "{\"key\":\"a\"}", "")), put(" ");
    put_reply(ASK(kv_list, "{}", "")), put(" ");
    code(ASK(kv_delete, "{\"key\":\"a\"}", ""));
    code(ASK(kv_delete, "{\"key\":\"a\"}", ""));
    return finish();
  }
  TOOL(kv_keep) { code(ASK(kv_set, "{\"key\":\"kept\"}", "it stayed")); return finish(); }
  TOOL(kv_kept) { put_reply(ASK(kv_get, "{\"key\":\"kept\"}", "")); return finish(); }
  TOOL(kv_no_key) { code(ASK(kv_set, "{\"key\":\"\"}", "x")); return finish(); }
  TOOL(kv_quota) { // more than the grant's 1KiB
    for (int i = 0; i < 2000; i++) buf[i] = 'x';
    buf[2000] = 0;
    code(ASK(kv_set, "{\"key\":\"big\"}", (const char *)buf));
    return finish();
  }
  // --- env, secret, net, model, tool ---
  TOOL(env) { put_reply(ASK(env_get, "{\"name\":\"LANG\"}", "")); return finish(); }
  TOOL(env_code) { code(ASK(env_get, "{\"name\":\"LANG\"}", "")); return finish(); }
  TOOL(env_other) { code(ASK(env_get, "{\"name\":\"PATH\"}", "")); return finish(); }
  TOOL(env_list) { put_reply(ASK(env_list, "{}", "")); return finish(); }
  TOOL(secret) { // the value is never seen
    n = ASK(placeholder, "{\"name\":\"token\"}", "");
    if (n < 0) { code(n); return finish(); }
    put_reply(n);
    u8 *s = out_ + 1;
    for (u32 i = 0; i + 6 <= size_; i++)
      if (same_("s3cret", (const char *)s + i, 6)) { begin(0); put("the value leaked"); return finish(); }
    begin(0);
    put(n > 6 ? "a placeholder" : "nothing");
    return finish();
  }
  TOOL(http) { put_reply(ASK(http, "{\"url\":\"https://example.org/x\"}", "")); return finish(); }
  TOOL(http_code) { code(ASK(http, "{\"url\":\"https://example.org/x\"}", "")); return finish(); }
  TOOL(http_other) { code(ASK(http, "{\"url\":\"https://other.example/\"}", "")); return finish(); }
  TOOL(http_loopback) { code(ASK(http, "{\"url\":\"http://127.0.0.1:1/\"}", "")); return finish(); }
  TOOL(http_userinfo) { n = ASK(http, "{\"url\":\"https://u:p@example.org/x\"}", ""); put(n < 0 ? "refused" : "sent"); return finish(); }
  TOOL(http_scheme) { n = ASK(http, "{\"url\":\"file:///etc/passwd\"}", ""); put(n < 0 ? "refused" : "sent"); return finish(); }
  TOOL(model) {
    n = ASK(generate, "{\"prompt\":\"say it\"}", "");
    if (n < 0) { code(n); return finish(); }
    take(buf, sizeof buf);
    u32 h;
    copy_((u8 *)&h, buf, 4);
    put_bytes(buf + 4 + h, (u32)n - 4 - h);
    return finish();
  }
  TOOL(model_both) { code(ASK(generate, "{\"prompt\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}", "")); return finish(); }
  TOOL(call) { put_reply(ASK(call, "{\"tool\":\"Other\"}", "{}")); return finish(); }
  TOOL(call_code) { code(ASK(call, "{\"tool\":\"Other\"}", "{}")); return finish(); }
  begin(1);
  put("no such tool");
  return finish();
}
