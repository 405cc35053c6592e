// The kernels as a small C guest.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(name)))

static uint8_t buf[65536];

static const uint32_t K[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
	0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
	0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
	0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
	0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
	0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t ror(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void block(uint32_t h[8], const uint8_t *p) {
	uint32_t w[64], s[8];
	for (int i = 0; i < 16; i++) w[i] = (uint32_t)p[4 * i] << 24 | p[4 * i + 1] << 16 | p[4 * i + 2] << 8 | p[4 * i + 3];
	for (int i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];
		w[i] = w[i - 16] + (ror(a, 7) ^ ror(a, 18) ^ a >> 3) + w[i - 7] + (ror(b, 17) ^ ror(b, 19) ^ b >> 10);
	}
	memcpy(s, h, sizeof s);
	for (int i = 0; i < 64; i++) {
		uint32_t t1 = s[7] + (ror(s[4], 6) ^ ror(s[4], 11) ^ ror(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) + K[i] + w[i];
		uint32_t t2 = (ror(s[0], 2) ^ ror(s[0], 13) ^ ror(s[0], 22)) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
		memmove(s + 1, s, 28);
		s[4] += t1;
		s[0] = t1 + t2;
	}
	for (int i = 0; i < 8; i++) h[i] += s[i];
}

EXPORT("sha") uint32_t sha(uint32_t n) {
	uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	for (uint32_t i = 0; i < n; i++) block(h, buf + i * 64 % 65536);
	return h[0];
}

EXPORT("tight") uint32_t tight(uint32_t n) {
	uint32_t s = 1;
	for (uint32_t i = 0; i < n; i++) {
		s = s * 31 + i;
		s ^= s >> 3;
	}
	return s;
}

__attribute__((noinline)) static uint32_t fib_(uint32_t n) { return n < 2 ? n : fib_(n - 1) + fib_(n - 2); }
EXPORT("fib") uint32_t fib(uint32_t n) { return fib_(n); }

__attribute__((noinline)) static uint32_t rec_(uint32_t n, volatile uint32_t *p) { return n == 0 ? *p : rec_(n - 1, p) + *p; }
EXPORT("rec") uint32_t rec(uint32_t n) {
	uint32_t one = 1;
	return rec_(n, &one);
}

static uint32_t tree(uint32_t n, volatile uint32_t *p) { // loop-free recursion that never ends in practice
	if (n == 0) return *p;
	return tree(n - 1, p) + tree(n - 1, p);
}
EXPORT("forever") uint32_t forever(uint32_t n) {
	uint32_t one = 1;
	return tree(n, &one);
}

EXPORT("spin") uint32_t spin(uint32_t n) {
	volatile uint32_t *p = (uint32_t *)buf;
	for (;;) *p += n;
}

// A JSON reader and writer: values are parsed to a tree and written again.
static char doc[1 << 20], out[2 << 20];
static size_t doclen;
static const char *in;

typedef struct value { int kind; double num; const char *s; size_t len; struct value *first, *next; } value;
static value pool[1 << 16];
static size_t used;

static void space(void) { while (*in == ' ' || *in == '\n' || *in == '\t') in++; }
static value *parse(void) {
	value *v = &pool[used++ & 0xffff];
	memset(v, 0, sizeof *v);
	space();
	if (*in == '"') {
		v->kind = 1;
		v->s = ++in;
		while (*in && *in != '"') in += *in == '\\' ? 2 : 1;
		v->len = in - v->s;
		in++;
	} else if (*in == '[' || *in == '{') {
		char close = *in == '[' ? ']' : '}';
		v->kind = *in++ == '[' ? 2 : 3;
		value **tail = &v->first;
		for (space(); *in && *in != close; space()) {
			*tail = parse();
			tail = &(*tail)->next;
			space();
			if (*in == ',' || *in == ':') in++;
		}
		in++;
	} else {
		while (*in >= '0' && *in <= '9') v->num = v->num * 10 + (*in++ - '0');
		if (*in == '.') for (double f = 0.1; *++in >= '0' && *in <= '9'; f /= 10) v->num += f * (*in - '0');
	}
	return v;
}
static char *put(char *o, value *v) {
	switch (v->kind) {
	case 0: {
		char tmp[16];
		int n = 0;
		uint32_t x = (uint32_t)v->num;
		do tmp[n++] = '0' + x % 10; while (x /= 10);
		while (n) *o++ = tmp[--n];
		return o;
	}
	case 1:
		*o++ = '"';
		for (size_t i = 0; i < v->len; i++) *o++ = v->s[i];
		*o++ = '"';
		return o;
	default: {
		int i = 0;
		*o++ = v->kind == 2 ? '[' : '{';
		for (value *c = v->first; c; c = c->next, i++) {
			if (i) *o++ = v->kind == 3 && i % 2 ? ':' : ',';
			o = put(o, c);
		}
		*o++ = v->kind == 2 ? ']' : '}';
		return o;
	}
	}
}
EXPORT("makejson") void makejson(uint32_t n) {
	char *p = doc;
	p = strcpy(p, "{\"n\": 1, \"list\": [") + 18;
	for (uint32_t i = 0; i < n / 24; i++) p = strcpy(p, "{\"k\": \"hello\", \"v\": 12.5}, ") + 27;
	strcpy(p, "7]}");
	doclen = p + 3 - doc;
}
EXPORT("jsonk") uint32_t jsonk(uint32_t n) {
	uint32_t total = 0;
	while (n--) {
		in = doc;
		used = 0;
		total += put(out, parse()) - out;
	}
	return total;
}

EXPORT("fill") uint32_t fill(uint32_t n) { // bulk memory: n fills of 64 KiB
	while (n--) memset(out, (int)n, sizeof buf);
	return out[0];
}

static uint32_t state = 7;
EXPORT("keep") uint32_t keep(uint32_t n) {
	uint32_t before = state;
	state = n;
	buf[0] = 1;
	return before;
}

EXPORT("grow") uint32_t grow(uint32_t n) { return __builtin_wasm_memory_grow(0, n); }

static uint32_t one(uint32_t x) { return x + 1; }
static uint32_t two(uint32_t x) { return x * 2; }
static uint32_t (*volatile const ops[])(uint32_t) = {one, two};
EXPORT("indirect") uint32_t indirect(uint32_t n) {
	uint32_t x = 1;
	for (uint32_t i = 0; i < n; i++) x = ops[i & 1](x);
	return x;
}

static uint64_t seed[2] = {1, 2};
EXPORT("elf_reseed") void reseed(const uint8_t *p, uint32_t n) { memcpy(seed, p, n < sizeof seed ? n : sizeof seed); }
EXPORT("rnd") uint32_t rnd(uint32_t n) { return (uint32_t)(seed[0] ^ seed[1] * (n + 1)); }
EXPORT("elf_alloc") void *alloc(uint32_t n) { return malloc(n); }
