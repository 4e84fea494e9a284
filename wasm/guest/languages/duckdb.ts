/**
 * SQL, by DuckDB: it reads and writes CSV files of the workspace by their paths
 * (`FROM 'sales.csv'`, `COPY t TO 'out.csv'`). Each result set is printed when its
 * statement ran (../table.ts says how); the last one is the program's value, and is shown
 * as a table in HTML. What DuckDB has in extensions (Parquet, JSON's functions, time
 * zones) is not there: they would be downloaded. `.import FILE TABLE` reads JSON.
 *
 * The database is in memory, unless the first argument names a file that ends in .duckdb,
 * .ddb or .db; ATTACH opens others. Other arguments are DuckDB's variables: `name=value`
 * is getvariable('name'), what has no name is getvariable('arg1') and so on.
 *
 * @module
 */

import { type ArrowType, cellOf } from "../duckdb/cells.ts";
import { type Helpers, makeRuntime } from "../duckdb/runtime.ts";
import type { Host, Language, Program, Start } from "../language.ts";
import { fullPath } from "../path.ts";
import { type Dialect, type Result, Script, ScriptError } from "../script.ts";
import { serve } from "../serve.ts";
import { readJSON } from "../sqlite/import.ts";
import { unfinished } from "../statements.ts";
import { type Cell, distinct, sqlName, sqlText } from "../table.ts";

const PACKAGE = "@duckdb/duckdb-wasm", ARROW = "apache-arrow";

interface Column {
  get(row: number): unknown;
  data: { values: ArrayBufferView; offset: number }[];
}
interface Batch {
  numRows: number;
  getChildAt(column: number): Column | null;
}
interface Schema {
  fields: { name: string; type: ArrowType }[];
}
interface Table extends Iterable<Record<string, unknown>> {
  schema: Schema;
  batches: Batch[];
  numRows: number;
}
interface Reader extends Iterable<Batch> {
  schema: Schema;
}
interface Connection {
  query(sql: string): Table;
  send(sql: string, stream: boolean): Promise<Reader>;
}
interface Bindings {
  instantiateWasm: unknown;
  instantiate(progress: () => void): Promise<unknown>;
  open(config: unknown): void;
  connect(): Connection;
}
interface Package extends Helpers {
  VoidLogger: new () => unknown;
  createDuckDB(
    bundles: unknown,
    logger: unknown,
    runtime: unknown,
  ): Promise<Bindings>;
}

const HAS_ENUMS =
  "SELECT 1 FROM duckdb_types() WHERE logical_type = 'ENUM' AND NOT internal LIMIT 1";

let bindings: Bindings;
let connection: Connection | undefined;
/** The database that is open. */
let opened: string | undefined;

const dialect: Dialect = {
  prefix: ".",
  async query(sql) {
    const first = /^\(*\s*(\w*)/.exec(sql)![1]!.toLowerCase();
    if (first === "install" || first === "load") {
      throw new ScriptError(
        "DuckDB's extensions can't be fetched or loaded here",
      );
    }
    // Its end is told by what comes, but only a query's is for people.
    const shown =
      !/^(create|insert|update|delete|drop|alter|copy|attach|detach|use|set|reset|begin|start|commit|rollback|abort|checkpoint|export|import|vacuum|analyze|truncate|comment|prepare|deallocate|merge)$/
        .test(first);
    if (first === "explain") {
      const plans = [...connection!.query(sql)].map((row) =>
        `${row.explain_value}`.trimEnd()
      );
      script.write(plans.join("\n") + "\n");
      return [];
    }
    if (!shown || hasEnum(sql)) {
      const table = connection!.query(sql);
      return results(table.schema, table.batches[Symbol.iterator](), shown);
    }
    const reader = await connection!.send(sql, true);
    const batches = reader[Symbol.iterator]();
    // The schema comes with the first of them.
    const head = batches.next();
    return results(reader.schema, continued(head, batches), shown);
  },
  told(error, piece, file) {
    // DuckDB's errors are plain ones: "Catalog Error: Table with name x does not exist!".
    if (!(error instanceof Error) || error.constructor !== Error) {
      return undefined;
    }
    let { message: said } = error;
    if (said.startsWith('{"exception_type"')) {
      const { exception_type: type, exception_message: text } = JSON.parse(
        said,
      );
      said = `${type} Error: ${text}`;
    }
    const [, kind = "Error", rest = ""] =
      /^([A-Z][\w ]*? Error): ([^]*)$/.exec(said) ??
        [, "Error", said];
    const where = `near line ${piece.line}${file && ` of ${file}`}`;
    let message = rest.trimEnd().replace(
      /^LINE (\d+):(.*\n)( *)\^/m,
      (_, line, source, spaces) => {
        const now = `LINE ${Number(line) + piece.line - 1}:`;
        const more = now.length - `LINE ${line}:`.length;
        return `${now}${source}${" ".repeat(spaces.length + more)}^`;
      },
    );
    if (/\bextension\b/.test(message)) {
      message = message.replace(/\n\nPlease try[^]*|\n\nTry[^]*/, "") +
        "\nDuckDB's extensions can't be fetched or loaded here: CSV files can be read, and .import reads JSON.";
    }
    const firstLine = message.split("\n")[0]!;
    return {
      name: kind.replaceAll(" ", ""),
      message: `${where}: ${firstLine}`,
      text: `${kind} ${where}: ${message}`,
    };
  },
  commands: {
    tables: () => ({ sql: "SHOW TABLES" }),
    databases: () => ({ sql: "SHOW DATABASES" }),
    schema: ([table]) => ({
      text: [
        ...connection!.query(
          `SELECT sql FROM duckdb_tables() WHERE NOT internal ${
            name("table_name", table)
          }
           UNION ALL SELECT sql FROM duckdb_views() WHERE NOT internal ${
            name("view_name", table)
          }
           UNION ALL SELECT sql FROM duckdb_indexes() ${
            table ? "WHERE table_name = " + sqlText(table) : ""
          }`,
        ),
      ].map((row) => `${row.sql}\n`).join(""),
    }),
    import(words) {
      const [path, table] = words.filter((word) => !word.startsWith("-"));
      if (path === undefined || table === undefined) {
        throw new ScriptError("usage: .import FILE TABLE");
      }
      const there = [
        ...connection!.query(
          `SELECT 1 FROM duckdb_tables() WHERE table_name = ${sqlText(table)}`,
        ),
      ].length > 0;
      if (/\.(json|jsonl|ndjson)$/i.test(path)) {
        return importJSON(path, table, there);
      }
      let source = sqlText(fullPath(path));
      if (/^(-|\/dev\/stdin)$/.test(path)) {
        const copy = "/tmp/stdin.csv";
        script.host.files.writeFile(copy, script.read(path));
        source = sqlText(copy);
      }
      connection!.query(
        `${
          there
            ? `INSERT INTO ${sqlName(table)}`
            : `CREATE TABLE ${sqlName(table)} AS`
        }
         SELECT * FROM read_csv_auto(${source})`,
      );
    },
  },
};

const script = new Script(dialect);

function name(column: string, table: string | undefined): string {
  return table === undefined ? "" : `AND ${column} = ${sqlText(table)}`;
}

/** Whether a query gives values of an ENUM, which the package loses when it streams. */
function hasEnum(sql: string): boolean {
  if (connection!.query(HAS_ENUMS).numRows === 0 && !/\benum\b/i.test(sql)) {
    return false;
  }
  try {
    return [...connection!.query(`DESCRIBE ${sql}`)]
      .some(({ column_type: type }) => String(type).includes("ENUM("));
  } catch {
    return false; // It is told when it runs.
  }
}

function* continued<T>(
  first: IteratorResult<T>,
  rest: Iterator<T>,
): Generator<T> {
  for (let next = first; !next.done; next = rest.next()) yield next.value;
}

function* results(
  { fields }: Schema,
  batches: Iterator<Batch>,
  shown: boolean,
): Generator<Result> {
  const result = fields.length === 1 &&
    /^(Count|Success)$/.test(fields[0]!.name);
  yield {
    columns: shown || !result ? fields.map(({ name }) => name) : [],
    rows: rows(batches, fields.map(({ type }) => type)),
  };
}

function* rows(
  batches: Iterator<Batch>,
  types: ArrowType[],
): Generator<Cell[][]> {
  for (let next = batches.next(); !next.done; next = batches.next()) {
    const batch = next.value;
    const columns = types.map((type, i) => ({
      type,
      column: batch.getChildAt(i)!,
    }));
    const some: Cell[][] = [];
    for (let row = 0; row < batch.numRows; row++) {
      some.push(columns.map(({ type, column }) => {
        let value = column.get(row);
        // The package reads only the first half of an interval.
        if (type.typeId === 11 && value !== null) {
          value = intervalAt(column, row);
        }
        return cellOf(type, value);
      }));
    }
    yield some;
  }
}

function intervalAt(column: Column, row: number): DataView {
  const { values, offset } = column.data[0]!;
  return new DataView(
    values.buffer,
    values.byteOffset + (offset + row) * 16,
    16,
  );
}

function importJSON(path: string, table: string, there: boolean): void {
  const { columns, rows } = readJSON(
    new TextDecoder().decode(script.read(path)),
  );
  const names = distinct(columns);
  if (!there) {
    const types = names.map((_, i) => typeOf(rows.map((row) => row[i]!)));
    connection!.query(
      `CREATE TABLE ${sqlName(table)}(${
        names.map((name, i) => `${sqlName(name)} ${types[i]}`).join(", ")
      })`,
    );
  }
  for (let at = 0; at < rows.length; at += 500) {
    const values = rows.slice(at, at + 500).map((row) =>
      `(${
        row.map((cell) =>
          cell === null
            ? "NULL"
            : typeof cell === "string"
            ? sqlText(cell)
            : String(cell)
        ).join(",")
      })`
    );
    connection!.query(
      `INSERT INTO ${sqlName(table)}(${names.map(sqlName).join(",")}) VALUES ${
        values.join(",")
      }`,
    );
  }
}

function typeOf(cells: Cell[]): string {
  const given = cells.filter((cell) => cell !== null);
  if (given.length === 0) return "VARCHAR";
  if (given.every((cell) => typeof cell === "boolean")) return "BOOLEAN";
  if (given.every((cell) => Number.isSafeInteger(cell))) return "BIGINT";
  return given.every((cell) => typeof cell === "number") ? "DOUBLE" : "VARCHAR";
}

/** Loads the package, whose two scripts are given what they would import. */
async function load(start: Start): Promise<void> {
  const directory = `${start.parts[PACKAGE]}/dist`;
  // It would take what it finds for Node.
  Object.defineProperty(globalThis, "process", {
    value: undefined,
    configurable: true,
  });
  const arrow = {};
  const run = (text: string, names: string[], ...values: unknown[]) =>
    new Function(...names, text).apply(globalThis, values);
  run(
    Deno.readTextFileSync(`${start.parts[ARROW]}/Arrow.es2015.min.js`),
    ["exports", "module"],
    arrow,
    { exports: arrow },
  );
  const text = Deno.readTextFileSync(`${directory}/duckdb-browser-blocking.mjs`)
    .replace(/import\*as (\w+) from"apache-arrow";/g, "var $1=arrow;")
    .replaceAll("import.meta.url", '""')
    .replace(
      /export\{([^}]*)\};/,
      (_, names: string) =>
        `return {${
          names.split(",").map((name) => {
            const [inside, outside = inside] = name.trim().split(" as ");
            return `${outside}:${inside}`;
          }).join(",")
        }};`,
    );
  // It prints what it throws as well.
  const silent = { log() {}, warn() {}, error() {}, assert() {} };
  const duckdb = run(text, ["arrow", "console"], arrow, silent) as Package;
  const runtime = makeRuntime(duckdb, () => script.host.files);
  const bundle = { mainModule: "duckdb-eh.wasm", mainWorker: "" };
  bindings = await duckdb.createDuckDB(
    { mvp: bundle, eh: bundle },
    new duckdb.VoidLogger(),
    runtime,
  );
  bindings.instantiateWasm = (
    imports: WebAssembly.Imports,
    done: (instance: WebAssembly.Instance, module: WebAssembly.Module) => void,
  ) => {
    (globalThis as Record<string, unknown>).DUCKDB_RUNTIME = runtime;
    const module = new WebAssembly.Module(
      Deno.readFileSync(`${directory}/duckdb-eh.wasm`),
    );
    const instance = new WebAssembly.Instance(module, imports);
    queueMicrotask(() => done(instance, module));
    return [];
  };
  await bindings.instantiate(() => {});
}

const duckdb: Language = {
  prepare: load,

  run(program: Program, host: Host) {
    script.host = host;
    const args = [...program.args];
    const named =
      args[0] !== undefined && /^[^=]*\.(duckdb|ddb|db)$/i.test(args[0])
        ? fullPath(args.shift()!)
        : undefined;
    if (!connection || named !== undefined && named !== opened) {
      opened = named ?? ":memory:";
      try {
        bindings.open({ path: opened, accessMode: 3 });
      } catch (error) {
        const message = (error as Error).message;
        host.fail({ name: "IOError", message, traceback: message });
        return 1;
      }
      connection = bindings.connect();
      connection.query("SET autoinstall_known_extensions = false");
      connection.query("SET autoload_known_extensions = false");
    }
    let place = 0;
    for (const arg of args) {
      const [, name = `arg${++place}`, value = arg] =
        /^([A-Za-z_]\w*)=(.*)$/s.exec(arg) ?? [];
      const number = /^[+-]?(0|[1-9]\d{0,17})(\.\d+)?$/.test(value);
      connection!.query(
        `SET VARIABLE ${sqlName(name)} = ${number ? value : sqlText(value)}`,
      );
    }
    return script.run(program.code, host);
  },

  complete(text) {
    const word = /[.\w]*$/.exec(text)![0];
    if (word.startsWith(".")) {
      return script.commands.filter((name) => name.startsWith(word));
    }
    if (!connection) return [];
    const tail = sqlText(word.slice(word.lastIndexOf(".") + 1));
    const rows = connection.query(
      `SELECT DISTINCT n FROM (SELECT keyword_name AS n FROM duckdb_keywords()
         UNION ALL SELECT table_name FROM duckdb_tables() UNION ALL SELECT column_name FROM duckdb_columns() WHERE NOT internal
         UNION ALL SELECT function_name FROM duckdb_functions())
       WHERE starts_with(lower(n), lower(${tail})) ORDER BY n LIMIT 500`,
    );
    return [...rows].map(({ n }) =>
      word.slice(0, word.lastIndexOf(".") + 1) + n
    );
  },

  unfinished: (text) => unfinished(text, "."),
};

await serve(duckdb);
