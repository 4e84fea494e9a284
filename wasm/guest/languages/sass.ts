/**
 * Sass: a program is a stylesheet, and its output is CSS. Stylesheets that it uses are
 * files of its workspace.
 *
 * @module
 */

import type { Files } from "../files.ts";
import {
  type Host,
  type Language,
  type Program,
  WORKSPACE,
} from "../language.ts";
import { serve } from "../serve.ts";

/** The exit code of Sass's own command for a stylesheet that has an error (EX_DATAERR). */
const DATA_ERROR = 65;
/** And for arguments that it does not have (EX_USAGE). */
const USAGE = 64;

type Syntax = "scss" | "indented" | "css";

/** An error of Sass's: its message is the whole of what Sass says. */
interface SassError extends Error {
  sassMessage: string;
  span: { start: { line: number; column: number }; url?: URL };
}

interface Importer {
  canonicalize(url: string, context: { fromImport: boolean }): URL | null;
  load(url: URL): { contents: string; syntax: Syntax; sourceMapUrl: URL };
}

/** The part of Sass's interface that is used. */
interface Sass {
  compileString(code: string, options: {
    syntax: Syntax;
    url: URL;
    importer: Importer;
    importers: Importer[];
    style: "expanded" | "compressed";
    charset: boolean;
    quietDeps: boolean;
    logger?: { warn?(): void; debug?(): void };
    alertColor: false;
    sourceMap: boolean;
    sourceMapIncludeSources: boolean;
  }): { css: string; sourceMap?: unknown };
}

const encoder = new TextEncoder(), decoder = new TextDecoder();

let sass: Sass;
let connected: Host | undefined;

const language: Language = {
  async prepare({ parts }) {
    // Else Sass finds Node, and has no directory that names of files are shown from.
    Object.defineProperty(globalThis, "process", { value: undefined });
    Object.defineProperty(globalThis, "location", {
      value: { href: `file://${WORKSPACE}/` },
    });
    const say = (...words: unknown[]) =>
      connected?.stderr(encoder.encode(words.join(" ") + "\n"));
    for (const name of ["log", "error", "warn"] as const) console[name] = say;
    const immutable = await import(
      `file://${parts.immutable}/dist/immutable.es.js`
    );
    await import(`file://${parts.sass}/sass.dart.js`);
    // deno-lint-ignore no-explicit-any
    const [library] = (globalThis as any)._cliPkgExports;
    const exported = {};
    library.load({ immutable }, exported);
    sass = exported as Sass;
  },
  run(program, host) {
    connected = host;
    const options = parse(program.args);
    if (typeof options === "string") {
      host.fail({ name: "UsageError", message: options, traceback: "" });
      return USAGE;
    }
    const code = options.stdin ? readAll(host) : program.code;
    try {
      const { css, sourceMap } = sass.compileString(code, {
        syntax: syntaxOf(program),
        url: new URL(`file://${encodeURI(program.file)}`),
        importer: importer(host.files, []),
        importers: [importer(host.files, [WORKSPACE, ...options.loadPaths])],
        style: options.compressed ? "compressed" : "expanded",
        charset: options.charset,
        quietDeps: options.quiet,
        logger: options.quiet ? { warn() {}, debug() {} } : undefined,
        alertColor: false,
        sourceMap: options.map,
        sourceMapIncludeSources: options.map,
      });
      let text = css === "" ? "" : css + "\n";
      if (options.map) {
        text += `\n/*# sourceMappingURL=${dataURL(sourceMap)} */\n`;
      }
      const bytes = encoder.encode(text);
      if (options.out === undefined) host.stdout(bytes);
      else {host.files.writeFile(
          new URL(options.out, `file://${WORKSPACE}/`).pathname,
          bytes,
        );}
      return 0;
    } catch (thrown) {
      if (thrown instanceof RangeError) {
        host.fail({
          name: "StackOverflow",
          message:
            "the stylesheet's functions or mixins call each other too deep",
          traceback: "",
        });
        return DATA_ERROR;
      }
      const { sassMessage, message, span } = thrown as SassError;
      if (sassMessage === undefined) throw thrown;
      const text = shorten(message).replace(/^Error: /, "");
      host.fail({
        name: "SassError",
        message: `${sassMessage} (${place(span, program)})`,
        traceback: `SassError: ${text}`,
      });
      return DATA_ERROR;
    }
  },
};

function place({ start, url }: SassError["span"], program: Program): string {
  const path = url === undefined ? program.file : decodeURI(url.pathname);
  return `${path.replace(`${WORKSPACE}/`, "")}:${start.line + 1}:${
    start.column + 1
  }`;
}

/** Shows files by their names in the workspace. */
const shorten = (text: string) =>
  text.replaceAll(`file://${WORKSPACE}/`, "").replaceAll(`${WORKSPACE}/`, "");

interface Options {
  compressed: boolean;
  charset: boolean;
  quiet: boolean;
  stdin: boolean;
  map: boolean;
  loadPaths: string[];
  /** The file that CSS goes to. */
  out?: string;
}

/** Reads the arguments, as Sass's own command has them; a text says what is wrong. */
function parse(args: string[]): Options | string {
  const options: Options = {
    compressed: false,
    charset: true,
    quiet: false,
    stdin: false,
    map: false,
    loadPaths: [],
  };
  for (let i = 0; i < args.length; i++) {
    let [name, value] = split(args[i]!);
    if (["--style", "-s", "--load-path", "-I"].includes(name)) {
      value ??= args[++i];
    }
    switch (name) {
      case "--style":
      case "-s":
        if (value !== "compressed" && value !== "expanded") {
          return `--style is expanded or compressed, not ${value}`;
        }
        options.compressed = value === "compressed";
        break;
      case "--load-path":
      case "-I":
        options.loadPaths.push(
          new URL(`${value ?? ""}/`, `file://${WORKSPACE}/`).pathname,
        );
        break;
      case "--charset":
      case "--no-charset":
        options.charset = name === "--charset";
        break;
      case "--quiet":
      case "-q":
        options.quiet = true;
        break;
      case "--stdin":
        options.stdin = true;
        break;
      case "--embed-source-map":
        options.map = true;
        break;
      case "--source-map":
      case "--no-source-map":
      case "--indented":
      case "--no-indented":
      case "--no-color":
        break;
      default:
        if (name.startsWith("-")) return `Sass has no argument ${name} here`;
        if (options.out !== undefined) {
          return `there are two files to write: ${options.out} and ${name}`;
        }
        options.out = name;
    }
  }
  return options;
}

function split(arg: string): [name: string, value: string | undefined] {
  const at = arg.indexOf("=");
  return arg.startsWith("--") && at > 0
    ? [arg.slice(0, at), arg.slice(at + 1)]
    : [arg, undefined];
}

/** The syntax of a program: by its file's name, unless it has what only SCSS has. */
function syntaxOf({ file, code, args }: Program): Syntax {
  if (args.includes("--indented")) return "indented";
  if (file.endsWith(".css")) return "css";
  return file.endsWith(".sass") && !/\{\s*$/m.test(code) ? "indented" : "scss";
}

/** Finds stylesheets by the rules of @use and @import: partials, extensions, index files. */
function importer(files: Files, directories: string[]): Importer {
  const isFile = (path: string) => {
    try {
      return files.stat(path).kind === "file";
    } catch {
      return false;
    }
  };
  /** What is there of a path and of its partial. */
  const either = (path: string) => {
    const at = path.lastIndexOf("/") + 1;
    return [path, `${path.slice(0, at)}_${path.slice(at)}`].filter(isFile);
  };
  const one = (found: string[], url: string): string | undefined => {
    if (found.length > 1) {
      throw new Error(
        `It's not clear which file to import for "${url}": ${
          found.map((path) => shorten(path)).join(", ")
        }`,
      );
    }
    return found[0];
  };
  const find = (
    path: string,
    url: string,
    only: string[],
  ): string | undefined => {
    if (/\.(scss|sass|css)$/.test(path)) {
      const dot = path.lastIndexOf(".");
      for (const end of only) {
        const found = one(
          either(path.slice(0, dot) + end + path.slice(dot)),
          url,
        );
        if (found !== undefined) return found;
      }
      return undefined;
    }
    for (const base of [path, `${path.replace(/\/$/, "")}/index`]) {
      for (const end of only) {
        const found = one([
          ...either(`${base}${end}.sass`),
          ...either(`${base}${end}.scss`),
        ], url) ??
          one(either(`${base}${end}.css`), url);
        if (found !== undefined) return found;
      }
    }
    return undefined;
  };
  return {
    canonicalize(url, { fromImport }) {
      const only = fromImport ? [".import", ""] : [""];
      const bases = url.startsWith("file:") ? ["/"] : directories;
      if (/^[a-z][a-z0-9+.-]*:/i.test(url) && !url.startsWith("file:")) {
        return null;
      }
      for (const base of bases) {
        const path = decodeURI(
          new URL(url, `file://${encodeURI(base)}/`).pathname,
        );
        const found = find(path, url, only);
        if (found !== undefined) return new URL(`file://${encodeURI(found)}`);
      }
      return null;
    },
    load(url) {
      const path = decodeURI(url.pathname);
      return {
        contents: decoder.decode(files.readFile(path)),
        syntax: path.endsWith(".sass")
          ? "indented"
          : path.endsWith(".css")
          ? "css"
          : "scss",
        sourceMapUrl: url,
      };
    },
  };
}

function readAll(host: Host): string {
  const pieces: Uint8Array[] = [];
  for (;;) {
    const piece = new Uint8Array(65536);
    const n = host.read(piece);
    if (n === 0) break;
    pieces.push(piece.subarray(0, n));
  }
  const all = new Uint8Array(
    pieces.reduce((size, piece) => size + piece.length, 0),
  );
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return decoder.decode(all);
}

function dataURL(sourceMap: unknown): string {
  const json = encoder.encode(JSON.stringify(sourceMap));
  const { toBase64 } = json as unknown as { toBase64(): string };
  return `data:application/json;base64,${toBase64.call(json)}`;
}

await serve(language);
