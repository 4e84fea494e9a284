/**
 * R, which the package `webr` has as WebAssembly. Each top-level expression of a program
 * is evaluated as Rscript does, from the outside, so that R's own words about errors,
 * warnings and values are those of Rscript. A session goes on with the same workspace
 * of R's.
 *
 * @module
 */

import {
  compile,
  connectStreams,
  evaluate,
  mountFiles,
  replaceImports,
  replaceOnce,
} from "../emscripten.ts";
import {
  type Host,
  type Language,
  type Program,
  type Start,
} from "../language.ts";
import { serve } from "../serve.ts";
import { failure } from "./rerror.ts";
import {
  filesBelow,
  installImage,
  installLazy,
  type LazyFS,
} from "./rfiles.ts";
import { HELPERS } from "./rhelpers.ts";

/** A pointer: to an object of R's, or to bytes. */
type Pointer = number;

type Imports = Parameters<typeof replaceImports>[0];
type Exports = Record<string, (...args: number[]) => Pointer>;

/** Images of R's files that programs may need; help and translations are left out. */
const IMAGES = [
  "/usr/lib/R/library/grDevices/afm",
  "/usr/lib/R/library/grDevices/enc",
  "/usr/lib/R/library/grDevices/libs",
  "/usr/lib/R/library/parallel",
  "/usr/lib/R/library/tools/misc",
  "/usr/lib/R/library/utils/misc",
  "/usr/lib/R/share",
];

/** The fonts of plots and what says where they are. */
const FILES = [
  "/etc/fonts/fonts.conf",
  ...["Sans", "Serif"].flatMap((family) =>
    ["Bold", "BoldItalic", "Italic", "Regular"].map((style) =>
      `/usr/share/fonts/Noto${family}-${style}.ttf`
    )
  ),
  "/usr/share/fonts/NotoSansMono-Bold.ttf",
  "/usr/share/fonts/NotoSansMono-Regular.ttf",
  "/var/cache/fontconfig/3830d5c3ddfd5cd38a049b759396e72e-le32d8.cache-9",
];

/** Of R's C code: the encoding of a text, the type of a vector of texts, "no save". */
const UTF8 = 1, STRSXP = 16, NO_SAVE = 3;

/** A module of WebAssembly that exports what it imports, a function of one number. */
const CALL = new Uint8Array([
  ...[0, 97, 115, 109, 1, 0, 0, 0],
  ...[1, 5, 1, 96, 1, 127, 0], // its type
  ...[2, 11, 1, 2, 106, 115, 4, 99, 97, 108, 108, 0, 0], // js.call
  ...[7, 8, 1, 4, 99, 97, 108, 108, 0, 0], // call
]);

/** The size of R's stack in its memory, in bytes; the process has one beside it. */
const STACK = 8 << 20;

/** Where R draws the pages that are to be shown. */
const PAGES = "/tmp/.plots";

/** How much is kept of what was last written to standard error, in bytes. */
const KEPT = 64 << 10;

const encoder = new TextEncoder(), decoder = new TextDecoder();

let fs: LazyFS;
let exports: Exports;
let memory: WebAssembly.Memory;
let table: WebAssembly.Table;
let helpers: Pointer;
let now: { host: Host; file: string; code: Uint8Array } | undefined;
/** The last bytes of standard error, where R says why a program ended. */
let said = new Uint8Array(0);
let session = false;
/** A function that R can call, by its number, and what it does. */
let atTopFunction: number, atTopNow: () => void;

/** What R has in its environment and programs do not. */
const UNSET = ["R_ENABLE_JIT", "LLVM_PROFILE_FILE"];
const { toBase64 } = Uint8Array.prototype as unknown as { toBase64(): string };

const streams = {
  read: (buffer: Uint8Array) => now ? now.host.read(buffer) : 0,
  stdout: (bytes: Uint8Array) => now?.host.stdout(bytes),
  stderr(bytes: Uint8Array) {
    now?.host.stderr(bytes);
    const both = new Uint8Array(said.length + bytes.length);
    both.set(said);
    both.set(bytes, said.length);
    said = both.subarray(Math.max(0, both.length - KEPT));
  },
};

async function prepare(start: Start): Promise<void> {
  session = start.session;
  const directory = `${start.parts.webr}/dist`;
  const wasm = compile(`${directory}/R.wasm`);
  const script = `${directory}/R.js`;
  const libraries = new Map<string, () => Uint8Array>();
  for (const name of ["libRblas.so", "libRlapack.so"]) {
    libraries.set(name, () => Deno.readFileSync(`${directory}/${name}`));
  }
  /** R's own native code; what a program brings is refused. */
  function library(name: string): Uint8Array {
    const load = libraries.get(name);
    if (!load) throw new Error("R has no native code here but its own");
    return load();
  }
  let code = Deno.readTextFileSync(script);
  // The list of files that are loaded from a server: they are put here another way.
  code = code.slice(code.indexOf("var ENVIRONMENT_IS_WEB"));
  const from = "function loadLibData(){";
  code = replaceOnce(
    code,
    from,
    `${from}return flags.loadAsync?Promise.resolve(library(libName)):library(libName);`,
  );
  // It keeps R's functions in globals, and asks there for what a page has.
  code = code.replaceAll("globalThis.", "page.");
  const module = await wasm;
  await new Promise<void>((resolve, reject) => {
    const R: Record<string, unknown> = {
      noInitialRun: true,
      noExitRuntime: true,
      noImageDecoding: true,
      noAudioDecoding: true,
      noWasmDecoding: true,
      locateFile: (name: string) => name,
      instantiateWasm(
        imports: WebAssembly.Imports,
        done: (...made: unknown[]) => void,
      ) {
        // R itself calls a shell only to remove its directory of temporary files.
        replaceImports(imports as Imports, "env", {
          _emscripten_system: () => 0,
        });
        WebAssembly.instantiate(module, imports).then((instance) => {
          exports = instance.exports as unknown as Exports;
          memory = instance.exports.memory as WebAssembly.Memory;
          table = instance.exports
            .__indirect_function_table as WebAssembly.Table;
          done(instance, module);
        }, reject);
        return {};
      },
      preRun: [() => {
        fs = R.FS as LazyFS;
        Object.assign(R.ENV as object, {
          R_HOME: "/usr/lib/R",
          R_ENABLE_JIT: "0",
          TZ: "UTC",
          LANG: "en_US.UTF-8",
          HOME: "/home/user",
          FONTCONFIG_PATH: "/etc/fonts",
          LLVM_PROFILE_FILE: "/dev/null",
        });
      }],
      webr: CONSOLE,
      onAbort: (why: unknown) => reject(why),
      onRuntimeInitialized: () => resolve(),
    };
    // R is linked with all that Emscripten has for pages; nothing of it is here.
    const nothing = Object.fromEntries(
      [
        "document",
        "fetch",
        "WebSocket",
        "XMLHttpRequest",
        "Worker",
        "navigator",
      ]
        .map((name) => [name, undefined]),
    );
    evaluate(code, script, {
      ...nothing,
      page: { Module: R },
      Module: R,
      library,
      eval() {
        throw new Error("JavaScript is not for programs in R");
      },
    });
  });
  connectStreams(fs, streams);
  for (const path of filesBelow(fs, "/usr/lib/R")) {
    if (!path.endsWith(".so")) continue;
    const content = fs.readFile(path);
    libraries.set(path, () => content);
  }
  for (const image of IMAGES) {
    for (const [path, load] of installImage(fs, `${directory}/vfs`, image)) {
      if (path.endsWith(".so")) libraries.set(path, load);
    }
  }
  for (const path of FILES) {
    const file = `${directory}/vfs${path}`;
    installLazy(
      fs,
      path,
      Deno.statSync(file).size,
      () => Deno.readFileSync(file),
    );
  }
  mountFiles(fs, start, () => now);
  begin();
}

/** R's console, as this R has it: none. */
const CONSOLE = {
  setPrompt() {},
  readConsole: () => 0,
  handleEvents() {},
  dataViewer() {},
};

/** Starts R without a program. */
function begin(): void {
  const argv = ["R", "--no-echo", "--no-readline", "--vanilla"];
  setInt("R_Interactive", 0);
  // Calls may be deeper than R is linked for; R itself looks that it does not overflow.
  // Clang's code counts on a stack at multiples of 16.
  const end = (exports.malloc!(STACK + 16) + 15) & ~15;
  exports.emscripten_stack_set_limits!(end + STACK, end);
  exports._emscripten_stack_restore!(end + STACK);
  exports.Rf_initialize_R!(argv.length, cStrings(argv));
  setInt("R_Interactive", 0);
  setInt("R_CStackStart", end + STACK);
  setInt("R_CStackLimit", STACK);
  exports.setup_Rmainloop!();
  const list = exports.R_ParseEvalString!(cString(HELPERS), value("R_BaseEnv"));
  exports.R_PreserveObject!(list);
  helpers = list;
  const { call } = new WebAssembly.Instance(new WebAssembly.Module(CALL), {
    js: { call: () => atTopNow() },
  }).exports as { call: () => void };
  atTopFunction = table.grow(1);
  table.set(atTopFunction, call);
  exports.R_ReplDLLinit!();
}

/** The address of one of R's variables. */
function address(name: string): Pointer {
  return (exports[name] as unknown as WebAssembly.Global).value as number;
}

/** The value of one of R's variables that is a pointer. */
function value(name: string): Pointer {
  return new DataView(memory.buffer).getUint32(address(name), true);
}

/** Sets one of R's variables, which is an int or a pointer. */
function setInt(name: string, value: number): void {
  new DataView(memory.buffer).setInt32(address(name), value, true);
}

/** A text with a zero at its end, which is kept for ever. */
function cString(text: string): Pointer {
  const bytes = encoder.encode(text.replaceAll("\0", "") + "\0");
  const at = exports.malloc!(bytes.length);
  new Uint8Array(memory.buffer).set(bytes, at);
  return at;
}

function cStrings(texts: string[]): Pointer {
  const at = exports.malloc!(4 * (texts.length + 1));
  texts.map(cString).concat(0).forEach((text, i) =>
    new DataView(memory.buffer).setUint32(at + 4 * i, text, true)
  );
  return at;
}

/** Makes a vector of texts, which R may collect when it next makes something. */
function texts(given: string[]): Pointer {
  const vector = exports.Rf_protect!(
    exports.Rf_allocVector!(STRSXP, given.length),
  );
  given.forEach((text, i) => {
    const bytes = encoder.encode(text.replaceAll("\0", ""));
    const at = exports.malloc!(bytes.length + 1);
    new Uint8Array(memory.buffer).set(bytes, at);
    const made = exports.Rf_mkCharLenCE!(at, bytes.length, UTF8);
    exports.SET_STRING_ELT!(vector, i, made);
    exports.free!(at);
  });
  exports.Rf_unprotect!(1);
  return vector;
}

function textsOf(vector: Pointer): string[] {
  if (exports.TYPEOF!(vector) !== STRSXP) return [];
  return Array.from({ length: exports.Rf_length!(vector) }, (_, i) => {
    const at = exports.Rf_translateCharUTF8!(exports.STRING_ELT!(vector, i));
    const bytes = new Uint8Array(memory.buffer);
    return decoder.decode(bytes.subarray(at, bytes.indexOf(0, at)));
  });
}

/** Does something at R's top level; false is an error, which R has told of. */
function atTop(work: () => void): boolean {
  atTopNow = work;
  return exports.R_ToplevelExec!(atTopFunction, 0) !== 0;
}

/** Calls a function of the helpers with vectors of texts. */
function ask(name: string, ...args: string[][]): Pointer | undefined {
  const made = args.map((arg) => exports.Rf_protect!(texts(arg)));
  const at = cString(name);
  const helper = exports.Rf_findVarInFrame!(helpers, exports.Rf_install!(at));
  exports.free!(at);
  const call = exports[`Rf_lang${made.length + 1}`]!(helper, ...made);
  exports.Rf_protect!(call);
  let given: Pointer | undefined;
  atTop(() => given = exports.Rf_eval!(call, value("R_BaseEnv")));
  exports.Rf_unprotect!(made.length + 1);
  return given;
}

function run(program: Program, host: Host): number {
  const { file, code } = program;
  now = { host, file, code: encoder.encode(code) };
  said = new Uint8Array(0);
  exports.clearerr!(value("stdin"));
  const name = file.slice(file.lastIndexOf("/") + 1);
  const argv = ["R", "--no-echo", "--no-restore", `--file=${name}`];
  if (program.args.length > 0) argv.push("--args", ...program.args);
  exports.R_set_command_line_arguments!(argv.length, cStrings(argv));
  ask("begin", Object.keys(program.env), Object.values(program.env), UNSET);
  let status: number;
  try {
    status = execute(code, name);
    if (session || fs.analyzePath(PAGES).exists) ask("close");
    if (!session) exports.R_CleanUp!(NO_SAVE, status, status === 0 ? 1 : 0);
  } catch (thrown) {
    // Emscripten's own way to end.
    const given = (thrown as { status?: number }).status;
    if (given === undefined) throw thrown;
    status = given;
  } finally {
    showPages(true);
  }
  return status;
}

/** Evaluates a program's expressions, one after the other, to the first error. */
function execute(code: string, name: string): number {
  const expressions = ask("parse", [code], [name])!;
  if (exports.TYPEOF!(expressions) === STRSXP) {
    const [message] = textsOf(expressions);
    streams.stderr(encoder.encode(`Error: ${message}\n`));
    return halt("");
  }
  exports.R_PreserveObject!(expressions);
  const count = exports.Rf_length!(expressions);
  const lines = exports.Rf_getAttrib!(expressions, value("R_SrcrefSymbol"));
  for (let i = 0; i < count; i++) {
    const expression = exports.VECTOR_ELT!(expressions, i);
    setInt("R_Srcref", exports.VECTOR_ELT!(lines, i));
    if (!atTop(() => evaluateAndPrint(expression))) return halt();
    warn();
    showPages(false);
  }
  return 0;
}

/** Evaluates an expression and prints its value if it is one to be seen, as R's console does. */
function evaluateAndPrint(expression: Pointer): void {
  const visible = address("R_Visible");
  new Uint8Array(memory.buffer)[visible] = 1;
  const given = exports.Rf_eval!(expression, value("R_GlobalEnv"));
  if (new Uint8Array(memory.buffer)[visible] === 0) return;
  exports.Rf_protect!(given);
  exports.Rf_PrintValue!(given);
  exports.Rf_unprotect!(1);
}

/** Has R tell of the warnings that it collected, as it does after each expression. */
function warn(): void {
  const buffer = address("DLLbuf");
  const bytes = encoder.encode("if (FALSE) 0\n\0");
  new Uint8Array(memory.buffer).set(bytes, buffer);
  setInt("DLLbufp", buffer);
  exports.R_ReplDLLdo1!();
}

/** Ends a program after an error. */
function halt(traceback?: string): number {
  traceback ??= textsOf(ask("traceback")!)[0] ?? "";
  const error = failure(decoder.decode(said), traceback);
  if (error) now!.host.fail(error);
  if (!session) streams.stderr(encoder.encode("Execution halted\n"));
  return 1;
}

/** Shows the pages that R has drawn; the last one is done when all are. */
function showPages(all: boolean): void {
  if (!fs.analyzePath(PAGES).exists) return;
  const pages = fs.readdir(PAGES).filter((name) => name.endsWith(".png"))
    .sort();
  for (const page of pages) {
    const content = fs.readFile(`${PAGES}/${page}`);
    if (content.length === 0 && !all) continue; // it is being drawn
    fs.unlink(`${PAGES}/${page}`);
    now!.host.display({ "image/png": toBase64.call(content) });
  }
}

function complete(text: string): string[] {
  const given = ask("complete", [text.slice(text.lastIndexOf("\n") + 1)]);
  return given === undefined ? [] : textsOf(given);
}

function unfinished(text: string): boolean {
  const given = ask("unfinished", [text]);
  return given !== undefined && textsOf(given)[0] === "TRUE";
}

const language: Language = { prepare, run, complete, unfinished };
await serve(language);
