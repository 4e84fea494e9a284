import type { Program } from "../program.ts";
export const archives: Record<string, Program> = {};
