/**
 * The shell's arithmetic: a text of C's operators over 64-bit integers. A text is parsed
 * once, and kept as a function.
 *
 * @module
 */

/** What the expression reads and sets. */
export interface Cells {
  /** A variable's text. `index` is the text in its brackets. */
  get(name: string, index?: string): string;
  set(name: string, index: string | undefined, value: string): void;
}

export class ArithmeticError extends Error {}

type Run = (cells: Cells, depth: number) => bigint;

const kept = new Map<string, Run>();
/** Variables whose values name variables, and so on. */
const MAX_DEPTH = 1024;

export function evaluate(text: string, cells: Cells, depth = 0): bigint {
  let run = kept.get(text);
  if (run === undefined) {
    run = parse(text);
    if (kept.size > 5000) kept.clear();
    kept.set(text, run);
  }
  return run(cells, depth);
}

const wrap = (n: bigint) => BigInt.asIntN(64, n);

const OPERATORS =
  /^(\*\*|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*\/%&^|]=|[-+*\/%&^|<>=!~?:,()])/;
/** From loose to tight. */
const LEVELS: string[][] = [
  ["|"],
  ["^"],
  ["&"],
  ["==", "!="],
  ["<", "<=", ">", ">="],
  ["<<", ">>"],
  ["+", "-"],
  ["*", "/", "%"],
];

function parse(text: string): Run {
  let at = 0;
  const blanks = () => {
    while (at < text.length && /\s/.test(text[at]!)) at++;
  };
  const fail = (message: string, from = at): never => {
    if (from >= text.length) {
      // At the end it is the last operator that is at fault.
      from = text.search(/[-+*\/%<>=&|^!~?:,(]+\s*$/);
      if (from < 0) from = text.length;
    }
    throw new ArithmeticError(
      `${text.trimStart()}: ${message} (error token is "${
        text.slice(from) || " "
      }")`,
    );
  };
  const peek = (): string | undefined => {
    blanks();
    return OPERATORS.exec(text.slice(at, at + 3))?.[0];
  };
  const take = (op: string): boolean => {
    if (peek() !== op) return false;
    at += op.length;
    return true;
  };

  const comma = (): Run => {
    let left = assignment();
    while (take(",")) {
      const a = left, b = assignment();
      left = (c, d) => (a(c, d), b(c, d));
    }
    return left;
  };

  const assignment = (): Run => {
    blanks();
    const start = at;
    const cell = variable();
    if (cell !== undefined) {
      const op = peek();
      const assign = op === "=" ||
          op !== undefined && /^(\*|\/|%|\+|-|<<|>>|&|\^|\|)=$/.test(op)
        ? op
        : undefined;
      if (assign !== undefined) {
        at += assign.length;
        const value = assignment();
        const { name, index } = cell;
        const binary = assign === "="
          ? undefined
          : operation(assign.slice(0, -1));
        return (c, d) => {
          let n = value(c, d);
          if (binary !== undefined) n = binary(read(c, name, index, d), n);
          c.set(name, index, n.toString());
          return n;
        };
      }
    }
    at = start;
    return ternary();
  };

  const ternary = (): Run => {
    const test = or();
    if (!take("?")) return test;
    const yes = comma();
    if (!take(":")) fail("`:' expected for conditional expression");
    const no = assignment();
    return (c, d) => test(c, d) !== 0n ? yes(c, d) : no(c, d);
  };

  const or = (): Run => {
    let left = and();
    while (take("||")) {
      const a = left, b = and();
      left = (c, d) => a(c, d) !== 0n || b(c, d) !== 0n ? 1n : 0n;
    }
    return left;
  };

  const and = (): Run => {
    let left = level(0);
    while (take("&&")) {
      const a = left, b = level(0);
      left = (c, d) => a(c, d) !== 0n && b(c, d) !== 0n ? 1n : 0n;
    }
    return left;
  };

  const level = (n: number): Run => {
    if (n === LEVELS.length) return power();
    let left = level(n + 1);
    for (;;) {
      const op = peek();
      if (op === undefined || !LEVELS[n]!.includes(op)) return left;
      at += op.length;
      const from = at;
      const a = left, b = level(n + 1), f = operation(op);
      const token = text.slice(from).trimStart();
      left = op === "/" || op === "%"
        ? (c, d) => {
          const [x, y] = [a(c, d), b(c, d)];
          if (y === 0n) {
            throw new ArithmeticError(
              `${text.trimStart()}: division by 0 (error token is "${token}")`,
            );
          }
          return f(x, y);
        }
        : (c, d) => f(a(c, d), b(c, d));
    }
  };

  const power = (): Run => {
    const left = unary();
    if (!take("**")) return left;
    const right = power(), token = text.slice(at);
    return (c, d) => {
      let [base, n] = [left(c, d), right(c, d)];
      if (n < 0n) {
        throw new ArithmeticError(
          `${text.trimStart()}: exponent less than 0 (error token is "${
            token || " "
          }")`,
        );
      }
      let result = 1n;
      for (; n > 0n; n >>= 1n) {
        if (n & 1n) result = wrap(result * base);
        base = wrap(base * base);
      }
      return result;
    };
  };

  const unary = (): Run => {
    const op = peek();
    if (op === "++" || op === "--") {
      const start = at;
      at += 2;
      blanks();
      const cell = variable();
      if (cell !== undefined) {
        const { name, index } = cell, step = op === "++" ? 1n : -1n;
        return (c, d) => {
          const n = wrap(read(c, name, index, d) + step);
          c.set(name, index, n.toString());
          return n;
        };
      }
      at = start + 1;
      const value = unary();
      return op === "++" ? value : (c, d) => wrap(-value(c, d));
    }
    if (op === "+" || op === "-" || op === "!" || op === "~") {
      at++;
      const value = unary();
      if (op === "+") return value;
      if (op === "-") return (c, d) => wrap(-value(c, d));
      if (op === "!") return (c, d) => value(c, d) === 0n ? 1n : 0n;
      return (c, d) => ~value(c, d);
    }
    return primary();
  };

  const primary = (): Run => {
    blanks();
    if (take("(")) {
      const value = comma();
      if (!take(")")) fail("missing `)'");
      return value;
    }
    const number = /^[0-9][0-9A-Za-z#@_]*/.exec(text.slice(at, at + 100))?.[0];
    if (number !== undefined) {
      const from = at;
      at += number.length;
      const value = integer(number);
      if (typeof value === "string") fail(value, from);
      return () => value as bigint;
    }
    const cell = variable();
    if (cell === undefined) {
      return fail(
        at >= text.length
          ? "syntax error: operand expected"
          : "syntax error: operand expected",
      );
    }
    const { name, index } = cell;
    const op = peek();
    if (op === "++" || op === "--") {
      at += 2;
      const step = op === "++" ? 1n : -1n;
      return (c, d) => {
        const n = read(c, name, index, d);
        c.set(name, index, wrap(n + step).toString());
        return n;
      };
    }
    return (c, d) => read(c, name, index, d);
  };

  const variable = (): { name: string; index?: string } | undefined => {
    const name = /^[A-Za-z_][A-Za-z0-9_]*/.exec(text.slice(at, at + 300))?.[0];
    if (name === undefined) return undefined;
    at += name.length;
    if (text[at] !== "[") return { name };
    let depth = 0;
    for (let i = at; i < text.length; i++) {
      if (text[i] === "[") depth++;
      else if (text[i] === "]" && --depth === 0) {
        const index = text.slice(at + 1, i);
        at = i + 1;
        return { name, index };
      }
    }
    return fail("bad array subscript");
  };

  blanks();
  if (at >= text.length) return () => 0n;
  const run = comma();
  blanks();
  if (at < text.length) {
    const op = peek();
    fail(
      op === "="
        ? "attempted assignment to non-variable"
        : op !== undefined && op !== "(" && op !== ")" && op !== ":"
        ? "syntax error: operand expected"
        : "syntax error in expression",
    );
  }
  return run;
}

function read(
  cells: Cells,
  name: string,
  index: string | undefined,
  depth: number,
): bigint {
  const text = cells.get(name, index);
  if (text === "") return 0n;
  if (/^-?(0|[1-9][0-9]{0,17})$/.test(text)) return BigInt(text);
  if (depth > MAX_DEPTH) {
    throw new ArithmeticError(
      `${text}: expression recursion level exceeded (error token is "${text}")`,
    );
  }
  return evaluate(text, cells, depth + 1);
}

/** A number as C, or as `base#digits`; else what is wrong with it. */
function integer(text: string): bigint | string {
  const based = /^([0-9]+)#(.*)$/.exec(text);
  let base = 10, digits = text;
  if (based !== null) {
    base = Number(based[1]);
    digits = based[2]!;
    if (base < 2 || base > 64) return "invalid arithmetic base";
  } else if (/^0[xX]/.test(text)) {
    base = 16;
    digits = text.slice(2);
  } else if (/^0./.test(text)) {
    base = 8;
    digits = text.slice(1);
  }
  let n = 0n;
  for (const c of digits) {
    let digit =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ@_"
        .indexOf(c);
    if (base <= 36 && digit >= 36) digit -= 26;
    if (digit < 0 || digit >= base) return "value too great for base";
    n = n * BigInt(base) + BigInt(digit);
  }
  return wrap(n);
}

function operation(op: string): (a: bigint, b: bigint) => bigint {
  switch (op) {
    case "+":
      return (a, b) => wrap(a + b);
    case "-":
      return (a, b) => wrap(a - b);
    case "*":
      return (a, b) => wrap(a * b);
    case "/":
      return (a, b) => {
        if (b === 0n) throw new ArithmeticError("division by 0");
        return wrap(a / b);
      };
    case "%":
      return (a, b) => {
        if (b === 0n) throw new ArithmeticError("division by 0");
        return a % b;
      };
    case "<<":
      return (a, b) => wrap(a << (b & 63n));
    case ">>":
      return (a, b) => a >> (b & 63n);
    case "&":
      return (a, b) => a & b;
    case "|":
      return (a, b) => a | b;
    case "^":
      return (a, b) => a ^ b;
    case "==":
      return (a, b) => a === b ? 1n : 0n;
    case "!=":
      return (a, b) => a !== b ? 1n : 0n;
    case "<":
      return (a, b) => a < b ? 1n : 0n;
    case "<=":
      return (a, b) => a <= b ? 1n : 0n;
    case ">":
      return (a, b) => a > b ? 1n : 0n;
    default:
      return (a, b) => a >= b ? 1n : 0n;
  }
}
