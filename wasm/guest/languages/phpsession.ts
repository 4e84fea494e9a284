/**
 * A session's cells: scripts that PHP runs one after another in one request, by the
 * functions of its own C interface for programs that embed it. What a cell defines is
 * there for the next.
 *
 * @module
 */

/** Where fields of C's structures are, in bytes: sapi_module_struct in main/SAPI.h. */
const SAPI_NAME = 0, SAPI_INI = 80;
/** More than a zend_file_handle has. */
const HANDLE = 256;
/** Where in the globals the exit status is looked for. */
const GLOBALS = 8192;
/** Exit codes that nothing else in the globals is. */
const PROBES = [0x5bd1e995, 0x1b873593];

/** What the command line program defines, and a program that embeds PHP does not. */
const PRELUDE = `<?php
define('STDIN', fopen('php://stdin', 'r'));
define('STDOUT', fopen('php://stdout', 'w'));
define('STDERR', fopen('php://stderr', 'w'));
`;

const promising = (WebAssembly as unknown as {
  promising(f: unknown): (...args: number[]) => Promise<number>;
}).promising;

const encoder = new TextEncoder();

export class Session {
  #exports: WebAssembly.Exports;
  /** Where the exit status is in the memory, if it was found. */
  #status?: number;
  /** Gives PHP a script to read at a path. */
  #offer: (path: string, code: string) => void;

  private constructor(
    exports: WebAssembly.Exports,
    offer: (path: string, code: string) => void,
  ) {
    this.#exports = exports;
    this.#offer = offer;
  }

  static async begin(
    exports: WebAssembly.Exports,
    ini: string,
    offer: (path: string, code: string) => void,
  ): Promise<Session> {
    const session = new Session(exports, offer);
    const sapi = session.#address("php_embed_module");
    // PHP writes errors to standard error only for the command line.
    session.#set(sapi + SAPI_NAME, session.#text("cli"));
    session.#set(sapi + SAPI_INI, session.#text(ini));
    if (await session.#call("php_embed_init", 0, 0) !== 0) {
      throw new Error("PHP does not begin");
    }
    await session.run("/workspace/prelude.php", PRELUDE);
    await session.#findStatus();
    return session;
  }

  /** Runs a script in the request, and gives its exit code. */
  async run(path: string, code: string): Promise<number> {
    this.#offer(path, code);
    if (this.#status !== undefined) this.#set(this.#status, 0);
    const handle = this.#malloc(HANDLE), name = this.#text(path);
    await this.#call("zend_stream_init_filename", handle, name);
    await this.#call("php_execute_script", handle);
    await this.#call("php_output_end_all");
    await this.#call("zend_destroy_file_handle", handle);
    await this.#call("free", handle);
    await this.#call("free", name);
    return this.#status === undefined ? 0 : this.#get(this.#status);
  }

  /**
   * Finds where the exit status is, which C has no function for: exits with two codes
   * are seen at one place.
   */
  async #findStatus(): Promise<void> {
    const globals = this.#address("executor_globals");
    let places: number[] | undefined;
    for (const probe of PROBES) {
      await this.run("/workspace/prelude.php", `<?php exit(${probe});`);
      const seen: number[] = [];
      for (let at = globals; at < globals + GLOBALS; at += 4) {
        if (this.#get(at) === probe) seen.push(at);
      }
      places = places?.filter((at) => seen.includes(at)) ?? seen;
    }
    this.#status = places![0];
  }

  #view(): DataView {
    return new DataView((this.#exports.memory as WebAssembly.Memory).buffer);
  }

  #get(at: number): number {
    return this.#view().getInt32(at, true);
  }

  #set(at: number, value: number): void {
    this.#view().setInt32(at, value, true);
  }

  #address(name: string): number {
    return (this.#exports[name] as WebAssembly.Global).value;
  }

  /** Calls a function of C's, which may wait. */
  #call(name: string, ...args: number[]): Promise<number> {
    return promising(this.#exports[name])(...args);
  }

  #malloc(size: number): number {
    return (this.#exports.malloc as (size: number) => number)(size);
  }

  #text(content: string): number {
    const bytes = encoder.encode(`${content}\0`);
    const at = this.#malloc(bytes.length);
    new Uint8Array((this.#exports.memory as WebAssembly.Memory).buffer).set(
      bytes,
      at,
    );
    return at;
  }
}
