/**
 * PHP 8.4, with what its command line program has.
 *
 * @module
 */

import {
  compile,
  connectStreams,
  evaluate,
  type FS,
  isStackOverflow,
  mountFiles,
  replaceImports,
  replaceOnce,
  type Running,
  Tail,
} from "../emscripten.ts";
import {
  type Host,
  type Language,
  type Program,
  type Start,
} from "../language.ts";
import { serve } from "../serve.ts";
import { uncaught } from "./phperror.ts";
import { Session, WARM } from "./phpsession.ts";
import { isUnfinished, programOf, scriptOf } from "./phptext.ts";

/** The module that holds PHP, as far as it is used. */
interface PHP {
  FS: FS;
  _malloc(size: number): number;
}

type Imports = Record<string, Record<string, (...args: number[]) => unknown>>;

/**
 * What PHP's own development settings are, but that errors are on standard error,
 * apart from what the program prints; the memory is limited by the process's.
 */
const INI = `memory_limit = -1
display_errors = stderr
log_errors = 0
error_reporting = E_ALL
html_errors = 0
short_open_tag = 0
variables_order = EGPCS
zend.assertions = 1
allow_url_fopen = 0
enable_dl = 0
disable_functions = dl,post_message_to_js
max_execution_time = 0
date.timezone = UTC
session.save_path = /tmp
sys_temp_dir = /tmp
`;

const INI_FILE = "/internal/shared/php.ini";
const NAMES_FILE = "/tmp/.names";
const WARM_FILE = "/internal/shared/warm.php";

/** Numbers of errors, negated, as the C library has them. */
const EPERM = -63, ENOSYS = -52;
/** getaddrinfo's EAI_FAIL. */
const NO_NAMES = -4;

/** How many variables the environment may have. */
const VARIABLES = 4096;

const encoder = new TextEncoder();

let php: PHP;
let start: Start;
let session: Session;
/** The program, or the first cell, has begun. */
let begun = false;
/** PHP can't go on in this process's memory. */
let broken = false;
let exports: WebAssembly.Exports;
let memory: WebAssembly.Memory;
let setEnvironment: (variables: Record<string, string>) => void;
let now: Running | undefined;
/** The end of standard error, where PHP says why it ended. */
const said = new Tail(64 << 10);

const streams = {
  read: (buffer: Uint8Array) => now!.host.read(buffer),
  stdout: (bytes: Uint8Array) => now!.host.stdout(bytes),
  stderr(bytes: Uint8Array) {
    now!.host.stderr(bytes);
    said.add(bytes);
  },
};

/** What is written is a piece of the memory, as numbers of any kind. */
function bytesOf(piece: ArrayBufferView): Uint8Array {
  return new Uint8Array(
    piece.buffer as ArrayBuffer,
    piece.byteOffset,
    piece.byteLength,
  );
}

async function prepare(given: Start): Promise<void> {
  start = given;
  await load();
}

async function load(): Promise<void> {
  const directory = `${start.parts["@php-wasm/web-8-4"]}/jspi`;
  const wasm = compile(`${directory}/8_4_25/php_8_4.wasm`);
  const script = `${directory}/php_8_4.js`;
  let code = Deno.readTextFileSync(script);
  code = replaceOnce(
    code,
    "import dependencyFilename from './8_4_25/php_8_4.wasm';",
    "",
  );
  code = replaceOnce(code, "export { dependencyFilename };", "");
  code = replaceOnce(code, "export const dependenciesTotalSize", "const size");
  code = replaceOnce(code, "export function init(", "return function (");
  // A library that PHP loads could have JavaScript in it.
  code = replaceOnce(code, "ASM_CONSTS[start] = eval(func);", "abort();");
  code = replaceOnce(code, "moduleExports[name] = eval(func);", "abort();");
  const init = evaluate(code, script, {
    window: {},
    fetch: undefined,
    WebSocket: undefined,
    XMLHttpRequest: undefined,
    prompt: undefined,
    Deno: undefined,
  }) as (runtime: string, module: object) => PHP;
  const module = await wasm;
  php = await new Promise((resolve, reject) => {
    const made = init("WEB", {
      ENV: {},
      debug: false,
      noInitialRun: true,
      // PHP itself writes here, and the functions of its programs to descriptors.
      onStdout: (piece: ArrayBufferView) => streams.stdout(bytesOf(piece)),
      onStderr: (piece: ArrayBufferView) => streams.stderr(bytesOf(piece)),
      onHeaders() {},
      onAbort: (why: unknown) => reject(why),
      quit(_status: number, thrown: unknown) {
        throw thrown;
      },
      instantiateWasm(imports: Imports, done: (...made: unknown[]) => void) {
        cutOff(imports);
        reserveEnvironment(imports);
        WebAssembly.instantiate(module, imports as WebAssembly.Imports)
          .then((instance) => {
            exports = instance.exports;
            memory = exports.memory as WebAssembly.Memory;
            done(instance, module);
          }, reject);
        return {};
      },
      onRuntimeInitialized: () => resolve(made),
    });
  });
  const { FS } = php;
  connectStreams(FS, streams);
  FS.writeFile(INI_FILE, INI);
  FS.writeFile(WARM_FILE, WARM);
  FS.mkdirTree("/tmp");
  mountFiles(FS, start, () => now);
  session = await Session.begin(exports, INI_FILE, WARM_FILE);
  [begun, broken] = [false, false];
}

/**
 * Takes from PHP what leads out of it: processes, sockets, names of hosts, messages to
 * JavaScript, and libraries that are loaded.
 */
function cutOff(imports: Imports): void {
  const refused = () => EPERM, failed = () => -1, none = () => 0;
  replaceImports(imports, "env", {
    js_open_process: failed,
    __asyncjs__js_popen_to_file: none,
    __asyncjs__js_module_onMessage: failed,
    __asyncjs__wasm_poll_socket: none,
    js_waitpid: failed,
    js_process_status: failed,
    _dlopen_js: none,
    _dlsym_js: none,
    __syscall_socket: refused,
    __syscall_connect: refused,
    __syscall_bind: refused,
    __syscall_listen: refused,
    __syscall_accept4: refused,
    __syscall_sendto: refused,
    __syscall_recvfrom: refused,
    getaddrinfo: () => NO_NAMES,
    getnameinfo: () => NO_NAMES,
    _emscripten_lookup_name: none,
    wasm_setsockopt: failed,
    wasm_shutdown: failed,
    __syscall_statfs64: () => ENOSYS,
    js_wasm_trace: none,
    getcontext() {
      throw new Unsupported("Fibers are not supported here");
    },
  });
}

/** What a program did that this build of PHP has not. */
class Unsupported extends Error {}

/**
 * Leaves room for the environment, which PHP's C library reads when it is loaded, and
 * thus before the program is known.
 */
function reserveEnvironment(imports: Imports): void {
  let pointers: number;
  const set = (at: number, value: number) =>
    new DataView(memory.buffer).setUint32(at, value, true);
  replaceImports(imports, "wasi_snapshot_preview1", {
    environ_sizes_get(count, size) {
      set(count!, VARIABLES);
      set(size!, 8);
      return 0;
    },
    environ_get(at) {
      pointers = at!;
      for (let i = 0; i < VARIABLES; i++) set(pointers + 4 * i, 0);
      return 0;
    },
  });
  setEnvironment = (variables) =>
    Object.entries(variables).slice(0, VARIABLES).forEach(
      ([name, value], i) => {
        const text = encoder.encode(`${name}=${value}\0`);
        const at = php._malloc(text.length);
        new Uint8Array(memory.buffer).set(text, at);
        set(pointers + 4 * i, at);
      },
    );
}

async function run(program: Program, host: Host): Promise<number> {
  const isCell = start.session;
  const code = isCell
    ? scriptOf(program.code, program.echo)
    : programOf(withoutFirstComment(program.code));
  now = { host, file: program.file, code: encoder.encode(code) };
  said.clear();
  if (broken) {
    await load();
    streams.stderr(
      encoder.encode("PHP began anew: what the session had is gone.\n"),
    );
  }
  try {
    if (!begun) {
      begun = true;
      setEnvironment(program.env);
      await session.setArguments(program.file, program.args);
    }
    const code = await session.run(program.file);
    if (isCell) await session.flush();
    // What runs at the end may exit with another code.
    const last = isCell ? 0 : await session.end();
    return tell(code || last, host);
  } catch (thrown) {
    broken = true;
    return tell(endOf(thrown), host);
  }
}

/** Leaves a first line out that is for the shell; the others keep their numbers. */
function withoutFirstComment(code: string): string {
  return code.replace(
    /^#![^\n]*\n(<\?php(?=\s))?/,
    (_, tag) => tag ? `${tag}\n` : "",
  );
}

/** Tells of the error that a program ended by, and gives its exit code. */
function tell(code: number, host: Host): number {
  const error = code === 255 && uncaught(said.text());
  if (error) host.fail(error);
  return code;
}

/** The exit code of a program that did not return; it says itself why. */
function endOf(thrown: unknown): number {
  const { status } = thrown as { status?: number };
  if (status !== undefined) return status;
  const why = isStackOverflow(thrown)
    ? "Maximum call stack size reached. Infinite recursion?"
    : thrown instanceof Unsupported
    ? thrown.message
    : undefined;
  if (why === undefined) throw thrown;
  streams.stderr(encoder.encode(`\nFatal error: ${why}\n`));
  return 255;
}

/** Variables, functions and classes whose names begin as a text ends. */
async function complete(text: string): Promise<string[]> {
  const begun = /(?:^|[^>:\w\\])(\$\w*|[a-zA-Z_]\w*)$/.exec(text)?.[1];
  if (!begun || broken) return [];
  await session.writeNames(begun, NAMES_FILE);
  return JSON.parse(new TextDecoder().decode(php.FS.readFile(NAMES_FILE)));
}

const language: Language = {
  prepare,
  run,
  complete,
  unfinished: isUnfinished,
};
await serve(language);
