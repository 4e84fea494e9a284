/**
 * Ruby 3.4 from ruby.wasm: the interpreter with its standard library in one module. A
 * program is given to the part of the process that is written in Ruby (ruby_prelude.ts),
 * which answers with JSON.
 *
 * The module imports a bridge to JavaScript. No host object goes through it: its imports
 * throw.
 *
 * @module
 */

import { FileError, type Files } from "../files.ts";
import { type Host, type Language, type Program } from "../language.ts";
import { serve } from "../serve.ts";
import { makeWasi } from "../wasi.ts";
import { makeRoom, patch } from "./ruby_stack.ts";
import { PRELUDE, PRELUDE_FILE } from "./ruby_prelude.ts";

const PACKAGE = "@ruby/3.4-wasm-wasi";
const WASM = "dist/ruby+stdlib.wasm";

/** The interpreter's arguments. It runs no program: `-e` keeps it from reading one. */
const ARGUMENTS = ["ruby", "--disable-gems", "-EUTF-8", "-e_=0"];

/** What the module exports. Names of the form "name: type" are cut at the colon. */
interface Exports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  cabi_realloc(
    old: number,
    oldSize: number,
    align: number,
    size: number,
  ): number;
  "ruby-init"(list: number, length: number): void;
  "rb-eval-string-protect"(text: number, length: number): number;
  "rb-clear-errinfo"(): void;
  "rstring-ptr"(handle: number): number;
  "cabi_post_rstring-ptr"(result: number): void;
  asyncify_get_state(): number;
  "canonical_abi_drop_rb-abi-value"(value: number): void;
}

/** How a program ended. */
interface Told {
  code: number;
  value?: unknown;
  error?: { name: string; message: string; traceback: string };
}

// Taken before the guest's code runs, which may replace them.
const { parse } = JSON;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** An interpreter. */
class Ruby {
  /** The host of the program that runs. */
  host?: Host;
  #exports!: Exports;
  /** The values that Ruby handed out, by their handles. */
  #values = new Map<number, number>();
  #next = 1;

  static async start(module: WebAssembly.Module): Promise<Ruby> {
    const ruby = new Ruby();
    const instance = await WebAssembly.instantiate(
      module,
      ruby.#imports(module),
    );
    ruby.#begin(instance);
    return ruby;
  }

  #imports(module: WebAssembly.Module): WebAssembly.Imports {
    // deno-lint-ignore no-this-alias
    const ruby = this;
    const wasi = makeWasi({
      argv: ["ruby"],
      host: {
        get files(): Files {
          if (!ruby.host) throw new FileError("ENOENT");
          return ruby.host.files;
        },
        read: (buffer) => ruby.host?.read(buffer) ?? 0,
        stdout: (bytes) => ruby.host?.stdout(bytes),
        stderr: (bytes) => ruby.host?.stderr(bytes),
      },
    });
    this.#use = wasi.use;
    const bridge: Record<string, WebAssembly.ModuleImports> = {};
    for (const { module: from, name } of WebAssembly.Module.imports(module)) {
      bridge[from] ??= {};
      bridge[from][name] = () => {
        throw new WebAssembly.RuntimeError("there is no JavaScript here");
      };
    }
    const room = makeRoom();
    this.#makeRoom = room.use;
    for (const [from, functions] of Object.entries(room.imports)) {
      Object.assign(bridge[from]!, functions);
    }
    return {
      ...bridge,
      canonical_abi: {
        ...bridge.canonical_abi,
        "resource_new_rb-abi-value": (value: number) => {
          this.#values.set(this.#next, value);
          return this.#next++;
        },
        "resource_get_rb-abi-value": (handle: number) =>
          this.#values.get(handle) ?? 0,
      },
      wasi_snapshot_preview1: wasi.imports,
    };
  }

  #makeRoom!: (exports: WebAssembly.Exports) => void;
  #use!: (memory: WebAssembly.Memory) => void;

  #begin(instance: WebAssembly.Instance): void {
    this.#exports = Object.fromEntries(
      Object.entries(instance.exports).map((
        [name, it],
      ) => [name.split(":")[0], it]),
    ) as unknown as Exports;
    this.#use(this.#exports.memory);
    this.#makeRoom(instance.exports);
    this.#exports._initialize();
    const texts = ARGUMENTS.map((text) => this.#put(`${text}\0`));
    const list = this.#exports.cabi_realloc(0, 0, 4, 8 * texts.length);
    new Uint32Array(this.#exports.memory.buffer, list, 2 * texts.length)
      .set(texts.flat());
    this.#exports["ruby-init"](list, texts.length);
    this.evaluate(
      `eval(${literal(PRELUDE)}, TOPLEVEL_BINDING.dup, ${
        literal(PRELUDE_FILE)
      }, 1); ""`,
    );
  }

  /** Puts a text into Ruby's memory, which Ruby frees. */
  #put(text: string): [address: number, length: number] {
    const bytes = encoder.encode(text);
    const address = this.#exports.cabi_realloc(0, 0, 1, bytes.length || 1) >>>
      0;
    new Uint8Array(this.#exports.memory.buffer, address, bytes.length).set(
      bytes,
    );
    return [address, bytes.length];
  }

  /** Evaluates Ruby of our own, whose value is a string. */
  evaluate(code: string): string {
    const exports = this.#exports;
    const result = exports["rb-eval-string-protect"](...this.#put(code));
    const [handle, failed] = this.#pair(result);
    try {
      if (failed !== 0) {
        exports["rb-clear-errinfo"]();
        throw new Error("Ruby can't go on: its own classes were changed");
      }
      const text = exports["rstring-ptr"](handle);
      const [address, length] = this.#pair(text);
      const bytes = new Uint8Array(exports.memory.buffer, address, length)
        .slice();
      exports["cabi_post_rstring-ptr"](text);
      return decoder.decode(bytes);
    } finally {
      const value = this.#values.get(handle);
      this.#values.delete(handle);
      if (value !== undefined) {
        exports["canonical_abi_drop_rb-abi-value"](value);
      }
    }
  }

  /**
   * Whether an error is of a stack that is full: V8's, or the one to which Ruby writes
   * its calls when it leaves them.
   */
  overflowed(error: unknown): boolean {
    return error instanceof RangeError ||
      error instanceof WebAssembly.RuntimeError &&
        this.#exports.asyncify_get_state() !== 0;
  }

  #pair(address: number): [number, number] {
    const view = new DataView(this.#exports.memory.buffer, address >>> 0, 8);
    return [view.getUint32(0, true), view.getUint32(4, true)];
  }
}

/** A text as Ruby's source code has it, whatever is in it. */
function literal(text: string): string {
  const base64 = (encoder.encode(text) as Uint8Array & { toBase64(): string })
    .toBase64();
  return `"${base64}".unpack1("m").force_encoding("UTF-8")`;
}

const list = (items: string[]) => `[${items.join(",")}]`;

let compiled: WebAssembly.Module;
let session = false;
let ruby: Ruby | undefined;

const language: Language = {
  async prepare(start) {
    session = start.session;
    const file = await Deno.readFile(`${start.parts[PACKAGE]}/${WASM}`);
    if (!patch(file)) throw new Error("this is not the Ruby that is known");
    compiled = await WebAssembly.compile(file);
    ruby = await Ruby.start(compiled);
  },

  async run(program: Program, host: Host): Promise<number> {
    // One that was left by exit! or a trap is in no state to go on.
    const interpreter = ruby ?? await Ruby.start(compiled);
    ruby = undefined;
    interpreter.host = host;
    const env = Object.entries(program.env)
      .map(([name, value]) => `${literal(name)}=>${literal(value)}`);
    const call = [
      literal(program.code),
      literal(program.file),
      list(program.args.map(literal)),
      `{${env.join(",")}}`,
      session,
      program.echo,
    ];
    let told: Told;
    try {
      told = parse(
        interpreter.evaluate(`RubyVM::Rillbox.run(${call.join(",")})`),
      );
    } catch (error) {
      if (interpreter.overflowed(error)) {
        const message = "stack level too deep";
        const anew = session
          ? "\nThe session begins anew: what it had is lost"
          : "";
        const text = `${program.file}: ${message} (SystemStackError)${anew}\n`;
        host.stderr(encoder.encode(text));
        host.fail({ name: "SystemStackError", message, traceback: "" });
        return 1;
      }
      throw error;
    }
    ruby = interpreter;
    if (told.error) {
      const { name, message, traceback } = told.error;
      host.fail({
        name: String(name),
        message: String(message),
        traceback: String(traceback),
      });
    }
    if (told.value !== undefined) host.value(told.value);
    return Number(told.code) & 0xff;
  },

  complete: (text) =>
    parse(ruby?.evaluate(`RubyVM::Rillbox.complete(${literal(text)})`) ?? "[]"),

  unfinished: (text) =>
    ruby?.evaluate(`RubyVM::Rillbox.unfinished(${literal(text)})`) === "true",
};

await serve(language);
