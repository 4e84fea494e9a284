/**
 * A connection to a database, and its statements, as JavaScript has them.
 *
 * @module
 */

import { type Cell, Shown } from "../table.ts";
import type { Engine } from "./engine.ts";

const ROW = 100, DONE = 101;
const INTEGER = 1, FLOAT = 2, TEXT = 3, BLOB = 4;
const UTF8 = 1, DIRECT_ONLY = 0x80000, DETERMINISTIC = 0x800;
/** Bytes are copied before they are bound. */
const TRANSIENT = -1;

/** What SQLite refused, in its words. */
export class SQLError extends Error {
  constructor(
    message: string,
    readonly code: number,
    /** Where in the statement, in bytes; -1 is nowhere. */
    readonly offset = -1,
  ) {
    super(message);
  }
}

export class Database {
  readonly #pointer: number;

  constructor(
    readonly engine: Engine,
    readonly path: string,
    readOnly = false,
  ) {
    const { call } = engine;
    const out = engine.malloc(4);
    // With URI names, "file:shop.db?mode=ro".
    const flags = (readOnly ? 1 : 2 | 4) | 0x40;
    const code = engine.withText(
      path,
      (at) => call.sqlite3_open_v2!(at, out, flags, 0),
    );
    this.#pointer = engine.view.getUint32(out, true);
    call.free!(out);
    if (code !== 0) {
      const error = this.error();
      this.close();
      throw error;
    }
    call.sqlite3_extended_result_codes!(this.#pointer, 1);
  }

  close(): void {
    this.engine.call.sqlite3_close_v2!(this.#pointer);
  }

  error(): SQLError {
    const { call } = this.engine;
    return new SQLError(
      this.engine.text(call.sqlite3_errmsg!(this.#pointer)),
      call.sqlite3_extended_errcode!(this.#pointer) & 0xff,
      call.sqlite3_error_offset!(this.#pointer),
    );
  }

  /**
   * Prepares the first statement of a text in the module's memory; `next` is where the
   * text goes on. There is no statement where only space and comments are.
   */
  prepareAt(at: number): { statement?: Statement; next: number } {
    const { engine } = this;
    const out = engine.malloc(8);
    const code = engine.call.sqlite3_prepare_v3!(
      this.#pointer,
      at,
      -1,
      0,
      out,
      out + 4,
    );
    const pointer = engine.view.getUint32(out, true);
    const next = engine.view.getUint32(out + 4, true);
    engine.call.free!(out);
    if (code !== 0) throw this.error();
    return {
      statement: pointer === 0 ? undefined : new Statement(this, pointer),
      next,
    };
  }

  prepare(sql: string): Statement {
    return this.engine.withText(sql, (at) => {
      const { statement } = this.prepareAt(at);
      if (!statement) throw new SQLError("not a statement", 1);
      return statement;
    });
  }

  /** All rows of a statement of ours. */
  rows(sql: string, ...values: Cell[]): Cell[][] {
    const statement = this.prepare(sql);
    try {
      values.forEach((value, i) => statement.bind(i + 1, value));
      const rows = [];
      while (statement.step()) rows.push(statement.row());
      return rows;
    } finally {
      statement.finalize();
    }
  }

  get autocommit(): boolean {
    return this.engine.call.sqlite3_get_autocommit!(this.#pointer) !== 0;
  }

  get changes(): bigint {
    return this.engine.call.sqlite3_changes64!(this.#pointer);
  }

  get totalChanges(): bigint {
    return this.engine.call.sqlite3_total_changes64!(this.#pointer);
  }

  /** Gives SQL a function. What it throws is the statement's error. */
  define(
    name: string,
    args: number,
    call: (...values: Cell[]) => Cell,
    how: { deterministic?: boolean; direct?: boolean } = {},
  ): void {
    const { engine } = this;
    const { call: c } = engine;
    const run = engine.callback(
      "iiiv",
      (context: number, n: number, values: number) => {
        try {
          const given = Array.from({ length: n }, (_, i) => {
            const value = engine.view.getUint32(values + 4 * i, true);
            return cellOf(engine, "value", value);
          });
          const result = call(...given);
          if (result === null) c.sqlite3_result_null!(context);
          else if (typeof result === "number") {
            c.sqlite3_result_double!(
              context,
              result,
            );
          } else if (typeof result === "bigint") {
            c.sqlite3_result_int64!(
              context,
              result,
            );
          } else {
            const bytes = result instanceof Uint8Array
              ? result
              : new TextEncoder().encode(String(result));
            const at = engine.put(bytes);
            if (result instanceof Uint8Array) {
              c.sqlite3_result_blob!(context, at, bytes.length, TRANSIENT);
            } else c.sqlite3_result_text!(context, at, bytes.length, TRANSIENT);
            c.free!(at);
          }
        } catch (error) {
          if (error instanceof WebAssembly.RuntimeError) throw error;
          engine.withText(
            error instanceof Error ? error.message : String(error),
            (at) => c.sqlite3_result_error!(context, at, -1),
          );
        }
      },
    );
    const flags = UTF8 | (how.deterministic ? DETERMINISTIC : 0) |
      (how.direct ? DIRECT_ONLY : 0);
    engine.withText(
      name,
      (at) =>
        c.sqlite3_create_function_v2!(
          this.#pointer,
          at,
          args,
          flags,
          0,
          run,
          0,
          0,
          0,
        ),
    );
  }
}

export class Statement {
  readonly columns: string[];

  constructor(private readonly database: Database, readonly pointer: number) {
    const { engine } = database;
    const { call } = engine;
    this.columns = Array.from(
      { length: call.sqlite3_column_count!(pointer) },
      (_, i) => engine.text(call.sqlite3_column_name!(pointer, i)),
    );
  }

  /** 0 is a statement that runs, 1 is EXPLAIN, 2 is EXPLAIN QUERY PLAN. */
  get explains(): number {
    return this.database.engine.call.sqlite3_stmt_isexplain!(this.pointer);
  }

  /** The names of its parameters, from the first; "" is one without. */
  get parameters(): string[] {
    const { engine } = this.database;
    return Array.from(
      { length: engine.call.sqlite3_bind_parameter_count!(this.pointer) },
      (_, i) =>
        engine.text(
          engine.call.sqlite3_bind_parameter_name!(this.pointer, i + 1),
        ),
    );
  }

  bind(index: number, value: Cell): void {
    const { engine } = this.database;
    const { call } = engine;
    if (value instanceof Shown) value = value.text;
    if (typeof value === "boolean") value = value ? 1 : 0;
    let code: number;
    if (value === null) code = call.sqlite3_bind_null!(this.pointer, index);
    else if (typeof value === "bigint" || Number.isSafeInteger(value)) {
      code = call.sqlite3_bind_int64!(
        this.pointer,
        index,
        BigInt(value as number | bigint),
      );
    } else if (typeof value === "number") {
      code = call.sqlite3_bind_double!(this.pointer, index, value);
    } else {
      const bytes = value instanceof Uint8Array
        ? value
        : new TextEncoder().encode(value as string);
      const at = engine.put(bytes);
      const bind = value instanceof Uint8Array
        ? call.sqlite3_bind_blob!
        : call.sqlite3_bind_text!;
      code = bind(this.pointer, index, at, bytes.length, TRANSIENT);
      call.free!(at);
    }
    if (code !== 0) throw this.database.error();
  }

  /** Goes to the next row; false at the end. */
  step(): boolean {
    const code = this.database.engine.call.sqlite3_step!(this.pointer);
    if (code === ROW) return true;
    if (code !== DONE) throw this.database.error();
    return false;
  }

  row(): Cell[] {
    const cells = new Array<Cell>(this.columns.length);
    for (let i = 0; i < cells.length; i++) {
      cells[i] = cellOf(this.database.engine, "column", this.pointer, i);
    }
    return cells;
  }

  /** Makes it ready for another run. */
  reset(): void {
    this.database.engine.call.sqlite3_reset!(this.pointer);
  }

  finalize(): void {
    this.database.engine.call.sqlite3_finalize!(this.pointer);
  }
}

/** A value of SQLite's: a column of a statement's row, or a function's argument. */
function cellOf(
  engine: Engine,
  from: "column" | "value",
  ...of: number[]
): Cell {
  const { call } = engine;
  switch (call[`sqlite3_${from}_type`]!(...of)) {
    case INTEGER: {
      const value: bigint = call[`sqlite3_${from}_int64`]!(...of);
      const number = Number(value);
      return Number.isSafeInteger(number) ? number : value;
    }
    case FLOAT: {
      const value: number = call[`sqlite3_${from}_double`]!(...of);
      const text = engine.text(call[`sqlite3_${from}_text`]!(...of));
      return new Shown(text, value, true);
    }
    case TEXT: {
      const at = call[`sqlite3_${from}_text`]!(...of);
      return engine.textOf(at, call[`sqlite3_${from}_bytes`]!(...of));
    }
    case BLOB: {
      const at = call[`sqlite3_${from}_blob`]!(...of);
      return engine.copy(at, call[`sqlite3_${from}_bytes`]!(...of));
    }
    default:
      return null;
  }
}
