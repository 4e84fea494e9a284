// Writes BYTES bytes, in pieces as large as a pipe takes at once.
const piece = new Uint8Array(65536).fill(120);
for (let left = BYTES; left > 0;) {
  left -= Deno.stdout.writeSync(
    piece.subarray(0, Math.min(left, piece.length)),
  );
}
