import { FrameWriter, readRequest, type SyncReader } from "./wire.ts";

function assertEquals(actual: unknown, expected: unknown): void {
  const [a, b] = [Deno.inspect(actual), Deno.inspect(expected)];
  if (a !== b) throw new Error(`Expected ${b}, got ${a}`);
}

/** Gives its bytes `step` at a time. */
function reader(text: string, step: number): SyncReader & { left(): string } {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  return {
    readSync(p) {
      if (at === bytes.length) return null;
      const n = Math.min(step, p.length, bytes.length - at);
      p.set(bytes.subarray(at, at + n));
      at += n;
      return n;
    },
    left: () => new TextDecoder().decode(bytes.subarray(at)),
  };
}

Deno.test("readRequest() takes the request and not a byte more", () => {
  for (const step of [1, 3, 1000]) {
    const from = reader('00000014\n{"code":"é!"}rest\nof stdin', step);
    assertEquals(readRequest(from), { code: "é!" });
    assertEquals(from.left(), "rest\nof stdin");
  }
});

Deno.test("readRequest() refuses what is no request", () => {
  for (
    const text of [
      "",
      "00000002",
      "2\n{}",
      "0000000x\n{}",
      "000000002{}",
      "00000009\n{}",
      "00000002\n{]",
      "-0000002\n{}",
    ]
  ) {
    let refused = false;
    try {
      readRequest(reader(text, 10));
    } catch {
      refused = true;
    }
    if (!refused) throw new Error(`Expected ${text} to be refused`);
  }
});

Deno.test("FrameWriter writes one line, also where the pipe takes a byte at a time", () => {
  for (const step of [1, 1000]) {
    let written = "";
    const frames = new FrameWriter({
      writeSync(p) {
        const part = p.subarray(0, step);
        written += new TextDecoder().decode(part);
        return part.length;
      },
    });
    frames.send({ type: "result", value: "a\nb" });
    assertEquals(written, '{"type":"result","value":"a\\nb"}\n');
  }
});
