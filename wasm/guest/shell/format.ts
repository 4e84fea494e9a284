/**
 * What `printf` prints.
 *
 * @module
 */

import { escapes, toBytes } from "./syntax.ts";
import { quote } from "./shell.ts";
import { strftime } from "./time.ts";

/** Formats arguments, the format again and again until they are used up. */
export function format(
  template: string,
  args: string[],
  complain: (message: string) => void,
): { text: string; status: number } {
  let text = "", at = 0, status = 0, ended = false;
  const number = (given: string | undefined): bigint => {
    if (given === undefined || given === "") return 0n;
    const trimmed = given.trimStart();
    if (/^['"]/.test(trimmed)) return BigInt(trimmed.codePointAt(1) ?? 0);
    const found = /^([-+]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)/.exec(
      trimmed,
    );
    if (found === null || found[0].length !== trimmed.length) {
      complain(`${given}: invalid number`);
      status = 1;
    }
    if (found === null) return 0n;
    const digits = found[2]!;
    const n = BigInt(
      /^0[0-7]+$/.test(digits) ? "0o" + digits.slice(1) : digits,
    );
    return found[1] === "-" ? -n : n;
  };
  const float = (given: string | undefined): number => {
    if (given === undefined || given === "") return 0;
    const trimmed = given.trim();
    if (/^['"]/.test(trimmed)) return trimmed.codePointAt(1) ?? 0;
    if (/^[-+]?inf(inity)?$/i.test(trimmed)) {
      return trimmed.startsWith("-") ? -Infinity : Infinity;
    }
    if (/^[-+]?nan$/i.test(trimmed)) return NaN;
    if (/^[-+]?0x/i.test(trimmed)) return Number(number(trimmed));
    const found = /^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?/.exec(trimmed);
    if (found === null || found[0].length !== trimmed.length) {
      complain(`${given}: invalid number`);
      status = 1;
    }
    return found === null ? 0 : Number(found[0]);
  };
  const pieces = parse(template);
  do {
    const before = at;
    for (const piece of pieces) {
      if (ended) break;
      if (typeof piece === "string") {
        text += piece;
        continue;
      }
      let { flags } = piece;
      let width = piece.width === "*"
        ? Number(number(args[at++]))
        : Number(piece.width || 0);
      let precision: number | undefined = piece.precision === undefined
        ? undefined
        : piece.precision === "*"
        ? Number(number(args[at++]))
        : Number(piece.precision || 0);
      if (width < 0) {
        flags += "-";
        width = -width;
      }
      if (precision !== undefined && precision < 0) precision = undefined;
      let out: string;
      switch (piece.kind) {
        case "s":
          out = args[at++] ?? "";
          if (precision !== undefined) {
            out = [...out].slice(0, precision).join("");
          }
          break;
        case "b": {
          out = args[at++] ?? "";
          const cut = /(?<!\\)(?:\\\\)*\\c/.exec(out);
          if (cut !== null) {
            out = out.slice(0, cut.index + cut[0].length - 2);
            ended = true;
          }
          out = escapes(out, "printf");
          break;
        }
        case "q":
          out = quote(args[at++] ?? "");
          break;
        case "Q":
          out = quote(args[at++] ?? "");
          break;
        case "c":
          out = [...(args[at++] ?? "")][0] ?? "";
          break;
        case "d":
        case "i": {
          const n = clamp(number(args[at++]));
          out = sign(
            n < 0n,
            digits((n < 0n ? -n : n).toString(), precision, flags),
            flags,
          );
          break;
        }
        case "u":
          out = digits(
            BigInt.asUintN(64, number(args[at++])).toString(),
            precision,
            flags,
          );
          break;
        case "o":
          out = digits(
            BigInt.asUintN(64, number(args[at++])).toString(8),
            precision,
            flags,
          );
          if (flags.includes("#") && !out.startsWith("0")) out = "0" + out;
          break;
        case "x":
        case "X": {
          const n = BigInt.asUintN(64, number(args[at++]));
          out = digits(n.toString(16), precision, flags);
          if (flags.includes("#") && n !== 0n) out = "0x" + out;
          if (piece.kind === "X") out = out.toUpperCase();
          break;
        }
        case "T": {
          const given = args[at++];
          const when = given === undefined || given === "-1" || given === "-2"
            ? new Date()
            : new Date(Number(given) * 1000);
          out = strftime(piece.time || "%X", when);
          break;
        }
        default:
          out = floating(float(args[at++]), piece.kind, precision, flags);
      }
      // As bash does, widths count bytes.
      const size = /[\u0080-\uffff]/.test(out)
        ? toBytes(out).length
        : out.length;
      if (size < width) {
        const gap = width - size;
        if (flags.includes("-")) out += " ".repeat(gap);
        else if (
          flags.includes("0") && !"sbqcT".includes(piece.kind) &&
          !(precision !== undefined && "diouxX".includes(piece.kind)) &&
          /\d/.test(out)
        ) {
          const head = /^[-+ ]?(0[xX])?/.exec(out)![0];
          out = head + "0".repeat(gap) + out.slice(head.length);
        } else out = " ".repeat(gap) + out;
      }
      text += out;
    }
    if (at === before) break;
  } while (at < args.length && !ended);
  for (const piece of pieces) {
    if (typeof piece !== "string" && piece.bad !== undefined) {
      complain(`\`${piece.bad}': invalid format character`);
      status = 1;
    }
  }
  return { text, status };
}

interface Directive {
  flags: string;
  width: string;
  precision?: string;
  kind: string;
  time?: string;
  bad?: string;
}

const kept = new Map<string, (string | Directive)[]>();

function parse(template: string): (string | Directive)[] {
  const known = kept.get(template);
  if (known !== undefined) return known;
  const pieces: (string | Directive)[] = [];
  let from = 0;
  const plain = (to: number) => {
    if (to > from) pieces.push(escapes(template.slice(from, to), "$'"));
  };
  for (let i = 0; i < template.length;) {
    if (template[i] === "\\") {
      i += 2;
      continue;
    }
    if (template[i] !== "%") {
      i++;
      continue;
    }
    plain(i);
    const found =
      /^%([-+ #0']*)(\*|\d*)(?:\.(\*|-?\d*))?(?:hh|h|ll|l|j|z|t|L)?(?:\(([^)]*)\)(?=T))?([A-Za-z%])?/
        .exec(template.slice(i))!;
    i += found[0].length;
    from = i;
    const kind = found[5];
    if (kind === "%") pieces.push("%");
    else if (kind === undefined || !"sbqQcdiuoxXeEfFgGaAT".includes(kind)) {
      pieces.push({ flags: "", width: "", kind: "s", bad: kind ?? found[0] });
    } else {pieces.push({
        flags: found[1]!,
        width: found[2]!,
        precision: found[3],
        kind,
        time: found[4],
      });}
  }
  plain(template.length);
  if (kept.size > 500) kept.clear();
  kept.set(template, pieces);
  return pieces;
}

function clamp(n: bigint): bigint {
  const most = 2n ** 63n - 1n;
  return n > most ? most : n < -most - 1n ? -most - 1n : n;
}

function digits(
  text: string,
  precision: number | undefined,
  flags: string,
): string {
  if (precision !== undefined) {
    text = precision === 0 && text === "0" ? "" : text.padStart(precision, "0");
  }
  return flags.includes("'") ? text.replace(/\B(?=(\d{3})+(?!\d))/g, "") : text;
}

function sign(negative: boolean, text: string, flags: string): string {
  return (negative
    ? "-"
    : flags.includes("+")
    ? "+"
    : flags.includes(" ")
    ? " "
    : "") + text;
}

/** A number in one of C's forms. */
export function floating(
  n: number,
  kind: string,
  precision: number | undefined,
  flags: string,
): string {
  const negative = n < 0 || Object.is(n, -0);
  const size = Math.abs(n);
  let out: string;
  const lower = kind.toLowerCase();
  if (!Number.isFinite(n)) out = Number.isNaN(n) ? "nan" : "inf";
  else if (lower === "f") out = fixed(size, precision ?? 6);
  else if (lower === "e") out = exponent(size, precision ?? 6);
  else if (lower === "a") out = hexadecimal(size);
  else {
    const most = precision === 0 ? 1 : precision ?? 6;
    const power = size === 0
      ? 0
      : Number(exponent(size, most - 1).split("e")[1]);
    out = power < -4 || power >= most
      ? exponent(size, most - 1)
      : fixed(size, most - 1 - power);
    if (!flags.includes("#") && out.includes(".")) {
      out = out.replace(/\.?0+(?=e|$)/, "");
    }
  }
  out = sign(negative && !Number.isNaN(n), out, flags);
  return kind === lower ? out : out.toUpperCase();
}

/** Digits after the point, of the number as it is exactly. */
function fixed(n: number, digits: number): string {
  if (n >= 1e21) {
    return BigInt(n).toString() + (digits > 0 ? "." + "0".repeat(digits) : "");
  }
  if (digits > 100) return n.toFixed(100) + "0".repeat(digits - 100);
  const text = n.toFixed(digits);
  // C takes the even one of two that are as near; JavaScript the larger.
  const exact = n.toFixed(Math.min(100, digits + 40));
  const at = exact.indexOf(".") + 1 + digits;
  if (!/^50*$/.test(exact.slice(at))) return text;
  const below = exact.slice(0, digits === 0 ? at - 1 : at);
  return /[02468]$/.test(below) ? below : text;
}

function exponent(n: number, digits: number): string {
  const [mantissa, power] = n.toExponential(Math.min(100, Math.max(0, digits)))
    .split("e") as [string, string];
  return `${mantissa}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}

function hexadecimal(n: number): string {
  if (n === 0) return "0x0p+0";
  let power = Math.floor(Math.log2(n));
  let mantissa = n / 2 ** power;
  if (mantissa >= 2) [mantissa, power] = [mantissa / 2, power + 1];
  const text = mantissa.toString(16);
  return `0x${text}p${power < 0 ? "-" : "+"}${Math.abs(power)}`;
}
