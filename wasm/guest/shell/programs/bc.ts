/**
 * `bc`: a calculator of as many digits as are wanted.
 *
 * A number is an integer with a scale: how many of its digits stand after the point.
 *
 * @module
 */

import { readAll } from "../streams.ts";
import { fromBytes } from "../syntax.ts";
import { holds, type Program, warn, write } from "../program.ts";
import { reason } from "../shell.ts";

interface Num {
  n: bigint;
  scale: number;
}

class BcError extends Error {}
class Quit {}
class Break {}
class Continue {}
class Return {
  constructor(readonly value: Num) {}
}

const ZERO: Num = { n: 0n, scale: 0 };
const pow10 = (n: number) => 10n ** BigInt(n);
const whole = (n: bigint | number): Num => ({ n: BigInt(n), scale: 0 });

function rescale(a: Num, scale: number): Num {
  if (scale >= a.scale) return { n: a.n * pow10(scale - a.scale), scale };
  return { n: a.n / pow10(a.scale - scale), scale };
}

function compare(a: Num, b: Num): number {
  const scale = Math.max(a.scale, b.scale);
  const [x, y] = [rescale(a, scale).n, rescale(b, scale).n];
  return x < y ? -1 : x > y ? 1 : 0;
}

function add(a: Num, b: Num): Num {
  const scale = Math.max(a.scale, b.scale);
  return { n: rescale(a, scale).n + rescale(b, scale).n, scale };
}
const negate = (a: Num): Num => ({ n: -a.n, scale: a.scale });
const subtract = (a: Num, b: Num) => add(a, negate(b));

function multiply(a: Num, b: Num, scale: number): Num {
  const full = { n: a.n * b.n, scale: a.scale + b.scale };
  return rescale(full, Math.min(full.scale, Math.max(scale, a.scale, b.scale)));
}

function divide(a: Num, b: Num, scale: number): Num {
  if (b.n === 0n) throw new BcError("Divide by zero");
  const shift = scale + b.scale - a.scale;
  return {
    n: shift >= 0 ? a.n * pow10(shift) / b.n : a.n / (b.n * pow10(-shift)),
    scale,
  };
}

function modulo(a: Num, b: Num, scale: number): Num {
  if (b.n === 0n) throw new BcError("Modulo by zero");
  const quotient = divide(a, b, scale);
  const result = subtract(a, {
    n: quotient.n * b.n,
    scale: quotient.scale + b.scale,
  });
  return rescale(result, Math.max(scale + b.scale, a.scale));
}

function power(a: Num, b: Num, scale: number): Num {
  const e = b.n / pow10(b.scale), size = e < 0n ? -e : e;
  if (size > 1_000_000n) throw new BcError("exponent too large in raise");
  let result: Num = { n: a.n ** size, scale: a.scale * Number(size) };
  if (e >= 0n) {
    result = rescale(result, Math.min(result.scale, Math.max(scale, a.scale)));
  }
  return e < 0n ? divide(whole(1), result, scale) : result;
}

function root(a: Num, scale: number): Num {
  if (a.n < 0n) throw new BcError("Square root of a negative number");
  const to = scale;
  const n = rescale(a, to * 2).n;
  if (n === 0n) return { n: 0n, scale: to };
  let x = 1n << BigInt((n.toString(2).length + 1) >> 1);
  for (;;) {
    const y = (x + n / x) >> 1n;
    if (y >= x) break;
    x = y;
  }
  return { n: x, scale: to };
}

/** e to a power, at so many digits. */
function exp(x: Num, scale: number): Num {
  const work = scale + 12 +
    Math.ceil(Math.abs(Number(x.n / pow10(x.scale))) * 0.4343);
  let a = rescale(x, work), halvings = 0;
  while ((a.n < 0n ? -a.n : a.n) > pow10(work)) {
    a = { n: a.n / 2n, scale: work };
    halvings++;
  }
  let term = pow10(work), sum = term;
  for (let i = 1n; term !== 0n; i++) {
    term = term * a.n / pow10(work) / i;
    sum += term;
  }
  for (; halvings > 0; halvings--) sum = sum * sum / pow10(work);
  return rescale({ n: sum, scale: work }, scale);
}

function ln(x: Num, scale: number): Num {
  if (x.n <= 0n) return { n: 1n - pow10(scale), scale: 0 };
  const work = scale + 12;
  let a = rescale(x, work), factor = 2n;
  const two = 2n * pow10(work), half = pow10(work) / 2n;
  while (a.n >= two || a.n <= half) {
    a = root(a, work);
    factor *= 2n;
  }
  const y = (a.n - pow10(work)) * pow10(work) / (a.n + pow10(work)),
    square = y * y / pow10(work);
  let term = y, sum = y;
  for (let i = 3n; term !== 0n; i += 2n) {
    term = term * square / pow10(work);
    sum += term / i;
  }
  return rescale({ n: sum * factor, scale: work }, scale);
}

function arctan(x: Num, scale: number): Num {
  const work = scale + 12;
  const one = pow10(work);
  const a = rescale(x, work), sign = a.n < 0n ? -1n : 1n;
  let v = sign * a.n, doublings = 1n;
  // The argument is halved until the series is quick.
  while (v > one / 10n) {
    const r = root({ n: one * one + v * v, scale: 2 * work }, work).n;
    v = v * one / (one + r);
    doublings *= 2n;
  }
  const square = v * v / one;
  let term = v, sum = v;
  for (let i = 3n, s = -1n; term !== 0n; i += 2n, s = -s) {
    term = term * square / one;
    sum += s * term / i;
  }
  return rescale({ n: sign * sum * doublings, scale: work }, scale);
}

function sine(x: Num, scale: number, cosine: boolean): Num {
  const work = scale + 12 + x.n.toString().length;
  const one = pow10(work);
  const pi = arctan(whole(1), work + 2);
  const quarter = rescale(pi, work).n;
  let a = rescale(x, work).n;
  if (cosine) a += 2n * quarter;
  const turn = 8n * quarter;
  a %= turn;
  const square = a * a / one;
  let term = a, sum = a;
  for (let i = 2n; term !== 0n; i += 2n) {
    term = -term * square / one / (i * (i + 1n));
    sum += term;
  }
  return rescale({ n: sum, scale: work }, scale);
}

/** The Bessel function of an integer order. */
function bessel(order: Num, x: Num, scale: number): Num {
  const n = Number(order.n / pow10(order.scale)),
    work = scale + 15 + x.n.toString().length;
  const one = pow10(work), a = rescale(x, work).n / 2n;
  let term = one;
  for (let i = 1n; i <= BigInt(Math.abs(n)); i++) term = term * a / one / i;
  let sum = term;
  for (let i = 1n; term !== 0n; i++) {
    term = -term * a / one * a / one / i / (i + BigInt(Math.abs(n)));
    sum += term;
  }
  return rescale({ n: n < 0 && n % 2 !== 0 ? -sum : sum, scale: work }, scale);
}

interface Token {
  kind: "number" | "string" | "name" | "op" | "newline";
  text: string;
}

function tokens(source: string): Token[] {
  const found: Token[] = [];
  const regex =
    /\/\*[\s\S]*?\*\/|#[^\n]*|\\\n|[ \t\r]+|(\n)|"([^"]*)"|((?:[0-9A-F](?:\\\n)?)+\.?(?:[0-9A-F](?:\\\n)?)*|\.[0-9A-F]+)|([a-z][a-z0-9_]*)|(\+\+|--|\+=|-=|\*=|\/=|%=|\^=|==|!=|<=|>=|&&|\|\||[-+*\/%^=<>!(){}\[\];,.])/gy;
  let at = 0;
  for (; at < source.length;) {
    regex.lastIndex = at;
    const m = regex.exec(source);
    if (m === null) throw new BcError(`illegal character: ${source[at]}`);
    at = regex.lastIndex;
    if (m[1] !== undefined) found.push({ kind: "newline", text: "\n" });
    else if (m[2] !== undefined) found.push({ kind: "string", text: m[2] });
    else if (m[3] !== undefined) {
      found.push({ kind: "number", text: m[3].replace(/\\\n/g, "") });
    } else if (m[4] !== undefined) found.push({ kind: "name", text: m[4] });
    else if (m[5] !== undefined) found.push({ kind: "op", text: m[5] });
  }
  return found;
}

interface Defined {
  parameters: string[];
  autos: string[];
  body: Run;
}
type Run = () => void;
type Value = () => Num;

/** A calculator; `print` takes what it prints. */
class Calculator {
  private variables = new Map<string, Num>();
  private arrays = new Map<string, Map<string, Num>>();
  private functions = new Map<string, Defined>();
  private scale = 0;
  private ibase = 10;
  private obase = 10;
  private last: Num = ZERO;
  private all: Token[] = [];
  private at = 0;
  private depth = 0;

  constructor(
    private print: (text: string) => void,
    private complain: (message: string) => void,
    private math: boolean,
  ) {
    if (math) this.scale = 20;
  }

  run(source: string): void {
    try {
      this.all = tokens(source);
    } catch (e) {
      return this.complain(reason(e));
    }
    this.at = 0;
    while (this.at < this.all.length) {
      if (this.is("\n") || this.is(";")) {
        this.at++;
        continue;
      }
      const from = this.at;
      try {
        if (this.is("define")) {
          this.define();
          continue;
        }
        const statement = this.statement();
        if (this.at < this.all.length && !this.is("\n") && !this.is(";")) {
          throw new BcError("syntax error");
        }
        statement();
      } catch (e) {
        if (
          e instanceof Quit || e instanceof Return || e instanceof Break ||
          e instanceof Continue
        ) {
          if (e instanceof Quit) return;
          continue;
        }
        if (!(e instanceof BcError)) throw e;
        this.complain(e.message);
        this.at = Math.max(this.at, from + 1);
        while (this.at < this.all.length && !this.is("\n")) this.at++;
      }
    }
  }

  private is(text: string): boolean {
    const token = this.all[this.at];
    return token !== undefined && token.text === text &&
      token.kind !== "string";
  }
  private take(text: string): boolean {
    if (!this.is(text)) return false;
    this.at++;
    return true;
  }
  private expect(text: string): void {
    if (!this.take(text)) throw new BcError("syntax error");
  }
  private newlines(): void {
    while (this.is("\n")) this.at++;
  }
  private name(): string {
    const token = this.all[this.at++];
    if (token?.kind !== "name") throw new BcError("syntax error");
    return token.text;
  }

  private define(): void {
    this.at++;
    const name = this.name(), parameters: string[] = [], autos: string[] = [];
    const names = (to: string[]) => {
      do {
        let name = this.name();
        if (this.take("[")) {
          this.expect("]");
          name += "[]";
        }
        to.push(name);
      } while (this.take(","));
    };
    this.expect("(");
    if (!this.is(")")) names(parameters);
    this.expect(")");
    this.newlines();
    this.expect("{");
    this.newlines();
    if (this.take("auto")) names(autos);
    const statements: Run[] = [];
    while (!this.take("}")) {
      if (this.at >= this.all.length) throw new BcError("syntax error");
      if (this.take("\n") || this.take(";")) continue;
      statements.push(this.statement());
    }
    this.functions.set(name, {
      parameters,
      autos,
      body: () => statements.forEach((s) => s()),
    });
  }

  private statement(): Run {
    const token = this.all[this.at];
    if (token === undefined) throw new BcError("syntax error");
    if (token.kind === "string") {
      this.at++;
      return () => this.print(token.text);
    }
    if (this.take("{")) {
      const statements: Run[] = [];
      while (!this.take("}")) {
        if (this.at >= this.all.length) throw new BcError("syntax error");
        if (this.take("\n") || this.take(";")) continue;
        statements.push(this.statement());
      }
      return () => statements.forEach((s) => s());
    }
    if (this.take("if")) {
      this.expect("(");
      const test = this.expression();
      this.expect(")");
      this.newlines();
      const yes = this.statement();
      const back = this.at;
      if (this.is(";")) this.at++;
      this.newlines();
      if (!this.take("else")) {
        this.at = back;
        return () => {
          if (test().n !== 0n) yes();
        };
      }
      this.newlines();
      const no = this.statement();
      return () => test().n !== 0n ? yes() : no();
    }
    const loop = (test: () => boolean, body: Run, step: Run) => () => {
      for (; test(); step()) {
        try {
          body();
        } catch (e) {
          if (e instanceof Break) break;
          if (!(e instanceof Continue)) throw e;
        }
      }
    };
    if (this.take("while")) {
      this.expect("(");
      const test = this.expression();
      this.expect(")");
      this.newlines();
      return loop(() => test().n !== 0n, this.statement(), () => {});
    }
    if (this.take("for")) {
      this.expect("(");
      const init = this.is(";") ? () => ZERO : this.expression();
      this.expect(";");
      const test = this.is(";") ? () => whole(1) : this.expression();
      this.expect(";");
      const step = this.is(")") ? () => ZERO : this.expression();
      this.expect(")");
      this.newlines();
      const turn = loop(() => test().n !== 0n, this.statement(), step);
      return () => {
        init();
        turn();
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
    if (this.take("halt")) {
      return () => {
        throw new Quit();
      };
    }
    if (this.take("quit")) throw new Quit();
    if (this.take("return")) {
      if (
        this.at >= this.all.length || /^[\n;}]$/.test(this.all[this.at]!.text)
      ) {
        return () => {
          throw new Return(ZERO);
        };
      }
      const value = this.expression();
      return () => {
        throw new Return(value());
      };
    }
    if (this.take("print")) {
      const parts: Run[] = [];
      do {
        const token = this.all[this.at];
        if (token?.kind === "string") {
          this.at++;
          const text = token.text.replace(
            /\\(.)/g,
            (_, c) =>
              ({
                n: "\n",
                t: "\t",
                a: "\x07",
                b: "\b",
                f: "\f",
                r: "\r",
                q: '"',
                "\\": "\\",
              } as Record<string, string>)[c] ?? "",
          );
          parts.push(() => this.print(text));
        } else {
          const value = this.expression();
          parts.push(() => this.print(this.show(this.last = value())));
        }
      } while (this.take(","));
      return () => parts.forEach((p) => p());
    }
    // The value of what is no assignment is shown.
    const from = this.at;
    const value = this.expression();
    const silent = this.assigned === from;
    return () => {
      const result = value();
      if (silent) return;
      this.last = result;
      const text = this.show(result);
      let out = "";
      // Long numbers go on after a backslash.
      for (let i = 0; i < text.length;) {
        if (text.length - i <= 69) {
          out += text.slice(i);
          break;
        }
        out += text.slice(i, i + 68) + "\\\n";
        i += 68;
      }
      this.print(out + "\n");
    };
  }

  /** Where the last whole assignment began. */
  private assigned = -1;

  private expression(): Value {
    return this.or();
  }
  private or(): Value {
    let left = this.and();
    while (this.take("||")) {
      const a = left, b = this.and();
      left = () => whole(a().n !== 0n || b().n !== 0n ? 1 : 0);
    }
    return left;
  }
  private and(): Value {
    let left = this.not();
    while (this.take("&&")) {
      const a = left, b = this.not();
      left = () => whole(a().n !== 0n && b().n !== 0n ? 1 : 0);
    }
    return left;
  }
  private not(): Value {
    if (!this.take("!")) return this.relation();
    const value = this.not();
    return () => whole(value().n === 0n ? 1 : 0);
  }
  private relation(): Value {
    let left = this.assignment();
    for (
      let token;
      (token = this.all[this.at]) !== undefined && token.kind === "op" &&
      /^(==|!=|<|<=|>|>=)$/.test(token.text);
    ) {
      this.at++;
      const a = left, b = this.assignment(), op = token.text;
      this.assigned = -1;
      left = () => {
        const order = compare(a(), b());
        return whole(holds(op, order) ? 1 : 0);
      };
    }
    return left;
  }
  private assignment(): Value {
    const from = this.at;
    const place = this.place();
    const op = this.all[this.at];
    if (
      place !== undefined && op?.kind === "op" && /^[-+*\/%^]?=$/.test(op.text)
    ) {
      this.at++;
      const value = this.assignment();
      this.assigned = from;
      return () => {
        let result = value();
        if (op.text !== "=") {
          result = this.binary(op.text[0]!, place.get(), result);
        }
        place.set(result);
        return result;
      };
    }
    this.at = from;
    return this.sum();
  }
  private binary(op: string, a: Num, b: Num): Num {
    switch (op) {
      case "+":
        return add(a, b);
      case "-":
        return subtract(a, b);
      case "*":
        return multiply(a, b, this.scale);
      case "/":
        return divide(a, b, this.scale);
      case "%":
        return modulo(a, b, this.scale);
      default:
        return power(a, b, this.scale);
    }
  }
  private sum(): Value {
    let left = this.product();
    while (this.is("+") || this.is("-")) {
      const op = this.all[this.at++]!.text, a = left, b = this.product();
      left = () => this.binary(op, a(), b());
    }
    return left;
  }
  private product(): Value {
    let left = this.powers();
    while (this.is("*") || this.is("/") || this.is("%")) {
      const op = this.all[this.at++]!.text, a = left, b = this.powers();
      left = () => this.binary(op, a(), b());
    }
    return left;
  }
  private powers(): Value {
    const left = this.unary();
    if (!this.take("^")) return left;
    const right = this.powers();
    return () => power(left(), right(), this.scale);
  }
  private unary(): Value {
    if (this.take("-")) {
      const value = this.unary();
      return () => negate(value());
    }
    if (this.is("++") || this.is("--")) {
      const step = whole(this.all[this.at++]!.text === "++" ? 1 : -1),
        place = this.place();
      if (place === undefined) throw new BcError("syntax error");
      return () => {
        const result = add(place.get(), step);
        place.set(result);
        return result;
      };
    }
    return this.primary();
  }

  private place(): { get: Value; set: (value: Num) => void } | undefined {
    const token = this.all[this.at];
    if (token?.text === "." && token.kind === "op") {
      this.at++;
      return { get: () => this.last, set: (v) => this.last = v };
    }
    if (token?.kind !== "name" || this.all[this.at + 1]?.text === "(") {
      return undefined;
    }
    this.at++;
    const { text: name } = token;
    if (this.take("[")) {
      const index = this.expression();
      this.expect("]");
      const key = () => {
        const i = index();
        return (i.n / pow10(i.scale)).toString();
      };
      return {
        get: () => this.arrays.get(name)?.get(key()) ?? ZERO,
        set: (v) => {
          let array = this.arrays.get(name);
          if (array === undefined) this.arrays.set(name, array = new Map());
          array.set(key(), v);
        },
      };
    }
    const integer = (v: Num) => Number(v.n / pow10(v.scale));
    switch (name) {
      case "scale":
        return {
          get: () => whole(this.scale),
          set: (v) => this.scale = Math.max(0, integer(v)),
        };
      case "ibase":
        return {
          get: () => whole(this.ibase),
          set: (v) => this.ibase = Math.min(16, Math.max(2, integer(v))),
        };
      case "obase":
        return {
          get: () => whole(this.obase),
          set: (v) => this.obase = Math.max(2, integer(v)),
        };
      case "last":
        return { get: () => this.last, set: (v) => this.last = v };
    }
    return {
      get: () => this.variables.get(name) ?? ZERO,
      set: (v) => this.variables.set(name, v),
    };
  }

  private primary(): Value {
    const token = this.all[this.at];
    if (token === undefined) throw new BcError("syntax error");
    if (token.kind === "number") {
      this.at++;
      return () => this.parse(token.text);
    }
    if (this.take("(")) {
      const value = this.expression();
      this.expect(")");
      this.assigned = -1;
      return value;
    }
    if (token.kind === "name" && this.all[this.at + 1]?.text === "(") {
      this.at += 2;
      const args: (Value | string)[] = [];
      while (!this.take(")")) {
        const array = this.all[this.at];
        if (
          array?.kind === "name" && this.all[this.at + 1]?.text === "[" &&
          this.all[this.at + 2]?.text === "]"
        ) {
          this.at += 3;
          args.push(array.text);
        } else args.push(this.expression());
        if (!this.is(")")) this.expect(",");
      }
      this.assigned = -1;
      return () => this.call(token.text, args);
    }
    const place = this.place();
    if (place === undefined) throw new BcError("syntax error");
    if (this.is("++") || this.is("--")) {
      const step = whole(this.all[this.at++]!.text === "++" ? 1 : -1);
      return () => {
        const before = place.get();
        place.set(add(before, step));
        return before;
      };
    }
    return place.get;
  }

  private parse(text: string): Num {
    const [left = "", right = ""] = text.split(".");
    if (this.ibase === 10 && /^[0-9.]*$/.test(text)) {
      return { n: BigInt(left + right || "0"), scale: right.length };
    }
    const base = BigInt(this.ibase);
    const one = left.length + right.length === 1;
    const digit = (c: string) =>
      BigInt(one ? parseInt(c, 16) : Math.min(parseInt(c, 16), this.ibase - 1));
    let n = 0n;
    for (const c of left) n = n * base + digit(c);
    if (right === "") return { n, scale: 0 };
    let part = 0n;
    for (const c of right) part = part * base + digit(c);
    return {
      n: n * pow10(right.length) +
        part * pow10(right.length) / base ** BigInt(right.length),
      scale: right.length,
    };
  }

  private call(name: string, args: (Value | string)[]): Num {
    const found = this.functions.get(name);
    const value = (i: number): Num => {
      const arg = args[i];
      if (arg === undefined) throw new BcError("Parameter number mismatch");
      return typeof arg === "string" ? ZERO : arg();
    };
    if (found === undefined) {
      const x = args.length > 0 ? value(0) : ZERO;
      switch (name) {
        case "sqrt":
          return root(x, Math.max(this.scale, x.scale));
        case "length":
          return whole(
            Math.max(x.n.toString().replace("-", "").length, x.scale),
          );
        case "scale":
          return whole(x.scale);
      }
      if (this.math) {
        const { scale } = this;
        switch (name) {
          case "s":
            return sine(x, scale, false);
          case "c":
            return sine(x, scale, true);
          case "a":
            return arctan(x, scale);
          case "l":
            return ln(x, scale);
          case "e":
            return exp(x, scale);
          case "j":
            return bessel(x, value(1), scale);
        }
      }
      throw new BcError(`Function ${name} not defined.`);
    }
    if (++this.depth > 2000) {
      this.depth = 0;
      throw new BcError("functions are nested too deeply");
    }
    const values = found.parameters.map((p, i) =>
      p.endsWith("[]") ? args[i] : value(i)
    );
    if (args.length !== found.parameters.length) {
      throw new BcError("Parameter number mismatch");
    }
    const saved: [string, Num | undefined, Map<string, Num> | undefined][] = [];
    for (const [i, given] of [...found.parameters, ...found.autos].entries()) {
      const name = given.replace("[]", "");
      saved.push([name, this.variables.get(name), this.arrays.get(name)]);
      const v = values[i];
      if (given.endsWith("[]")) {
        this.arrays.set(
          name,
          new Map(typeof v === "string" ? this.arrays.get(v) : undefined),
        );
      } else {this.variables.set(
          name,
          v === undefined || typeof v !== "object" ? ZERO : v,
        );}
    }
    try {
      found.body();
      return ZERO;
    } catch (e) {
      if (e instanceof Return) return e.value;
      throw e;
    } finally {
      this.depth--;
      for (const [name, value, array] of saved.reverse()) {
        if (value === undefined) this.variables.delete(name);
        else this.variables.set(name, value);
        if (array === undefined) this.arrays.delete(name);
        else this.arrays.set(name, array);
      }
    }
  }

  /** A number in the base of output. */
  private show(value: Num): string {
    const negative = value.n < 0n, n = negative ? -value.n : value.n;
    if (n === 0n) return "0";
    const unit = pow10(value.scale);
    let left = n / unit, right = n % unit, text: string;
    if (this.obase === 10) {
      text = (left === 0n ? "" : left.toString()) +
        (value.scale > 0
          ? "." + right.toString().padStart(value.scale, "0")
          : "");
    } else {
      const base = BigInt(this.obase), width = String(this.obase - 1).length;
      const digit = (d: bigint) =>
        this.obase <= 16
          ? d.toString(16).toUpperCase()
          : " " + d.toString().padStart(width, "0");
      text = "";
      for (; left > 0n; left /= base) text = digit(left % base) + text;
      if (value.scale > 0) {
        text += ".";
        // As many digits as hold what the scale holds.
        for (let reach = 1n; reach < unit; reach *= base) {
          right *= base;
          text += digit(right / unit);
          right %= unit;
        }
      }
    }
    return (negative ? "-" : "") + text;
  }
}

export const bc: Program = async (call) => {
  const math = call.args.some((a) => /^-[a-z]*l/.test(a) || a === "--mathlib");
  let source = "";
  for (const name of call.args.filter((a) => !a.startsWith("-"))) {
    try {
      source += fromBytes(await readAll(call.shell.openFile(name, "<"))) + "\n";
    } catch (e) {
      return warn(call, reason(e));
    }
  }
  if (!/(^|[\n;])\s*quit\s*($|[\n;])/.test(source)) {
    source += fromBytes(await readAll(call.stdin));
  }
  let out = "", status = 0;
  const calculator = new Calculator((text) => out += text, (message) => {
    status = 0;
    warn(
      call,
      /syntax|illegal/.test(message)
        ? `(standard_in) 1: ${message}`
        : `Runtime error: ${message}`,
    );
  }, math);
  try {
    calculator.run(source);
  } finally {
    await write(call, out);
  }
  return status;
};
