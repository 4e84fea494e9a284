import { Client, messages, TokenError } from "./mcp.ts";
import { deepStrictEqual as equal, rejects } from "node:assert/strict";

/** A body that comes a few bytes at a time. */
function slowly(text: string): ReadableStream<Uint8Array<ArrayBuffer>> {
  const bytes = new TextEncoder().encode(text);
  return ReadableStream.from((function* () {
    for (let i = 0; i < bytes.length; i += 3) yield bytes.slice(i, i + 3);
  })());
}

const events = { headers: { "Content-Type": "text/event-stream" } };

Deno.test("events come in parts, and with what is no message", async () => {
  const body =
    ': hello\n\nevent: message\nid: 5\ndata: {"id":1}\n\ndata:\n\ndata: {"id":2,"method":"é"}\n\n';
  const found = [];
  for await (const m of messages(new Response(slowly(body), events))) {
    found.push(m);
  }
  equal(found, [{ id: 1 }, { id: 2, method: "é" }]);
});

Deno.test("calls", async () => {
  const real = globalThis.fetch;
  let response = new Response();
  let sent = new Request("http://localhost");
  globalThis.fetch = (to, init) => {
    sent = new Request(new URL(String(to), "http://localhost"), init);
    return Promise.resolve(response);
  };
  try {
    const client = new Client("/mcp");
    client.token = "secret";
    const heard: unknown[] = [];
    response = new Response(
      'data: {"method":"notifications/progress","params":{"message":"stdout: a","_meta":{"rillbox/event":"stdout","rillbox/execution_id":"e"}}}\n\n' +
        'data: {"id":1,"result":{"content":[]}}\n\n',
      events,
    );
    equal(
      await client.call("run_code", { code: "1" }, {
        heard: (p) => heard.push(p),
      }),
      {
        content: [],
      },
    );
    equal(heard, [{ message: "stdout: a", event: "stdout", execution: "e" }]);
    equal(sent.headers.get("Authorization"), "Bearer secret");
    equal((await sent.json()).params.arguments, { code: "1" });

    response = Response.json({ error: { message: "no" } }, { status: 401 });
    await rejects(client.call("x", {}), TokenError);
    response = Response.json({ error: { message: "too often" } }, {
      status: 429,
    });
    await rejects(client.call("x", {}), /too often/);
    response = new Response("", events);
    await rejects(client.call("x", {}), /ended before/);
    response = new Response("bad gateway", {
      status: 502,
      headers: { "Content-Type": "text/html" },
    });
    await rejects(client.call("x", {}), /502/);
  } finally {
    globalThis.fetch = real;
  }
});
