/**
 * The name that somebody may have meant.
 *
 * @module
 */

/** The nearest of some names: what begins the same, or has at most two letters otherwise. */
export function nearestName(
  name: string,
  names: Iterable<string>,
): string | undefined {
  let best: string | undefined, least = 3;
  for (const other of names) {
    const far = distance(name, other);
    if (far < least && far < Math.max(name.length, other.length) - 1) {
      [best, least] = [other, far];
    }
  }
  return best;
}

/** How many letters must be changed, added or removed. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      next.push(
        Math.min(
          row[j]! + (a[i] === b[j] ? 0 : 1),
          row[j + 1]! + 1,
          next[j]! + 1,
        ),
      );
    }
    row = next;
  }
  return row[b.length]!;
}
