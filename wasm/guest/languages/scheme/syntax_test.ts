import { type Lists, NoRule, syntaxRules } from "./syntax.ts";

// Lists of arrays: a pair is an object, a symbol another.
class Pair {
  constructor(readonly car: unknown, readonly cdr: unknown) {}
}
const nil = Symbol("nil"), names = new Map<string, { name: string }>();
const symbol = (name: string) => {
  if (!names.has(name)) names.set(name, { name });
  return names.get(name)!;
};
const lists: Lists = {
  isPair: (x): x is Pair => x instanceof Pair,
  cons: (car, cdr) => new Pair(car, cdr),
  nil,
  isSymbol: (x): x is { name: string } =>
    typeof x === "object" && x !== null && "name" in x,
  symbol,
  equal: Object.is,
};

/** Reads "(a (b 1) ...)". */
function read(text: string): unknown {
  const tokens = text.match(/[()]|[^\s()]+/g)!;
  const one = (): unknown => {
    const token = tokens.shift()!;
    if (token !== "(") {
      return /^\d+$/.test(token) ? Number(token) : symbol(token);
    }
    const items: unknown[] = [];
    while (tokens[0] !== ")") items.push(one());
    tokens.shift();
    return items.reduceRight(
      (rest, item) => new Pair(item, rest),
      nil as unknown,
    );
  };
  return one();
}

function write(x: unknown): string {
  if (x === nil) return "()";
  if (!(x instanceof Pair)) return lists.isSymbol(x) ? x.name : String(x);
  const items: string[] = [];
  for (; x instanceof Pair; x = x.cdr) items.push(write(x.car));
  return `(${items.join(" ")})`;
}

function expands(rules: string, form: string, want: string): void {
  const got = write(
    syntaxRules(lists, "m", read(`(syntax-rules ${rules})`))(read(form)),
  );
  if (got !== want) throw new Error(`${form} became ${got}, want ${want}`);
}

Deno.test("patterns, ellipses and literals", () => {
  expands("() ((_ a b) (b a))", "(m 1 2)", "(2 1)");
  expands(
    "() ((_ (n v) ...) ((lambda (n ...) 0) v ...))",
    "(m (x 1) (y 2))",
    "((lambda (x y) 0) 1 2)",
  );
  expands(
    "() ((_ (a b ...) ...) (((b ... a) ...)))",
    "(m (1 2 3) (4))",
    "(((2 3 1) (4)))",
  );
  expands("() ((_ a ... z) (z a ...))", "(m 1 2 3)", "(3 1 2)");
  expands(
    "(=>) ((_ a => b) (arrow a b)) ((_ a b c) (plain a b c))",
    "(m 1 => 2)",
    "(arrow 1 2)",
  );
  expands(
    "(=>) ((_ a => b) (arrow a b)) ((_ a b c) (plain a b c))",
    "(m 1 x 2)",
    "(plain 1 x 2)",
  );
});

Deno.test("what a template binds does not catch what it is given", () => {
  expands(
    "() ((_ a) (let ((tmp 1)) (list tmp a)))",
    "(m tmp)",
    "(let ((tmp~1 1)) (list tmp~1 tmp))",
  );
});

Deno.test("a use that fits no rule", () => {
  try {
    expands("() ((_ a) a)", "(m 1 2)", "");
  } catch (error) {
    if (error instanceof NoRule) return;
    throw error;
  }
  throw new Error("nothing was thrown");
});
