import type { Program } from "../program.ts";
export const diff: Record<string, Program> = {};
