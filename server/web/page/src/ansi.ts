/** How a part of a line looks: colours are 0 to 255, or #rrggbb. */
export interface Style {
  readonly fg?: number | string;
  readonly bg?: number | string;
  readonly bold?: boolean;
  readonly italic?: boolean;
  readonly underline?: boolean;
  /** It came on standard error. */
  readonly error?: boolean;
}

/** Text of one style. */
export interface Span {
  readonly text: string;
  readonly style: Style;
}

interface Cell {
  char: string;
  style: Style;
}

/** The longest line that can be written over, in characters; what is longer is broken. */
const maxLine = 10_000;
/** The longest escape sequence that is waited for, in characters. */
const maxEscape = 4096;

const sequence =
  // deno-lint-ignore no-control-regex
  /^\x1b(?:\[([0-?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-OQ-WYZ\\^_`-~])/;

/**
 * Ansi makes lines of what a program prints for a terminal. It knows colours, carriage
 * returns, backspaces and erased lines; other escape sequences are left out.
 */
export class Ansi {
  #cells: Cell[] = [];
  #column = 0;
  #style: Style = {};
  #rest = "";

  /** Gives the lines that have ended with what was written. */
  write(text: string, error = false): Span[][] {
    const ended: Span[][] = [];
    text = this.#rest + text;
    this.#rest = "";
    for (let i = 0; i < text.length;) {
      const char = String.fromCodePoint(text.codePointAt(i)!);
      if (char === "\x1b") {
        const part = text.slice(i, i + maxEscape);
        const found = sequence.exec(part);
        if (found) {
          this.#control(found[1] ?? "", found[2] ?? "");
          i += found[0].length;
        } else if (
          part.length < maxEscape && i + part.length === text.length &&
          begins(part)
        ) {
          this.#rest = part;
          break;
        } else i++;
        continue;
      }
      i += char.length;
      if (char === "\n" || this.#column >= maxLine) {
        ended.push(this.line());
        this.#cells = [];
        this.#column = 0;
        if (char === "\n") continue;
      }
      if (char === "\r") this.#column = 0;
      else if (char === "\b") this.#column = Math.max(0, this.#column - 1);
      else if (char === "\t") {
        do this.#put(" ", error); while (this.#column % 8);
      } else if (char >= " ") this.#put(char, error);
    }
    return ended;
  }

  /** Gives the line that has not ended. */
  line(): Span[] {
    const spans: { text: string; style: Style }[] = [];
    for (const { char, style } of this.#cells) {
      const last = spans.at(-1);
      if (last?.style === style) last.text += char;
      else spans.push({ text: char, style });
    }
    return spans;
  }

  #put(char: string, error: boolean): void {
    if (Boolean(this.#style.error) !== error) {
      this.#style = { ...this.#style, error };
    }
    while (this.#cells.length < this.#column) {
      this.#cells.push({ char: " ", style: {} });
    }
    this.#cells[this.#column++] = { char, style: this.#style };
  }

  #control(parameters: string, final: string): void {
    const numbers = parameters.split(/[;:]/).map((n) => Number(n) || 0);
    if (final === "m") this.#style = styled(this.#style, numbers);
    else if (final === "K") {
      if (numbers[0] === 0) {
        this.#cells.length = Math.min(this.#cells.length, this.#column);
      } else if (numbers[0] === 2) this.#cells = [];
    } else if (final === "G") {
      this.#column = Math.min(Math.max(0, numbers[0]! - 1), maxLine);
    } else if (final === "C") {
      this.#column = Math.min(this.#column + Math.max(1, numbers[0]!), maxLine);
    } else if (final === "D") {
      this.#column = Math.max(0, this.#column - Math.max(1, numbers[0]!));
    }
  }
}

/** Says whether an escape sequence may only not be whole yet. */
function begins(part: string): boolean {
  // deno-lint-ignore no-control-regex
  return /^\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|[ -/]*)$/.test(part);
}

function styled(style: Style, numbers: number[]): Style {
  let now: Record<string, unknown> = { ...style };
  for (let i = 0; i < numbers.length; i++) {
    const n = numbers[i]!;
    if (n === 0) now = { error: style.error };
    else if (n === 1) now.bold = true;
    else if (n === 3) now.italic = true;
    else if (n === 4) now.underline = true;
    else if (n === 22) delete now.bold;
    else if (n === 23) delete now.italic;
    else if (n === 24) delete now.underline;
    else if (n === 39) delete now.fg;
    else if (n === 49) delete now.bg;
    else if (n === 38 || n === 48) {
      const which = n === 38 ? "fg" : "bg";
      if (numbers[i + 1] === 5) now[which] = (numbers[i += 2] ?? 0) & 255;
      else if (numbers[i + 1] === 2) {
        const rgb = numbers.slice(i + 2, i + 5).map((c) =>
          (c & 255).toString(16).padStart(2, "0")
        );
        now[which] = "#" + rgb.join("").padEnd(6, "0");
        i += 4;
      }
    } else if (n >= 30 && n < 38) now.fg = n - 30;
    else if (n >= 40 && n < 48) now.bg = n - 40;
    else if (n >= 90 && n < 98) now.fg = n - 82;
    else if (n >= 100 && n < 108) now.bg = n - 92;
  }
  return now;
}

/** The colour of a number from 16 to 255. */
export function indexed(n: number): string {
  if (n >= 232) return `rgb(${Array(3).fill((n - 232) * 10 + 8).join(" ")})`;
  const part = (p: number) => p ? p * 40 + 55 : 0;
  n -= 16;
  return `rgb(${part(Math.floor(n / 36))} ${part(Math.floor(n / 6) % 6)} ${
    part(n % 6)
  })`;
}
