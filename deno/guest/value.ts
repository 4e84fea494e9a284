/**
 * The program's value as JSON: itself where JSON can carry it, else what the
 * console would show of it, as a string.
 *
 * @module
 */

const stringify = JSON.stringify;
const inspect = Deno.inspect;
const encoder = new TextEncoder();
const encode = encoder.encode.bind(encoder);
const MAX_DEPTH = 100;

/** Gives a JSON text of at most about `limit` bytes; `undefined` has none. */
export function encodeValue(value: unknown, limit: number): string | undefined {
  if (value === undefined) return undefined;
  const budget = { bytes: limit };
  try {
    if (isJSON(value, budget, MAX_DEPTH)) {
      const text = stringify(value);
      if (encode(text).length <= limit) return text;
    }
  } catch {
    // A getter or a proxy of the program's threw; the console shows it as such.
  }
  return stringify(abbreviate(printed(value), limit / 8));
}

/** The value's text, as the console would show it. */
export function printed(value: unknown): string {
  if (typeof value === "string") return value;
  try {
    return inspect(value, {
      depth: 6,
      colors: false,
      strAbbreviateSize: 10_000,
    });
  } catch (error) {
    return `[a value that cannot be shown: ${error}]`;
  }
}

/** The value's text, as what is typed at a console is answered: strings in quotes. */
export function echoed(value: unknown): string {
  if (typeof value !== "string") return printed(value);
  return inspect(value, { colors: false, strAbbreviateSize: 10_000 });
}

/** Cuts a text to `limit` characters and says how many were left out. */
export function abbreviate(text: string, limit: number): string {
  limit = Math.floor(limit);
  if (encode(text).length <= limit) return text;
  return `${text.slice(0, limit)}… (${text.length - limit} more characters)`;
}

/** Says that `JSON.parse` would give back the same value, within the budget. */
function isJSON(
  value: unknown,
  budget: { bytes: number },
  depth: number,
): boolean {
  switch (typeof value) {
    case "string":
      return (budget.bytes -= value.length + 2) >= 0;
    case "boolean":
      return (budget.bytes -= 5) >= 0;
    case "number":
      return (budget.bytes -= 8) >= 0 && Number.isFinite(value) &&
        !Object.is(value, -0);
    case "object":
      if ((budget.bytes -= 4) < 0) return false;
      return value === null ||
        depth > 0 && isJSONObject(value, budget, depth - 1);
    default:
      return false;
  }
}

function isJSONObject(
  value: object,
  budget: { bytes: number },
  depth: number,
): boolean {
  const list = Array.isArray(value);
  const prototype = Object.getPrototypeOf(value);
  if (
    list
      ? prototype !== Array.prototype
      : prototype !== Object.prototype && prototype !== null
  ) {
    return false;
  }
  const keys = Reflect.ownKeys(value);
  if (list && keys.length !== value.length + 1) return false; // holes, or more than items
  for (const key of keys) {
    if (list && key === "length") continue;
    if (
      typeof key === "symbol" ||
      !Object.prototype.propertyIsEnumerable.call(value, key)
    ) {
      return false;
    }
    budget.bytes -= key.length;
    if (!isJSON((value as Record<string, unknown>)[key], budget, depth)) {
      return false;
    }
  }
  return true;
}
