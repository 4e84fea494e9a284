/// <reference lib="dom" />
import { byID, element, size } from "./element.ts";
import { fromBase64, toBase64 } from "./link.ts";
import type { Answer, Client } from "./mcp.ts";

/** The largest file that one request holds, in bytes: 10 MiB with base64. */
const maxUpload = 7 << 20;
/** How much of a file one request reads, in bytes. */
const readAtOnce = 1 << 20;

interface File {
  path: string;
  kind: string;
  size_bytes: number;
}

interface Read {
  content?: string;
  encoding: string;
  size_bytes: number;
  next_offset?: number;
}

/** Files lists the files of the session, and moves them to and from it. */
export class Files {
  #list = byID<"ul">("file-list");

  constructor(
    private client: Client,
    private session: () => string,
    private say: (text: string) => void,
  ) {
    const input = byID<"input">("upload");
    input.addEventListener("change", () => {
      const files = [...input.files ?? []];
      input.value = "";
      this.#do(async () => {
        for (const file of files) await this.#upload(file);
        await this.refresh();
      });
    });
  }

  /** Shows which files there are. */
  async refresh(): Promise<void> {
    const answer = await this.client.call<{ files: File[] }>("list_files", {
      session_id: this.session(),
    });
    // A session that was not used yet has none.
    const files = answer.isError ? [] : answer.structuredContent!.files;
    this.#list.replaceChildren(
      ...files.filter((f) => f.kind === "file").map((f) => this.#row(f)),
    );
  }

  /** Shows that there are none. */
  clear(): void {
    this.#list.replaceChildren();
  }

  #row(file: File): Node {
    const button = (text: string, act: () => Promise<void>) => {
      const b = element("button", {
        type: "button",
        textContent: text,
        ariaLabel: `${text} ${file.path}`,
      });
      b.addEventListener("click", () => this.#do(act));
      return b;
    };
    const row = element("li");
    row.append(
      element("span", {
        textContent: `${file.path} (${size(file.size_bytes)})`,
      }),
      button("Download", () => this.#download(file.path)),
      button("Delete", async () => {
        checked(
          await this.client.call("delete_file", {
            session_id: this.session(),
            path: file.path,
          }),
        );
        this.say(`Deleted ${file.path}.`);
        await this.refresh();
      }),
    );
    return row;
  }

  async #upload(file: globalThis.File): Promise<void> {
    if (file.size > maxUpload) {
      throw new Error(
        `${file.name} has ${size(file.size)}: one file has ${
          size(maxUpload)
        } at most here.`,
      );
    }
    const base64 = toBase64(new Uint8Array(await file.arrayBuffer()));
    checked(
      await this.client.call("write_file", {
        session_id: this.session(),
        path: file.name,
        base64,
      }),
    );
    this.say(`Uploaded ${file.name}.`);
  }

  async #download(path: string): Promise<void> {
    const parts: Uint8Array<ArrayBuffer>[] = [];
    for (let offset: number | undefined = 0; offset !== undefined;) {
      const answer: Answer<Read> = checked(
        await this.client.call<Read>("read_file", {
          session_id: this.session(),
          path,
          offset,
          limit: readAtOnce,
          encoding: "base64",
        }),
      );
      const read = answer.structuredContent!;
      parts.push(fromBase64(read.content ?? ""));
      offset = read.next_offset;
    }
    const url = URL.createObjectURL(new Blob(parts));
    element("a", { href: url, download: path.split("/").at(-1)! }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000); // until the browser has it
    this.say(`Downloaded ${path}.`);
  }

  #do(work: () => Promise<void>): void {
    work().catch((e) => this.say(e.message));
  }
}

function checked<Output>(answer: Answer<Output>): Answer<Output> {
  if (answer.isError) throw new Error(answer.content[0]?.text ?? "It failed.");
  return answer;
}
