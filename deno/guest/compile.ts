/**
 * Loads the modules that its argument lists, so that Deno keeps in its directory
 * what was compiled of them. It runs as a guest does, with no permission.
 *
 * @module
 */

import { prepareProcess } from "./process.ts";
import { prepareSystem } from "./system.ts";

// Taken before the modules' code runs, which may replace it.
const { exit } = Deno;
const later = setTimeout;

prepareProcess(); // packages look at its environment
const { modules, system } = JSON.parse(Deno.args[0]!) as {
  modules: string[];
  system: boolean;
};
if (system) prepareSystem((await import("node:module")).default);
await Promise.allSettled(modules.map((module) => import(module)));
later(exit, 20); // Deno writes when nothing else is to be done
