/// <reference lib="dom" />
import { Editor } from "./editor.ts";
import { byID, element } from "./element.ts";
import { examples } from "./examples.ts";
import { Files } from "./files.ts";
import { fromFragment, type Program, toFragment } from "./link.ts";
import { Client, TokenError } from "./mcp.ts";
import { Cell, type RunOutput } from "./output.ts";
import { showStatus, type Status } from "./status.ts";

/** Names in sessionStorage: what a tab keeps, and no other sees. */
const tokenName = "rillbox-token", sessionName = "rillbox-session";
/** How often the status is asked for, in milliseconds. */
const statusPause = 10_000;
/** How many cells of a session are shown. */
const maxCells = 50;

const languages = byID<"select">("language"),
  example = byID<"select">("example");
const run = byID<"button">("run"),
  stop = byID<"button">("stop"),
  keep = byID<"input">("keep");
const stdin = byID<"textarea">("stdin"), args = byID<"textarea">("args");
const packages = byID<"input">("packages"),
  permissions = byID<"input">("permissions");
const cells = byID<"div">("cells"), state = byID<"p">("state");
const tokenForm = byID<"form">("token-form"), token = byID<"input">("token");

const client = new Client(document.body.dataset.endpoint!);
client.token = sessionStorage.getItem(tokenName) ?? "";
const editor = new Editor(byID<"div">("editor"), () => void runProgram());
const files = new Files(client, session, say);

let running: { cancel: () => void } | undefined;

function say(text: string): void {
  state.textContent = text;
}

/** The name of this tab's session. */
function session(): string {
  let name = sessionStorage.getItem(sessionName);
  if (!name) {
    name = "page-" +
      [...crypto.getRandomValues(new Uint8Array(8))].map((b) =>
        b.toString(16).padStart(2, "0")
      ).join("");
    sessionStorage.setItem(sessionName, name);
  }
  return name;
}

/** Asks for a token, and says why. */
function askForToken(why: string): void {
  byID<"p">("token-why").textContent = why;
  tokenForm.hidden = false;
  token.focus();
}

/** Shows why something failed. */
function failed(error: unknown): string {
  const why = error instanceof Error ? error.message : String(error);
  if (error instanceof TokenError) askForToken(why);
  say(why);
  return why;
}

function program(): Program {
  const words = (text: string) => text.split(/\s+/).filter(Boolean);
  const p: Program = { language: languages.value, code: editor.code };
  if (stdin.value) p.stdin = stdin.value;
  if (args.value) p.args = args.value.replace(/\n$/, "").split("\n");
  if (packages.value.trim()) p.packages = words(packages.value);
  const granted = permissions.value.trim();
  if (granted) p.permissions = granted === "none" ? [] : words(granted);
  return p;
}

function show(p: Program): void {
  addLanguages([p.language]);
  languages.value = p.language;
  editor.language = p.language;
  editor.code = p.code;
  stdin.value = p.stdin ?? "";
  args.value = p.args?.join("\n") ?? "";
  packages.value = p.packages?.join(" ") ?? "";
  permissions.value = p.permissions ? p.permissions.join(" ") || "none" : "";
  byID<"details">("options").open ||= Boolean(
    p.stdin || p.args || p.packages || p.permissions,
  );
}

async function runProgram(): Promise<void> {
  if (running) return;
  const kept = keep.checked;
  const p = program();
  const cell = new Cell(kept ? p.code : undefined);
  if (!kept) cells.replaceChildren();
  else while (cells.childElementCount >= maxCells) cells.firstChild!.remove();
  cells.append(cell.node);
  const cut = new AbortController();
  let execution = "";
  running = {
    // A cancelled run still answers with what it printed; one whose id is not known can
    // only be left.
    cancel: () => {
      say("Stopping…");
      if (!execution) return cut.abort();
      client.call("cancel_execution", { execution_id: execution })
        .then((answer) => answer.isError && cut.abort(), () => cut.abort());
    },
  };
  run.disabled = true;
  stop.disabled = false;
  say("Running…");
  try {
    const answer = await client.call<RunOutput>("run_code", {
      ...p,
      ...(kept && { session_id: session() }),
    }, {
      signal: cut.signal,
      heard: (progress) => {
        execution ||= progress.execution;
        cell.hear(progress.event, progress.message);
      },
    });
    cell.finish(answer);
    const out = answer.structuredContent;
    say(
      out
        ? `Ended: ${out.status}, exit code ${out.exit_code}, ${out.duration_ms} ms.`
        : "It was not run.",
    );
    if (kept) await files.refresh();
  } catch (error) {
    if (cut.signal.aborted) {
      cell.fail("Stopped.");
      say("Stopped.");
    } else cell.fail(failed(error));
  } finally {
    running = undefined;
    run.disabled = false;
    if (document.activeElement === stop) run.focus();
    stop.disabled = true;
  }
}

function addLanguages(names: string[]): void {
  const known = [...languages.options].map((o) => o.value);
  for (const name of names) {
    if (!known.includes(name)) languages.add(new Option(name));
  }
}

async function refreshStatus(): Promise<void> {
  try {
    const status = await client.get<Status>("/status");
    addLanguages(status.runtimes.flatMap((r) => r.languages));
    showStatus(status);
  } catch (error) {
    if (error instanceof TokenError && tokenForm.hidden) {
      askForToken(error.message);
    }
    const why = error instanceof Error ? error.message : String(error);
    byID<"dl">("status-list").replaceChildren(
      element("dt", { textContent: "Server" }),
      element("dd", { textContent: why }),
    );
  }
}

async function link(): Promise<void> {
  history.replaceState(null, "", await toFragment(program()));
  const field = byID<"input">("link");
  field.hidden = false;
  field.value = location.href;
  field.select();
  try {
    await navigator.clipboard.writeText(location.href);
    say(
      "The link to this program is in the clipboard. The server never gets what follows its #.",
    );
  } catch {
    say(
      "Copy the link to this program from the field. The server never gets what follows its #.",
    );
  }
}

async function readLink(): Promise<void> {
  try {
    const p = await fromFragment(location.hash);
    if (!p) return;
    show(p);
    say("This program is the link's: read it before you run it.");
  } catch (error) {
    say(
      `The link can't be read: ${
        error instanceof Error ? error.message : error
      }`,
    );
  }
}

addLanguages(["python", "javascript", "typescript"]);
for (const language of new Set(examples.map((e) => e.language))) {
  const group = element("optgroup", { label: language });
  for (const [i, e] of examples.entries()) {
    if (e.language === language) group.append(new Option(e.title, String(i)));
  }
  example.append(group);
}
example.addEventListener("change", () => {
  const chosen = examples[Number(example.value)];
  if (example.value && chosen) show(chosen);
});
languages.addEventListener("change", () => editor.language = languages.value);
byID<"form">("bar").addEventListener("submit", (event) => {
  event.preventDefault();
  void runProgram();
});
document.addEventListener("keydown", (event) => {
  if (
    event.key === "Enter" && (event.ctrlKey || event.metaKey) &&
    !event.defaultPrevented
  ) {
    event.preventDefault();
    void runProgram();
  }
});
stop.addEventListener("click", () => running?.cancel());
byID<"button">("share").addEventListener(
  "click",
  () => void link().catch(failed),
);
keep.addEventListener("change", () => {
  byID<"fieldset">("files").disabled = !keep.checked;
  if (keep.checked) files.refresh().catch(failed);
  else files.clear();
});
byID<"button">("forget").addEventListener("click", async () => {
  try {
    await client.call("destroy_session", { session_id: session() });
    sessionStorage.removeItem(sessionName);
    cells.replaceChildren();
    files.clear();
    say("The session has ended: its variables and files are gone.");
  } catch (error) {
    failed(error);
  }
});
byID<"button">("token-open").addEventListener("click", () => {
  if (!tokenForm.hidden) tokenForm.hidden = true;
  else askForToken("This tab keeps the token until it is closed.");
});
tokenForm.addEventListener("submit", (event) => {
  event.preventDefault();
  client.token = token.value.trim();
  sessionStorage.setItem(tokenName, client.token);
  token.value = "";
  tokenForm.hidden = true;
  say("The token is set.");
  run.focus();
  void refreshStatus();
});
addEventListener("hashchange", () => void readLink());

show(examples[0]!);
await readLink();
await refreshStatus();
setInterval(() => {
  if (!document.hidden && tokenForm.hidden) void refreshStatus();
}, statusPause);
