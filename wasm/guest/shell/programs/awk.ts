/**
 * `awk`: a program becomes functions over the records of its input. Where it runs other
 * commands or waits for input in its midst, all of them may wait; else none does.
 *
 * @module
 */

import { floating } from "../format.ts";
import { extendedRegex } from "../pattern.ts";
import { type Program, warn } from "../program.ts";
import { type Call, collate, reason } from "../shell.ts";
import { Collector, Given, type Stream } from "../streams.ts";
import { concat, escapes, fromBytes, toBytes } from "../syntax.ts";
import { offsetOf, strftime } from "../time.ts";

/** Text of the input's, which is a number too if it looks like one. */
class Input {
  private known?: number;
  constructor(readonly text: string) {}
  /** Its number, NaN if it is none. */
  get number(): number {
    return this.known ??=
      /^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$/.test(this.text)
        ? Number(this.text)
        : NaN;
  }
}
type Value = number | string | Input | undefined;
type Run<T = Value> = () => T | Promise<T>;
type Table = Map<string, Value>;

class AwkError extends Error {}
class Next {
  constructor(readonly file: boolean) {}
}
class Exit {}
class Break {}
class Continue {}
class Return {
  constructor(readonly value: Value) {}
}

interface Token {
  kind:
    | "number"
    | "string"
    | "regex"
    | "name"
    | "call"
    | "function"
    | "keyword"
    | "op"
    | "newline"
    | "end";
  text: string;
  line: number;
}

const KEYWORDS = new Set(
  "BEGIN END function func if else while for do break continue next nextfile exit return delete in getline print printf switch case default BEGINFILE ENDFILE"
    .split(" "),
);
const FUNCTIONS = new Set(
  "length substr index split sub gsub match sprintf sin cos atan2 exp log sqrt int rand srand tolower toupper system close fflush gensub strftime systime mktime and or xor lshift rshift compl asort asorti strtonum patsplit"
    .split(" "),
);

function tokenize(source: string): Token[] {
  const tokens: Token[] = [];
  let at = 0, line = 1;
  const divides = () => {
    const last = tokens.at(-1);
    return last !== undefined &&
      (["number", "string", "name"].includes(last.kind) || last.text === ")" ||
        last.text === "]" || last.text === "$" || last.text === "++" ||
        last.text === "--" ||
        last.kind === "function" && last.text === "length");
  };
  const add = (kind: Token["kind"], text: string) =>
    tokens.push({ kind, text, line });
  while (at < source.length) {
    const rest = source.slice(at, at + 400);
    let m: RegExpExecArray | null;
    if ((m = /^[ \t\r]+|^\\\r?\n|^#[^\n]*/.exec(rest)) !== null) {
      if (m[0].includes("\n")) line++;
      at += m[0].length;
      if (m[0].length === 400) continue;
    } else if (source[at] === "\n") {
      add("newline", "\n");
      line++;
      at++;
    } else if (
      (m = /^(0[xX][0-9a-fA-F]+|(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?)/.exec(
        rest,
      )) !== null
    ) {
      add("number", m[0]);
      at += m[0].length;
    } else if (source[at] === '"') {
      let end = at + 1;
      while (end < source.length && source[end] !== '"') {
        end += source[end] === "\\" ? 2 : 1;
      }
      if (end >= source.length) {
        throw new AwkError(`line ${line}: unterminated string`);
      }
      const text = source.slice(at + 1, end).replace(/\\\n/g, "");
      add(
        "string",
        text.replace(
          /\\(\/|")|\\([^abfnrtv\\0-7x])/g,
          (_, a, b) => a ?? "\\\\" + b,
        ),
      );
      const token = tokens.at(-1)!;
      token.text = escapes(token.text, "$'");
      at = end + 1;
    } else if (source[at] === "/" && !divides()) {
      let end = at + 1, inside = false;
      for (; end < source.length && (source[end] !== "/" || inside); end++) {
        if (source[end] === "\\") end++;
        else if (source[end] === "[") {
          if (!inside && source[end + 1] === "]") end++;
          else if (
            !inside && source[end + 1] === "^" && source[end + 2] === "]"
          ) end += 2;
          inside = true;
        } else if (source[end] === "]") inside = false;
        else if (source[end] === "\n") {
          throw new AwkError(`line ${line}: unterminated regexp`);
        }
      }
      if (end >= source.length) {
        throw new AwkError(`line ${line}: unterminated regexp`);
      }
      add("regex", source.slice(at + 1, end).replace(/\\\//g, "/"));
      at = end + 1;
    } else if ((m = /^[A-Za-z_]\w*/.exec(rest)) !== null) {
      const name = m[0];
      at += name.length;
      if (KEYWORDS.has(name)) {
        add("keyword", name === "func" ? "function" : name);
      } else if (FUNCTIONS.has(name)) add("function", name);
      else add(source[at] === "(" ? "call" : "name", name);
    } else if (
      (m =
        /^(\*\*=|\*\*|\+\+|--|\+=|-=|\*=|\/=|%=|\^=|==|<=|>=|!=|&&|\|\||>>|!~|[-+*\/%^!<>|?:~$=(){}\[\],;])/
          .exec(rest)) !== null
    ) {
      add("op", m[0] === "**" ? "^" : m[0] === "**=" ? "^=" : m[0]);
      at += m[0].length;
    } else {throw new AwkError(
        `line ${line}: unexpected character '${source[at]}'`,
      );}
  }
  add("newline", "\n");
  add("end", "");
  return tokens;
}

/** Records of an input. */
class Records {
  private text = "";
  private at = 0;
  private ended = false;
  private held: Uint8Array = new Uint8Array();
  terminator = "";
  constructor(private stream: Stream) {}

  /** The next record; null at the end, undefined where more has to be awaited. */
  next(separator: string): string | null | undefined {
    for (;;) {
      const found = this.cut(separator);
      if (found !== undefined) return found;
      if (this.ended) return null;
      if (this.stream.waits) return undefined;
      this.take(this.stream.read() as Uint8Array | null);
    }
  }
  async fill(): Promise<void> {
    this.take(await this.stream.read());
  }
  private take(piece: Uint8Array | null): void {
    let bytes = this.held.length === 0
      ? piece ?? new Uint8Array()
      : concat([this.held, piece ?? new Uint8Array()]);
    this.held = new Uint8Array();
    if (piece === null) this.ended = true;
    else {
      // A character that is cut in two waits.
      for (let back = 1; back <= Math.min(3, bytes.length); back++) {
        const b = bytes[bytes.length - back]!;
        if (b < 0x80) break;
        if (b >= 0xc0) {
          if ((b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4) > back) {
            this.held = bytes.slice(bytes.length - back);
            bytes = bytes.subarray(0, bytes.length - back);
          }
          break;
        }
      }
    }
    this.text = this.text.slice(this.at) + fromBytes(bytes);
    this.at = 0;
  }
  private cut(separator: string): string | undefined {
    const { text } = this;
    if (separator === "") {
      while (text[this.at] === "\n") this.at++;
      const end = text.indexOf("\n\n", this.at);
      if (end >= 0) return this.piece(end, end + 2);
      if (this.ended && this.at < text.length) {
        return this.piece(
          text.endsWith("\n") ? text.length - 1 : text.length,
          text.length,
        );
      }
      return undefined;
    }
    if (separator.length === 1) {
      const end = text.indexOf(separator, this.at);
      if (end >= 0) return this.piece(end, end + 1);
    } else {
      const regex = new RegExp(regexOf(separator).source, "ug");
      regex.lastIndex = this.at;
      const m = regex.exec(text);
      // At the text's end it might go on.
      if (
        m !== null && m[0] !== "" &&
        (this.ended || m.index + m[0].length < text.length)
      ) return this.piece(m.index, m.index + m[0].length);
    }
    if (this.ended && this.at < text.length) {
      return this.piece(text.length, text.length);
    }
    return undefined;
  }
  private piece(end: number, next: number): string {
    const found = this.text.slice(this.at, end);
    this.terminator = this.text.slice(end, next);
    this.at = next;
    return found;
  }
  close(): void {
    this.stream.release();
  }
}

const regexes = new Map<string, RegExp>();
function regexOf(source: string): RegExp {
  let found = regexes.get(source);
  if (found === undefined) {
    try {
      found = extendedRegex(
        source.replace(/\\y/g, "\\b").replace(/\\"/g, '"').replace(
          /\\([nt])/g,
          (_, c) => c === "n" ? "\n" : "\t",
        ),
        false,
        true,
      );
    } catch {
      throw new AwkError(`regular expression compile failed: ${source}`);
    }
    if (regexes.size > 500) regexes.clear();
    regexes.set(source, found);
  }
  return found;
}

/** A number at a text's beginning. */
function leading(text: string): number {
  const m = /^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?/.exec(text);
  return m === null ? 0 : Number(m[0]);
}

function number(value: Value): number {
  if (typeof value === "number") return value;
  if (value === undefined) return 0;
  if (typeof value === "string") return leading(value);
  return Number.isNaN(value.number) ? leading(value.text) : value.number;
}

function truth(value: Value): boolean {
  if (typeof value === "number") return value !== 0;
  if (value === undefined) return false;
  if (typeof value === "string") return value !== "";
  return Number.isNaN(value.number) ? value.text !== "" : value.number !== 0;
}

interface Place {
  get: Run;
  set: (value: Value) => void | Promise<void>;
}

class Awk {
  private tokens: Token[] = [];
  private at = 0;
  private globals = new Map<string, Value | Table>();
  private functions = new Map<
    string,
    { parameters: string[]; body?: Run<void> }
  >();
  /** The locals of the function that runs. */
  private frame: (Value | Table)[] = [];
  private locals: string[] = [];
  private rules: { test?: Run; end?: Run; inside: boolean; body: Run<void> }[] =
    [];
  private begin: Run<void>[] = [];
  private finish: Run<void>[] = [];
  private fields: Value[] = [];
  private split = true;
  private record: Value = undefined;
  private waits = false;
  private out = "";
  private outputs = new Map<
    string,
    { stream?: Stream; text: string; command: boolean }
  >();
  private inputs = new Map<string, Records>();
  private main: Records | undefined;
  private files: string[] = [];
  private fileAt = 0;
  private seed = 0;
  private state = 0;
  status = 0;
  private depth = 0;

  constructor(private call: Call) {
    for (
      const [name, value] of Object.entries({
        FS: " ",
        OFS: " ",
        ORS: "\n",
        RS: "\n",
        NR: 0,
        FNR: 0,
        SUBSEP: "\x1c",
        CONVFMT: "%.6g",
        OFMT: "%.6g",
        RSTART: 0,
        RLENGTH: -1,
        FILENAME: "",
        RT: "",
      })
    ) {
      this.globals.set(name, value);
    }
    this.globals.set(
      "ENVIRON",
      new Map(
        Object.entries(call.shell.environment()).map((
          [n, v],
        ) => [n, new Input(v)]),
      ),
    );
  }

  assign(name: string, value: string): void {
    this.globals.set(name, new Input(escapes(value, "$'")));
  }

  private text(value: Value, form = "CONVFMT"): string {
    if (typeof value === "string") return value;
    if (value === undefined) return "";
    if (typeof value === "number") {
      if (Number.isInteger(value) && Math.abs(value) < 1e16) {
        return value === 0 ? "0" : String(value);
      }
      if (!Number.isFinite(value)) {
        return Number.isNaN(value) ? "nan" : value < 0 ? "-inf" : "inf";
      }
      if (Number.isInteger(value)) return BigInt(value).toString();
      const given = this.globals.get(form) as Value;
      return given === "%.6g"
        ? floating(value, "g", 6, "")
        : this.sprintf(this.text(given), [value]);
    }
    return value.text;
  }

  // The grammar.

  private get token(): Token {
    return this.tokens[this.at]!;
  }
  private is(text: string): boolean {
    const { kind, text: t } = this.token;
    return t === text &&
      (kind === "op" || kind === "keyword" || kind === "newline");
  }
  private take(text: string): boolean {
    if (!this.is(text)) return false;
    this.at++;
    return true;
  }
  private fail(): never {
    const { text, line, kind } = this.token;
    throw new AwkError(
      `line ${line}: syntax error at or near ${
        kind === "end"
          ? "end of program"
          : kind === "newline"
          ? "end of line"
          : text
      }`,
    );
  }
  private expect(text: string): void {
    if (!this.take(text)) this.fail();
  }
  private newlines(): void {
    while (this.token.kind === "newline") this.at++;
  }
  private ends(): void {
    while (this.token.kind === "newline" || this.is(";")) this.at++;
  }

  parse(source: string): void {
    this.tokens = tokenize(source);
    this.at = 0;
    this.waits = this.tokens.some((t, i) =>
      t.kind === "function" &&
        (t.text === "system" || t.text === "close" || t.text === "fflush") ||
      t.kind === "keyword" && t.text === "getline" ||
      t.kind === "op" && t.text === "|" && i > 0
    );
    this.ends();
    while (this.token.kind !== "end") {
      if (this.take("function")) this.define();
      else if (this.take("BEGIN")) {
        this.begin.push(this.block());
      } else if (this.take("END")) {
        this.finish.push(this.block());
      } else {
        let test: Run | undefined, end: Run | undefined;
        if (!this.is("{")) {
          test = this.expression();
          if (this.take(",")) {
            this.newlines();
            end = this.expression();
          }
        }
        const body = this.is("{") ? this.block() : () =>
          this.print(
            this.text(this.record, "OFMT") +
              this.text(this.globals.get("ORS") as Value),
          );
        this.rules.push({ test, end, inside: false, body });
      }
      this.ends();
    }
    for (const [name, { body }] of this.functions) {
      if (body === undefined) {
        throw new AwkError(`function ${name} is not defined`);
      }
    }
  }

  private define(): void {
    const { text: name } = this.token;
    this.at++;
    this.expect("(");
    const parameters: string[] = [];
    while (!this.take(")")) {
      if (this.token.kind !== "name" && this.token.kind !== "call") this.fail();
      parameters.push(this.token.text);
      this.at++;
      this.take(",");
      this.newlines();
    }
    this.newlines();
    const entry = this.functions.get(name) ?? { parameters };
    entry.parameters = parameters;
    this.functions.set(name, entry);
    this.locals = parameters;
    entry.body = this.block();
    this.locals = [];
  }

  private block(): Run<void> {
    this.newlines();
    this.expect("{");
    const all: Run<void>[] = [];
    for (this.ends(); !this.take("}"); this.ends()) {
      if (this.token.kind === "end") this.fail();
      all.push(this.statement());
    }
    return this.sequence(all);
  }

  private sequence(all: Run<void>[]): Run<void> {
    if (all.length === 1) return all[0]!;
    if (this.waits) {
      return async () => {
        for (const run of all) await run();
      };
    }
    return () => {
      for (const run of all) run();
    };
  }

  /** Combines values: those of functions that wait, if this program may. */
  private lift<T>(
    parts: Run[],
    f: (values: Value[]) => T | Promise<T>,
  ): Run<T> {
    if (this.waits) {
      return async () => {
        const values: Value[] = [];
        for (const part of parts) values.push(await part());
        return await f(values);
      };
    }
    if (parts.length === 1) {
      const [a] = parts as [Run];
      return () => f([a() as Value]);
    }
    if (parts.length === 2) {
      const [a, b] = parts as [Run, Run];
      return () => f([a() as Value, b() as Value]);
    }
    return () => f(parts.map((p) => p() as Value));
  }

  private simpleOrBlock(): Run<void> {
    this.newlines();
    if (this.take(";")) return () => {};
    if (this.is("{")) return this.block();
    const run = this.statement();
    return run;
  }

  private loop(
    test: Run | undefined,
    body: Run<void>,
    step: Run<unknown> | undefined,
    first: boolean,
  ): Run<void> {
    if (this.waits) {
      return async () => {
        for (
          let begun = first;
          begun || test === undefined || truth(await test());
          begun = false
        ) {
          try {
            await body();
          } catch (e) {
            if (e instanceof Break) break;
            if (!(e instanceof Continue)) throw e;
          }
          await step?.();
        }
      };
    }
    return () => {
      for (
        let begun = first;
        begun || test === undefined || truth(test() as Value);
        begun = false
      ) {
        try {
          body();
        } catch (e) {
          if (e instanceof Break) break;
          if (!(e instanceof Continue)) throw e;
        }
        step?.();
      }
    };
  }

  private statement(): Run<void> {
    if (this.is("{")) return this.block();
    if (this.take("if")) {
      this.expect("(");
      const test = this.expression();
      this.expect(")");
      const yes = this.simpleOrBlock();
      const back = this.at;
      this.ends();
      if (!this.take("else")) {
        this.at = back;
        return this.waits
          ? async () => {
            if (truth(await test())) await yes();
          }
          : () => {
            if (truth(test() as Value)) yes();
          };
      }
      const no = this.simpleOrBlock();
      return this.waits
        ? async () => truth(await test()) ? await yes() : await no()
        : () => {
          if (truth(test() as Value)) yes();
          else no();
        };
    }
    if (this.take("while")) {
      this.expect("(");
      const test = this.expression();
      this.expect(")");
      return this.loop(test, this.simpleOrBlock(), undefined, false);
    }
    if (this.take("do")) {
      const body = this.simpleOrBlock();
      this.ends();
      this.expect("while");
      this.expect("(");
      const test = this.expression();
      this.expect(")");
      return this.loop(test, body, undefined, true);
    }
    if (this.take("for")) {
      this.expect("(");
      if (
        this.token.kind === "name" && this.tokens[this.at + 1]!.text === "in" &&
        this.tokens[this.at + 2]!.kind === "name" &&
        this.tokens[this.at + 3]!.text === ")"
      ) {
        const place = this.place()!;
        this.at++;
        const table = this.table(this.token.text);
        this.at += 2;
        const body = this.simpleOrBlock();
        const keys = () => [...table().keys()];
        if (this.waits) {
          return async () => {
            for (const key of keys()) {
              await place.set(new Input(key));
              try {
                await body();
              } catch (e) {
                if (e instanceof Break) break;
                if (!(e instanceof Continue)) throw e;
              }
            }
          };
        }
        return () => {
          for (const key of keys()) {
            place.set(new Input(key));
            try {
              body();
            } catch (e) {
              if (e instanceof Break) break;
              if (!(e instanceof Continue)) throw e;
            }
          }
        };
      }
      const init = this.is(";") ? undefined : this.simple();
      this.expect(";");
      this.newlines();
      const test = this.is(";") ? undefined : this.expression();
      this.expect(";");
      this.newlines();
      const step = this.is(")") ? undefined : this.simple();
      this.expect(")");
      const turn = this.loop(test, this.simpleOrBlock(), step, false);
      return init === undefined ? turn : this.sequence([init, turn]);
    }
    const run = this.simple();
    if (
      this.token.kind !== "newline" && this.token.kind !== "end" &&
      !this.is(";") && !this.is("}")
    ) this.fail();
    if (this.is(";") || this.token.kind === "newline") this.at++;
    return run;
  }

  private simple(): Run<void> {
    const over = () =>
      this.token.kind === "newline" || this.token.kind === "end" ||
      this.is(";") || this.is("}");
    if (this.take("next")) {
      return () => {
        throw new Next(false);
      };
    }
    if (this.take("nextfile")) {
      return () => {
        throw new Next(true);
      };
    }
    if (this.take("break")) {
      return () => {
        throw new Break();
      };
    }
    if (this.take("continue")) {
      return () => {
        throw new Continue();
      };
    }
    if (this.take("exit")) {
      const value = over() ? undefined : this.expression();
      if (value === undefined) {
        return () => {
          throw new Exit();
        };
      }
      return this.lift([value], ([v]) => {
        this.status = number(v) & 255;
        throw new Exit();
      });
    }
    if (this.take("return")) {
      if (over()) {
        return () => {
          throw new Return(undefined);
        };
      }
      return this.lift([this.expression()], ([v]) => {
        throw new Return(v);
      });
    }
    if (this.take("delete")) {
      const table = this.table(this.token.text);
      this.at++;
      if (!this.take("[")) return () => table().clear();
      const key = this.subscripts();
      return this.lift([key], ([k]) => void table().delete(this.text(k)));
    }
    if (this.is("print") || this.is("printf")) {
      const formatted = this.token.text === "printf";
      this.at++;
      let args: Run[] = [];
      const stop = () =>
        over() || this.is(">") || this.is(">>") || this.is("|");
      if (!stop()) {
        if (this.is("(")) {
          // A list in parentheses, unless what follows makes it an expression.
          let depth = 0, end = this.at;
          do {
            const { text, kind } = this.tokens[end]!;
            if (kind === "op" && text === "(") depth++;
            if (kind === "op" && text === ")") depth--;
            if (kind === "end") this.fail();
            end++;
          } while (depth > 0);
          const after = this.tokens[end]!;
          if (
            after.kind === "newline" || after.kind === "end" ||
            [";", "}", ">", ">>", "|"].includes(after.text) &&
              after.kind === "op"
          ) {
            this.at++;
            args = this.is(")") ? [] : this.list();
            this.newlines();
            this.expect(")");
          } else args = this.list(true);
        } else args = this.list(true);
      }
      let target: Run | undefined, mode = "";
      if (this.is(">") || this.is(">>") || this.is("|")) {
        mode = this.token.text;
        this.at++;
        target = this.concatenation(true);
      }
      const show = (values: Value[]): string => {
        if (formatted) {
          return this.sprintf(this.text(values[0]), values.slice(1));
        }
        const ors = this.text(this.globals.get("ORS") as Value);
        if (values.length === 0) return this.text(this.record) + ors;
        const ofs = this.text(this.globals.get("OFS") as Value);
        return values.map((v) => this.text(v, "OFMT")).join(ofs) + ors;
      };
      if (target === undefined) {
        if (args.length === 1 && !formatted && !this.waits) {
          const [only] = args as [Run];
          return () =>
            this.print(
              this.text(only() as Value, "OFMT") +
                this.text(this.globals.get("ORS") as Value),
            );
        }
        return this.lift(args, (values) => this.print(show(values)));
      }
      return this.lift(
        [...args, target],
        (values) =>
          this.printTo(
            show(values.slice(0, -1)),
            mode,
            this.text(values.at(-1)),
          ),
      );
    }
    return this.lift([this.expression()], () => {});
  }

  private list(noGreater = false): Run[] {
    const all = [this.expression(noGreater)];
    while (this.take(",")) {
      this.newlines();
      all.push(this.expression(noGreater));
    }
    return all;
  }

  // Expressions.

  private noIn = false;

  private expression(noGreater = false): Run {
    return this.ternary(noGreater);
  }

  private ternary(noGreater: boolean): Run {
    const from = this.at;
    const place = this.place();
    if (
      place !== undefined && this.token.kind === "op" &&
      /^([-+*\/%^])?=$/.test(this.token.text)
    ) {
      const op = this.token.text;
      this.at++;
      this.newlines();
      const value = this.ternary(noGreater);
      if (op === "=") {
        if (this.waits) {
          return async () => {
            const v = await value();
            await place.set(v);
            return v;
          };
        }
        return () => {
          const v = value() as Value;
          place.set(v);
          return v;
        };
      }
      const f = arithmetic(op[0]!);
      if (this.waits) {
        return async () => {
          const right = number(await value());
          const v = f(number(await place.get()), right);
          await place.set(v);
          return v;
        };
      }
      return () => {
        const right = number(value() as Value);
        const v = f(number(place.get() as Value), right);
        place.set(v);
        return v;
      };
    }
    this.at = from;
    const test = this.or(noGreater);
    if (!this.take("?")) return test;
    this.newlines();
    const yes = this.ternary(noGreater);
    this.newlines();
    this.expect(":");
    this.newlines();
    const no = this.ternary(noGreater);
    return this.waits
      ? async () => truth(await test()) ? await yes() : await no()
      : () => truth(test() as Value) ? yes() : no();
  }

  private or(noGreater: boolean): Run {
    let left = this.and(noGreater);
    while (this.take("||")) {
      this.newlines();
      const a = left, b = this.and(noGreater);
      left = this.waits
        ? async () => truth(await a()) || truth(await b()) ? 1 : 0
        : () => truth(a() as Value) || truth(b() as Value) ? 1 : 0;
    }
    return left;
  }

  private and(noGreater: boolean): Run {
    let left = this.membership(noGreater);
    while (this.take("&&")) {
      this.newlines();
      const a = left, b = this.membership(noGreater);
      left = this.waits
        ? async () => truth(await a()) && truth(await b()) ? 1 : 0
        : () => truth(a() as Value) && truth(b() as Value) ? 1 : 0;
    }
    return left;
  }

  private membership(noGreater: boolean): Run {
    let left = this.matching(noGreater);
    while (!this.noIn && this.take("in")) {
      const table = this.table(this.token.text);
      this.at++;
      left = this.lift([left], ([v]) => table().has(this.text(v)) ? 1 : 0);
    }
    return left;
  }

  private matching(noGreater: boolean): Run {
    let left = this.comparison(noGreater);
    while (this.is("~") || this.is("!~")) {
      const not = this.token.text === "!~";
      this.at++;
      const regex = this.regexOperand(() => this.comparison(noGreater));
      const a = left;
      left = this.lift(
        [a, regex],
        ([v, r]) => regexOf(this.text(r)).test(this.text(v)) !== not ? 1 : 0,
      );
    }
    return left;
  }

  /** A regular expression as text, not as a match of the record. */
  private regexOperand(other: () => Run): Run {
    if (this.token.kind === "regex") {
      const { text } = this.token;
      this.at++;
      return () => text;
    }
    return other();
  }

  private comparison(noGreater: boolean): Run {
    const left = this.concatenation(noGreater);
    const op = this.token.text;
    if (
      this.token.kind !== "op" || !/^(<|<=|==|!=|>|>=)$/.test(op) ||
      noGreater && op === ">"
    ) return left;
    this.at++;
    const right = this.concatenation(noGreater);
    return this.lift([left, right], ([a, b]) => {
      const order = this.compare(a, b);
      return (op === "<"
          ? order < 0
          : op === "<="
          ? order <= 0
          : op === "=="
          ? order === 0
          : op === "!="
          ? order !== 0
          : op === ">"
          ? order > 0
          : order >= 0)
        ? 1
        : 0;
    });
  }

  private compare(a: Value, b: Value): number {
    const numeric = (v: Value) =>
      typeof v === "number" || v === undefined ||
      typeof v === "object" && !Number.isNaN(v.number);
    if (numeric(a) && numeric(b)) return number(a) - number(b);
    return collate(this.text(a), this.text(b));
  }

  private concatenation(noGreater: boolean): Run {
    const parts = [this.sum()];
    for (;;) {
      const { kind, text } = this.token;
      if (
        kind === "op"
          ? !["$", "!", "(", "-", "+", "++", "--"].includes(text)
          : kind === "keyword" || kind === "newline" || kind === "end"
      ) break;
      if (kind === "op" && text === "!" && parts.length > 0) break;
      parts.push(this.sum());
    }
    let left = parts.length === 1 ? parts[0]! : this.lift(parts, (values) => {
      let all = "";
      for (const v of values) all += this.text(v);
      return all;
    });
    // A command's output, line by line.
    while (
      !noGreater && this.is("|") && this.tokens[this.at + 1]!.text === "getline"
    ) {
      this.at += 2;
      const place = this.place();
      const command = left;
      left = async () =>
        await this.getline(
          await this.commandInput(this.text(await command())),
          place,
          true,
        );
    }
    return left;
  }

  private sum(): Run {
    let left = this.product();
    while (this.is("+") || this.is("-")) {
      const f = arithmetic(this.token.text);
      this.at++;
      left = this.lift(
        [left, this.product()],
        ([a, b]) => f(number(a), number(b)),
      );
    }
    return left;
  }

  private product(): Run {
    let left = this.unary();
    while (this.is("*") || this.is("/") || this.is("%")) {
      const f = arithmetic(this.token.text);
      this.at++;
      left = this.lift(
        [left, this.unary()],
        ([a, b]) => f(number(a), number(b)),
      );
    }
    return left;
  }

  private unary(): Run {
    if (this.take("!")) {
      return this.lift([this.unary()], ([v]) => truth(v) ? 0 : 1);
    }
    if (this.take("-")) return this.lift([this.unary()], ([v]) => -number(v));
    if (this.take("+")) return this.lift([this.unary()], ([v]) => number(v));
    const left = this.increments();
    if (!this.take("^")) return left;
    const right = this.unary();
    return this.lift([left, right], ([a, b]) => number(a) ** number(b));
  }

  private increments(): Run {
    if (this.is("++") || this.is("--")) {
      const step = this.token.text === "++" ? 1 : -1;
      this.at++;
      const place = this.place() ?? this.fail();
      return this.stepped(place, step, true);
    }
    const from = this.at;
    const place = this.place();
    if (place !== undefined) {
      if (this.is("++") || this.is("--")) {
        const step = this.token.text === "++" ? 1 : -1;
        this.at++;
        return this.stepped(place, step, false);
      }
      return place.get;
    }
    this.at = from;
    return this.primary();
  }

  private stepped(place: Place, step: number, after: boolean): Run {
    if (this.waits) {
      return async () => {
        const before = number(await place.get());
        await place.set(before + step);
        return after ? before + step : before;
      };
    }
    return () => {
      const before = number(place.get() as Value);
      place.set(before + step);
      return after ? before + step : before;
    };
  }

  /** What can be assigned to, if it stands here. */
  private place(): Place | undefined {
    if (this.take("$")) {
      const index = this.is("++") || this.is("--") || this.is("-")
        ? this.unary()
        : this.increments();
      const set = (i: number, v: Value) => this.setField(i, v);
      if (this.waits) {
        return {
          get: async () => this.field(number(await index())),
          set: async (v) => set(number(await index()), v),
        };
      }
      return {
        get: () => this.field(number(index() as Value)),
        set: (v) => set(number(index() as Value), v),
      };
    }
    if (this.token.kind !== "name") return undefined;
    const { text: name } = this.token;
    this.at++;
    if (this.take("[")) {
      const table = this.table(name), key = this.subscripts();
      const get = (k: string): Value => {
        const t = table();
        if (!t.has(k)) t.set(k, undefined);
        return t.get(k);
      };
      if (this.waits) {
        return {
          get: async () => get(this.text(await key())),
          set: async (v) => void table().set(this.text(await key()), v),
        };
      }
      return {
        get: () => get(this.text(key() as Value)),
        set: (v) => void table().set(this.text(key() as Value), v),
      };
    }
    const local = this.locals.indexOf(name);
    if (local >= 0) {
      return {
        get: () => this.frame[local] as Value,
        set: (v) => void (this.frame[local] = v),
      };
    }
    if (name === "NF") {
      return {
        get: () => {
          this.parts();
          return this.fields.length;
        },
        set: (v) => {
          this.parts();
          const n = Math.max(0, number(v));
          while (this.fields.length < n) this.fields.push("");
          this.fields.length = n;
          this.rebuild();
        },
      };
    }
    return {
      get: () => this.globals.get(name) as Value,
      set: (v) => void this.globals.set(name, v),
    };
  }

  private subscripts(): Run {
    const all = this.list();
    this.expect("]");
    if (all.length === 1) return all[0]!;
    return this.lift(
      all,
      (values) =>
        values.map((v) => this.text(v)).join(
          this.text(this.globals.get("SUBSEP") as Value),
        ),
    );
  }

  /** The array of a name. */
  private table(name: string): () => Table {
    const local = this.locals.indexOf(name);
    if (local >= 0) {
      return () => {
        const found = this.frame[local];
        if (found instanceof Map) return found;
        const made: Table = new Map();
        this.frame[local] = made;
        return made;
      };
    }
    return () => {
      const found = this.globals.get(name);
      if (found instanceof Map) return found;
      if (found !== undefined) {
        throw new AwkError(`attempt to use scalar ${name} as an array`);
      }
      const made: Table = new Map();
      this.globals.set(name, made);
      return made;
    };
  }

  private primary(): Run {
    const { kind, text } = this.token;
    switch (kind) {
      case "number": {
        this.at++;
        const n = Number(text);
        return () => n;
      }
      case "string":
        this.at++;
        return () => text;
      case "regex":
        this.at++;
        return () => regexOf(text).test(this.text(this.record)) ? 1 : 0;
      case "function":
        this.at++;
        return this.native(text);
      case "call":
        this.at++;
        return this.user(text);
    }
    if (this.take("getline")) {
      const from = this.at;
      const place = this.place();
      if (place === undefined) this.at = from;
      if (this.take("<")) {
        const file = this.unary();
        return async () => {
          const name = this.text(await file());
          let records = this.inputs.get(name);
          if (records === undefined) {
            try {
              records = new Records(
                name === "-"
                  ? this.call.stdin.hold()
                  : this.call.shell.openFile(name, "<"),
              );
            } catch {
              return -1;
            }
            this.inputs.set(name, records);
          }
          return await this.getline(records, place, false);
        };
      }
      return async () => {
        const record = await this.nextMain();
        if (record === null) return 0;
        if (place === undefined) this.setRecord(record);
        else await place.set(new Input(record));
        return 1;
      };
    }
    if (this.take("(")) {
      const before = this.noIn;
      this.noIn = false;
      this.newlines();
      const all = this.list();
      this.newlines();
      this.expect(")");
      this.noIn = before;
      if (all.length === 1) return all[0]!;
      this.expect("in");
      const table = this.table(this.token.text);
      this.at++;
      return this.lift(
        all,
        (values) =>
          table().has(
              values.map((v) => this.text(v)).join(
                this.text(this.globals.get("SUBSEP") as Value),
              ),
            )
            ? 1
            : 0,
      );
    }
    if (this.is("-") || this.is("+") || this.is("!")) return this.unary();
    this.fail();
  }

  private user(name: string): Run {
    this.expect("(");
    const entry = this.functions.get(name) ?? { parameters: [] };
    this.functions.set(name, entry);
    // A name that is nothing yet may become an array in there, which `fill` gives it.
    const args: { value: Run; fill?: (t: Table) => void }[] = [];
    this.newlines();
    while (!this.take(")")) {
      const { kind, text } = this.token, after = this.tokens[this.at + 1]!.text;
      if (kind === "name" && (after === "," || after === ")")) {
        // It may be an array.
        this.at++;
        const local = this.locals.indexOf(text);
        args.push({
          value: () =>
            local >= 0
              ? this.frame[local] as Value
              : this.globals.get(text) as Value,
          fill: (t) => {
            if (local >= 0) this.frame[local] ??= t;
            else if (!this.globals.has(text)) this.globals.set(text, t);
          },
        });
      } else args.push({ value: this.expression() });
      this.newlines();
      if (this.take(",")) this.newlines();
      else if (!this.is(")")) this.fail();
    }
    const enter = (values: (Value | Table)[]) => {
      if (++this.depth > 5000) {
        throw new AwkError("functions are nested too deeply");
      }
      const before = this.frame;
      const frame = entry.parameters.map((_, i) => values[i]);
      this.frame = frame;
      return { before, frame };
    };
    const leave = ({ before, frame }: ReturnType<typeof enter>) => {
      this.frame = before;
      this.depth--;
      args.forEach((arg, i) => {
        const v = frame[i];
        if (v instanceof Map) arg.fill?.(v);
      });
    };
    if (this.waits) {
      return async () => {
        const values: (Value | Table)[] = [];
        for (const arg of args) values.push(await arg.value());
        const state = enter(values);
        try {
          await entry.body!();
          return undefined;
        } catch (e) {
          if (e instanceof Return) return e.value;
          throw e;
        } finally {
          leave(state);
        }
      };
    }
    return () => {
      const state = enter(args.map((a) => a.value() as Value));
      try {
        entry.body!();
        return undefined;
      } catch (e) {
        if (e instanceof Return) return e.value;
        throw e;
      } finally {
        leave(state);
      }
    };
  }

  private native(name: string): Run {
    const args: Run[] = [];
    let place: Place | undefined, table: (() => Table) | undefined;
    let target: (() => Table) | undefined, counted = false;
    if (this.is("(")) {
      this.at++;
      this.newlines();
      for (let i = 0; !this.take(")"); i++) {
        const bare = this.token.kind === "name" &&
          /^[,)]$/.test(this.tokens[this.at + 1]!.text);
        if (
          (name === "split" || name === "patsplit") && i === 1 ||
          (name === "asort" || name === "asorti") && bare ||
          name === "match" && i === 2
        ) {
          if (i === 0 || name !== "asort" && name !== "asorti") {
            table = this.table(this.token.text);
          }
          const t = this.table(this.token.text);
          this.at++;
          args.push(() => undefined);
          if (i === 1 && (name === "asort" || name === "asorti")) target = t;
        } else if (name === "length" && bare) {
          const { text } = this.token;
          this.at++;
          const local = this.locals.indexOf(text);
          args.push(() => {
            const v = local >= 0 ? this.frame[local] : this.globals.get(text);
            return v instanceof Map
              ? v.size as unknown as Value
              : ([...this.text(v as Value)].length);
          });
          counted = true;
        } else if (
          (name === "sub" || name === "gsub" || name === "match" ||
              name === "gensub") && i === (name === "match" ? 1 : 0) ||
          (name === "split" || name === "patsplit") && i === 2
        ) {
          args.push(
            this.token.kind === "regex"
              ? this.regexOperand(() => this.expression())
              : this.expression(),
          );
        } else if ((name === "sub" || name === "gsub") && i === 2) {
          const from = this.at;
          place = this.place();
          if (place === undefined || !this.is(")")) {
            this.at = from;
            args.push(this.expression());
            place = undefined;
          } else args.push(place.get);
        } else args.push(this.expression());
        this.newlines();
        if (this.take(",")) this.newlines();
        else if (!this.is(")")) this.fail();
      }
    } else if (name !== "length") this.fail();
    const s = (v: Value) => this.text(v);
    const n = (f: (...n: number[]) => number) =>
      this.lift(args, (v) => f(...v.map(number)));
    switch (name) {
      case "length":
        if (counted) return args[0]!;
        if (args.length === 0) return () => [...s(this.record)].length;
        return this.lift(args, ([v]) => size(s(v)));
      case "substr":
        return this.lift(args, ([t, m, k]) => {
          const text = s(t),
            characters = /[\ud800-\udfff]/.test(text) ? [...text] : text;
          let from = Math.round(number(m)),
            to = args.length > 2 ? from + Math.round(number(k)) : Infinity;
          if (args.length > 2 && Number.isNaN(number(k))) to = from;
          from = Math.max(1, from);
          to = Math.min(characters.length + 1, to);
          if (to <= from) return "";
          const piece = characters.slice(from - 1, to - 1);
          return typeof piece === "string" ? piece : piece.join("");
        });
      case "index":
        return this.lift(args, ([t, p]) => {
          const at = s(t).indexOf(s(p));
          return at < 0 ? 0 : size(s(t).slice(0, at)) + 1;
        });
      case "split":
        return this.lift(args, ([t, , r]) => {
          const pieces = this.cut(
            s(t),
            args.length > 2 ? s(r) : s(this.globals.get("FS") as Value),
          );
          const to = table!();
          to.clear();
          pieces.forEach((p, i) => to.set(String(i + 1), new Input(p)));
          return pieces.length;
        });
      case "patsplit":
        return this.lift(args, ([t, , r]) => {
          const pieces = s(t).match(new RegExp(regexOf(s(r)).source, "gu")) ??
              [],
            to = table!();
          to.clear();
          pieces.forEach((p, i) => to.set(String(i + 1), new Input(p)));
          return pieces.length;
        });
      case "sub":
      case "gsub": {
        const to = place ??
          (args.length < 3
            ? {
              get: () => this.record,
              set: (v: Value) => this.setRecord(s(v)),
            }
            : undefined);
        const change = (
          values: Value[],
          before: Value,
        ): { text: string; count: number } => {
          const regex = new RegExp(
            regexOf(s(values[0])).source,
            name === "gsub" ? "gu" : "u",
          );
          const by = s(values[1]);
          let count = 0;
          const text = s(before).replace(regex, (m) => {
            count++;
            return by.replace(
              /\\\\&|\\&|&/g,
              (x) => x === "&" ? m : x === "\\&" ? "&" : "\\" + m,
            );
          });
          return { text, count };
        };
        const first = args.slice(0, 2);
        if (this.waits) {
          return async () => {
            const values: Value[] = [];
            for (const a of first) values.push(await a());
            const { text, count } = change(
              values,
              await (to?.get() ?? args[2]!()),
            );
            if (count > 0) await to?.set(text);
            return count;
          };
        }
        return () => {
          const { text, count } = change([
            first[0]!() as Value,
            first[1]!() as Value,
          ], (to?.get() ?? args[2]!()) as Value);
          if (count > 0) to?.set(text);
          return count;
        };
      }
      case "gensub":
        return this.lift(args, ([r, by, h, t]) => {
          const text = args.length > 3 ? s(t) : s(this.record), how = s(h);
          const regex = new RegExp(regexOf(s(r)).source, "gu"),
            which = /^g/i.test(how) ? 0 : number(h) || 1;
          let count = 0;
          return text.replace(regex, (...m) => {
            count++;
            if (which !== 0 && count !== which) return m[0];
            return s(by).replace(
              /\\(\d|&|\\)|&/g,
              (x, d) =>
                x === "&"
                  ? m[0]
                  : d === "&"
                  ? "&"
                  : d === "\\"
                  ? "\\"
                  : d === "0"
                  ? m[0]
                  : (typeof m[Number(d)] === "string" ? m[Number(d)] : ""),
            );
          });
        });
      case "match":
        return this.lift(args, ([t, r]) => {
          const m = regexOf(s(r)).exec(s(t));
          const start = m === null ? 0 : size(s(t).slice(0, m.index)) + 1,
            length = m === null ? -1 : size(m[0]);
          this.globals.set("RSTART", start);
          this.globals.set("RLENGTH", length);
          if (table !== undefined) {
            const to = table();
            to.clear();
            m?.forEach((g, i) => to.set(String(i), new Input(g ?? "")));
          }
          return start;
        });
      case "sprintf":
        return this.lift(args, (v) => this.sprintf(s(v[0]), v.slice(1)));
      case "sin":
        return n(Math.sin);
      case "cos":
        return n(Math.cos);
      case "atan2":
        return n(Math.atan2);
      case "exp":
        return n(Math.exp);
      case "log":
        return n(Math.log);
      case "sqrt":
        return n(Math.sqrt);
      case "int":
        return n(Math.trunc);
      case "rand":
        return () => {
          // A generator that begins the same each time, as awk's does.
          this.state = (Math.imul(this.state, 1664525) + 1013904223) >>> 0;
          let x = this.state;
          x ^= x >>> 15;
          x = Math.imul(x, 0x2c1b3c6d);
          return ((x ^ x >>> 12) >>> 0) / 2 ** 32;
        };
      case "srand":
        return this.lift(args, ([v]) => {
          const before = this.seed;
          this.seed = args.length > 0
            ? number(v)
            : Math.floor(Date.now() / 1000);
          this.state = this.seed >>> 0;
          return before;
        });
      case "tolower":
        return this.lift(args, ([v]) => s(v).toLowerCase());
      case "toupper":
        return this.lift(args, ([v]) => s(v).toUpperCase());
      case "system":
        return this.lift(args, async ([v]) => {
          await this.flush();
          return await this.command(s(v), this.call.stdin.hold());
        });
      case "close":
        return this.lift(args, async ([v]) => {
          const key = s(v);
          this.inputs.get(key)?.close();
          this.inputs.delete(key);
          return await this.closeOutput(key);
        });
      case "fflush":
        return this.lift(args, async () => {
          await this.flush();
          return 0;
        });
      case "systime":
        return () => Math.floor(Date.now() / 1000);
      case "strftime":
        return this.lift(
          args,
          ([f, t]) =>
            strftime(
              args.length > 0 ? s(f) : "%a %b %e %H:%M:%S %Z %Y",
              args.length > 1 ? new Date(number(t) * 1000) : new Date(),
              this.call.shell.get("TZ") ?? "",
            ),
        );
      case "mktime":
        return this.lift(args, ([v]) => {
          const [y, mo, d, h, mi, sec] = s(v).split(/\s+/).map(Number) as [
            number,
            number,
            number,
            number,
            number,
            number,
          ];
          const utc = Date.UTC(y, mo - 1, d, h, mi, sec);
          return Math.floor(utc / 1000) -
            offsetOf(new Date(utc), this.call.shell.get("TZ") ?? "") * 60;
        });
      case "and":
        return n((a, b) => Number(BigInt(a) & BigInt(b)));
      case "or":
        return n((a, b) => Number(BigInt(a) | BigInt(b)));
      case "xor":
        return n((a, b) => Number(BigInt(a) ^ BigInt(b)));
      case "lshift":
        return n((a, b) => a * 2 ** b);
      case "rshift":
        return n((a, b) => Math.floor(a / 2 ** b));
      case "compl":
        return n((a) => 2 ** 53 - 1 - a);
      case "strtonum":
        return this.lift(
          args,
          ([v]) =>
            /^\s*0[xX]/.test(s(v))
              ? parseInt(s(v), 16)
              : /^\s*0\d/.test(s(v))
              ? parseInt(s(v), 8)
              : number(v),
        );
      default: {
        // asort and asorti
        return () => {
          const from = table!(), to = target?.() ?? from;
          const values = name === "asort"
            ? [...from.values()]
            : [...from.keys()] as Value[];
          values.sort((a, b) =>
            name === "asorti" ? collate(s(a), s(b)) : this.compare(a, b)
          );
          to.clear();
          values.forEach((v, i) => to.set(String(i + 1), v));
          return values.length;
        };
      }
    }
  }

  // Records and fields.

  private setRecord(text: string): void {
    this.record = new Input(text);
    this.split = false;
  }

  private cut(text: string, separator: string): string[] {
    if (separator === " ") {
      const found = text.match(/[^ \t\n]+/g);
      return found === null ? [] : [...found];
    }
    if (text === "") return [];
    if (separator === "") return [...text];
    if (
      separator === "\t" ||
      separator.length === 1 && separator !== "\\" &&
        !/[.[\]()*+?^$|{}]/.test(separator)
    ) {
      const plain = text.split(separator);
      if ((this.globals.get("RS") as Value) === "" && text.includes("\n")) {
        return plain.flatMap((p) => p.split("\n"));
      }
      return plain;
    }
    if (separator.length === 1) return text.split(separator);
    const pieces: string[] = [];
    let from = 0;
    const regex = new RegExp(regexOf(separator).source, "gu");
    for (const m of text.matchAll(regex)) {
      if (m[0] === "") continue;
      pieces.push(text.slice(from, m.index));
      from = m.index + m[0].length;
    }
    pieces.push(text.slice(from));
    return pieces;
  }

  private parts(): void {
    if (this.split) return;
    this.split = true;
    this.fields = this.cut(
      this.text(this.record),
      this.text(this.globals.get("FS") as Value),
    ).map((p) => new Input(p));
  }

  private field(i: number): Value {
    if (i === 0) return this.record;
    if (i < 0) throw new AwkError(`attempt to access field ${i}`);
    this.parts();
    return this.fields[Math.trunc(i) - 1];
  }

  private setField(i: number, value: Value): void {
    if (i === 0) return this.setRecord(this.text(value));
    if (i < 0) throw new AwkError(`attempt to access field ${i}`);
    this.parts();
    while (this.fields.length < i) this.fields.push("");
    this.fields[i - 1] = typeof value === "number"
      ? value
      : new Input(this.text(value));
    this.rebuild();
  }

  private rebuild(): void {
    const ofs = this.text(this.globals.get("OFS") as Value);
    this.record = new Input(this.fields.map((f) => this.text(f)).join(ofs));
  }

  // Input and output.

  private print(text: string): void {
    this.out += text;
  }

  async flush(): Promise<void> {
    const { out } = this;
    this.out = "";
    if (out !== "") await this.call.stdout.write(toBytes(out));
    for (const { stream, text } of this.outputs.values()) {
      if (stream !== undefined && text !== "") {
        await stream.write(toBytes(text));
      }
    }
    for (const output of this.outputs.values()) {
      if (output.stream !== undefined) output.text = "";
    }
  }

  private printTo(text: string, mode: string, target: string): void {
    if (mode !== "|" && (target === "/dev/stdout" || target === "-")) {
      return this.print(text);
    }
    let output = this.outputs.get(target);
    if (output === undefined) {
      output = mode === "|" ? { text: "", command: true } : {
        text: "",
        command: false,
        stream: this.call.shell.openFile(target, mode),
      };
      this.outputs.set(target, output);
    }
    output.text += text;
    if (
      output.stream !== undefined &&
      (output.text.length > 1 << 15 || target === "/dev/stderr")
    ) {
      const written = output.stream.write(toBytes(output.text));
      written?.catch(() => {});
      output.text = "";
    }
  }

  private async closeOutput(key: string): Promise<number> {
    const output = this.outputs.get(key);
    if (output === undefined) return -1;
    this.outputs.delete(key);
    if (!output.command) {
      await output.stream!.write(toBytes(output.text));
      output.stream!.release();
      return 0;
    }
    await this.flush();
    return await this.command(key, new Given(toBytes(output.text)));
  }

  private async command(
    line: string,
    stdin: Stream,
    stdout?: Stream,
  ): Promise<number> {
    return await this.call.shell.subshell(
      (copy) => copy.script(line),
      (copy) => {
        copy.replace(0, stdin);
        copy.replace(1, stdout ?? this.call.stdout.hold());
        copy.replace(2, this.call.stderr.hold());
        copy.forgiving++;
      },
    );
  }

  private async commandInput(line: string): Promise<Records> {
    let records = this.inputs.get(line);
    if (records === undefined) {
      await this.flush();
      const collector = new Collector();
      await this.command(line, this.call.stdin.hold(), collector);
      records = new Records(new Given(collector.take()));
      this.inputs.set(line, records);
    }
    return records;
  }

  private async getline(
    records: Records,
    place: Place | undefined,
    counts: boolean,
  ): Promise<number> {
    let record: string | null | undefined;
    while (
      (record = records.next(this.text(this.globals.get("RS") as Value))) ===
        undefined
    ) await records.fill();
    if (record === null) return 0;
    if (counts) {
      this.globals.set("NR", number(this.globals.get("NR") as Value) + 1);
    }
    if (place === undefined) this.setRecord(record);
    else await place.set(new Input(record));
    return 1;
  }

  /** Opens the next of the files that are named; false when there is none. */
  private open(): boolean {
    for (;;) {
      const given = this.globals.get("ARGV");
      const args = given instanceof Map ? given : new Map<string, Value>();
      const count = number(this.globals.get("ARGC") as Value);
      let name: string | undefined;
      while (this.fileAt + 1 < count) {
        this.fileAt++;
        const arg = this.text(args.get(String(this.fileAt)));
        if (arg === "") continue;
        const assign = /^([A-Za-z_]\w*)=(.*)$/s.exec(arg);
        if (assign !== null) {
          this.assign(assign[1]!, assign[2]!);
          continue;
        }
        name = arg;
        break;
      }
      if (name === undefined) {
        if (this.files.length > 0 || this.opened) return false;
        name = "-";
      }
      this.opened = true;
      try {
        if (name !== "-" && this.call.shell.kind(name) === "directory") {
          throw new Error(`${name}: Is a directory`);
        }
        this.main = new Records(
          name === "-"
            ? this.call.stdin.hold()
            : this.call.shell.openFile(name, "<"),
        );
      } catch (e) {
        warn(
          this.call,
          `cannot open ${reason(e).replace(/: /, " (").concat(")")}`,
        );
        this.status = 2;
        this.files.push(name);
        continue;
      }
      this.files.push(name);
      this.globals.set("FILENAME", name === "-" ? "" : name);
      this.globals.set("FNR", 0);
      return true;
    }
  }
  private opened = false;

  private async nextMain(): Promise<string | null> {
    for (;;) {
      const record = this.nextNow();
      if (record !== undefined) return record;
      await this.main!.fill();
    }
  }

  private nextNow(): string | null | undefined {
    for (;;) {
      if (this.main === undefined && !this.open()) return null;
      const record = this.main!.next(
        this.text(this.globals.get("RS") as Value),
      );
      if (record === undefined) return undefined;
      if (record === null) {
        this.main!.close();
        this.main = undefined;
        continue;
      }
      this.globals.set("RT", this.main!.terminator);
      this.globals.set("NR", number(this.globals.get("NR") as Value) + 1);
      this.globals.set("FNR", number(this.globals.get("FNR") as Value) + 1);
      return record;
    }
  }

  async run(args: string[]): Promise<void> {
    this.globals.set(
      "ARGV",
      new Map<string, Value>([
        ["0", "awk"],
        ...args.map((a, i) => [String(i + 1), new Input(a)] as [string, Value]),
      ]),
    );
    this.globals.set("ARGC", args.length + 1);
    try {
      for (const run of this.begin) await run();
      if (this.rules.length > 0 || this.finish.length > 0) await this.records();
    } catch (e) {
      if (!(e instanceof Exit)) throw e;
      // The rules of END are for an exit too.
    }
    try {
      for (const run of this.finish) await run();
    } catch (e) {
      if (!(e instanceof Exit)) throw e;
    }
  }

  async close(): Promise<void> {
    await this.flush();
    for (const key of [...this.outputs.keys()]) await this.closeOutput(key);
    this.main?.close();
  }

  private async records(): Promise<void> {
    for (;;) {
      const record = this.nextNow();
      if (record === null) return;
      if (record === undefined) {
        // Nobody is to wait for what is there already.
        await this.flush();
        await this.main!.fill();
        continue;
      }
      this.setRecord(record);
      try {
        for (const rule of this.rules) {
          if (rule.test !== undefined) {
            if (rule.end !== undefined) {
              if (!rule.inside) {
                if (
                  !truth(this.waits ? await rule.test() : rule.test() as Value)
                ) continue;
                rule.inside = true;
              }
              if (truth(this.waits ? await rule.end() : rule.end() as Value)) {
                rule.inside = false;
              }
            } else if (
              !truth(this.waits ? await rule.test() : rule.test() as Value)
            ) continue;
          }
          if (this.waits) await rule.body();
          else rule.body();
        }
      } catch (e) {
        if (!(e instanceof Next)) throw e;
        if (e.file) {
          this.main?.close();
          this.main = undefined;
        }
      }
      if (this.out.length > 1 << 15) await this.flush();
    }
  }

  private sprintf(template: string, values: Value[]): string {
    let at = 0;
    return template.replace(
      /%([-+ #0']*)(\*|\d*)(?:\.(\*|\d*))?[hlL]*([a-zA-Z%])/g,
      (all, flags: string, w: string, p: string | undefined, kind: string) => {
        if (kind === "%") return "%";
        let width = w === "*" ? number(values[at++]) : Number(w || 0);
        const precision = p === undefined
          ? undefined
          : p === "*"
          ? number(values[at++])
          : Number(p || 0);
        if (width < 0) {
          flags += "-";
          width = -width;
        }
        let out: string;
        switch (kind) {
          case "c": {
            const v = values[at++];
            out = typeof v === "number" ||
                v instanceof Input && !Number.isNaN(v.number) &&
                  v.text.length > 1
              ? String.fromCodePoint(number(v) & 0x1fffff)
              : [...this.text(v)][0] ?? "";
            break;
          }
          case "s":
            out = this.text(values[at++]);
            if (precision !== undefined) {
              out = [...out].slice(0, precision).join("");
            }
            break;
          case "d":
          case "i":
          case "o":
          case "x":
          case "X":
          case "u": {
            const v = number(values[at++]);
            if (!Number.isFinite(v)) {
              out = Number.isNaN(v) ? "nan" : v < 0 ? "-inf" : "inf";
              break;
            }
            const n = BigInt(Math.trunc(v)), size = n < 0n ? -n : n;
            let digits = kind === "o"
              ? size.toString(8)
              : kind === "x" || kind === "X"
              ? BigInt.asUintN(64, n).toString(16)
              : size.toString();
            if (kind === "X") digits = digits.toUpperCase();
            if (precision !== undefined) {
              digits = digits.padStart(precision, "0");
            }
            if (flags.includes("#") && size !== 0n) {
              digits = (kind === "o"
                ? "0"
                : kind === "x"
                ? "0x"
                : kind === "X"
                ? "0X"
                : "") + digits;
            }
            out =
              (n < 0n && "di".includes(kind)
                ? "-"
                : flags.includes("+")
                ? "+"
                : flags.includes(" ")
                ? " "
                : "") + digits;
            break;
          }
          case "e":
          case "E":
          case "f":
          case "F":
          case "g":
          case "G":
          case "a":
            out = floating(number(values[at++]), kind, precision, flags);
            break;
          default:
            return all;
        }
        const gap = width - size(out);
        if (gap <= 0) {
          return out;
        }
        if (flags.includes("-")) return out + " ".repeat(gap);
        if (flags.includes("0") && !"sc".includes(kind) && /\d/.test(out)) {
          const head = /^[-+ ]?(0[xX])?/.exec(out)![0];
          return head + "0".repeat(gap) + out.slice(head.length);
        }
        return " ".repeat(gap) + out;
      },
    );
  }
}

function size(text: string): number {
  return /[\ud800-\udbff]/.test(text) ? [...text].length : text.length;
}

function arithmetic(op: string): (a: number, b: number) => number {
  switch (op) {
    case "+":
      return (a, b) => a + b;
    case "-":
      return (a, b) => a - b;
    case "*":
      return (a, b) => a * b;
    case "^":
      return (a, b) => a ** b;
    case "/":
      return (a, b) => {
        if (b === 0) throw new AwkError("division by zero");
        return a / b;
      };
    default:
      return (a, b) => {
        if (b === 0) throw new AwkError("division by zero in %");
        return a % b;
      };
  }
}

export const awk: Program = async (call) => {
  const machine = new Awk(call);
  const { args } = call;
  const sources: string[] = [];
  let i = 0;
  try {
    for (; i < args.length && /^-./.test(args[i]!); i++) {
      const arg = args[i]!;
      if (arg === "--") {
        i++;
        break;
      }
      const letter = arg[1]!,
        value = () => arg.length > 2 ? arg.slice(2) : args[++i] ?? "";
      if (arg === "--version" || arg === "-V") {
        await call.stdout.write(toBytes("awk (Rillbox)\n"));
        return 0;
      }
      if (arg.startsWith("--")) continue;
      if (letter === "F") {
        const fs = value();
        machine.assign(
          "FS",
          fs === "t" ? "\t" : fs.replace(/\\([|.*+?])/g, "\\\\$1"),
        );
      } else if (letter === "v") {
        const given = value(), at = given.indexOf("=");
        if (at < 0) throw new AwkError(`invalid -v argument ${given}`);
        machine.assign(given.slice(0, at), given.slice(at + 1));
      } else if (letter === "f") {
        const name = value();
        const bytes: Uint8Array[] = [];
        const stream = name === "-"
          ? call.stdin.hold()
          : call.shell.openFile(name, "<");
        for (let piece; (piece = await stream.read()) !== null;) {
          bytes.push(piece);
        }
        stream.release();
        sources.push(fromBytes(concat(bytes)));
      } else throw new AwkError(`unknown option ${arg} ignored`);
    }
    if (sources.length === 0) {
      if (args[i] === undefined) {
        await call.stderr.write(
          toBytes(
            "usage: awk [-F fs][-v var=value][prog | -f progfile][file ...]\n",
          ),
        );
        return 2;
      }
      sources.push(args[i++]!);
    }
    machine.parse(sources.join("\n"));
    await machine.run(args.slice(i));
    await machine.close();
    return machine.status;
  } catch (e) {
    if (
      !(e instanceof AwkError) && !(e instanceof Error && e.name === "Error")
    ) throw e;
    await machine.close();
    warn(call, reason(e));
    return 2;
  }
};
