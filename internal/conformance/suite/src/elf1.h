// What the modules of this suite share. No C library: what a module imports is
// what it names here.
#ifndef ELF1_H
#define ELF1_H

typedef unsigned char u8;
typedef int i32;
typedef unsigned int u32;
typedef unsigned long long u64;

#define IMPORT(module, name) __attribute__((import_module(module), import_name(name)))
#define EXPORT(name) __attribute__((export_name(name), used))
#define OP(c, module, name) IMPORT(module, name) i32 c(const void *req, u32 n)

// A heap that only grows; every call starts with it empty.
static u8 heap_[1 << 18];
static u32 used_;

EXPORT("elf_alloc") void *elf_alloc(i32 n) {
  void *p = heap_ + used_;
  used_ += ((u32)n + 15) & ~15u;
  return used_ <= sizeof heap_ ? p : 0;
}

static u32 len_(const char *s) {
  u32 n = 0;
  while (s[n]) n++;
  return n;
}

static void copy_(u8 *to, const void *from, u32 n) {
  for (u32 i = 0; i < n; i++) to[i] = ((const u8 *)from)[i];
}

static int same_(const char *a, const char *b, u32 n) {
  for (u32 i = 0; i < n; i++)
    if (a[i] != b[i]) return 0;
  return !a[n];
}

// An answer is written piece by piece.
static u8 out_[1 << 16];
static u32 size_;

static void put_bytes(const void *p, u32 n) {
  copy_(out_ + size_, p, n);
  size_ += n;
}
static void put(const char *s) { put_bytes(s, len_(s)); }
static void put_num(long long v) {
  char b[24];
  u32 n = sizeof b;
  u64 u = v < 0 ? -(u64)v : (u64)v;
  do b[--n] = (char)('0' + u % 10);
  while (u /= 10);
  if (v < 0) b[--n] = '-';
  put_bytes(b + n, sizeof b - n);
}
static void begin(u8 kind) { out_[0] = kind, size_ = 1; }
static u64 reply_at(u32 ptr, u32 n) { return (u64)ptr << 32 | n; }
static u64 finish(void) { return reply_at((u32)out_, size_); }

// frame_ makes a request: a header, and a body.
static u8 frame_buf_[4096];
static u32 frame_(const char *header, const void *body, u32 n) {
  u32 h = len_(header);
  copy_(frame_buf_, &h, 4);
  copy_(frame_buf_ + 4, header, h);
  copy_(frame_buf_ + 4 + h, body, n);
  return 4 + h + n;
}
#define ASK(op, header, body) op(frame_buf_, frame_(header, body, len_(body)))

#define TOOL(name) if (same_(#name, tool, tool_len))

#endif
