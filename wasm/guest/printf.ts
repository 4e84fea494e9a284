/**
 * The patterns of C's printf, which many languages have.
 *
 * @module
 */

/** Fills in a pattern. */
export function printf(pattern: string, values: unknown[]): string {
  let next = 0;
  return pattern.replace(
    /%(?:(\d+)\$)?([-+ 0,]*)(\d+)?(?:\.(\d+))?([bcdeEfgosxX%n])/g,
    (_, index, flags: string, width, digits, kind: string) => {
      if (kind === "%") return "%";
      if (kind === "n") return "\n";
      const value = values[index === undefined ? next++ : Number(index) - 1];
      let text = one(
        kind,
        value,
        digits === undefined ? undefined : Number(digits),
      );
      if (flags.includes(",")) text = text.replace(/^-?\d+/, grouped);
      if (!"bcs".includes(kind) && !text.startsWith("-")) {
        if (flags.includes("+")) text = `+${text}`;
        else if (flags.includes(" ")) text = ` ${text}`;
      }
      const size = Number(width ?? 0);
      if (flags.includes("-")) return text.padEnd(size);
      if (!flags.includes("0") || "bcs".includes(kind)) {
        return text.padStart(size);
      }
      const sign = /^[-+ ]/.test(text) ? text[0]! : "";
      return sign + text.slice(sign.length).padStart(size - sign.length, "0");
    },
  );
}

const grouped = (whole: string) => whole.replace(/\B(?=(\d{3})+$)/g, ",");

function one(kind: string, value: unknown, digits: number | undefined): string {
  switch (kind) {
    case "d":
      return typeof value === "bigint"
        ? String(value)
        : String(Math.trunc(Number(value)));
    case "f":
      return Number(value).toFixed(digits ?? 6);
    case "e":
    case "E": {
      const text = Number(value).toExponential(digits ?? 6).replace(
        /e([-+])(\d)$/,
        "e$10$2",
      );
      return kind === "e" ? text : text.toUpperCase();
    }
    case "g":
      return String(Number(Number(value).toPrecision(digits || 6)));
    case "o":
    case "x":
    case "X": {
      const text = Math.trunc(Number(value)).toString(kind === "o" ? 8 : 16);
      return kind === "X" ? text.toUpperCase() : text;
    }
    case "c":
      return typeof value === "number"
        ? String.fromCodePoint(value)
        : String(value);
  }
  const text = String(value);
  return digits === undefined ? text : text.slice(0, digits);
}
