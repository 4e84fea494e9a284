/** The protocol's version in which each request stands for itself. */
const version = "2026-07-28";

/** The server's answer to a request without a token that holds. */
export class TokenError extends Error {}

/** A tool's answer. */
export interface Answer<Output> {
  isError?: boolean;
  structuredContent?: Output;
  content: Content[];
}

/** A part of an answer. */
export interface Content {
  type: string;
  text?: string;
  data?: string;
  mimeType?: string;
  resource?: { mimeType?: string; text?: string };
}

/** What a run tells while it goes on. */
export interface Progress {
  message: string;
  /** started, stage, stdout, stderr, output or running */
  event: string;
  /** The run's id. */
  execution: string;
}

/** What a call may have beside its arguments. */
export interface Options {
  heard?: (progress: Progress) => void;
  signal?: AbortSignal;
}

interface Message {
  id?: number;
  method?: string;
  params?: { message?: string; _meta?: Record<string, string> };
  result?: Answer<unknown>;
  error?: { message: string };
}

/** Client calls the tools of the server that this page is from. */
export class Client {
  /** Says who calls; empty where the server wants no token. */
  token = "";
  #id = 0;
  #endpoint: string;

  constructor(endpoint: string) {
    this.#endpoint = endpoint;
  }

  /** Calls a tool. A tool's own error is an answer; a rejection is a call that was not made. */
  async call<Output>(
    tool: string,
    args: Record<string, unknown>,
    { heard, signal }: Options = {},
  ): Promise<Answer<Output>> {
    const id = ++this.#id;
    const response = await fetch(this.#endpoint, {
      method: "POST",
      headers: {
        ...this.headers(),
        "Content-Type": "application/json",
        Accept: "application/json, text/event-stream",
        "MCP-Protocol-Version": version,
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id,
        method: "tools/call",
        params: {
          name: tool,
          arguments: args,
          _meta: {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientInfo": {
              name: "rillbox-page",
              version: "1",
            },
            "io.modelcontextprotocol/clientCapabilities": {},
            ...(heard && { progressToken: id }),
          },
        },
      }),
      signal: signal ?? null,
    });
    let answer: Message | undefined;
    for await (const message of messages(response)) {
      if (message.method === "notifications/progress") {
        const meta = message.params?._meta ?? {};
        heard?.({
          message: message.params?.message ?? "",
          event: meta["rillbox/event"] ?? "",
          execution: meta["rillbox/execution_id"] ?? "",
        });
      } else if (message.result || message.error) answer = message;
    }
    if (response.status === 401) throw new TokenError(answer?.error?.message);
    if (answer?.error) throw new Error(answer.error.message);
    if (!answer?.result) {
      throw new Error("The connection ended before the answer came.");
    }
    return answer.result as Answer<Output>;
  }

  /** Gets JSON from another address of the server. */
  async get<Output>(path: string): Promise<Output> {
    const response = await fetch(path, { headers: this.headers() });
    const body = await response.json();
    if (response.status === 401) throw new TokenError(body.error?.message);
    if (!response.ok) {
      throw new Error(body.error?.message ?? response.statusText);
    }
    return body;
  }

  private headers(): Record<string, string> {
    return this.token ? { Authorization: `Bearer ${this.token}` } : {};
  }
}

/** Gives the messages of an answer, which is JSON or a stream of events. */
export async function* messages(response: Response): AsyncGenerator<Message> {
  const kind = response.headers.get("Content-Type") ?? "";
  if (kind.startsWith("application/json")) {
    yield await response.json();
    return;
  }
  if (!kind.startsWith("text/event-stream") || !response.body) {
    throw new Error(
      `The server answered ${response.status} ${response.statusText}.`,
    );
  }
  let rest = "";
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    const events = (rest + text).split("\n\n");
    rest = events.pop()!;
    for (const event of events) {
      const data = event.split("\n").filter((line) => line.startsWith("data:"))
        .map((line) => line.slice(5)).join("\n").trim();
      if (data) yield JSON.parse(data);
    }
  }
}
