/**
 * Result sets of SQL, as they are printed and shown. A language makes an `Output` for
 * each result set and gives it row after row. Three things come out of it:
 *
 * - text, as the rows come. The usual form, `column`, has a line of names, a line of
 *   dashes, and columns two spaces apart; numbers stand at the right, NULL is written
 *   NULL, control characters are escaped (a line's end in a value is `\n`), and a result
 *   set with no rows says so. The widths are those of the first rows, at most 1,000 of
 *   them: what comes later, if it is wider, moves what stands beside it, so that no more
 *   than these rows are ever kept.
 * - the value: the first rows as objects, by the columns' names; at most 1,000 of them,
 *   and as many as 512 KiB hold. A second column of the same name has `_2` added.
 *   Integers beyond 2^53 are strings, bytes are hexadecimal, numbers that JSON lacks are
 *   strings.
 * - a table in HTML of the first 200 rows.
 *
 * @module
 */

/** What a column has in a row. */
export type Cell =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | Shown;

/** A value that is printed in its own way. */
export class Shown {
  constructor(
    readonly text: string,
    /** What it is in JSON. */
    readonly value: unknown,
    readonly number = false,
  ) {}
}

export const MODES = [
  "ascii",
  "box",
  "column",
  "csv",
  "html",
  "insert",
  "json",
  "jsonl",
  "line",
  "list",
  "markdown",
  "off",
  "quote",
  "table",
  "tabs",
] as const;
export type Mode = typeof MODES[number];

/** How result sets are printed. */
export interface Style {
  mode: Mode;
  /** Whether names are printed; undefined is as the mode has it. */
  headers?: boolean;
  /** What stands between columns in `list`; undefined is as the mode has it. */
  separator?: string;
  /** What ends a row in `list` and `csv`. */
  rowSeparator?: string;
  /** What is printed for NULL; undefined is as the mode has it. */
  nullText?: string;
  /** The least widths of columns; one that is negative is for text at the right. */
  widths: number[];
  /** The table that `insert` names. */
  table: string;
}

/** The most rows of which a result set's widths are made, and how much text they may have. */
const SAMPLE_ROWS = 1000, SAMPLE_TEXT = 256 * 1024;
/** A column is not made wider than this for a value: a longer one moves its row. */
const WIDEST = 80;
/** How much text is gathered before it is written. */
const PIECE = 32 * 1024;
/** The most rows of a value, and how much text it may have. */
const VALUE_ROWS = 1000, VALUE_TEXT = 512 * 1024;
/** The most rows of a table in HTML, and the most of a cell. */
const HTML_ROWS = 200, HTML_CELL = 2000;
const EXACT = BigInt(Number.MAX_SAFE_INTEGER);

/** One result set. */
export class Output {
  #rows: Cell[][] = [];
  #sampled = 0;
  #widths?: number[];
  #right: boolean[] = [];
  #pending = "";
  #count = 0;
  #kept: Cell[][] = [];
  #keptText = 0;

  constructor(
    readonly columns: string[],
    readonly style: Style,
    private readonly write: (text: string) => void,
  ) {
    const { mode } = style;
    if (this.#tabular) return;
    if (mode === "json") this.#print("[");
    else if (mode === "html") this.#print("<TABLE>\n");
    else if (
      mode === "off" || mode === "insert" || mode === "line" || mode === "jsonl"
    ) return;
    if (
      style.headers ?? (mode === "csv" || mode === "tabs" || mode === "html")
    ) {
      if (mode === "json") return;
      if (mode === "html") {
        this.#print(
          `<TR>${
            columns.map((name) => `<TH>${escapeHTML(name)}`).join("\n")
          }\n</TR>\n`,
        );
      } else if (mode === "quote") {
        this.#print(columns.map((name) => quote(name)).join(",") + "\n");
      } else {
        this.#print(
          columns.map((name) => this.#field(name)).join(this.#between) +
            this.#end,
        );
      }
    }
  }

  /** How many rows there were. */
  get count(): number {
    return this.#count;
  }

  row(cells: Cell[]): void {
    this.#count++;
    if (this.#kept.length < VALUE_ROWS && this.#keptText < VALUE_TEXT) {
      for (const cell of cells) this.#keptText += 8 + length(cell);
      if (this.#keptText < VALUE_TEXT) this.#kept.push(cells);
    }
    if (!this.#tabular) return this.#print(this.#line(cells));
    if (this.#widths) {
      return this.#print(
        this.#tableLine(cells.map((cell) => this.#text(cell))),
      );
    }
    this.#rows.push(cells);
    for (const cell of cells) this.#sampled += 8 + length(cell);
    if (this.#rows.length >= SAMPLE_ROWS || this.#sampled >= SAMPLE_TEXT) {
      this.#measure();
    }
  }

  /** Prints what is left. */
  end(): void {
    if (this.#tabular) {
      if (!this.#widths) this.#measure();
      if (this.style.mode === "box") {
        this.#print(this.#rule("└", "┴", "┘", "─"));
      }
      if (this.style.mode === "table") {
        this.#print(this.#rule("+", "+", "+", "-"));
      }
      if (this.#count === 0 && this.style.mode === "column") {
        this.#print("(no rows)\n");
      }
    } else if (this.style.mode === "json") {
      this.#print("]\n");
    } else if (this.style.mode === "html") {
      this.#print("</TABLE>\n");
    }
    this.flush();
  }

  flush(): void {
    if (this.#pending) this.write(this.#pending);
    this.#pending = "";
  }

  /** The first rows as objects. */
  value(): Record<string, unknown>[] {
    const names = distinct(this.columns);
    return this.#kept.map((cells) =>
      // Not by assignment, which a column of the name __proto__ would not survive.
      Object.fromEntries(cells.map((cell, i) => [names[i]!, json(cell)]))
    );
  }

  /** The first rows as a table in HTML. */
  html(): string {
    const right = this.columns.map((_, i) =>
      this.#kept.some((cells) => isNumber(cells[i]!)) &&
      this.#kept.every((cells) => cells[i] === null || isNumber(cells[i]!))
    );
    const shown = this.#kept.slice(0, HTML_ROWS);
    let text = "<table>\n<thead><tr>" +
      this.columns.map((name) => `<th>${escapeHTML(name)}</th>`).join("") +
      "</tr></thead>\n<tbody>\n";
    for (const cells of shown) {
      text += "<tr>" + cells.map((cell, i) => {
        let inner = cell === null ? "<i>NULL</i>" : plain(cell);
        if (cell !== null) {
          inner = escapeHTML(
            inner.length > HTML_CELL ? inner.slice(0, HTML_CELL) + "…" : inner,
          );
        }
        return (right[i] ? '<td style="text-align:right">' : "<td>") + inner +
          "</td>";
      }).join("") + "</tr>\n";
    }
    text += "</tbody>\n</table>";
    if (this.#count > shown.length) {
      text += `\n<p>${shown.length} of ${this.#count} rows</p>`;
    }
    return text;
  }

  get #tabular(): boolean {
    const { mode } = this.style;
    return mode === "column" || mode === "box" || mode === "table" ||
      mode === "markdown";
  }

  get #between(): string {
    const { mode, separator } = this.style;
    if (mode === "ascii") return "\x1f";
    if (mode === "tabs") return "\t";
    return separator ?? (mode === "csv" ? "," : "|");
  }

  get #end(): string {
    return this.style.mode === "ascii"
      ? "\x1e"
      : this.style.rowSeparator ?? "\n";
  }

  #print(text: string): void {
    this.#pending += text;
    if (this.#pending.length >= PIECE) this.flush();
  }

  /** A cell of a table. */
  #text(cell: Cell): string {
    if (cell === null) return this.style.nullText ?? "NULL";
    const text = visible(plain(cell));
    return this.style.mode === "markdown" ? text.replaceAll("|", "\\|") : text;
  }

  #field(text: string): string {
    if (this.style.mode !== "csv") return text;
    return /["\r\n]|^$/.test(text) || text.includes(this.#between)
      ? `"${text.replaceAll('"', '""')}"`
      : text;
  }

  /** A row of a form that needs no widths. */
  #line(cells: Cell[]): string {
    const { mode, nullText, table } = this.style;
    switch (mode) {
      case "off":
        return "";
      case "json":
      case "jsonl": {
        const names = distinct(this.columns);
        const text = "{" +
          cells.map((cell, i) =>
            `${JSON.stringify(names[i])}:${jsonText(cell)}`
          ).join(",") + "}";
        return mode === "jsonl"
          ? text + "\n"
          : this.#count === 1
          ? text
          : ",\n" + text;
      }
      case "html":
        return "<TR>" +
          cells.map((cell) =>
            `<TD>${escapeHTML(cell === null ? nullText ?? "" : plain(cell))}`
          )
            .join("\n") +
          "\n</TR>\n";
      case "quote":
        return cells.map(quote).join(",") + "\n";
      case "insert":
        return `INSERT INTO ${table} VALUES(${cells.map(quote).join(",")});\n`;
      case "line": {
        const most = Math.max(...this.columns.map(width), 5);
        return (this.#count === 1 ? "" : "\n") +
          cells.map((cell, i) =>
            `${pad(visible(this.columns[i]!), most, true)} = ${
              cell === null ? nullText ?? "NULL" : visible(plain(cell))
            }\n`
          ).join("");
      }
      default:
        return cells.map((cell) =>
          cell === null ? nullText ?? "" : this.#field(plain(cell))
        ).join(this.#between) + this.#end;
    }
  }

  /** Makes the widths of the rows there are, and prints these. */
  #measure(): void {
    const { widths, mode, headers } = this.style;
    const names = this.columns.map((name) => {
      name = visible(name);
      return mode === "markdown" ? name.replaceAll("|", "\\|") : name;
    });
    const rows = this.#rows.map((cells) =>
      cells.map((cell) => this.#text(cell))
    );
    this.#widths = names.map((name, i) => {
      let most = Math.max(width(name), 1, Math.abs(widths[i] ?? 0));
      for (const row of rows) {
        const w = width(row[i]!);
        if (w > most && w <= WIDEST) most = w;
      }
      return most;
    });
    this.#right = names.map((_, i) => {
      if (widths[i]) return widths[i]! < 0;
      let numbers = 0;
      for (const cells of this.#rows) {
        const cell = cells[i]!;
        if (cell === null) continue;
        if (!isNumber(cell)) return false;
        numbers++;
      }
      return numbers > 0;
    });
    this.#rows = [];
    if (mode === "box") this.#print(this.#rule("┌", "┬", "┐", "─"));
    if (mode === "table") this.#print(this.#rule("+", "+", "+", "-"));
    if (headers ?? true) {
      this.#print(this.#tableLine(names));
      if (mode === "column") {
        this.#print(this.#widths.map((w) => "-".repeat(w)).join("  ") + "\n");
      } else if (mode === "box") this.#print(this.#rule("├", "┼", "┤", "─"));
      else if (mode === "table") this.#print(this.#rule("+", "+", "+", "-"));
    }
    if (mode === "markdown" && (headers ?? true)) {
      this.#print(
        "|" + this.#widths.map((w, i) =>
          "-".repeat(w + 1) + (this.#right[i] ? ":" : "-")
        )
          .join("|") +
          "|\n",
      );
    }
    for (const row of rows) this.#print(this.#tableLine(row));
  }

  #tableLine(texts: string[]): string {
    const { mode } = this.style;
    const last = texts.length - 1;
    const padded = texts.map((text, i) =>
      mode === "column" && i === last && !this.#right[i]
        ? text
        : pad(text, this.#widths![i]!, this.#right[i]!)
    );
    if (mode === "column") return padded.join("  ").trimEnd() + "\n";
    const edge = mode === "box" ? "│" : "|";
    return `${edge} ${padded.join(` ${edge} `)} ${edge}\n`;
  }

  #rule(left: string, middle: string, right: string, line: string): string {
    return left + this.#widths!.map((w) => line.repeat(w + 2)).join(middle) +
      right + "\n";
  }
}

/** Names of which none is there twice. */
export function distinct(names: string[]): string[] {
  const seen = new Set<string>();
  return names.map((name) => {
    let given = name;
    for (let n = 2; seen.has(given); n++) given = `${name}_${n}`;
    seen.add(given);
    return given;
  });
}

/** How many columns of a terminal a text takes. */
export function width(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let total = 0;
  for (const char of text) {
    const code = char.codePointAt(0)!;
    if (code < 0x300) total++;
    else if (/^[\p{Mn}\p{Me}\p{Cf}\ufe0f]$/u.test(char)) continue;
    else total += isWide(code) ? 2 : 1;
  }
  return total;
}

/** Whether a character takes two columns: East Asian wide ones, and pictures. */
function isWide(code: number): boolean {
  return code >= 0x1100 && (
    code <= 0x115f ||
    code >= 0x2e80 && code <= 0x303e ||
    code >= 0x3041 && code <= 0xa4cf ||
    code >= 0xa960 && code <= 0xa97f ||
    code >= 0xac00 && code <= 0xd7a3 ||
    code >= 0xf900 && code <= 0xfaff ||
    code >= 0xfe30 && code <= 0xfe6f ||
    code >= 0xff01 && code <= 0xff60 ||
    code >= 0xffe0 && code <= 0xffe6 ||
    code >= 0x1f300 && code <= 0x1f64f ||
    code >= 0x1f680 && code <= 0x1f6ff ||
    code >= 0x1f900 && code <= 0x1faff ||
    code >= 0x20000 && code <= 0x3fffd
  );
}

function pad(text: string, to: number, right: boolean): string {
  const spaces = " ".repeat(Math.max(0, to - width(text)));
  return right ? spaces + text : text + spaces;
}

const ESCAPES: Record<string, string> = {
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};

/** A text of which each character can be seen: one line, and nothing that a terminal obeys. */
export function visible(text: string): string {
  return text.replace(
    // deno-lint-ignore no-control-regex
    /[\x00-\x1f\x7f-\x9f]/g,
    (char) =>
      ESCAPES[char] ?? "\\x" + char.charCodeAt(0).toString(16).padStart(2, "0"),
  );
}

function isNumber(cell: Cell): boolean {
  return typeof cell === "number" || typeof cell === "bigint" ||
    cell instanceof Shown && cell.number;
}

function length(cell: Cell): number {
  if (typeof cell === "string") return cell.length;
  if (cell instanceof Uint8Array) return 2 * cell.length;
  return cell instanceof Shown ? cell.text.length : 8;
}

/** A cell's own text. */
function plain(cell: Exclude<Cell, null>): string {
  if (typeof cell === "string") return cell;
  if (cell instanceof Shown) return cell.text;
  if (cell instanceof Uint8Array) return `X'${hex(cell)}'`;
  return String(cell);
}

/** A cell as SQL has it. */
function quote(cell: Cell): string {
  if (cell === null) return "NULL";
  if (
    cell instanceof Uint8Array || isNumber(cell) || typeof cell === "boolean"
  ) {
    return plain(cell as Exclude<Cell, null>);
  }
  return sqlText(plain(cell as Exclude<Cell, null>));
}

/** A text as SQL has it. */
export function sqlText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** A name as SQL has it. */
export function sqlName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function json(cell: Cell): unknown {
  if (cell instanceof Shown) {
    const { value } = cell;
    return typeof value === "number" && !Number.isFinite(value)
      ? String(value)
      : value;
  }
  if (cell instanceof Uint8Array) return hex(cell);
  if (typeof cell === "bigint") {
    return cell <= EXACT && cell >= -EXACT ? Number(cell) : String(cell);
  }
  if (typeof cell === "number" && !Number.isFinite(cell)) return String(cell);
  return cell;
}

/** A cell in a file of JSON, where a number is as exact as it is printed. */
function jsonText(cell: Cell): string {
  if (typeof cell === "bigint") return String(cell);
  if (
    cell instanceof Shown && cell.number &&
    /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(cell.text)
  ) {
    return cell.text;
  }
  return JSON.stringify(json(cell));
}

function hex(bytes: Uint8Array): string {
  return (bytes as unknown as { toHex(): string }).toHex();
}

export function escapeHTML(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(
    ">",
    "&gt;",
  )
    .replaceAll('"', "&quot;").replaceAll("'", "&#39;");
}
