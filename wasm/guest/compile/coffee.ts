/**
 * CoffeeScript becomes JavaScript: the program, and the files in CoffeeScript that it
 * imports.
 *
 * @module
 */

import {
  Refused,
  serveTranslation,
  type Sources,
  type Translation,
} from "./translate.ts";

/** A token of CoffeeScript's: its kind, its text and where it is, in UTF-16 units. */
type Token = [kind: string, text: string, at: { range: [number, number] }];

/** The part of the compiler's interface that is used. */
export interface Compiler {
  tokens(
    code: string,
    options: { filename: string; literate: boolean },
  ): Token[];
  compile(code: string, options: {
    bare: true;
    filename: string;
    literate: boolean;
    sourceFiles: string[];
    generatedFile: string;
    inlineMap: true;
  }): string;
}

const EXTENSIONS = [".coffee", ".litcoffee", ".coffee.md"];

export function translate(compiler: Compiler, sources: Sources): Translation {
  const { fromBase64 } = Uint8Array as unknown as {
    fromBase64(text: string): Uint8Array;
  };
  const decoder = new TextDecoder();
  const files: Record<string, string> = {}, done = new Set([sources.file]);
  const given = sources.files ?? {};
  const waiting: string[] = [];
  const one = (code: string, path: string) => {
    const literate = !path.endsWith(".coffee") &&
      EXTENSIONS.some((end) => path.endsWith(end));
    const name = path.slice(path.lastIndexOf("/") + 1);
    try {
      if (!literate) {
        code = withPlaces(compiler, code, path, (wanted) => {
          const found = ["", ...EXTENSIONS].map((end) => wanted + end)
            .find((file) =>
              file in given && EXTENSIONS.some((end) => file.endsWith(end))
            );
          if (found !== undefined) waiting.push(found);
          return found;
        });
      }
      return compiler.compile(code, {
        bare: true,
        filename: path.replace(/^\/workspace\//, ""),
        literate,
        sourceFiles: [name],
        generatedFile: `${name}.js`,
        inlineMap: true,
      }).replace(/\n\/\/# sourceURL=[^\n]*\s*$/, "\n");
    } catch (thrown) {
      const { location } = thrown as { location?: unknown };
      if (location === undefined) throw thrown;
      throw new Refused(String(thrown)); // which has the line and a mark below it
    }
  };
  const code = one(sources.code, sources.file);
  for (let path; (path = waiting.pop()) !== undefined;) {
    if (done.has(path)) continue;
    done.add(path);
    files[`${path}.js`] = one(decoder.decode(fromBase64(given[path]!)), path);
  }
  return { language: "javascript", code, files };
}

/** Names in a program's imports the JavaScript that is made of what they name. */
function withPlaces(
  compiler: Compiler,
  code: string,
  path: string,
  find: (path: string) => string | undefined,
): string {
  if (!/\b(import|require|from)\b/.test(code)) return code;
  const tokens = compiler.tokens(code, { filename: path, literate: false });
  const directory = path.slice(0, path.lastIndexOf("/"));
  let made = "", from = 0;
  for (const [i, [kind, text, at]] of tokens.entries()) {
    if (kind !== "STRING" || !/^(['"])\.{1,2}\/.*\1$/.test(text)) continue;
    const [before, beforeThat] = [tokens[i - 1], tokens[i - 2]];
    const isCall = before?.[0] === "CALL_START" &&
      (beforeThat?.[0] === "DYNAMIC_IMPORT" || beforeThat?.[1] === "require");
    if (!isCall && before?.[0] !== "FROM" && before?.[0] !== "IMPORT") continue;
    const wanted = text.slice(1, -1);
    const found = find(new URL(wanted, `file://${directory}/`).pathname);
    if (found === undefined) continue;
    const [start, end] = at.range;
    const name = wanted.slice(0, wanted.lastIndexOf("/") + 1) +
      found.slice(found.lastIndexOf("/") + 1);
    made += code.slice(from, start) + `"${name}.js"`;
    from = end;
  }
  return made + code.slice(from);
}

if (import.meta.main) {
  await serveTranslation(async ({ parts }) => {
    const at =
      `${parts.coffeescript}/lib/coffeescript-browser-compiler-modern/coffeescript.js`;
    // It asks for variables of the environment, of which there are none.
    Object.defineProperty(globalThis, "process", { value: { env: {} } });
    const { default: compiler } = await import(`file://${at}`);
    return (sources) => translate(compiler, sources);
  });
}
