/**
 * Standard input or a file, read by lines, characters or bytes.
 *
 * @module
 */

/** How many bytes are asked for at a time. */
const PIECE = 65536;
const NEWLINE = 10;

// Taken before the guest's code runs, which may replace them.
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const decode = decoder.decode.bind(decoder);

export class Reader {
  #read: (buffer: Uint8Array) => number;
  #held = new Uint8Array(PIECE);
  #at = 0;
  #end = 0;
  #ended = false;

  /** `read` fills a buffer, and gives 0 at the end. */
  constructor(read: (buffer: Uint8Array) => number) {
    this.#read = read;
  }

  /** How many bytes were read and not yet taken. */
  get buffered(): number {
    return this.#end - this.#at;
  }

  /** The next byte, which stays there; -1 at the end. */
  peek(): number {
    if (this.#at === this.#end && !this.#more()) return -1;
    return this.#held[this.#at]!;
  }

  /** The next byte; -1 at the end. */
  byte(): number {
    const byte = this.peek();
    if (byte >= 0) this.#at++;
    return byte;
  }

  /** The next character; undefined at the end. */
  char(): string | undefined {
    const first = this.peek();
    if (first < 0) return undefined;
    const size = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    while (this.buffered < size && this.#more());
    return decode(this.#take(Math.min(size, this.buffered)));
  }

  /** The next line without its newline; undefined at the end. */
  line(): string | undefined {
    for (let from = 0;;) {
      const i = this.#held.subarray(this.#at + from, this.#end).indexOf(
        NEWLINE,
      );
      if (i >= 0) {
        const line = decode(this.#take(from + i));
        this.#at++;
        return line;
      }
      from = this.buffered;
      if (!this.#more()) {
        return from === 0 ? undefined : decode(this.#take(from));
      }
    }
  }

  /** At most so many bytes; fewer at the end. */
  bytes(most: number): Uint8Array {
    while (this.buffered < most && this.#more());
    return this.#take(Math.min(most, this.buffered)).slice();
  }

  /** What is left, as text. */
  text(): string {
    while (this.#more());
    return decode(this.#take(this.buffered));
  }

  /** Forgets what was read: the place in the file is another now. */
  reset(): void {
    this.#at = this.#end = 0;
    this.#ended = false;
  }

  #take(size: number): Uint8Array {
    this.#at += size;
    return this.#held.subarray(this.#at - size, this.#at);
  }

  /** Reads another piece; false at the end. */
  #more(): boolean {
    if (this.#ended) return false;
    if (this.#at > 0) { // room
      this.#held.copyWithin(0, this.#at, this.#end);
      this.#end -= this.#at;
      this.#at = 0;
    }
    if (this.#held.length - this.#end < PIECE / 2) {
      const larger = new Uint8Array(this.#held.length * 2);
      larger.set(this.#held);
      this.#held = larger;
    }
    const n = this.#read(this.#held.subarray(this.#end));
    this.#end += n;
    this.#ended = n === 0;
    return n > 0;
  }
}
