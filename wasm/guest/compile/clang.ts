/**
 * Compiles a C or C++ program: the request has its sources, the module goes to
 * descriptor 3, and what the compiler says to standard error. The exit code is the
 * compiler's.
 *
 * The argument is a Start as JSON. Of its parts `@yowasp/clang` has the compiler and
 * the C library, `runtime` what scripts/cxx-runtime builds: the C++ library with
 * exceptions, which the package lacks. `made`, which may be absent, has what a child
 * of this module made when it was asked to, from nothing but those two: each is a file
 * by its name.
 *
 *   - clang.wasm: the compiler without what is hardly ever called (trim.ts)
 *   - gnu++23.pch: the headers of the C++ library, read already
 *
 * @module
 */

import { readRequest } from "../../../supervisor/wire/guest/wire.ts";
import { cc1, EVERYDAY, type Flags, link } from "./commands.ts";
import { HOT } from "./hot.ts";
import {
  DEFAULT_CHECKS,
  OptionError,
  type Options,
  optionWords,
  readOptions,
} from "./options.ts";
import { explain, jumps, languageOf, sourcesOf } from "./program.ts";
import { indexTar } from "./tar.ts";
import { runTool, Tree } from "./tool.ts";
import { Bits, countFunctions, trim } from "./trim.ts";

interface Start {
  parts: Record<string, string>;
}

type Request = { make: string } | Program;

interface Program {
  make?: undefined;
  code: string;
  /** The program's path: "/workspace/main.c". */
  file: string;
  /** The sources beside it, by their paths, in base64. */
  files?: Record<string, string>;
}

/** What is made ahead: the compiler, and headers for a standard of C++. */
const CLANG = "clang.wasm";
const STANDARD = "gnu++23", HEADER = "gnu++23.pch";
/** The C++ library's headers that programs use; each costs time wherever it is not used. */
const HEADERS =
  "algorithm array bitset cassert cctype chrono climits cmath complex cstdint " +
  "cstdio cstdlib cstring deque exception format fstream functional initializer_list iomanip " +
  "iostream iterator limits list map memory numeric optional ostream queue random set sstream " +
  "stack stdexcept string string_view tuple type_traits unordered_map unordered_set utility " +
  "variant vector";
const HEADER_PATH = "/made/headers.h";
/** GCC's header of the whole library, which many programs include; libc++ has none. */
const ALL_HEADERS =
  "atomic bit cfloat charconv cinttypes concepts csignal ctime expected forward_list " +
  "locale mutex new numbers print ranges ratio regex span system_error thread typeindex " +
  "typeinfo valarray";
const ALL_PATH = "/usr/include/c++/v1/bits/stdc++.h";
/** Errors that a program may have only because it sees headers that it does not include. */
const DOUBTFUL =
  /ambiguous|redefin|conflict|redeclar|different (kind|type|linkage)|PCH|AST file|overload|already/;

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
    tree.set(`${at}/${name}`, {
      size: length,
      read: () => read(start, length),
    });
  }
}

/** A file that is read when the compiler wants it, if it is there. */
function mountFile(tree: Tree, path: string, at: string): void {
  try {
    const { size } = Deno.statSync(path);
    tree.set(at, { size, read: () => Deno.readFileSync(path) });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

function readIf(path: string | undefined): Uint8Array | undefined {
  if (path === undefined) return undefined;
  try {
    return Deno.readFileSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

class Compiler {
  readonly #whole: string;
  #trimmed: boolean;
  #module: WebAssembly.Module;
  readonly #tree = new Tree();

  constructor({ parts }: Start) {
    const { "@yowasp/clang": clang, runtime, made } = parts;
    this.#whole = `${clang}/gen/llvm.core.wasm`;
    const trimmed = readIf(made && `${made}/${CLANG}`);
    this.#trimmed = trimmed !== undefined;
    this.#module = moduleOf(trimmed ?? Deno.readFileSync(this.#whole));
    mount(this.#tree, `${clang}/gen/llvm-resources.tar`, "/usr");
    for (const name of ["librillbox.a", "libcxx.a"]) {
      mountFile(this.#tree, `${runtime}/${name}`, `/runtime/${name}`);
    }
    const including = (names: string) =>
      encoder.encode(names.replace(/(\S+) ?/g, "#include <$1>\n"));
    this.#tree.set(HEADER_PATH, including(HEADERS));
    this.#tree.set(ALL_PATH, including(`${HEADERS} ${ALL_HEADERS}`));
    if (made !== undefined) {
      mountFile(this.#tree, `${made}/${HEADER}`, `/made/${HEADER}`);
    }
  }

  /** Runs a tool; what it says comes when it has ended. */
  #run(args: string[], tree: Tree): { code: number; words: string } {
    let words = "";
    const hear = (bytes: Uint8Array) =>
      void (words += decoder.decode(bytes, { stream: true }));
    try {
      return { code: runTool(this.#module, args, tree, hear), words };
    } catch (error) {
      if (error instanceof RangeError) {
        return {
          code: 1,
          words:
            `${words}error: the compiler's stack is full: something in the program is nested too deep\n`,
        };
      }
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
      if (!this.#trimmed) {
        return {
          code: 1,
          words: `${words}error: the compiler broke: ${error.message}\n`,
        };
      }
      this.#trimmed = false;
      this.#module = moduleOf(Deno.readFileSync(this.#whole));
      return this.#run(args, tree);
    }
  }

  /** Makes what later children take as it is. */
  make(name: string): Uint8Array {
    if (name === CLANG) {
      const module = Deno.readFileSync(this.#whole), hot = new Bits(HOT);
      const { imported } = countFunctions(module);
      return trim(module, (index) => hot.has(index + imported));
    }
    if (name !== HEADER) {
      throw new Error(`There is nothing called ${name} to make`);
    }
    const tree = this.#tree.copy();
    const flags = flagsOf({
      standard: STANDARD,
      optimize: "-O1",
      lines: true,
      checks: DEFAULT_CHECKS.join(","),
      other: [],
    }, "exceptions");
    const { code, words } = this.#run(
      cc1("c++", flags, HEADER_PATH, "/out", "make"),
      tree,
    );
    if (code !== 0) throw new Error(words);
    return tree.get("/out")!;
  }

  /** Compiles a program; undefined if it has errors, which have been told. */
  compile(program: Program): Uint8Array | undefined {
    const tree = this.#tree.copy();
    tree.set(program.file, encoder.encode(program.code));
    for (const [path, content] of Object.entries(program.files ?? {})) {
      if (path !== program.file) tree.set(path, fromBase64(content));
    }
    const text = (path: string) => {
      const bytes = tree.get(path);
      return bytes && decoder.decode(bytes);
    };
    const main = languageOf(program.file);
    let options: Options;
    try {
      options = readOptions(
        main,
        optionWords(program.code),
        (path) => tree.has(path),
      );
    } catch (error) {
      if (!(error instanceof OptionError)) throw error;
      say(encoder.encode(`error: ${error.message}\n`));
      return undefined;
    }
    const beside = options.sources.length > 0
      ? options.sources
      : sourcesOf(program.file, text);
    const sources = [...new Set([program.file, ...beside])];
    const cxx = sources.some((source) => languageOf(source) === "c++");
    const jumping = cxx || sources.some((source) => jumps(text(source) ?? ""));
    let words = "", failed = false;
    const run = (args: string[]) => {
      const result = this.#run(args, tree);
      words += result.words;
      say(encoder.encode(result.words));
      failed ||= result.code !== 0;
    };
    const objects = sources.map((source, i) => {
      const language = languageOf(source), object = `/objects/${i}.o`;
      const standard = language === main ? options.flags.standard : "gnu17";
      const unwinding = language === "c++"
        ? "exceptions"
        : jumping
        ? "setjmp"
        : "none";
      const flags = flagsOf({ ...options.flags, standard }, unwinding);
      if (this.#fits(language, flags)) {
        const ahead = this.#run(
          cc1(language, flags, source, object, `/made/${HEADER}`),
          tree,
        );
        if (ahead.code === 0 || !DOUBTFUL.test(ahead.words)) {
          words += ahead.words;
          say(encoder.encode(ahead.words));
          failed ||= ahead.code !== 0;
          return object;
        }
      }
      run(cc1(language, flags, source, object));
      return object;
    });
    if (!failed) {
      run(
        link(cxx ? "c++" : "c", objects, "/program.wasm", {
          strip: options.strip,
        }),
      );
    }
    if (!failed) return tree.get("/program.wasm");
    const sentence = explain(words);
    if (sentence) say(encoder.encode(`error: ${sentence}\n`));
    return undefined;
  }

  /** Whether headers that are read already are those that a compilation would read. */
  #fits(language: "c" | "c++", flags: Flags): boolean {
    return language === "c++" && flags.standard === STANDARD &&
      /^-O[1-3]$/.test(flags.optimize) &&
      !flags.other.some((word) =>
        /^_LIBCPP|^_GLIBCXX|^-include|^-f/.test(word)
      ) &&
      this.#tree.has(`/made/${HEADER}`);
  }
}

function moduleOf(bytes: Uint8Array): WebAssembly.Module {
  return new WebAssembly.Module(bytes as Uint8Array<ArrayBuffer>);
}

/** The flags of a compilation: what every program has, then its own. */
function flagsOf(
  own: Omit<Flags, "unwinding">,
  unwinding: Flags["unwinding"],
): Flags {
  return {
    ...own,
    other: [
      ...EVERYDAY,
      "-D_GNU_SOURCE",
      "-D_LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_FAST",
      ...own.other,
    ],
    unwinding,
  };
}

const out = Deno.openSync("/dev/fd/3", { write: true });
const compiler = new Compiler(JSON.parse(Deno.args[0]!));
const request = readRequest() as Request;
let made = request.make === undefined
  ? compiler.compile(request)
  : compiler.make(request.make);
const code = made === undefined ? 1 : 0;
while (made !== undefined && made.length > 0) {
  made = made.subarray(out.writeSync(made));
}
Deno.exit(code);
