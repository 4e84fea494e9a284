/**
 * SQL, by SQLite: statements, and the commands of the sqlite3 shell. Each result set is
 * printed when its statement ran (../table.ts says how); the last one is the program's
 * value, and is shown as a table in HTML.
 *
 * The database is `/workspace/main.db`, made when something is first written to it; the
 * first argument names another, if it ends in .db, .db3, .sqlite, .sqlite3 or is
 * :memory:, and so does `.open FILE`. Other arguments are parameters: `name=value` is
 * :name, @name and $name, what has no name is ?1, ?2 in order. A value that is written as
 * a number is one.
 *
 * A session keeps the database open, with its temporary tables, transaction and settings.
 *
 * @module
 */

import type { Host, Language, Program, Start } from "../language.ts";
import { serve } from "../serve.ts";
import { Engine } from "../sqlite/engine.ts";
import { Shell } from "../sqlite/shell.ts";
import { VFS } from "../sqlite/vfs.ts";
import type { Cell } from "../table.ts";

const PACKAGE = "@sqlite.org/sqlite-wasm";
const DATABASE = "/workspace/main.db";

let engine: Engine;
let vfs: VFS;
let shell: Shell;
let start: Start;
let keywords: string[];

const sqlite: Language = {
  prepare(given) {
    start = given;
    const bytes = Deno.readFileSync(
      `${start.parts[PACKAGE]}/dist/sqlite3.wasm`,
    );
    engine = new Engine(new WebAssembly.Module(bytes));
    if (engine.call.sqlite3_initialize!() !== 0) {
      throw new Error("SQLite does not start");
    }
    vfs = new VFS(engine, "workspace");
    shell = new Shell(engine, vfs, start.readOnly);
  },

  run(program: Program, host: Host): number {
    vfs.files = host.files;
    // A transaction goes on with what it has read.
    if (!shell.busy) vfs.forget();
    const args = [...program.args];
    let open = shell.opened ? undefined : DATABASE;
    if (
      args[0] !== undefined &&
      /(^:memory:|\.(db3?|sqlite3?|s3db))$/i.test(args[0]) &&
      !args[0].includes("=")
    ) {
      open = args.shift()!;
    } else if (open && start.readOnly && !exists(host, DATABASE)) {
      open = ":memory:";
    }
    const named = new Map<string, Cell>();
    const positional: Cell[] = [];
    for (const arg of args) {
      const [, name, value] = /^[:@$]?([A-Za-z_]\w*)=(.*)$/s.exec(arg) ?? [];
      if (name === undefined) positional.push(cellOf(arg));
      else named.set(name, cellOf(value!));
    }
    const code = shell.run(program.code, host, open, named, positional);
    if (!start.session) shell.close();
    return code;
  },

  complete(text) {
    const word = /[.\w]*$/.exec(text)![0];
    if (word.startsWith(".")) {
      return shell.commands.filter((name) => name.startsWith(word));
    }
    if (!shell.opened) shell.open(":memory:");
    keywords ??= allKeywords();
    const table = word.includes(".") ? word.split(".").at(-2) : undefined;
    const lower = word.toLowerCase();
    const tail = word.slice(word.lastIndexOf(".") + 1).toLowerCase();
    const names = shell.names(table).filter((name) =>
      name.toLowerCase().startsWith(tail)
    )
      .map((name) => word.slice(0, word.length - tail.length) + name);
    const words = word.includes(".")
      ? []
      : keywords.filter((name) => name.startsWith(lower))
        .map((name) => /[A-Z]/.test(word) ? name.toUpperCase() : name);
    return [...new Set([...names, ...words])].sort();
  },

  unfinished: (text) => !shell.complete(text),
};

function allKeywords(): string[] {
  const out = engine.malloc(8);
  const count: number = engine.call.sqlite3_keyword_count!();
  const words = Array.from({ length: count }, (_, i) => {
    engine.call.sqlite3_keyword_name!(i, out, out + 4);
    return engine.textOf(
      engine.view.getUint32(out, true),
      engine.view.getInt32(out + 4, true),
    ).toLowerCase();
  });
  engine.call.free!(out);
  return words;
}

function exists(host: Host, path: string): boolean {
  try {
    host.files.stat(path);
    return true;
  } catch {
    return false;
  }
}

/** An argument's value. */
function cellOf(text: string): Cell {
  if (/^[+-]?\d{1,18}$/.test(text) && !/^[+-]?0\d/.test(text)) {
    return BigInt(text);
  }
  if (/^[+-]?(\d+\.\d*|\.\d+|\d+(?=e))(e[+-]?\d+)?$/i.test(text)) {
    return Number(text);
  }
  return text;
}

await serve(sqlite);
