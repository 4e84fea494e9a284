/**
 * What languages with files of the machine's share: the C library's names of Deno's
 * errors, and changes of files that no path may be used for.
 *
 * @module
 */

// Taken before the guest's code runs, which may replace it.
const { NotCapable } = Deno.errors;

/** The name that the C library has for an error of Deno's. */
export function codeOf(error: unknown): string {
  if (error instanceof NotCapable) return "EACCES";
  if (error instanceof Error && "code" in error) return String(error.code);
  // Deno has no code for this one; 27 is its number on Linux and macOS.
  return /\(os error 27\)/.test(String(error)) ? "EFBIG" : "EIO";
}

/**
 * Changes a file by its path, or, where the kernel lets no path be changed so (it could
 * lead elsewhere), by opening it.
 */
export function byPathOrFile(byPath: () => void, byFile: () => void): void {
  try {
    byPath();
  } catch (error) {
    if (codeOf(error) !== "EPERM") throw error;
    byFile();
  }
}

/** Deno has no such method of a file; its Node modules are slow to load. */
export function chmodFile(path: string, mode: number): void {
  const fs = process.getBuiltinModule("node:fs");
  const fd = fs.openSync(path, "r");
  try {
    fs.fchmodSync(fd, mode);
  } finally {
    fs.closeSync(fd);
  }
}
