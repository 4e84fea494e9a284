/// <reference lib="dom" />
import { byID, element, size } from "./element.ts";

/** What /status answers. */
export interface Status {
  version: string;
  offline: boolean;
  identity: string;
  running: number;
  waiting: number;
  yours: { running: number; waiting: number; sessions: number };
  limits: Record<string, number>;
  cache_bytes?: number;
  runtimes: {
    languages: string[];
    versions: Record<string, string>;
    ready: boolean;
    warm: number;
    permissions: string[];
    wall: string;
  }[];
  identities?: {
    name: string;
    running: number;
    waiting: number;
    sessions: number;
  }[];
}

/** Shows how the server is. */
export function showStatus(s: Status): void {
  const l = s.limits;
  const rows: [string, string][] = [
    [
      "Runs",
      `${s.running} of ${l.running} now, ${s.waiting} of ${l.waiting} waiting`,
    ],
    [
      "Yours",
      `${s.yours.running} running, ${s.yours.waiting} waiting, ${s.yours.sessions} sessions`,
    ],
    ...s.runtimes.map((r): [string, string] => [
      r.languages.join(", "),
      [
        Object.entries(r.versions).map((v) => v.join(" ")).join(", "),
        r.ready ? `${r.warm} warm` : "not ready: the first run fetches it",
        `permissions: ${r.permissions.join(" ") || "none"}`,
        `wall: ${r.wall}`,
      ].join("; "),
    ]),
    [
      "Limits",
      `${l.timeout_seconds} s, ${size(l.memory_bytes!)} of memory, ${
        size(l.stdout_bytes!)
      } of output, ${size(l.file_bytes!)} of files`,
    ],
    ...(s.identities ?? []).map((i): [string, string] => [
      `Identity ${i.name}`,
      `${i.running} running, ${i.waiting} waiting, ${i.sessions} sessions`,
    ]),
    ...(s.cache_bytes === undefined
      ? []
      : [["Cache", size(s.cache_bytes)] as [string, string]]),
    [
      "Server",
      `rillbox ${s.version}, ${
        s.offline ? "offline" : "online"
      }; you are ${s.identity}`,
    ],
  ];
  byID<"dl">("status-list").replaceChildren(
    ...rows.flatMap(([name, text]) => [
      element("dt", { textContent: name }),
      element("dd", { textContent: text }),
    ]),
  );
}
