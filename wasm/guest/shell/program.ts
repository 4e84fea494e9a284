/**
 * What programs have in common: their options, their input and what they say.
 *
 * @module
 */

import { type Call, reason, resolve } from "./shell.ts";
import { lines, type Stream } from "./streams.ts";
import { toBytes } from "./syntax.ts";

export type Program = (call: Call) => number | Promise<number>;

/** An error in how a program was called. */
export class Usage extends Error {}

/** A program's options: letters, those with `:` after them take a value; `long` names the letters of long ones. */
export function parseOptions(
  args: string[],
  letters: string,
  long: Record<string, string> = {},
): { options: Map<string, string>; all: [string, string][]; rest: string[] } {
  const all: [string, string][] = [], rest: string[] = [];
  const takes = (letter: string) =>
    letters[letters.indexOf(letter) + 1] === ":";
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!;
    if (arg === "--") {
      rest.push(...args.slice(i + 1));
      break;
    }
    if (arg.startsWith("--")) {
      const at = arg.indexOf("="),
        given = arg.slice(2, at < 0 ? undefined : at);
      const names = Object.keys(long).filter((n) => n === given);
      if (names.length === 0) {
        names.push(...Object.keys(long).filter((n) => n.startsWith(given)));
      }
      if (names.length === 0) throw new Usage(`unrecognized option '${arg}'`);
      const letter = long[names[0]!]!;
      if (!takes(letter)) all.push([letter, at < 0 ? "" : arg.slice(at + 1)]);
      else if (at >= 0) all.push([letter, arg.slice(at + 1)]);
      else if (i + 1 < args.length) all.push([letter, args[++i]!]);
      else throw new Usage(`option '${arg}' requires an argument`);
      continue;
    }
    if (arg[0] !== "-" || arg === "-") {
      rest.push(arg);
      // `+` in front: options end at the first word.
      if (letters[0] === "+") {
        rest.push(...args.slice(i + 1));
        break;
      }
      continue;
    }
    for (let j = 1; j < arg.length; j++) {
      const letter = arg[j]!;
      if (letter === ":" || letter === "+" || !letters.includes(letter)) {
        throw new Usage(`invalid option -- '${letter}'`);
      }
      if (!takes(letter)) {
        all.push([letter, ""]);
        continue;
      }
      const value = j + 1 < arg.length ? arg.slice(j + 1) : args[++i];
      if (value === undefined) {
        throw new Usage(`option requires an argument -- '${letter}'`);
      }
      all.push([letter, value]);
      break;
    }
  }
  return { options: new Map(all), all, rest };
}

/** Says something on standard error, with the program's name. */
export function warn(call: Call, message: string): number {
  const written = call.stderr.write(toBytes(`${call.name}: ${message}\n`));
  written?.catch(() => {});
  return 1;
}

/** Writes text, a large one in pieces. */
export async function write(
  call: Call,
  text: string | Uint8Array,
): Promise<void> {
  const written = call.stdout.write(
    typeof text === "string" ? toBytes(text) : text,
  );
  if (written !== undefined) await written;
}

/** Collects output, and writes it now and then. */
export class Writer {
  private text = "";
  constructor(private call: Call) {}
  add(text: string): void | Promise<void> {
    this.text += text;
    if (this.text.length > 1 << 15) return this.flush();
  }
  flush(): void | Promise<void> {
    const { text } = this;
    this.text = "";
    if (text !== "") return this.call.stdout.write(toBytes(text));
  }
}

/** Opens a file to read, `-` as standard input. */
export function open(call: Call, name: string): Stream {
  return name === "-" ? call.stdin.hold() : call.shell.openFile(name, "<");
}

export function pathOf(call: Call, name: string): string {
  return resolve(call.shell.cwd, name);
}

/** Goes over inputs, standard input if there are none; one that can't be opened is told. Gives the status. */
export async function each(
  call: Call,
  names: string[],
  run: (stream: Stream, name: string) => void | Promise<void>,
): Promise<number> {
  let status = 0;
  for (const name of names.length === 0 ? ["-"] : names) {
    let stream: Stream;
    try {
      if (name !== "-" && call.shell.kind(name) === "directory") {
        throw new Error(`${name}: Is a directory`);
      }
      stream = open(call, name);
    } catch (e) {
      status = warn(call, reason(e));
      continue;
    }
    try {
      await run(stream, name);
    } finally {
      stream.release();
    }
  }
  return status;
}

/** All lines of the inputs. */
export async function allLines(
  call: Call,
  names: string[],
  delimiter = 10,
): Promise<{ all: string[]; status: number }> {
  const all: string[] = [];
  const status = await each(call, names, async (stream) => {
    for await (const { text } of lines(stream, delimiter)) all.push(text);
  });
  return { all, status };
}

/** Whether a comparison holds for an order, as `compare` of a sort gives it. */
export function holds(op: string, order: number): boolean {
  switch (op) {
    case "==":
      return order === 0;
    case "!=":
      return order !== 0;
    case "<":
      return order < 0;
    case "<=":
      return order <= 0;
    case ">":
      return order > 0;
    default: // >=
      return order >= 0;
  }
}
