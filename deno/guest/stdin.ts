/**
 * Standard input that ends with each cell and goes on with the next.
 *
 * @module
 */

import Module from "node:module";
import type { NodeProcess } from "./process.ts";

const { defineProperty } = Object;
const read = Deno.stdin.read.bind(Deno.stdin);
const CHUNK = 16 << 10;

/** Gives each cell that reads the input as a stream one of its own. */
export function reopenable(stdin: typeof Deno.stdin): void {
  let stream: ReadableStream<Uint8Array<ArrayBuffer>> | undefined;
  defineProperty(stdin, "readable", {
    configurable: true,
    enumerable: true,
    get() {
      return stream ??= new ReadableStream({
        type: "bytes",
        async pull(controller) {
          const chunk = new Uint8Array(CHUNK);
          const n = await read(chunk);
          if (n !== null) return controller.enqueue(chunk.subarray(0, n));
          stream = undefined;
          controller.close();
          controller.byobRequest?.respond(0);
        },
      });
    },
  });
}

/** The same for `process.stdin`. */
export function nodeStdin(process: NodeProcess): void {
  const require = Module.createRequire(import.meta.url);
  let stream: object | undefined;
  defineProperty(process, "stdin", {
    configurable: true,
    enumerable: true,
    get() {
      if (stream !== undefined) return stream;
      const { Readable } = require("node:stream");
      const made = new Readable({
        read(): void {
          const chunk = new Uint8Array(CHUNK);
          read(chunk).then((n) => {
            if (n === null && stream === made) stream = undefined;
            made.push(n === null ? null : chunk.subarray(0, n));
          }, (error) => made.destroy(error));
        },
        destroy(error: Error | null, done: (error: Error | null) => void) {
          if (stream === made) stream = undefined;
          done(error);
        },
      });
      made.fd = 0;
      return stream = made;
    },
  });
}
