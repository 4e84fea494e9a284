import type { Program } from "../program.ts";
export const bc: Program = () => 1;
