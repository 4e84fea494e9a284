import { Shown } from "../table.ts";
import { cellOf, clock, interval, timestamp } from "./cells.ts";

function assertEquals(actual: unknown, expected: unknown): void {
  const [a, b] = [Deno.inspect(actual), Deno.inspect(expected)];
  if (a !== b) throw new Error(`Expected ${b}, got ${a}`);
}

Deno.test("decimals keep all their digits", () => {
  const decimal = (value: bigint, scale: number) => {
    const words = new Uint32Array(4);
    for (let i = 0; i < 4; i++) {
      words[i] = Number(BigInt.asUintN(32, value >> BigInt(32 * i)));
    }
    return cellOf({ typeId: 7, scale }, words);
  };
  assertEquals(decimal(150n, 2), new Shown("1.50", 1.5, true));
  assertEquals(decimal(-5n, 2), new Shown("-0.05", -0.05, true));
  assertEquals(
    decimal(-12345678901234567890n, 1),
    new Shown("-1234567890123456789.0", "-1234567890123456789.0", true),
  );
  assertEquals(decimal(-7n, 0), -7);
  assertEquals(decimal(1n << 100n, 0), 1n << 100n);
});

Deno.test("numbers of 32 bits are as short as they can be", () => {
  const single = (value: number) =>
    (cellOf({ typeId: 3, precision: 1 }, Math.fround(value)) as Shown).text;
  assertEquals([0.1, 2, 1e30, 1 / 3, -0.5].map(single), [
    "0.1",
    "2.0",
    "1e+30",
    "0.33333334",
    "-0.5",
  ]);
});

Deno.test("times before 1970 and parts of seconds", () => {
  assertEquals(timestamp(-500), "1969-12-31 23:59:59.5");
  assertEquals(timestamp(1704164645123.456), "2024-01-02 03:04:05.123456");
  assertEquals(clock(3_723_500_000n), "01:02:03.5");
});

Deno.test("intervals have their units", () => {
  const view = new DataView(new ArrayBuffer(16));
  view.setInt32(0, 13, true);
  view.setInt32(4, -2, true);
  view.setBigInt64(8, -5_400_000_000_000n, true);
  assertEquals(interval(view), "1 year 1 month -2 days -01:30:00");
  assertEquals(interval(new DataView(new ArrayBuffer(16))), "00:00:00");
});
