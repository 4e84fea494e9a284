import type { Program } from "../program.ts";
export const system: Record<string, Program> = {};
