/**
 * QuickJS: JavaScript in an engine that is WebAssembly, of which no function leads to
 * Deno's. A program is a script, or a module if it imports or exports; both may await.
 *
 * @module
 */

import type { Files, OpenFile, OpenOptions } from "../files.ts";
import {
  Exit,
  type Host,
  type Language,
  type Program,
  WORKSPACE,
} from "../language.ts";
import { Reader } from "../reader.ts";
import { serve } from "../serve.ts";
import { prelude } from "./quickjs/prelude.ts";
import {
  ASYNC,
  COMPILE_ONLY,
  type Handle,
  MODULE,
  type Plain,
  Thrown,
  VM,
} from "./quickjs/vm.ts";

const PACKAGE = "@jitl/quickjs-wasmfile-release-sync";

/** Where the prelude's own frames are. */
const OURS = "rillbox:std";

/** Before the names of modules that are no files. */
const PACKAGES = "package:";

// deno-lint-ignore no-explicit-any
let make: any;
let wasm: WebAssembly.Module;
let machine: Machine | undefined;
let session = false;

const { parse, stringify } = JSON;
const encoder = new TextEncoder(), decoder = new TextDecoder();
const { wait } = Atomics;
const now = performance.now.bind(performance);

/** An open file; standard streams have the first three numbers. */
interface Open {
  file?: OpenFile;
  /** Bytes. */
  at: number;
  reader: Reader;
}

/** One QuickJS, with the guest's open files. */
class Machine {
  readonly vm: VM;
  #host!: Host;
  #files!: Files;
  #directory = WORKSPACE;
  #open = new Map<number, Open>();
  #ask!: Handle;
  #names: Record<string, string> = {};

  constructor(module: unknown, program: Program) {
    this.vm = new VM(
      module,
      {
        native: (what, ...args) => this.#native(String(what), args),
        resolve: (from, name) => this.#resolve(from, name),
        load: (name) => this.#load(name),
      },
      (thrown) =>
        thrown instanceof Exit || thrown instanceof WebAssembly.RuntimeError,
    );
    const { vm } = this;
    const made = vm.eval(`(${prelude})`, OURS, 0);
    const args = vm.eval(stringify([program.file, ...program.args]), OURS, 0);
    const env = vm.eval(`(${stringify(program.env)})`, OURS, 0);
    this.#ask = vm.call(made, vm.native(), args, env);
    for (const name of ["std", "os"]) {
      this.#names[name] = String(this.#answer("names", vm.handle(name)));
    }
  }

  run(program: Program, host: Host): number {
    this.#host = host;
    this.#files = host.files;
    this.#open.set(0, {
      at: 0,
      reader: new Reader((buffer) => host.read(buffer)),
    });
    const { vm } = this;
    const isModule = !this.#compiles(program, 0) ||
      program.file.endsWith(".mjs");
    try {
      const result = vm.eval(
        program.code,
        program.file,
        isModule ? MODULE : ASYNC,
      );
      this.#settle();
      let value: Handle | undefined = this.#settled(result);
      if (value !== undefined) {
        value = isModule ? this.#exported(value) : vm.property(value, "value");
        const state = vm.promise(value);
        if (state === "rejected") throw new Thrown(vm.settled(value));
        if (isModule || session) this.#report(value, program.echo);
      }
      return 0;
    } catch (thrown) {
      if (!(thrown instanceof Thrown)) throw thrown;
      const { handle } = thrown;
      host.fail(parse(String(this.#answer("error", handle))));
      return 1;
    }
  }

  complete(text: string): string[] {
    const word = /[\w$.]*$/.exec(text)![0];
    try {
      return parse(String(this.#answer("complete", this.vm.handle(word))));
    } catch {
      return [];
    }
  }

  /** Whether what QuickJS says of a text is that it ends too early. */
  unfinished(text: string): boolean {
    try {
      this.vm.free(this.vm.eval(text, "cell", ASYNC | COMPILE_ONLY));
      return false;
    } catch (thrown) {
      if (!(thrown instanceof Thrown)) throw thrown;
      const { message } = parse(String(this.#answer("error", thrown.handle)));
      return /''|unexpected end/.test(message);
    }
  }

  /** Whether a program is a script, by its syntax. */
  #compiles(program: Program, flags: number): boolean {
    try {
      this.vm.free(
        this.vm.eval(program.code, program.file, flags | ASYNC | COMPILE_ONLY),
      );
      return true;
    } catch (thrown) {
      if (!(thrown instanceof Thrown)) throw thrown;
      return !/^\s*(import|export)\b/m.test(program.code);
    }
  }

  /** Runs what is queued and the timers, until nothing is left. */
  #settle(): void {
    const { vm } = this;
    for (;;) {
      vm.runJobs();
      const left = Number(this.#answer("wait"));
      if (left < 0) return;
      sleep(left);
      this.#answer("fire");
    }
  }

  /** What a program's promise gave. */
  #settled(result: Handle): Handle | undefined {
    switch (this.vm.promise(result)) {
      case "rejected":
        throw new Thrown(this.vm.settled(result));
      case "fulfilled":
        return this.vm.settled(result);
      case "pending":
        this.#host.fail({
          name: "Error",
          message: "The program awaits a promise that never settles",
          traceback: "",
        });
        throw new Exit(13);
    }
    return result;
  }

  /** What a module exports by default. */
  #exported(namespace: Handle): Handle {
    return this.vm.property(namespace, "default");
  }

  #report(value: Handle, echo: boolean): void {
    if (echo) {
      const shown = String(this.#answer("show", value));
      if (shown !== "") this.#host.stdout(encoder.encode(shown + "\n"));
    }
    try {
      const json = String(this.#answer("json", value));
      if (json !== "") this.#host.value(parse(json));
    } catch (thrown) { // a cycle, or a getter of the guest's
      if (!(thrown instanceof Thrown)) throw thrown;
    }
  }

  #answer(question: string, argument?: Handle): Plain {
    const { vm } = this;
    const asked = vm.handle(question);
    const answer = argument === undefined
      ? vm.call(this.#ask, asked)
      : vm.call(this.#ask, asked, argument);
    vm.free(asked);
    const plain = vm.plain(answer);
    vm.free(answer);
    return plain;
  }

  #path(given: Plain): string {
    return absolute(this.#directory, String(given));
  }

  #resolve(from: string, name: string): string {
    if (name in this.#names) return name;
    if (/^\.{0,2}\//.test(name)) {
      return absolute(from.slice(0, from.lastIndexOf("/")), name);
    }
    return PACKAGES + name; // an error is to be thrown at loading
  }

  #load(name: string): string {
    if (name in this.#names) {
      const names = this.#names[name]!.split(",").filter((key) => key !== "in");
      const consts = names.map((key) => `export const ${key} = m.${key};`).join(
        "",
      );
      return `const m = globalThis.${name};${consts}export default m;${
        name === "std" ? "const i = m.in; export { i as in };" : ""
      }`;
    }
    if (name.startsWith(PACKAGES)) {
      name = name.slice(PACKAGES.length);
      throw new Error(
        `Cannot find module "${name}": QuickJS has no packages, the language "javascript" has; files are imported as "./${name}"`,
      );
    }
    let text: string;
    try {
      text = decoder.decode(this.#files.readFile(name));
    } catch {
      throw new Error(
        `Cannot find module "${name.replace(WORKSPACE + "/", "./")}"`,
      );
    }
    return name.endsWith(".json") ? `export default ${text}` : text;
  }

  #native(what: string, [a, b, c]: Plain[]): Plain {
    const host = this.#host;
    switch (what) {
      case "write":
        return this.#write(
          Number(a),
          typeof b === "string" ? encoder.encode(b) : b as Uint8Array,
        );
      case "writeJSON":
        return this.#write(Number(a), encoder.encode(parse(String(b))));
      case "now":
        return now();
      case "sleep":
        return sleep(Number(a));
      case "exit":
        throw new Exit(Number(a));
      case "path":
        return this.#path(a);
      case "chdir": {
        const path = this.#path(a);
        if (host.files.stat(path).kind !== "directory") throw coded("ENOTDIR");
        this.#directory = path;
        return;
      }
      case "readFile": {
        const bytes = host.files.readFile(this.#path(a));
        return b ? bytes : stringify(decoder.decode(bytes));
      }
      case "readdir":
        return stringify([
          ".",
          "..",
          ...host.files.readDir(this.#path(a)).map(({ name }) => name),
        ]);
      case "stat": {
        const { kind, size, mtime, atime, mode, ino, nlink } = host.files.stat(
          this.#path(a),
          Boolean(b),
        );
        const type = kind === "directory"
          ? 0o040000
          : kind === "symlink"
          ? 0o120000
          : 0o100000;
        return stringify({
          dev: 0,
          ino,
          mode: type | mode & 0o7777,
          nlink,
          size,
          mtime,
          atime,
          ctime: mtime,
        });
      }
      case "mkdir":
        host.files.mkdir(this.#path(a));
        return;
      case "remove": {
        const path = this.#path(a);
        const isDirectory = host.files.stat(path, false).kind === "directory";
        if (isDirectory) host.files.rmdir(path);
        else host.files.unlink(path);
        return;
      }
      case "rename":
        host.files.rename(this.#path(a), this.#path(b));
        return;
      case "open":
        return this.#openFile(this.#path(a), String(b));
    }
    const open = this.#open.get(Number(a));
    if (open === undefined) throw coded("EBADF");
    const { reader } = open;
    switch (what) {
      case "close":
        open.file?.close();
        this.#open.delete(Number(a));
        return;
      case "seek": {
        if (open.file === undefined) throw coded("ESPIPE");
        const from = c === 0
          ? 0
          : c === 1
          ? open.at - reader.buffered
          : open.file.stat().size;
        reader.reset();
        open.at = from + Number(b);
        return;
      }
      case "tell":
        return open.at - reader.buffered;
      case "line": {
        const line = reader.line();
        return line === undefined ? undefined : stringify(line);
      }
      case "text":
        return stringify(
          Number(b) < 0
            ? reader.text()
            : decoder.decode(reader.bytes(Number(b))),
        );
      case "read":
        return reader.bytes(Number(b));
      case "byte":
        return reader.byte();
    }
    throw coded("ENOSYS");
  }

  #write(fd: number, bytes: Uint8Array): undefined {
    if (fd === 1) return void this.#host.stdout(bytes);
    if (fd === 2) return void this.#host.stderr(bytes);
    const open = this.#open.get(fd);
    if (open?.file === undefined) throw coded("EBADF");
    open.at -= open.reader.buffered;
    open.reader.reset();
    while (bytes.length > 0) {
      const n = open.file.write(bytes, open.at);
      open.at += n;
      bytes = bytes.subarray(n);
    }
  }

  #openFile(path: string, mode: string): number {
    const plus = mode.includes("+");
    const options: OpenOptions = {
      read: mode.startsWith("r") || plus,
      write: !mode.startsWith("r") || plus,
      append: mode.startsWith("a"),
      create: !mode.startsWith("r"),
      truncate: mode.startsWith("w"),
      exclusive: mode.includes("x"),
    };
    if (!/^[rwa][b+x]*$/.test(mode)) throw coded("EINVAL");
    const file = this.#files.open(path, options);
    const open: Open = {
      file,
      at: options.append ? file.stat().size : 0,
      reader: new Reader((buffer) => {
        const n = file.read(buffer, open.at);
        open.at += n;
        return n;
      }),
    };
    let fd = 3;
    while (this.#open.has(fd)) fd++;
    this.#open.set(fd, open);
    return fd;
  }
}

function coded(code: string): Error {
  return Object.assign(new Error(code), { code });
}

function absolute(directory: string, path: string): string {
  const parts: string[] = [];
  for (
    const part of (path.startsWith("/") ? path : `${directory}/${path}`).split(
      "/",
    )
  ) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return "/" + parts.join("/");
}

function sleep(milliseconds: number): undefined {
  if (milliseconds > 0) {
    wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
  }
}

async function machineFor(program: Program): Promise<Machine> {
  const module = await make({
    instantiateWasm(
      imports: WebAssembly.Imports,
      done: (i: WebAssembly.Instance) => void,
    ) {
      done(new WebAssembly.Instance(wasm, imports));
    },
  });
  return new Machine(module, program);
}

const language: Language = {
  async prepare(start) {
    session = start.session;
    const directory = `${start.parts[PACKAGE]}/dist`;
    make = (await import(`file://${directory}/emscripten-module.browser.mjs`))
      .default;
    wasm = new WebAssembly.Module(
      Deno.readFileSync(`${directory}/emscripten-module.wasm`),
    );
  },
  async run(program, host) {
    machine ??= await machineFor(program);
    try {
      return machine.run(program, host);
    } catch (thrown) {
      machine = undefined; // its stack is not what it was
      throw thrown;
    }
  },
  complete: (text) => machine?.complete(text) ?? [],
  unfinished: async (text) =>
    (machine ??= await machineFor({
      code: "",
      file: `${WORKSPACE}/cell.js`,
      args: [],
      env: {},
      echo: false,
      last: false,
    }))
      .unfinished(text),
};

await serve(language);
