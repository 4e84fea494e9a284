/**
 * Perl 5, which the package `@6over3/zeroperl-ts` has as WebAssembly for WASI, with its
 * modules within. A session goes on with the same interpreter.
 *
 * @module
 */

import { compile } from "../emscripten.ts";
import {
  Exit,
  type Host,
  type Language,
  type Program,
  type Start,
  WORKSPACE,
} from "../language.ts";
import { Pace } from "../native/pace.ts";
import { serve } from "../serve.ts";
import { instantiate } from "../wasi.ts";
import { died, lastWords, sessionCode, waits } from "./perltext.ts";

/** Perl's context of an evaluation. */
const SCALAR = 1;

/** An option: code that comes before a program's own, for it begins in the root directory. */
const PRELUDE = `-M-strict;BEGIN{chdir q(${WORKSPACE})}`;

/** The exit code of a program that died. */
const DIED = 255;

/** How many characters of standard error are looked at for why a program ended. */
const KEPT = 64 << 10;

interface Perl {
  memory: WebAssembly.Memory;
  _initialize(): void;
  malloc(size: number): number;
  free(at: number): void;
  zeroperl_init(): number;
  zeroperl_eval(
    code: number,
    context: number,
    argc: number,
    argv: number,
  ): number;
  zeroperl_init_with_args(argc: number, argv: number): number;
  zeroperl_last_error(): number;
  zeroperl_clear_error(): void;
  zeroperl_flush(): number;
}

const encoder = new TextEncoder(), decoder = new TextDecoder();

let module: WebAssembly.Module;
let session = false;
let perl: Perl | undefined;
let now: Host;
let out: Pace | undefined;
/** The last that was written to standard error, where Perl says why it ended. */
let said = "";

async function prepare(start: Start): Promise<void> {
  session = start.session;
  const directory = start.parts["@6over3/zeroperl-ts"];
  module = await compile(`${directory}/dist/esm/zeroperl.wasm`);
}

/** Makes an instance, which has no program yet. */
async function load(program: Program, host: Host): Promise<Perl> {
  const { instance } = await instantiate(module, {
    argv: ["perl"],
    env: program.env,
    host: {
      files: host.files,
      read(buffer) {
        out!.flush();
        return now.read(buffer);
      },
      stdout: (bytes) => out!.write(bytes),
      stderr(bytes) {
        out!.flush();
        said = (said + decoder.decode(bytes)).slice(-KEPT);
        now.stderr(bytes);
      },
    },
    // What is printed is seen line after line.
    terminal: true,
    imports: {
      env: {
        // Programs have no functions of JavaScript.
        call_host_function() {
          throw new Error("Perl has no functions of its host here");
        },
      },
    },
  });
  const made = instance.exports as unknown as Perl;
  made._initialize();
  return made;
}

/** A text with a zero at its end, in Perl's memory. */
function cString(perl: Perl, text: string): number {
  const bytes = encoder.encode(text.replaceAll("\0", "") + "\0");
  const at = perl.malloc(bytes.length);
  new Uint8Array(perl.memory.buffer).set(bytes, at);
  return at;
}

function lastError(perl: Perl): string {
  const at = perl.zeroperl_last_error();
  if (at === 0) return "";
  const bytes = new Uint8Array(perl.memory.buffer);
  return decoder.decode(bytes.subarray(at, bytes.indexOf(0, at)));
}

/** Evaluates a text in the interpreter; its exit code. */
function evaluate(perl: Perl, code: string): number {
  const at = cString(perl, code);
  try {
    return perl.zeroperl_eval(at, SCALAR, 0, 0);
  } finally {
    perl.free(at);
  }
}

async function run(program: Program, host: Host): Promise<number> {
  now = host;
  said = "";
  out = new Pace(host.stdout);
  const name = program.file.slice(program.file.lastIndexOf("/") + 1);
  let status: number, message = "";
  try {
    if (session) {
      if (!perl) {
        perl = await load(program, host);
        if (perl.zeroperl_init() !== 0) throw new Error("Perl can't start");
        evaluate(perl, "chdir '/workspace'");
      }
      status = evaluate(perl, sessionCode(program.code, name));
      if (status !== 0) {
        message = lastError(perl);
        status = DIED;
      }
      perl.zeroperl_flush();
      perl.zeroperl_clear_error();
      if (message) host.stderr(encoder.encode(message));
    } else {
      const made = await load(program, host);
      const argv = ["perl", PRELUDE, program.file, ...program.args].map((arg) =>
        cString(made, arg)
      );
      const at = made.malloc(4 * (argv.length + 1));
      new Uint32Array(made.memory.buffer).set([...argv, 0], at / 4);
      // This runs the program to its end, with all that Perl does of itself then.
      status = made.zeroperl_init_with_args(argv.length, at);
      made.zeroperl_flush();
      if (status !== 0) message = lastWords(said, status);
      if (message) status = DIED;
    }
  } catch (thrown) {
    if (!(thrown instanceof Exit)) throw thrown;
    status = thrown.code;
    perl?.zeroperl_flush();
  } finally {
    out.flush();
  }
  if (message) host.fail(died(message));
  return status;
}

function unfinished(text: string): boolean {
  if (!perl) return false;
  const status = evaluate(perl, `sub {\n${text}\n}; 1`);
  const message = status !== 0 ? lastError(perl) : "";
  perl.zeroperl_clear_error();
  return waits(message);
}

const language: Language = { prepare, run, unfinished };
await serve(language);
