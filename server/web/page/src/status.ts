/// <reference lib="dom" />
import { byID, element, size } from "./element.ts";

/** What one client has. */
interface Share {
  programs: number;
  sessions: number;
}

/** What /status answers. */
export interface Status {
  rillbox: string;
  offline: boolean;
  identity: string;
  running: number;
  waiting: number;
  warm: number[];
  cache_hits: number;
  cache_misses: number;
  yours: Share;
  all?: (Share & { name: string })[];
  limits: Record<string, number>;
  runtimes: {
    languages: string[];
    versions: Record<string, string>;
    ready: boolean;
    permissions: string[];
    wall: string;
  }[];
}

/** Shows how the server is. */
export function showStatus(s: Status): void {
  const l = s.limits;
  const has = (share: Share) =>
    `${share.programs} programs, ${share.sessions} sessions`;
  const rows: [string, string][] = [
    [
      "Programs",
      `${s.running} of ${l.running} running, ${s.waiting} of ${l.waiting} waiting`,
    ],
    ["Yours", has(s.yours)],
    ...(s.all ?? []).map((c): [string, string] => [c.name, has(c)]),
    ...s.runtimes.map((r, i): [string, string] => [
      r.languages.join(", "),
      [
        Object.entries(r.versions).map((v) => v.join(" ")).join(", "),
        r.ready ? `${s.warm[i]} warm` : "not ready: the first run fetches it",
        `permissions: ${r.permissions.join(" ") || "none"}`,
        `wall: ${r.wall}`,
      ].join("; "),
    ]),
    [
      "Cache",
      `${s.cache_hits} of ${s.cache_hits + s.cache_misses} lookups were hits`,
    ],
    [
      "Limits",
      [
        `${l.timeout_seconds} s`,
        `${size(l.memory_bytes!)} of memory`,
        `${size(l.stdout_bytes!)} of output`,
        `${size(l.file_bytes!)} of files`,
      ].join(", "),
    ],
    [
      "Server",
      `rillbox ${s.rillbox}, ${
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
