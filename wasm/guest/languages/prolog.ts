/**
 * SWI-Prolog. Of its bridge to JavaScript nothing is left to programs: what the module
 * imports for it is replaced before the program is known.
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
  type Running,
} from "../emscripten.ts";
import {
  type Host,
  type Language,
  type Program,
  type Start,
} from "../language.ts";
import { serve } from "../serve.ts";
import { firstError } from "./prologerror.ts";
import { QUERIES } from "./prologqueries.ts";

/** The module that holds Prolog, as far as it is used. */
interface Module {
  FS: FS;
  prolog: {
    call(goal: string): boolean;
    /** A text of Prolog's. */
    String: new (text: string) => object;
    query(goal: string, input?: object): {
      once(): Record<string, unknown> & { success?: boolean };
    };
  };
  _PL_permission_error(
    operation: number,
    type: number,
    culprit: number,
  ): number;
  _PL_new_term_ref(): number;
  stringToNewUTF8(text: string): number;
}

type Imports = Record<string, Record<string, (...args: number[]) => unknown>>;

/** How much is kept of what was first written to standard error, in bytes. */
const KEPT = 64 << 10;

/** What a program's stacks may have together, in the form of Prolog's option. */
const STACKS = "512m";

const encoder = new TextEncoder(), decoder = new TextDecoder();

let start: Start;
let prolog: Module;
let halted = false;
let now: Running | undefined;
/** The first bytes of standard error, where Prolog says what is wrong. */
let said: Uint8Array[] = [], saidSize = 0;

const streams = {
  read: (buffer: Uint8Array) => now!.host.read(buffer),
  stdout: (bytes: Uint8Array) => now!.host.stdout(bytes),
  stderr(bytes: Uint8Array) {
    if (!now) throw new Error(decoder.decode(bytes));
    now.host.stderr(bytes);
    if (saidSize >= KEPT) return;
    said.push(bytes.slice(0, KEPT - saidSize));
    saidSize += said.at(-1)!.length;
  },
};

async function prepare(given: Start): Promise<void> {
  start = given;
  await load();
}

async function load(): Promise<void> {
  const directory = `${start.parts["swipl-wasm"]}/dist/swipl`;
  const wasm = compile(`${directory}/swipl-web.wasm`);
  const script = `${directory}/swipl-web.js`;
  const code = Deno.readTextFileSync(script);
  const data = Deno.readFileSync(`${directory}/swipl-web.data`);
  const make = evaluate(`${code}\nreturn SWIPL;`, script, {
    globalThis: { BigInt, TextDecoder, window: {} },
    window: { encodeURIComponent, location: { pathname: "/" } },
    document: undefined,
    process: undefined,
    location: undefined,
    fetch: undefined,
    module: undefined,
    exports: undefined,
    define: undefined,
    XMLHttpRequest: undefined,
    Deno: undefined,
  }) as (options: object) => Promise<Module>;
  const names = importNames(code);
  const module = await wasm;
  prolog = await make({
    arguments: ["-q", "--on-error=status", `--stack-limit=${STACKS}`],
    noInitialRun: true,
    locateFile: (name: string) => `${directory}/${name}`,
    getPreloadedPackage: () => data.buffer,
    quit(_status: number, thrown: unknown) {
      throw thrown;
    },
    instantiateWasm(imports: Imports, done: (...made: unknown[]) => void) {
      cutOff(imports, names, code);
      WebAssembly.instantiate(module, imports as WebAssembly.Imports)
        .then((instance) => done(instance, module));
      return {};
    },
  });
  connectStreams(prolog.FS, streams);
  mountFiles(prolog.FS, start, () => now);
  prolog.FS.writeFile("/swipl/rillbox.pl", QUERIES);
  prolog.prolog.call("load_files('/swipl/rillbox.pl', [silent(true)])");
}

/** The module's names of functions that it imports, which are shortened in it. */
function importNames(code: string): (name: string) => string {
  const table = /var wasmImports=\{([^}]*)\}/.exec(code)?.[1] ?? "";
  const names = new Map(
    table.split(",").map((pair) =>
      pair.split(":").reverse() as [string, string]
    ),
  );
  return (name) => names.get(name) ?? name;
}

/** Takes from Prolog what calls JavaScript, but what flushes a stream. */
function cutOff(
  imports: Imports,
  name: (name: string) => string,
  code: string,
): void {
  const call = /(\d+):\(\$0,\$1\)=>prolog_js_call/.exec(code)?.[1];
  const refuse = (code: number): number => {
    if (String(code) !== call) return 0;
    const operation = prolog.stringToNewUTF8("call");
    const type = prolog.stringToNewUTF8("javascript");
    return prolog._PL_permission_error(
      operation,
      type,
      prolog._PL_new_term_ref(),
    );
  };
  replaceImports(imports, "a", {
    [name("_emscripten_asm_const_int")]: (code) => refuse(code!),
    [name("_emscripten_asm_const_ptr")]: () => 0,
    [name("_emscripten_run_script")]: () => undefined,
  });
}

async function run(program: Program, host: Host): Promise<number> {
  if (halted) await load(); // what a session knew is gone
  halted = false;
  now = { host, file: program.file, code: encoder.encode(program.code) };
  [said, saidSize] = [[], 0];
  let code: number;
  try {
    const { file: File, args: Args, env: Env } = program;
    const Code = new prolog.prolog.String(program.code);
    const { success } = start.session
      ? ask("rillbox:cell(File, Code, Args, Env)", { File, Code, Args, Env })
      : ask("rillbox:run(File, Args, Env)", { File, Args, Env });
    code = success === true ? 0 : 1;
  } catch (thrown) {
    halted = true;
    code = endOf(thrown);
  }
  if (code !== 0) {
    const bytes = new Uint8Array(
      await new Blob(said as BlobPart[]).arrayBuffer(),
    );
    const error = firstError(decoder.decode(bytes));
    if (error) host.fail(error);
  }
  return code;
}

/** The exit code of a program that did not return. */
function endOf(thrown: unknown): number {
  const { status } = thrown as { status?: number };
  if (status !== undefined) return status & 0xff;
  if (!isStackOverflow(thrown)) throw thrown;
  streams.stderr(encoder.encode(
    "ERROR: The C-stack is exhausted: a term is nested too deeply to be written or compared\n",
  ));
  return 2;
}

/** Whether a text ends within a term. */
function unfinished(text: string): boolean {
  return ask("rillbox:unfinished(Text)", { Text: text }).success === true;
}

function complete(text: string): string[] {
  const Begun = /[a-z]\w*$/.exec(text)?.[0];
  if (!Begun) return [];
  return ask("rillbox:names(Begun, Names)", { Begun }).Names as string[] ?? [];
}

function ask(goal: string, input: object) {
  return prolog.prolog.query(goal, input).once();
}

const language: Language = { prepare, run, unfinished, complete };
await serve(language);
