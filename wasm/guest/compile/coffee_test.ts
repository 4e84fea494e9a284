import { type Compiler, translate } from "./coffee.ts";
import { Refused } from "./translate.ts";

/** Knows of imports what their names are, and gives texts as they are. */
const compiler: Compiler = {
  tokens(code) {
    const tokens: ReturnType<Compiler["tokens"]> = [];
    for (const m of code.matchAll(/from|import|"[^"]*"|\w+/g)) {
      const kind = m[0] === "from"
        ? "FROM"
        : m[0] === "import"
        ? "IMPORT"
        : m[0].startsWith('"')
        ? "STRING"
        : "IDENTIFIER";
      tokens.push([kind, m[0], { range: [m.index, m.index + m[0].length] }]);
    }
    return tokens;
  },
  compile(code, { filename }) {
    if (code.includes("]")) {
      throw Object.assign(
        new SyntaxError(`${filename}:1:1: error: unmatched ]`),
        { location: {} },
      );
    }
    return code;
  },
};

const base64 = btoa;

Deno.test("files that are imported are translated, and named", () => {
  const { code, files } = translate(compiler, {
    code: 'import {a} from "./lib"\nimport "./plain.js"\nx = "./lib"',
    file: "/workspace/src/main.coffee",
    files: {
      "/workspace/src/lib.coffee": base64('import b from "../other.coffee"'),
      "/workspace/other.coffee": base64('import {a} from "./src/lib"'),
      "/workspace/unused.coffee": base64("]"),
    },
  });
  const want =
    'import {a} from "./lib.coffee.js"\nimport "./plain.js"\nx = "./lib"';
  if (code !== want) throw new Error(code);
  const got = JSON.stringify(files);
  const expected = JSON.stringify({
    "/workspace/src/lib.coffee.js": 'import b from "../other.coffee.js"',
    "/workspace/other.coffee.js": 'import {a} from "./src/lib.coffee.js"',
  });
  if (got !== expected) throw new Error(got);
});

Deno.test("what is refused is told in the compiler's words", () => {
  try {
    translate(compiler, { code: "]", file: "/workspace/main.coffee" });
  } catch (error) {
    if (
      error instanceof Refused &&
      error.message.includes("main.coffee:1:1: error: unmatched ]")
    ) return;
    throw error;
  }
  throw new Error("nothing was thrown");
});
