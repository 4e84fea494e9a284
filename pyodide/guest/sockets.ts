/**
 * Python's sockets: TCP connections of this process, which Deno opens under its
 * own check of `--allow-net`.
 *
 * Python's C library makes a file descriptor of each and calls the functions below
 * (Pyodide's way for sockets: while a promise that they give is waited for, Python's
 * stack is put aside). Names are resolved by Deno, when a connection is made: until
 * then an address that is nobody's stands for a name, or for an IPv6 address, which
 * this Python has no form for. Nothing can listen, and there is no UDP.
 *
 * What a socket holds is bounded: one read of READ bytes that Python has not taken
 * yet, one write that the system has not taken.
 *
 * @module
 */

import type { Core, FileNode, FileSystem } from "./core.ts";
import { Tls, type TlsOptions } from "./tls.ts";

/** The most sockets that are open at a time. */
const MOST = 500;
/** What is read at a time, in bytes. */
const READ = 65536;
/** What is taken to be written at a time, in bytes. */
const WRITE = 1 << 20;

/** What a timer waits at most, in milliseconds. */
const LONGEST = 2 ** 31 - 1;

/** Numbers of C's headers. */
const AF_INET = 2, SOCK_STREAM = 1, SOCK_FLAGS = 0o2004000;
const O_NONBLOCK = 0o4000, F_GETFL = 3, F_SETFL = 4, FIONBIO = 0x5421;
const SHUT_RD = 0, SHUT_WR = 1;
const POLLIN = 1, POLLOUT = 4, POLLERR = 8, POLLHUP = 16, POLLNVAL = 32;
const POLLRDNORM = 64, SOCKET_MODE = 0o140000, POLLFD = 8;

/** Errors of Deno's, and what C calls them. */
const ERRORS: Record<string, string> = {
  NotCapable: "EACCES",
  ConnectionRefused: "ECONNREFUSED",
  ConnectionReset: "ECONNRESET",
  ConnectionAborted: "ECONNABORTED",
  BrokenPipe: "EPIPE",
  TimedOut: "ETIMEDOUT",
  NetworkUnreachable: "ENETUNREACH",
  AddrNotAvailable: "EADDRNOTAVAIL",
};
const NO_NAME = /failed to lookup address|No address associated/;

/** A socket, as Emscripten's C library and Python's see it. */
interface Socket {
  family: number;
  type: number;
  protocol: number;
  /** What went wrong in the background, for SO_ERROR. */
  error: number | null;
  daddr?: string; // the other end's address, or the name in its place
  dport?: number;
  saddr?: string;
  sport?: number;
  stream: { fd: number; flags: number };
  node: FileNode;
  handles: number; // of Python's for it
  sock_ops: unknown;

  connecting?: Promise<void>;
  conn?: Deno.TcpConn;
  /** Why there is no connection. */
  failure?: Failure;
  buffer?: Uint8Array<ArrayBuffer>;
  input: Uint8Array<ArrayBuffer>; // what was read and not taken
  reading: boolean;
  ended: boolean; // there is nothing more to read
  writing?: Promise<void>;
  finished: boolean; // nothing more may be written
  closed: boolean;
  /** Called when any of this changes. */
  waiters: Set<() => void>;
}

/** Python's files, as far as sockets are among them. */
interface SocketFS extends FileSystem {
  createNode(
    parent: unknown,
    name: string,
    mode: number,
    device: number,
  ): FileNode;
  hashRemoveNode(node: FileNode): void;
  createStream(stream: {
    path: string;
    node: FileNode;
    flags: number;
    seekable: boolean;
    stream_ops: unknown;
  }): { fd: number; flags: number };
}

/** Why a connection was not made. */
interface Failure {
  number: number;
  /** What Deno says. */
  text: string;
  unknown: boolean; // the name has no address
}

/** What Python's own modules call beside C's functions. */
export interface Sockets {
  /** The package gateway's address, which is not the program's to connect to. */
  gateway: string;
  /** The address that stands for a name. */
  alias(name: string): string;
  /** Why the socket has no connection, told once. */
  failure(fd: number): Failure | undefined;
  /** Waits until a socket can be read (1) or written (4), or is closed. */
  ready(fd: number, events: number): Promise<void>;
  /** The end of a TLS connection that is Python's. */
  tls(options: TlsOptions): Tls;
}

// Taken before the guest's code runs, which may replace them.
const { connect } = Deno;
const { setTimeout, clearTimeout } = globalThis;
const now = performance.now.bind(performance);

/** Gives Python sockets; interrupt ends what it waits for with them. */
export function mountSockets(
  core: Core,
): { sockets: Sockets; interrupt: () => boolean } {
  const { SOCKFS, DNS, ERRNO_CODES: E } = core;
  const FS = core.FS as SocketFS;
  const errno = (name: string) => E[name]!;
  const root = SOCKFS.root;
  let made = 0, open = 0;

  /** What C waits for now, by promises that it is given. */
  const waits = new Set<() => void>();
  /** Waits for a change, and says whether it came; it ends also with a time. */
  function change(socks: Socket[], milliseconds = -1): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const changed = () => resolve(true), stop = () => resolve(false);
    const timer = milliseconds >= 0 ? setTimeout(changed, milliseconds) : 0;
    for (const sock of socks) sock.waiters.add(changed);
    waits.add(stop);
    return promise.finally(() => {
      clearTimeout(timer);
      for (const sock of socks) sock.waiters.delete(changed);
      waits.delete(stop);
    });
  }

  function changed(sock: Socket): void {
    for (const wake of [...sock.waiters]) wake();
  }

  function numberOf(error: unknown): number {
    const { name, code } = error as { name?: string; code?: string };
    return E[ERRORS[name ?? ""] ?? code ?? ""] ?? errno("EIO");
  }

  async function establish(sock: Socket, hostname: string, port: number) {
    try {
      const conn = await connect({ hostname, port });
      const there = conn.remoteAddr, here = conn.localAddr;
      if (`${there.hostname}:${there.port}` === sockets.gateway) {
        conn.close();
        const text = `Requires net access to "${sockets.gateway}", ` +
          "run again with the --allow-net flag";
        throw Object.assign(new Error(text), { name: "NotCapable" });
      }
      if (sock.closed) return conn.close();
      conn.setNoDelay(true); // as Python's clients have it
      sock.conn = conn;
      if (!there.hostname.includes(":")) sock.daddr = there.hostname;
      sock.saddr = here.hostname.includes(":") ? "0.0.0.0" : here.hostname;
      sock.sport = here.port;
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      const unknown = NO_NAME.test(text);
      const number = unknown ? errno("EHOSTUNREACH") : numberOf(error);
      sock.failure = { number, text, unknown };
      sock.error = number;
    } finally {
      sock.connecting = undefined;
      changed(sock);
    }
  }

  /** Reads ahead, unless there is something that was not taken. */
  function fill(sock: Socket): void {
    const { conn } = sock;
    if (!conn || sock.reading || sock.ended || sock.input.length > 0) return;
    sock.reading = true;
    const buffer = sock.buffer ??= new Uint8Array(READ);
    conn.read(buffer).then((n) => {
      if (n === null) sock.ended = true;
      else if (!sock.closed) sock.input = buffer.subarray(0, n);
    }, (error) => {
      sock.ended = true;
      if (!sock.closed) sock.error = numberOf(error);
    }).finally(() => {
      sock.reading = false;
      changed(sock);
    });
  }

  /** Takes up to length bytes of what was read; nothing at the end; or an error. */
  function take(sock: Socket, length: number): Uint8Array | number {
    if (sock.input.length > 0) {
      const taken = sock.input.slice(0, length);
      sock.input = sock.input.subarray(taken.length);
      return taken;
    }
    if (sock.ended) return -takeError(sock);
    if (!sock.conn) return -errno("ENOTCONN");
    fill(sock);
    return -errno("EAGAIN");
  }

  function takeError(sock: Socket): number {
    const number = sock.error ?? 0;
    sock.error = null;
    return number;
  }

  /** Starts to write data, which is ours, unless a write goes on. */
  function put(sock: Socket, data: Uint8Array): number {
    const { conn } = sock;
    if (sock.error) return -takeError(sock);
    if (!conn) return -errno("ENOTCONN");
    if (sock.finished) return -errno("EPIPE");
    if (sock.writing) return -errno("EAGAIN");
    const all = async () => {
      let rest = data;
      while (rest.length > 0) rest = rest.subarray(await conn.write(rest));
    };
    sock.writing = all().catch((error) => {
      sock.finished = true;
      if (!sock.closed) sock.error = numberOf(error);
    }).finally(() => {
      sock.writing = undefined;
      changed(sock);
    });
    return data.length;
  }

  const patient = (sock: Socket) => !(sock.stream.flags & O_NONBLOCK);

  function refuse(): never {
    throw new FS.ErrnoError(errno("ENETDOWN"));
  }

  /** What C calls; a negative number is an error's. */
  const ops = {
    async connectAsync(sock: Socket, address: string, port: number) {
      if (sock.type !== SOCK_STREAM) return -errno("ENETDOWN");
      if (sock.conn) return -errno("EISCONN");
      if (sock.connecting) return -errno("EALREADY");
      [sock.daddr, sock.dport, sock.error] = [address, port, null];
      sock.failure = undefined;
      sock.connecting = establish(sock, address, port);
      if (!patient(sock)) await change([sock], 0); // a refusal comes at once
      while (sock.connecting) {
        if (!patient(sock)) return -errno("EINPROGRESS");
        if (!await change([sock])) return -errno("EINTR");
      }
      return -takeError(sock);
    },
    async recvmsgAsync(sock: Socket, length: number) {
      for (;;) {
        const taken = take(sock, length);
        if (taken !== -errno("EAGAIN") || !patient(sock)) return taken;
        if (!await change([sock])) return -errno("EINTR");
      }
    },
    async send(sock: Socket, from: number, length: number) {
      if (sock.type !== SOCK_STREAM) return -errno("ENETDOWN");
      const end = from + Math.min(length, WRITE);
      while (sock.writing && patient(sock)) {
        if (!await change([sock])) return -errno("EINTR");
      }
      const sent = put(sock, core.HEAPU8.slice(from, end));
      while (sock.writing && patient(sock)) {
        if (!await change([sock])) break; // it goes on by itself
      }
      return sock.error ? -takeError(sock) : sent;
    },
    // The next two don't wait.
    sendmsg(sock: Socket, from: ArrayLike<number>, start: number, n: number) {
      if (sock.type !== SOCK_STREAM) refuse();
      const data = Uint8Array.from(
        (from as Uint8Array).subarray(start, start + n),
      );
      const sent = put(sock, data);
      if (sent < 0) throw new FS.ErrnoError(-sent);
      return sent;
    },
    recvmsg(sock: Socket, length: number) {
      const taken = take(sock, length);
      if (typeof taken === "object") {
        return { buffer: taken, addr: sock.daddr, port: sock.dport };
      }
      if (taken < 0) throw new FS.ErrnoError(-taken);
      return null;
    },
    poll(sock: Socket): number {
      let events = 0;
      if (sock.input.length > 0 || sock.ended) events |= POLLIN | POLLRDNORM;
      if (sock.conn && !sock.writing || sock.failure) events |= POLLOUT;
      if (sock.error) events |= POLLERR;
      if (sock.closed || !sock.conn && !sock.connecting) events |= POLLHUP;
      return events;
    },
    pollAsync() {}, // its being there says that SOCKFS.pollAsync is for it
    ioctl(sock: Socket, request: number, argument: number): number {
      if (request !== FIONBIO) return -errno("EINVAL");
      const on = core.HEAP32[argument >>> 2];
      const { stream } = sock;
      stream.flags = stream.flags & ~O_NONBLOCK | (on ? O_NONBLOCK : 0);
      return 0;
    },
    fcntl64(sock: Socket, command: number, argument: number): number {
      if (command === F_GETFL) return sock.stream.flags;
      if (command !== F_SETFL) return -errno("EINVAL");
      sock.stream.flags = core.HEAP32[argument >>> 2]!;
      return 0;
    },
    shutdown(sock: Socket, how: number): number {
      if (!sock.conn) return -errno("ENOTCONN");
      if (how !== SHUT_WR) sock.ended = true;
      if (how !== SHUT_RD && !sock.finished) {
        const { conn } = sock;
        sock.finished = true;
        Promise.resolve(sock.writing)
          .then(() => conn.closeWrite()).catch(() => {});
      }
      changed(sock);
      return 0;
    },
    close(sock: Socket): number {
      if (--sock.handles > 0) return 0;
      sock.closed = sock.ended = sock.finished = true;
      sock.buffer = undefined;
      FS.hashRemoveNode(sock.node);
      open--;
      Promise.resolve(sock.writing).then(() => sock.conn?.close());
      changed(sock);
      return 0;
    },
    bind: refuse,
    listen: refuse,
    accept: refuse,
  };

  type Stream = { node: FileNode & { sock: Socket } };
  const streamOps = {
    poll: ({ node }: Stream) => ops.poll(node.sock),
    ioctl: ({ node }: Stream, request: number, argument: number) =>
      ops.ioctl(node.sock, request, argument),
    close: ({ node }: Stream) => ops.close(node.sock),
    dup: ({ node }: Stream) => node.sock.handles++,
    read({ node }: Stream, into: Uint8Array, start: number, n: number) {
      const part = ops.recvmsg(node.sock, n)?.buffer ?? [];
      into.set(part, start);
      return part.length;
    },
    write: ({ node }: Stream, from: Uint8Array, start: number, n: number) =>
      ops.sendmsg(node.sock, from, start, n),
  };

  SOCKFS.createSocket = (family: number, kind: number, protocol: number) => {
    const type = kind & ~SOCK_FLAGS;
    if (family !== AF_INET) throw new FS.ErrnoError(errno("EAFNOSUPPORT"));
    if (open >= MOST) throw new FS.ErrnoError(errno("EMFILE"));
    const path = `socket[${made++}]`;
    const node = FS.createNode(root, path, SOCKET_MODE, 0) as Stream["node"];
    const stream = FS.createStream({
      path,
      node,
      flags: 2 | kind & O_NONBLOCK,
      seekable: false,
      stream_ops: streamOps,
    });
    open++;
    return node.sock = {
      family,
      type,
      protocol,
      error: null,
      stream,
      node,
      handles: 1,
      sock_ops: ops,
      input: new Uint8Array(),
      reading: false,
      ended: false,
      finished: false,
      closed: false,
      waiters: new Set(),
    };
  };

  SOCKFS.pollAsync = async (fds: number, count: number, timeout: number) => {
    const socks: Socket[] = [];
    const look = () => {
      let ready = 0;
      for (let i = 0; i < count; i++) {
        const at = fds + i * POLLFD;
        const sock = SOCKFS.getSocket(core.HEAP32[at >>> 2]!) as Socket;
        const wanted = core.HEAP16[at + 4 >>> 1]!;
        let events = POLLNVAL;
        if (sock) {
          if (!socks.includes(sock)) socks.push(sock);
          if (wanted & POLLIN) fill(sock);
          events = ops.poll(sock) & (wanted | POLLERR | POLLHUP);
        }
        core.HEAP16[at + 6 >>> 1] = events;
        if (events) ready++;
      }
      return ready;
    };
    const end = now() + timeout;
    for (;;) {
      const ready = look();
      if (ready || timeout === 0) return ready;
      const left = timeout < 0 ? LONGEST : end - now();
      if (left <= 0) return 0;
      if (!await change(socks, Math.min(left, LONGEST))) return -errno("EINTR");
    }
  };

  // 240.0.0.0/4 is reserved: nobody's addresses, so they stand for names.
  const names: string[] = [];
  const addresses = new Map<string, string>();
  const literal = /^\d+(\.\d+){3}$/;
  function alias(name: string): string {
    let address = name ? addresses.get(name) : "0.0.0.0";
    if (!address) {
      const n = names.push(name);
      address = `240.${n >>> 16 & 255}.${n >>> 8 & 255}.${n & 255}`;
      addresses.set(name, address);
    }
    return address;
  }
  DNS.lookup_name = (name) => literal.test(name) ? name : alias(name);
  DNS.lookup_addr = (address) => {
    const [first, ...rest] = address.split(".").map(Number);
    if (first !== 240) return null;
    return names[rest.reduce((n, part) => n * 256 + part, 0) - 1] ?? null;
  };

  const sockets: Sockets = {
    gateway: "",
    alias,
    failure(fd) {
      const sock = SOCKFS.getSocket(fd) as Socket | null;
      const failure = sock?.failure;
      if (sock) sock.failure = undefined;
      return failure;
    },
    async ready(fd, events) {
      const sock = SOCKFS.getSocket(fd) as Socket | null;
      while (sock && !sock.closed) {
        if (events & POLLIN) fill(sock);
        if (ops.poll(sock) & (events | POLLERR | POLLHUP)) return;
        const { promise, resolve } = Promise.withResolvers<void>();
        sock.waiters.add(resolve);
        await promise;
        sock.waiters.delete(resolve);
      }
    },
    tls: (options) => new Tls(options),
  };
  const interrupt = () => {
    const any = waits.size > 0;
    for (const stop of [...waits]) stop();
    return any;
  };
  return { sockets, interrupt };
}
