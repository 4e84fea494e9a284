/**
 * Output on its way out: what a program writes now and then goes out at once; of what
 * it writes without pause many pieces become one.
 *
 * @module
 */

import type { Host } from "../language.ts";

/** Milliseconds in which only so many pieces go out one by one. */
const WINDOW = 10, PIECES = 100;
const SIZE = 64 << 10;

export class Pace {
  #out: (bytes: Uint8Array) => void;
  #now: () => number;
  #buffer = new Uint8Array(SIZE);
  #used = 0;
  #windowEnds = 0;
  #left = PIECES;

  constructor(
    out: (bytes: Uint8Array) => void,
    now = performance.now.bind(performance),
  ) {
    this.#out = out;
    this.#now = now;
  }

  write(bytes: Uint8Array): void {
    const now = this.#now();
    if (now >= this.#windowEnds) {
      this.#windowEnds = now + WINDOW;
      this.#left = PIECES;
      this.flush();
    }
    if (this.#left > 0 || bytes.length > SIZE) {
      this.#left--;
      this.flush();
      this.#out(bytes);
      return;
    }
    if (this.#used + bytes.length > SIZE) this.flush();
    this.#buffer.set(bytes, this.#used);
    this.#used += bytes.length;
  }

  /** Sends what waits. */
  flush(): void {
    if (this.#used === 0) return;
    const waiting = this.#buffer.subarray(0, this.#used);
    this.#used = 0;
    this.#out(waiting);
  }
}

/**
 * A program's host whose output is paced: all of it goes out before the program reads,
 * and before what it writes to standard error, which `hear` hears of.
 */
export function paced(
  host: Host,
  hear: (bytes: Uint8Array) => void,
): { out: Pace; host: Pick<Host, "files" | "read" | "stdout" | "stderr"> } {
  const out = new Pace(host.stdout);
  return {
    out,
    host: {
      files: host.files,
      read(buffer) {
        out.flush();
        return host.read(buffer);
      },
      stdout: (bytes) => out.write(bytes),
      stderr(bytes) {
        out.flush();
        hear(bytes);
        host.stderr(bytes);
      },
    },
  };
}
