// Plugins for elfhost in AssemblyScript; it follows docs/abi.md (elf/1).
//
//   import * as elf from "./elf";
//   export { elf_alloc, elf_call } from "./elf";
//
//   elf.tool("hello", (args) => elf.text("Hello, " + elf.str(args, "name") + "!"));
//
// A tool gets its arguments as JSON, valid under the input schema of elf.toml,
// and returns elf.text, elf.error or elf.json. Memory is never freed: all of it
// is taken back when the call is over. Each operation is an import of its own,
// and only what is used is linked: the imports of plugin.wasm are the most that
// it can do.

// @external names the import; what nothing calls is not imported.
@external("elf:io", "take") declare function take(dst: usize, n: i32): i32;
@external("elf:io", "error") declare function lastError(): i32;
@external("elf:log", "write") declare function logWrite(req: usize, n: i32): i32;
@external("elf:net", "http") declare function netHTTP(req: usize, n: i32): i32;
@external("elf:kv", "get") declare function kvGet(req: usize, n: i32): i32;
@external("elf:kv", "set") declare function kvSet(req: usize, n: i32): i32;
@external("elf:env", "get") declare function envGet(req: usize, n: i32): i32;
@external("elf:secret", "placeholder") declare function secretPlaceholder(req: usize, n: i32): i32;
@external("elf:model", "generate") declare function modelGenerate(req: usize, n: i32): i32;
@external("elf:tool", "call") declare function toolCall(req: usize, n: i32): i32;

@external("wasi_snapshot_preview1", "path_open")
declare function path_open(dir: i32, flags: i32, path: usize, n: usize, oflags: i32, rights: u64, inherit: u64, fdflags: i32, fd: usize): i32;
@external("wasi_snapshot_preview1", "path_create_directory") declare function path_create_directory(dir: i32, path: usize, n: usize): i32;
@external("wasi_snapshot_preview1", "fd_read") declare function fd_read(fd: i32, iovs: usize, n: usize, got: usize): i32;
@external("wasi_snapshot_preview1", "fd_write") declare function fd_write(fd: i32, iovs: usize, n: usize, put: usize): i32;
@external("wasi_snapshot_preview1", "fd_close") declare function fd_close(fd: i32): i32;
@external("wasi_snapshot_preview1", "random_get") declare function random_get(buf: usize, n: usize): i32;

// ---- Tools and answers ----

// Reply is what a tool returns: a byte of kind, then UTF-8.
export class Reply {
  constructor(public kind: u8, public bytes: ArrayBuffer) {}
}

export function text(s: string): Reply { return new Reply(0, String.UTF8.encode(s)); }

// error is an answer too. Say in whole sentences what happened, what is allowed
// and what to try: a model reads it.
export function error(s: string): Reply { return new Reply(1, String.UTF8.encode(s)); }

// json is the JSON of a result: {"content": [...], ...}.
export function json(s: string): Reply { return new Reply(2, String.UTF8.encode(s)); }

const tools = new Map<string, (args: string) => Reply>();

// tool registers a tool that elf.toml declares.
export function tool(name: string, run: (args: string) => Reply): void { tools.set(name, run); }

export function elf_alloc(size: i32): usize { return heap.alloc(<usize>max(size, 1)); }

export function elf_call(toolPtr: usize, toolLen: i32, argsPtr: usize, argsLen: i32): u64 {
  const name = String.UTF8.decodeUnsafe(toolPtr, toolLen);
  const reply = tools.has(name) ? tools.get(name)(String.UTF8.decodeUnsafe(argsPtr, argsLen)) : error("There is no such tool.");
  const n = reply.bytes.byteLength + 1;
  const at = heap.alloc(n);
  store<u8>(at, reply.kind);
  memory.copy(at + 1, changetype<usize>(reply.bytes), reply.bytes.byteLength);
  return (<u64>at << 32) | <u64>n;
}

// abort is what the compiler calls when a check of the language fails. It ends
// the call; the host's log says where.
export function abort(message: string | null, file: string | null, line: u32, column: u32): void {
  log("error", (message ? message : "abort") + " at " + (file ? file : "?") + ":" + line.toString() + ":" + column.toString());
  unreachable();
}

// seed is what the compiler calls before the first Math.random.
export function seed(): f64 {
  const at = heap.alloc(8);
  random_get(at, 8);
  return reinterpret<f64>(load<u64>(at));
}

// ---- JSON, as far as arguments and headers go ----

function space(s: string, i: i32): i32 {
  while (i < s.length && s.charCodeAt(i) <= 0x20) i++;
  return i;
}

function skipString(s: string, i: i32): i32 {
  for (i++; i < s.length && s.charCodeAt(i) != 0x22; i++) if (s.charCodeAt(i) == 0x5c) i++;
  return i + 1;
}

function skip(s: string, i: i32): i32 {
  let depth = 0;
  do {
    i = space(s, i);
    if (i >= s.length) return i;
    const c = s.charCodeAt(i);
    if (c == 0x22) { i = skipString(s, i); continue; }
    if (c == 0x7b || c == 0x5b) depth++;
    else if (c == 0x7d || c == 0x5d) depth--;
    else if (depth == 0) {
      while (i < s.length && !",}] \n\r\t".includes(s.charAt(i))) i++;
      return i;
    }
    i++;
  } while (depth > 0);
  return i;
}

// find gives the JSON of a key's value in an object, "" when it is not there.
export function find(s: string, key: string): string {
  let i = space(s, space(s, 0) + 1);
  while (i < s.length && s.charCodeAt(i) == 0x22) {
    const end = skipString(s, i);
    const name = unquote(s.substring(i, end));
    i = space(s, space(s, end) + 1);
    const from = i;
    i = skip(s, i);
    if (name == key) return s.substring(from, i);
    i = space(s, space(s, i) + 1);
  }
  return "";
}

// unquote decodes a JSON string.
export function unquote(s: string): string {
  let out = "";
  for (let i = 1; i < s.length - 1; i++) {
    let c = s.charAt(i);
    if (c == "\\") {
      c = s.charAt(++i);
      if (c == "n") c = "\n";
      else if (c == "t") c = "\t";
      else if (c == "r") c = "\r";
      else if (c == "b") c = "\b";
      else if (c == "f") c = "\f";
      else if (c == "u") {
        c = String.fromCharCode(<i32>parseInt(s.substr(i + 1, 4), 16));
        i += 4;
      }
    }
    out += c;
  }
  return out;
}

// quote encodes a JSON string, its quotes included.
export function quote(s: string): string {
  let out = '"';
  for (let i = 0; i < s.length; i++) {
    const c = s.charCodeAt(i);
    if (c == 0x22 || c == 0x5c) out += "\\" + s.charAt(i);
    else if (c < 0x20) out += "\\u" + c.toString(16).padStart(4, "0");
    else out += s.charAt(i);
  }
  return out + '"';
}

// str is a string argument, or fallback.
export function str(args: string, key: string, fallback: string = ""): string {
  const v = find(args, key);
  return v.startsWith('"') ? unquote(v) : fallback;
}

// num is a number argument, or fallback.
export function num(args: string, key: string, fallback: f64 = 0): f64 {
  const v = find(args, key);
  return v == "" || v == "null" ? fallback : parseFloat(v);
}

// flag is a boolean argument, or fallback.
export function flag(args: string, key: string, fallback: bool = false): bool {
  const v = find(args, key);
  return v == "true" ? true : v == "false" ? false : fallback;
}

// ---- Operations ----

// Answer is what an operation gave: code is 0, or one of elf/1's codes; then
// why says why.
export class Answer {
  header: string = "{}";
  body: ArrayBuffer = new ArrayBuffer(0);
  why: string = "";
  constructor(public code: i32) {}
  text(): string { return String.UTF8.decode(this.body); }
}

const nothing = new ArrayBuffer(0);

// The operation is a parameter of its own kind, so that each is linked only
// where it is used.
@inline
function ask(op: (req: usize, n: i32) => i32, header: string, body: ArrayBuffer): Answer {
  const head = String.UTF8.encode(header);
  const n = 4 + head.byteLength + body.byteLength;
  const frame = heap.alloc(n);
  store<u32>(frame, head.byteLength);
  memory.copy(frame + 4, changetype<usize>(head), head.byteLength);
  memory.copy(frame + 4 + head.byteLength, changetype<usize>(body), body.byteLength);
  return answer(op(frame, n));
}

function pending(n: i32): ArrayBuffer {
  const b = new ArrayBuffer(n);
  take(changetype<usize>(b), n);
  return b;
}

function answer(got: i32): Answer {
  const a = new Answer(got < 0 ? got : 0);
  if (got < 0) {
    a.why = String.UTF8.decode(pending(lastError()));
    return a;
  }
  if (got < 4) return a;
  const reply = pending(got);
  const n = load<u32>(changetype<usize>(reply));
  a.header = String.UTF8.decodeUnsafe(changetype<usize>(reply) + 4, n);
  a.body = reply.slice(4 + n);
  return a;
}

export function log(level: string, message: string): void {
  ask((r, n) => logWrite(r, n), '{"level":' + quote(level) + "}", String.UTF8.encode(message));
}

export class Response {
  constructor(public answer: Answer) {}
  // status is 0 when there was no response: answer.why says why.
  get status(): i32 { return <i32>num(this.answer.header, "status"); }
  get body(): ArrayBuffer { return this.answer.body; }
  text(): string { return this.answer.text(); }
}

// http makes a request. headers is a JSON object of lists.
export function http(method: string, url: string, headers: string = "{}", body: ArrayBuffer = nothing): Response {
  return new Response(ask((r, n) => netHTTP(r, n), '{"method":' + quote(method) + ',"url":' + quote(url) + ',"headers":' + headers + "}", body));
}

export function kv_get(key: string): Answer { return ask((r, n) => kvGet(r, n), '{"key":' + quote(key) + "}", nothing); }
export function kv_set(key: string, value: string): Answer {
  return ask((r, n) => kvSet(r, n), '{"key":' + quote(key) + "}", String.UTF8.encode(value));
}
export function env(name: string): Answer { return ask((r, n) => envGet(r, n), '{"name":' + quote(name) + "}", nothing); }
export function secret(name: string): Answer { return ask((r, n) => secretPlaceholder(r, n), '{"name":' + quote(name) + "}", nothing); }
export function model(prompt: string): Answer { return ask((r, n) => modelGenerate(r, n), '{"prompt":' + quote(prompt) + "}", nothing); }
export function call(name: string, args: string): Answer {
  return ask((r, n) => toolCall(r, n), '{"tool":' + quote(name) + "}", String.UTF8.encode(args));
}

// ---- Files, below /ws ----

const root = 3; // the only preopen, "/"

function relative(path: string): ArrayBuffer { return String.UTF8.encode(path.startsWith("/") ? path.substring(1) : path); }

function open(path: string, oflags: i32, rights: u64): i32 {
  const name = relative(path), at = heap.alloc(4);
  const no = path_open(root, 1, changetype<usize>(name), name.byteLength, oflags, rights, 0, 0, at);
  return no != 0 ? -no : load<i32>(at);
}

// readFile gives a file's bytes, null when it is not there or not granted.
export function readFile(path: string): ArrayBuffer | null {
  const fd = open(path, 0, 1 << 1);
  if (fd < 0) return null;
  let out = new ArrayBuffer(0);
  const size = 65536, chunk = heap.alloc(size), iov = heap.alloc(8), got = heap.alloc(4);
  for (;;) {
    store<u32>(iov, <u32>chunk);
    store<u32>(iov + 4, size);
    if (fd_read(fd, iov, 1, got) != 0) return null;
    const n = load<u32>(got);
    if (n == 0) break;
    const more = new ArrayBuffer(out.byteLength + n);
    memory.copy(changetype<usize>(more), changetype<usize>(out), out.byteLength);
    memory.copy(changetype<usize>(more) + out.byteLength, chunk, n);
    out = more;
  }
  fd_close(fd);
  return out;
}

// mkdir makes a folder; one that is there already is no matter.
export function mkdir(path: string): void {
  const name = relative(path);
  path_create_directory(root, changetype<usize>(name), name.byteLength);
}

// writeFile writes a whole file: 0, or an errno of WASI (2 is EACCES: not granted).
export function writeFile(path: string, data: ArrayBuffer): i32 {
  const fd = open(path, 1 | 8, 1 << 6);
  if (fd < 0) return -fd;
  const iov = heap.alloc(8), put = heap.alloc(4);
  let at = changetype<usize>(data), left = data.byteLength;
  while (left > 0) {
    store<u32>(iov, <u32>at);
    store<u32>(iov + 4, left);
    const no = fd_write(fd, iov, 1, put);
    if (no != 0) return no;
    at += load<u32>(put);
    left -= load<i32>(put);
  }
  return fd_close(fd);
}
