// Count the words of standard input. A bare package name means npm.
//
// Try it:  rillbox run examples/words.mjs < README.md

import { text } from "node:stream/consumers";
import { groupBy, orderBy } from "lodash-es";

const words = (await text(process.stdin)).toLowerCase().match(/\p{L}{5,}/gu) ??
  [];
const counts = Object.entries(groupBy(words)).map(([word, all]) => ({
  word,
  count: all.length,
}));
const top = orderBy(counts, ["count", "word"], ["desc", "asc"]).slice(0, 10);

for (const { word, count } of top) console.log(String(count).padStart(5), word);

export default top;
