// Runs the shared programs through the official TypeScript MCP SDK.
//
//   node client.mjs SDK SERVER PROGRAMS.json RESULTS.json [WORD]
//
// SDK is "client", the newer one, which speaks the newest version of the protocol, or
// "sdk", the one before it. SERVER is a URL, or the program that is started as `SERVER
// serve`. Prints one line per program, then "N passed, N failed". With WORD, only the programs that have it in their name are run.
// RESULTS.json is written by a first run. When it is there, each program must give
// the same result again.
//
// With RILLBOX_OFFLINE=1, of the programs only those in JavaScript and TypeScript are
// run, as those in Python are by the Python client, and of the checks that of packages.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

const [sdk, server, programsFile, resultsFile, word = ""] = process.argv
  .slice(2);
const isOld = sdk === "sdk";
const [{ Client }, { StdioClientTransport }, http, types] = await Promise.all(
  isOld
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
const earlier = existsSync(resultsFile)
  ? JSON.parse(readFileSync(resultsFile, "utf8"))
  : null;

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
  { versionNegotiation: { mode: "auto" } },
);
await client.connect(
  overHTTP
    ? new http.StreamableHTTPClientTransport(new URL(server))
    : new StdioClientTransport({
      command: server,
      args: ["serve"],
      env: process.env,
      stderr: "inherit",
    }),
);

async function call(name, args, { onMessage, signal } = {}) {
  const heard = [];
  const options = {
    timeout: 300_000,
    signal,
    onprogress: ({ progress, message }) => {
      heard.push({ progress, message });
      onMessage?.(message);
    },
  };
  const request = { name, arguments: args };
  const result =
    await (isOld
      ? client.callTool(request, undefined, options)
      : client.callTool(request, options));
  return { result, heard };
}

async function run({ name: _name, offline: _offline, expect, code, ...rest }) {
  const { result, heard } = await call("run_code", {
    ...rest,
    code: code.join("\n"),
  });
  judge(expect, result, heard);
  return lasting(result.structuredContent);
}

const checks = {
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
    const ask = async (name, args) => {
      const { result } = await call(name, args);
      check(!result.isError, result.content[0].text);
      return result;
    };
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
    await ask("destroy_session", { session_id });
  },

  async "a wrong argument is explained"() {
    const { result } = await call("run_code", {
      language: "python",
      code: "1",
      packages: "six",
    });
    check(
      result.isError && /packages must be a list/.test(result.content[0].text),
      result.content[0].text,
    );
  },

  async "packages are installed"() {
    const { result } = await call("install_packages", {
      language: "ts",
      packages: ["npm:zod@3"],
    });
    check(!result.isError, result.content[0].text);
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
    const { result: answer } = await call("cancel_execution", { execution_id });
    check(!answer.isError, answer.content[0].text);
    const { result } = await run;
    check(
      result.isError && result.structuredContent.status === "cancelled",
      show(result),
    );
  },

  async "a cancelled call leaves the session well"() {
    const controller = new AbortController();
    const run = call("run_code", { language: "ts", code: "for (;;);" }, {
      signal: controller.signal,
      onMessage: () => controller.abort(),
    });
    check(
      await run.then(() => false, () => true),
      "the cancelled call gave a result",
    );
    const { result } = await call("run_code", {
      language: "ts",
      code: "export default 1",
    });
    compare(result.structuredContent.result, 1, "result");
  },

  async "log notifications come at the level asked for"() {
    if (!isOld) return; // the newest version of the protocol has no such level
    const events = [];
    client.setNotificationHandler(
      types.LoggingMessageNotificationSchema,
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

console.log(
  `# TypeScript: ${sdk}, ${overHTTP ? "HTTP" : "stdio"}`,
);
const now = {};
const chosen = overHTTP // what a program gives does not depend on the door
  ? new Map(programs.toReversed().map((p) => [p.language, p])).values()
  : programs;
for (const program of chosen) {
  const again = !program.language.startsWith("py") && program.offline !== false;
  if (!program.name.includes(word) || offline && !again) continue;
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
  const again = name === "packages are installed";
  if (name.includes(word) && (again || !offline)) await report(name, work);
}
await client.close();
if (!earlier && !word) writeFileSync(resultsFile, JSON.stringify(now, null, 1));
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);
