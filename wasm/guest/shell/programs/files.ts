import type { Program } from "../program.ts";
export const files: Record<string, Program> = {};
