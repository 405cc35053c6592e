// What scripts meet: elf, fetch, console, TextEncoder, TextDecoder, crypto.
// It evaluates to a function of the host's hook and the capabilities that the
// manifest asks for. docs/plugin-authors.md is its documentation.
(function (hook, asked) {
  "use strict";
  const { parse, stringify } = JSON;
  const isView = ArrayBuffer.isView;

  class ElfError extends Error {
    constructor(code, message) {
      super(message);
      this.name = "ElfError";
      this.code = code; // "denied", "not found", "limit", "unavailable" …
    }
  }

  // bodyOf makes a string or an ArrayBuffer of what a request may carry.
  function bodyOf(body) {
    if (body === undefined || body === null) return undefined;
    if (typeof body === "string" || body instanceof ArrayBuffer) return body;
    if (isView(body)) return body.buffer.slice(body.byteOffset, body.byteOffset + body.byteLength);
    throw new TypeError("a body is a string, an ArrayBuffer or a view of one; JSON.stringify makes a string of an object");
  }

  function ask(op, header, body) {
    const reply = hook(op, stringify(header ?? {}), bodyOf(body));
    if (reply[0] === undefined) throw new ElfError(reply[1], reply[2]);
    return { head: parse(reply[0]), body: reply[1] };
  }

  const decode = (buffer) => ask("decode", {}, buffer).body;

  // A string of the answer's bytes, or undefined where there is nothing of the name.
  function optional(op, header) {
    try {
      return decode(ask(op, header).body);
    } catch (e) {
      if (e instanceof ElfError && e.code === "not found") return undefined;
      throw e;
    }
  }

  const tools = new Map();
  const elf = {
    tool(spec, handler) {
      if (typeof spec?.name !== "string" || typeof handler !== "function")
        throw new TypeError("elf.tool takes {name, description, input} and a function");
      if (tools.has(spec.name)) throw new TypeError(`two tools have the name ${spec.name}`);
      const input = { type: "object", additionalProperties: false, ...spec.input };
      tools.set(spec.name, {
        handler,
        decl: { name: spec.name, description: spec.description ?? "", inputSchema: input, outputSchema: spec.output, readOnly: spec.readOnly },
      });
    },
    read: (path) => decode(ask("files.read", { path: `${path}` }).body),
    readBytes: (path) => new Uint8Array(ask("files.read", { path: `${path}` }).body),
    write: (path, data) => void ask("files.write", { path: `${path}` }, data),
    list: (path) => ask("files.list", { path: `${path}` }).head.entries,
    env: (name) => optional("env.get", { name: `${name}` }),
    secret: (name) => optional("secret.placeholder", { name: `${name}` }),
    kv: {
      get: (key) => optional("kv.get", { key: `${key}` }),
      set: (key, value) => void ask("kv.set", { key: `${key}` }, value),
      delete: (key) => void ask("kv.delete", { key: `${key}` }),
      keys: (options) => ask("kv.list", options).head.keys ?? [],
    },
    model(prompt, material) {
      const header = typeof prompt === "string" ? { prompt } : prompt;
      return decode(ask("model.generate", header, material).body);
    },
    call: (tool, args) => parse(decode(ask("tool.call", { tool: `${tool}` }, stringify(args ?? {})).body)),
    exec(argv, options = {}) {
      const { stdin, ...header } = options;
      const r = ask("exec.run", { argv, ...header }, stdin);
      const at = r.head.stdout;
      return { ...r.head, stdout: decode(r.body.slice(0, at)), stderr: decode(r.body.slice(at)) };
    },
    log: (text, level = "info") => void ask("log.write", { level }, `${text}`),
    progress: (message, done = 0, total) => void ask("progress.report", { message: `${message}`, done, total }),
    Error: ElfError,
  };

  class Headers {
    #values = {};
    constructor(values) {
      for (const [name, list] of Object.entries(values)) this.#values[name.toLowerCase()] = [].concat(list);
    }
    get(name) {
      return this.#values[`${name}`.toLowerCase()]?.join(", ") ?? null;
    }
    has(name) {
      return `${name}`.toLowerCase() in this.#values;
    }
    *[Symbol.iterator]() {
      for (const name of Object.keys(this.#values)) yield [name, this.get(name)];
    }
  }

  class Response {
    #body;
    constructor(head, body) {
      this.status = head.status;
      this.ok = head.status >= 200 && head.status < 300;
      this.url = head.url;
      this.headers = new Headers(head.headers ?? {});
      this.truncated = head.truncated === true;
      this.#body = body;
    }
    async arrayBuffer() { return this.#body; }
    async bytes() { return new Uint8Array(this.#body); }
    async text() { return decode(this.#body); }
    async json() { return parse(decode(this.#body)); }
  }

  async function fetch(url, { method = "GET", headers = {}, body, timeout, maxBytes, redirect } = {}) {
    const lists = {};
    for (const [name, value] of Symbol.iterator in headers ? headers : Object.entries(headers)) lists[name] = [].concat(value).map(String);
    const r = ask("net.http", { method, url: `${url}`, headers: lists, timeout_ms: timeout, max_bytes: maxBytes, redirect }, body);
    return new Response(r.head, r.body);
  }

  const show = (v) => {
    if (typeof v === "string") return v;
    if (v instanceof Error) return v.stack ? `${v}\n${v.stack}` : `${v}`;
    try {
      return stringify(v) ?? String(v);
    } catch {
      return String(v);
    }
  };
  const say = (level) => (...values) => elf.log(values.map(show).join(" "), level);
  const console = { log: say("info"), info: say("info"), debug: say("debug"), warn: say("warn"), error: say("error") };

  class TextEncoder {
    encoding = "utf-8";
    encode(text = "") { return new Uint8Array(ask("encode", {}, `${text}`).body); }
  }
  class TextDecoder {
    encoding = "utf-8";
    decode(bytes) { return bytes === undefined ? "" : decode(bodyOf(bytes)); }
  }

  const random = (n) => ask("random", { n }).body;
  const crypto = {
    getRandomValues(view) {
      new Uint8Array(view.buffer, view.byteOffset, view.byteLength).set(new Uint8Array(random(view.byteLength)));
      return view;
    },
    randomUUID() {
      const b = new Uint8Array(random(16));
      b[6] = (b[6] & 15) | 64;
      b[8] = (b[8] & 63) | 128;
      const hex = [...b].map((x) => x.toString(16).padStart(2, "0")).join("");
      return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
    },
  };
  // The engine's own generator was seeded before the snapshot: every call
  // would draw the same numbers.
  Math.random = () => {
    const [low, high] = new Uint32Array(random(8));
    return ((low >>> 5) * 0x4000000 + (high >>> 6)) / 0x20000000000000;
  };

  // What a handler returns becomes a reply: one character of kind, then text.
  function reply(value) {
    if (value === undefined) return "0";
    if (typeof value === "string") return "0" + value;
    if (Array.isArray(value?.content)) return "2" + stringify(value);
    const text = stringify(value);
    if (text === undefined) throw new TypeError(`a tool returned a ${typeof value}`);
    if (value === null || typeof value !== "object" || Array.isArray(value)) return "0" + text;
    return "2" + stringify({ content: [{ type: "text", text }], structuredContent: value });
  }
  function failure(e) {
    if (e instanceof Error && e.stack) elf.log(show(e), "debug");
    return "1" + (e instanceof Error ? e.message || e.name : show(e));
  }

  let settled;
  const dispatch = {
    describe: () => stringify([...tools.values()].map((t) => t.decl)),
    call(name, args) {
      const tool = tools.get(name);
      if (!tool) return `1There is no tool ${name}.`;
      try {
        const value = tool.handler(parse(args));
        if (typeof value?.then !== "function") return reply(value);
        value.then(reply).then((r) => { settled = r; }, (e) => { settled = failure(e); });
      } catch (e) {
        return failure(e);
      }
    },
    settled: () => settled,
  };

  const define = (name, value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  Object.freeze(elf.kv);
  define("elf", Object.freeze(elf));
  for (const [name, value] of Object.entries({ fetch, console, TextEncoder, TextDecoder, crypto, Headers, Response })) define(name, value);
  Object.defineProperty(globalThis, "__elf", { value: (what, ...rest) => dispatch[what](...rest) });

  // What was done once need not be done in each call: shapes, atoms, methods.
  reply({ warm: true });
  parse(stringify({ warm: [1, "a", null] }));
  decode(new TextEncoder().encode("warm").buffer);
})
