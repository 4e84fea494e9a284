/**
 * Compiles a C or C++ program: the request has its sources, the module goes to
 * descriptor 3, and what the compiler says to standard error. The exit code is the
 * compiler's.
 *
 * The argument is a Start as JSON. Of its parts `@yowasp/clang` has the compiler and
 * the C library. The C++ library, which that package has without exceptions, is beside
 * this module: scripts/cxx-runtime builds it.
 *
 * @module
 */

import { readRequest } from "../../../supervisor/wire/guest/wire.ts";
import { cc1, EVERYDAY, type Flags, link } from "./commands.ts";
import {
  OptionError,
  type Options,
  optionWords,
  readOptions,
} from "./options.ts";
import { explain, jumps, languageOf, sourcesOf } from "./program.ts";
import { indexTar } from "./tar.ts";
import { runTool, Tree } from "./tool.ts";

interface Request {
  code: string;
  /** The program's path: "/workspace/main.c". */
  file: string;
  /** The sources beside it, by their paths, in base64. */
  files?: Record<string, string>;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const { fromBase64 } = Uint8Array as unknown as {
  fromBase64(text: string): Uint8Array;
};

function say(bytes: Uint8Array): void {
  while (bytes.length > 0) bytes = bytes.subarray(Deno.stderr.writeSync(bytes));
}

/** Files of a tar, each read when the compiler wants it. */
function mount(tree: Tree, path: string, at: string): void {
  const file = Deno.openSync(path);
  const read = (at: number, length: number) => {
    const bytes = new Uint8Array(length);
    file.seekSync(at, Deno.SeekMode.Start);
    for (let n = 0; n < length;) {
      const more = file.readSync(bytes.subarray(n));
      if (more === null) throw new Error(`${path} is cut off`);
      n += more;
    }
    return bytes;
  };
  const index = indexTar(file.statSync().size, read);
  for (const [name, [start, length]] of Object.entries(index)) {
    tree.set(`${at}/${name}`, () => read(start, length));
  }
}

class Compiler {
  readonly #module: WebAssembly.Module;
  readonly #tree = new Tree();

  constructor(directory: string) {
    this.#module = new WebAssembly.Module(
      Deno.readFileSync(`${directory}/gen/llvm.core.wasm`),
    );
    mount(this.#tree, `${directory}/gen/llvm-resources.tar`, "/usr");
    for (const name of ["librillbox.a", "libcxx.a"]) {
      this.#tree.set(
        `/runtime/${name}`,
        () => Deno.readFileSync(new URL(name, import.meta.url)),
      );
    }
  }

  /** Compiles a program; undefined if it has errors, which have been told. */
  compile(request: Request): Uint8Array | undefined {
    const tree = this.#tree.copy();
    tree.set(request.file, encoder.encode(request.code));
    for (const [path, content] of Object.entries(request.files ?? {})) {
      if (path !== request.file) tree.set(path, fromBase64(content));
    }
    const text = (path: string) => {
      const bytes = tree.get(path);
      return bytes && decoder.decode(bytes);
    };
    let language = languageOf(request.file);
    let options: Options;
    try {
      options = readOptions(
        language,
        optionWords(request.code),
        (path) => tree.has(path),
      );
    } catch (error) {
      if (!(error instanceof OptionError)) throw error;
      say(encoder.encode(`error: ${error.message}\n`));
      return undefined;
    }
    const beside = options.sources.length > 0
      ? options.sources
      : sourcesOf(request.file, text);
    const sources = [...new Set([request.file, ...beside])];
    if (sources.some((source) => languageOf(source) === "c++")) {
      language = "c++";
    }
    const jumping = sources.some((source) => jumps(text(source) ?? ""));
    let words = "";
    const hear = (bytes: Uint8Array) => {
      words += decoder.decode(bytes, { stream: true });
      say(bytes);
    };
    let failed = false;
    const objects = sources.map((source, i) => {
      const cxx = languageOf(source) === "c++";
      const flags: Flags = {
        ...options.flags,
        other: [...EVERYDAY, "-D_GNU_SOURCE", ...options.flags.other],
        unwinding: cxx
          ? "exceptions"
          : jumping || language === "c++"
          ? "setjmp"
          : "none",
      };
      if (!cxx && language === "c++" && languageOf(request.file) === "c++") {
        flags.standard = "gnu17";
      }
      const object = `/objects/${i}.o`;
      const args = cc1(cxx ? "c++" : "c", flags, source, object);
      if (runTool(this.#module, args, tree, hear) !== 0) failed = true;
      return object;
    });
    failed ||= runTool(
      this.#module,
      link(language, objects, "/program.wasm", { strip: options.strip }),
      tree,
      hear,
    ) !== 0;
    if (!failed) return tree.get("/program.wasm");
    const sentence = explain(words);
    if (sentence) say(encoder.encode(`error: ${sentence}\n`));
    return undefined;
  }
}

const start: { parts: Record<string, string> } = JSON.parse(Deno.args[0]!);
const out = Deno.openSync("/dev/fd/3", { write: true });
const compiler = new Compiler(start.parts["@yowasp/clang"]!);
let made = compiler.compile(readRequest() as Request);
const code = made === undefined ? 1 : 0;
while (made !== undefined && made.length > 0) {
  made = made.subarray(out.writeSync(made));
}
Deno.exit(code);
