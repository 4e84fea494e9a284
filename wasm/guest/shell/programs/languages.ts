import type { Program } from "../program.ts";
export const languages: Record<string, Program> = {};
