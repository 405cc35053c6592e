// What a plugin in JavaScript finds, beside the language itself. It runs on
// QuickJS: no DOM, no timers, no modules but this one file. The top level runs
// once, when the plugin is installed, without any rights; each call starts from
// what it left. Everything here but fetch answers at once.

declare const elf: {
  /** Declares a tool. input is a JSON Schema; type "object" is understood. */
  tool<Args>(
    spec: { name: string; description: string; input?: object; output?: object; readOnly?: boolean },
    /** Returns text, an object, or {content: [...]}. What it throws is an answer, too: the model reads the message. */
    handler: (args: Args) => unknown,
  ): void;

  /** Files below /ws. They need fs.read and fs.write in elf.toml. */
  read(path: string): string;
  readBytes(path: string): Uint8Array;
  write(path: string, data: string | ArrayBuffer | ArrayBufferView): void;
  list(path: string): { name: string; dir?: true }[];

  /** A granted setting; undefined when it is not set. Needs env. */
  env(name: string): string | undefined;
  /** A placeholder for headers, queries and paths of fetch. Needs secret. */
  secret(name: string): string | undefined;
  /** A store that outlives the call. Needs kv. */
  kv: {
    get(key: string): string | undefined;
    set(key: string, value: string | ArrayBuffer | ArrayBufferView): void;
    delete(key: string): void;
    keys(options?: { prefix?: string; after?: string; limit?: number }): string[];
  };
  /** Asks the host's background model. Needs model. */
  model(prompt: string | { prompt?: string; messages?: { role: "user" | "assistant"; content: string }[]; system?: string; max_tokens?: number }, material?: string): string;
  /** Calls another tool and gives its result. Needs tool.call. */
  call(tool: string, args?: object): { content: { type: string; text?: string }[]; structuredContent?: unknown; isError?: boolean };
  /** Runs a granted program. Needs exec. */
  exec(argv: string[], options?: { stdin?: string; dir?: string; timeout_ms?: number }): { exit_code: number; stdout: string; stderr: string };

  log(text: string, level?: "debug" | "info" | "warn" | "error"): void;
  progress(message: string, done?: number, total?: number): void;

  /** What operations throw. code: "denied", "not found", "limit", "unavailable"… */
  Error: { new (code: string, message: string): Error & { code: string } };
};

/** HTTP through the host. Needs net.http. timeout is in milliseconds. */
declare function fetch(
  url: string,
  init?: {
    method?: string; headers?: Record<string, string | string[]>; body?: string | ArrayBuffer | ArrayBufferView;
    timeout?: number; maxBytes?: number; redirect?: "follow" | "manual";
  },
): Promise<{
  status: number; ok: boolean; url: string; truncated: boolean;
  headers: { get(name: string): string | null; has(name: string): boolean };
  text(): Promise<string>; json(): Promise<any>; bytes(): Promise<Uint8Array>; arrayBuffer(): Promise<ArrayBuffer>;
}>;
