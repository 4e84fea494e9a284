/**
 * Runs a part of SQLite's own tests on SQLite as it is here: of its test files, which are
 * Tcl, the tests whose SQL and results are written out. What takes Tcl to know (a variable,
 * a loop, a function of the test's) is left out and not counted; a file's tests share one
 * database, as theirs do.
 *
 *     sqltests.ts SQLITE3.WASM DIRECTORY-OF-TESTS FILE...
 *
 * @module
 */

import { FileError, type Files } from "../wasm/guest/files.ts";
import { Database, SQLError } from "../wasm/guest/sqlite/database.ts";
import { Engine } from "../wasm/guest/sqlite/engine.ts";
import { VFS } from "../wasm/guest/sqlite/vfs.ts";
import { type Cell, Shown } from "../wasm/guest/table.ts";

const [wasm, directory, ...names] = Deno.args;
const verbose = Deno.env.has("VERBOSE");
const engine = new Engine(new WebAssembly.Module(Deno.readFileSync(wasm!)));
const gone = () => {
  throw new FileError("ENOENT");
};
new VFS(engine, "none").files = {
  open: gone,
  stat: gone,
  unlink: gone,
} as unknown as Files;
engine.call.sqlite3_initialize!();

let passed = 0, ran = 0;
for (const name of names) {
  const [good, all] = runFile(
    Deno.readTextFileSync(`${directory}/${name}.test`),
    name,
  );
  console.log(`${name}: ${good} of ${all}`);
  passed += good;
  ran += all;
}
console.log(`SQLite's tests: ${passed} of ${ran}`);
Deno.exit(ran > 0 && passed >= 0.95 * ran ? 0 : 1);

function runFile(text: string, file: string): [good: number, all: number] {
  let database = new Database(engine, ":memory:");
  let good = 0, all = 0;
  for (const words of commands(text)) {
    const [command, test, sql, expected] = words;
    if (command === "reset_db") {
      database.close();
      database = new Database(engine, ":memory:");
    } else if (command === "execsql" && test !== undefined) {
      attempt(database, test);
    } else if (command === "do_test" && sql !== undefined) {
      // A test in Tcl, of which the SQL at least is what later tests need.
      const [, only] = /^\s*execsql\s*\{([^]*)\}\s*$/.exec(sql) ?? [];
      if (only !== undefined && !/[$[]/.test(only)) attempt(database, only);
    } else if (command === "do_execsql_test" && sql !== undefined) {
      if (/[$]\w/.test(sql) || /^\s*\/|^\s*~/.test(expected ?? "")) continue;
      const got = attempt(database, sql);
      all++;
      if (same(got, list(expected ?? ""))) good++;
      else if (verbose) {
        console.log(`  ${file} ${test}: ${Deno.inspect(got)} not ${expected}`);
      }
    } else if (command === "do_catchsql_test" && sql !== undefined) {
      if (/[$]\w/.test(sql)) continue;
      const [fails, result] = list(expected ?? "");
      const got = attempt(database, sql);
      all++;
      const right = fails === "1"
        ? got === result
        : same(got, list(result ?? ""));
      if (right) good++;
      else if (verbose) {
        console.log(`  ${file} ${test}: ${Deno.inspect(got)} not ${expected}`);
      }
    }
  }
  database.close();
  return [good, all];
}

/** The values of all rows, or the error's message. */
function attempt(database: Database, sql: string): string[] | string {
  const values: string[] = [];
  const start = engine.putText(sql);
  const end = start + new TextEncoder().encode(sql).length;
  try {
    for (let at = start; at < end;) {
      const { statement, next } = database.prepareAt(at);
      at = next;
      if (!statement) continue;
      try {
        while (statement.step()) values.push(...statement.row().map(text));
      } finally {
        statement.finalize();
      }
    }
    return values;
  } catch (error) {
    if (error instanceof SQLError) return error.message;
    throw error;
  } finally {
    engine.call.free!(start);
  }
}

function text(cell: Cell): string {
  if (cell === null) return "";
  if (cell instanceof Shown) return cell.text;
  return cell instanceof Uint8Array
    ? new TextDecoder().decode(cell)
    : String(cell);
}

function same(got: string[] | string, expected: string[]): boolean {
  return Array.isArray(got) && got.length === expected.length &&
    got.every((value, i) =>
      value === expected[i] || value.trim() === expected[i]!.trim() ||
      // What Tcl prints of a number may have other digits at its end.
      /^-?\d/.test(value) &&
        Math.abs(Number(value) - Number(expected[i])) <=
          1e-12 * Math.abs(Number(value))
    );
}

/** The commands of a script at its outermost level whose words are in braces or bare. */
function* commands(script: string): Generator<string[]> {
  let words: string[] = [];
  let simple = true;
  for (let at = 0; at <= script.length;) {
    const char = script[at];
    if (char === undefined || char === "\n" || char === ";") {
      if (words.length > 0 && simple) yield words;
      [words, simple] = [[], true];
      at++;
    } else if (char === "\\" && script[at + 1] === "\n") at += 2;
    else if (/\s/.test(char)) at++;
    else if (char === "#" && words.length === 0) {
      const end = script.indexOf("\n", at);
      at = end < 0 ? script.length : end;
    } else if (char === "{") {
      const end = braceEnd(script, at);
      words.push(script.slice(at + 1, end - 1));
      at = end;
    } else if (char === '"') {
      simple = false;
      for (at++; at < script.length && script[at] !== '"'; at++) {
        if (script[at] === "\\") at++;
      }
      at++;
    } else {
      const [word] = /^[^\s;]+/.exec(script.slice(at, at + 500))!;
      // The name of a test may have variables; what it says may not.
      if (/[$[]/.test(word) && words.length !== 1) simple = false;
      words.push(word);
      at += word.length;
    }
  }
}

function braceEnd(text: string, at: number): number {
  let depth = 0;
  for (; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === "{") depth++;
    else if (text[at] === "}" && --depth === 0) return at + 1;
  }
  return at;
}

/** The items of a list of Tcl's. */
function list(text: string): string[] {
  const items: string[] = [];
  for (let at = 0; at < text.length;) {
    if (/\s/.test(text[at]!)) at++;
    else if (text[at] === "{") {
      const end = braceEnd(text, at);
      items.push(text.slice(at + 1, end - 1));
      at = end;
    } else if (text[at] === '"') {
      const [whole, inside] = /^"((?:\\[^]|[^"\\])*)"?/.exec(text.slice(at))!;
      items.push(unescape(inside!));
      at += whole.length;
    } else {
      const [word] = /^(?:\\[^]|\S)+/.exec(text.slice(at))!;
      items.push(unescape(word));
      at += word.length;
    }
  }
  return items;
}

function unescape(text: string): string {
  return text.replace(
    /\\([^])/g,
    (_, char: string) =>
      ({ n: "\n", t: "\t", r: "\r" } as Record<string, string>)[char] ?? char,
  );
}
