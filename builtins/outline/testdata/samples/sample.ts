#!/usr/bin/env node
import fs, { type Stats } from "node:fs";
import type { Config } from './config';
import legacy = require("legacy");
export * from "./all";

/**
 * Extends a session.
 * @since 2
 */
export interface Session<T extends object = {}> extends Base {
  /** the identifier */
  readonly id: string;
  // whether it is off
  disabled?: boolean; // trailing
  nested: { inner: number };
  start(at: Date): Promise<void>;
}

/** What it may be. */
export type Kind = "a" | "b" | { deep: string };
export const enum Level { Low, High }

// The default level.
const level = Level.Low, other = 2;
export let counter = 0;
const { a, b: [c] } = destructure();
var old = 1;

@sealed
export abstract class Store<T> extends Map<string, T> implements Disposable {
  static #count = 0;
  accessor name = "x";
  declare readonly kind: Kind;

  constructor(private readonly path: string) { super(); }

  /** Reads it. */
  async *read<const K>(key: K): AsyncGenerator<T> { function hidden() {} }
  get size2() { return 0; }
  abstract flush(): void;
  static { this.#count = 1; }
  [Symbol.dispose]() {}
}

namespace Outer.Inner {
  export function helper(): asserts x is string {}
  export namespace Deep { const secret = 1; }
}

declare module "plugin" {
  function load(name: string): void;
}
declare global { interface Window { elf: number } }

function over(x: string): string;
function over(x: number): number;
function over(x: any) { return x satisfies unknown; }

export default function () {}

