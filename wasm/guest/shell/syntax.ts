/**
 * The shell's grammar: a script's text becomes a tree, one logical line at a time, since
 * bash runs what stands before a syntax error. Nothing is expanded here, but all that
 * depends on quotes is told apart.
 *
 * @module
 */

/** A piece of a word. */
export type Part =
  /** Unquoted: it is split, and its wildcards are live. */
  | { kind: "text"; text: string }
  | { kind: "quoted"; text: string }
  | { kind: "double"; parts: Part[] }
  | Parameter
  | { kind: "command"; body: Node; line: number }
  | { kind: "arithmetic"; parts: Part[] }
  | { kind: "process"; body: Node; output: boolean };

/** `$name`, `${name op word}`. */
export interface Parameter {
  kind: "parameter";
  name: string;
  /** What stands in its brackets. */
  index?: Word;
  /** "length", "indirect", "keys", "names", or one of the shell's operators. */
  op?: string;
  word?: Word;
  second?: Word;
  /** The operation on what `${!name…}` leads to. */
  indirect?: boolean;
  /** Its text, for messages. */
  source: string;
}

export interface Word {
  parts: Part[];
  /** It is an assignment, as an argument of `declare` and its like. */
  assign?: Assign;
  /** What its braces give, once they have been looked at. */
  braced?: Word[];
}

export interface Assign {
  name: string;
  index?: Word;
  append: boolean;
  value?: Word;
  elements?: { index?: Word; append: boolean; value: Word }[];
}

export interface Redirect {
  fd?: number;
  /** `{name}>`: the variable that takes the number. */
  variable?: string;
  op: string;
  target: Word;
}

export interface Simple {
  kind: "simple";
  assigns: Assign[];
  words: Word[];
  redirects: Redirect[];
  line: number;
}

export type Node =
  | Simple
  | {
    kind: "pipe";
    parts: Node[];
    errors: boolean[];
    not: boolean;
    time: "" | "bash" | "posix";
    line: number;
  }
  | { kind: "and" | "or"; left: Node; right: Node }
  | { kind: "list"; items: { node: Node; background: boolean; text: string }[] }
  | { kind: "if"; clauses: { test: Node; body: Node }[]; otherwise?: Node }
  | {
    kind: "for" | "select";
    name: string;
    words?: Word[];
    body: Node;
    line: number;
  }
  | {
    kind: "count";
    init: Part[];
    test: Part[];
    step: Part[];
    body: Node;
    line: number;
  }
  | { kind: "while"; until: boolean; test: Node; body: Node }
  | {
    kind: "case";
    word: Word;
    items: { patterns: Word[]; body: Node; end: string }[];
    line: number;
  }
  | { kind: "group"; body: Node }
  | { kind: "subshell"; body: Node; line: number }
  | { kind: "let"; parts: Part[]; line: number; text: string }
  | { kind: "test"; test: Test; line: number }
  | { kind: "function"; name: string; body: Node; line: number; text: string }
  | { kind: "redirected"; body: Node; redirects: Redirect[]; line: number };

/** What stands in `[[ … ]]`. */
export type Test =
  | { kind: "word"; word: Word }
  | { kind: "unary"; op: string; word: Word }
  | { kind: "binary"; op: string; left: Word; right: Word }
  | { kind: "not"; test: Test }
  | { kind: "and" | "or"; left: Test; right: Test };

/** A text that is no script. */
export class ShellSyntaxError extends Error {
  /** `unfinished`: more lines could mend it. */
  constructor(
    message: string,
    readonly line: number,
    readonly unfinished: boolean,
    /** The line's text, where bash shows it. */
    readonly shown?: string,
  ) {
    super(message);
  }
}

const RESERVED = new Set(
  "if then else elif fi do done case esac while until for select function { } ! [[ ]] time in"
    .split(" "),
);
const CLOSING = new Set("then else elif fi do done esac }".split(" "));
const DECLARING = new Set("declare typeset local export readonly".split(" "));
const NAME = /^[A-Za-z_][A-Za-z0-9_]*/;
const UNARY = /^-[abcdefghknoprstuvwxzGLNORS]$/;
const BINARY = new Set(
  "= == != =~ < > -eq -ne -lt -le -gt -ge -nt -ot -ef".split(" "),
);

interface HereDoc {
  redirect: Redirect;
  end: string;
  quoted: boolean;
  tabs: boolean;
  line: number;
}

export class Parser {
  private at = 0;
  private here: HereDoc[] = [];
  /** How deep the grammar is nested: beyond it a script is refused. */
  private depth = 0;

  constructor(private text: string, private line = 1) {}

  /** The next logical line's commands; undefined at the end. */
  next(): Node | undefined {
    for (;;) {
      this.blanks();
      if (this.at >= this.text.length) {
        this.readHere();
        return undefined;
      }
      if (this.text[this.at] !== "\n") break;
      this.newline();
    }
    const node = this.list(true, "");
    this.blanks();
    if (this.at < this.text.length && this.text[this.at] !== "\n") {
      this.unexpected();
    }
    if (this.at < this.text.length) this.newline();
    else this.readHere();
    return node;
  }

  /** All that is left. */
  all(): Node {
    const items: { node: Node; background: boolean; text: string }[] = [];
    for (let node; (node = this.next()) !== undefined;) {
      items.push({ node, background: false, text: "" });
    }
    return { kind: "list", items };
  }

  // Characters.

  private error(message: string, unfinished = false, shown?: string): never {
    throw new ShellSyntaxError(message, this.line, unfinished, shown);
  }

  private unexpected(): never {
    if (this.at >= this.text.length) {
      this.error("syntax error: unexpected end of file", true);
    }
    const token = this.token();
    const start = this.text.lastIndexOf("\n", this.at - 1) + 1;
    let end = this.text.indexOf("\n", start);
    if (end < 0) end = this.text.length;
    this.error(
      `syntax error near unexpected token \`${
        token === "\n" ? "newline" : token
      }'`,
      false,
      this.text.slice(start, end),
    );
  }

  /** The token here, for a message. */
  private token(): string {
    const rest = this.text.slice(this.at, this.at + 200);
    return /^(\n|;;&|;;|;&|&&|\|\||\|&|<<-|<<<|<<|>>|>&|<&|<>|>\||&>>|&>|[;&|<>()])/
      .exec(rest)?.[0] ??
      /^[^\s;&|<>()]+/.exec(rest)?.[0] ?? rest[0] ?? "";
  }

  private blanks(): void {
    for (;;) {
      const c = this.text[this.at];
      if (
        c === " " || c === "\t" || c === "\r" && this.text[this.at + 1] === "\n"
      ) this.at++;
      else if (c === "\\" && this.text[this.at + 1] === "\n") {
        this.at += 2;
        this.line++;
      } else if (c === "#") {
        const end = this.text.indexOf("\n", this.at);
        this.at = end < 0 ? this.text.length : end;
      } else return;
    }
  }

  private newline(): void {
    this.at++;
    this.line++;
    this.readHere();
  }

  private newlines(): void {
    for (this.blanks(); this.text[this.at] === "\n"; this.blanks()) {
      this.newline();
    }
  }

  private starts(s: string): boolean {
    return this.text.startsWith(s, this.at);
  }

  /** The reserved word here. */
  private reserved(): string | undefined {
    let end = this.at;
    while (end < this.text.length && !/[\s;&|<>()]/.test(this.text[end]!)) {
      if (/["'$`\\]/.test(this.text[end]!)) return undefined;
      if (++end - this.at > 8) return undefined;
    }
    const word = this.text.slice(this.at, end);
    return RESERVED.has(word) ? word : undefined;
  }

  private expect(word: string): void {
    this.newlines();
    if (this.reserved() !== word) this.unexpected();
    this.at += word.length;
  }

  private nested<T>(f: () => T): T {
    if (++this.depth > 400) this.error("the script is nested too deeply");
    try {
      return f();
    } finally {
      this.depth--;
    }
  }

  // Commands.

  /** Commands up to a closing word or parenthesis; of one line only if it is `top`. */
  private list(top: boolean, close: string): Node {
    return this.nested(() => {
      const items: { node: Node; background: boolean; text: string }[] = [];
      for (;;) {
        if (top) this.blanks();
        else this.newlines();
        const c = this.text[this.at];
        if (
          c === undefined || c === "\n" || close === ")" && c === ")" ||
          c === ";" && close === ";;" &&
            /^;[;&]/.test(this.text.slice(this.at, this.at + 2))
        ) break;
        const word = this.reserved();
        if (word !== undefined && CLOSING.has(word)) {
          if (top || close === ")") this.unexpected();
          break;
        }
        const from = this.at;
        const node = this.andOr();
        const text = this.text.slice(from, this.at).trimEnd();
        this.blanks();
        const end = this.text[this.at];
        if (end === "&" && this.text[this.at + 1] !== "&") {
          this.at++;
          items.push({ node, background: true, text });
        } else {
          items.push({ node, background: false, text });
          if (
            end === ";" && !/^;[;&]/.test(this.text.slice(this.at, this.at + 2))
          ) this.at++;
          else if (end !== "\n" || top) break;
        }
      }
      return items.length === 1 && !items[0]!.background
        ? items[0]!.node
        : { kind: "list", items };
    });
  }

  /** A list that must not be empty, up to a closing word, which is left. */
  private body(...ends: string[]): Node {
    const node = this.list(false, ends[0]!);
    if (this.at >= this.text.length) {
      this.error("syntax error: unexpected end of file", true);
    }
    const word = this.reserved();
    if (
      node.kind === "list" && node.items.length === 0 || word === undefined ||
      !ends.includes(word)
    ) {
      this.unexpected();
    }
    return node;
  }

  private andOr(): Node {
    let left = this.pipeline();
    for (;;) {
      this.blanks();
      const kind = this.starts("&&")
        ? "and"
        : this.starts("||")
        ? "or"
        : undefined;
      if (kind === undefined) return left;
      this.at += 2;
      this.newlines();
      left = { kind, left, right: this.pipeline() };
    }
  }

  private pipeline(): Node {
    let not = false, time: "" | "bash" | "posix" = "";
    const line = this.line;
    for (;;) {
      this.blanks();
      const word = this.reserved();
      if (word === "!") {
        not = !not;
        this.at++;
      } else if (word === "time") {
        time = "bash";
        this.at += 4;
        this.blanks();
        if (/^-p\s/.test(this.text.slice(this.at, this.at + 3))) {
          time = "posix";
          this.at += 2;
        }
      } else break;
    }
    this.blanks();
    if (
      (not || time !== "") &&
      (this.at >= this.text.length || /[\n;]/.test(this.text[this.at]!))
    ) {
      return { kind: "pipe", parts: [], errors: [], not, time, line };
    }
    const parts = [this.command()], errors: boolean[] = [];
    for (;;) {
      this.blanks();
      if (this.text[this.at] !== "|" || this.text[this.at + 1] === "|") break;
      errors.push(this.text[this.at + 1] === "&");
      this.at += errors.at(-1) ? 2 : 1;
      this.newlines();
      parts.push(this.command());
    }
    if (parts.length === 1 && !not && time === "") return parts[0]!;
    return { kind: "pipe", parts, errors, not, time, line };
  }

  private command(): Node {
    return this.nested(() => {
      this.blanks();
      const line = this.line;
      const body = this.compound();
      if (body === undefined) return this.simple();
      if (body.kind === "function") return body;
      const redirects: Redirect[] = [];
      for (;;) {
        this.blanks();
        const redirect = this.redirect();
        if (redirect === undefined) break;
        redirects.push(redirect);
      }
      return redirects.length === 0
        ? body
        : { kind: "redirected", body, redirects, line };
    });
  }

  private compound(): Node | undefined {
    const line = this.line, c = this.text[this.at];
    if (c === undefined) this.unexpected();
    if (c === "(") {
      if (this.text[this.at + 1] === "(") {
        const inside = this.doubleParentheses(this.at + 2);
        if (inside !== undefined) {
          this.at += inside.length + 4;
          this.line += count(inside);
          return {
            kind: "let",
            parts: texts(inside, line, "arithmetic"),
            line,
            text: inside,
          };
        }
      }
      this.at++;
      return { kind: "subshell", body: this.parenthesised(), line };
    }
    const word = this.reserved();
    if (word === undefined) return this.functionByName();
    const after = () => {
      this.at += word.length;
    };
    switch (word) {
      case "{": {
        after();
        const body = this.body("}");
        this.at++;
        return { kind: "group", body };
      }
      case "if": {
        const clauses: { test: Node; body: Node }[] = [];
        let otherwise: Node | undefined;
        after();
        for (;;) {
          const test = this.body("then");
          this.at += 4;
          clauses.push({ test, body: this.body("elif", "else", "fi") });
          const end = this.reserved()!;
          this.at += end.length;
          if (end === "elif") continue;
          if (end === "else") {
            otherwise = this.body("fi");
            this.at += 2;
          }
          return { kind: "if", clauses, otherwise };
        }
      }
      case "while":
      case "until": {
        after();
        const test = this.body("do");
        this.at += 2;
        const body = this.body("done");
        this.at += 4;
        return { kind: "while", until: word === "until", test, body };
      }
      case "for":
      case "select": {
        after();
        this.blanks();
        if (word === "for" && this.starts("((")) {
          const inside = this.doubleParentheses(this.at + 2) ??
            this.unexpected();
          this.at += inside.length + 4;
          this.line += count(inside);
          const pieces = splitSemicolons(inside);
          if (pieces.length !== 3) {
            this.error(`syntax error: arithmetic expression required`);
          }
          this.blanks();
          if (this.text[this.at] === ";") this.at++;
          const [init, test, step] = pieces.map((p) =>
            texts(p.trim(), line, "arithmetic")
          );
          return {
            kind: "count",
            init: init!,
            test: test!,
            step: step!,
            body: this.doBody(),
            line,
          };
        }
        const name = NAME.exec(this.text.slice(this.at, this.at + 200))?.[0];
        if (name === undefined) this.unexpected();
        this.at += name.length;
        this.newlines();
        let words: Word[] | undefined;
        if (this.reserved() === "in") {
          this.at += 2;
          words = [];
          for (;;) {
            this.blanks();
            const c = this.text[this.at];
            if (c === undefined || c === ";" || c === "\n") break;
            if (
              /[&|<>()]/.test(c) &&
              !/^[<>]\(/.test(this.text.slice(this.at, this.at + 2))
            ) this.unexpected();
            words.push(this.word());
          }
        }
        this.blanks();
        if (this.text[this.at] === ";") this.at++;
        return { kind: word, name, words, body: this.doBody(), line };
      }
      case "case": {
        after();
        this.blanks();
        const subject = this.word();
        this.expect("in");
        const items: { patterns: Word[]; body: Node; end: string }[] = [];
        for (;;) {
          this.newlines();
          if (this.at >= this.text.length) this.unexpected();
          if (this.reserved() === "esac") {
            this.at += 4;
            return { kind: "case", word: subject, items, line };
          }
          if (this.text[this.at] === "(") this.at++;
          const patterns: Word[] = [];
          for (;;) {
            this.blanks();
            if (/[;&|<>()\n]/.test(this.text[this.at] ?? "\n")) {
              this.unexpected();
            }
            patterns.push(this.word("pattern"));
            this.blanks();
            if (this.text[this.at] === "|") this.at++;
            else if (this.text[this.at] === ")") break;
            else this.unexpected();
          }
          this.at++;
          const body = this.list(false, ";;");
          this.newlines();
          const end =
            /^;;&|^;;|^;&/.exec(this.text.slice(this.at, this.at + 3))?.[0] ??
              "";
          if (end === "" && this.reserved() !== "esac") this.unexpected();
          this.at += end.length;
          items.push({ patterns, body, end: end || ";;" });
        }
      }
      case "[[": {
        after();
        const test = this.testOr();
        this.newlines();
        if (this.reserved() !== "]]") this.testError();
        this.at += 2;
        return { kind: "test", test, line };
      }
      case "function": {
        const from = this.at;
        after();
        this.blanks();
        const name = /^[^\s;&|<>()$`"'\\]+/.exec(
          this.text.slice(this.at, this.at + 500),
        )?.[0];
        if (name === undefined) this.unexpected();
        this.at += name.length;
        this.blanks();
        if (/^\([ \t]*\)/.test(this.text.slice(this.at, this.at + 50))) {
          this.at = this.text.indexOf(")", this.at) + 1;
        }
        return this.functionBody(name, line, from);
      }
      default:
        this.unexpected();
    }
  }

  private doBody(): Node {
    this.newlines();
    if (this.reserved() === "{") {
      this.at++;
      const body = this.body("}");
      this.at++;
      return body;
    }
    this.expect("do");
    const body = this.body("done");
    this.at += 4;
    return body;
  }

  private functionByName(): Node | undefined {
    const head = /^([^\s;&|<>()$`"'\\=]+)[ \t]*\([ \t]*\)/.exec(
      this.text.slice(this.at, this.at + 500),
    );
    if (head === null) return undefined;
    const line = this.line, from = this.at;
    this.at += head[0].length;
    return this.functionBody(head[1]!, line, from);
  }

  private functionBody(name: string, line: number, from: number): Node {
    this.newlines();
    const start = this.at, { line: startLine } = this;
    const body = this.command();
    if (body.kind === "simple") {
      [this.at, this.line] = [start, startLine];
      this.unexpected();
    }
    return {
      kind: "function",
      name,
      body,
      line,
      text: this.text.slice(from, this.at),
    };
  }

  /** Commands up to `)`, which is taken. */
  private parenthesised(): Node {
    const body = this.list(false, ")");
    this.newlines();
    if (this.at >= this.text.length) {
      this.error("syntax error: unexpected end of file", true);
    }
    if (this.text[this.at] !== ")") this.unexpected();
    this.at++;
    return body;
  }

  /** The text between `((` and `))`; undefined where they are two subshells. */
  private doubleParentheses(from: number): string | undefined {
    let depth = 0;
    for (let i = from; i < this.text.length; i++) {
      const c = this.text[i]!;
      if (c === "\\") i++;
      else if (c === "'" || c === '"') {
        const end = this.text.indexOf(c, i + 1);
        if (end < 0) return undefined;
        i = end;
      } else if (c === "(") depth++;
      else if (c === ")") {
        if (depth > 0) depth--;
        else {return this.text[i + 1] === ")"
            ? this.text.slice(from, i)
            : undefined;}
      }
    }
    this.error("syntax error: unexpected end of file", true);
  }

  private simple(): Node {
    const node: Simple = {
      kind: "simple",
      assigns: [],
      words: [],
      redirects: [],
      line: this.line,
    };
    let declaring = false;
    for (;;) {
      this.blanks();
      const c = this.text[this.at];
      if (
        c === undefined || c === "\n" || c === ";" || c === "|" || c === ")"
      ) break;
      if (c === "&" && this.text[this.at + 1] !== ">") break;
      const redirect = this.redirect();
      if (redirect !== undefined) {
        node.redirects.push(redirect);
        continue;
      }
      if (c === "(") this.unexpected();
      if (node.words.length === 0) {
        const assign = this.assignment();
        if (assign !== undefined) {
          node.assigns.push(assign);
          continue;
        }
      } else if (declaring) {
        const assign = this.assignment();
        if (assign !== undefined) {
          node.words.push({ parts: [], assign });
          continue;
        }
      }
      const word = this.word();
      node.words.push(word);
      if (node.words.length <= 2) {
        const first = word.parts.length === 1 && word.parts[0]!.kind === "text"
          ? word.parts[0]!.text
          : "";
        if (
          node.words.length === 1
            ? DECLARING.has(first)
            : DECLARING.has(first) && plain(node.words[0]!) === "builtin"
        ) declaring = true;
      }
    }
    if (
      node.words.length === 0 && node.assigns.length === 0 &&
      node.redirects.length === 0
    ) this.unexpected();
    return node;
  }

  private assignment(): Assign | undefined {
    const name = NAME.exec(this.text.slice(this.at, this.at + 300))?.[0];
    if (name === undefined) return undefined;
    let at = this.at + name.length, index: Word | undefined;
    if (this.text[at] === "[") {
      const end = closingBracket(this.text, at);
      if (end < 0 || !/^\+?=/.test(this.text.slice(end + 1, end + 3))) {
        return undefined;
      }
      index = {
        parts: texts(this.text.slice(at + 1, end), this.line, "index"),
      };
      at = end + 1;
    }
    const append = this.text[at] === "+";
    if (this.text[append ? at + 1 : at] !== "=") return undefined;
    this.at = at + (append ? 2 : 1);
    if (this.text[this.at] === "(" && index === undefined) {
      this.at++;
      const elements: { index?: Word; append: boolean; value: Word }[] = [];
      for (;;) {
        this.newlines();
        const c = this.text[this.at];
        if (c === undefined) {
          this.error("unexpected EOF while looking for matching `)'", true);
        }
        if (c === ")") break;
        if (
          /[;&|<>(]/.test(c) &&
          !/^[<>]\(/.test(this.text.slice(this.at, this.at + 2))
        ) this.unexpected();
        if (c === "[") {
          const end = closingBracket(this.text, this.at);
          const sign = end < 0
            ? null
            : /^\+?=/.exec(this.text.slice(end + 1, end + 3));
          if (sign !== null) {
            const key: Word = {
              parts: texts(
                this.text.slice(this.at + 1, end),
                this.line,
                "index",
              ),
            };
            this.at = end + 1 + sign[0].length;
            elements.push({
              index: key,
              append: sign[0] === "+=",
              value: this.valueWord(),
            });
            continue;
          }
        }
        elements.push({ append: false, value: this.word() });
      }
      this.at++;
      return { name, append, elements };
    }
    return { name, index, append, value: this.valueWord() };
  }

  private valueWord(): Word {
    return /[\s;&|)]/.test(this.text[this.at] ?? " ")
      ? { parts: [] }
      : this.word();
  }

  private redirect(): Redirect | undefined {
    const head =
      /^(\d*|\{[A-Za-z_]\w*\})(<<<|<<-|<<|<>|<&|<(?!\()|>>|>&|>\||>(?!\()|&>>|&>)/
        .exec(
          this.text.slice(this.at, this.at + 120),
        );
    if (head === null) return undefined;
    const [all, left, op] = head as unknown as [string, string, string];
    if (left !== "" && op.startsWith("&")) return undefined;
    this.at += all.length;
    this.blanks();
    const redirect: Redirect = { op, target: { parts: [] } };
    if (/^\d/.test(left)) redirect.fd = Number(left);
    else if (left !== "") redirect.variable = left.slice(1, -1);
    if (this.at >= this.text.length) {
      this.error("syntax error near unexpected token `newline'");
    }
    if (
      /[\n;&|<>()]/.test(this.text[this.at] ?? "\n") &&
      !/^[<>]\(/.test(this.text.slice(this.at, this.at + 2))
    ) {
      this.unexpected();
    }
    const from = this.at;
    redirect.target = this.word();
    if (op === "<<" || op === "<<-") {
      const source = this.text.slice(from, this.at);
      this.here.push({
        redirect,
        end: unquote(source),
        quoted: /["'\\]/.test(source),
        tabs: op === "<<-",
        line: this.line,
      });
    }
    return redirect;
  }

  /** Takes the bodies of the here-documents whose line has ended. */
  private readHere(): void {
    for (const doc of this.here.splice(0)) {
      const lines: string[] = [], first = this.line;
      for (;;) {
        if (this.at >= this.text.length) {
          this.hereUnfinished = { line: doc.line, end: doc.end, at: this.line };
          break;
        }
        let end = this.text.indexOf("\n", this.at);
        if (end < 0) end = this.text.length;
        let line = this.text.slice(this.at, end);
        this.at = Math.min(end + 1, this.text.length);
        this.line++;
        if (doc.tabs) line = line.replace(/^\t+/, "");
        if (line === doc.end) break;
        lines.push(line + "\n");
      }
      const body = lines.join("");
      doc.redirect.target = {
        parts: doc.quoted
          ? [{ kind: "quoted", text: body }]
          : texts(body, first, "document"),
      };
    }
  }

  /** The here-document that the text's end cut off. */
  hereUnfinished?: { line: number; end: string; at: number };

  // [[ … ]]

  private testError(): never {
    if (this.at >= this.text.length) {
      this.error("syntax error: unexpected end of file", true);
    }
    const token = this.token();
    this.error(
      `syntax error in conditional expression: unexpected token \`${
        token === "\n" ? "newline" : token
      }'`,
    );
  }

  private testOr(): Test {
    let left = this.testAnd();
    for (this.newlines(); this.starts("||"); this.newlines()) {
      this.at += 2;
      left = { kind: "or", left, right: this.testAnd() };
    }
    return left;
  }

  private testAnd(): Test {
    let left = this.testOne();
    for (this.newlines(); this.starts("&&"); this.newlines()) {
      this.at += 2;
      left = { kind: "and", left, right: this.testOne() };
    }
    return left;
  }

  private testOne(): Test {
    return this.nested(() => {
      this.newlines();
      if (this.at >= this.text.length) this.testError();
      if (this.reserved() === "!") {
        this.at++;
        return { kind: "not", test: this.testOne() } as Test;
      }
      if (this.text[this.at] === "(") {
        this.at++;
        const test = this.testOr();
        this.newlines();
        if (this.text[this.at] !== ")") this.testError();
        this.at++;
        return test;
      }
      if (/[;&|<>)]/.test(this.text[this.at]!) || this.reserved() === "]]") {
        this.testError();
      }
      const left = this.word("pattern"), name = plain(left);
      this.blanks();
      if (
        name !== undefined && UNARY.test(name) && !this.testEnds() &&
        !this.testBinary()
      ) {
        return { kind: "unary", op: name, word: this.word("pattern") } as Test;
      }
      const op = this.testBinary();
      if (op === undefined) return { kind: "word", word: left } as Test;
      this.at += op.length;
      this.blanks();
      if (this.testEnds()) this.testError();
      return {
        kind: "binary",
        op,
        left,
        right: this.word(op === "=~" ? "regex" : "pattern"),
      } as Test;
    });
  }

  private testEnds(): boolean {
    return this.at >= this.text.length ||
      /^(\n|&&|\|\||\))/.test(this.text.slice(this.at, this.at + 2)) ||
      this.reserved() === "]]";
  }

  private testBinary(): string | undefined {
    const word = /^(=~|==|!=|=|<|>|-[a-z]{2})(?=\s|$)/.exec(
      this.text.slice(this.at, this.at + 5),
    )?.[1] ??
      /^[<>]/.exec(this.text.slice(this.at, this.at + 1))?.[0];
    return word !== undefined && BINARY.has(word) ? word : undefined;
  }

  // Words.

  private word(mode: "" | "pattern" | "regex" = ""): Word {
    const parts: Part[] = [];
    let text = "", depth = 0;
    const flush = () => {
      if (text !== "") parts.push({ kind: "text", text });
      text = "";
    };
    for (;;) {
      const c = this.text[this.at];
      if (c === undefined) break;
      if (c === "\\") {
        const next = this.text[this.at + 1];
        if (next === "\n") {
          this.at += 2;
          this.line++;
          continue;
        }
        this.at += next === undefined ? 1 : 2;
        flush();
        parts.push({ kind: "quoted", text: next ?? "\\" });
        continue;
      }
      if (c === "'" || c === '"' || c === "$" || c === "`") {
        const part = this.special(false);
        if (part !== undefined) {
          flush();
          parts.push(part);
        } else {
          text += c;
          this.at++;
        }
        continue;
      }
      if (depth > 0) {
        if (c === "(") depth++;
        else if (c === ")") depth--;
        if (c === "\n") this.line++;
      } else {
        if (
          c === " " || c === "\t" || c === "\n" ||
          c === "\r" && this.text[this.at + 1] === "\n"
        ) break;
        if (mode === "regex") {
          if (c === "(") depth = 1;
          else if (
            c === ")" || c === ";" ||
            c === "&" && this.text[this.at + 1] === "&" ||
            c === "|" && this.text[this.at + 1] === "|"
          ) break;
        } else {
          if (
            (c === "<" || c === ">") && this.text[this.at + 1] === "(" &&
            text === "" && parts.length === 0
          ) {
            this.at += 2;
            parts.push({
              kind: "process",
              body: this.parenthesised(),
              output: c === ">",
            });
            continue;
          }
          if (c === "(" && /[?*+@!]$/.test(text)) depth = 1;
          else if (/[;&|<>()]/.test(c)) break;
        }
      }
      text += c;
      this.at++;
    }
    flush();
    return { parts };
  }

  /** A quotation or an expansion; undefined for a dollar that is just one. */
  private special(inDouble: boolean): Part | undefined {
    const c = this.text[this.at], line = this.line;
    if (c === "'") {
      const end = this.text.indexOf("'", this.at + 1);
      if (end < 0) this.unclosed("'", line);
      const text = this.text.slice(this.at + 1, end);
      this.line += count(text);
      this.at = end + 1;
      return { kind: "quoted", text };
    }
    if (c === '"') {
      this.at++;
      const parts = this.double('"', line);
      return { kind: "double", parts };
    }
    if (c === "`") {
      let end = this.at + 1, source = "";
      for (;; end++) {
        const d = this.text[end];
        if (d === undefined) this.unclosed("`", line);
        if (d === "`") break;
        if (d === "\\") {
          const next = this.text[++end] ?? "";
          source += next === "`" || next === "\\" || next === "$" ||
              inDouble && next === '"'
            ? next
            : "\\" + next;
        } else source += d;
      }
      this.line += count(this.text.slice(this.at, end));
      this.at = end + 1;
      return { kind: "command", body: new Parser(source, line).all(), line };
    }
    const next = this.text[this.at + 1] ?? "";
    if (next === "(") {
      if (this.text[this.at + 2] === "(") {
        const inside = this.doubleParentheses(this.at + 3);
        if (inside !== undefined) {
          this.at += inside.length + 5;
          this.line += count(inside);
          return {
            kind: "arithmetic",
            parts: texts(inside, line, "arithmetic"),
          };
        }
      }
      this.at += 2;
      const saved = this.here;
      this.here = [];
      let body: Node;
      try {
        body = this.parenthesised();
      } catch (e) {
        if (e instanceof ShellSyntaxError && e.unfinished) {
          this.unclosed(")", line);
        }
        throw e;
      }
      this.here = saved;
      return { kind: "command", body, line };
    }
    if (next === "[") {
      const end = closingBracket(this.text, this.at + 1);
      if (end < 0) return undefined;
      const inside = this.text.slice(this.at + 2, end);
      this.at = end + 1;
      return { kind: "arithmetic", parts: texts(inside, line, "arithmetic") };
    }
    if (next === "{") return this.braced(inDouble);
    if (next === "'" && !inDouble) {
      let end = this.at + 2;
      while (this.text[end] !== "'") {
        if (end >= this.text.length) this.unclosed("'", line);
        end += this.text[end] === "\\" ? 2 : 1;
      }
      const text = this.text.slice(this.at + 2, end);
      this.line += count(text);
      this.at = end + 1;
      return { kind: "quoted", text: escapes(text, "$'") };
    }
    if (next === '"' && !inDouble) {
      this.at += 2;
      return { kind: "double", parts: this.double('"', line) };
    }
    const name = NAME.exec(this.text.slice(this.at + 1, this.at + 300))?.[0] ??
      /^[0-9@*#?$!-]/.exec(next)?.[0];
    if (name === undefined) return undefined;
    this.at += 1 + name.length;
    return { kind: "parameter", name, source: "$" + name };
  }

  private unclosed(quote: string, line: number): never {
    throw new ShellSyntaxError(
      `unexpected EOF while looking for matching \`${quote}'`,
      line,
      true,
    );
  }

  /** Text as in double quotes, up to `close`, which is taken. */
  private double(close: string, line: number): Part[] {
    const parts: Part[] = [];
    let text = "";
    for (;;) {
      const c = this.text[this.at];
      if (c === undefined) {
        if (close === "") break;
        this.unclosed(close, line);
      }
      if (c === close) {
        this.at++;
        break;
      }
      if (c === "\\") {
        const next = this.text[this.at + 1] ?? "";
        this.at += 2;
        if (next === "\n") this.line++;
        else if (
          next === "$" || next === "`" || next === "\\" ||
          next === '"' && close === '"'
        ) text += next;
        else text += "\\" + next;
        continue;
      }
      if (c === "$" || c === "`") {
        const part = this.special(true);
        if (part !== undefined) {
          if (text !== "") parts.push({ kind: "quoted", text });
          text = "";
          parts.push(part);
          continue;
        }
      }
      if (c === "\n") this.line++;
      text += c;
      this.at++;
    }
    if (text !== "") parts.push({ kind: "quoted", text });
    return parts;
  }

  /** `${…}` */
  private braced(inDouble: boolean): Part {
    const from = this.at, line = this.line;
    this.at += 2;
    const part: Parameter = { kind: "parameter", name: "", source: "" };
    const done = (): Part => {
      if (this.at >= this.text.length) this.unclosed("}", line);
      if (this.text[this.at] !== "}") {
        // What is not understood is a bad substitution when it is reached.
        let depth = 1;
        for (; depth > 0; this.at++) {
          if (this.at >= this.text.length) this.unclosed("}", line);
          if (this.text[this.at] === "{") depth++;
          else if (this.text[this.at] === "}") depth--;
        }
        return {
          kind: "parameter",
          name: "",
          op: "bad",
          source: this.text.slice(from, this.at),
        };
      }
      this.at++;
      part.source = this.text.slice(from, this.at);
      return part;
    };
    const name = () => {
      const rest = this.text.slice(this.at, this.at + 300);
      const found = NAME.exec(rest)?.[0] ?? /^\d+|^[@*#?$!-]/.exec(rest)?.[0] ??
        "";
      this.at += found.length;
      if (found !== "" && this.text[this.at] === "[") {
        const end = closingBracket(this.text, this.at);
        if (end > 0) {
          part.index = {
            parts: texts(this.text.slice(this.at + 1, end), this.line, "index"),
          };
          this.at = end + 1;
        }
      }
      return found;
    };
    if (
      this.text[this.at] === "#" &&
      /^#([A-Za-z_0-9@*?$!-]|#\})/.test(this.text.slice(this.at, this.at + 3))
    ) {
      const back = this.at;
      this.at++;
      part.name = name();
      if (this.text[this.at] === "}") {
        part.op = "length";
        return done();
      }
      this.at = back;
      part.index = undefined;
    }
    if (
      this.text[this.at] === "!" &&
      /[A-Za-z_0-9@*#]/.test(this.text[this.at + 1] ?? "")
    ) {
      this.at++;
      part.name = name();
      part.indirect = true;
      const next = this.text[this.at];
      if ((next === "*" || next === "@") && this.text[this.at + 1] === "}") {
        part.op = "names";
        part.word = { parts: [{ kind: "text", text: next }] };
        this.at++;
        return done();
      }
      const index = part.index === undefined ? undefined : plain(part.index);
      if ((index === "@" || index === "*") && next === "}") {
        part.op = "keys";
        return done();
      }
    } else {
      part.name = name();
    }
    if (part.name === "" || this.text[this.at] === "}") {
      if (part.name === "") this.text[this.at] === "}" ? this.at : 0;
      if (part.name === "") {
        const end = this.text.indexOf("}", this.at);
        if (end < 0) this.unclosed("}", line);
        this.at = end + 1;
        return {
          kind: "parameter",
          name: "",
          op: "bad",
          source: this.text.slice(from, this.at),
        };
      }
      return done();
    }
    const op =
      /^(:[-=?+]|##|#|%%|%|\/\/|\/#|\/%|\/|\^\^|\^|,,|,|~~|~|@[QEPAaKkuUL]|:|[-=?+])/
        .exec(
          this.text.slice(this.at, this.at + 2),
        )?.[0];
    if (op === undefined) return done();
    this.at += op.length;
    part.op = op;
    if (op[0] === "@") return done();
    if (op === ":") {
      part.word = { parts: texts(this.upTo(":}"), line, "arithmetic") };
      if (this.text[this.at] === ":") {
        this.at++;
        part.second = { parts: texts(this.upTo("}"), line, "arithmetic") };
      }
      return done();
    }
    const pattern = /[#%\/^,~]/.test(op[0]!);
    part.word = this.operand(
      op[0] === "/" ? "/}" : "}",
      inDouble && !pattern,
      op === "/#" || op === "/%",
    );
    if (op[0] === "/" && this.text[this.at] === "/") {
      this.at++;
      part.second = this.operand("}", false);
    }
    return done();
  }

  /** The text up to one of `stops`, over nested brackets and quotes. */
  private upTo(stops: string): string {
    const from = this.at;
    let depth = 0, ternary = 0;
    for (; this.at < this.text.length; this.at++) {
      const c = this.text[this.at]!;
      if (depth === 0 && c === ":" && ternary > 0) {
        ternary--;
        continue;
      }
      if (depth === 0 && stops.includes(c)) break;
      if (c === "?") ternary++;
      if (c === "\\") this.at++;
      else if (c === "(" || c === "{" || c === "[") depth++;
      else if (c === ")" || c === "}" || c === "]") depth--;
      else if (c === "\n") this.line++;
    }
    return this.text.slice(from, this.at);
  }

  /** The word of a `${name op word}`. */
  private operand(
    stops: string,
    inDouble: boolean,
    anchored = false,
  ): Word {
    const parts: Part[] = [];
    let text = "";
    const flush = () => {
      if (text !== "") {
        parts.push(
          inDouble ? { kind: "quoted", text } : { kind: "text", text },
        );
      }
      text = "";
    };
    let first = true;
    for (;; first = false) {
      const c = this.text[this.at];
      if (c === undefined) this.unclosed("}", this.line);
      // `${x//a/b}`: a slash right at the pattern's start belongs to it.
      if (stops.includes(c) && !(first && c === "/" && !anchored)) break;
      if (c === "\\") {
        const next = this.text[this.at + 1] ?? "";
        this.at += 2;
        if (next === "\n") {
          this.line++;
          continue;
        }
        flush();
        if (inDouble && !'$`"\\}'.includes(next)) {
          parts.push({ kind: "quoted", text: "\\" + next });
        } else parts.push({ kind: "quoted", text: next });
        continue;
      }
      if (c === "$" || c === "`" || c === '"' || c === "'" && !inDouble) {
        const part = this.special(inDouble && c !== '"');
        if (part !== undefined) {
          flush();
          parts.push(part);
          continue;
        }
      }
      if (c === "\n") this.line++;
      text += c;
      this.at++;
    }
    flush();
    return { parts };
  }

  /** The whole text as the inside of something that is expanded like double quotes. */
  static texts(
    text: string,
    line: number,
    mode: "document" | "arithmetic" | "index",
  ): Part[] {
    const parser = new Parser(text, line);
    if (mode === "document") return parser.double("", line);
    if (mode === "arithmetic") {
      // Quotes have no meaning in arithmetic, and go.
      return parser.arithmetic();
    }
    const parts: Part[] = [];
    while (parser.at < parser.text.length) {
      const word = parser.word("regex");
      parts.push(...word.parts);
      if (parser.at < parser.text.length) {
        parts.push({ kind: "text", text: parser.text[parser.at]! });
        parser.at++;
      }
    }
    return parts;
  }

  private arithmetic(): Part[] {
    const parts: Part[] = [];
    let text = "";
    while (this.at < this.text.length) {
      const c = this.text[this.at]!;
      if (c === '"') {
        this.at++;
        continue;
      }
      if (c === "\\" && this.text[this.at + 1] === "\n") {
        this.at += 2;
        continue;
      }
      if (c === "$" || c === "`" || c === "'") {
        const part = c === "'" && !this.text.includes("'", this.at + 1)
          ? undefined
          : this.special(c !== "'");
        if (part !== undefined) {
          if (text !== "") parts.push({ kind: "quoted", text });
          text = "";
          parts.push(part);
          continue;
        }
      }
      text += c;
      this.at++;
    }
    if (text !== "") parts.push({ kind: "quoted", text });
    return parts;
  }
}

const texts = Parser.texts;

/** A word's text, if it is nothing but text. */
export function plain(word: Word): string | undefined {
  if (word.parts.length === 0) return "";
  let all = "";
  for (const part of word.parts) {
    if (part.kind !== "text") return undefined;
    all += part.text;
  }
  return all;
}

function count(text: string): number {
  let n = 0;
  for (let i = text.indexOf("\n"); i >= 0; i = text.indexOf("\n", i + 1)) n++;
  return n;
}

function closingBracket(text: string, at: number): number {
  let depth = 0;
  for (let i = at; i < text.length; i++) {
    const c = text[i]!;
    if (c === "\\") i++;
    else if (c === "'" || c === '"') {
      const end = text.indexOf(c, i + 1);
      if (end < 0) return -1;
      i = end;
    } else if (c === "[") depth++;
    else if (c === "]" && --depth === 0) return i;
    else if (c === "\n") return -1;
  }
  return -1;
}

function splitSemicolons(text: string): string[] {
  const pieces: string[] = [];
  let depth = 0, from = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "(") depth++;
    else if (text[i] === ")") depth--;
    else if (text[i] === ";" && depth === 0) {
      pieces.push(text.slice(from, i));
      from = i + 1;
    }
  }
  return [...pieces, text.slice(from)];
}

function unquote(source: string): string {
  return source.replace(
    /\\([\s\S])|'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"/g,
    (_, a, b, c) => a ?? b ?? c.replace(/\\(["\\$`])/g, "$1"),
  );
}

/** A byte that is no UTF-8 stands in a string as a lone surrogate of this value and up. */
export const RAW = 0xdc00;

/** Undoes backslash escapes: of `$'…'`, of `echo -e`, or of `printf`. */
export function escapes(text: string, mode: "$'" | "echo" | "printf"): string {
  if (!text.includes("\\")) return text;
  let out = "";
  let bytes: number[] = [];
  const flush = () => {
    if (bytes.length > 0) out += fromBytes(new Uint8Array(bytes));
    bytes = [];
  };
  const byte = (n: number) => {
    if (n < 0x80 && bytes.length === 0) out += String.fromCharCode(n);
    else bytes.push(n & 0xff);
  };
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (c !== "\\" || i === text.length - 1) {
      flush();
      out += c;
      continue;
    }
    const d = text[++i]!;
    const rest = text.slice(i + 1, i + 10);
    const simple = "abefnrtv\\'\"?".indexOf(d);
    if (d === "x") {
      const hex = /^[0-9a-fA-F]{1,2}/.exec(rest)?.[0];
      if (hex === undefined) {
        flush();
        out += "\\x";
      } else {
        byte(parseInt(hex, 16));
        i += hex.length;
      }
    } else if (d === "u" || d === "U") {
      const hex = (d === "u" ? /^[0-9a-fA-F]{1,4}/ : /^[0-9a-fA-F]{1,8}/).exec(
        rest,
      )?.[0];
      flush();
      if (hex === undefined) out += "\\" + d;
      else {
        const code = parseInt(hex, 16);
        out += code <= 0x10ffff ? String.fromCodePoint(code) : "\ufffd";
        i += hex.length;
      }
    } else if (/[0-7]/.test(d) && (mode !== "echo" || d === "0")) {
      const octal = (mode === "echo"
        ? /^0[0-7]{0,3}/
        : mode === "printf" && d === "0"
        ? /^0?[0-7]{1,3}/
        : /^[0-7]{1,3}/).exec(d + rest)![0];
      byte(parseInt(octal, 8));
      i += octal.length - 1;
    } else if (d === "c" && mode === "$'" && rest !== "") {
      byte(rest.charCodeAt(0) & 0x1f);
      i++;
    } else if (
      d === "E" || simple >= 0 && (mode !== "echo" || !"'\"?".includes(d))
    ) {
      flush();
      out += d === "E" ? "\x1b" : "\x07\b\x1b\f\n\r\t\v\\'\"?"[simple];
    } else {
      flush();
      out += "\\" + d;
    }
  }
  flush();
  return out;
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** The string of some bytes; those that are no UTF-8 become lone surrogates. */
export function fromBytes(bytes: Uint8Array): string {
  try {
    return strict.decode(bytes);
  } catch {
    // Piece by piece.
  }
  let out = "";
  for (let i = 0; i < bytes.length;) {
    const b = bytes[i]!;
    const n = b < 0x80
      ? 1
      : b >= 0xc2 && b < 0xe0
      ? 2
      : b >= 0xe0 && b < 0xf0
      ? 3
      : b >= 0xf0 && b < 0xf5
      ? 4
      : 0;
    let piece: string | undefined;
    if (n === 1) piece = String.fromCharCode(b);
    else if (n > 1) {
      try {
        piece = strict.decode(bytes.subarray(i, i + n));
      } catch {
        piece = undefined;
      }
    }
    if (piece === undefined) {
      out += String.fromCharCode(RAW + b);
      i++;
    } else {
      out += piece;
      i += n;
    }
  }
  return out;
}

/** The bytes of a string. */
export function toBytes(text: string): Uint8Array<ArrayBuffer> {
  if ((text as unknown as { isWellFormed(): boolean }).isWellFormed()) {
    return encoder.encode(text);
  }
  const pieces: Uint8Array[] = [];
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 0xd800 && code < 0xdc00) {
      i++;
      continue;
    }
    if (code < RAW + 0x80 || code > RAW + 0xff) continue;
    pieces.push(
      encoder.encode(text.slice(from, i)),
      new Uint8Array([code - RAW]),
    );
    from = i + 1;
  }
  pieces.push(encoder.encode(text.slice(from)));
  return concat(pieces);
}

export function concat(pieces: Uint8Array[]): Uint8Array<ArrayBuffer> {
  let size = 0;
  for (const piece of pieces) size += piece.length;
  const all = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}
