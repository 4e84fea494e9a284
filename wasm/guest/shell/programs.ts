/**
 * The table of programs, and what to say of one that is not there.
 *
 * @module
 */

import type { Call, Programs } from "./shell.ts";
import { type Program, Usage, warn } from "./program.ts";
import { toBytes } from "./syntax.ts";
import { builtins } from "./builtins.ts";
import { justBash } from "./programs/justbash.ts";
import { text } from "./programs/text.ts";
import { files } from "./programs/files.ts";
import { system } from "./programs/system.ts";
import { languages } from "./programs/languages.ts";
import { archives } from "./programs/archives.ts";
import { diff } from "./programs/diff.ts";
import { awk } from "./programs/awk.ts";
import { greps } from "./programs/grep.ts";
import { sed } from "./programs/sed.ts";
import { bc } from "./programs/bc.ts";

/** Programs that can't be here, and why. */
const REFUSED: Record<string, string> = {};
for (
  const [names, why] of [
    [
      "sudo su doas",
      "there are no other users here, and nothing that needs them",
    ],
    [
      "apt apt-get dpkg yum dnf apk brew pacman snap",
      "no packages of the system can be installed here; of Python's and JavaScript's use pip and npm",
    ],
    ["docker podman kubectl", "containers can't be run here"],
    ["systemctl service crontab at", "there are no services here"],
    [
      "ssh scp sftp rsync telnet nc ncat ftp",
      "connections to other machines can't be made by programs here; curl reaches what the operator allowed",
    ],
    [
      "git svn hg",
      "it is not here; files under /workspace can be compared with diff and patched with patch",
    ],
    [
      "vi vim nano emacs less more top htop man watch screen tmux",
      "it needs a terminal, which is not here",
    ],
    [
      "mount umount chroot mkfs fdisk losetup modprobe iptables ifconfig ip",
      "there is no system here to be administered",
    ],
    ["make cmake ninja", "it is not here; call the commands from a script"],
    ["strace gdb ltrace perf", "processes can't be traced here"],
    ["chown chgrp", "files belong to one user here"],
    ["openssl gpg", "it is not here; sha256sum and base64 are"],
  ] as const
) {
  for (const name of names.split(" ")) REFUSED[name] = why;
}

let table: Map<string, Program> | undefined;

export function programs(directory: string): Programs {
  table ??= new Map<string, Program>([
    ...justBash(directory),
    ...Object.entries({
      ...text,
      ...files,
      ...system,
      ...languages,
      ...archives,
      ...diff,
      awk,
      ...greps,
      sed,
      gawk: awk,
      mawk: awk,
      bc,
    }),
  ]);
  const known = table;
  for (const [name, why] of Object.entries(REFUSED)) {
    if (!known.has(name)) {
      known.set(name, (call) => {
        warn(call, why);
        return 1;
      });
    }
  }
  return {
    names: () => known.keys(),
    has: (name) => known.has(name),
    async run(call: Call) {
      try {
        return await known.get(call.name)!(call);
      } catch (e) {
        if (!(e instanceof Usage)) throw e;
        await call.stderr.write(
          toBytes(
            `${call.name}: ${e.message}\nTry '${call.name} --help' for more information.\n`,
          ),
        );
        return /^(sort|grep|diff|ls)$/.test(call.name) ? 2 : 1;
      }
    },
    hint(name) {
      const near = nearest(
        name,
        [...known.keys(), ...builtins.keys()].filter((n) => !(n in REFUSED)),
      );
      return near === undefined ? undefined : `Did you mean ${near}?`;
    },
  };
}

/** The name that is at most two letters away, if there is one. */
function nearest(name: string, names: string[]): string | undefined {
  let best: string | undefined, least = name.length < 4 ? 2 : 3;
  for (const other of names) {
    if (other.length < 2 || Math.abs(other.length - name.length) >= least) {
      continue;
    }
    const d = distance(name, other);
    if (d < least) [best, least] = [other, d];
  }
  return best;
}

/** How many letters are added, left out, changed or swapped. */
function distance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      let n = Math.min(
        rows[i - 1]![j]! + 1,
        row[j - 1]! + 1,
        rows[i - 1]![j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1),
      );
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        n = Math.min(n, rows[i - 2]![j - 2]! + 1);
      }
      row.push(n);
    }
    rows.push(row);
  }
  return rows[a.length]![b.length]!;
}
