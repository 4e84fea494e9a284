import { Screen } from "./display.ts";

const PNG = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const JUPYTER = Symbol.for("Jupyter.display");

interface Sent {
  data?: Record<string, string>;
  note?: string;
  left_out?: number;
}

function screen(limit = 1 << 20): [Screen, Sent[]] {
  const sent: Sent[] = [];
  return [new Screen((frame) => sent.push(JSON.parse(frame)), limit), sent];
}

function assertEquals(actual: unknown, expected: unknown): void {
  const [a, b] = [Deno.inspect(actual), Deno.inspect(expected)];
  if (a !== b) throw new Error(`Expected ${b}, got ${a}`);
}

/** The forms without the text that a value has in any case. */
function rich(sent: Sent | undefined): Record<string, string> | undefined {
  if (sent?.data === undefined) return undefined;
  const { "text/plain": _, ...others } = sent.data;
  return others;
}

Deno.test("values have the forms that notebooks give them", async () => {
  for (
    const [value, want] of [
      [{ [JUPYTER]: () => ({ "text/html": "<b>" }) }, { "text/html": "<b>" }],
      [{ [JUPYTER]: () => Promise.resolve({ "text/x": "y" }) }, {
        "text/x": "y",
      }],
      [{ [JUPYTER]: () => ({ "application/json": { a: 1 } }) }, {
        "application/json": '{"a":1}',
      }],
      [{ [JUPYTER]: () => ({ "image/png": PNG }) }, {
        "image/png": "iVBORw0KGgo=",
      }],
      [PNG, { "image/png": "iVBORw0KGgo=" }],
      [new Uint8Array([0xff, 0xd8, 0xff]), { "image/jpeg": "/9j/" }],
      [{ toDataURL: () => "data:image/png;base64,iVBO" }, {
        "image/png": "iVBO",
      }],
      [{ outerHTML: "<svg></svg>" }, { "image/svg+xml": "<svg></svg>" }],
      [{ outerHTML: "<p></p>" }, { "text/html": "<p></p>" }],
    ]
  ) {
    const [shown, sent] = screen();
    await shown.finish(value);
    assertEquals(rich(sent[0]), want);
  }
});

Deno.test("echoed values are shown in any case, strings in quotes", async () => {
  const [shown, sent] = screen();
  for (const value of [undefined, null, "a", [1, "b"], () => {}]) {
    await shown.finish(value, true);
  }
  assertEquals(sent.map((s) => s.data?.["text/plain"]), [
    "null",
    '"a"',
    '[ 1, "b" ]',
    "[Function (anonymous)]",
  ]);
});

Deno.test("values that have only their text are not shown by themselves", async () => {
  const [shown, sent] = screen();
  const plain = [
    undefined,
    null,
    3,
    "text",
    { a: 1 },
    new Uint8Array(3),
    () => 1,
  ];
  for (const value of plain) await shown.finish(value);
  assertEquals(sent, []);
  for (const value of plain) await shown.display(value);
  assertEquals(sent.map((s) => s.data?.["text/plain"]?.slice(0, 12)), [
    "undefined",
    "null",
    "3",
    "text",
    "{ a: 1 }",
    "Uint8Array(3",
    "[Function (a",
  ]);
});

Deno.test("display() is done when it returns, and takes bundles", async () => {
  const [shown, sent] = screen();
  const done = shown.display({ "image/png": PNG, "text/plain": "p" }, {
    raw: true,
  });
  assertEquals(sent[0]?.data, {
    "image/png": "iVBORw0KGgo=",
    "text/plain": "p",
  });
  await done;
  let refused = false;
  await shown.display(3, { raw: true }).catch(() => refused = true);
  assertEquals(refused, true);
});

Deno.test("a method that fails leaves the text and a note", async () => {
  for (
    const method of [
      () => {
        throw new Error("no");
      },
      () => Promise.reject(new Error("no")),
    ]
  ) {
    const [shown, sent] = screen();
    await shown.finish({ [JUPYTER]: method });
    assertEquals(
      sent[0]?.note,
      "A value can't be shown as it says: Error: no.",
    );
    assertEquals(rich(sent[0]), {});
  }
});

Deno.test("what is too large is left out and counted", async () => {
  const limit = 4096 + 300;
  const [shown, sent] = screen(limit);
  const long = "x".repeat(1000);
  await shown.display({ "text/html": long, "text/x": "y" }, { raw: true });
  assertEquals(sent[0]?.data, { "text/x": "y" });
  assertEquals(
    /text\/html of 1000 bytes is left out/.test(sent[0]?.note ?? ""),
    true,
  );
  for (let i = 0; i < 3; i++) {
    await shown.display({ "text/x": long }, { raw: true });
  }
  shown.end();
  assertEquals(sent.slice(1).map((s) => s.left_out), [1, 2, 3]);
});
