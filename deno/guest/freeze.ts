/**
 * Makes Deno's databases, in the directory that its argument names, ready for
 * being copied to runs: each is one file, and takes nothing in any more, which a
 * run would write for no other to read. Those that are empty are removed.
 *
 * @module
 */

import { DatabaseSync } from "node:sqlite";

/** Deno's databases of what it compiled and found out, and their tables. */
const TABLES = {
  v8_code_cache_v2: "codecache",
  node_analysis_cache_v2: "cjsanalysiscache",
  dep_analysis_cache_v2: "moduleinfocache",
};

const directory = Deno.args[0]!;
for (const [name, table] of Object.entries(TABLES)) {
  const file = `${directory}/${name}`;
  const database = new DatabaseSync(file);
  database.exec(`DELETE FROM ${table} WHERE specifier LIKE '%/compile.js'`);
  const row = database.prepare(`SELECT count(*) AS rows FROM ${table}`).get();
  database.exec(`CREATE TRIGGER frozen BEFORE INSERT ON ${table}
    BEGIN SELECT RAISE(IGNORE); END; PRAGMA wal_checkpoint(TRUNCATE)`);
  database.close();
  if (row?.rows === 0) Deno.removeSync(file);
}
