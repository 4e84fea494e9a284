/**
 * A guest's error as the guest should see it: its own frames, its own line
 * numbers and short file names, without frames of Deno's or ours.
 *
 * @module
 */

import type { WireError } from "../../supervisor/wire/guest/wire.ts";
import { type NativeCode, nativeCode, nativeCodeAt } from "./native.ts";
import { abbreviate } from "./value.ts";

/** The guest's program, and what of its text is ours. */
export interface Source {
  /** Where its module is: a file URL. */
  url: string;
  /** Where the program's file is in its workspace, or came from: a URL. */
  main?: string;
  /** The directory of the program's own files, a URL; none where it is a cell. */
  directory?: string;
  /** The user's folder that they are shown in: "src/", or empty. */
  folder?: string;
  /** The file name to show for it. */
  name: string;
  /** What was inserted into its text, at a line and column counted from 1. */
  prelude: { line: number; column: number; text: string };
}

/** The path that a file URL names. */
export const pathOf = (url: string) =>
  decodeURIComponent(new URL(url).pathname);

/** The module that this one is part of. */
const OURS = import.meta.url;

const inspect = Deno.inspect;
const MAX_DEPTH = 5;
const MAX_ERRORS = 10;

/** Describes anything that was thrown, in at most about `limit` characters. */
export function describeError(
  thrown: unknown,
  source: Source,
  limit: number,
): WireError {
  try {
    const { name, message, frames } = parse(thrown, source);
    return {
      name: abbreviate(name, 200),
      message: abbreviate(message, limit / 4),
      traceback: abbreviate(
        format(thrown, { name, message, frames }, source, 0),
        limit / 2,
      ),
    };
  } catch { // a getter of the guest's threw
    return {
      name: "Error",
      message: "The error that was thrown cannot be shown",
      traceback: "",
    };
  }
}

interface Parsed {
  name: string;
  message: string;
  frames: string[];
}

function isError(value: unknown): value is Error {
  return value instanceof Error ||
    Object.prototype.toString.call(value) === "[object Error]";
}

/** The refusal of which a package was told that the file is not there. */
function refusalOf({ cause }: Error): Error | undefined {
  return cause instanceof Deno.errors.NotCapable ? cause : undefined;
}

function parse(thrown: unknown, source: Source): Parsed {
  if (!isError(thrown)) {
    const message = typeof thrown === "string"
      ? thrown
      : inspect(thrown, { colors: false });
    return { name: "Uncaught", message, frames: [] };
  }
  let name = String(thrown.name || "Error");
  let message = String((refusalOf(thrown) ?? thrown).message);
  if (message === "fetch failed" && isError(thrown.cause)) { // which says no more
    message += `: ${thrown.cause.message}`;
  }
  const stack = typeof thrown.stack === "string" ? thrown.stack : "";
  const at = stack.search(/^ {4}at /m);
  const lines = at < 0 ? [] : stack.slice(at).split("\n");

  // Deno's loader puts the place, and a syntax error's own name, into the text.
  const place = /\n {4}at ([^\n]+:\d+:\d+)$/.exec(message);
  if (place) {
    message = message.slice(0, place.index);
    if (!lines[0]?.includes(place[1]!)) lines.unshift(`    at ${place[1]}`);
  }
  if (message.startsWith("SyntaxError: ")) {
    name = "SyntaxError";
    message = message.slice("SyntaxError: ".length);
  }
  message = explain(
    shorten(withoutPrelude(message, source), source),
    source,
    name === "TypeError",
  );
  if (name === "SyntaxError" && place) {
    message += `\n    at ${shorten(place[1]!, source)}`;
  }
  return { name, message, frames: guestFrames(lines, source) };
}

function format(
  thrown: unknown,
  parsed: Parsed,
  source: Source,
  depth: number,
): string {
  const { name, message, frames } = parsed;
  const lines = [message === "" ? name : `${name}: ${message}`];
  for (const frame of frames) {
    if (!lines[0]!.endsWith(`\n${frame}`)) lines.push(frame);
  }
  if (isError(thrown) && depth < MAX_DEPTH) {
    const { errors } = thrown as AggregateError;
    if (Array.isArray(errors)) {
      for (const [i, error] of errors.slice(0, MAX_ERRORS).entries()) {
        const text = format(error, parse(error, source), source, depth + 1);
        lines.push(`    [${i + 1}] ${text.replaceAll("\n", "\n    ")}`);
      }
      if (errors.length > MAX_ERRORS) {
        lines.push(`    … ${errors.length - MAX_ERRORS} more errors`);
      }
    }
    if (thrown.cause !== undefined && !message.startsWith("fetch failed: ")) {
      const cause = format(
        thrown.cause,
        parse(thrown.cause, source),
        source,
        depth + 1,
      );
      lines.push(`Caused by: ${cause}`);
    }
  }
  return lines.join("\n");
}

/** Keeps the frames of the guest's program and its packages. */
function guestFrames(lines: string[], source: Source): string[] {
  const kept: string[] = [];
  let last = 0; // frames up to the last one with a place of the guest's
  for (const line of lines) {
    if (!/^ {4}at /.test(line)) continue;
    if (/\b(ext|node|native):/.test(line) || line.includes(OURS)) continue;
    kept.push(shorten(line, source));
    if (/:\d+:\d+\)?$/.test(line)) last = kept.length;
  }
  return kept.slice(0, last);
}

/** Shows the guest's file by its name, and a package's file by its package. */
function shorten(text: string, source: Source): string {
  text = text.replaceAll(
    /(?:file:\/\/)?\/[^\s)"']*?\/npm\/[^\s)"']+?\/((?:@[^/\s]+\/)?[^/\s]+)\/(\d+\.\d+\.\d+[^/\s]*)\//g,
    "npm:$1@$2/",
  );
  if (source.main?.startsWith("file:")) { // CommonJS is compiled as what is there
    text = text.replaceAll(source.main, source.url)
      .replaceAll(pathOf(source.main), pathOf(source.url));
  }
  text = text.replaceAll("file://" + pathOf(source.url), source.url); // as Deno shows it
  const parts = text.split(source.url);
  for (let i = 1; i < parts.length; i++) {
    parts[i] = source.name +
      parts[i]!.replace(/^:(\d+):(\d+)/, (_, line, column) => {
        return `:${line}:${ownColumn(Number(line), Number(column), source)}`;
      });
  }
  text = parts.join("").replaceAll(pathOf(source.url), source.name);
  if (source.directory === undefined) return text;
  const folder = source.folder ?? "";
  return text.replaceAll(source.directory, folder)
    .replaceAll(new URL(source.directory).pathname, folder);
}

function ownColumn(line: number, column: number, { prelude }: Source): number {
  if (line !== prelude.line || column < prelude.column) return column;
  return Math.max(column - prelude.text.length, prelude.column);
}

/** Takes the prelude out of an excerpt, and moves the marks below it. */
function withoutPrelude(
  message: string,
  { prelude: { text } }: Source,
): string {
  const at = text === "" ? -1 : message.indexOf(text);
  if (at < 0) return message;
  const before = message.slice(0, at);
  const after = message.slice(at + text.length);
  const margin = at - before.lastIndexOf("\n") - 1;
  const lines = after.split("\n");
  if (lines[1] !== undefined && /^\s*\|?[ ~^]+$/.test(lines[1])) {
    lines[1] = lines[1].slice(0, margin) + lines[1].slice(margin + text.length);
  }
  return before + lines.join("\n");
}

const COMPUTED =
  "an import that is computed is not fetched by itself; name it in packages";

/** What import and require say of a package that another one names in vain. */
const MISSING_PEER =
  /^(?:Could not find package|Cannot find module) '((?:@[^/']+\/)?[^./'][^/']*)(?:\/[^']*)?'(?: from referrer '|\nRequire stack:\n- )npm:((?:@[^/\s]+\/)?[^/\s]+)\//;

/** Says in the words of this product what Deno's loader says in Deno's. */
function explain(message: string, source: Source, isImport: boolean): string {
  let match = /^Import "([^"]+)" not a dependency/.exec(message);
  if (match) return `Cannot find package "${match[1]}": ${COMPUTED}`;
  match = /npm package not found in cache: "([^"]+)"/.exec(message);
  if (match) return `Cannot find package "npm:${match[1]}": ${COMPUTED}`;
  match = /JSR package manifest for '([^']+)' failed to load/.exec(message);
  if (match) return `Cannot find package "jsr:${match[1]}": ${COMPUTED}`;
  match = /Specifier not found in cache: "([^"]+)"/.exec(message);
  if (match) return `Cannot find module "${match[1]}": ${COMPUTED}`;
  match = MISSING_PEER.exec(message);
  if (match) {
    return `${match[2]} needs the package "${
      match[1]
    }", which is not fetched with it; name it in packages`;
  }
  match = /^Module not found "([^"]+)"\.?$/.exec(message);
  if (match && !URL.canParse(match[1]!) && !hasDirectory()) {
    return `Module not found "${match[1]}": ${NO_DIRECTORY}`;
  }
  match = /^(No such file|ENOENT: no such file).* '[^'/][^']*'$/.exec(message);
  if (match && source.directory !== undefined && !hasDirectory()) {
    return `${message}: ${NO_DIRECTORY}`;
  }
  match = /^Failed to spawn '([^']*)'/.exec(message); // it is looked for before it is refused
  if (
    match &&
    Deno.permissions.querySync({ name: "run", command: match[1]! }).state !==
      "granted"
  ) {
    return `Requires run access to "${match[1]}": ${allowedBy("run")}`;
  }
  match =
    /^Requires ([a-z]+) access to (.*), run again with the --allow-\1 flag$/s
      .exec(message);
  if (match) return explainRefusal(match[1]!, match[2]!, source, isImport);
  const told = message.replace( // in what a package says of it
    /Requires ([a-z]+) access to ("[^"\n]*"), run again with the --allow-\1 flag/g,
    (_, kind, what) => explainRefusal(kind, what, source, isImport),
  );
  if (told !== message) return told;
  if (UNTRUSTED.test(message)) {
    return `${message}: the operator can have a certificate's issuer trusted with DENO_CERT=FILE in the environment that Rillbox starts with`;
  }
  const native = nativeCode();
  if (native !== undefined && NO_NATIVE_CODE.test(message)) {
    return `${explainNative(native)}\n${message}`;
  }
  return message;
}

/** What fetch and node:tls say where nobody whom Deno trusts signed a certificate. */
const UNTRUSTED =
  /invalid peer certificate: UnknownIssuer|^(self[- ]signed certificate( in certificate chain)?|unable to (verify the first certificate|get (local )?issuer certificate))$/;

/** Says what native code needs. */
function explainNative({ name, refused }: NativeCode): string {
  return refused
    ? `${name} is native code: ${allowedBy("ffi")}`
    : `${name} is native code, which is not loaded here: use a package of JavaScript or WebAssembly in its place`;
}

/** What packages say where their native code was not loaded. */
const NO_NATIVE_CODE =
  /\.node\b|\bnative\b|\bbindings?\b|Cannot find module|Could not load/i;

/** Says what a refused permission means here, and who can grant it. */
function explainRefusal(
  kind: string,
  what: string,
  source: Source,
  isImport: boolean,
): string {
  const native = /^"(.*\.node)"$/s.exec(what);
  if (native) return explainNative(nativeCodeAt(native[1]!, kind === "ffi"));
  // What node:child_process looks at before it starts a program.
  if (
    kind === "env" && what === '"NODE_V8_COVERAGE"' &&
    Deno.permissions.querySync({ name: "run" }).state !== "granted"
  ) {
    return `Requires run access, to start a program: ${allowedBy("run")}`;
  }
  if (kind === "read" || kind === "write") {
    const name = /^"([^"]*)"$/.exec(what)?.[1];
    const path = inDirectory(name, source);
    if (isImport && path !== undefined && path !== name) {
      return `Cannot find module "../${path}": it is outside of the program's directory`;
    }
    if (path !== undefined && !hasDirectory()) {
      return `Requires ${kind} access to "${path}": ${NO_DIRECTORY}`;
    }
  }
  const one = kind === "net" || kind === "env"
    ? /^"([^",\s]+)"$/.exec(what)?.[1]
    : undefined;
  return `Requires ${kind} access to ${what}: ${allowedBy(kind, one)}`;
}

export const NO_DIRECTORY =
  "the program has no directory of files; files or session_id gives it one";

/** Says that the current directory is the program's to read: a workspace. */
export function hasDirectory(): boolean {
  return Deno.permissions.querySync({ name: "read", path: "." }).state ===
    "granted";
}

/**
 * What a path is from the current directory, if it is relative to that. A program
 * without a workspace is in the one that holds its own.
 */
function inDirectory(path: string | undefined, source: Source) {
  if (path === undefined || !path.startsWith("/")) return path;
  const current = source.directory === undefined
    ? new URL(".", source.url)
    : new URL("..", source.directory);
  if (path + "/" === current.pathname) return ".";
  return path.startsWith(current.pathname)
    ? path.slice(current.pathname.length)
    : undefined;
}

function allowedBy(kind: string, value?: string): string {
  const flag = `--allow-${kind}${value === undefined ? "" : "=" + value}`;
  return `the operator can allow it with ${flag} in DENO_PERMISSION_ARGS`;
}
