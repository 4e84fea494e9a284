/**
 * `sed`.
 *
 * @module
 */

import { extendedRegex } from "../pattern.ts";
import { parseOptions, type Program, warn } from "../program.ts";
import { type Call, reason, resolve } from "../shell.ts";
import { readAll, type Stream } from "../streams.ts";
import { concat, fromBytes, toBytes } from "../syntax.ts";
import { basicSource } from "./grep.ts";

class SedError extends Error {}

type Address =
  | { kind: "line"; n: number }
  | { kind: "last" }
  | { kind: "regex"; regex?: RegExp }
  | { kind: "step"; from: number; by: number }
  | { kind: "plus"; n: number }
  | { kind: "multiple"; n: number };

interface Command {
  from?: Address;
  to?: Address;
  not: boolean;
  name: string;
  text: string;
  regex?: RegExp;
  by?: Piece[];
  global?: boolean;
  nth?: number;
  print?: boolean;
  execute?: boolean;
  file?: string;
  map?: Map<string, string>;
  /** Of `b`, `t`, `T` and `{` the command where it goes on. */
  target?: number;
  /** In the range between its addresses; where it ends, if that is a line. */
  inside?: boolean;
  until?: number;
}

/** A part of a replacement: text, a group, or how case changes from here on. */
type Piece = string | { group: number } | { change: string };

class Script {
  commands: Command[] = [];
  private at = 0;
  private text = "";
  private blocks: number[] = [];
  private labels = new Map<string, number>();

  constructor(private extended: boolean) {}

  private fail(message: string): never {
    throw new SedError(`-e expression #1, char ${this.at}: ${message}`);
  }

  regex(source: string, flags: string): RegExp | undefined {
    if (source === "") return undefined;
    const text = source.replace(/\\([nt])/g, (_, c) => c === "n" ? "\n" : "\t");
    let inner: string;
    try {
      inner = this.extended
        ? extendedRegex(
          text.replace(/^\*/, "\\*").replace(/\\`/g, "^").replace(/\\'/g, "$"),
        ).source
        : basicSource(text);
      return new RegExp(
        inner,
        "u" + (/i/i.test(flags) ? "i" : "") + (/m/i.test(flags) ? "m" : ""),
      );
    } catch (e) {
      this.fail(
        e instanceof SyntaxError ? "Invalid regular expression" : reason(e),
      );
    }
  }

  /** Text up to a delimiter. */
  private until(delimiter: string): string {
    let out = "";
    for (let inside = false;; this.at++) {
      const c = this.text[this.at];
      if (c === undefined) {
        this.fail("unterminated address regex or `s' command");
      }
      if (c === "\\") {
        const d = this.text[++this.at];
        out += d === delimiter && !/[|(){}+?]/.test(d)
          ? d
          : d === "\n"
          ? "\\\n"
          : "\\" + (d ?? "");
        continue;
      }
      if (c === "[" && !inside) {
        inside = true;
        const rest = /^\[\^?\]?/.exec(this.text.slice(this.at))![0];
        if (this.text.indexOf("]", this.at + rest.length) < 0) inside = false;
        else if (!rest.includes(delimiter)) {
          out += rest;
          this.at += rest.length - 1;
          continue;
        }
      } else if (c === "]") inside = false;
      if (c === delimiter && !inside) {
        this.at++;
        return out;
      }
      out += c;
    }
  }

  private address(): Address | undefined {
    const c = this.text[this.at];
    const number = /^\d+/.exec(this.text.slice(this.at, this.at + 20))?.[0];
    if (number !== undefined) {
      this.at += number.length;
      if (this.text[this.at] === "~") {
        this.at++;
        const by = /^\d*/.exec(this.text.slice(this.at, this.at + 20))![0];
        this.at += by.length;
        return { kind: "step", from: Number(number), by: Number(by) };
      }
      return { kind: "line", n: Number(number) };
    }
    if (c === "$") {
      this.at++;
      return { kind: "last" };
    }
    if (c === "/" || c === "\\") {
      if (c === "\\") this.at++;
      const delimiter = this.text[this.at++]!;
      const source = this.until(delimiter);
      const flags = /^[IM]*/.exec(this.text.slice(this.at, this.at + 4))![0];
      this.at += flags.length;
      return { kind: "regex", regex: this.regex(source, flags) };
    }
    if (c === "+" || c === "~") {
      const n = /^\d+/.exec(this.text.slice(this.at + 1, this.at + 20))?.[0];
      if (n === undefined) return undefined;
      this.at += n.length + 1;
      return c === "+"
        ? { kind: "plus", n: Number(n) }
        : { kind: "multiple", n: Number(n) };
    }
    return undefined;
  }

  private blanks(): void {
    while (/[ \t]/.test(this.text[this.at] ?? "")) this.at++;
  }

  private line(): string {
    const end = this.text.indexOf("\n", this.at);
    const line = this.text.slice(this.at, end < 0 ? undefined : end);
    this.at = end < 0 ? this.text.length : end;
    return line;
  }

  add(text: string): void {
    this.text = text;
    this.at = 0;
    for (;;) {
      while (/[\s;]/.test(this.text[this.at] ?? "")) this.at++;
      if (this.at >= this.text.length) return;
      if (this.text[this.at] === "#") {
        this.line();
        continue;
      }
      const command: Command = { not: false, name: "", text: "" };
      command.from = this.address();
      if (command.from !== undefined) {
        this.blanks();
        if (this.text[this.at] === ",") {
          this.at++;
          this.blanks();
          command.to = this.address() ?? this.fail("unexpected `,'");
        }
      }
      this.blanks();
      while (this.text[this.at] === "!") {
        command.not = true;
        this.at++;
        this.blanks();
      }
      const name = command.name = this.text[this.at++] ??
        this.fail("missing command");
      const index = this.commands.push(command) - 1;
      switch (name) {
        case "{":
          this.blocks.push(index);
          continue;
        case "}": {
          const open = this.blocks.pop() ?? this.fail("unexpected `}'");
          this.commands[open]!.target = index;
          break;
        }
        case ":":
          this.blanks();
          command.text = /^[^\s;]*/.exec(this.line2())![0];
          this.at += command.text.length;
          this.labels.set(command.text, index);
          continue;
        case "b":
        case "t":
        case "T":
          this.blanks();
          command.text = /^[^\s;}]*/.exec(this.line2())![0];
          this.at += command.text.length;
          break;
        case "a":
        case "i":
        case "c": {
          this.blanks();
          if (this.text[this.at] === "\\") {
            this.at++;
            // What follows the backslash on its line is the text too.
            this.blanks();
            if (this.text[this.at] === "\n") this.at++;
          }
          let out = "";
          for (
            ;
            this.at < this.text.length && this.text[this.at] !== "\n";
            this.at++
          ) {
            if (this.text[this.at] === "\\") {
              const d = this.text[++this.at];
              if (d === undefined) break;
              out += d === "t" && out !== "" ? "\t" : d;
            } else out += this.text[this.at];
          }
          command.text = out;
          continue;
        }
        case "r":
        case "R":
        case "w":
        case "W":
          this.blanks();
          command.file = this.line();
          continue;
        case "q":
        case "Q":
        case "l":
        case "L": {
          this.blanks();
          const n = /^\d*/.exec(this.line2())![0];
          this.at += n.length;
          command.text = n;
          break;
        }
        case "s": {
          const delimiter = this.text[this.at++];
          if (
            delimiter === undefined || delimiter === "\n" || delimiter === "\\"
          ) this.fail("unterminated `s' command");
          const source = this.until(delimiter);
          // In the replacement brackets are nothing special.
          let by = "";
          for (;; this.at++) {
            const c = this.text[this.at];
            if (c === undefined) this.fail("unterminated `s' command");
            if (c === "\\") {
              const d = this.text[++this.at] ?? "";
              by += d === delimiter && d !== "&" && !/[0-9nLUElu]/.test(d)
                ? d
                : "\\" + d;
              continue;
            }
            if (c === delimiter) {
              this.at++;
              break;
            }
            by += c;
          }
          let flags = "";
          for (;;) {
            const c = this.text[this.at] ?? "";
            if (c === "w") {
              this.at++;
              this.blanks();
              command.file = this.line();
              break;
            }
            if (!/[gpiIemM0-9]/.test(c) || c === "") break;
            flags += c;
            this.at++;
          }
          command.global = flags.includes("g");
          command.print = flags.includes("p");
          command.execute = flags.includes("e");
          command.nth = Number(/\d+/.exec(flags)?.[0] ?? 1);
          command.regex = this.regex(source, flags);
          command.by = replacement(by);
          break;
        }
        case "y": {
          const delimiter = this.text[this.at++]!;
          const undo = (
            t: string,
          ) => [...t.replace(/\\([\\n])/g, (_, c) => c === "n" ? "\n" : "\\")];
          const from = undo(this.until(delimiter)),
            to = undo(this.until(delimiter));
          if (from.length !== to.length) {
            this.fail("strings for `y' command are different lengths");
          }
          command.map = new Map(from.map((c, i) => [c, to[i]!]));
          break;
        }
        default:
          if (!"dDgGhHnNpPxze=F".includes(name)) {
            this.fail(`unknown command: \`${name}'`);
          }
      }
      this.blanks();
      const end = this.text[this.at];
      if (
        end !== undefined && end !== "\n" && end !== ";" && end !== "}" &&
        end !== "#"
      ) this.fail("extra characters after command");
    }
  }

  private line2(): string {
    const end = this.text.indexOf("\n", this.at);
    return this.text.slice(this.at, end < 0 ? undefined : end);
  }

  finish(): void {
    if (this.blocks.length > 0) {
      throw new SedError("-e expression #1, char 0: unmatched `{'");
    }
    for (const command of this.commands) {
      if (!"btT".includes(command.name)) continue;
      if (command.text === "") command.target = this.commands.length;
      else {
        command.target = this.labels.get(command.text);
        if (command.target === undefined) {
          throw new SedError(
            `-e expression #1, char ${this.text.length}: can't find label for jump to \`${command.text}'`,
          );
        }
      }
    }
  }
}

function replacement(text: string): Piece[] {
  const pieces: Piece[] = [];
  let plain = "";
  const flush = () => {
    if (plain !== "") pieces.push(plain);
    plain = "";
  };
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (c === "&") {
      flush();
      pieces.push({ group: 0 });
    } else if (c === "\\" && i + 1 < text.length) {
      const d = text[++i]!;
      if (/\d/.test(d)) {
        flush();
        pieces.push({ group: Number(d) });
      } else if (/[LUElu]/.test(d)) {
        flush();
        pieces.push({ change: d });
      } else {plain += d === "n"
          ? "\n"
          : d === "t"
          ? "\t"
          : d === "r"
          ? "\r"
          : d;}
    } else plain += c;
  }
  flush();
  return pieces;
}

function build(pieces: Piece[], match: string[]): string {
  let out = "", mode = "", once = "";
  for (const piece of pieces) {
    if (typeof piece === "object" && "change" in piece) {
      if (piece.change === "u" || piece.change === "l") once = piece.change;
      else mode = piece.change === "E" ? "" : piece.change;
      continue;
    }
    let text = typeof piece === "string" ? piece : match[piece.group] ?? "";
    if (mode === "U") text = text.toUpperCase();
    else if (mode === "L") text = text.toLowerCase();
    if (once !== "" && text !== "") {
      const [first = "", ...rest] = text;
      text = (once === "u" ? first.toUpperCase() : first.toLowerCase()) +
        rest.join("");
      once = "";
    }
    out += text;
  }
  return out;
}

/** Lines of many inputs one after another, with a look at whether another comes. */
class Lines {
  private held: Uint8Array = new Uint8Array();
  private texts: string[] = [];
  private at = 0;
  private stream: Stream | undefined;
  private ended = false;
  /** The line that was given had a newline. */
  newline = true;
  status = 0;

  constructor(
    private call: Call,
    private names: string[],
    private mark: string,
  ) {}

  private async more(): Promise<boolean> {
    for (;;) {
      if (this.stream === undefined) {
        const name = this.names.shift();
        if (name === undefined) return false;
        try {
          if (name !== "-" && this.call.shell.kind(name) === "directory") {
            warn(this.call, `couldn't read ${name}: Is a directory`);
            this.status = 2;
            continue;
          }
          this.stream = name === "-"
            ? this.call.stdin.hold()
            : this.call.shell.openFile(name, "<");
        } catch (e) {
          warn(this.call, `can't read ${reason(e)}`);
          this.status = 2;
          continue;
        }
        this.ended = false;
      }
      const piece = await this.stream.read();
      if (piece === null) {
        this.stream.release();
        this.stream = undefined;
        this.ended = true;
        if (this.held.length > 0) {
          this.texts = [fromBytes(this.held)];
          this.at = 0;
          this.held = new Uint8Array();
          this.partial = true;
          return true;
        }
        continue;
      }
      const all = this.held.length > 0 ? concat([this.held, piece]) : piece;
      const last = all.lastIndexOf(this.mark.charCodeAt(0));
      this.held = all.slice(last + 1);
      if (last < 0) continue;
      this.texts = fromBytes(all.subarray(0, last)).split(this.mark);
      this.at = 0;
      this.partial = false;
      return true;
    }
  }
  private partial = false;

  async next(): Promise<string | undefined> {
    if (this.at >= this.texts.length && !await this.more()) return undefined;
    const text = this.texts[this.at++]!;
    this.newline = !(this.partial && this.at === this.texts.length);
    return text;
  }

  get waits(): boolean {
    return this.at >= this.texts.length && (this.stream?.waits ?? false);
  }

  async last(): Promise<boolean> {
    return this.at >= this.texts.length && !await this.more();
  }

  close(): void {
    this.stream?.release();
  }
}

export const sed: Program = async (call) => {
  // -i has its value in the same word only.
  const args = call.args.map((a) =>
    a === "--in-place"
      ? "-i"
      : a.startsWith("--in-place=")
      ? "-i" + a.slice(11)
      : a
  );
  let inPlace: string | undefined;
  const plainArgs: string[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!;
    const found = /^-([nErsuz]*)i(.*)$/.exec(arg);
    if (
      found !== null && !arg.startsWith("--") && args[i - 1] !== "-e" &&
      args[i - 1] !== "-f"
    ) {
      inPlace = found[2]!;
      if (found[1] !== "") plainArgs.push("-" + found[1]);
    } else plainArgs.push(arg);
  }
  const { options, all, rest } = parseOptions(plainArgs, "nErszue:f:l:b", {
    quiet: "n",
    silent: "n",
    "regexp-extended": "E",
    separate: "s",
    "null-data": "z",
    unbuffered: "u",
    expression: "e",
    file: "f",
    posix: "b",
    debug: "b",
  });
  const quiet = options.has("n"), mark = options.has("z") ? "\0" : "\n";
  const script = new Script(options.has("E") || options.has("r"));
  const names = [...rest];
  try {
    const pieces: string[] = [];
    for (const [o, v] of all) {
      if (o === "e") pieces.push(v);
      if (o === "f") {
        const stream = v === "-"
          ? call.stdin.hold()
          : call.shell.openFile(v, "<");
        pieces.push(fromBytes(await readAll(stream)).replace(/^#!.*\n/, ""));
        stream.release();
      }
    }
    if (pieces.length === 0) {
      if (names.length === 0) {
        await call.stderr.write(
          toBytes(
            "Usage: sed [OPTION]... {script-only-if-no-other-script} [input-file]...\n",
          ),
        );
        return 1;
      }
      pieces.push(names.shift()!);
    }
    // A text that ends with a backslash goes on in the next expression.
    script.add(pieces.join("\n"));
    script.finish();
  } catch (e) {
    if (!(e instanceof SedError) && !(e instanceof Error)) throw e;
    return warn(call, reason(e));
  }
  const files = new Map<string, Stream>();
  const fileOf = (name: string): Stream => {
    if (name === "/dev/stdout") return call.stdout;
    if (name === "/dev/stderr") return call.stderr;
    let stream = files.get(name);
    if (stream === undefined) {
      files.set(name, stream = call.shell.openFile(name, ">"));
    }
    return stream;
  };
  for (const c of script.commands) {
    if (
      c.file !== undefined &&
      (c.name === "w" || c.name === "s" || c.name === "W")
    ) fileOf(c.file);
  }
  let status = 0;
  const run = async (
    inputs: string[],
    write: (text: string) => void | Promise<void>,
  ): Promise<boolean> => {
    const lines = new Lines(call, inputs, mark);
    let space = "",
      hold = "",
      n = 0,
      quit = false,
      replaced = false,
      lastRegex: RegExp | undefined;
    let out = "";
    const flush = async () => {
      const text = out;
      out = "";
      if (text !== "") await write(text);
    };
    let lacking = false;
    const put = (text: string, newline = true) => {
      // A last line without a newline is followed by one if more comes.
      if (lacking) out += mark;
      lacking = !newline;
      out += text + (newline ? mark : "");
    };
    let appended: (() => void | Promise<void>)[] = [];
    const matches = async (a: Address): Promise<boolean> => {
      switch (a.kind) {
        case "line":
          return a.n === n;
        case "last":
          return await lines.last();
        case "step":
          return a.by === 0
            ? n === a.from
            : n >= a.from && (n - a.from) % a.by === 0;
        case "regex": {
          const regex = a.regex ?? lastRegex ?? /(?:)/u;
          lastRegex = regex;
          return regex.test(space);
        }
        default:
          return false;
      }
    };
    const selected = async (c: Command): Promise<boolean> => {
      if (c.from === undefined) return true;
      if (c.to === undefined) return await matches(c.from);
      if (c.inside) {
        if (c.until !== undefined) {
          if (n >= c.until) c.inside = false;
          return n <= c.until;
        }
        if (await matches(c.to)) c.inside = false;
        return true;
      }
      const zero = c.from.kind === "line" && c.from.n === 0;
      if (!(zero && n === 1) && !await matches(c.from)) return false;
      c.inside = true;
      c.until = c.to.kind === "line"
        ? c.to.n
        : c.to.kind === "plus"
        ? n + c.to.n
        : c.to.kind === "multiple"
        ? Math.ceil(n / c.to.n) * c.to.n
        : undefined;
      if (c.until !== undefined && c.until <= n) c.inside = false;
      if (zero && await matches(c.to)) c.inside = false;
      return true;
    };
    const read = async (): Promise<boolean> => {
      if (lines.waits) await flush();
      const text = await lines.next();
      if (text === undefined) return false;
      space = text;
      n++;
      return true;
    };
    const ending = async () => {
      if (!quiet) put(space, lines.newline);
      for (const a of appended) await a();
      appended = [];
    };
    let restart = false;
    cycle: for (;;) {
      if (!restart && !await read()) break;
      restart = false;
      replaced = false;
      for (let i = 0; i < script.commands.length; i++) {
        const c = script.commands[i]!;
        if (c.name === "}" || c.name === ":") continue;
        if (await selected(c) === c.not) {
          if (c.name === "{") i = c.target!;
          continue;
        }
        switch (c.name) {
          case "d":
            for (const a of appended) await a();
            appended = [];
            continue cycle;
          case "D": {
            const at = space.indexOf("\n");
            for (const a of appended) await a();
            appended = [];
            if (at >= 0) {
              space = space.slice(at + 1);
              restart = true;
            }
            continue cycle;
          }
          case "p":
            put(space);
            break;
          case "P":
            put(space.split("\n")[0]!);
            break;
          case "n":
            if (await lines.last()) {
              if (!quiet) put(space, lines.newline);
              quit = true;
              break cycle;
            }
            if (!quiet) put(space);
            for (const a of appended) await a();
            appended = [];
            await read();
            break;
          case "N": {
            if (await lines.last()) {
              if (!quiet) put(space, lines.newline);
              for (const a of appended) await a();
              appended = [];
              quit = true;
              break cycle;
            }
            for (const a of appended) await a();
            appended = [];
            const before = space;
            await read();
            space = before + "\n" + space;
            break;
          }
          case "g":
            space = hold;
            break;
          case "G":
            space += "\n" + hold;
            break;
          case "h":
            hold = space;
            break;
          case "H":
            hold += "\n" + space;
            break;
          case "x":
            [space, hold] = [hold, space];
            break;
          case "z":
            space = "";
            break;
          case "=":
            out += n + "\n";
            break;
          case "F":
            put("-");
            break;
          case "l":
            put(
              [...toBytes(space)].map((b) => {
                const known = {
                  7: "\\a",
                  8: "\\b",
                  12: "\\f",
                  10: "\\n",
                  13: "\\r",
                  9: "\\t",
                  11: "\\v",
                  92: "\\\\",
                } as Record<number, string>;
                return known[b] ??
                  (b >= 32 && b < 127
                    ? String.fromCharCode(b)
                    : "\\" + b.toString(8).padStart(3, "0"));
              }).join("") + "$",
            );
            break;
          case "a":
            appended.push(() => put(c.text));
            break;
          case "i":
            put(c.text);
            break;
          case "c":
            if (c.to === undefined || c.not || !c.inside) put(c.text);
            for (const a of appended) await a();
            appended = [];
            continue cycle;
          case "r":
            appended.push(async () => {
              try {
                const stream = call.shell.openFile(c.file!, "<");
                const text = fromBytes(await readAll(stream));
                stream.release();
                if (lacking) out += mark;
                lacking = false;
                out += text;
              } catch {
                // A file that is not there is an empty one.
              }
            });
            break;
          case "w":
            await fileOf(c.file!).write(toBytes(space + "\n"));
            break;
          case "W":
            await fileOf(c.file!).write(toBytes(space.split("\n")[0] + "\n"));
            break;
          case "q":
          case "Q":
            status = Number(c.text) || status;
            if (c.name === "q") await ending();
            quit = true;
            break cycle;
          case "y": {
            let text = "";
            for (const d of space) text += c.map!.get(d) ?? d;
            space = text;
            break;
          }
          case "b":
            i = c.target! - 1;
            break;
          case "t":
            if (replaced) i = c.target! - 1;
            replaced = false;
            break;
          case "T":
            if (!replaced) i = c.target! - 1;
            replaced = false;
            break;
          case "s": {
            const regex = c.regex ?? lastRegex ?? /(?:)/u;
            lastRegex = regex;
            const every = new RegExp(regex.source, regex.flags + "g");
            let count = 0, done = false;
            space = space.replace(every, (...m) => {
              count++;
              if (count < c.nth! || done && !c.global) return m[0];
              done = true;
              return build(c.by!, m as string[]);
            });
            if (!done) break;
            replaced = true;
            if (c.execute) {
              const { output } = await call.shell.capture((copy) =>
                copy.script(space)
              );
              space = fromBytes(output).replace(/\n$/, "");
            }
            if (c.print) put(space);
            if (c.file !== undefined) {
              await fileOf(c.file).write(toBytes(space + "\n"));
            }
            break;
          }
        }
      }
      await ending();
      if (out.length > 1 << 15) await flush();
    }
    await flush();
    lines.close();
    status = Math.max(status, lines.status);
    return quit;
  };
  try {
    if (inPlace !== undefined) {
      if (names.length === 0) return warn(call, "no input files");
      for (const name of names) {
        const path = resolve(call.shell.cwd, name);
        let before: Uint8Array;
        try {
          if (call.shell.kind(name) === "directory") {
            status = 4;
            warn(call, `couldn't edit ${name}: not a regular file`);
            continue;
          }
          before = call.shell.files.readFile(path);
        } catch (e) {
          warn(call, `can't read ${name}: ${reason(e)}`);
          status = 2;
          continue;
        }
        let text = "";
        for (const c of script.commands) c.inside = false;
        await run([name], (t) => void (text += t));
        if (inPlace !== "") {
          const backup = inPlace.includes("*")
            ? inPlace.replace("*", name)
            : name + inPlace;
          call.shell.files.writeFile(resolve(call.shell.cwd, backup), before);
        }
        call.shell.files.writeFile(path, toBytes(text));
      }
    } else if (options.has("s")) {
      for (const name of names.length === 0 ? ["-"] : names) {
        if (await run([name], (t) => call.stdout.write(toBytes(t)))) break;
      }
    } else {await run(names.length === 0 ? ["-"] : names, (t) =>
        call.stdout.write(toBytes(t)));}
  } finally {
    for (const stream of files.values()) stream.release();
  }
  return status;
};
