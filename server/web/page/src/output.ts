/// <reference lib="dom" />
import { Ansi, indexed, type Span } from "./ansi.ts";
import type { Answer } from "./mcp.ts";
import { element } from "./element.ts";

/** run_code's structured result. */
export interface RunOutput {
  status: string;
  exit_code: number;
  duration_ms: number;
  cpu_ms: number;
  peak_memory_bytes: number;
  stdout?: string;
  stderr?: string;
  result?: unknown;
  error?: { name: string; message: string; traceback?: string };
  packages?: { name: string; version: string }[];
  displays?: { text?: Record<string, string>; types?: string[] }[];
  notes?: string[];
  truncated?: Record<string, number>;
}

/** How many lines of a program's output are shown. */
const maxLines = 5000;
/** How much of what came is compared with the answer, in characters. */
const maxHeard = 4 << 20;

/** Printed shows what a program prints, as a terminal would. */
class Printed {
  readonly node = element("pre", {
    className: "printed",
    tabIndex: 0,
    ariaLabel: "Output",
  });
  #ansi = new Ansi();
  #last = element("span");
  #lines = 0;
  #heard = { stdout: "", stderr: "" };

  constructor() {
    this.node.append(this.#last);
  }

  write(text: string, stream: "stdout" | "stderr"): void {
    if (this.#heard[stream].length < maxHeard) this.#heard[stream] += text;
    const atEnd =
      this.node.scrollHeight - this.node.scrollTop - this.node.clientHeight <
        40;
    const ended = this.#ansi.write(text, stream === "stderr");
    for (const line of ended.slice(-maxLines)) {
      const node = element("span");
      node.append(...line.map(spanOf), "\n");
      this.#last.before(node);
      if (++this.#lines > maxLines) this.node.firstChild!.remove();
    }
    this.#last.replaceChildren(...this.#ansi.line().map(spanOf));
    if (atEnd) this.node.scrollTop = this.node.scrollHeight;
  }

  /** Shows all of what was printed, if parts were left out while it came. */
  finish(stdout: string, stderr: string): void {
    if (this.#heard.stdout !== stdout || this.#heard.stderr !== stderr) {
      this.#ansi = new Ansi();
      this.#lines = 0;
      this.#last.replaceChildren();
      this.node.replaceChildren(this.#last);
      this.write(stdout, "stdout");
      this.write(stderr, "stderr");
    }
    this.node.hidden = !this.node.textContent;
  }
}

function spanOf({ text, style }: Span): Node {
  const names = [
    style.error && "stderr",
    style.bold && "bold",
    style.italic && "italic",
    style.underline && "underline",
    typeof style.fg === "number" && style.fg < 16 && `fg${style.fg}`,
    typeof style.bg === "number" && style.bg < 16 && `bg${style.bg}`,
  ].filter(Boolean);
  const span = element("span", {
    className: names.join(" "),
    textContent: text,
  });
  const exact = (c?: number | string) =>
    typeof c === "number" ? c < 16 ? "" : indexed(c) : c ?? "";
  span.style.color = exact(style.fg);
  span.style.backgroundColor = exact(style.bg);
  return span;
}

/** Cell shows one run: what it prints while it goes on, and what it gave. */
export class Cell {
  readonly node = element("article", { className: "cell" });
  #stage = element("p", { className: "stage" });
  #printed = new Printed();

  /** Code is shown above the output, where several cells follow each other. */
  constructor(code?: string) {
    if (code !== undefined) {
      this.node.append(
        element("pre", {
          className: "code",
          tabIndex: 0,
          ariaLabel: "Cell",
          textContent: code,
        }),
      );
    }
    this.#printed.node.hidden = true;
    this.node.append(this.#stage, this.#printed.node);
  }

  /** Takes what the run tells. */
  hear(event: string, message: string): void {
    if (event === "stdout" || event === "stderr") {
      this.#printed.node.hidden = false;
      this.#printed.write(message.slice(event.length + 2), event);
      this.#stage.textContent = "";
    } else if (event === "stage") this.#stage.textContent = message;
  }

  /** Shows the answer. */
  finish(answer: Answer<RunOutput>): void {
    this.#stage.remove();
    const out = answer.structuredContent;
    if (!out) {
      return this.fail(answer.content.map((c) => c.text ?? "").join("\n"));
    }
    this.#printed.finish(out.stdout ?? "", out.stderr ?? "");
    if (out.error) {
      const { name, message, traceback } = out.error;
      const text = traceback?.includes(message)
        ? traceback
        : `${name}: ${message}\n${traceback ?? ""}`;
      this.#add("pre", "error", text.trimEnd());
    }
    const pictures = answer.content.filter((c) => c.type === "image");
    const shown = (out.displays ?? []).map((display, i) => {
      const picture = display.types?.some((t) => t.startsWith("image/"))
        ? pictures.shift()
        : undefined;
      return displayed(`Display ${i + 1}`, display.text ?? {}, picture);
    });
    if (out.result !== undefined) {
      const value = out.result;
      this.#add(
        "pre",
        "value",
        typeof value === "string" ? value : JSON.stringify(value, null, 2),
      );
    }
    this.node.append(...shown);
    for (const note of out.notes ?? []) this.#add("p", "note", note);
    const facts = [
      `${out.status}, exit code ${out.exit_code}`,
      `${out.duration_ms} ms`,
      `${Math.round(out.peak_memory_bytes / (1 << 20))} MiB`,
      ...(out.packages ?? []).map((p) => `${p.name} ${p.version}`),
    ];
    this.#add("p", "facts", facts.join(" · "));
  }

  /** Shows why there is no answer. */
  fail(why: string): void {
    this.#stage.remove();
    this.#add("p", "error", why);
  }

  #add(tag: "p" | "pre", className: string, textContent: string): void {
    const label = { error: "Error", value: "Value" }[className] ?? "";
    this.node.append(
      element(
        tag,
        tag === "pre"
          ? { className, textContent, tabIndex: 0, ariaLabel: label }
          : { className, textContent },
      ),
    );
  }
}

/** Shows one display in its best form. Its HTML is a stranger's: it gets a frame that may do nothing. */
function displayed(
  title: string,
  text: Record<string, string>,
  picture?: { data?: string; mimeType?: string },
): Node {
  if (picture) {
    return element("img", {
      src: `data:${picture.mimeType};base64,${picture.data}`,
      alt: title,
    });
  }
  const svg = text["image/svg+xml"];
  if (svg) {
    return element("img", {
      src: "data:image/svg+xml," + encodeURIComponent(svg),
      alt: title,
    });
  }
  const html = text["text/html"];
  if (html) {
    const frame = element("iframe", { title });
    frame.setAttribute("sandbox", "");
    frame.srcdoc =
      `<!doctype html><link rel="stylesheet" href="/page/frame.css">${html}`;
    return frame;
  }
  const plain = text["text/plain"] ?? text["text/markdown"] ??
    Object.values(text)[0] ?? "";
  return element("pre", {
    className: "value",
    textContent: plain,
    tabIndex: 0,
    ariaLabel: title,
  });
}
