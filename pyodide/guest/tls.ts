/**
 * One end of a TLS connection that has no socket of its own: what is to be sent is
 * taken from it, and what came is fed to it, as Python's `ssl.SSLObject` wants it.
 * TLS itself is Deno's (rustls, by way of node:tls), with the certificates that
 * Deno trusts, unless Python's context names others.
 *
 * Nothing of this is loaded before it is used.
 *
 * @module
 */

/** What Python's context says. */
export interface TlsOptions {
  /** Whom the certificate is to name; "" for nobody. */
  host: string;
  /** Whether that is an address, which is not told to the server. */
  address: boolean;
  checkHost: boolean;
  verify: boolean;
  /** Certificates in PEM to trust; with all, besides those that Deno does. */
  trusted: string[];
  all: boolean;
  protocols: string[];
  lowest: string;
  highest: string;
  certificate: string | undefined; // of the client, with its key
  key: string | undefined;
  password: string | undefined;
}

type TLS = typeof import("node:tls");
type Stream = typeof import("node:stream");

/** Gives a module of Node's; `process` stands on much of Node, and is first used here. */
function builtin(name: string): unknown {
  return process.getBuiltinModule(name as "node:tls");
}

declare const process: typeof import("node:process");

/** A client's end. */
export class Tls {
  #socket: import("node:tls").TLSSocket;
  #wire: import("node:stream").Duplex;
  #out: Uint8Array[] = [];
  #plain: Uint8Array[] = [];
  /** The handshake is done. */
  done = false;
  /** The other end has said that it sends nothing more. */
  ended = false;
  /** What went wrong, and its code. */
  error = "";
  code = "";

  constructor(options: TlsOptions) {
    const tls = builtin("node:tls") as TLS;
    const { Duplex } = builtin("node:stream") as Stream;
    const { host, address, trusted } = options;
    const secureContext = tls.createSecureContext({
      ...(!options.all && trusted.length > 0 && { ca: trusted }),
      minVersion: options.lowest as "TLSv1.2",
      maxVersion: options.highest as "TLSv1.3",
      cert: options.certificate,
      key: options.key,
      passphrase: options.password,
    });
    if (options.all) {
      for (const one of trusted) secureContext.context.addCACert(one);
    }
    this.#wire = new Duplex({
      read() {},
      write: (chunk, _, written) => {
        this.#out.push(chunk);
        written();
      },
    });
    this.#socket = tls.connect({
      socket: this.#wire as import("node:net").Socket,
      ...(address ? { host } : host && { servername: host }),
      secureContext,
      ...(!options.checkHost && { checkServerIdentity: () => undefined }),
      rejectUnauthorized: options.verify,
      ALPNProtocols: options.protocols,
    });
    this.#socket.on("secureConnect", () => this.done = true);
    this.#socket.on(
      "data",
      (data: Uint8Array) => this.#plain.push(bytes(data)),
    );
    this.#socket.on("end", () => this.ended = true);
    this.#socket.on("error", (error: Error & { code?: string }) => {
      this.error ||= error.message;
      this.code ||= error.code ?? "";
    });
  }

  /** Takes what came; nothing more comes after null. */
  feed(data: Uint8Array | null): void {
    this.#wire.push(data);
  }

  /** Gives what is to be sent. */
  take(): Uint8Array {
    return concat(this.#out.splice(0));
  }

  /** Gives up to length bytes that the other end sent. */
  read(length: number): Uint8Array {
    let [first] = this.#plain;
    if (!first) return new Uint8Array();
    if (first.length > length) {
      this.#plain[0] = first.subarray(length);
      first = first.subarray(0, length);
    } else this.#plain.shift();
    return first;
  }

  /** How much there is to read. */
  get pending(): number {
    return this.#plain.reduce((sum, part) => sum + part.length, 0);
  }

  /** Encrypts data, once the promise says so. */
  write(data: Uint8Array): Promise<void> {
    return new Promise((resolve) => this.#socket.write(data, () => resolve()));
  }

  /** Says that nothing more is sent. */
  end(): void {
    this.#socket.end();
  }

  /** Waits until everything that was fed and written has had its effect. */
  settled(): Promise<void> {
    return new Promise((resolve) =>
      setImmediate(() => setImmediate(() => resolve()))
    );
  }

  get protocol(): string | undefined {
    return this.#socket.alpnProtocol || undefined;
  }

  get version(): string | undefined {
    return this.#socket.getProtocol() ?? undefined;
  }

  get cipher(): string {
    return this.#socket.getCipher()?.name ?? "";
  }

  /** The other end's certificate in DER. */
  get certificate(): Uint8Array | undefined {
    const { raw } = this.#socket.getPeerCertificate(true);
    return raw && bytes(raw);
  }

  /** Its fields, as JSON. */
  get fields(): string {
    const of = this.#socket.getPeerCertificate(true);
    if (!of?.raw) return "";
    const names = (of.subjectaltname ?? "").split(", ").filter(Boolean)
      .map((name) => {
        const [kind, ...rest] = name.split(":");
        return [kind, rest.join(":")];
      });
    return JSON.stringify({
      subject: of.subject,
      issuer: of.issuer,
      serialNumber: of.serialNumber,
      notBefore: of.valid_from,
      notAfter: of.valid_to,
      subjectAltName: names,
    });
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** A view of a Buffer, which Python doesn't know. */
function bytes(buffer: Uint8Array): Uint8Array {
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.length);
}

function concat(parts: Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
