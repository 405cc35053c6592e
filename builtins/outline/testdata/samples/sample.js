'use strict';
import thing, { x as y } from "thing" with { type: "json" };
const fs = require('fs');

// Adds.
function add(a, b) { return a ?? b?.c; }

export async function* stream() {}

/* A queue. */
class Queue {
  #items = [];
  static limit = 10n;
  push(item) { this.#items.push(item); }
  static async from(list) {}
  get length() { return this.#items.length; }
}

export default class {}
export const arrow = async () => { await import('x'); };
var a1, b1 = 2;
module.exports = { add };
