import { answer, replace } from "./sandbox.ts";

function assert(condition: boolean, what: string): void {
  if (!condition) throw new Error(`Expected ${what}`);
}

function refuse(): never {
  throw new Deno.errors.NotCapable("Requires sys access");
}

Deno.test("a refused question has the sandbox's answer", () => {
  const holder = { name: refuse, size: () => 3, other: refuse };
  answer(holder, { name: () => "sandbox", size: () => 0, absent: () => 1 });
  const { name } = holder as { name(): unknown };
  assert(name() === "sandbox", "an answer");
  assert(holder.size() === 3, "what is permitted");
  assert(!("absent" in holder), "nothing new");
  let refused = false;
  try {
    holder.other();
  } catch {
    refused = true;
  }
  assert(refused, "others to be refused");
});

Deno.test("an answer is for those whom it is meant for", () => {
  const holder = { name: refuse };
  answer(holder, { name: () => "sandbox" }, () => false);
  let refused = false;
  try {
    holder.name();
  } catch (error) {
    refused = error instanceof Deno.errors.NotCapable;
  }
  assert(refused, "a refusal");
});

Deno.test("errors of the machine's are not answered", () => {
  const holder = {
    name: () => {
      throw new RangeError("too far");
    },
  };
  answer(holder, { name: () => "sandbox" });
  let message = "";
  try {
    holder.name();
  } catch (error) {
    message = (error as Error).message;
  }
  assert(message === "too far", "its error");
});

Deno.test("a function that is replaced keeps its properties", () => {
  const properties = { native: 1, [Symbol.toPrimitive]: () => "old" };
  const ask = (): string => "old";
  const holder = { ask: Object.assign(ask, properties) };
  replace(holder, "ask", () => () => "new");
  assert(holder.ask() === "new" && holder.ask.native === 1, "its property");
  assert(`${holder.ask}` === "new", "its new text");
});
