/** What a link holds: a program, and what it is run with. */
export interface Program {
  language: string;
  code: string;
  stdin?: string;
  args?: string[];
  packages?: string[];
  /** Deno's flags; absent means all that the operator granted. */
  permissions?: string[];
}

/** The largest program that is read from a link, in bytes of JSON. */
const most = 1 << 20;

/** Gives a fragment that holds the program: #p= and its JSON, deflated, in base64url. */
export async function toFragment(program: Program): Promise<string> {
  const stream = new Blob([JSON.stringify(program)]).stream()
    .pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  return "#p=" +
    toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replace(
      /=+$/,
      "",
    );
}

/** Gives the program of a fragment; null if it holds none. Anybody may have made the link. */
export async function fromFragment(fragment: string): Promise<Program | null> {
  if (!fragment.startsWith("#p=")) return null;
  const text = fragment.slice(3).replaceAll("-", "+").replaceAll("_", "/");
  const stream = new Blob([fromBase64(text)]).stream()
    .pipeThrough(new DecompressionStream("deflate-raw"));
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for await (const part of stream) {
    if ((size += part.length) > most) {
      throw new Error("The link's program is too large");
    }
    parts.push(part);
  }
  return checked(JSON.parse(await new Blob(parts).text()));
}

function checked(value: Record<string, unknown> | null): Program {
  const isText = (v: unknown): v is string => typeof v === "string";
  const isList = (v: unknown): v is string[] =>
    Array.isArray(v) && v.every(isText);
  if (!value || !isText(value.language) || !isText(value.code)) {
    throw new Error("The link holds no program");
  }
  const program: Program = { language: value.language, code: value.code };
  if (isText(value.stdin)) program.stdin = value.stdin;
  for (const name of ["args", "packages", "permissions"] as const) {
    const list = value[name];
    if (isList(list)) program[name] = list;
  }
  return program;
}

/** Encodes bytes as base64. */
export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i += 0x8000) {
    text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  }
  return btoa(text);
}

/** Decodes base64. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}
