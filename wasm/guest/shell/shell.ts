/**
 * The shell's interpreter: it walks a script's tree (syntax.ts). Commands of a pipeline
 * run at the same time, each as a copy of the shell with its own descriptors; what a
 * command writes goes on as it is written. Commands themselves are builtins, which may
 * change the shell, and programs, which get their arguments and descriptors.
 *
 * @module
 */

import type { WireError } from "../../../supervisor/wire/guest/wire.ts";
import type { Host } from "../language.ts";
import { FileError, type Files, type Stat } from "../files.ts";
import { ArithmeticError, type Cells, evaluate } from "./arithmetic.ts";
import * as pattern from "./pattern.ts";
import {
  BrokenPipe,
  Collector,
  Endless,
  FileStream,
  Given,
  Nothing,
  pipe,
  readAll,
  type Stream,
} from "./streams.ts";
import {
  type Assign,
  fromBytes,
  type Node,
  type Parameter,
  Parser,
  type Part,
  plain,
  type Redirect,
  ShellSyntaxError,
  type Simple,
  type Test,
  toBytes,
  type Word,
} from "./syntax.ts";

/** What all copies of a shell share. */
export interface World {
  files: Files;
  host: Host;
  builtins: Map<string, Builtin>;
  programs: Programs;
  /** Milliseconds since 1970 at which the shell began. */
  began: number;
  nextPid: number;
  /** Copies of the shell that run. */
  live: number;
  /** Why the program is no script, or what it went too deep in. */
  failure?: WireError;
}

export interface Programs {
  names(): Iterable<string>;
  has(name: string): boolean;
  run(call: Call): number | Promise<number>;
  /** What to say of a command that is not there, beside that. */
  hint(name: string): string | undefined;
}

/** Changes the shell. What is an assignment in a declaration comes as one. */
export type Builtin = (
  shell: Shell,
  args: (string | Assign)[],
  name: string,
) => number | Promise<number>;

/** A program's start. */
export interface Call {
  name: string;
  args: string[];
  shell: Shell;
  stdin: Stream;
  stdout: Stream;
  stderr: Stream;
}

export interface Variable {
  value?: string;
  /** An indexed array, which may have holes. */
  list?: string[];
  map?: Map<string, string>;
  /** Its array is another copy's too, and is copied before it is changed. */
  shared?: boolean;
  exported?: boolean;
  readonly?: boolean;
  integer?: boolean;
  lower?: boolean;
  upper?: boolean;
  reference?: boolean;
}

export interface Job {
  pid: number;
  number: number;
  text: string;
  done: Promise<number>;
  status?: number;
  cancel: Cancel;
}

/** How a part of the script is ended from outside it. */
export class Cancel {
  private waiting = new Set<() => void>();
  private mine = 0;
  constructor(private parent?: Cancel) {}
  /** The signal that ended it; 0 if none did. */
  get signal(): number {
    return this.mine || (this.parent?.signal ?? 0);
  }
  end(signal: number): void {
    this.mine ||= signal;
    for (const wake of this.waiting) wake();
  }
  /** This and those around it. */
  private chain(): Cancel[] {
    return [this, ...this.parent?.chain() ?? []];
  }
  /** Waits so many milliseconds, or until the end. */
  async sleep(ms: number): Promise<void> {
    let wake = () => {};
    await new Promise<void>((resolve) => {
      // A timer holds no more than 2³¹ milliseconds.
      const timer = setTimeout(resolve, Math.min(ms, 0x7fffffff));
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
      for (const c of this.chain()) c.waiting.add(wake);
      if (this.signal !== 0) wake();
    });
    for (const c of this.chain()) c.waiting.delete(wake);
    if (this.signal !== 0) throw new Killed(this.signal);
  }
}

/** The shell's end. */
export class ExitShell {
  constructor(readonly code: number) {}
}
export class Killed {
  constructor(readonly signal: number) {}
}
export class Leave {
  constructor(readonly kind: "break" | "continue", public levels: number) {}
}
export class Return {
  constructor(readonly code: number) {}
}
/** An error that ends the script's line, or the script where it is fatal. */
export class ShellError extends Error {
  constructor(message: string, readonly status = 1, readonly fatal = false) {
    super(message);
  }
}

/** How deep functions may call one another, and copies of the shell stand in one another. */
const MAX_CALLS = 10_000, MAX_NESTED = 1_000, MAX_LIVE = 2_000;
const OPTIONS: Record<string, string> = {
  a: "allexport",
  b: "notify",
  e: "errexit",
  f: "noglob",
  h: "hashall",
  m: "monitor",
  n: "noexec",
  u: "nounset",
  v: "verbose",
  x: "xtrace",
  B: "braceexpand",
  C: "noclobber",
  E: "errtrace",
  H: "histexpand",
  P: "physical",
  T: "functrace",
};
export const OPTION_LETTERS = OPTIONS;

const MESSAGES: Record<string, string> = {
  ENOENT: "No such file or directory",
  EACCES: "Permission denied",
  EPERM: "Operation not permitted",
  EISDIR: "Is a directory",
  ENOTDIR: "Not a directory",
  EEXIST: "File exists",
  ENOTEMPTY: "Directory not empty",
  EROFS: "Read-only file system",
  ENOSPC: "No space left on device",
  EINVAL: "Invalid argument",
  ELOOP: "Too many levels of symbolic links",
  EXDEV: "Invalid cross-device link",
  EBADF: "Bad file descriptor",
  ENAMETOOLONG: "File name too long",
  ENOTSUP: "Operation not supported",
  ENOSYS: "Function not implemented",
  EFBIG: "File too large",
  EMFILE: "Too many open files",
};

/** The C library's words for an error. */
export function reason(error: unknown): string {
  if (error instanceof FileError) return MESSAGES[error.code] ?? error.code;
  return error instanceof Error ? error.message : String(error);
}

/** A path without `.`, `..` and double slashes. */
export function resolve(base: string, path: string): string {
  const parts: string[] = [];
  for (
    const part of (path.startsWith("/") ? path : `${base}/${path}`).split("/")
  ) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return "/" + parts.join("/");
}

export interface Function {
  body: Node;
  line: number;
  text: string;
  source: string;
}

interface Field {
  text: string;
  pattern: string;
}

/** Makes fields of a word's pieces. */
class Fields {
  readonly done: Field[] = [];
  private text = "";
  private pattern = "";
  private present = false;
  /** There were wildcards outside quotes. */
  live = false;

  constructor(readonly split: boolean, private ifs: string) {}

  quoted(text: string): void {
    this.present = true;
    this.text += text;
    this.pattern += pattern.quotePattern(text);
  }

  plain(text: string): void {
    if (text === "") return;
    this.present = true;
    this.text += text;
    this.pattern += text;
    if (/[*?[\\+@!]/.test(text)) this.live = true;
  }

  /** What an expansion outside quotes gave. */
  expanded(text: string): void {
    if (!this.split || this.ifs === "") return this.plain(text);
    let from = 0;
    const { ifs } = this;
    const white = (c: string) =>
      (c === " " || c === "\t" || c === "\n") && ifs.includes(c);
    const add = (to: number) => {
      if (to > from) this.plain(text.slice(from, to));
    };
    for (let i = 0; i < text.length;) {
      if (!ifs.includes(text[i]!)) {
        i++;
        continue;
      }
      add(i);
      let hard = false;
      while (i < text.length && white(text[i]!)) i++;
      if (i < text.length && ifs.includes(text[i]!)) {
        hard = true;
        i++;
        while (i < text.length && white(text[i]!)) i++;
      }
      if (hard) this.present = true;
      this.end();
      from = i;
    }
    add(text.length);
  }

  /** Ends the field, if there is one. */
  end(): void {
    if (!this.present) return;
    this.done.push({ text: this.text, pattern: this.pattern });
    this.text = this.pattern = "";
    this.present = false;
  }

  /** Between two of many values. */
  next(joint: string): void {
    if (this.split) {
      this.present = true;
      this.end();
    } else this.quoted(joint);
  }

  finish(): Field[] {
    this.end();
    return this.done;
  }
}

export class Shell {
  variables = new Map<string, Variable>();
  functions = new Map<string, Function>();
  /** The variables that a function's locals hide. */
  scopes: Map<string, Variable | undefined>[] = [];
  arguments: string[] = [];
  cwd = "/workspace";
  status = 0;
  line = 0;
  /** $0, which messages begin with. */
  name = "bash";
  options = new Set<string>(["braceexpand", "hashall"]);
  shopts = new Set<string>([
    "checkwinsize",
    "cmdhist",
    "complete_fullquote",
    "extquote",
    "force_fignore",
    "globasciiranges",
    "globskipdots",
    "hostcomplete",
    "interactive_comments",
    "patsub_replacement",
    "progcomp",
    "promptvars",
    "sourcepath",
  ]);
  traps = new Map<string, string>();
  aliases = new Map<string, string>();
  directories: string[] = [];
  fds = new Map<number, Stream>();
  jobs: Job[] = [];
  cancel = new Cancel();
  calls: { name: string; line: number; source: string }[] = [];
  lastArgument = "";
  lastBackground = 0;
  pid: number;
  level = 0;
  /** Copies of the shell around this one. */
  nested = 0;
  /** Those of them that are of another shell, which called this one. */
  private outer = 0;
  /** `$$`, which copies keep. */
  shellPid: number;
  loops = 0;
  sourced = 0;
  /** In a condition, where a failure is no error. */
  forgiving = 0;
  private substituted: number | undefined;
  private random = (Date.now() ^ 0x5bd1e995) >>> 0;
  private turns = 0;
  private exitTrapDone = false;
  private inTrap = false;
  /** Process substitutions of the command at hand. */
  private open: { stream: Stream; path: string; done?: Promise<number> }[] = [];
  optionAt = 0;
  posix = false;

  constructor(readonly world: World) {
    this.pid = this.shellPid = world.nextPid++;
  }

  get files(): Files {
    return this.world.files;
  }

  /** A copy, which has its own descriptors. */
  copy(): Shell {
    const copy = new Shell(this.world);
    for (const [name, variable] of this.variables) {
      if (variable.list !== undefined || variable.map !== undefined) {
        variable.shared = true;
      }
      copy.variables.set(name, { ...variable });
    }
    copy.functions = new Map(this.functions);
    copy.scopes = this.scopes.map((s) => new Map(s));
    copy.arguments = this.arguments;
    copy.options = new Set(this.options);
    copy.shopts = new Set(this.shopts);
    copy.aliases = new Map(this.aliases);
    copy.directories = [...this.directories];
    for (const [fd, stream] of this.fds) copy.fds.set(fd, stream.hold());
    for (const [signal, action] of this.traps) {
      if (action === "" || signal === "ERR" && this.options.has("errtrace")) {
        copy.traps.set(signal, action);
      }
    }
    copy.calls = [...this.calls];
    const {
      cwd,
      status,
      line,
      name,
      cancel,
      lastArgument,
      lastBackground,
      level,
      loops,
      sourced,
      forgiving,
      posix,
      random,
    } = this;
    Object.assign(copy, {
      cwd,
      status,
      line,
      name,
      cancel,
      lastArgument,
      lastBackground,
      level,
      loops,
      sourced,
      forgiving,
      posix,
      random,
    });
    copy.nested = this.nested + 1;
    copy.outer = this.outer;
    copy.shellPid = this.shellPid;
    return copy;
  }

  // What is written.

  stream(fd: number): Stream {
    return this.fds.get(fd) ?? closed;
  }

  print(text: string | Uint8Array): void | Promise<void> {
    return this.stream(1).write(
      typeof text === "string" ? toBytes(text) : text,
    );
  }

  /** A message of the shell's own: with its name and the line. */
  complain(message: string, line = this.line): void {
    this.error(`${this.name}: line ${line}: ${message}\n`);
  }

  error(text: string): void {
    const written = this.fds.get(2)?.write(toBytes(text));
    written?.catch(() => {});
  }

  // Scripts.

  /** Runs a text, and gives the status; what is no script is told. */
  async script(text: string, line = 1, what = ""): Promise<number> {
    const parser = new Parser(text, line);
    let status = 0;
    for (;;) {
      let node: Node | undefined;
      try {
        node = parser.next();
      } catch (e) {
        if (!(e instanceof ShellSyntaxError)) throw e;
        const name = what === "" ? this.name : `${this.name}: ${what}`;
        if (e.message.startsWith("unexpected EOF")) {
          this.error(`${name}: line ${e.line}: ${e.message}\n`);
        } else {
          this.error(`${name}: line ${e.line}: ${e.message}\n`);
          if (e.shown !== undefined) {
            this.error(`${name}: line ${e.line}: \`${e.shown}'\n`);
          }
        }
        if (this.nested === 0 && what === "") {
          this.world.failure = {
            name: "SyntaxError",
            message: `line ${e.line}: ${e.message}`,
            traceback: "",
          };
        }
        this.status = 2;
        return 2;
      }
      if (parser.hereUnfinished !== undefined) {
        const { line, end, at } = parser.hereUnfinished;
        this.error(
          `${this.name}: line ${at}: warning: here-document at line ${line} delimited by end-of-file (wanted \`${end}')\n`,
        );
        parser.hereUnfinished = undefined;
      }
      if (node === undefined) return status;
      if (this.options.has("noexec")) continue;
      try {
        status = await this.run(node);
      } catch (e) {
        if (!(e instanceof ShellError) || e.fatal) throw e;
        this.complain(e.message);
        status = this.status = e.status;
        if (this.options.has("errexit")) throw new ExitShell(status);
      }
    }
  }

  /** The status that something thrown stands for. What is none goes on. */
  ended(thrown: unknown): number {
    if (thrown instanceof ExitShell || thrown instanceof Return) {
      return thrown.code & 255;
    }
    if (thrown instanceof Killed) return 128 + thrown.signal;
    if (thrown instanceof BrokenPipe) return 141;
    if (thrown instanceof Leave) return 0;
    if (thrown instanceof ShellError) {
      this.complain(thrown.message);
      return thrown.status;
    }
    if (thrown instanceof RangeError && /stack/.test(thrown.message)) {
      this.complain("the script is nested too deeply");
      return 2;
    }
    throw thrown;
  }

  /** Runs the shell's whole program, with the trap at its end. */
  async whole(run: () => Promise<number>): Promise<number> {
    let status: number;
    try {
      status = await run();
    } catch (e) {
      status = this.ended(e);
    }
    this.status = status;
    return await this.atExit(status);
  }

  async atExit(status: number): Promise<number> {
    const action = this.traps.get("EXIT");
    if (action === undefined || action === "" || this.exitTrapDone) {
      return status;
    }
    this.exitTrapDone = true;
    this.status = status;
    this.cancel = new Cancel();
    this.forgiving = 0;
    this.options.delete("errexit");
    try {
      await this.script(action);
    } catch (e) {
      if (e instanceof ExitShell) return e.code & 255;
      return this.ended(e);
    }
    return status;
  }

  /** Runs something as a copy of the shell, and gives its status. */
  async subshell(
    run: (copy: Shell) => Promise<number>,
    prepare?: (copy: Shell) => void,
  ): Promise<number> {
    if (this.nested >= MAX_NESTED || this.world.live >= MAX_LIVE) {
      throw new ShellError(
        "fork: retry: Resource temporarily unavailable (too many subshells)",
        254,
        true,
      );
    }
    this.world.live++;
    const copy = this.copy();
    try {
      prepare?.(copy);
      return await copy.whole(() => run(copy));
    } catch (e) {
      if (e instanceof BrokenPipe) return 141;
      throw e;
    } finally {
      this.world.live--;
      for (const stream of copy.fds.values()) stream.release();
      copy.fds.clear();
    }
  }

  /** What something writes to its standard output. */
  async capture(
    run: (copy: Shell) => Promise<number>,
  ): Promise<{ output: Uint8Array<ArrayBuffer>; status: number }> {
    const collector = new Collector();
    const status = await this.subshell(run, (copy) => {
      copy.replace(1, collector);
      if (!this.shopts.has("inherit_errexit") && !this.posix) {
        copy.options.delete("errexit");
      }
    });
    return { output: collector.take(), status };
  }

  replace(fd: number, stream: Stream): void {
    this.fds.get(fd)?.release();
    this.fds.set(fd, stream);
  }

  /** Runs a command line with arguments that are not expanded again. */
  command(words: string[]): Promise<number> {
    return this.invoke(words, words, []);
  }

  // The tree.

  async run(node: Node): Promise<number> {
    if (this.cancel.signal !== 0) throw new Killed(this.cancel.signal);
    // The machine's stack is left from time to time.
    if (++this.level % 24 === 0) await null;
    try {
      return this.status = await this.walk(node);
    } finally {
      this.level--;
    }
  }

  private async walk(node: Node): Promise<number> {
    switch (node.kind) {
      case "simple":
        return await this.checked(await this.simple(node));
      case "list": {
        let status = 0;
        for (const { node: item, background, text } of node.items) {
          status = background
            ? this.background(item, text)
            : await this.run(item);
        }
        return status;
      }
      case "and":
      case "or": {
        this.forgiving++;
        let status: number;
        try {
          status = await this.run(node.left);
        } finally {
          this.forgiving--;
        }
        if ((status === 0) === (node.kind === "or")) return status;
        return await this.run(node.right);
      }
      case "pipe":
        return await this.pipeline(node);
      case "if": {
        for (const { test, body } of node.clauses) {
          if (await this.condition(test) === 0) return await this.run(body);
        }
        return node.otherwise === undefined
          ? 0
          : await this.run(node.otherwise);
      }
      case "while":
        return await this.looped(async (turn) => {
          let status = 0;
          while ((await this.condition(node.test) === 0) !== node.until) {
            const result = await turn(node.body);
            status = this.status;
            if (!result) break;
          }
          return status;
        });
      case "for": {
        this.line = node.line;
        const values = node.words === undefined
          ? this.arguments
          : await this.fields(node.words);
        return await this.looped(async (turn) => {
          let status = 0;
          for (const value of values) {
            if (this.options.has("xtrace")) {
              this.trace(`for ${node.name} in ${values.map(traced).join(" ")}`);
            }
            this.set(node.name, value);
            const result = await turn(node.body);
            status = this.status;
            if (!result) break;
          }
          return status;
        });
      }
      case "select":
        return await this.select(
          node.name,
          node.words === undefined
            ? this.arguments
            : await this.fields(node.words),
          node.body,
        );
      case "count": {
        this.line = node.line;
        if (await this.number(node.init) === undefined) return 1;
        return await this.looped(async (turn) => {
          let status = 0;
          while (
            node.test.length === 0 || await this.number(node.test) !== 0n
          ) {
            const result = await turn(node.body);
            status = this.status;
            if (!result) break;
            await this.number(node.step);
          }
          return status;
        });
      }
      case "case": {
        this.line = node.line;
        const text = await this.single(node.word);
        const ignoreCase = this.shopts.has("nocasematch");
        let through = false, status = 0;
        for (const { patterns, body, end } of node.items) {
          for (const p of patterns) {
            if (through) break;
            if (
              pattern.matches(await this.patternOf(p), text, { ignoreCase })
            ) through = true;
          }
          if (!through) continue;
          status = isEmpty(body) ? 0 : await this.run(body);
          if (end === ";;") break;
          if (end === ";;&") through = false;
        }
        return status;
      }
      case "group":
        return await this.run(node.body);
      case "subshell":
        return await this.checked(
          await this.subshell((copy) => copy.run(node.body)),
        );
      case "let": {
        this.line = node.line;
        if (this.options.has("xtrace")) this.trace(`(( ${node.text.trim()} ))`);
        try {
          return await this.checked(
            await this.number(node.parts) !== 0n ? 0 : 1,
          );
        } catch (e) {
          if (!(e instanceof ShellError) || e.fatal) throw e;
          this.complain(`((: ${e.message}`);
          return await this.checked(1);
        }
      }
      case "test": {
        this.line = node.line;
        return await this.checked(await this.test(node.test) ? 0 : 1);
      }
      case "function":
        this.functions.set(node.name, {
          body: node.body,
          line: node.line,
          text: node.text,
          source: this.calls.at(-1)?.source ?? this.name,
        });
        return 0;
      case "redirected": {
        this.line = node.line;
        const before = await this.redirected(node.redirects);
        if (before === undefined) return await this.checked(1);
        try {
          return await this.run(node.body);
        } finally {
          this.restore(before);
        }
      }
    }
  }

  /** What `set -e` and a trap of ERR make of a status. */
  private async checked(status: number): Promise<number> {
    this.status = status;
    if (status === 0 || this.forgiving > 0) return status;
    const action = this.traps.get("ERR");
    if (
      action !== undefined && action !== "" && !this.inTrap &&
      (this.calls.length === 0 || this.options.has("errtrace") ||
        this.calls.every((c) => c.name === "source"))
    ) {
      await this.trapped(action);
    }
    if (this.options.has("errexit")) throw new ExitShell(status);
    return status;
  }

  /** Runs a trap's action, which leaves the status as it was. */
  async trapped(action: string): Promise<void> {
    const { status, line } = this;
    this.inTrap = true;
    try {
      await this.script(action, line);
    } finally {
      this.inTrap = false;
      this.status = status;
      this.line = line;
    }
  }

  async condition(node: Node): Promise<number> {
    this.forgiving++;
    try {
      return await this.run(node);
    } finally {
      this.forgiving--;
    }
  }

  private async looped(
    run: (turn: (body: Node) => Promise<boolean>) => Promise<number>,
  ): Promise<number> {
    this.loops++;
    const turn = async (body: Node): Promise<boolean> => {
      // Others that run at the same time get their turn, and timers theirs.
      if (++this.turns % 256 === 0) {
        await (this.world.live > 0 || this.jobs.length > 0
          ? new Promise((done) => setTimeout(done, 0))
          : null);
      }
      try {
        await this.run(body);
        return true;
      } catch (e) {
        if (!(e instanceof Leave)) throw e;
        this.status = 0;
        if (--e.levels > 0 && this.loops > 1) throw e;
        return e.kind === "continue";
      }
    };
    try {
      return await run(turn);
    } finally {
      this.loops--;
    }
  }

  private async select(
    name: string,
    values: string[],
    body: Node,
  ): Promise<number> {
    return await this.looped(async (turn) => {
      const menu = values.map((v, i) => `${i + 1}) ${v}\n`).join("");
      for (let show = true;;) {
        if (show) this.error(menu);
        this.error(this.get("PS3") ?? "#? ");
        if (
          await this.world.builtins.get("read")!(
            this,
            ["-r", "REPLY"],
            "read",
          ) !== 0
        ) {
          this.error("\n");
          return 1;
        }
        const answer = this.get("REPLY") ?? "";
        show = answer === "";
        if (show) continue;
        this.set(
          name,
          /^\d+$/.test(answer) ? values[Number(answer) - 1] ?? "" : "",
        );
        if (!await turn(body)) return this.status;
      }
    });
  }

  private background(node: Node, text: string): number {
    const cancel = new Cancel(this.cancel);
    let pid = 0;
    const done = this.subshell((copy) => copy.run(node), (copy) => {
      pid = copy.pid;
      copy.cancel = cancel;
      copy.forgiving = 0;
      if (!this.options.has("monitor")) copy.replace(0, new Nothing());
    });
    const numbers = this.jobs.filter((j) => j.status === undefined).map((j) =>
      j.number
    );
    const job: Job = {
      pid,
      number: Math.max(0, ...numbers) + 1,
      text,
      done,
      cancel,
    };
    done.then((status) => job.status = status, (e) => {
      job.status = 1;
      this.complain(reason(e));
    });
    this.jobs.push(job);
    this.lastBackground = pid;
    return this.status = 0;
  }

  private async pipeline(node: Node & { kind: "pipe" }): Promise<number> {
    const start = performance.now();
    let status = 0;
    if (node.not) this.forgiving++;
    try {
      if (node.parts.length === 1) {
        status = await this.run(node.parts[0]!);
        this.setList("PIPESTATUS", [String(status)]);
      } else if (node.parts.length > 1) {
        const statuses = await this.piped(node);
        this.setList("PIPESTATUS", statuses.map(String));
        status = statuses.at(-1)!;
        if (this.options.has("pipefail")) {
          status = statuses.findLast((s) => s !== 0) ?? 0;
        }
      }
    } finally {
      if (node.not) this.forgiving--;
    }
    if (node.time !== "") {
      const seconds = (performance.now() - start) / 1000;
      const shown = node.time === "posix"
        ? `real ${seconds.toFixed(2)}\nuser ${seconds.toFixed(2)}\nsys 0.00\n`
        : `\nreal\t${minutes(seconds)}\nuser\t${minutes(seconds)}\nsys\t${
          minutes(0)
        }\n`;
      this.error(shown);
    }
    if (node.not) return this.status = status === 0 ? 1 : 0;
    if (node.parts.length === 1) return status;
    this.line = node.line;
    return await this.checked(status);
  }

  private async piped(node: Node & { kind: "pipe" }): Promise<number[]> {
    const running: Promise<number>[] = [];
    let input: Stream | undefined;
    const last = node.parts.length - 1;
    for (const [i, part] of node.parts.entries()) {
      const next = i < last ? pipe() : undefined;
      const [from, to] = [input, next?.writer];
      input = next?.reader;
      if (i === last && this.shopts.has("lastpipe")) {
        const before = this.fds;
        this.fds = new Map([...before].map(([fd, s]) => [fd, s.hold()]));
        this.replace(0, from!);
        try {
          running.push(Promise.resolve(await this.run(part)));
        } finally {
          this.restore(before);
        }
        break;
      }
      running.push(this.subshell((copy) => copy.run(part), (copy) => {
        if (from !== undefined) copy.replace(0, from);
        if (to !== undefined) {
          copy.replace(1, to);
          if (node.errors[i]) copy.replace(2, to.hold());
        }
      }));
    }
    const settled = await Promise.allSettled(running);
    const failed = settled.find((s) => s.status === "rejected");
    if (failed !== undefined) throw (failed as PromiseRejectedResult).reason;
    return settled.map((s) => (s as PromiseFulfilledResult<number>).value);
  }

  // Simple commands.

  private async simple(node: Simple): Promise<number> {
    this.line = node.line;
    const debug = this.traps.size > 0 ? this.traps.get("DEBUG") : undefined;
    if (
      debug !== undefined && !this.inTrap &&
      (this.calls.length === 0 || this.options.has("functrace"))
    ) await this.trapped(debug);
    this.substituted = undefined;
    const opened = this.open.length;
    try {
      const words = await this.words(node.words);
      if (words.length === 0) {
        if (node.redirects.length > 0) {
          const before = await this.redirected(node.redirects);
          if (before === undefined) return 1;
          this.restore(before);
        }
        for (const assign of node.assigns) {
          const shown = await this.assign(assign);
          if (this.options.has("xtrace")) this.trace(shown);
        }
        return this.substituted ?? 0;
      }
      if (node.redirects.length === 0 && node.assigns.length === 0) {
        return await this.invoke(words, words as string[], []);
      }
      const name = words[0] as string;
      if (name === "exec" && !this.functions.has(name)) {
        const before = await this.redirected(node.redirects);
        if (before === undefined) throw new ExitShell(1);
        if (words.length === 1) {
          for (const stream of before.values()) stream.release();
          return 0;
        }
        throw new ExitShell(
          await this.invoke(
            words.slice(1),
            words.slice(1) as string[],
            node.assigns,
          ),
        );
      }
      const before = await this.redirected(node.redirects);
      if (before === undefined) return 1;
      try {
        return await this.invoke(words, words as string[], node.assigns);
      } finally {
        this.restore(before);
      }
    } finally {
      if (this.open.length > opened) await this.closeSubstitutions(opened);
    }
  }

  private async closeSubstitutions(from: number): Promise<void> {
    for (const { stream, done } of this.open.splice(from)) {
      stream.release();
      await done;
    }
  }

  private async invoke(
    words: (string | Assign)[],
    shown: string[],
    assigns: Assign[],
  ): Promise<number> {
    const name = words[0] as string;
    const found = this.functions.get(name);
    const builtin = found === undefined
      ? this.world.builtins.get(name)
      : undefined;
    const saved: [string, Variable | undefined][] = [];
    for (const assign of assigns) {
      const before = this.variables.get(assign.name);
      saved.push([
        assign.name,
        before === undefined ? undefined : { ...before },
      ]);
      const text = await this.assign(assign);
      if (this.options.has("xtrace")) this.trace(text);
      const variable = this.variables.get(assign.name);
      if (variable !== undefined) {
        this.variables.set(assign.name, { ...variable, exported: true });
      }
    }
    if (this.options.has("xtrace")) {
      this.trace(
        shown.map((w) =>
          typeof w === "string" ? traced(w) : assignText(w as Assign)
        ).join(" "),
      );
    }
    try {
      let status: number;
      if (found !== undefined) {
        status = await this.call(name, found, words.slice(1) as string[]);
      } else if (builtin !== undefined) {
        status = await this.builtin(builtin, words, name);
      } else status = await this.program(words as string[]);
      const last = words.at(-1);
      this.lastArgument = typeof last === "string" ? last : "";
      return status;
    } finally {
      for (const [name, before] of saved.reverse()) {
        if (before === undefined) this.variables.delete(name);
        else this.variables.set(name, before);
      }
    }
  }

  async builtin(
    run: Builtin,
    words: (string | Assign)[],
    name: string,
  ): Promise<number> {
    try {
      return await run(this, words.slice(1), name);
    } catch (e) {
      if (
        e instanceof FileError ||
        e instanceof Error && e.message === "Bad file descriptor"
      ) {
        this.complain(`${name}: write error: ${reason(e)}`);
        return 1;
      }
      throw e;
    }
  }

  async call(name: string, found: Function, args: string[]): Promise<number> {
    const most = Number(this.get("FUNCNEST") ?? 0) || MAX_CALLS;
    if (this.calls.length >= most) {
      this.world.failure = {
        name: "RecursionError",
        message: `${name}: maximum function nesting level exceeded (${most})`,
        traceback: "",
      };
      throw new ShellError(
        `${name}: maximum function nesting level exceeded (${most})`,
        1,
        true,
      );
    }
    const { arguments: before, loops } = this;
    this.arguments = args;
    this.loops = 0;
    this.scopes.push(new Map());
    this.calls.push({ name, line: this.line, source: found.source });
    try {
      let status: number;
      try {
        status = await this.run(found.body);
      } catch (e) {
        if (!(e instanceof Return)) throw e;
        status = e.code & 255;
      }
      const action = this.traps.get("RETURN");
      if (action !== undefined && this.options.has("functrace")) {
        await this.trapped(action);
      }
      return status;
    } finally {
      this.arguments = before;
      this.loops = loops;
      this.calls.pop();
      for (const [name, variable] of this.scopes.pop()!) {
        if (variable === undefined) this.variables.delete(name);
        else this.variables.set(name, variable);
      }
    }
  }

  /** Runs a program by its name or path. */
  async program(words: string[]): Promise<number> {
    const [given, ...args] = words as [string, ...string[]];
    let name = given;
    if (given.includes("/")) {
      const known = /^(?:\/usr(?:\/local)?)?\/s?bin\/([^/]+)$/.exec(given)?.[1];
      if (
        known !== undefined &&
        (this.world.programs.has(known) || this.world.builtins.has(known))
      ) {
        name = known;
        const builtin = this.world.builtins.get(known);
        if (builtin !== undefined) {
          return await this.builtin(builtin, [known, ...args], known);
        }
      } else return await this.file(given, args);
    } else if (!this.world.programs.has(name)) {
      const path = this.search(name);
      if (path !== undefined) return await this.file(path, args);
      if (this.functions.has("command_not_found_handle")) {
        return await this.call(
          "command_not_found_handle",
          this.functions.get("command_not_found_handle")!,
          words,
        );
      }
      this.complain(`${name}: command not found`);
      const hint = this.world.programs.hint(name);
      if (hint !== undefined) this.error(`${hint}\n`);
      return 127;
    }
    return await this.start(name, args);
  }

  /** Starts a program of the table's. */
  async start(name: string, args: string[]): Promise<number> {
    try {
      return await this.world.programs.run({
        name,
        args,
        shell: this,
        stdin: this.stream(0),
        stdout: this.stream(1),
        stderr: this.stream(2),
      }) & 255;
    } catch (e) {
      if (e instanceof BrokenPipe) return 141;
      if (e instanceof FileError) {
        this.error(`${name}: ${reason(e)}\n`);
        return 1;
      }
      if (e instanceof RangeError) {
        this.error(
          `${name}: ${
            /stack/.test(e.message) ? "nested too deeply" : e.message
          }\n`,
        );
        return 2;
      }
      // A file that can't be opened, and what a program did not foresee, end it alone.
      if (e instanceof ShellError ? !e.fatal : e instanceof Error) {
        this.error(`${name}: ${reason(e)}\n`);
        return 1;
      }
      throw e;
    }
  }

  /** The file of a name in the directories of PATH that are the program's own. */
  search(name: string): string | undefined {
    for (const directory of (this.get("PATH") ?? "").split(":")) {
      if (/^\/(usr\/(local\/)?)?s?bin$/.test(directory)) continue;
      const path = resolve(this.cwd, `${directory || "."}/${name}`);
      try {
        const stat = this.files.stat(path);
        if (stat.kind === "file" && (stat.mode & 0o111) !== 0) return path;
      } catch {
        // Not there.
      }
    }
    return undefined;
  }

  /** Runs a script by its file. */
  async file(given: string, args: string[]): Promise<number> {
    const path = resolve(this.cwd, given);
    let stat: Stat, bytes: Uint8Array;
    try {
      stat = this.files.stat(path);
      if (stat.kind === "directory") {
        this.complain(`${given}: Is a directory`);
        return 126;
      }
      if ((stat.mode & 0o111) === 0) {
        this.complain(`${given}: Permission denied`);
        return 126;
      }
      bytes = this.files.readFile(path);
    } catch (e) {
      this.complain(`${given}: ${reason(e)}`);
      return e instanceof FileError && e.code === "ENOENT" ? 127 : 126;
    }
    const first = fromBytes(bytes.subarray(0, 200)).split("\n")[0]!;
    const line = /^#!\s*(\S+)\s*(.*?)\s*$/.exec(first);
    if (line !== null) {
      const words = (line[2] ?? "").split(/\s+/).filter((w) => w !== "");
      let interpreter = line[1]!.replace(/.*\//, "");
      if (interpreter === "env") {
        interpreter = words.filter((w) =>
          !w.startsWith("-") && !w.includes("=")
        ).shift() ?? "";
      }
      if (interpreter !== "" && !/^(ba|da|k|z)?sh$/.test(interpreter)) {
        return await this.program([
          interpreter,
          ...(line[1]!.endsWith("/env") ? [] : words),
          given,
          ...args,
        ]);
      }
    } else if (bytes.subarray(0, 200).includes(0)) {
      this.complain(`${given}: cannot execute binary file: Exec format error`);
      return 126;
    }
    const text = fromBytes(bytes);
    return await this.fresh(
      given,
      args,
      (shell) => shell.script(text),
      line?.[2]?.startsWith("-") ? line[2].split(/\s+/) : [],
    );
  }

  /** A new shell, which has of this one what a process inherits. */
  async fresh(
    name: string,
    args: string[],
    run: (shell: Shell) => Promise<number>,
    flags: string[] = [],
  ): Promise<number> {
    const environment = this.environment();
    return await this.subshell(run, (shell) => {
      shell.variables.clear();
      shell.functions.clear();
      shell.scopes = [];
      shell.calls = [];
      shell.loops = shell.sourced = shell.forgiving = 0;
      shell.options = new Set(["braceexpand", "hashall"]);
      shell.shopts = new Set(new Shell(this.world).shopts);
      shell.traps.clear();
      shell.aliases.clear();
      shell.start0(name, args, environment);
      for (const [name, body] of this.functions) {
        if (this.exportedFunctions.has(name)) shell.functions.set(name, body);
      }
      for (const letter of flags.join("").replaceAll("-", "")) {
        const option = OPTIONS[letter];
        if (option !== undefined) shell.options.add(option);
      }
    });
  }

  exportedFunctions = new Set<string>();

  /** The variables that a shell begins with. */
  start0(
    name: string,
    args: string[],
    environment: Record<string, string>,
  ): void {
    this.name = name;
    this.arguments = args;
    this.outer = this.nested;
    this.shellPid = this.pid;
    for (const [name, value] of Object.entries(environment)) {
      if (/^[A-Za-z_]\w*$/.test(name)) {
        this.variables.set(name, { value, exported: true });
      }
    }
    const initial: Record<string, string> = {
      IFS: " \t\n",
      OPTIND: "1",
      PS4: "+ ",
      BASH: "/usr/bin/bash",
      BASH_VERSION: "5.2.15(1)-release",
      HOSTTYPE: "x86_64",
      OSTYPE: "linux-gnu",
      MACHTYPE: "x86_64-pc-linux-gnu",
      HOSTNAME: "sandbox",
      UID: "1000",
      EUID: "1000",
      PPID: "1",
      COLUMNS: "80",
      LINES: "24",
    };
    for (const [name, value] of Object.entries(initial)) {
      if (name === "IFS" || !this.variables.has(name)) {
        this.variables.set(name, { value });
      }
    }
    this.variables.delete("COLUMNS");
    this.variables.delete("LINES");
    const level = Number(environment.SHLVL ?? "0");
    this.variables.set("SHLVL", {
      value: String((level || 0) + 1),
      exported: true,
    });
    this.variables.set("PWD", { value: this.cwd, exported: true });
    if (!this.variables.has("PATH")) {
      this.variables.set("PATH", { value: "/usr/local/bin:/usr/bin:/bin" });
    }
    this.variables.set("BASH_VERSINFO", {
      list: ["5", "2", "15", "1", "release", "x86_64-pc-linux-gnu"],
      readonly: true,
    });
  }

  /** What a program has in its environment. */
  environment(): Record<string, string> {
    const all: Record<string, string> = {};
    for (const [name, variable] of this.variables) {
      if (variable.exported && variable.value !== undefined) {
        all[name] = variable.value;
      }
    }
    return all;
  }

  // Redirections.

  /** Applies redirections. The descriptors as they were before are for `restore`; undefined if one failed, which was told. */
  async redirected(
    redirects: Redirect[],
  ): Promise<Map<number, Stream> | undefined> {
    const before = this.fds;
    this.fds = new Map();
    for (const [fd, stream] of before) this.fds.set(fd, stream.hold());
    try {
      for (const redirect of redirects) await this.redirect(redirect);
      return before;
    } catch (e) {
      this.restore(before);
      if (e instanceof ShellError && !e.fatal) this.complain(e.message);
      else throw e;
      return undefined;
    }
  }

  restore(before: Map<number, Stream>): void {
    for (const stream of this.fds.values()) stream.release();
    this.fds = before;
  }

  private async redirect(redirect: Redirect): Promise<void> {
    const { op, variable } = redirect;
    let fd = redirect.fd ?? (op.startsWith("<") ? 0 : 1);
    if (variable !== undefined) {
      for (fd = 10; this.fds.has(fd);) fd++;
    }
    if (op === "<<" || op === "<<-") {
      this.replace(
        fd,
        new Given(toBytes(await this.singleParts(redirect.target.parts))),
      );
      return;
    }
    if (op === "<<<") {
      this.replace(
        fd,
        new Given(toBytes(await this.single(redirect.target) + "\n")),
      );
      return;
    }
    const names = await this.fields([redirect.target]);
    if (names.length !== 1) {
      const source = redirect.target.parts.map((p) =>
        p.kind === "parameter" ? p.source : "text" in p ? p.text : ""
      ).join("");
      throw new ShellError(`${source}: ambiguous redirect`);
    }
    const name = names[0]!;
    if (op === ">&" || op === "<&") {
      if (name === "-") {
        const closing = variable === undefined
          ? fd
          : Number(this.get(variable));
        this.fds.get(closing)?.release();
        this.fds.delete(closing);
        return;
      }
      const number = /^(\d+)(-?)$/.exec(name);
      if (number !== null) {
        const from = Number(number[1]), stream = this.fds.get(from);
        if (stream === undefined) {
          throw new ShellError(`${from}: Bad file descriptor`);
        }
        this.replace(fd, stream.hold());
        if (number[2] === "-" && from !== fd) {
          stream.release();
          this.fds.delete(from);
        }
        if (variable !== undefined) this.set(variable, String(fd));
        return;
      }
      if (op === "<&" || redirect.fd !== undefined && redirect.fd !== 1) {
        throw new ShellError(`${name}: ambiguous redirect`);
      }
    }
    if (op === "&>" || op === "&>>" || op === ">&") {
      const stream = this.openFile(name, op === "&>>" ? ">>" : ">");
      this.replace(1, stream);
      this.replace(2, stream.hold());
      return;
    }
    this.replace(fd, this.openFile(name, op));
    if (variable !== undefined) this.set(variable, String(fd));
  }

  /** Opens a file as a redirection does. */
  openFile(name: string, op: string): Stream {
    const path = name === "" ? "" : resolve(this.cwd, name);
    const device = this.device(path);
    if (device !== undefined) return device;
    try {
      if (name === "") throw new FileError("ENOENT");
      if (op === ">" && this.options.has("noclobber")) {
        let kind: string | undefined;
        try {
          kind = this.files.stat(path).kind;
        } catch {
          // It is made.
        }
        if (kind === "file") {
          throw new ShellError(`${name}: cannot overwrite existing file`);
        }
      }
      if (
        op !== "<" && op !== "<>" ||
        this.files.stat(path, true).kind === "directory" && op === "<>"
      ) {
        let directory = false;
        try {
          directory = this.files.stat(path).kind === "directory";
        } catch {
          // It is made.
        }
        if (directory || name.endsWith("/")) throw new FileError("EISDIR");
      }
      const open = this.files.open(path, {
        read: op === "<" || op === "<>",
        write: op !== "<",
        append: op === ">>",
        create: op !== "<",
        truncate: op === ">" || op === ">|",
      });
      return new FileStream(open, path, op === ">>");
    } catch (e) {
      if (e instanceof FileError) throw new ShellError(`${name}: ${reason(e)}`);
      throw e;
    }
  }

  /** What a name under /dev stands for, held once more. */
  device(path: string): Stream | undefined {
    if (!path.startsWith("/dev/")) return undefined;
    const number = path === "/dev/stdin"
      ? 0
      : path === "/dev/stdout"
      ? 1
      : path === "/dev/stderr"
      ? 2
      : /^\/dev\/fd\/(\d+)$/.exec(path)?.[1];
    if (number !== undefined) {
      const stream = this.fds.get(Number(number)) ??
        this.open.find((o) => o.path === path)?.stream;
      if (stream === undefined) {
        throw new ShellError(`${path}: No such file or directory`);
      }
      return stream.hold();
    }
    if (path === "/dev/null") return new Nothing();
    if (path === "/dev/zero") return new Endless((b) => b.fill(0));
    if (path === "/dev/urandom" || path === "/dev/random") {
      return new Endless((b) => crypto.getRandomValues(b));
    }
    if (path === "/dev/tty") {
      throw new ShellError(`${path}: No such device or address`);
    }
    return undefined;
  }

  // Variables.

  /** The variable that a name leads to over references. */
  private follow(name: string): { name: string; index?: string } {
    for (let i = 0; i < 20; i++) {
      const variable = this.variables.get(name);
      if (
        !variable?.reference || variable.value === undefined ||
        variable.value === ""
      ) break;
      const parts = /^(\w+)\[(.*)\]$/s.exec(variable.value);
      if (parts !== null) return { name: parts[1]!, index: parts[2]! };
      name = variable.value;
    }
    return { name };
  }

  variable(name: string): Variable | undefined {
    return this.variables.get(this.follow(name).name);
  }

  /** A variable's value, or of an array the element 0. */
  get(name: string): string | undefined {
    const variable = this.variables.get(name);
    if (variable === undefined) return this.dynamic(name);
    if (variable.reference) {
      const to = this.follow(name);
      if (to.index !== undefined) return this.elementNow(to.name, to.index);
      if (to.name !== name) return this.get(to.name);
    }
    if (variable.list !== undefined) return variable.list[0];
    if (variable.map !== undefined) return variable.map.get("0");
    return variable.value;
  }

  private dynamic(name: string): string | undefined {
    switch (name) {
      case "RANDOM":
        this.random = (Math.imul(this.random, 1103515245) + 12345) >>> 0;
        return String((this.random >>> 16) & 0x7fff);
      case "SRANDOM":
        return String(crypto.getRandomValues(new Uint32Array(1))[0]);
      case "SECONDS":
        return String(Math.floor((Date.now() - this.world.began) / 1000));
      case "EPOCHSECONDS":
        return String(Math.floor(Date.now() / 1000));
      case "EPOCHREALTIME":
        return ((performance.timeOrigin + performance.now()) / 1000).toFixed(6);
      case "LINENO":
        return String(this.line);
      case "BASHPID":
        return String(this.pid);
      case "BASH_SUBSHELL":
        return String(this.nested - this.outer);
      case "FUNCNAME":
      case "BASH_SOURCE":
      case "BASH_LINENO":
      case "DIRSTACK":
      case "GROUPS":
        return this.dynamicList(name)?.[0];
      case "SHELLOPTS":
        return [...this.options].sort().join(":");
      case "BASHOPTS":
        return [...this.shopts].sort().join(":");
      case "BASH_ARGV0":
        return this.name;
      default:
        return undefined;
    }
  }

  private dynamicList(name: string): string[] | undefined {
    const calls = [...this.calls].reverse();
    switch (name) {
      case "FUNCNAME":
        return calls.length === 0
          ? undefined
          : [...calls.map((c) => c.name), "main"];
      case "BASH_SOURCE":
        return [...calls.map((c) => c.source), this.name];
      case "BASH_LINENO":
        return [...calls.map((c) => String(c.line)), "0"];
      case "DIRSTACK":
        return [this.cwd, ...this.directories];
      case "GROUPS":
        return ["1000"];
      default:
        return undefined;
    }
  }

  private seed(name: string, value: string): boolean {
    if (name === "RANDOM") this.random = Number(value) >>> 0;
    else if (name === "SECONDS") {
      this.world.began = Date.now() - Number(value) * 1000;
    } else return false;
    return true;
  }

  /** The variable of a name, to be changed. */
  private changed(name: string): Variable {
    let variable = this.variables.get(name);
    if (variable === undefined) {
      variable = {};
      if (this.options.has("allexport")) variable.exported = true;
      this.variables.set(name, variable);
    }
    if (variable.readonly) throw new ShellError(`${name}: readonly variable`);
    if (variable.shared) {
      if (variable.list !== undefined) variable.list = variable.list.slice();
      if (variable.map !== undefined) variable.map = new Map(variable.map);
      variable.shared = false;
    }
    return variable;
  }

  private cased(variable: Variable, value: string): string {
    if (variable.integer) return this.evaluate(value).toString();
    if (variable.lower) return value.toLowerCase();
    if (variable.upper) return value.toUpperCase();
    return value;
  }

  set(given: string, value: string, append = false): void {
    const { name, index } = this.follow(given);
    if (index !== undefined) return this.setElement(name, index, value, append);
    if (!this.variables.has(name) && this.seed(name, value)) return;
    const variable = this.changed(name);
    const join = (before: string | undefined) =>
      !append
        ? this.cased(variable, value)
        : variable.integer
        ? (this.evaluate(before ?? "0") + this.evaluate(value)).toString()
        : this.cased(variable, (before ?? "") + value);
    if (variable.list !== undefined) variable.list[0] = join(variable.list[0]);
    else if (variable.map !== undefined) {
      variable.map.set("0", join(variable.map.get("0")));
    } else variable.value = join(variable.value);
    if (name === "OPTIND") this.optionAt = 0;
  }

  setElement(
    given: string,
    index: string,
    value: string,
    append = false,
  ): void {
    const { name } = this.follow(given);
    const variable = this.changed(name);
    const join = (before: string | undefined) =>
      !append
        ? this.cased(variable, value)
        : variable.integer
        ? (this.evaluate(before ?? "0") + this.evaluate(value)).toString()
        : this.cased(variable, (before ?? "") + value);
    if (variable.map !== undefined) {
      if (index === "") throw new ShellError(`${name}[]: bad array subscript`);
      variable.map.set(index, join(variable.map.get(index)));
      return;
    }
    if (variable.list === undefined) {
      variable.list = variable.value === undefined ? [] : [variable.value];
      variable.value = undefined;
    }
    const at = this.position(name, variable.list, index);
    variable.list[at] = join(variable.list[at]);
  }

  /** Where in an array an index's text points. */
  private position(name: string, list: string[], index: string): number {
    let at = Number(this.evaluate(index));
    if (at < 0) at += list.length;
    if (at < 0) throw new ShellError(`${name}[${index}]: bad array subscript`);
    if (at > 0xfffffffe) {
      throw new ShellError(`${name}[${index}]: bad array subscript`);
    }
    return at;
  }

  setList(name: string, list: string[]): void {
    const variable = this.changed(this.follow(name).name);
    variable.list = list;
    variable.value = variable.map = undefined;
  }

  unset(given: string): boolean {
    const parts = /^(\w+)\[(.*)\]$/s.exec(given);
    const name = parts === null && this.variables.get(given)?.reference
      ? this.follow(given).name
      : parts?.[1] ?? given;
    const variable = this.variables.get(name);
    if (variable === undefined) return true;
    if (variable.readonly) {
      this.complain(`unset: ${name}: cannot unset: readonly variable`);
      return false;
    }
    if (parts === null) {
      this.variables.delete(name);
      return true;
    }
    const index = parts[2]!.replace(/^(["'])(.*)\1$/s, "$2");
    this.changed(name);
    if (variable.map !== undefined) variable.map.delete(index);
    else if (variable.list !== undefined) {
      if (index === "@" || index === "*") this.variables.delete(name);
      else {
        const at = this.position(name, variable.list, index);
        delete variable.list[at];
        while (
          variable.list.length > 0 &&
          !((variable.list.length - 1) in variable.list)
        ) variable.list.length--;
      }
    } else if (Number(this.evaluate(index)) === 0) this.variables.delete(name);
    return true;
  }

  /** Hides a variable for the function's time. */
  local(name: string): void {
    const scope = this.scopes.at(-1)!;
    if (scope.has(name)) return;
    const before = this.variables.get(name);
    scope.set(name, before);
    this.variables.delete(name);
  }

  private elementNow(name: string, index: string): string | undefined {
    const variable = this.variables.get(name);
    if (variable?.map !== undefined) return variable.map.get(index);
    const list = variable?.list ?? this.dynamicList(name);
    if (list !== undefined) {
      const at = Number(this.evaluate(index));
      return list[at < 0 ? at + list.length : at];
    }
    return Number(this.evaluate(index)) === 0 || this.evaluate(index) === -1n
      ? this.get(name)
      : undefined;
  }

  /** An array's keys and values; a plain variable is an array of one. */
  entries(given: string): [string, string][] {
    const { name } = this.follow(given);
    const variable = this.variables.get(name);
    if (variable?.map !== undefined) return [...variable.map];
    const list = variable?.list ??
      (variable === undefined ? this.dynamicList(name) : undefined);
    if (list !== undefined) return Object.entries(list);
    const value = this.get(name);
    return value === undefined ? [] : [["0", value]];
  }

  private values(given: string): string[] {
    const { name } = this.follow(given);
    const variable = this.variables.get(name);
    if (variable?.list !== undefined && variable.list.length < 1 << 24) {
      return variable.list.filter(() => true);
    }
    return this.entries(given).map(([, value]) => value);
  }

  // Assignments.

  /** Assigns, and gives the text for a trace. */
  async assign(assign: Assign): Promise<string> {
    const { name, append } = assign;
    if (assign.elements !== undefined) {
      await this.assignList(assign);
      return `${name}=(...)`;
    }
    const value = assign.value === undefined
      ? ""
      : await this.single(assign.value, true);
    if (assign.index !== undefined) {
      this.setElement(
        name,
        await this.indexText(name, assign.index),
        value,
        append,
      );
    } else this.set(name, value, append);
    return `${name}${append ? "+" : ""}=${traced(value)}`;
  }

  /** An index's text: of an associative array the key, else an expression. */
  async indexText(_name: string, index: Word): Promise<string> {
    return await this.singleParts(index.parts);
  }

  private async assignList(assign: Assign): Promise<void> {
    const { name } = this.follow(assign.name);
    const elements: { index?: string; append: boolean; values: string[] }[] =
      [];
    const associative = this.variables.get(name)?.map !== undefined;
    for (const { index, append, value } of assign.elements!) {
      if (index !== undefined) {
        elements.push({
          index: await this.indexText(name, index),
          append,
          values: [await this.single(value, true)],
        });
      } else elements.push({ append, values: await this.fields([value]) });
    }
    const variable = this.changed(name);
    if (associative) {
      if (!assign.append) variable.map = new Map();
      const words: string[] = [];
      for (const { index, append, values } of elements) {
        if (index !== undefined) {
          this.setElement(name, index, values[0]!, append);
        } else words.push(...values);
      }
      for (let i = 0; i < words.length; i += 2) {
        this.setElement(name, words[i]!, words[i + 1] ?? "");
      }
      return;
    }
    if (!assign.append || variable.list === undefined) {
      variable.list = assign.append && variable.value !== undefined
        ? [variable.value]
        : [];
      variable.value = undefined;
    }
    let at = variable.list.length;
    for (const { index, append, values } of elements) {
      if (index !== undefined) at = this.position(name, variable.list, index);
      for (const value of values) {
        if (variable.integer || variable.lower || variable.upper || append) {
          this.setElement(name, String(at), value, append);
        } else variable.list[at] = value;
        at++;
      }
    }
  }

  // Arithmetic.

  private cells: Cells = {
    get: (name, index) => {
      const value = index === undefined ? this.get(name) : this.elementNow(
        this.follow(name).name,
        this.arithmeticIndex(name, index),
      );
      if (value === undefined && this.options.has("nounset")) {
        throw new ShellError(`${name}: unbound variable`, 1, true);
      }
      return (value ?? "").trim();
    },
    set: (name, index, value) => {
      if (index === undefined) this.set(name, value);
      else this.setElement(name, this.arithmeticIndex(name, index), value);
    },
  };

  private arithmeticIndex(_name: string, index: string): string {
    return index.replace(/^(["'])(.*)\1$/s, "$2");
  }

  evaluate(text: string): bigint {
    if (/^-?\d{1,15}$/.test(text) && !/^-?0\d/.test(text)) return BigInt(text);
    try {
      return evaluate(text, this.cells);
    } catch (e) {
      if (e instanceof ArithmeticError) throw new ShellError(e.message);
      if (e instanceof RangeError) {
        throw new ShellError(`${text}: expression recursion level exceeded`);
      }
      throw e;
    }
  }

  async number(parts: Part[]): Promise<bigint> {
    return this.evaluate(
      parts.length === 1 && parts[0]!.kind === "quoted"
        ? parts[0]!.text
        : await this.singleParts(parts),
    );
  }

  // Expansion.

  private ifs(): string {
    return this.get("IFS") ?? (this.variables.has("IFS") ? "" : " \t\n");
  }

  /** A command's words; assignments of a declaration stay what they are. */
  private async words(words: Word[]): Promise<(string | Assign)[]> {
    const all: (string | Assign)[] = [];
    for (const word of words) {
      if (word.assign !== undefined) all.push(word.assign);
      else await this.addFields(word, all);
    }
    return all;
  }

  async fields(words: Word[]): Promise<string[]> {
    const all: string[] = [];
    for (const word of words) await this.addFields(word, all);
    return all;
  }

  private async addFields(word: Word, all: (string | Assign)[]): Promise<void> {
    // Most words are plain.
    if (word.parts.length === 1) {
      const part = word.parts[0]!;
      if (part.kind === "quoted") {
        all.push(part.text);
        return;
      }
      if (part.kind === "text" && !/[*?[{~+@!\\]/.test(part.text)) {
        all.push(part.text);
        return;
      }
    }
    for (const one of braces(word)) {
      const fields = new Fields(true, this.ifs());
      await this.expand(one.parts, fields, "word");
      for (const field of fields.finish()) {
        if (
          !fields.live || this.options.has("noglob") ||
          !pattern.isPattern(field.pattern, true)
        ) {
          all.push(field.text);
          continue;
        }
        const found = this.glob(field.pattern);
        if (found.length > 0) { for (const f of found) all.push(f); }
        else if (this.shopts.has("failglob")) {
          throw new ShellError(`no match: ${field.text}`);
        } else if (!this.shopts.has("nullglob")) all.push(field.text);
      }
    }
  }

  /** A word as one string. */
  async single(word: Word, assignment = false): Promise<string> {
    if (word.parts.length === 0) return "";
    if (word.parts.length === 1 && word.parts[0]!.kind === "quoted") {
      return word.parts[0]!.text;
    }
    const fields = new Fields(false, this.ifs());
    await this.expand(word.parts, fields, assignment ? "assignment" : "word");
    return fields.finish().map((f) => f.text).join("");
  }

  async singleParts(parts: Part[]): Promise<string> {
    if (parts.length === 1 && parts[0]!.kind === "quoted") {
      return parts[0]!.text;
    }
    const fields = new Fields(false, this.ifs());
    await this.expand(parts, fields, "");
    return fields.finish().map((f) => f.text).join("");
  }

  /** A word as a pattern: what was quoted has backslashes. */
  async patternOf(word: Word): Promise<string> {
    const fields = new Fields(false, this.ifs());
    await this.expand(word.parts, fields, "word", true);
    return fields.finish().map((f) => f.pattern).join("");
  }

  private async expand(
    parts: Part[],
    fields: Fields,
    mode: "word" | "assignment" | "",
    asPattern = false,
  ): Promise<void> {
    for (const [i, part] of parts.entries()) {
      switch (part.kind) {
        case "text": {
          let { text } = part;
          if (mode !== "" && text.includes("~")) {
            if (i === 0 && text[0] === "~") {
              const name = /^~[^/:]*/.exec(text)![0];
              const end = text[name.length];
              const whole = name.length < text.length || parts.length === 1;
              const home = whole &&
                  (end === undefined || end === "/" || mode === "assignment")
                ? this.tilde(name)
                : undefined;
              if (home !== undefined) {
                fields.quoted(home);
                text = text.slice(name.length);
              }
            }
            if (mode === "assignment") {
              text = text.replace(/:(~[^/:]*)/g, (all, name) => {
                const home = this.tilde(name);
                return home === undefined ? all : ":" + home;
              });
            }
          }
          fields.plain(text);
          break;
        }
        case "quoted":
          fields.quoted(part.text);
          break;
        case "double":
          if (part.parts.length === 0) fields.quoted("");
          for (const inner of part.parts) {
            await this.expandQuoted(inner, fields);
          }
          break;
        case "parameter":
          await this.parameter(part, fields, false, asPattern);
          break;
        case "command": {
          const text = await this.substitute(part.body);
          if (asPattern) fields.plain(text);
          else fields.expanded(text);
          break;
        }
        case "arithmetic":
          fields.expanded((await this.number(part.parts)).toString());
          break;
        case "process":
          fields.quoted(this.substituteProcess(part.body, part.output));
          break;
      }
    }
  }

  private async expandQuoted(part: Part, fields: Fields): Promise<void> {
    switch (part.kind) {
      case "quoted":
      case "text":
        fields.quoted(part.text);
        break;
      case "parameter":
        await this.parameter(part, fields, true);
        break;
      case "command":
        fields.quoted(await this.substitute(part.body));
        break;
      case "arithmetic":
        fields.quoted((await this.number(part.parts)).toString());
        break;
      case "double":
        for (const inner of part.parts) await this.expandQuoted(inner, fields);
        break;
      case "process":
        break;
    }
  }

  private tilde(name: string): string | undefined {
    if (name === "~") return this.get("HOME") ?? "/home/user";
    if (name === "~+") return this.cwd;
    if (name === "~-") return this.get("OLDPWD");
    if (name === "~user") return "/home/user";
    if (name === "~root") return "/root";
    return undefined;
  }

  private async substitute(body: Node): Promise<string> {
    const { line } = this;
    let bytes: Uint8Array;
    const only = body.kind === "simple"
      ? body
      : body.kind === "list" && body.items.length === 1 &&
          body.items[0]!.node.kind === "simple"
      ? body.items[0]!.node
      : undefined;
    if (
      only !== undefined && only.words.length === 0 &&
      only.assigns.length === 0 && only.redirects.length === 1 &&
      only.redirects[0]!.op === "<"
    ) {
      // $(< file)
      const before = await this.redirected(only.redirects);
      if (before === undefined) {
        this.substituted = 1;
        return "";
      }
      bytes = await readAll(this.stream(0));
      this.restore(before);
      this.substituted = 0;
    } else {
      const { output, status } = await this.capture((copy) => copy.run(body));
      this.status = this.substituted = status;
      bytes = output;
    }
    this.line = line;
    let end = bytes.length;
    while (end > 0 && bytes[end - 1] === 10) end--;
    bytes = bytes.subarray(0, end);
    if (bytes.includes(0)) {
      this.complain(
        "warning: command substitution: ignored null byte in input",
      );
      bytes = bytes.filter((b) => b !== 0);
    }
    return fromBytes(bytes);
  }

  private substituteProcess(body: Node, output: boolean): string {
    const { reader, writer } = pipe();
    let number = 63;
    while (
      this.open.some((o) => o.path === `/dev/fd/${number}`) ||
      this.fds.has(number)
    ) number--;
    const path = `/dev/fd/${number}`;
    const done = this.subshell((copy) => copy.run(body), (copy) => {
      copy.replace(output ? 0 : 1, output ? reader : writer);
      copy.forgiving = 0;
    });
    this.open.push({
      stream: output ? writer : reader,
      path,
      done: output ? done : done.catch(() => 1),
    });
    return path;
  }

  /** `$name` and `${…}`. */
  private async parameter(
    part: Parameter,
    fields: Fields,
    quoted: boolean,
    asPattern = false,
  ): Promise<void> {
    const add = (text: string) => {
      if (quoted) fields.quoted(text);
      else if (asPattern) fields.plain(text);
      else fields.expanded(text);
    };
    const addMany = (values: string[], star: boolean) => {
      if (star && (quoted || !fields.split)) {
        const ifs = this.ifs();
        return add(values.join(ifs[0] ?? ""));
      }
      for (const [i, value] of values.entries()) {
        if (i > 0) fields.next(" ");
        add(value);
      }
    };
    if (
      part.op === undefined && part.index === undefined && !part.indirect &&
      /^[A-Za-z_]/.test(part.name)
    ) {
      const value = this.get(part.name);
      if (value === undefined) {
        this.bound(part);
        if (quoted) fields.quoted("");
        return;
      }
      return add(value);
    }
    if (part.op === "bad") {
      throw new ShellError(`${part.source}: bad substitution`);
    }

    let { name, index, op } = part;
    if (op === "names") {
      const names = [...this.variables.keys()].filter((n) => n.startsWith(name))
        .sort();
      return addMany(names, plain(part.word!) === "*");
    }
    if (op === "keys") {
      return addMany(
        this.entries(name).map(([key]) => key),
        plain(index!) === "*",
      );
    }
    let indexText: string | undefined;
    if (index !== undefined) {
      const simple = plain(index);
      indexText = simple === "@" || simple === "*"
        ? simple
        : await this.indexText(name, index);
    }
    if (part.indirect) {
      const reference = this.variables.get(name);
      if (reference?.reference && op === undefined) {
        return add(reference.value ?? "");
      }
      const target = this.scalar(name, indexText);
      if (target === undefined || target === "") {
        if (target === undefined && op === undefined) {
          throw new ShellError(`${name}: invalid indirect expansion`);
        }
        return add("");
      }
      const parts = /^([A-Za-z_]\w*|\d+|[@*#?$!-])(?:\[(.*)\])?$/s.exec(target);
      if (parts === null) {
        throw new ShellError(`${target}: invalid variable name`);
      }
      name = parts[1]!;
      indexText = parts[2];
    }

    // Many values, or one.
    const many = name === "@" || name === "*" || indexText === "@" ||
      indexText === "*";
    if (many) {
      const star = name === "*" || indexText === "*";
      const positional = name === "@" || name === "*";
      let values = positional ? this.arguments : this.values(name);
      if (op === "length") return add(String(values.length));
      if (op === ":") {
        const offset = Number(await this.number(part.word!.parts));
        const length = part.second === undefined
          ? undefined
          : Number(await this.number(part.second.parts));
        if (length !== undefined && length < 0) {
          throw new ShellError(`${length}: substring expression < 0`);
        }
        if (positional) values = [this.name, ...values];
        else if (this.variable(name)?.list !== undefined) {
          // The offset is an index, which holes count for.
          const { list } = this.variable(name)!;
          const from = offset < 0 ? offset + list!.length : offset;
          const found = this.entries(name).filter(([key]) =>
            Number(key) >= from
          ).map(([, v]) => v);
          return addMany(from < 0 ? [] : found.slice(0, length), star);
        }
        let from = offset;
        if (from < 0) from += values.length;
        if (from < 0) return;
        if (positional && offset === 0 && length !== undefined) {
          return addMany(values.slice(0, length), star);
        }
        return addMany(
          values.slice(from, length === undefined ? undefined : from + length),
          star,
        );
      }
      if (op !== undefined && /^:?[-+=?]$/.test(op)) {
        const there = values.length > 0 &&
          (op[0] !== ":" || values.length > 1 || values[0] !== "");
        return await this.alternative(
          part,
          op,
          there,
          fields,
          quoted,
          () => addMany(values, star),
          asPattern,
        );
      }
      if (op !== undefined) {
        const changed: string[] = [];
        for (const value of values) {
          changed.push(await this.operation(part, op, value, name));
        }
        if (op === "@K" || op === "@A" || op === "@a" || op === "@k") {
          return add(this.transform(op, name, values));
        }
        return addMany(changed, star);
      }
      return addMany(values, star);
    }
    const value = this.scalar(name, indexText);
    if (op !== undefined && /^:?[-+=?]$/.test(op)) {
      const there = value !== undefined && (op[0] !== ":" || value !== "");
      return await this.alternative(
        part,
        op,
        there,
        fields,
        quoted,
        () => add(value!),
        asPattern,
      );
    }
    if (value === undefined) {
      this.bound(part);
      if (op === "length") return add("0");
      if (op === "@a" || op === "@A") return add(this.transform(op, name, []));
      if (quoted) fields.quoted("");
      if (op === undefined || op[0] === "@") return;
      if (op === ":") return;
    }
    if (op === undefined) return add(value!);
    if (op === "length") return add(String(count(value!)));
    add(await this.operation(part, op, value ?? "", name));
  }

  /** One value, of a special parameter too. */
  private scalar(name: string, index?: string): string | undefined {
    if (index !== undefined) {
      return this.elementNow(this.follow(name).name, index);
    }
    if (/^[A-Za-z_]/.test(name)) {
      return name === "_" ? this.lastArgument : this.get(name);
    }
    if (/^\d+$/.test(name)) {
      return name === "0" ? this.name : this.arguments[Number(name) - 1];
    }
    switch (name) {
      case "#":
        return String(this.arguments.length);
      case "?":
        return String(this.status);
      case "$":
        return String(this.shellPid);
      case "!":
        return this.lastBackground === 0
          ? undefined
          : String(this.lastBackground);
      case "-":
        return Object.entries(OPTIONS).filter(([, o]) => this.options.has(o))
          .map(([l]) => l).join("");
      default:
        return this.arguments.join(name === "*" ? this.ifs()[0] ?? "" : " ");
    }
  }

  private bound(part: Parameter): void {
    if (
      !this.options.has("nounset") || part.name === "@" || part.name === "*"
    ) return;
    const name = part.index === undefined
      ? part.name
      : `${part.name}[${plain(part.index) ?? ""}]`;
    throw new ShellError(
      `${/^\d/.test(name) ? "$" + name : name}: unbound variable`,
      1,
      true,
    );
  }

  private async alternative(
    part: Parameter,
    op: string,
    there: boolean,
    fields: Fields,
    quoted: boolean,
    value: () => void,
    asPattern: boolean,
  ): Promise<void> {
    const kind = op.at(-1)!;
    if (kind === "+" ? !there : there) {
      if (kind !== "+") value();
      else if (quoted) fields.quoted("");
      return;
    }
    const word = part.word!;
    if (kind === "?") {
      const text = await this.single(word);
      throw new ShellError(
        `${part.name}: ${
          text ||
          (op[0] === ":" ? "parameter null or not set" : "parameter not set")
        }`,
        1,
        true,
      );
    }
    if (kind === "=") {
      const text = await this.single(word, true);
      if (part.index !== undefined) {
        this.setElement(
          part.name,
          await this.indexText(part.name, part.index),
          text,
        );
      } else if (!/^[A-Za-z_]/.test(part.name)) {
        throw new ShellError(`$${part.name}: cannot assign in this way`);
      } else this.set(part.name, text);
      if (quoted) fields.quoted(text);
      else fields.expanded(text);
      return;
    }
    if (quoted) {
      if (word.parts.length === 0) fields.quoted("");
      for (const inner of word.parts) await this.expandQuoted(inner, fields);
      return;
    }
    // Text outside quotes is split here as an expansion is.
    for (const [i, inner] of word.parts.entries()) {
      if (
        inner.kind === "text" && fields.split &&
        !(i === 0 && inner.text.startsWith("~"))
      ) fields.expanded(inner.text);
      else await this.expand([inner], fields, i === 0 ? "word" : "", asPattern);
    }
  }

  private async operation(
    part: Parameter,
    op: string,
    value: string,
    name: string,
  ): Promise<string> {
    switch (op) {
      case "length":
        return String(count(value));
      case ":": {
        const characters = /[\ud800-\udfff]/.test(value)
          ? [...value]
          : undefined;
        const size = characters?.length ?? value.length;
        let from = Number(await this.number(part.word!.parts));
        if (from < 0) from += size;
        if (from < 0 || from > size) return "";
        let to = size;
        if (part.second !== undefined) {
          const length = Number(await this.number(part.second.parts));
          to = length < 0 ? size + length : Math.min(size, from + length);
          if (to < from) {
            throw new ShellError(
              `${await this.singleParts(
                part.second.parts,
              )}: substring expression < 0`,
            );
          }
        }
        return characters?.slice(from, to).join("") ?? value.slice(from, to);
      }
      case "#":
      case "##": {
        const p = await this.patternOf(part.word!);
        const source = pattern.source(p, { short: op === "#" });
        const found = pattern.regex(`^(?:${source})`).exec(value);
        return found === null ? value : value.slice(found[0].length);
      }
      case "%":
      case "%%": {
        const p = await this.patternOf(part.word!);
        const whole = pattern.regex(`^(?:${pattern.source(p)})$`);
        // The shortest tail is looked for from the end, the longest from the start.
        if (op === "%") {
          for (let i = value.length; i >= 0; i--) {
            if (whole.test(value.slice(i))) return value.slice(0, i);
          }
        } else {
          for (let i = 0; i <= value.length; i++) {
            if (whole.test(value.slice(i))) return value.slice(0, i);
          }
        }
        return value;
      }
      case "/":
      case "//":
      case "/#":
      case "/%": {
        const p = await this.patternOf(part.word!);
        if (p === "") {
          if (op === "/" || op === "//") return value;
        }
        const by = part.second === undefined
          ? () => ""
          : await this.replacement(part.second);
        let source = pattern.source(p);
        if (op === "/#") source = `^(?:${source})`;
        if (op === "/%") source = `(?:${source})$`;
        const regex = pattern.regex(
          source,
          this.shopts.has("nocasematch"),
          op === "//",
        );
        if (op === "//") {
          return value.replace(regex, (m) => m === "" ? "" : by(m));
        }
        return value.replace(regex, (m) => m === "" && op === "/" ? "" : by(m));
      }
      case "^":
      case "^^":
      case ",":
      case ",,":
      case "~":
      case "~~": {
        const p = part.word!.parts.length === 0
          ? "?"
          : await this.patternOf(part.word!);
        const change = (c: string) => {
          if (!pattern.matches(p, c)) return c;
          if (op[0] === "^") return c.toUpperCase();
          if (op[0] === ",") return c.toLowerCase();
          return c === c.toUpperCase() ? c.toLowerCase() : c.toUpperCase();
        };
        const characters = [...value];
        if (op.length === 1) {
          return characters.length === 0
            ? ""
            : change(characters[0]!) + characters.slice(1).join("");
        }
        return characters.map(change).join("");
      }
      default:
        return this.transform(op, name, [value]);
    }
  }

  /** What stands after the second slash; an `&` outside quotes is what was found. */
  private async replacement(word: Word): Promise<(found: string) => string> {
    const fields = new Fields(false, this.ifs());
    await this.expand(word.parts, fields, "word", true);
    const [field] = fields.finish();
    if (field === undefined) return () => "";
    if (
      !/(^|[^\\])(\\\\)*&/.test(field.pattern) ||
      !word.parts.some((p) =>
        p.kind === "text" && p.text.includes("&") || p.kind === "parameter"
      )
    ) {
      return () => field.text;
    }
    const quotedToo = field.pattern;
    return (found) => quotedToo.replace(/\\([\s\S])|&/g, (_, c) => c ?? found);
  }

  private transform(op: string, name: string, values: string[]): string {
    const [value = ""] = values;
    const variable = this.variable(name);
    switch (op) {
      case "@Q":
        return quote(value, true);
      case "@U":
        return value.toUpperCase();
      case "@u": {
        const [first = "", ...rest] = value;
        return first.toUpperCase() + rest.join("");
      }
      case "@L":
        return value.toLowerCase();
      case "@E":
        return unescape(value);
      case "@P":
        return value;
      case "@a":
        return attributes(variable);
      case "@A":
        return variable === undefined ? "" : declaration(name, variable, true);
      default:
        return this.entries(name).map(([k, v]) =>
          `${k} ${quote(v, op === "@K")}`
        ).join(" ");
    }
  }

  // Names of files.

  private glob(text: string): string[] {
    // Its parts, of which a quoted slash is a slash too.
    const parts = text.replace(/\\\//g, "/").split("/");
    let found: string[] = [text.startsWith("/") ? "/" : ""];
    if (parts[0] === "") parts.shift();
    const dots = this.shopts.has("dotglob"),
      ignoreCase = this.shopts.has("nocaseglob");
    for (const [i, part] of parts.entries()) {
      const last = i === parts.length - 1;
      const next: string[] = [];
      if (part === "") {
        // A slash at the end: directories alone.
        found = found.filter((f) => this.kind(f) === "directory").map((f) =>
          f.endsWith("/") ? f : f + "/"
        );
        continue;
      }
      if (part === "**" && this.shopts.has("globstar")) {
        for (const f of found) {
          if (f === "" && !last) next.push("");
          else if (f !== "") next.push(f.endsWith("/") || last ? f : f + "/");
          this.below(f, dots, !last, next);
        }
        found = next;
        continue;
      }
      if (!pattern.isPattern(part, true)) {
        const name = pattern.unquotePattern(part);
        for (const f of found) {
          const path = f + name;
          if (
            last
              ? this.kind(path, false) !== undefined
              : this.kind(path) === "directory"
          ) next.push(last ? path : path + "/");
        }
        found = next;
        continue;
      }
      const regex = pattern.regex(`^(?:${pattern.source(part)})$`, ignoreCase);
      for (const f of found) {
        let names: string[];
        try {
          names = this.files.readDir(resolve(this.cwd, f || ".")).map((e) =>
            e.name
          );
        } catch {
          continue;
        }
        if (part.startsWith(".")) {
          names.push(...this.shopts.has("globskipdots") ? [] : [".", ".."]);
        }
        for (const name of names.sort(collate)) {
          if (
            name.startsWith(".") && !dots && !part.startsWith(".") &&
            !part.startsWith("\\.")
          ) continue;
          if (!regex.test(name)) continue;
          if (last) next.push(f + name);
          else if (this.kind(f + name) === "directory") {
            next.push(f + name + "/");
          }
        }
      }
      found = next;
    }
    return found.filter((f) => f !== "");
  }

  private below(
    from: string,
    dots: boolean,
    directories: boolean,
    found: string[],
  ): void {
    let names: { name: string; kind: string }[];
    try {
      names = this.files.readDir(resolve(this.cwd, from || "."));
    } catch {
      return;
    }
    const base = from === "" || from.endsWith("/") ? from : from + "/";
    for (
      const { name, kind } of names.sort((a, b) => collate(a.name, b.name))
    ) {
      if (name.startsWith(".") && !dots) continue;
      if (kind === "directory") {
        found.push(base + name + (directories ? "/" : ""));
        this.below(base + name, dots, directories, found);
      } else if (!directories) found.push(base + name);
    }
  }

  kind(path: string, follow = true): string | undefined {
    try {
      return this.files.stat(resolve(this.cwd, path), follow).kind;
    } catch {
      return undefined;
    }
  }

  // [[ … ]]

  private async test(test: Test): Promise<boolean> {
    switch (test.kind) {
      case "word":
        return await this.single(test.word) !== "";
      case "not":
        return !await this.test(test.test);
      case "and":
        return await this.test(test.left) && await this.test(test.right);
      case "or":
        return await this.test(test.left) || await this.test(test.right);
      case "unary":
        return this.unary(test.op, await this.single(test.word));
      case "binary": {
        const left = await this.single(test.left);
        const ignoreCase = this.shopts.has("nocasematch");
        if (test.op === "=" || test.op === "==" || test.op === "!=") {
          return pattern.matches(await this.patternOf(test.right), left, {
            ignoreCase,
          }) === (test.op !== "!=");
        }
        if (test.op === "=~") {
          return await this.regexTest(left, test.right, ignoreCase);
        }
        return this.binary(test.op, left, await this.single(test.right), true);
      }
    }
  }

  private async regexTest(
    text: string,
    word: Word,
    ignoreCase: boolean,
  ): Promise<boolean> {
    // What was quoted is meant as it stands.
    let source = "";
    for (const part of word.parts) {
      const fields = new Fields(false, "");
      await this.expand([part], fields, "word", true);
      const [field] = fields.finish();
      const literal = part.kind === "quoted" || part.kind === "double";
      source += literal
        ? (field?.text ?? "").replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")
        : field?.text ?? "";
    }
    let regex: RegExp;
    try {
      regex = pattern.extendedRegex(source, ignoreCase);
    } catch {
      this.status = 2;
      return false;
    }
    const found = regex.exec(text);
    this.variables.set("BASH_REMATCH", {
      list: found === null ? [] : [...found].map((f) => f ?? ""),
    });
    return found !== null;
  }

  unary(op: string, text: string): boolean {
    switch (op) {
      case "-n":
        return text !== "";
      case "-z":
        return text === "";
      case "-v": {
        const parts = /^(\w+)\[(.*)\]$/s.exec(text);
        if (parts === null) return this.scalar(text) !== undefined;
        if (parts[2] === "@" || parts[2] === "*") {
          return this.entries(parts[1]!).length > 0;
        }
        return this.elementNow(this.follow(parts[1]!).name, parts[2]!) !==
          undefined;
      }
      case "-R":
        return this.variables.get(text)?.reference ?? false;
      case "-o":
        return this.options.has(text);
      case "-t":
        return false;
    }
    let stat: Stat;
    try {
      if (text === "") return false;
      const path = resolve(this.cwd, text);
      if (
        /^\/dev\/(null|zero|u?random|stdin|stdout|stderr|fd\/\d+)$/.test(path)
      ) {
        return op === "-e" || op === "-a" || op === "-r" || op === "-w" ||
          op === "-c";
      }
      stat = this.files.stat(path, op !== "-L" && op !== "-h");
      if (text.endsWith("/") && stat.kind !== "directory") return false;
    } catch {
      return false;
    }
    switch (op) {
      case "-f":
        return stat.kind === "file";
      case "-d":
        return stat.kind === "directory";
      case "-L":
      case "-h":
        return stat.kind === "symlink";
      case "-s":
        return stat.size > 0;
      case "-r":
        return (stat.mode & 0o444) !== 0;
      case "-w":
        return (stat.mode & 0o222) !== 0;
      case "-x":
        return (stat.mode & 0o111) !== 0;
      case "-c":
        return stat.kind === "device";
      case "-g":
        return (stat.mode & 0o2000) !== 0;
      case "-u":
        return (stat.mode & 0o4000) !== 0;
      case "-k":
        return (stat.mode & 0o1000) !== 0;
      case "-b":
      case "-p":
      case "-S":
        return false;
      case "-N":
        return stat.mtime > stat.atime;
      default:
        return true;
    }
  }

  /** A comparison; in `[[` numbers are expressions. */
  binary(
    op: string,
    left: string,
    right: string,
    expressions: boolean,
  ): boolean {
    const time = (path: string) => {
      try {
        return this.files.stat(resolve(this.cwd, path));
      } catch {
        return undefined;
      }
    };
    switch (op) {
      case "=":
      case "==":
        return left === right;
      case "!=":
        return left !== right;
      case "<":
        return collate(left, right) < 0;
      case ">":
        return collate(left, right) > 0;
      case "-nt":
      case "-ot": {
        const [a, b] = op === "-nt"
          ? [time(left), time(right)]
          : [time(right), time(left)];
        return a !== undefined && (b === undefined || a.mtime > b.mtime);
      }
      case "-ef": {
        const [a, b] = [time(left), time(right)];
        return a !== undefined && b !== undefined && a.ino === b.ino &&
          a.size === b.size && a.mtime === b.mtime;
      }
    }
    const number = (text: string): bigint => {
      if (expressions) return this.evaluate(text);
      if (!/^\s*[-+]?\d+\s*$/.test(text)) {
        throw new ShellError(`${text}: integer expression expected`, 2);
      }
      return BigInt(text.trim().replace(/^\+/, ""));
    };
    const [a, b] = [number(left), number(right)];
    switch (op) {
      case "-eq":
        return a === b;
      case "-ne":
        return a !== b;
      case "-lt":
        return a < b;
      case "-le":
        return a <= b;
      case "-gt":
        return a > b;
      default:
        return a >= b;
    }
  }

  private trace(text: string): void {
    const ps4 = this.get("PS4") ?? "+ ";
    this.error(
      `${ps4.replace(/\$LINENO|\$\{LINENO\}/g, String(this.line))}${text}\n`,
    );
  }
}

const closed = new (class extends Nothing {
  override read(): never {
    throw new Error("Bad file descriptor");
  }
  override write(): never {
    throw new Error("Bad file descriptor");
  }
})();

function isEmpty(node: Node): boolean {
  return node.kind === "list" && node.items.length === 0;
}

function minutes(seconds: number): string {
  return `${Math.floor(seconds / 60)}m${(seconds % 60).toFixed(3)}s`;
}

/** How many characters a text has. */
function count(text: string): number {
  return /[\ud800-\udbff]/.test(text) ? [...text].length : text.length;
}

/** The order of names and strings: that of their code points. */
export function collate(a: string, b: string): number {
  if (a === b) return 0;
  for (let i = 0; i < a.length && i < b.length; i++) {
    if (a[i] !== b[i]) return a.codePointAt(i)! < b.codePointAt(i)! ? -1 : 1;
  }
  return a.length < b.length ? -1 : 1;
}

function traced(text: string): string {
  return text === ""
    ? "''"
    : /^[\w@%+=:,.\/\-]+$/.test(text)
    ? text
    : quote(text, true);
}

function assignText(assign: Assign): string {
  return `${assign.name}=${
    assign.value === undefined ? "(...)" : plain(assign.value) ?? "..."
  }`;
}

function unescape(text: string): string {
  return text.replace(
    /\\([abefnrtv\\'"])/g,
    (_, c) =>
      ({
        a: "\x07",
        b: "\b",
        e: "\x1b",
        f: "\f",
        n: "\n",
        r: "\r",
        t: "\t",
        v: "\v",
      } as Record<string, string>)[c] ?? c,
  );
}

const CONTROL = /[^\P{Cc}\u0080-\u009f]/u;

/** A text as the shell reads it again. */
export function quote(text: string, always = false): string {
  if (CONTROL.test(text)) {
    const inner = text.replace(/[\\']/g, "\\$&").replace(
      new RegExp(CONTROL, "gu"),
      (c) => {
        const at = "\x07\b\x1b\f\n\r\t\v".indexOf(c);
        return at >= 0
          ? "\\" + "abEfnrtv"[at]
          : "\\" + c.charCodeAt(0).toString(8).padStart(3, "0");
      },
    );
    return `$'${inner}'`;
  }
  if (always) return `'${text.replaceAll("'", "'\\''")}'`;
  if (text === "") return "''";
  return text.replace(/[^\w@%+=:.\/\-\u0080-\uffff]/g, "\\$&").replace(
    /^~/,
    "\\~",
  );
}

export function attributes(variable: Variable | undefined): string {
  if (variable === undefined) return "";
  return (variable.list !== undefined ? "a" : "") +
    (variable.map !== undefined ? "A" : "") + (variable.integer ? "i" : "") +
    (variable.lower ? "l" : "") + (variable.reference ? "n" : "") +
    (variable.readonly ? "r" : "") + (variable.upper ? "u" : "") +
    (variable.exported ? "x" : "");
}

/** A variable as `declare -p` prints it. */
export function declaration(
  name: string,
  variable: Variable,
  short = false,
): string {
  const double = (text: string) =>
    CONTROL.test(text) ? quote(text) : `"${text.replace(/["\\$`]/g, "\\$&")}"`;
  const flags = attributes(variable) || "-";
  if (variable.map !== undefined) {
    const inner = [...variable.map].map(([k, v]) =>
      `[${/^[\w.\/-]+$/.test(k) ? k : double(k)}]=${double(v)} `
    ).join("");
    return `declare -${flags} ${name}=(${inner})`;
  }
  if (variable.list !== undefined) {
    return `declare -${flags} ${name}=(${
      Object.entries(variable.list).map(([k, v]) => `[${k}]=${double(v)}`).join(
        " ",
      )
    })`;
  }
  if (short && flags === "-") {
    return `${name}=${quote(variable.value ?? "", true)}`;
  }
  return `declare -${flags} ${name}${
    variable.value === undefined ? "" : `=${double(variable.value)}`
  }`;
}

/** The words that a word's braces make. */
function braces(word: Word): Word[] {
  if (word.braced !== undefined) return word.braced;
  let some = false;
  for (const part of word.parts) {
    if (part.kind === "text" && part.text.includes("{")) some = true;
  }
  if (!some) return word.braced = [word];
  const items: (string | Part)[] = [];
  for (const part of word.parts) {
    if (part.kind === "text") items.push(...part.text);
    else items.push(part);
  }
  const made = spread(items);
  return word.braced = made.map((items) => {
    const parts: Part[] = [];
    for (const item of items) {
      const last = parts.at(-1);
      if (typeof item !== "string") parts.push(item);
      else if (last?.kind === "text") {
        parts[parts.length - 1] = { kind: "text", text: last.text + item };
      } else parts.push({ kind: "text", text: item });
    }
    return { parts };
  });
}

function spread(items: (string | Part)[]): (string | Part)[][] {
  for (let i = 0; i < items.length; i++) {
    if (items[i] !== "{") continue;
    let depth = 0, end = -1;
    const commas: number[] = [];
    for (let j = i; j < items.length; j++) {
      if (items[j] === "{") depth++;
      else if (items[j] === "}" && --depth === 0) {
        end = j;
        break;
      } else if (items[j] === "," && depth === 1) commas.push(j);
    }
    if (end < 0) continue;
    const inside = items.slice(i + 1, end);
    let choices: (string | Part)[][] | undefined;
    if (commas.length > 0) {
      choices = [];
      let from = i + 1;
      for (const to of [...commas, end]) {
        choices.push(...spread(items.slice(from, to)));
        from = to + 1;
      }
    } else if (inside.every((c) => typeof c === "string")) {
      choices = sequence(inside.join(""))?.map((s) => [...s]);
    }
    if (choices === undefined) continue;
    const head = items.slice(0, i), tails = spread(items.slice(end + 1));
    const all: (string | Part)[][] = [];
    for (const choice of choices) {
      for (const tail of tails) {
        all.push([...head, ...choice, ...tail]);
        if (all.length > 1_000_000) {
          throw new ShellError("brace expansion: too many words");
        }
      }
    }
    return all;
  }
  return [items];
}

function sequence(text: string): string[] | undefined {
  const numbers = /^(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?$/.exec(text);
  const letters = /^([A-Za-z])\.\.([A-Za-z])(?:\.\.(-?\d+))?$/.exec(text);
  const found = numbers ?? letters;
  if (found === null) return undefined;
  const [from, to] = numbers !== null
    ? [Number(found[1]), Number(found[2])]
    : [found[1]!.charCodeAt(0), found[2]!.charCodeAt(0)];
  const step = Math.abs(Number(found[3] ?? 1)) || 1;
  if (Math.abs(to - from) / step > 1_000_000) {
    throw new ShellError("brace expansion: too many words");
  }
  const padded = numbers !== null && /^-?0\d/.test(found[1]!) ||
    numbers !== null && /^-?0\d/.test(found[2]!);
  const width = padded ? Math.max(found[1]!.length, found[2]!.length) : 0;
  const all: string[] = [];
  for (
    let n = from;
    from <= to ? n <= to : n >= to;
    n += from <= to ? step : -step
  ) {
    if (numbers === null) all.push(String.fromCharCode(n));
    else if (width > 0) {
      all.push(
        n < 0
          ? "-" + String(-n).padStart(width - 1, "0")
          : String(n).padStart(width, "0"),
      );
    } else all.push(String(n));
  }
  return all;
}
