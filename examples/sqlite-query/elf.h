// elf.h: plugins for elfhost in C. A header alone; it follows docs/abi.md (elf/1).
//
//   #include "elf.h"
//
//   static void hello(const char *args) {
//     elf_text("Hello, %s!", elf_string(args, "name", ""));
//   }
//   ELF_TOOLS({"hello", hello})
//
// A tool gets its arguments as JSON, valid under the input schema of elf.toml,
// and answers once, with elf_text, elf_error or elf_json. Memory is never freed:
// all of it is taken back when the call is over. Files are stdio, below /ws.
// Each operation is an import of its own, and only what is used is linked: the
// imports of plugin.wasm are the most that it can do.
#ifndef ELF_H
#define ELF_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct elf_tool {
  const char *name;
  void (*run)(const char *args);
};

// The codes of elf/1; an operation returns one of them, or a length.
enum {
  ELF_INTERNAL = -1, ELF_DENIED = -2, ELF_FAULT = -3, ELF_TOO_LARGE = -4, ELF_NOT_FOUND = -5, ELF_INVALID = -6,
  ELF_LIMIT = -7, ELF_DEADLINE = -8, ELF_UNSUPPORTED = -9, ELF_REENTRANT = -10, ELF_UNAVAILABLE = -11, ELF_NO_REPLY = -12,
};

// ---- Answers ----

static char *elf_reply_;
static size_t elf_reply_len_;

static void elf_answer_(char kind, const char *text, size_t n) {
  elf_reply_ = malloc(n + 1);
  if (!elf_reply_) abort();
  elf_reply_[0] = kind;
  memcpy(elf_reply_ + 1, text, n);
  elf_reply_len_ = n + 1;
}

static char *elf_vformat_(const char *format, va_list list) {
  va_list copy;
  va_copy(copy, list);
  int n = vsnprintf(NULL, 0, format, copy);
  va_end(copy);
  char *text = malloc((size_t)(n < 0 ? 0 : n) + 1);
  if (!text) abort();
  vsnprintf(text, (size_t)(n < 0 ? 0 : n) + 1, format, list);
  return text;
}

// elf_format is printf into new memory.
__attribute__((format(printf, 1, 2), unused)) static char *elf_format(const char *format, ...) {
  va_list list;
  va_start(list, format);
  char *text = elf_vformat_(format, list);
  va_end(list);
  return text;
}

// elf_text answers with text.
__attribute__((format(printf, 1, 2), unused)) static void elf_text(const char *format, ...) {
  va_list list;
  va_start(list, format);
  char *text = elf_vformat_(format, list);
  va_end(list);
  elf_answer_(0, text, strlen(text));
}

// elf_error answers with an error. Say in whole sentences what happened, what
// is allowed and what to try: a model reads it.
__attribute__((format(printf, 1, 2), unused)) static void elf_error(const char *format, ...) {
  va_list list;
  va_start(list, format);
  char *text = elf_vformat_(format, list);
  va_end(list);
  elf_answer_(1, text, strlen(text));
}

// elf_json answers with the JSON of a result: {"content": [...], ...}.
__attribute__((unused)) static void elf_json(const char *json) { elf_answer_(2, json, strlen(json)); }

// ---- Arguments ----

static const char *elf_space_(const char *p) {
  while (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r') p++;
  return p;
}

static const char *elf_skip_string_(const char *p) {
  for (p++; *p && *p != '"'; p++)
    if (*p == '\\' && p[1]) p++;
  return *p ? p + 1 : p;
}

// elf_skip_ finds the end of a value.
static const char *elf_skip_(const char *p) {
  int depth = 0;
  do {
    p = elf_space_(p);
    if (*p == '"') {
      p = elf_skip_string_(p);
      continue;
    }
    if (*p == '{' || *p == '[') depth++;
    else if (*p == '}' || *p == ']') depth--;
    if (!*p) return p;
    if (depth == 0 && *p != '}' && *p != ']') { // a number or a word
      while (*p && !strchr(",}] \n\t\r", *p)) p++;
      return p;
    }
    p++;
  } while (depth > 0);
  return p;
}

// elf_find finds the value of a key of an object: where its JSON begins, NULL
// when it is not there. Keys with escapes are not found.
__attribute__((unused)) static const char *elf_find(const char *json, const char *key) {
  const char *p = elf_space_(json);
  size_t n = strlen(key);
  if (*p != '{') return NULL;
  for (p = elf_space_(p + 1); *p == '"'; p = elf_space_(p + 1)) {
    const char *name = p + 1, *end = elf_skip_string_(p);
    p = elf_space_(end);
    if (*p != ':') return NULL;
    p = elf_space_(p + 1);
    if ((size_t)(end - 1 - name) == n && !memcmp(name, key, n)) return p;
    p = elf_space_(elf_skip_(p));
    if (*p != ',') return NULL;
  }
  return NULL;
}

static unsigned elf_hex_(const char *p) {
  unsigned v = 0;
  for (int i = 0; i < 4 && p[i]; i++) {
    char c = p[i];
    v = v * 16 + (unsigned)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
  }
  return v;
}

static char *elf_utf8_(char *out, unsigned c) {
  if (c < 0x80) { *out++ = (char)c; return out; }
  if (c < 0x800) *out++ = (char)(0xC0 | c >> 6);
  else {
    if (c < 0x10000) *out++ = (char)(0xE0 | c >> 12);
    else {
      *out++ = (char)(0xF0 | c >> 18);
      *out++ = (char)(0x80 | (c >> 12 & 0x3F));
    }
    *out++ = (char)(0x80 | (c >> 6 & 0x3F));
  }
  *out++ = (char)(0x80 | (c & 0x3F));
  return out;
}

// elf_unquote decodes a JSON string.
static char *elf_unquote(const char *p) {
  char *text = malloc(strlen(p) + 1), *out = text;
  if (!text) abort();
  for (p++; *p && *p != '"'; p++) {
    if (*p != '\\') { *out++ = *p; continue; }
    unsigned c;
    switch (*++p) {
    case 'n': *out++ = '\n'; break;
    case 't': *out++ = '\t'; break;
    case 'r': *out++ = '\r'; break;
    case 'b': *out++ = '\b'; break;
    case 'f': *out++ = '\f'; break;
    case 'u':
      c = elf_hex_(p + 1);
      p += 4;
      if (c >= 0xD800 && c < 0xDC00 && p[1] == '\\' && p[2] == 'u') {
        c = 0x10000 + ((c - 0xD800) << 10) + (elf_hex_(p + 3) - 0xDC00);
        p += 6;
      }
      out = elf_utf8_(out, c);
      break;
    default: *out++ = *p;
    }
  }
  *out = 0;
  return text;
}

// elf_string is a string argument, or fallback.
__attribute__((unused)) static const char *elf_string(const char *args, const char *key, const char *fallback) {
  const char *p = elf_find(args, key);
  return p && *p == '"' ? elf_unquote(p) : fallback;
}

// elf_number is a number argument, or fallback.
__attribute__((unused)) static double elf_number(const char *args, const char *key, double fallback) {
  const char *p = elf_find(args, key);
  return p && (*p == '-' || (*p >= '0' && *p <= '9')) ? strtod(p, NULL) : fallback;
}

// elf_bool is a boolean argument, or fallback.
__attribute__((unused)) static int elf_bool(const char *args, const char *key, int fallback) {
  const char *p = elf_find(args, key);
  return !p ? fallback : *p == 't' ? 1 : *p == 'f' ? 0 : fallback;
}

// elf_quote encodes a JSON string, its quotes included.
static char *elf_quote(const char *text) {
  char *json = malloc(strlen(text) * 6 + 3), *out = json;
  if (!json) abort();
  *out++ = '"';
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') *out++ = '\\', *out++ = (char)c;
    else if (c < 0x20) out += sprintf(out, "\\u%04x", c);
    else *out++ = (char)c;
  }
  *out++ = '"';
  *out = 0;
  return json;
}

// ---- Operations ----

#define ELF_IMPORT(module, name) __attribute__((import_module(module), import_name(name)))
#define ELF_EXPORT(name) __attribute__((export_name(name), used))

ELF_IMPORT("elf:io", "take") int32_t elf_take_(void *dst, int32_t n);
ELF_IMPORT("elf:io", "error") int32_t elf_last_error_(void);
ELF_IMPORT("elf:log", "write") int32_t elf_log_(const void *req, int32_t n);
ELF_IMPORT("elf:progress", "report") int32_t elf_progress_(const void *req, int32_t n);
ELF_IMPORT("elf:net", "http") int32_t elf_http_(const void *req, int32_t n);
ELF_IMPORT("elf:kv", "get") int32_t elf_kv_get_(const void *req, int32_t n);
ELF_IMPORT("elf:kv", "set") int32_t elf_kv_set_(const void *req, int32_t n);
ELF_IMPORT("elf:env", "get") int32_t elf_env_get_(const void *req, int32_t n);
ELF_IMPORT("elf:secret", "placeholder") int32_t elf_secret_(const void *req, int32_t n);
ELF_IMPORT("elf:model", "generate") int32_t elf_model_(const void *req, int32_t n);
ELF_IMPORT("elf:exec", "run") int32_t elf_exec_(const void *req, int32_t n);
ELF_IMPORT("elf:tool", "call") int32_t elf_tool_call_(const void *req, int32_t n);

// elf_answer is what an operation gave. Header and body end with a NUL that
// size does not count.
struct elf_answer {
  int32_t code;       // 0, or one of the codes above
  const char *header; // JSON
  char *body;
  size_t size;
};

// elf_why says why the last operation failed.
__attribute__((unused)) static const char *elf_why(void) {
  int32_t n = elf_last_error_();
  char *text = calloc(1, (size_t)(n < 0 ? 0 : n) + 1);
  if (!text) abort();
  if (n > 0) elf_take_(text, n);
  return text;
}

// elf_ask does an operation: elf_ask(elf_kv_get_, "{\"key\":\"a\"}", NULL, 0).
static struct elf_answer elf_ask(int32_t (*op)(const void *, int32_t), const char *header, const void *body, size_t size) {
  struct elf_answer a = {0, "{}", (char *)"", 0};
  uint32_t n = (uint32_t)strlen(header);
  char *frame = malloc(4 + n + size);
  if (!frame) abort();
  memcpy(frame, &n, 4);
  memcpy(frame + 4, header, n);
  if (size) memcpy(frame + 4 + n, body, size);
  int32_t got = op(frame, (int32_t)(4 + n + size));
  free(frame);
  if (got < 0) a.code = got;
  if (got < 4) return a;
  char *reply = malloc((size_t)got + 1), *head;
  if (!reply) abort();
  elf_take_(reply, got);
  reply[got] = 0;
  memcpy(&n, reply, 4);
  if (n > (uint32_t)got - 4 || !(head = calloc(1, n + 1))) abort();
  a.header = memcpy(head, reply + 4, n);
  a.body = reply + 4 + n;
  a.size = (size_t)got - 4 - n;
  return a;
}

// elf_http makes a request. headers is a JSON object of lists, or NULL. The
// status is 0 when there was no response: elf_why says why.
__attribute__((unused)) static int elf_http(const char *method, const char *url, const char *headers, const void *body,
                                            size_t size, struct elf_answer *out) {
  *out = elf_ask(elf_http_, elf_format("{\"method\":%s,\"url\":%s,\"headers\":%s}", elf_quote(method), elf_quote(url),
                                       headers ? headers : "{}"), body, size);
  return out->code ? 0 : (int)elf_number(out->header, "status", 0);
}

// elf_log writes a line to the host's log. level: debug, info, warn, error.
__attribute__((unused)) static void elf_log(const char *level, const char *text) {
  elf_ask(elf_log_, elf_format("{\"level\":%s}", elf_quote(level)), text, strlen(text));
}

// ---- The exports ----

ELF_EXPORT("elf_alloc") void *elf_alloc(int32_t size) { return malloc(size > 0 ? (size_t)size : 1); }

static uint64_t elf_run_(const struct elf_tool *tools, size_t count, const char *name, size_t name_len, const char *args,
                         size_t args_len) {
  char *text = malloc(args_len + 1);
  if (!text) abort();
  memcpy(text, args, args_len);
  text[args_len] = 0;
  elf_answer_(1, "The tool did not answer.", 24);
  for (size_t i = 0; i < count; i++)
    if (strlen(tools[i].name) == name_len && !memcmp(tools[i].name, name, name_len)) {
      tools[i].run(text);
      return (uint64_t)(uintptr_t)elf_reply_ << 32 | elf_reply_len_;
    }
  elf_answer_(1, "There is no such tool.", 22);
  return (uint64_t)(uintptr_t)elf_reply_ << 32 | elf_reply_len_;
}

// ELF_TOOLS lists the tools that elf.toml declares.
#define ELF_TOOLS(...)                                                                                              \
  static const struct elf_tool elf_tools_[] = {__VA_ARGS__};                                                        \
  ELF_EXPORT("elf_call")                                                                                            \
  uint64_t elf_call(const char *name, int32_t name_len, const char *args, int32_t args_len) {                       \
    return elf_run_(elf_tools_, sizeof elf_tools_ / sizeof *elf_tools_, name, (size_t)name_len, args,               \
                    (size_t)args_len);                                                                              \
  }

#endif
