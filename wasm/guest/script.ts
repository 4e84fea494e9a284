/**
 * Runs programs of SQL for a database that is only asked: statements one after another,
 * each result set printed when its statement ran, and the commands that are the same
 * whatever the database. The first error ends a program.
 *
 * @module
 */

import { FileError, type OpenFile } from "./files.ts";
import { Exit, type Host } from "./language.ts";
import { nearestName } from "./nearest.ts";
import { fullPath } from "./path.ts";
import { type Piece, split } from "./statements.ts";
import { type Cell, MODES, Output, type Style } from "./table.ts";
import { splitWords } from "./words.ts";

/** What a statement gives; one without columns is not printed. */
export interface Result {
  columns: string[];
  /** The rows, some at a time. */
  rows: Iterable<Cell[][]>;
}

/** An error as it is told. */
export interface Told {
  name: string;
  message: string;
  /** All of it, with the place in the program. */
  text: string;
}

export interface Dialect {
  /** What a command begins with. */
  prefix: "." | "\\";
  query(sql: string): Iterable<Result> | Promise<Iterable<Result>>;
  /** An error of the database's; undefined is one of something else. */
  told(error: unknown, piece: Piece, file: string): Told | undefined;
  /** Commands that the database has; what one gives is SQL to run, or text. */
  commands: Record<
    string,
    (words: string[], line: string) => Command | Promise<Command>
  >;
}

type Command = { sql: string } | { text: string } | undefined | void;

/** A mistake in a command, or something refused. */
export class ScriptError extends Error {}

const encoder = new TextEncoder();
/** How deep files may read one another. */
const DEEPEST = 25;

export class Script {
  style: Style = { mode: "column", widths: [], table: "tab" };
  readonly variables = new Map<string, string>();
  host!: Host;
  #last?: Output;
  #printed: "nothing" | "text" | "table" = "nothing";
  #sink?: { file: OpenFile; at: number; once: boolean };
  #depth = 0;

  constructor(private readonly dialect: Dialect) {}

  /** Runs a program, and gives its exit code. */
  async run(code: string, host: Host): Promise<number> {
    this.host = host;
    this.#forget();
    this.#printed = "nothing";
    this.#depth = 0;
    let exit = 0;
    try {
      await this.#run(code, "");
    } catch (error) {
      if (error instanceof Exit) exit = error.code;
      else if (error instanceof Failed) {
        const { name, message, text } = error.told;
        host.fail({ name, message, traceback: text });
        exit = 1;
      } else throw error;
    }
    if (this.#sink?.once) this.#to();
    if (this.#last) {
      host.value(this.#last.value());
      host.display({ "text/html": this.#last.html(), "text/plain": "" });
    }
    return exit;
  }

  #forget(): void {
    this.#last = undefined;
  }

  write(text: string): void {
    if (this.#sink) {
      const bytes = encoder.encode(text);
      for (let done = 0; done < bytes.length;) {
        done += this.#sink.file.write(
          bytes.subarray(done),
          this.#sink.at + done,
        );
      }
      this.#sink.at += bytes.length;
      return;
    }
    if (this.#printed === "table") text = "\n" + text;
    this.#printed = "text";
    this.host.stdout(encoder.encode(text));
  }

  /** A file's content; `/dev/stdin` and `-` are standard input. */
  read(path: string): Uint8Array {
    const full = path === "-" ? "/dev/stdin" : fullPath(path);
    if (full !== "/dev/stdin") return this.host.files.readFile(full);
    const pieces: Uint8Array[] = [];
    const buffer = new Uint8Array(65536);
    for (let n; (n = this.host.read(buffer)) > 0;) {
      pieces.push(buffer.slice(0, n));
    }
    const all = new Uint8Array(
      pieces.reduce((size, { length }) => size + length, 0),
    );
    let at = 0;
    for (const piece of pieces) {
      all.set(piece, at);
      at += piece.length;
    }
    return all;
  }

  async #run(text: string, file: string): Promise<void> {
    if (++this.#depth > DEEPEST) {
      throw new ScriptError(`files nest deeper than ${DEEPEST}`);
    }
    for (const piece of split(text, this.dialect.prefix, this.variables)) {
      try {
        if (piece.command) await this.#command(piece.text);
        else await this.show(piece.text);
      } catch (error) {
        if (error instanceof Exit || error instanceof Failed) throw error;
        throw new Failed(this.#told(error, piece, file));
      }
    }
    this.#depth--;
  }

  #told(error: unknown, piece: Piece, file: string): Told {
    const told = this.dialect.told(error, piece, file);
    if (told) return told;
    if (!(error instanceof ScriptError || error instanceof FileError)) {
      throw error;
    }
    const where = `near line ${piece.line}${file && ` of ${file}`}`;
    const { message } = error;
    return {
      name: "Error",
      message: `${where}: ${message}`,
      text: `Error ${where}: ${message}`,
    };
  }

  /** Runs a statement, and prints what it gives. */
  async show(sql: string): Promise<void> {
    for (const { columns, rows } of await this.dialect.query(sql)) {
      if (columns.length === 0) continue;
      const tabular = ["column", "box", "table", "markdown"].includes(
        this.style.mode,
      );
      if (tabular && !this.#sink && this.#printed === "text") this.write("\n");
      const output = new Output(
        columns,
        this.style,
        (text) => this.write(text),
      );
      for (const some of rows) for (const row of some) output.row(row);
      output.end();
      if (tabular && !this.#sink) this.#printed = "table";
      this.#last = output;
      if (this.#sink?.once) this.#to();
    }
  }

  /** Where output goes: a file, or back to standard output. */
  #to(path?: string, once = false): void {
    this.#sink?.file.close();
    this.#sink = undefined;
    if (path === undefined || path === "stdout") return;
    if (path.startsWith("|")) {
      throw new ScriptError("a result can't be piped to a command here");
    }
    const file = this.host.files.open(fullPath(path), {
      write: true,
      create: true,
      truncate: true,
    });
    this.#sink = { file, at: 0, once };
  }

  async #command(line: string): Promise<void> {
    const { prefix, commands } = this.dialect;
    const words = splitWords(line.slice(prefix.length).replace(/;$/, ""));
    const name = words.shift()!;
    if (Object.hasOwn(commands, name)) {
      const does = await commands[name]!(words, line);
      if (does && "sql" in does) await this.show(does.sql);
      else if (does) this.write(does.text);
      return;
    }
    const common = this.#common;
    if (Object.hasOwn(common, name)) return await common[name]!(words);
    const near = nearestName(
      name,
      this.commands.map((name) => name.slice(prefix.length)),
    );
    throw new ScriptError(
      `unknown command ${prefix}${name}` +
        (near ? `, did you mean ${prefix}${near}?` : ""),
    );
  }

  /** The names of all commands. */
  get commands(): string[] {
    const { prefix, commands } = this.dialect;
    return [...Object.keys(commands), ...Object.keys(this.#common)].sort()
      .map((name) => prefix + name);
  }

  get #common(): Record<string, (words: string[]) => void | Promise<void>> {
    const read = ([path]: string[]) => {
      if (path === undefined) throw new ScriptError("a file must be named");
      return this.#run(new TextDecoder().decode(this.read(path)), path);
    };
    const end = ([code]: string[]) => {
      throw new Exit(Number.parseInt(code ?? "0") || 0);
    };
    const print = (words: string[]) => this.write(words.join(" ") + "\n");
    if (this.dialect.prefix === "\\") {
      return {
        q: end,
        i: read,
        ir: read,
        echo: print,
        o: ([path]) => this.#to(path),
        x: ([word]) => {
          const on = word === undefined
            ? this.style.mode !== "line"
            : word !== "off";
          this.style = { ...this.style, mode: on ? "line" : "column" };
        },
        t: ([word]) => {
          const only = word === undefined
            ? this.style.headers !== false
            : word !== "off";
          this.style = { ...this.style, headers: only ? false : undefined };
        },
        set: ([name, ...value]) => {
          if (name !== undefined) this.variables.set(name, value.join(""));
        },
        unset: ([name]) => void this.variables.delete(name ?? ""),
        pset: ([what, value]) => {
          const forms: Record<string, string> = {
            aligned: "column",
            unaligned: "list",
            csv: "csv",
            html: "html",
          };
          if (what === "null") {
            this.style = { ...this.style, nullText: value ?? "" };
          } else if (what === "format") this.#mode(forms[value ?? ""] ?? value);
          else if (what !== "pager") {
            throw new ScriptError(`\\pset: there are null and format`);
          }
        },
        help: () => this.write(this.commands.join("  ") + "\n"),
        "?": () => this.write(this.commands.join("  ") + "\n"),
      };
    }
    return {
      exit: end,
      quit: end,
      read,
      print,
      output: ([path]) => this.#to(path),
      once: ([path]) => this.#to(path, true),
      mode: ([mode]) => this.#mode(mode),
      headers: ([word]) => {
        this.style = {
          ...this.style,
          headers: /^(on|yes|true|1)$/i.test(word ?? ""),
        };
      },
      nullvalue: ([text]) => {
        this.style = { ...this.style, nullText: text };
      },
      separator: ([separator, rowSeparator]) => {
        this.style = { ...this.style, separator, rowSeparator };
      },
      width: (words) => {
        this.style = {
          ...this.style,
          widths: words.map((word) => Number.parseInt(word) || 0),
        };
      },
      help: () => this.write(this.commands.join("  ") + "\n"),
    };
  }

  #mode(given?: string): void {
    const mode = MODES.find((mode) => mode === given);
    if (!mode) {
      throw new ScriptError(
        `no form ${given ?? ""}; there are ${MODES.join(", ")}`,
      );
    }
    this.style = { ...this.style, mode, separator: undefined };
  }
}

class Failed extends Error {
  constructor(readonly told: Told) {
    super(told.message);
  }
}
