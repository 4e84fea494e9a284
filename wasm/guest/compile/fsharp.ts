/**
 * F# becomes JavaScript, by Fable: the program, the files that it loads, and the modules
 * of Fable's library that they need.
 *
 * @module
 */

import { type Mapping, sourceMapComment } from "./sourcemap.ts";
import { PRELUDE } from "./fsharp/prelude.ts";
import {
  Refused,
  serveTranslation,
  type Sources,
  type Translation,
} from "./translate.ts";

/** What the compiler says of a place. */
interface Message {
  FileName: string;
  StartLine: number;
  StartColumn: number;
  Message: string;
  IsWarning: boolean;
}

type Checked = unknown;

/** What Fable calls when it has written something: an asynchronous workflow of F#'s. */
interface Context {
  onSuccess(value?: unknown): void;
  onError(error: unknown): void;
  onCancel(error: unknown): void;
  cancelToken: unknown;
  trampoline: unknown;
}

/** The part of Fable's interface that is used. */
export interface Fable {
  CreateChecker(
    references: string[],
    read: (name: string) => Uint8Array,
    options: string[],
  ): unknown;
  ParseAndCheckProject(
    checker: unknown,
    project: string,
    names: string[],
    sources: string[],
    options: string[],
  ): Checked;
  GetErrors(checked: Checked): Message[];
  CompileToTargetAst(
    library: string,
    checked: Checked,
    name: string,
    arrays: boolean | undefined,
    target: "JavaScript",
  ): unknown;
  PrintTargetAst(result: unknown, writer: Writer): (context: Context) => void;
}

interface Writer {
  /** Lines are from 1, columns from 0. */
  AddSourceMapping(
    place: [
      sourceLine: number,
      sourceColumn: number,
      line: number,
      column: number,
      name?: string,
    ],
  ): void;
  MakeImportPath(path: string): string;
  Write(text: string): (context: Context) => void;
  Dispose(): void;
}

/** The file of our own that is compiled before the program's. */
const OURS = "Rillbox.fs";
const LIBRARY = "fable-library";
const DEFINES = [
  "--define:FABLE_COMPILER",
  "--define:FABLE_COMPILER_JAVASCRIPT",
];

const decoder = new TextDecoder();
const { fromBase64 } = Uint8Array as unknown as {
  fromBase64(text: string): Uint8Array;
};

export async function translate(
  fable: Fable,
  checker: unknown,
  library: (name: string) => string,
  sources: Sources,
): Promise<Translation> {
  const units = unitsOf(sources);
  const names = [OURS, ...units.map(({ name }) => name)];
  const checked = fable.ParseAndCheckProject(checker, "project", names, [
    PRELUDE,
    ...units.map(({ code }) => code),
  ], DEFINES);
  const all = fable.GetErrors(checked);
  refuse(all.filter((m) => !m.IsWarning));
  const files: Record<string, string> = {};
  const directory = sources.file.slice(0, sources.file.lastIndexOf("/"));
  const wanted = new Set<string>();
  let main = "";
  for (const name of names) {
    const made = fable.CompileToTargetAst(
      LIBRARY,
      checked,
      name,
      undefined,
      "JavaScript",
    ) as {
      FableErrors?: Message[];
    };
    refuse((made.FableErrors ?? []).filter((m) => !m.IsWarning));
    const code = await print(
      fable,
      made,
      name.slice(name.lastIndexOf("/") + 1),
      (path) => {
        const inLibrary = /(?:^|\/)fable-library\/(.+)$/.exec(path);
        if (inLibrary === null) {
          return /\.fsx?$/.test(path)
            ? `${path.startsWith(".") ? "" : "./"}${path}.js`
            : path;
        }
        const module = inLibrary[1]!.replace(/(\.js)?$/, ".js");
        wanted.add(module);
        return `${
          "../".repeat(name.split("/").length - 1) || "./"
        }${LIBRARY}/${module}`;
      },
    );
    if (name === names.at(-1)) main = withExitCode(code);
    else files[`${directory}/${name}.js`] = code;
  }
  for (const name of wanted) { // grows meanwhile
    const code = library(name);
    files[`${directory}/${LIBRARY}/${name}`] = code;
    for (const [, other] of code.matchAll(/from "(\.{1,2}\/[^"]+)"/g)) {
      wanted.add(new URL(other!, `file:///${name}`).pathname.slice(1));
    }
  }
  return { language: "javascript", code: main, files };
}

/** Makes what the entry point returns, which Fable leaves out, the exit code. */
function withExitCode(code: string): string {
  const call = "})(typeof process === 'object' ? process.argv.slice(2) : []);";
  const end = code.lastIndexOf(call),
    start = code.lastIndexOf("\n(function (", end) + 1;
  if (end < 0 || start <= 0) return code;
  const after = end + call.length;
  return `${code.slice(0, start)}const fsharpCode = ${
    code.slice(start, after)
  } if (fsharpCode) Deno.exit(fsharpCode);${code.slice(after)}`;
}

/** Says what the compiler refuses, as F#'s own does. */
function refuse(errors: Message[]): void {
  if (errors.length === 0) return;
  throw new Refused(
    errors.map(({ FileName, StartLine, StartColumn, Message }) =>
      `${FileName || "main.fsx"}(${StartLine},${
        StartColumn + 1
      }): error: ${Message}`
    ).join("\n"),
  );
}

/** The program and the files that it loads, in the order in which F# compiles them. */
function unitsOf(
  { file, code, files = {} }: Sources,
): { name: string; code: string }[] {
  const units: { name: string; code: string }[] = [], seen = new Set<string>();
  const directory = file.slice(0, file.lastIndexOf("/") + 1);
  const add = (path: string, code: string) => {
    if (seen.has(path)) return;
    seen.add(path);
    code = code.replace(/^#!.*/, "").replace(
      /^[ \t]*#load[ \t]+(.*)$/gm,
      (_, names: string) => {
        for (const [, name] of names.matchAll(/"([^"]+)"/g)) {
          const other = new URL(name!, `file://${path}`).pathname;
          if (files[other] === undefined || !other.startsWith(directory)) {
            throw new Refused(
              `${
                path.slice(directory.length)
              }: error: there is no file ${name}`,
            );
          }
          add(other, decoder.decode(fromBase64(files[other]!)));
        }
        return "";
      },
    );
    units.push({ name: path.slice(directory.length), code });
  };
  add(file, code);
  return units;
}

function print(
  fable: Fable,
  made: unknown,
  name: string,
  path: (path: string) => string,
): Promise<string> {
  let text = "";
  const mappings: Mapping[] = [];
  return new Promise((done, fail) =>
    fable.PrintTargetAst(made, {
      AddSourceMapping([sourceLine, sourceColumn, line, column]) {
        mappings.push({ line, column, sourceLine, sourceColumn });
      },
      MakeImportPath: path,
      Write: (piece) => (context) => {
        text += piece;
        context.onSuccess();
      },
      Dispose() {},
    })({
      onSuccess: () => done(`${text}\n${sourceMapComment(name, mappings)}`),
      onError: fail,
      onCancel: fail,
      cancelToken: {
        isCancelled: false,
        addListener() {},
        removeListener() {},
      },
      trampoline: {
        incrementAndCheck: () => false,
        hijack: (call: () => void) => setTimeout(call, 0),
      },
    })
  );
}

if (import.meta.main) {
  await serveTranslation(async ({ parts }) => {
    const at = `${parts["fable-standalone"]}/dist`,
      metadata = `${parts["fable-metadata"]}/lib`;
    await import(`file://${at}/bundle.min.js`);
    // deno-lint-ignore no-explicit-any
    const fable: Fable = (globalThis as any).__FABLE_STANDALONE__.init();
    const references = [...Deno.readDirSync(metadata)].map(({ name }) => name)
      .filter((name) => name.endsWith(".dll")).map((name) => name.slice(0, -4));
    const checker = fable.CreateChecker(
      references,
      (name) =>
        Deno.readFileSync(
          `${metadata}/${
            name.slice(name.lastIndexOf("/") + 1).replace(/(\.dll)?$/, ".dll")
          }`,
        ),
      DEFINES,
    );
    return (sources) =>
      translate(
        fable,
        checker,
        (name) => Deno.readTextFileSync(`${at}/fable-library/${name}`),
        sources,
      );
  });
}
