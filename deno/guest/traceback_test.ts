import { describeError, type Source } from "./traceback.ts";

const source: Source = {
  url: "file:///tmp/run/main.ts",
  name: "main.ts",
  prelude: { line: 2, column: 1, text: "PRELUDE;" },
};

function error(name: string, message: string, ...frames: string[]): Error {
  const e = new Error(message);
  e.name = name;
  e.stack = [`${name}: ${message}`, ...frames.map((f) => `    at ${f}`)]
    .join(
      "\n",
    );
  return e;
}

function assertShows(thrown: unknown, ...expected: string[]): void {
  const { traceback } = describeError(thrown, source, 1 << 20);
  if (traceback !== expected.join("\n")) {
    throw new Error(`Expected ${expected.join("\n")}\ngot ${traceback}`);
  }
}

Deno.test("keeps the guest's frames, by short names, and its packages'", () => {
  assertShows(
    error(
      "E",
      "m",
      "f (file:///tmp/run/main.ts:3:9)",
      "g (file:///x/deno/npm/registry.example/@s/p/1.2.3/lib/a.js:1:2)",
      "Array.map (<anonymous>)",
      "file:///tmp/run/main.ts:5:1",
      "Module._compile (node:module:1:2)",
      "Object.x (ext:core/01_core.js:1:2)",
      "new Promise (<anonymous>)",
      `async ${import.meta.resolve("./traceback.ts")}:1:2`,
    ),
    "E: m",
    "    at f (main.ts:3:9)",
    "    at g (npm:@s/p@1.2.3/lib/a.js:1:2)",
    "    at Array.map (<anonymous>)",
    "    at main.ts:5:1",
  );
});

Deno.test("takes the prelude off the columns of its line only", () => {
  assertShows(
    error(
      "E",
      "",
      "file:///tmp/run/main.ts:2:12",
      "file:///tmp/run/main.ts:3:12",
    ),
    "E",
    "    at main.ts:2:4",
    "    at main.ts:3:12",
  );
});

Deno.test("takes the prelude out of a syntax error's excerpt", () => {
  const e = new TypeError(
    "SyntaxError: Bad\n  |\n2 | PRELUDE;const = 3\n  |               ~\n    at file:///tmp/run/main.ts:2:15",
  );
  e.stack = `TypeError: ${e.message}`;
  assertShows(
    e,
    "SyntaxError: Bad\n  |\n2 | const = 3\n  |       ~\n    at main.ts:2:7",
  );
});

Deno.test("shows what was thrown, whatever it is", () => {
  assertShows("text", "Uncaught: text");
  assertShows(undefined, "Uncaught: undefined");
  assertShows({ a: 1 }, "Uncaught: { a: 1 }");
  const hostile = new Proxy(new Error("x"), {
    get() {
      throw new Error("no");
    },
  });
  assertShows(hostile, "");
});

Deno.test("shows causes, also circular ones, to a depth", () => {
  const e = error("E", "m");
  e.cause = e;
  const { traceback } = describeError(e, source, 1 << 20);
  if (traceback.match(/Caused by/g)?.length !== 5) throw new Error(traceback);
});

Deno.test("bounds what it shows", () => {
  const e = error(
    "E".repeat(1000),
    "m".repeat(100_000),
    ...Array(1000).fill("file:///tmp/run/main.ts:9:9"),
  );
  const { name, message, traceback } = describeError(e, source, 1000);
  if (name.length + message.length + traceback.length > 1200) {
    throw new Error(`${name.length} ${message.length} ${traceback.length}`);
  }
});

Deno.test("says why fetch failed, and how a certificate is trusted", () => {
  const failed = error("TypeError", "fetch failed", "main.ts:1:7");
  failed.cause = error(
    "Error",
    "error sending request: invalid peer certificate: UnknownIssuer",
  );
  assertShows(
    failed,
    "TypeError: fetch failed: error sending request: invalid peer certificate: UnknownIssuer: the operator can have a certificate's issuer trusted with DENO_CERT=FILE in the environment that Rillbox starts with",
    "    at main.ts:1:7",
  );
});
