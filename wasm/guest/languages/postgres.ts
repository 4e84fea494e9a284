/**
 * SQL, by PostgreSQL (PGlite: the server in this process, one connection), with some of
 * psql's commands: `\dt`, `\d TABLE`, `\copy`, `\i FILE`. Each result set is printed when
 * its statement ran (../table.ts says how); the last one is the program's value, and is
 * shown as a table in HTML. Notices are on stderr, and errors have their SQLSTATE.
 *
 * The database is in memory: it lives as long as its program or session. Data goes in and
 * out by `\copy`. Arguments are psql's variables: `name=value` is :name, :'name' as a text
 * and :"name" as a name; what has no name is :1, :2 in order.
 *
 * @module
 */

import type { Host, Language, Program, Start } from "../language.ts";
import { fullPath } from "../path.ts";
import { type Dialect, type Result, Script, ScriptError } from "../script.ts";
import { serve } from "../serve.ts";
import { unfinished } from "../statements.ts";
import { type Cell, Shown, sqlText } from "../table.ts";

/** As much as V8 has room for when its own stack is 4 MB; then PostgreSQL tells of it. */
const STACK = "1MB";
const PACKAGE = "@electric-sql/pglite";
/** The numbers of types whose values are not texts in JSON. */
const BOOL = 16, BYTEA = 17, JSON_TYPE = 114, JSONB = 3802;
const NUMBERS = new Set([20, 21, 23, 26, 700, 701, 1700]);
const WHOLE = new Set([20, 21, 23, 26]);

interface Answer {
  /** The statement's, when it has ended: "SELECT". */
  command?: string;
  rows: (string | null)[][];
  fields: { name: string; dataTypeID: number }[];
  blob?: Blob;
}
interface Notice {
  severity?: string;
  message?: string;
  detail?: string;
  hint?: string;
}
interface Database {
  parsers: unknown;
  exec(sql: string, options: unknown): Promise<Answer[]>;
  query(sql: string, parameters: unknown[], options: unknown): Promise<Answer>;
}

let database: Database;
const encoder = new TextEncoder();

const options = {
  rowMode: "array",
  onNotice({ severity, message, detail, hint }: Notice) {
    let text = `${severity}:  ${message}\n`;
    if (detail) text += `DETAIL:  ${detail}\n`;
    if (hint) text += `HINT:  ${hint}\n`;
    script.host.stderr(encoder.encode(text));
  },
};

const dialect: Dialect = {
  prefix: "\\",
  async query(sql) {
    if (/^\s*copy\b[^]*\b(from\s+stdin|to\s+stdout)\b/i.test(sql)) {
      throw new ScriptError(
        "COPY has no standard input or output here: use \\copy with a file",
      );
    }
    const answers = await database.exec(sql, options);
    // Of a statement that it could not end the server says nothing.
    if (answers.at(-1)?.command === undefined) {
      throw new ScriptError("the server broke: the statement nests too deeply");
    }
    return answers.map(resultOf);
  },
  told(error, piece, file) {
    const { message, code, severity, position, detail, hint, where } = error as
      & Record<string, string | undefined>
      & Error;
    if (!(error instanceof Error) || severity === undefined) return undefined;
    const place = `near line ${piece.line}${file && ` of ${file}`}`;
    let text = `${severity} ${place}: ${message} (SQLSTATE ${code})`;
    if (position) text += pointAt(piece.text, piece.line, Number(position) - 1);
    if (detail) text += `\nDETAIL:  ${detail}`;
    if (hint) text += `\nHINT:  ${hint}`;
    if (where) text += `\nCONTEXT:  ${where}`;
    return {
      name: "PostgresError",
      message: `${place}: ${message} (SQLSTATE ${code})`,
      text,
    };
  },
  commands: {
    d: ([name]) =>
      name === undefined ? relations("r,p,v,m,S,f") : describe(name),
    "d+": ([name]) =>
      name === undefined ? relations("r,p,v,m,S,f") : describe(name),
    dt: ([name]) => relations("r,p", name),
    dv: ([name]) => relations("v", name),
    dm: ([name]) => relations("m", name),
    ds: ([name]) => relations("S", name),
    di: ([name]) => relations("i", name),
    dn: () => ({
      sql:
        `SELECT nspname AS "Name", pg_get_userbyid(nspowner) AS "Owner" FROM pg_namespace
            WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' ORDER BY 1`,
    }),
    df: ([name]) => ({
      sql:
        `SELECT n.nspname AS "Schema", p.proname AS "Name", pg_get_function_result(p.oid) AS "Result data type",
              pg_get_function_arguments(p.oid) AS "Argument data types"
            FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
            WHERE ${
          name === undefined
            ? "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"
            : `p.proname LIKE ${like(name)}`
        } ORDER BY 1, 2`,
    }),
    dx: () => ({
      sql:
        `SELECT extname AS "Name", extversion AS "Version" FROM pg_extension ORDER BY 1`,
    }),
    du: () => ({
      sql:
        `SELECT rolname AS "Role name" FROM pg_roles WHERE rolname !~ '^pg_' ORDER BY 1`,
    }),
    l: () => ({
      sql:
        `SELECT datname AS "Name", pg_encoding_to_char(encoding) AS "Encoding" FROM pg_database ORDER BY 1`,
    }),
    conninfo: () => ({
      sql: "SELECT current_database(), current_user, version()",
    }),
    copy: (_, line) => copy(line),
    c: () => {
      throw new ScriptError("there is one database here");
    },
    "!": () => {
      throw new ScriptError("commands of the system can't be run here");
    },
  },
};

const script = new Script(dialect);

function resultOf({ fields, rows }: Answer): Result {
  return {
    columns: fields.map(({ name }) => name),
    rows: [
      rows.map((row) =>
        row.map((text, i) => cellOf(text, fields[i]!.dataTypeID))
      ),
    ],
  };
}

/** A value, of the server's text. */
function cellOf(text: string | null, type: number): Cell {
  if (text === null) return null;
  if (NUMBERS.has(type)) {
    const number = Number(text);
    const exact = WHOLE.has(type)
      ? Number.isSafeInteger(number)
      : Number.isFinite(number) && text.replace(/\D/g, "").length <= 17;
    return new Shown(text, exact ? number : text, true);
  }
  if (type === BOOL) return new Shown(text, text === "t");
  if (type === BYTEA) return new Shown(text, text.replace(/^\\x/, ""));
  if (type === JSON_TYPE || type === JSONB) {
    return new Shown(text, JSON.parse(text));
  }
  return text;
}

function relations(kinds: string, name?: string): { sql: string } {
  const list = kinds.split(",").map(sqlText).join(",");
  return {
    sql: `SELECT n.nspname AS "Schema", c.relname AS "Name",
            CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view'
              WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' ELSE 'foreign table' END AS "Type",
            pg_get_userbyid(c.relowner) AS "Owner"
          FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE c.relkind IN (${list}) AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
            ${name === undefined ? "" : `AND c.relname LIKE ${like(name)}`}
          ORDER BY 1, 2`,
  };
}

/** The columns of a table, and its indexes and constraints. */
async function describe(name: string): Promise<{ text: string } | undefined> {
  const table = sqlText(name);
  const [found] = await database.exec(`SELECT to_regclass(${table})`, options);
  if (found!.rows[0]![0] === null) {
    throw new ScriptError(`there is no relation ${name}`);
  }
  await script.show(
    `SELECT a.attname AS "Column", format_type(a.atttypid, a.atttypmod) AS "Type",
       CASE WHEN a.attnotnull THEN 'not null' ELSE '' END AS "Nullable",
       coalesce(pg_get_expr(d.adbin, d.adrelid), '') AS "Default"
     FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
     WHERE a.attrelid = ${table}::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`,
  );
  const [indexes, constraints] = await database.exec(
    `SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = ${table}::regclass ORDER BY 1;
     SELECT conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
     WHERE conrelid = ${table}::regclass AND contype <> 'n' ORDER BY 1`,
    options,
  );
  let text = "";
  for (
    const [head, { rows }] of [["Indexes", indexes!], [
      "Constraints",
      constraints!,
    ]] as const
  ) {
    if (rows.length > 0) {
      text += `${head}:\n${rows.map(([row]) => `    ${row}\n`).join("")}`;
    }
  }
  return text ? { text } : undefined;
}

/** A pattern of psql's, with * and ?. */
function like(pattern: string): string {
  return sqlText(
    pattern.replace(/[\\%_]/g, "\\$&").replaceAll("*", "%").replaceAll(
      "?",
      "_",
    ),
  );
}

/** `\copy TABLE FROM FILE …` and `\copy TABLE TO FILE …`. */
async function copy(line: string): Promise<void> {
  const match =
    /^\\copy\s+(\([^]*\)|\S+(?:\s*\([^)]*\))?)\s+(from|to)\s+('(?:[^']|'')*'|\S+)\s*([^]*)$/i
      .exec(line.replace(/;\s*$/, ""));
  if (!match) {
    throw new ScriptError(
      "usage: \\copy TABLE FROM 'FILE' (FORMAT csv, HEADER), or TO",
    );
  }
  const [, what, direction, given, rest] = match;
  const path = given!.startsWith("'")
    ? given!.slice(1, -1).replaceAll("''", "'")
    : given!;
  const into = direction!.toLowerCase() === "from";
  const file = /^(stdin|pstdin)$/i.test(path) ? "/dev/stdin" : path;
  const blob = into ? new Blob([script.read(file) as BlobPart]) : undefined;
  const answer = await database.query(
    `COPY ${what} ${direction} '/dev/blob' ${rest}`,
    [],
    { ...options, blob },
  );
  if (into) return;
  const bytes = new Uint8Array(await answer.blob!.arrayBuffer());
  if (/^(stdout|pstdout)$/i.test(path)) {
    script.write(new TextDecoder().decode(bytes));
  } else script.host.files.writeFile(fullPath(path), bytes);
}

/** Two lines that show a place of a statement. */
function pointAt(text: string, line: number, position: number): string {
  const before = [...text].slice(0, position).join("");
  const start = before.lastIndexOf("\n") + 1;
  const end = text.indexOf("\n", start);
  const head = `LINE ${line + before.split("\n").length - 1}: `;
  const source = text.slice(start, end < 0 ? undefined : end).replaceAll(
    "\t",
    " ",
  );
  return `\n${head}${source}\n${
    " ".repeat(head.length + before.length - start)
  }^`;
}

async function load(start: Start): Promise<void> {
  const directory = `${start.parts[PACKAGE]}/dist`;
  // It would take what it finds for Node.
  Object.defineProperty(globalThis, "process", {
    value: undefined,
    configurable: true,
  });
  const module = (name: string) =>
    WebAssembly.compile(Deno.readFileSync(`${directory}/${name}`));
  const { PGlite, types } = await import(`file://${directory}/index.js`);
  const [pgliteWasmModule, initdbWasmModule] = await Promise.all([
    module("pglite.wasm"),
    module("initdb.wasm"),
  ]);
  database = await PGlite.create({
    pgliteWasmModule,
    initdbWasmModule,
    fsBundle: new Blob([Deno.readFileSync(`${directory}/pglite.data`)]),
  });
  // Values come as the server writes them.
  const texts = Object.values(types).map((
    type,
  ) => [type, (text: string) => text]);
  database.parsers = Object.fromEntries(texts);
  await database.exec(`SET max_stack_depth = '${STACK}'`, {});
}

const postgres: Language = {
  prepare: load,

  run(program: Program, host: Host) {
    let place = 0;
    for (const arg of program.args) {
      const [, name = `${++place}`, value = arg] =
        /^([A-Za-z_]\w*)=(.*)$/s.exec(arg) ?? [];
      script.variables.set(name, value);
    }
    return script.run(program.code, host);
  },

  async complete(text) {
    const word = /[\\.\w]*$/.exec(text)![0];
    if (word.startsWith("\\")) {
      return script.commands.filter((name) => name.startsWith(word));
    }
    const tail = sqlText(word.slice(word.lastIndexOf(".") + 1).toLowerCase());
    const [answer] = await database.exec(
      `SELECT DISTINCT n FROM (SELECT word AS n FROM pg_get_keywords() UNION ALL
         SELECT c.relname::text FROM pg_class c WHERE c.relkind IN ('r', 'p', 'v', 'm') AND pg_table_is_visible(c.oid)
         UNION ALL SELECT column_name::text FROM information_schema.columns
           WHERE table_schema NOT IN ('pg_catalog', 'information_schema')) AS names
       WHERE starts_with(n, ${tail}) ORDER BY n`,
      options,
    );
    const before = word.slice(0, word.lastIndexOf(".") + 1);
    return answer!.rows.map(([name]) => before + name);
  },

  unfinished: (text) => unfinished(text, "\\"),
};

await serve(postgres);
