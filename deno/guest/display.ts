/**
 * What a program shows, in the forms that Deno's notebooks give it: what the
 * method `Symbol.for("Jupyter.display")` answers, else what pictures, canvases
 * and elements of a document are told by.
 *
 * @module
 */

import { abbreviate, echoed, printed } from "./value.ts";

/** MIME types and what there is of each: text, bytes, or a value as JSON. */
type Forms = Record<string, unknown>;

// Taken before the guest's code runs, which may replace them.
const stringify = JSON.stringify;
const entries = Object.entries;
const { toBase64 } = Uint8Array.prototype as { toBase64(): string };
const encoder = new TextEncoder();
const encode = encoder.encode.bind(encoder);

const JUPYTER = Symbol.for("Jupyter.display");
/** How much of a value's text is shown. */
const MAX_TEXT = 1 << 16;
/** Kept free for the frames that tell how much was left out, in bytes. */
const RESERVE = 4096;

/** Sends what the program shows, within a budget of bytes. */
export class Screen {
  #send: (frame: string) => void;
  #left: number;
  #leftOut = 0;

  constructor(send: (frame: string) => void, limit: number) {
    this.#send = send;
    this.#left = limit - RESERVE;
  }

  /**
   * Shows a value as a notebook does; with `raw`, a bundle of MIME types and
   * data. It is shown when this returns, or, where the value's own method is
   * asynchronous, when the promise settles.
   */
  display = async (value: unknown, { raw = false } = {}): Promise<void> => {
    if (raw) {
      if (!isObject(value)) {
        throw new TypeError("Cannot display what is no object of MIME types");
      }
      return this.#put(value as Forms);
    }
    await this.#show(value, true);
  };

  /**
   * Shows the program's value if it has more forms than its text; with `echo`,
   * any value, as the console of a debugger does.
   */
  async finish(value: unknown, echo = false): Promise<void> {
    await this.#show(value, echo && value !== undefined, echo);
  }

  /** Says how much was left out in all. */
  end(): void {
    if (this.#leftOut & (this.#leftOut - 1)) this.#tellLeftOut(); // else it has been told
  }

  #show(value: unknown, always: boolean, echo = false): Promise<void> | void {
    const put = (forms: Forms | undefined, note?: string) => {
      if (forms === undefined && note === undefined && !always) return;
      const text = abbreviate((echo ? echoed : printed)(value), MAX_TEXT);
      this.#put({ "text/plain": text, ...forms }, note);
    };
    const fail = (error: unknown) =>
      put(undefined, `A value can't be shown as it says: ${told(error)}.`);
    try {
      const forms = formsOf(value);
      if (!(forms instanceof Promise)) return put(forms);
      return forms.then(put).catch(fail);
    } catch (error) {
      fail(error);
    }
  }

  /** Sends one display; of one that is too large the largest forms are left out. */
  #put(forms: Forms, note?: string): void {
    const data: Record<string, string> = {};
    for (const [type, form] of entries(forms)) {
      const text = encodeForm(form);
      if (text !== undefined) data[type] = text;
    }
    for (let left = entries(data); left.length > 0; left = entries(data)) {
      const frame = stringify({
        type: "display",
        data,
        note: note && abbreviate(note, 1000),
      });
      const size = encode(frame).length + 1;
      if (size <= this.#left) {
        this.#left -= size;
        this.#send(frame);
        return;
      }
      const [type, text] = left.reduce((a, b) =>
        b[1].length > a[1].length ? b : a
      );
      delete data[type];
      note =
        `${note ? note + " " : ""}${type} of ${text.length} bytes is left ` +
        `out of a display: it is too large.`;
    }
    if (note === undefined) return; // there was nothing to show
    this.#leftOut++;
    if ((this.#leftOut & (this.#leftOut - 1)) === 0) this.#tellLeftOut();
  }

  #tellLeftOut(): void {
    this.#send(`{"type":"display","left_out":${this.#leftOut}}`);
  }
}

/** The forms that a value has beside its text; undefined when there are none. */
function formsOf(value: unknown): Forms | Promise<Forms> | undefined {
  if (!isObject(value)) return undefined;
  if (typeof value[JUPYTER] === "function") {
    return (value[JUPYTER] as () => Forms | Promise<Forms>)();
  }
  if (value instanceof Uint8Array) {
    if (startsWith(value, 0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)) {
      return { "image/png": value };
    }
    if (startsWith(value, 0xff, 0xd8, 0xff)) return { "image/jpeg": value };
    return undefined;
  }
  if (typeof value.toDataURL === "function") {
    const [, type, data] =
      /^data:([^;,]+);base64,(.*)$/s.exec(value.toDataURL()) ?? [];
    return type === undefined ? undefined : { [type]: data };
  }
  if (typeof value.outerHTML === "string") {
    const type = value.outerHTML.startsWith("<svg")
      ? "image/svg+xml"
      : "text/html";
    return { [type]: value.outerHTML };
  }
  return undefined;
}

function isObject(value: unknown): value is Record<PropertyKey, unknown> {
  return typeof value === "object" && value !== null;
}

function startsWith(bytes: Uint8Array, ...signature: number[]): boolean {
  return signature.every((byte, i) => bytes[i] === byte);
}

function encodeForm(form: unknown): string | undefined {
  if (typeof form === "string") return form;
  if (form instanceof Uint8Array) return toBase64.call(form);
  return stringify(form);
}

function told(error: unknown): string {
  return abbreviate(error instanceof Error ? `${error}` : printed(error), 300);
}
