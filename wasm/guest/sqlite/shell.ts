/**
 * Runs programs of SQL with the commands that the sqlite3 shell has (".tables"): statement
 * by statement, each result set printed when its statement ran. The first error ends a
 * program, unless it says `.bail off`.
 *
 * Data goes in by `.import` (CSV, or JSON by the file's name) and `readfile()`, and out by
 * `.output`, `.once` and `writefile()`.
 *
 * @module
 */

import { FileError, type OpenFile } from "../files.ts";
import { Exit, type Host, WORKSPACE } from "../language.ts";
import { nearestName } from "../nearest.ts";
import { fullPath } from "../path.ts";
import { splitWords } from "../words.ts";
import {
  type Cell,
  MODES,
  Output,
  Shown,
  sqlName,
  sqlText,
  type Style,
} from "../table.ts";
import { Database, SQLError, type Statement } from "./database.ts";
import type { Engine } from "./engine.ts";
import { readCSV, readJSON } from "./import.ts";
import type { VFS } from "./vfs.ts";

/** How deep files may read one another. */
const DEEPEST = 25;
const encoder = new TextEncoder();

/** An error of a program's, with what a person is told of it. */
class ScriptError extends Error {
  constructor(
    /** "ParseError". */
    readonly kind: string,
    message: string,
    /** All that is told. */
    readonly told: string,
  ) {
    super(message);
  }
}

/** A mistake in a command. */
class CommandError extends Error {}

/** Where text goes. */
interface Sink {
  write(text: string): void;
  close(): void;
}

/** What a command gets: its words after the name, and the text that they are of. */
type Command = (words: string[], text: string) => void;

export class Shell {
  #database!: Database;
  #host!: Host;
  #style: Style = { mode: "column", widths: [], table: "tab" };
  #echo = false;
  #changes = false;
  #timer = false;
  #bail = true;
  /** The file that `.output` has named. */
  #output?: Sink;
  /** The file that `.once` has named, for the next result. */
  #once?: Sink;
  #parameters = new Map<string, Cell>();
  #positional: Cell[] = [];
  /** The last result set of the program. */
  #last?: Output;
  /** What was printed last: an empty line is between a table and what is beside it. */
  #printed: "nothing" | "text" | "table" = "nothing";
  #depth = 0;

  constructor(
    private readonly engine: Engine,
    private readonly vfs: VFS,
    private readonly readOnly: boolean,
  ) {}

  /** Opens a database in place of the one that is open. */
  open(path: string, readOnly = false): void {
    let database;
    this.vfs.refused = "";
    try {
      database = new Database(this.engine, path, readOnly);
      // A file that cannot be read is told here, and not by what comes first.
      database.rows("PRAGMA schema_version");
    } catch (error) {
      database?.close();
      if (!(error instanceof SQLError)) throw error;
      const why = this.vfs.refused && ` (${this.vfs.refused})`;
      throw new SQLError(
        `cannot open ${JSON.stringify(path)}: ${error.message}${why}`,
        error.code,
      );
    }
    this.#database?.close();
    this.#database = database;
    this.#define(database);
  }

  get opened(): boolean {
    return this.#database !== undefined;
  }

  close(): void {
    this.#database?.close();
  }

  /** Runs a program, and gives its exit code. */
  run(
    code: string,
    host: Host,
    open: string | undefined,
    parameters: Map<string, Cell>,
    positional: Cell[],
  ): number {
    this.#host = host;
    this.#last = undefined;
    this.#printed = "nothing";
    this.#positional = positional;
    for (const [name, value] of parameters) this.#parameters.set(name, value);
    let failed = false;
    try {
      if (open !== undefined) this.open(open, this.readOnly);
      failed = this.#script(code, "");
    } catch (error) {
      if (error instanceof Exit) return this.#end(error.code);
      const told = this.#told(error, 0, "", "");
      host.fail({
        name: told.kind,
        message: told.message,
        traceback: told.told,
      });
      return this.#end(1);
    }
    return this.#end(failed ? 1 : 0);
  }

  #end(code: number): number {
    this.#once?.close();
    this.#once = undefined;
    if (this.#last) {
      this.#host.value(this.#last.value());
      this.#host.display({ "text/html": this.#last.html(), "text/plain": "" });
    }
    return code;
  }

  /** Whether the text of a statement or command is whole. */
  complete(text: string): boolean {
    for (;;) {
      text = text.trimStart();
      if (!text.startsWith(".")) break;
      const end = text.indexOf("\n");
      if (end < 0) return true;
      text = text.slice(end + 1);
    }
    if (text === "") return true;
    return this.engine.withText(
      text,
      (at) => this.engine.call.sqlite3_complete!(at),
    ) !== 0;
  }

  /** Whether a transaction has begun and not ended. */
  get busy(): boolean {
    return this.opened && !this.#database.autocommit;
  }

  /** The names that the database has: tables, columns, functions; or a table's columns. */
  names(table?: string): string[] {
    const columns =
      `SELECT c.name FROM sqlite_schema s, pragma_table_info(s.name) c
       WHERE s.type IN ('table', 'view')`;
    let names: Cell[][] = [];
    if (table !== undefined) {
      names = this.#database.rows(
        "SELECT name FROM pragma_table_info(?1)",
        table,
      );
      // It may be a name that a query gives a table.
      if (names.length === 0) names = this.#database.rows(columns);
    } else {
      names = this.#database.rows(
        `${columns} UNION SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')
         UNION SELECT name FROM pragma_function_list`,
      );
    }
    return names.map(([name]) => String(name)).filter((name) =>
      /\w/.test(name)
    );
  }

  get commands(): string[] {
    return Object.keys(this.#commands).map((name) => "." + name);
  }

  /** Runs a text; true is that something failed, and the text went on. */
  #script(text: string, name: string): boolean {
    const { engine } = this;
    if (++this.#depth > DEEPEST) {
      throw new CommandError(`.read: files nest deeper than ${DEEPEST}`);
    }
    const bytes = encoder.encode(
      text.startsWith("\ufeff") ? text.slice(1) : text,
    );
    const zero = bytes.indexOf(0);
    const at = engine.put(zero < 0 ? bytes : bytes.subarray(0, zero));
    const end = at + (zero < 0 ? bytes.length : zero);
    let failed = false;
    let line = 1, counted = at;
    const lineAt = (place: number) => {
      const memory = engine.bytes;
      for (; counted < place; counted++) if (memory[counted] === 10) line++;
      return line;
    };
    try {
      for (let here = at;;) {
        here = skipSpace(engine.bytes, here, end);
        if (here >= end) break;
        const first = lineAt(here);
        let next = end;
        try {
          if (
            engine.bytes[here] === 0x2e && atLineStart(engine.bytes, here, at)
          ) {
            const stop = engine.bytes.indexOf(10, here);
            next = stop < 0 || stop > end ? end : stop;
            failed =
              this.#command(engine.textOf(here, next - here).trimEnd()) ||
              failed;
          } else {
            next = this.#statement(here, end);
          }
        } catch (error) {
          if (error instanceof Exit || error instanceof ScriptError) {
            throw error;
          }
          const source = engine.textOf(here, end - here);
          const told = this.#told(error, first, name, source);
          if (this.#bail) throw told;
          failed = true;
          this.#host.stderr(encoder.encode(told.told + "\n"));
          if (next === end && error instanceof SQLError) {
            next = here +
              encoder.encode(wholeStatement(source, (t) => this.complete(t)))
                .length;
          }
        }
        here = next;
      }
    } finally {
      this.#depth--;
      engine.call.free!(at);
    }
    return failed;
  }

  /** Runs the statement at a place, and gives the place after it. */
  #statement(at: number, end: number): number {
    const { engine } = this;
    const { statement, next } = this.#database.prepareAt(at);
    if (!statement) return next > at ? next : end;
    const started = performance.now();
    try {
      if (this.#echo) this.#write(engine.textOf(at, next - at).trim() + "\n");
      this.#bind(statement);
      this.#show(statement);
    } catch (error) {
      // Its offset is that of what SQLite runs on its own, if of anything.
      throw error instanceof SQLError
        ? new RunError(error.message, error.code)
        : error;
    } finally {
      statement.finalize();
    }
    if (this.#changes) {
      const { changes, totalChanges } = this.#database;
      this.#write(`changes: ${changes}   total_changes: ${totalChanges}\n`);
    }
    if (this.#timer) {
      const seconds = (performance.now() - started) / 1000;
      this.#write(`Run Time: real ${seconds.toFixed(3)}\n`);
    }
    return next;
  }

  #bind(statement: Statement): void {
    let place = 0;
    statement.parameters.forEach((name, i) => {
      // ? and ?1 are the arguments without a name, in order.
      const value = /^(\?\d+)?$/.test(name)
        ? this.#positional[place++]
        : this.#parameters.get(name) ?? this.#parameters.get(name.slice(1));
      if (value !== undefined) statement.bind(i + 1, value);
    });
  }

  /** Runs a statement to its end, and prints its rows. */
  #show(statement: Statement): void {
    if (statement.columns.length === 0) {
      while (statement.step());
      return;
    }
    if (statement.explains === 2 && this.#tabular) {
      return this.#showPlan(statement);
    }
    const once = this.#once;
    let output: Output | undefined;
    const start = () => {
      if (this.#tabular) this.#apart();
      return new Output(
        statement.columns,
        this.#style,
        (text) => this.#write(text),
      );
    };
    while (statement.step()) (output ??= start()).row(statement.row());
    (output ??= start()).end();
    if (this.#tabular && !once && !this.#output) this.#printed = "table";
    this.#last = output;
    if (once) {
      once.close();
      this.#once = undefined;
    }
  }

  get #tabular(): boolean {
    return ["column", "box", "table", "markdown"].includes(this.#style.mode);
  }

  #showPlan(statement: Statement): void {
    const children = new Map<number, { id: number; detail: string }[]>();
    while (statement.step()) {
      const [id, parent, , detail] = statement.row();
      const list = children.get(parent as number) ?? [];
      list.push({ id: id as number, detail: String(detail) });
      children.set(parent as number, list);
    }
    let text = "QUERY PLAN\n";
    const draw = (of: number, indent: string) => {
      const list = children.get(of) ?? [];
      list.forEach(({ id, detail }, i) => {
        const last = i === list.length - 1;
        text += `${indent}${last ? "`--" : "|--"}${detail}\n`;
        draw(id, indent + (last ? "   " : "|  "));
      });
    };
    draw(0, "");
    this.#apart();
    this.#write(text);
  }

  #write(text: string): void {
    const sink = this.#once ?? this.#output;
    if (sink) return sink.write(text);
    if (this.#printed === "table") text = "\n" + text;
    this.#printed = "text";
    this.#host.stdout(encoder.encode(text));
  }

  /** Begins a table. */
  #apart(): void {
    if (this.#printed === "text" && !this.#once && !this.#output) {
      this.#write("\n");
    }
  }

  /** An error as the sqlite3 shell tells it. */
  #told(
    error: unknown,
    line: number,
    name: string,
    source: string,
  ): ScriptError {
    if (error instanceof ScriptError) return error;
    const where = line === 0
      ? ""
      : ` near line ${line}${name && ` of ${name}`}`;
    if (error instanceof SQLError) {
      const kind = error instanceof RunError
        ? "Runtime"
        : line === 0
        ? ""
        : "Parse";
      const { offset, code } = error;
      let { message } = error;
      if (error instanceof RunError && code !== 1) message += ` (${code})`;
      const context = kind === "Parse" && offset >= 0
        ? pointAt(source, offset)
        : "";
      return new ScriptError(
        kind + "Error",
        `${where.trim()}${where && ": "}${message}`,
        `${kind || "Error"}${kind && " error"}${where}: ${message}${context}`
          .replace(
            /^Error error/,
            "Error",
          ),
      );
    }
    if (
      error instanceof CommandError || error instanceof FileError ||
      error instanceof SyntaxError
    ) {
      const message = error.message;
      return new ScriptError(
        "Error",
        `${where.trim()}${where && ": "}${message}`,
        `Error${where}: ${message}`,
      );
    }
    throw error;
  }

  // Files.

  #readText(path: string): string {
    return new TextDecoder().decode(this.#readFile(path));
  }

  #readFile(path: string): Uint8Array {
    const full = path === "-" ? "/dev/stdin" : fullPath(path);
    if (full === "/dev/stdin") return this.#readInput();
    return this.#host.files.readFile(full);
  }

  #readInput(): Uint8Array {
    const pieces: Uint8Array[] = [];
    const buffer = new Uint8Array(65536);
    let size = 0;
    for (let n; (n = this.#host.read(buffer)) > 0; size += n) {
      pieces.push(buffer.slice(0, n));
    }
    const all = new Uint8Array(size);
    let at = 0;
    for (const piece of pieces) {
      all.set(piece, at);
      at += piece.length;
    }
    return all;
  }

  #sink(path: string): Sink | undefined {
    if (path === "stdout" || path === "") return undefined;
    if (path.startsWith("|")) {
      throw new CommandError("a result can't be piped to a command here");
    }
    if (path === "off") return { write() {}, close() {} };
    const file: OpenFile = this.#host.files.open(fullPath(path), {
      write: true,
      create: true,
      truncate: true,
    });
    let at = 0;
    return {
      write(text) {
        const bytes = encoder.encode(text);
        for (let done = 0; done < bytes.length;) {
          done += file.write(bytes.subarray(done), at + done);
        }
        at += bytes.length;
      },
      close: () => file.close(),
    };
  }

  /** The functions of the sqlite3 shell that are files' and patterns'. */
  #define(database: Database): void {
    const path = (value: Cell) =>
      String(value instanceof Shown ? value.text : value);
    database.define("readfile", 1, (name) => {
      try {
        return name === null ? null : this.#readFile(path(name));
      } catch (error) {
        // As the shell's: a file that is not there is NULL.
        if (error instanceof FileError && error.code === "ENOENT") return null;
        throw error;
      }
    }, { direct: true });
    database.define("writefile", 2, (name, data) => {
      if (name === null) return null;
      const bytes = data instanceof Uint8Array
        ? data
        : encoder.encode(data === null ? "" : path(data));
      this.#host.files.writeFile(fullPath(path(name)), bytes);
      return BigInt(bytes.length);
    }, { direct: true });
    const patterns = new Map<string, RegExp>();
    database.define("regexp", 2, (pattern, text) => {
      if (pattern === null || text === null) return null;
      const source = path(pattern);
      let compiled = patterns.get(source);
      if (!compiled) {
        if (patterns.size >= 100) patterns.clear();
        patterns.set(source, compiled = new RegExp(source, "u"));
      }
      return compiled.test(path(text)) ? 1n : 0n;
    }, { deterministic: true });
  }

  // Commands.

  #command(text: string): boolean {
    const words = splitWords(text.slice(1));
    const given = words.shift() ?? "";
    if (given === "read") {
      if (words.length !== 1) throw new CommandError("usage: .read FILE");
      return this.#script(this.#readText(words[0]!), words[0]!);
    }
    const name = given in this.#commands && Object.hasOwn(this.#commands, given)
      ? given
      : given.length > 0
      ? Object.keys(this.#commands).find((name) => name.startsWith(given))
      : undefined;
    if (name === undefined) {
      const refused = REFUSED[given];
      if (refused) throw new CommandError(`.${given}: ${refused}`);
      const near = nearestName(given, [...Object.keys(this.#commands), "read"]);
      throw new CommandError(
        `unknown command .${given}` +
          (near ? `, did you mean .${near}?` : '. Enter ".help" for help'),
      );
    }
    this.#commands[name]!(words, text);
    return false;
  }

  readonly #commands: Record<string, Command> = {
    backup: (words) => this.#save(words, "backup"),
    bail: (words) => this.#bail = onOff(words, "bail"),
    changes: (words) => this.#changes = onOff(words, "changes"),
    databases: () => {
      for (
        const [, name, file] of this.#database.rows("PRAGMA database_list")
      ) {
        this.#write(`${name}: ${file ? JSON.stringify(file) : '""'}\n`);
      }
    },
    dump: (words) => this.#dump(words),
    echo: (words) => this.#echo = onOff(words, "echo"),
    exit: ([code]) => {
      throw new Exit(code === undefined ? 0 : Number.parseInt(code) || 0);
    },
    headers: (words) => this.#style.headers = onOff(words, "headers"),
    help: () => this.#write(HELP),
    import: (words) => this.#import(words),
    indexes: ([like]) => {
      const names = this.#database.rows(
        `SELECT name FROM sqlite_schema WHERE type = 'index' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
         AND (?1 IS NULL OR tbl_name LIKE ?1) ORDER BY 1`,
        like ?? null,
      );
      this.#list(names.map(([name]) => String(name)));
    },
    mode: (words) => {
      const given = words.filter((word) => !word.startsWith("-"));
      if (given[0] === undefined) {
        this.#write(`current output mode: ${this.#style.mode}\n`);
        return;
      }
      const word = given[0] === "columns"
        ? "column"
        : given[0] === "lines"
        ? "line"
        : given[0];
      const mode = MODES.find((mode) => mode === word) ??
        MODES.find((mode) => mode.startsWith(word));
      if (!mode) {
        throw new CommandError(
          `.mode: no mode ${word}; there are ${MODES.join(", ")}`,
        );
      }
      this.#style = {
        ...this.#style,
        mode,
        separator: undefined,
        rowSeparator: undefined,
      };
      if (mode === "insert") {
        this.#style.table = given[1] === undefined
          ? "tab"
          : identifier(given[1]);
      }
    },
    nullvalue: ([text]) => {
      if (text === undefined) throw new CommandError("usage: .nullvalue TEXT");
      this.#style.nullText = text;
    },
    once: (words) => {
      const path = words.find((word) => !word.startsWith("-"));
      if (path === undefined) throw new CommandError("usage: .once FILE");
      this.#once?.close();
      this.#once = this.#sink(path);
    },
    open: (words) => {
      const readOnly = words.includes("--readonly") ||
        words.includes("-readonly");
      const path = words.find((word) => !word.startsWith("-"));
      this.open(path ?? ":memory:", readOnly);
    },
    output: (words) => {
      const sink = this.#sink(
        words.find((word) => !word.startsWith("-")) ?? "",
      );
      this.#output?.close();
      this.#output = sink;
    },
    parameter: (words) => this.#parameter(words),
    print: (words) => this.#write(words.join(" ") + "\n"),
    quit: () => {
      throw new Exit(0);
    },
    save: (words) => this.#save(words, "save"),
    schema: (words) => {
      const like = words.find((word) => !word.startsWith("-")) ?? null;
      const rows = this.#database.rows(
        `SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND (?1 IS NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
           OR tbl_name LIKE ?1 OR name LIKE ?1)
         UNION ALL
         SELECT sql FROM sqlite_temp_schema WHERE sql IS NOT NULL AND (?1 IS NULL OR tbl_name LIKE ?1)`,
        like,
      );
      for (const [sql] of rows) this.#write(`${sql};\n`);
    },
    separator: ([columns, rows]) => {
      if (columns === undefined) {
        throw new CommandError("usage: .separator COLUMN ?ROW?");
      }
      this.#style.separator = columns;
      this.#style.rowSeparator = rows;
    },
    show: () => {
      const { mode, headers, nullText, separator, widths } = this.#style;
      const onOff = (on: boolean) => on ? "on" : "off";
      this.#write(
        `        echo: ${onOff(this.#echo)}\n     headers: ${
          headers === undefined ? "auto" : onOff(headers)
        }\n        mode: ${mode}\n   nullvalue: ${
          JSON.stringify(nullText ?? "")
        }\nseparator: ${JSON.stringify(separator ?? "|")}\n       width: ${
          widths.join(" ")
        }\n    filename: ${this.#database.path}\n`,
      );
    },
    tables: ([like]) => {
      const names = this.#database.rows(
        `SELECT name FROM pragma_table_list WHERE type IN ('table', 'view', 'virtual')
           AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND (?1 IS NULL OR name LIKE ?1) ORDER BY 1`,
        like ?? null,
      );
      this.#list(names.map(([name]) => String(name)));
    },
    timer: (words) => this.#timer = onOff(words, "timer"),
    version: () => {
      const [[version, source]] = this.#database.rows(
        "SELECT sqlite_version(), sqlite_source_id()",
      ) as [[Cell, Cell]];
      this.#write(`SQLite ${version} ${source}\n`);
    },
    width: (words) =>
      this.#style.widths = words.map((word) => Number.parseInt(word) || 0),
  };

  /** Writes names in columns, down and then across. */
  #list(names: string[]): void {
    if (names.length === 0) return;
    const most = Math.max(...names.map((name) => name.length));
    const columns = Math.max(1, Math.floor(80 / (most + 2)));
    const rows = Math.ceil(names.length / columns);
    for (let row = 0; row < rows; row++) {
      const line = [];
      for (let i = row; i < names.length; i += rows) {
        line.push(names[i]!.padEnd(most));
      }
      this.#write(line.join("  ").trimEnd() + "\n");
    }
  }

  #parameter([verb, name, ...value]: string[]): void {
    switch (verb) {
      case "init":
        return;
      case "clear":
        return this.#parameters.clear();
      case "list":
        for (const [name, value] of this.#parameters) {
          this.#write(
            `${name} ${typeof value === "string" ? sqlText(value) : value}\n`,
          );
        }
        return;
      case "unset":
        this.#parameters.delete(name ?? "");
        return;
      case "set":
        if (name !== undefined && value.length > 0) {
          const text = value.join(" ");
          let cell: Cell;
          try {
            // An expression, or else a text.
            cell = this.#database.rows(`SELECT ${text}`)[0]![0]!;
          } catch {
            cell = text;
          }
          this.#parameters.set(name, cell);
          return;
        }
    }
    throw new CommandError(
      "usage: .parameter set NAME VALUE, list, unset NAME or clear",
    );
  }

  #save(words: string[], name: string): void {
    const path = words.filter((word) => !word.startsWith("-")).at(-1);
    if (path === undefined) throw new CommandError(`usage: .${name} FILE`);
    const full = fullPath(path);
    try {
      this.#host.files.unlink(full);
    } catch (error) {
      if (!(error instanceof FileError && error.code === "ENOENT")) throw error;
    }
    this.#database.rows("VACUUM INTO ?1", full);
  }

  /** Writes the SQL that makes the database again. */
  #dump(words: string[]): void {
    const likes = words.filter((word) => !word.startsWith("-"));
    const chosen = (name: string) =>
      likes.length === 0 ||
      this.#database.rows(
          `SELECT ${likes.map((_, i) => `?1 LIKE ?${i + 2}`).join(" OR ")}`,
          name,
          ...likes,
        )[0]![0] === 1;
    this.#write("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n");
    const objects = this.#database.rows(
      `SELECT s.name, s.type, s.sql, s.tbl_name, l.type FROM sqlite_schema s
       LEFT JOIN pragma_table_list l ON l.name = s.name AND l.schema = 'main'
       WHERE s.sql IS NOT NULL ORDER BY s.type = 'table' DESC, s.rowid`,
    );
    for (const [name, type, sql, table, kind] of objects) {
      if (!chosen(String(table)) || kind === "shadow") continue;
      if (type === "table" && kind === "virtual") {
        this.#write(`${sql};\n`);
        continue;
      }
      if (type === "table" && String(name).startsWith("sqlite_")) {
        if (name === "sqlite_sequence") {
          this.#write("DELETE FROM sqlite_sequence;\n");
        } else continue;
      } else this.#write(`${sql};\n`);
      if (type !== "table") continue;
      const columns = this.#database.rows(
        "SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0",
        name!,
      ).map(([column]) => sqlName(String(column)));
      const statement = this.#database.prepare(
        `SELECT ${columns.join(",")} FROM ${sqlName(String(name))}`,
      );
      try {
        const output = new Output(columns, {
          mode: "insert",
          widths: [],
          table: identifier(String(name)),
        }, (text) => this.#write(text));
        while (statement.step()) output.row(statement.row());
        output.end();
      } finally {
        statement.finalize();
      }
    }
    this.#write("COMMIT;\n");
    this.#once?.close();
    this.#once = undefined;
  }

  #import(words: string[]): void {
    const usage =
      "usage: .import [--csv | --tsv | --json] [--skip N] FILE TABLE";
    let format: string | undefined, skip = 0;
    const given: string[] = [];
    for (let i = 0; i < words.length; i++) {
      const option = words[i]!.replace(/^--?/, "");
      if (words[i] === option || words[i] === "-") given.push(words[i]!);
      else if (option === "skip") skip = Number.parseInt(words[++i] ?? "");
      else if (["csv", "tsv", "json", "ascii"].includes(option)) {
        format = option;
      } else if (option !== "v") {
        throw new CommandError(`.import: unknown option ${words[i]}; ${usage}`);
      }
    }
    const [path, table] = given;
    if (given.length !== 2 || Number.isNaN(skip)) throw new CommandError(usage);
    const { mode, separator } = this.#style;
    format ??=
      /\.(csv|tsv|json|jsonl|ndjson)$/i.exec(path!)?.[1]?.toLowerCase() ??
        (mode === "csv" || mode === "json"
          ? mode
          : mode === "tabs"
          ? "tsv"
          : undefined);
    const text = this.#readText(path!);
    let rows: Iterable<{ cells: Cell[]; line: number }>;
    let columns: string[] = [];
    const there = this.#database.rows(
      "SELECT name FROM pragma_table_info(?1)",
      table!,
    )
      .map(([name]) => String(name));
    if (format?.endsWith("json") || format === "jsonl") {
      const data = readJSON(text);
      columns = data.columns;
      rows = data.rows.slice(skip).map((cells, i) => ({
        cells,
        line: skip + i + 1,
      }));
    } else {
      const [between, end] = format === "ascii" ? ["\x1f", "\x1e"] : [
        format === "tsv" ? "\t" : separator ?? (format === "csv" ? "," : "|"),
        "\n",
      ];
      const all = readCSV(text, between, end);
      for (let i = 0; i < skip; i++) all.next();
      const first = all.next();
      if (first.done) {
        if (there.length > 0) return;
        throw new CommandError(`${path}: the file is empty`);
      }
      const { fields } = first.value;
      const isHead = fields.length === there.length &&
        fields.every((field, i) =>
          field.toLowerCase() === there[i]!.toLowerCase()
        );
      if (there.length === 0) columns = fields;
      rows = function* () {
        if (there.length > 0 && !isHead) {
          yield { cells: fields, line: first.value.line };
        }
        for (const { fields, line } of all) yield { cells: fields, line };
      }();
    }
    this.#insert(path!, table!, columns, there, rows);
  }

  #insert(
    path: string,
    table: string,
    columns: string[],
    there: string[],
    rows: Iterable<{ cells: Cell[]; line: number }>,
  ): void {
    const database = this.#database;
    const alone = database.autocommit;
    if (alone) database.rows("SAVEPOINT import_rows");
    let done = false;
    try {
      if (there.length === 0) {
        if (columns.length === 0) throw new CommandError(`${path}: no columns`);
        const names = uniqueColumns(columns);
        database.rows(
          `CREATE TABLE ${sqlName(table)}(${
            names.map((name) => `${sqlName(name)} ANY`).join(", ")
          })`,
        );
        columns = names;
      }
      // JSON names its columns; CSV has those of the table.
      const named = columns.length > 0;
      const count = named ? columns.length : there.length;
      const statement = database.prepare(
        `INSERT INTO ${sqlName(table)}${
          named ? `(${columns.map(sqlName).join(",")})` : ""
        } VALUES(${Array(count).fill("?").join(",")})`,
      );
      try {
        for (const { cells, line } of rows) {
          if (cells.length !== count) {
            const rest = cells.length < count
              ? "filling the rest with NULL"
              : "extras ignored";
            this.#host.stderr(encoder.encode(
              `${path}:${line}: expected ${count} columns but found ${cells.length} - ${rest}\n`,
            ));
          }
          for (let i = 0; i < count; i++) {
            statement.bind(i + 1, cells[i] ?? null);
          }
          try {
            statement.step();
          } catch (error) {
            if (!(error instanceof SQLError)) throw error;
            throw new CommandError(
              `${path}:${line}: INSERT failed: ${error.message}`,
            );
          }
          statement.reset();
        }
      } finally {
        statement.finalize();
      }
      done = true;
    } finally {
      if (alone) database.rows(done ? "RELEASE import_rows" : "ROLLBACK");
    }
  }
}

/** An error of a statement that ran. */
class RunError extends SQLError {}

const REFUSED: Record<string, string> = {
  load: "extensions can't be loaded here",
  shell: "commands of the system can't be run here",
  system: "commands of the system can't be run here",
  cd: `the directory is always ${WORKSPACE}`,
  excel: "there is no program to show it in; use .once FILE",
};

const HELP = `.backup FILE             Write a copy of the database
.bail on|off             Stop at the first error (on)
.changes on|off          Show how many rows each statement changed
.databases               List the databases
.dump ?TABLE?            Write the database as SQL
.echo on|off             Write each statement before its result
.exit ?CODE?             End the program
.headers on|off          Names of columns
.import FILE TABLE       Read CSV, TSV or JSON; --csv --tsv --json --skip N
.indexes ?TABLE?         List the indexes
.mode MODE               ${
  MODES.join(", ").replace(/(.{40}\S*) /, "$1\n                         ")
}
.nullvalue TEXT          What is written for NULL
.once FILE               Write the next result to a file
.open ?FILE?             Open a database; with no file, one in memory
.output ?FILE?           Write all results to a file, or to stdout again
.parameter set NAME VAL  Parameters; also list, unset, clear
.print TEXT              Write a text
.quit                    End the program
.read FILE               Run a file of SQL
.save FILE               Write a copy of the database
.schema ?TABLE?          Show the statements that made it
.separator COL ?ROW?     What stands between columns, and after rows
.show                    Show the settings
.tables ?LIKE?           List the tables
.timer on|off            Show how long each statement takes
.version                 Show SQLite's version
.width N ...             The least widths of columns
`;

function onOff([word]: string[], name: string): boolean {
  if (word !== undefined) {
    if (/^(on|yes|true|1)$/i.test(word)) return true;
    if (/^(off|no|false|0)$/i.test(word)) return false;
  }
  throw new CommandError(`usage: .${name} on|off`);
}

/** A name, in quotes where SQL needs them. */
function identifier(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? name : sqlName(name);
}

/** Names of columns of which no two are the same, whatever their letters' case. */
function uniqueColumns(names: string[]): string[] {
  const seen = new Set<string>();
  return names.map((name, i) => {
    const base = name.trim() || `column${i + 1}`;
    let given = base;
    for (let n = 2; seen.has(given.toLowerCase()); n++) given = `${base}_${n}`;
    seen.add(given.toLowerCase());
    return given;
  });
}

/** The place after space, comments and lone semicolons. */
function skipSpace(bytes: Uint8Array, at: number, end: number): number {
  for (; at < end;) {
    const byte = bytes[at]!;
    if (byte === 32 || byte >= 9 && byte <= 13 || byte === 0x3b) at++;
    else if (
      byte === 0x2d && bytes[at + 1] === 0x2d ||
      byte === 0x23 && bytes[at + 1] === 0x21
    ) {
      const stop = bytes.indexOf(10, at);
      at = stop < 0 ? end : stop;
    } else if (byte === 0x2f && bytes[at + 1] === 0x2a) {
      for (
        at += 2;
        at < end && !(bytes[at] === 0x2a && bytes[at + 1] === 0x2f);
      ) at++;
      at += 2;
    } else break;
  }
  return Math.min(at, end);
}

function atLineStart(bytes: Uint8Array, at: number, from: number): boolean {
  for (at--; at >= from && (bytes[at] === 32 || bytes[at] === 9);) at--;
  return at < from || bytes[at] === 10 || bytes[at] === 13 ||
    bytes[at] === 0x3b || bytes[at] === 0x2f;
}

/** The statement that a text begins with. */
function wholeStatement(
  text: string,
  complete: (text: string) => boolean,
): string {
  for (
    let end = text.indexOf(";");
    end >= 0;
    end = text.indexOf(";", end + 1)
  ) {
    if (complete(text.slice(0, end + 1))) return text.slice(0, end + 1);
  }
  return text;
}

/** Two lines that show a place of a text. */
function pointAt(source: string, offset: number): string {
  const before = new TextDecoder().decode(
    encoder.encode(source.slice(0, offset + 1)).subarray(0, offset),
  );
  const start = before.lastIndexOf("\n") + 1;
  const stop = source.indexOf("\n", before.length);
  let line = source.slice(start, stop < 0 ? undefined : stop).trimEnd();
  let column = before.length - start;
  if (column > 50) {
    line = "…" + line.slice(column - 49);
    column = 50;
  }
  if (line.length > 78) line = line.slice(0, 77) + "…";
  const text = line.replaceAll("\t", " ");
  return column < 20
    ? `\n  ${text}\n  ${" ".repeat(column)}^--- error here`
    : `\n  ${text}\n  ${" ".repeat(column - 14)}error here ---^`;
}
