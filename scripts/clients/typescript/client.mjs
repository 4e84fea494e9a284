// Runs the shared programs through the official TypeScript MCP SDK.
//
//   node client.mjs SDK VERSION SERVER PROGRAMS.json WORD [RESULTS.json]
//
// SDK is "sdk", its first generation, or "client", its second. VERSION is that of the
// protocol which must come of the negotiation. SERVER is a URL, or the program that is
// started as `SERVER serve`. Prints one line per program, then "N passed, N failed". Only
// programs and checks that have WORD in their name are run.
//
// With RESULTS.json, all programs in JavaScript and TypeScript are run, and those that
// every client runs; else only these. The file is written by a first run. When it is
// there, each program must give the same result again. With RILLBOX_OFFLINE=1, only
// programs in JavaScript and TypeScript are run, and of the checks those about packages.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { isDeepStrictEqual } from "node:util";

const [sdk, wanted, server, programsFile, word, resultsFile] = process.argv
  .slice(2);
const first = sdk === "sdk";
const [{ Client }, { StdioClientTransport }, http, types] = await Promise.all(
  first
    ? [
      "client/index.js",
      "client/stdio.js",
      "client/streamableHttp.js",
      "types.js",
    ]
      .map((file) => import(`@modelcontextprotocol/sdk/${file}`))
    : ["client", "client/stdio", "client", "client"]
      .map((module) => import(`@modelcontextprotocol/${module}`)),
);
const offline = process.env.RILLBOX_OFFLINE === "1";
const overHTTP = server.startsWith("http");
const { programs } = JSON.parse(readFileSync(programsFile, "utf8"));
const earlier = resultsFile && existsSync(resultsFile)
  ? JSON.parse(readFileSync(resultsFile, "utf8"))
  : null;

/** A picture of one pixel, as PNG. */
const dot =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

class Wrong extends Error {}

function check(condition, what) {
  if (!condition) throw new Wrong(what);
}

const show = (value) => JSON.stringify(value);

/** What is measured, and so differs from one run to the next. */
const measured = ["duration_ms", "cpu_ms", "peak_memory_bytes", "execution_id"];

/** Returns what of a result must be the same when the program runs again. */
function lasting(structured) {
  const kept = Object.fromEntries(
    Object.entries(structured).filter(([name]) => !measured.includes(name)),
  );
  kept.packages = structured.packages
    .map((p) => [p.name, p.version, p.source])
    .sort();
  kept.notes &&= kept.notes // one may name the execution
    .map((note) => note.replace(/executions\/\w+/, "executions/ID"));
  return kept;
}

function compare(got, want, what) {
  if (want !== null && typeof want === "object" && "match" in want) {
    check(
      new RegExp(want.match).test(got),
      `${what} is ${show(got)}, want a match of ${want.match}`,
    );
  } else {
    check(
      isDeepStrictEqual(got, want),
      `${what} is ${show(got)}, want ${show(want)}`,
    );
  }
}

/** Compares a tool's answer, and the progress heard meanwhile, with a program's expect. */
function judge(expect, result, heard) {
  const text = result.content.map((part) => part.text).join("\n");
  const structured = result.structuredContent;
  check(structured, `no structured result, but the text ${show(text)}`);
  const status = expect.status ?? "completed";
  check(structured.status === status, `status is not ${status}: ${text}`);
  check(
    Boolean(result.isError) === (status !== "completed"),
    `isError is ${result.isError}`,
  );
  for (const name of ["result", "exit_code", "stdout", "stderr", "truncated"]) {
    if (name in expect) compare(structured[name], expect[name], name);
  }
  for (const [name, want] of Object.entries(expect.error ?? {})) {
    compare(
      structured.error?.[name] ?? "",
      name === "name" ? want : { match: want },
      `error.${name}`,
    );
  }
  const packages = Object.fromEntries(
    structured.packages.map((p) => [p.name, p.source]),
  );
  for (const [name, source] of Object.entries(expect.packages ?? {})) {
    check(name in packages, `package ${name} is not among ${show(packages)}`);
    check(
      source === "*" || source === packages[name],
      `package ${name} came from ${packages[name]}`,
    );
  }
  if (expect.text) {
    check(new RegExp(expect.text).test(text), `the text is ${show(text)}`);
  }
  judgeProgress(expect.progress ?? [], heard);
}

function judgeProgress(wanted, heard) {
  check(
    heard[0]?.message.startsWith("started execution "),
    `progress begins ${show(heard[0])}`,
  );
  heard.slice(1).forEach((now, i) => {
    check(
      heard[i].progress < now.progress,
      `progress went from ${show(heard[i])} to ${show(now)}`,
    );
  });
  const rest = heard.map((h) => h.message);
  for (const want of wanted) {
    while (rest.length > 0 && !rest[0].startsWith(want)) rest.shift();
    check(rest.length > 0, `progress lacks ${show(want)}: ${show(heard)}`);
    rest.shift();
  }
}

const client = new Client(
  { name: "rillbox-typescript-client", version: "1.0.0" },
  { versionNegotiation: { mode: wanted < "2026" ? "legacy" : "auto" } },
);
const transport = overHTTP
  ? new http.StreamableHTTPClientTransport(new URL(server))
  : new StdioClientTransport({
    command: server,
    args: ["serve"],
    env: process.env,
    stderr: "inherit",
  });
let spoken; // the version of the protocol; the first generation tells its transport alone
transport.setProtocolVersion = ((set) => (version) => {
  spoken = version;
  set?.call(transport, version);
})(transport.setProtocolVersion);
await client.connect(transport);

async function call(name, args, { onMessage, signal } = {}) {
  const heard = [];
  const options = {
    timeout: 200_000, // less than the server lets a program run
    signal,
    onprogress: ({ progress, message }) => {
      heard.push({ progress, message });
      onMessage?.(message);
    },
  };
  const request = { name, arguments: args };
  const result =
    await (first
      ? client.callTool(request, undefined, options)
      : client.callTool(request, options));
  return { result, heard };
}

async function ask(name, args) {
  const { result } = await call(name, args);
  check(!result.isError, result.content[0].text);
  return result;
}

async function run({ expect, code, ...rest }) {
  for (const notSent of ["name", "every", "offline"]) delete rest[notSent];
  const { result, heard } = await call("run_code", {
    ...rest,
    code: code.join("\n"),
  });
  judge(expect, result, heard);
  return lasting(result.structuredContent);
}

const checks = {
  "the protocol is as wanted"() {
    compare(
      client.getNegotiatedProtocolVersion?.() ?? spoken,
      wanted,
      "the protocol",
    );
  },

  async "the tools are described"() {
    const { tools } = await client.listTools();
    const names = tools.map((tool) => tool.name).sort();
    compare(names, [
      "cancel_execution",
      "create_session",
      "delete_file",
      "destroy_session",
      "install_packages",
      "list_files",
      "list_runtimes",
      "list_sessions",
      "read_file",
      "reset_session",
      "run_code",
      "write_file",
    ], "tools");
    for (const tool of tools) {
      check(
        tool.title && tool.description && tool.outputSchema,
        `${tool.name} is bare`,
      );
    }
  },

  async "an analysis in steps"() {
    const made = await ask("create_session", { language: "ts" });
    const { session_id } = made.structuredContent;
    let text = "n,group,value\n";
    for (let n = 0; n < 100_000; n++) text += `${n},${n % 7},${n * n % 1000}\n`;
    await ask("write_file", { session_id, path: "in.csv", content: text });
    await ask("run_code", {
      session_id,
      code: `const totals: number[] = Array(7).fill(0);
for (const line of Deno.readTextFileSync("in.csv").trim().split("\\n").slice(1)) {
  const [, group, value] = line.split(",").map(Number);
  totals[group] += value;
}`,
    });
    const total = await ask("run_code", {
      session_id,
      code: "totals.reduce((a, b) => a + b)",
    });
    let want = 0;
    for (let n = 0; n < 100_000; n++) want += n * n % 1000;
    compare(total.structuredContent.result, want, "the total");
    const drawn = await ask("run_code", {
      session_id,
      code:
        `const bars = totals.map((t, g) => \`<rect x="\${20 * g}" height="\${t / 1e5}" width="18"/>\`);
const svg = \`<svg xmlns="http://www.w3.org/2000/svg">\${bars.join("")}</svg>\`;
Deno.writeTextFileSync("bars.svg", svg);
({ [Symbol.for("Jupyter.display")]: () => ({ "image/svg+xml": svg }) })`,
    });
    const kinds = drawn.content.map((part) => part.type);
    check(
      kinds.includes("resource") && kinds.includes("resource_link"),
      `the drawing's content is ${kinds}`,
    );
    const back = await ask("read_file", { session_id, path: "bars.svg" });
    check(
      back.structuredContent.content.startsWith("<svg"),
      back.structuredContent.content,
    );
    const { contents } = await client.readResource({
      uri: drawn.structuredContent.files[0].uri,
    });
    check(contents[0].text.startsWith("<svg"), show(contents));
    const picture = await ask("run_code", {
      session_id,
      code:
        `({ [Symbol.for("Jupyter.display")]: () => ({ "image/png": "${dot}" }) })`,
    });
    const image = picture.content.find((part) => part.type === "image");
    compare([image?.mimeType, image?.data], ["image/png", dot], "the picture");
    await ask("destroy_session", { session_id });
  },

  async "wrong arguments are explained"() {
    for (
      const [args, want] of [
        [{ language: "cobol", code: "1" }, /COBOL can't run here/],
        [{ language: "js" }, /needs code/],
        [{ language: "js", code: "1", packages: "six" }, /must be a list/],
        [{ language: "js", code: "1", timeout_seconds: 1e6 }, /out of range/],
        [{ language: "js", code: "1", shell: true }, /it takes language, code/],
      ]
    ) {
      const { result } = await call("run_code", args);
      check(
        result.isError && want.test(result.content[0].text),
        `${show(args)} gave ${show(result.content)}`,
      );
    }
  },

  async "packages are installed"() {
    const result = await ask("install_packages", {
      language: "ts",
      packages: ["npm:zod@3"],
    });
    const names = result.structuredContent.packages.map((p) => p.name);
    check(names.includes("zod"), `zod@3 resolved to ${names}`);
  },

  async "cancel_execution ends a run"() {
    let started;
    const id = new Promise((resolve) => started = resolve);
    const run = call("run_code", { language: "ts", code: "for (;;);" }, {
      onMessage: (m) => started(m),
    });
    check(await Promise.race([id, run.then(() => "")]), "no execution began");
    const execution_id = (await id).replace("started execution ", "");
    await ask("cancel_execution", { execution_id });
    const { result } = await run;
    check(
      result.isError && result.structuredContent.status === "cancelled",
      show(result),
    );
  },

  // The session's next run is answered, so the one before no longer goes on. If that could
  // not be interrupted, its process was killed, and the answer says so.
  async "a cancelled call ends its run"() {
    const made = await ask("create_session", { language: "ts" });
    const { session_id } = made.structuredContent;
    const controller = new AbortController();
    const run = call("run_code", { session_id, code: "for (;;);" }, {
      signal: controller.signal,
      onMessage: () => controller.abort(),
    });
    check(
      await run.then(() => false, () => true),
      "the cancelled call gave a result",
    );
    const { result } = await call("run_code", { session_id, code: "1 + 1" });
    check(
      ["completed", "crashed"].includes(result.structuredContent.status),
      result.content[0].text,
    );
    await ask("destroy_session", { session_id });
  },

  async "runs at once do not mix"() {
    await Promise.all([1, 2, 3, 4, 5, 6].map(async (n) => {
      const code =
        `console.log(${n}); await new Promise((r) => setTimeout(r, 200)); console.log(${n})`;
      const { result, heard } = await call("run_code", {
        language: "js",
        code,
      });
      compare(result.structuredContent.stdout, `${n}\n${n}\n`, "stdout");
      for (const { message } of heard) {
        const [label, output] = message.split("stdout: ");
        check(
          label || [`${n}`, `${n}\n${n}`].includes(output.trim()),
          message,
        );
      }
    }));
  },

  async "log notifications come at the level asked for"() {
    const events = [];
    client.setNotificationHandler(
      first ? types.LoggingMessageNotificationSchema : "notifications/message",
      ({ params }) => {
        events.push(`${params.level} ${params.data.event}`);
      },
    );
    await client.setLoggingLevel("debug");
    await call("run_code", { language: "js", code: "console.log(1)" });
    for (const want of ["info started", "debug stdout", "info ended"]) {
      check(events.includes(want), `no ${want} in ${show(events)}`);
    }
  },
};

if (wanted >= "2026") { // which has no such level
  delete checks["log notifications come at the level asked for"];
}

let passed = 0, failed = 0;
async function report(name, work) {
  try {
    await work();
  } catch (error) {
    failed++;
    console.log(
      `FAIL  ${name}: ${
        error instanceof Wrong ? "" : error.name + ": "
      }${error.message}`,
    );
    return;
  }
  passed++;
  console.log(`ok    ${name}`);
}

const { version } = createRequire(import.meta.url)(
  `./node_modules/@modelcontextprotocol/${sdk}/package.json`,
);
console.log(
  `# TypeScript SDK ${version}, ${
    overHTTP ? "HTTP" : "stdio"
  }, protocol ${wanted}`,
);
const now = {};
for (const program of programs) {
  const mine = !program.language.startsWith("py");
  const chosen = offline
    ? mine && program.offline !== false
    : program.every || mine && resultsFile;
  if (!chosen || !program.name.includes(word)) continue;
  await report(program.name, async () => {
    const outcome = now[program.name] = await run(program);
    if (earlier) {
      const was = earlier[program.name];
      check(
        isDeepStrictEqual(outcome, was),
        `the result was ${show(was)}, and is ${show(outcome)}`,
      );
    }
  });
}
for (const [name, work] of Object.entries(checks)) {
  if (name === "packages are installed" ? !resultsFile : offline) continue;
  if (name.includes(word)) await report(name, work);
}
await client.close();
if (resultsFile && !earlier && !word) {
  writeFileSync(resultsFile, JSON.stringify(now, null, 1));
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);
