// The core module of an IronClaw tool that echoes its arguments.
typedef unsigned int u32;

#define EXPORT(name) __attribute__((export_name(name)))

__attribute__((import_module("near:agent/host@0.4.1"), import_name("now-millis"))) long long now_millis(void);

extern unsigned char __heap_base;
static u32 top;

EXPORT("cabi_realloc") void *cabi_realloc(void *old, u32 old_size, u32 align, u32 size) {
  if (top == 0) top = (u32)&__heap_base;
  top = (top + align - 1) & -align;
  void *at = (void *)top;
  top += size;
  if (top > __builtin_wasm_memory_size(0) << 16) __builtin_wasm_memory_grow(0, (size >> 16) + 1);
  return at;
}

static u32 record[9];

static u32 *text(const char *s, u32 n) {
  record[0] = (u32)s;
  record[1] = n;
  return record;
}

EXPORT("near:agent/tool@0.4.1#description") u32 *description(void) { return text("Echoes.", 7); }
EXPORT("near:agent/tool@0.4.1#schema") u32 *schema(void) { return text("{\"type\":\"object\"}", 17); }

EXPORT("near:agent/tool@0.4.1#execute") u32 *execute(const char *args, u32 n, u32 has, const char *about, u32 about_n) {
  record[0] = now_millis() < 0; // ok
  record[1] = (u32)args;
  record[2] = n;
  return record;
}
