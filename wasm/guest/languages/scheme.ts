/**
 * Scheme: BiwaScheme's reader, compiler and machine, without the procedures that lead to
 * JavaScript or to a page, and with what of the standard (R7RS) it lacks: ports over
 * files, errors that programs handle, macros, records, characters.
 *
 * @module
 */

import {
  Exit,
  type Host,
  type Language,
  type Program,
  WORKSPACE,
} from "../language.ts";
import { Reader } from "../reader.ts";
import { serve } from "../serve.ts";
import { PRELUDE } from "./scheme/prelude.ts";
import { type Lists, NoRule, syntaxRules } from "./scheme/syntax.ts";

/** How many values the machine's stack may hold: some 300,000 calls. */
const DEEPEST = 2_000_000;

const encoder = new TextEncoder(), decoder = new TextDecoder();
const encode = encoder.encode.bind(encoder);
const now = performance.now.bind(performance);
const { wait } = Atomics;

// deno-lint-ignore no-explicit-any
type Any = any;

/** BiwaScheme. */
let B: Any;
let machine: Any;
let host!: Host, program!: Program, session = false;
/** The handlers of with-exception-handler, the innermost first. */
let handlers: unknown;

/** An error of `error`'s, or of the machine's. */
class Condition {
  constructor(
    readonly message: unknown,
    readonly irritants: unknown,
    readonly kind = "Error",
  ) {}
  text(): string {
    const message = typeof this.message === "string"
      ? this.message
      : B.to_write(this.message);
    const irritants = this.irritants === B.nil
      ? []
      : (this.irritants as Any).to_array();
    return [message, ...irritants.map((x: unknown) => B.to_write(x))].join(" ");
  }
  to_write() {
    return `#<condition ${this.text()}>`;
  }
}

/** What a program raised and did not handle. */
class Raised extends Error {
  constructor(readonly payload: unknown) {
    super("raised");
  }
}

/** The names that go: what leads to JavaScript, to a page or to the network. */
const FORBIDDEN =
  /^(js-.*|.*-js-.*|.*js-obj.*|.*->js-.*|\.\.|element-.*|dom-.*|domelem|get-?elem|\$|.*-timer!|timer|console-.*|http-.*|receive-jsonp|alert|confirm|load|wait-for|.*-handler!|scroll-.*|[gs]et-style!?|[gs]et-content!?|inspect!?|identity|with-(input-from|output-to|error-to)-port|make-custom-.*)$/;

const language: Language = {
  async prepare(start) {
    session = start.session;
    const root = globalThis as Any;
    const nothing = {
      addEventListener() {},
      querySelector: () => null,
      querySelectorAll: () => [],
    };
    Object.assign(root, { window: nothing, document: nothing });
    Object.defineProperty(root, "process", { value: undefined });
    B =
      (await import(`file://${start.parts.biwascheme}/release/biwascheme.mjs`))
        .default;
    delete root.window;
    delete root.document;
    for (const name of Object.keys(B.CoreEnv)) {
      if (FORBIDDEN.test(name)) delete B.CoreEnv[name];
    }
    // Else programs find JavaScript's own names among variables, and can break the look-up.
    const { hasOwnProperty } = Object.prototype;
    const names = Object.freeze(
      Object.assign(Object.create(null), { hasOwnProperty }),
    );
    for (const variables of [B.CoreEnv, B.TopEnv]) {
      Object.setPrototypeOf(variables, names);
    }
    handlers = B.nil;
    machine = new B.Interpreter();
    B.Interpreter.prototype.push = function (x: unknown, s: number) {
      if (s > DEEPEST) {
        throw new Condition(
          "the recursion is too deep",
          B.nil,
          "StackOverflow",
        );
      }
      this.stack[s] = x;
      return s + 1;
    };
    define();
    evaluate(PRELUDE);
    Object.assign(B.CoreEnv, B.TopEnv);
    for (const name of Object.keys(B.TopEnv)) delete B.TopEnv[name];
  },
  run(given, connected) {
    host = connected;
    program = given;
    const input = new Reader((buffer) => host.read(buffer));
    B.Port.current_input = new Input(() => {
      const line = input.line();
      return line === undefined ? undefined : line + "\n";
    });
    B.Port.current_output = new B.Port.CustomOutput((text: string) =>
      host.stdout(encode(text))
    );
    B.Port.current_error = new B.Port.CustomOutput((text: string) =>
      host.stderr(encode(text))
    );
    handlers = B.nil;
    let line = 1;
    try {
      const value = evaluate(given.code, (at) => line = at);
      if (
        session && value !== B.undef && value !== undefined &&
        !(value instanceof B.Syntax)
      ) {
        if (given.echo) host.stdout(encode(B.to_write(value) + "\n"));
        if (["string", "number", "boolean"].includes(typeof value)) {
          host.value(value);
        }
      }
      return 0;
    } catch (thrown) {
      if (
        thrown instanceof Exit || thrown instanceof WebAssembly.RuntimeError
      ) throw thrown;
      const error = conditionOf(thrown);
      const [name, message] = error instanceof Condition
        ? [error.kind, error.text()]
        : ["Raised", B.to_write(error)];
      const file = given.file.replace(`${WORKSPACE}/`, "");
      host.fail({
        name,
        message,
        traceback: `${name}: ${message}\n    at ${file}:${line}`,
      });
      return 1;
    } finally {
      for (const port of open) port.close();
      machine.stack.length = 0;
      machine.tco_counter = [];
      machine.call_stack = [];
      machine.current_dynamic_winder = B.Interpreter.DynamicWind.ROOT;
    }
  },
  complete(text) {
    const word = /[^\s()'"]*$/.exec(text)![0];
    return Object.keys({ ...B.CoreEnv, ...B.TopEnv })
      .filter((name) => name.startsWith(word) && !name.startsWith("%")).sort();
  },
  unfinished(text) {
    try {
      const parser = new B.Parser(text);
      while (parser.getObject() !== B.Parser.EOS);
      return false;
    } catch (thrown) {
      return thrown instanceof B.Parser.Unterminated;
    }
  },
};

/** Evaluates the forms of a text; the value is the last one's. `at` is told their lines. */
function evaluate(text: string, at?: (line: number) => void): unknown {
  const parser = new B.Parser(text.replace(/^#!\/.*/, ""));
  const compiler = new B.Compiler();
  let value: unknown = B.undef, line = 1, counted = 0;
  for (;;) {
    parser._skipAtmosphere();
    for (; counted < parser.i; counted++) {
      if (parser.txt[counted] === "\n") line++;
    }
    at?.(line);
    let form;
    try {
      form = parser.getObject();
    } catch (thrown) {
      throw new Condition((thrown as Error).message, B.nil, "SyntaxError");
    }
    if (form === B.Parser.EOS) return value;
    value = execute(form, compiler);
  }
}

function execute(form: unknown, compiler: Any): unknown {
  const code = compiler.run(B.Compiler.expand(form)).il;
  try {
    return machine._execute(form, code, 0, [], 0);
  } catch (thrown) {
    return handle(thrown);
  }
}

/**
 * Gives an error of the machine's to the program's handlers, as raise does. A handler of
 * guard's leaves by its continuation, which has the stack that it needs.
 */
function handle(thrown: unknown): unknown {
  for (;;) {
    if (
      thrown instanceof Raised || thrown instanceof Exit || handlers === B.nil
    ) throw thrown;
    const raise = B.TopEnv.raise ?? B.CoreEnv.raise;
    try {
      return machine.invoke_closure(raise, [conditionOf(thrown)]);
    } catch (next) {
      thrown = next;
    }
  }
}

function conditionOf(thrown: unknown): unknown {
  if (thrown instanceof Raised) return thrown.payload;
  if (thrown instanceof Condition) return thrown;
  if (thrown instanceof RangeError) {
    return new Condition("the recursion is too deep", B.nil, "StackOverflow");
  }
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  const unbound = /^execute: unbound symbol: "(.*)"$/s.exec(message);
  return new Condition(
    unbound ? `unbound variable: ${unbound[1]}` : message.replace(/^: /, ""),
    B.nil,
    thrown instanceof NoRule ? "SyntaxError" : "Error",
  );
}

/** A port that is read: text that comes piece by piece. */
let Input: new (more: () => string | undefined, close?: () => void) => Any;
const open = new Set<{ close(): void }>();

function makePorts(): void {
  Input = class extends B.Port {
    text = "";
    at = 0;
    constructor(
      readonly more: () => string | undefined,
      readonly closing?: () => void,
    ) {
      super(true, false);
    }
    /** Whether there is another character. */
    has(): boolean {
      while (this.at >= this.text.length) {
        const piece = this.more();
        if (piece === undefined) return false;
        this.text = piece;
        this.at = 0;
      }
      return true;
    }
    peek(): unknown {
      return this.has()
        ? B.Char.get(String.fromCodePoint(this.text.codePointAt(this.at)!))
        : B.eof;
    }
    char(): unknown {
      const char = this.peek();
      if (char !== B.eof) this.at += (char as Any).value.length;
      return char;
    }
    line(): unknown {
      if (!this.has()) return B.eof;
      let line = "";
      do {
        const end = this.text.indexOf("\n", this.at);
        if (end >= 0) {
          line += this.text.slice(this.at, end);
          this.at = end + 1;
          return line;
        }
        line += this.text.slice(this.at);
        this.at = this.text.length;
      } while (this.has());
      return line;
    }
    string(count: number): unknown {
      if (!this.has()) return B.eof;
      let text = "";
      for (; count > 0 && this.has(); count--) {
        text += (this.char() as Any).value;
      }
      return text;
    }
    datum(): unknown {
      let text = this.text.slice(this.at);
      for (;;) {
        const parser = new B.Parser(text);
        let found: unknown;
        try {
          found = parser.getObject();
        } catch (thrown) {
          if (!(thrown instanceof B.Parser.Unterminated)) throw thrown;
        }
        const isWhole = found !== undefined && found !== B.Parser.EOS &&
          parser.i < text.length;
        const piece = isWhole ? undefined : this.more();
        if (piece === undefined) {
          this.text = text;
          this.at = parser.i;
          return found === undefined || found === B.Parser.EOS ? B.eof : found;
        }
        text += piece;
      }
    }
    close() {
      this.is_open = false;
      open.delete(this as Any);
      this.closing?.();
    }
  } as Any;
}

function define(): void {
  makePorts();
  const lib = (
    name: string,
    min: number,
    max: number | null,
    call: (args: Any[]) => unknown,
  ) => B.define_libfunc(name, min, max, call);
  const fail = (message: string): never => {
    throw new Condition(message, B.nil);
  };
  const absolute = (path: unknown): string => {
    if (typeof path !== "string") fail("a file's name is a string");
    const parts: string[] = [];
    for (
      const part of `${
        (path as string).startsWith("/") ? "" : WORKSPACE
      }/${path}`.split("/")
    ) {
      if (part === "..") parts.pop();
      else if (part !== "" && part !== ".") parts.push(part);
    }
    return "/" + parts.join("/");
  };
  const words: Record<string, string> = {
    ENOENT: "no such file",
    EACCES: "permission denied",
    EISDIR: "it is a directory",
    EEXIST: "it is there already",
  };
  /** Does something with a file, and says what fails in Scheme's way. */
  const file = <T>(path: unknown, call: (path: string) => T): T => {
    try {
      return call(absolute(path));
    } catch (thrown) {
      const { code } = thrown as { code?: string };
      if (code === undefined) throw thrown;
      throw new Condition(`${words[code] ?? code}:`, B.List(path), "FileError");
    }
  };
  const input = (args: Any[], i = 0): Any => {
    const port = args[i] ?? B.Port.current_input;
    if (!(port instanceof (Input as Any))) fail("it is no port to read from");
    if (!port.is_open) fail("the port is closed");
    return port;
  };
  const output = (args: Any[], i: number): Any => {
    const port = args[i] ?? B.Port.current_output;
    if (!(port instanceof B.Port) || !port.is_output) {
      fail("it is no port to write to");
    }
    if (!port.is_open) fail("the port is closed");
    return port;
  };

  lib("%handlers", 0, 0, () => handlers);
  lib("%set-handlers!", 1, 1, ([given]) => {
    handlers = given;
    return B.undef;
  });
  lib("%throw", 1, 1, ([payload]) => {
    throw new Raised(payload);
  });
  lib(
    "%error",
    2,
    2,
    ([message, irritants]) => new Condition(message, irritants),
  );
  lib("error-object?", 1, 1, ([x]) => x instanceof Condition);
  lib("error?", 1, 1, ([x]) => x instanceof Condition);
  lib("condition?", 1, 1, ([x]) => x instanceof Condition);
  lib(
    "error-object-message",
    1,
    1,
    ([x]) => x instanceof Condition ? x.message : "",
  );
  lib(
    "error-object-irritants",
    1,
    1,
    ([x]) => x instanceof Condition ? x.irritants : B.nil,
  );
  lib(
    "condition/report-string",
    1,
    1,
    ([x]) => x instanceof Condition ? x.text() : B.to_display(x),
  );
  lib(
    "file-error?",
    1,
    1,
    ([x]) => x instanceof Condition && x.kind === "FileError",
  );
  lib(
    "read-error?",
    1,
    1,
    ([x]) => x instanceof Condition && x.kind === "SyntaxError",
  );
  B.CoreEnv["error-message"] = B.CoreEnv["error-object-message"];
  B.CoreEnv["condition-message"] = B.CoreEnv["error-object-message"];

  lib("exit", 0, 1, ([code]) => {
    throw new Exit(
      code === undefined || code === true
        ? 0
        : code === false
        ? 1
        : Number(code) | 0,
    );
  });
  B.CoreEnv["emergency-exit"] = B.CoreEnv["%exit"] = B.CoreEnv.exit;
  lib(
    "command-line",
    0,
    0,
    () => B.array_to_list([program.file, ...program.args]),
  );
  lib(
    "get-environment-variable",
    1,
    1,
    ([name]) => Object.hasOwn(program.env, name) ? program.env[name] : false,
  );
  B.CoreEnv.getenv = B.CoreEnv["get-environment-variable"];
  lib(
    "get-environment-variables",
    0,
    0,
    () =>
      B.array_to_list(
        Object.entries(program.env).map(([name, value]) => B.Cons(name, value)),
      ),
  );
  lib("current-second", 0, 0, () => Date.now() / 1000);
  lib("current-jiffy", 0, 0, () => Math.round(now() * 1000));
  lib("jiffies-per-second", 0, 0, () => 1_000_000);
  lib("runtime", 0, 0, () => now() / 1000);
  lib("real-time", 0, 0, () => now());
  lib("current-time", 0, 0, () => Math.floor(Date.now() / 1000));
  lib("sleep", 1, 1, ([seconds]) => {
    wait(
      new Int32Array(new SharedArrayBuffer(4)),
      0,
      0,
      Number(seconds) * 1000,
    );
    return B.undef;
  });
  lib(
    "random",
    1,
    1,
    ([n]) =>
      Number.isInteger(n) ? Math.floor(Math.random() * n) : Math.random() * n,
  );
  lib("void", 0, null, () => B.undef);
  lib("features", 0, 0, () => B.List(B.Sym("r7rs"), B.Sym("biwascheme")));
  lib("interaction-environment", 0, 0, () => B.undef);
  // These run in the machine that calls them, so that continuations lead out of them.
  const call = (form: unknown, after: (args: Any[]) => unknown) => {
    const none = () => new B.Set();
    const code = new B.Compiler().compile(
      B.Compiler.expand(form),
      [none(), none()],
      none(),
      none(),
      ["return"],
    );
    return new B.Call(new B.Closure(code, [], -1, undefined), [], after);
  };
  lib("eval", 1, 2, ([form]) => call(form, ([value]) => value));
  lib("load", 1, 1, ([path]) => {
    const forms = new B.Parser(
      decoder.decode(file(path, (path) => host.files.readFile(path))),
    );
    const next = (): unknown => {
      const form = forms.getObject();
      return form === B.Parser.EOS ? B.undef : call(form, next);
    };
    return next();
  });

  lib("%sort", 2, 2, ([items, less]) => {
    const numbers = less === B.CoreEnv["<"]
      ? 1
      : less === B.CoreEnv[">"]
      ? -1
      : 0;
    if (numbers !== 0 && items.every((x: unknown) => typeof x === "number")) {
      return Array.from(Float64Array.from(items).sort(), Number)
        [numbers > 0 ? "slice" : "reverse"]();
    }
    return [...items].sort((a, b) =>
      less([a, b]) !== false ? -1 : less([b, a]) !== false ? 1 : 0
    );
  });
  lib("%primitive?", 1, 1, ([x]) => typeof x === "function");

  lib("read-line", 0, 1, (args) => input(args).line());
  lib("read-char", 0, 1, (args) => input(args).char());
  lib("peek-char", 0, 1, (args) => input(args).peek());
  lib("char-ready?", 0, 1, (args) => input(args) !== undefined);
  lib(
    "read-string",
    1,
    2,
    ([a, b]) =>
      typeof a === "number" ? input([b]).string(a) : input([a]).string(b),
  );
  lib("read", 0, 1, (args) => input(args).datum());
  lib("open-input-string", 1, 1, ([text]) => {
    let given: string | undefined = String(text);
    return new Input(() => {
      const piece = given;
      given = undefined;
      return piece === "" ? undefined : piece;
    });
  });
  lib("open-input-file", 1, 1, ([path]) => {
    const opened = file(path, (path) => host.files.open(path, { read: true }));
    let at = 0;
    const reader = new Reader((buffer) => {
      const n = opened.read(buffer, at);
      at += n;
      return n;
    });
    const port = new Input(() => {
      const line = reader.line();
      return line === undefined ? undefined : line + "\n";
    }, () => opened.close());
    open.add(port);
    return port;
  });
  const openOutput = (append: boolean) => ([path]: Any[]) => {
    const opened = file(
      path,
      (path) =>
        host.files.open(path, {
          write: true,
          create: true,
          truncate: !append,
          append,
        }),
    );
    let at = append ? opened.stat().size : 0;
    const port = new B.Port.CustomOutput((text: string) => {
      for (let bytes: Uint8Array = encode(text); bytes.length > 0;) {
        const n = opened.write(bytes, at);
        at += n;
        bytes = bytes.subarray(n);
      }
    });
    port.close = () => {
      if (!port.is_open) return;
      port.is_open = false;
      open.delete(port);
      opened.close();
    };
    open.add(port);
    return port;
  };
  lib("open-output-file", 1, 2, openOutput(false));
  lib("open-append-file", 1, 1, openOutput(true));
  lib("file-exists?", 1, 1, ([path]) => {
    try {
      host.files.stat(absolute(path));
      return true;
    } catch {
      return false;
    }
  });
  lib("delete-file", 1, 1, ([path]) => {
    file(path, (path) => host.files.unlink(path));
    return B.undef;
  });
  lib(
    "directory-list",
    0,
    1,
    ([path]) =>
      B.array_to_list(
        file(path ?? ".", (path) => host.files.readDir(path)).map(({ name }) =>
          name
        ).sort(),
      ),
  );
  lib("flush-output-port", 0, 1, () => B.undef);
  B.CoreEnv["flush-output"] = B.CoreEnv["flush-output-port"];
  lib("write-string", 1, 2, (args) => {
    output(args, 1).put_string(args[0]);
    return B.undef;
  });
  lib("%set-input!", 1, 1, ([port]) => {
    B.Port.current_input = port;
    return B.undef;
  });
  lib("%set-output!", 1, 1, ([port]) => {
    B.Port.current_output = port;
    return B.undef;
  });
  lib("input-port-open?", 1, 1, ([port]) => port.is_open === true);
  lib("output-port-open?", 1, 1, ([port]) => port.is_open === true);

  const text = (x: Any): string =>
    x instanceof B.Char
      ? x.value
      : fail(`it is no character: ${B.to_write(x)}`);
  const char = (name: string, call: (text: string) => unknown) =>
    lib(name, 1, 1, ([x]) => call(text(x)));
  char("char-upcase", (c) => B.Char.get(c.toUpperCase()));
  char("char-downcase", (c) => B.Char.get(c.toLowerCase()));
  char("char-foldcase", (c) => B.Char.get(c.toLowerCase()));
  char("char-alphabetic?", (c) => /\p{L}/u.test(c));
  char("char-numeric?", (c) => /\p{Nd}/u.test(c));
  char("char-whitespace?", (c) => /\s/.test(c));
  char("char-upper-case?", (c) => /\p{Lu}/u.test(c));
  char("char-lower-case?", (c) => /\p{Ll}/u.test(c));
  char("digit-value", (c) => /\d/.test(c) ? Number(c) : false);
  char("char->digit", (c) => /\d/.test(c) ? Number(c) : false);
  lib("digit->char", 1, 2, ([n]) => B.Char.get(Number(n).toString(36)));
  lib(
    "char-ci=?",
    2,
    null,
    (all) => new Set(all.map((c) => text(c).toLowerCase())).size === 1,
  );

  lib(
    "exact",
    1,
    1,
    ([x]) =>
      Number.isInteger(x)
        ? x
        : fail(`it has no exact form here: ${B.to_write(x)}`),
  );
  lib("inexact->exact", 1, 1, ([x]) => x);
  lib(
    "inexact",
    1,
    1,
    ([x]) => x instanceof B.Rational ? x.numerator / x.denominator : x,
  );
  lib(
    "exact->inexact",
    1,
    1,
    ([x]) => x instanceof B.Rational ? x.numerator / x.denominator : x,
  );
  lib("exact-rational?", 1, 1, ([x]) => Number.isInteger(x));
  B.Rational.prototype.to_write = function () {
    return `${this.numerator}/${this.denominator}`;
  };
  for (const how of ["round", "floor", "truncate", "ceiling"]) {
    B.CoreEnv[`${how}->exact`] = B.CoreEnv[how];
  }
  const gcd = (a: number, b: number): number =>
    b === 0 ? Math.abs(a) : gcd(b, a % b);
  const lcm = (a: number, b: number) =>
    a === 0 || b === 0 ? 0 : Math.abs(a * b) / gcd(a, b);
  lib("gcd", 0, null, (all) => all.reduce((a, b) => gcd(a, b), 0));
  lib("lcm", 0, null, (all) => all.reduce((a, b) => lcm(a, b), 1));
  lib(
    "boolean=?",
    2,
    null,
    ([first, ...rest]) => rest.every((x) => x === first),
  );
  lib("symbol<?", 2, 2, ([a, b]) => a.name < b.name);
  lib("string-search-forward", 3, 3, ([wanted, s, from]) => {
    const at = s.indexOf(wanted, from);
    return at < 0 ? false : at;
  });
  lib("string-contains", 2, 2, ([s, wanted]) => {
    const at = s.indexOf(wanted);
    return at < 0 ? false : at;
  });
  lib("string-index", 2, 2, ([s, c]) => {
    const at = s.indexOf(text(c));
    return at < 0 ? false : at;
  });
  lib(
    "string-pad-left",
    2,
    3,
    ([s, n, c]) =>
      s.length > n ? s.slice(s.length - n) : s.padStart(n, c ? text(c) : " "),
  );
  lib(
    "string-pad-right",
    2,
    3,
    ([s, n, c]) => s.slice(0, n).padEnd(n, c ? text(c) : " "),
  );
  lib("string-trim", 1, 1, ([s]) => s.trim());
  lib("string-null?", 1, 1, ([s]) => s === "");
  lib("string-prefix?", 2, 2, ([p, s]) => s.startsWith(p));
  lib("string-suffix?", 2, 2, ([p, s]) => s.endsWith(p));
  lib(
    "string-join",
    1,
    2,
    ([all, by]) => (B.isPair(all) ? all.to_array() : []).join(by ?? " "),
  );
  for (const name of ["string-set!", "string-fill!"]) {
    lib(
      name,
      2,
      3,
      () => fail(`${name}: strings can't be changed here; make a new one`),
    );
  }
  lib("vector-grow", 2, 2, ([v, n]) => [...v, ...Array(n - v.length).fill(0)]);
  lib("subvector", 3, 3, ([v, from, to]) => v.slice(from, to));

  const lists: Lists = {
    isPair: (x): x is Any => x instanceof B.Pair,
    cons: (car, cdr) => B.Cons(car, cdr),
    nil: B.nil,
    isSymbol: (x): x is Any => x instanceof B.Symbol,
    symbol: (name) => B.Sym(name),
    equal: (a, b) => B.equal(a, b),
  };
  const syntax = (name: string, expand: (form: Any) => unknown) => {
    B.CoreEnv[name] = new B.Syntax(name, expand);
  };
  syntax("define-syntax", (form) => {
    const [, name, spec] = form.to_array();
    const kind = spec instanceof B.Pair ? spec.car.name : "";
    if (kind !== "syntax-rules") {
      throw new Condition(
        "a macro is made with syntax-rules, or with define-macro",
        B.nil,
        "SyntaxError",
      );
    }
    B.TopEnv[name.name] = new B.Syntax(
      name.name,
      syntaxRules(lists, name.name, spec),
    );
    return B.undef;
  });
  syntax("import", () => B.undef);
  syntax("cond-expand", (form) => {
    const holds = (test: Any): boolean => {
      if (test instanceof B.Symbol) {
        return ["else", "r7rs", "biwascheme", "full-unicode"].includes(
          test.name,
        );
      }
      const [op, ...all] = test.to_array();
      if (op.name === "and") return all.every(holds);
      if (op.name === "or") return all.some(holds);
      if (op.name === "not") return !holds(all[0]);
      return op.name === "library" && all[0].car.name === "scheme";
    };
    for (const clause of form.cdr.to_array()) {
      if (holds(clause.car)) return B.Cons(B.Sym("begin"), clause.cdr);
    }
    return B.undef;
  });

  const ofR6RS = B.CoreEnv["define-record-type"];
  syntax("define-record-type", (form) => {
    const [, name, maker, predicate, ...fields] = form.to_array();
    if (
      !(maker instanceof B.Pair || maker instanceof B.Symbol) ||
      !(predicate instanceof B.Symbol)
    ) {
      return ofR6RS.transform(form);
    }
    const title = (name instanceof B.Pair ? name.car : name).name;
    const names = fields.map((field: Any) =>
      field instanceof B.Pair ? field.car.name : field.name
    );
    const definitions: unknown[] = [];
    const quoted = (x: unknown) => B.List(B.Sym("quote"), x);
    const add = (name: unknown, value: unknown) =>
      definitions.push(B.List(B.Sym("define"), name, value));
    const type = new RecordType(title, names);
    add(B.Sym(title), quoted(type));
    const [made, given] = maker instanceof B.Pair
      ? [maker.car, maker.cdr.to_array().map((x: Any) => x.name)]
      : [maker, names];
    add(
      made,
      B.List(
        B.Sym("%record-maker"),
        quoted(type),
        quoted(B.array_to_list(given.map((n: string) => B.Sym(n)))),
        quoted(made),
      ),
    );
    add(predicate, B.List(B.Sym("%record-predicate"), quoted(type)));
    fields.forEach((field: Any, i: number) => {
      if (!(field instanceof B.Pair)) return;
      const [, get, set] = field.to_array();
      if (get) {
        add(get, B.List(B.Sym("%record-getter"), quoted(type), i, quoted(get)));
      }
      if (set) {
        add(set, B.List(B.Sym("%record-setter"), quoted(type), i, quoted(set)));
      }
    });
    return B.Cons(B.Sym("begin"), B.array_to_list(definitions));
  });
  const typed = (x: unknown, type: RecordType, who: Any): Row => {
    if (x instanceof Row && x.type === type) return x;
    throw new Condition(`${who.name}: it is no ${type.title}:`, B.List(x));
  };
  /** A procedure that knows how many arguments it takes. */
  const procedure =
    (name: string, count: number, call: (args: Any[]) => unknown) =>
    (args: Any[]) => {
      if (args.length !== count) {
        throw new Condition(
          `${name}: wrong number of arguments (expected: ${count} got: ${args.length})`,
          B.nil,
        );
      }
      return call(args);
    };
  lib("%record-maker", 3, 3, ([type, given, who]) => {
    const places = (given === B.nil ? [] : given.to_array()).map((x: Any) =>
      type.fields.indexOf(x.name)
    );
    return procedure(who.name, places.length, (args) => {
      const values = Array(type.fields.length).fill(false);
      places.forEach((place: number, i: number) => values[place] = args[i]);
      return new Row(type, values);
    });
  });
  lib(
    "%record-predicate",
    1,
    1,
    ([type]) =>
      procedure(
        `${type.title}?`,
        1,
        ([x]) => x instanceof Row && x.type === type,
      ),
  );
  lib(
    "%record-getter",
    3,
    3,
    ([type, i, who]) =>
      procedure(who.name, 1, ([x]) => typed(x, type, who).values[i]),
  );
  lib(
    "%record-setter",
    3,
    3,
    ([type, i, who]) =>
      procedure(who.name, 2, ([x, value]) => {
        typed(x, type, who).values[i] = value;
        return B.undef;
      }),
  );
}

class RecordType {
  constructor(readonly title: string, readonly fields: string[]) {}
  to_write() {
    return `#<record type ${this.title}>`;
  }
}

/** A record. */
class Row {
  constructor(readonly type: RecordType, readonly values: unknown[]) {}
  to_write(): string {
    const title = this.type.title.replace(/^<(.*)>$/, "$1");
    return `#<${[title, ...this.values.map((x) => B.to_write(x))].join(" ")}>`;
  }
}

await serve(language);
