"""Sockets and asyncio's connections: the C library's sockets are Deno's, see sockets.ts.

What this adds: why a connection was refused, IPv6 addresses, select, and what asyncio
needs to wait for sockets, so that CPython's own transports run on Pyodide's loop.
"""

import asyncio
import errno
import ipaddress
import os
import select
import socket
import sys
import weakref
from asyncio import base_events, selector_events
from collections.abc import Callable
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from . import errors

# What a socket is waited for; poll's numbers.
READ, WRITE = 1, 4

# What a connection that was tried for fails with.
FAILED = {errno.EACCES, errno.EHOSTUNREACH, errno.EIO}

CONNECT = socket.socket.connect
RECV = socket.socket.recv
GETADDRINFO = socket.getaddrinfo

# What of CPython's event loop runs on Pyodide's.
OF_SELECTOR_LOOP = """
    _make_socket_transport _make_ssl_transport _ensure_fd_no_transport add_reader remove_reader
    add_writer remove_writer sock_recv sock_recv_into sock_sendall sock_connect _sock_read_done
    _sock_recv _sock_recv_into _sock_sendall _sock_connect _sock_write_done
"""
OF_BASE_LOOP = """
    create_connection create_datagram_endpoint _connect_sock _create_connection_transport
    _ensure_resolved start_tls
"""


class Network:
    """The process's sockets."""

    host: Any = None  # packages.Host
    gateway = ""  # the package gateway's URL
    _sockets: Any = None
    _watched: dict[tuple[int, int], asyncio.Handle]

    def __init__(self) -> None:
        self._watched = {}

    @property
    def sockets(self) -> Any:
        """sockets.ts's Sockets."""
        if self._sockets is None:
            self._sockets = self.host.sockets
            self._sockets.gateway = urlsplit(self.gateway).netloc
        return self._sockets

    def error(self, sock: socket.socket, number: int) -> OSError:
        """Why a socket could not connect."""
        failure = self.sockets.failure(sock.fileno())
        if failure and failure.unknown:
            text = failure.text.rpartition(": ")[2]
            known = socket.EAI_NONAME if "not known" in text else socket.EAI_AGAIN
            return socket.gaierror(known, text)
        if failure and number == errno.EACCES:
            return PermissionError(number, errors.refusal(failure.text))
        if failure and number == errno.EIO:  # it has no number of its own
            return OSError(number, failure.text)
        return OSError(number, os.strerror(number))

    def address(self, address: Any) -> Any:
        """An address that C understands."""
        sockets = self.sockets  # from here on they know what the gateway's is
        if isinstance(address, tuple) and address and _is_ipv6(address[0]):
            return (sockets.alias(address[0]), *address[1:2])
        return address

    def watch(
        self, loop: Any, fd: int, what: int, callback: Callable[..., Any], args: tuple[Any, ...]
    ) -> asyncio.Handle:
        """Call callback whenever a socket is ready."""
        self.forget(fd, what)
        handle = asyncio.Handle(callback, args, loop, None)
        self._watched[fd, what] = handle

        def run() -> None:
            if not handle.cancelled():
                handle._run()
            if not handle.cancelled():
                wait()

        def wait() -> None:
            self.sockets.ready(fd, what).then(
                lambda _: None if handle.cancelled() else loop.call_soon(run)
            )

        wait()
        return handle

    def forget(self, fd: int, what: int) -> bool:
        """Watch no more; whether it was watched."""
        handle = self._watched.pop((fd, what), None)
        if handle is None:
            return False
        handle.cancel()
        return True


NETWORK = Network()


def _is_ipv6(host: Any) -> bool:
    if not isinstance(host, str) or ":" not in host:
        return False
    try:
        return ipaddress.ip_address(host).version == 6
    except ValueError:
        return False


def _connect(sock: socket.socket, address: Any) -> None:
    """socket.connect, which says why it failed."""
    try:
        CONNECT(sock, NETWORK.address(address))
    except (BlockingIOError, TimeoutError, InterruptedError):
        raise
    except OSError as error:
        if error.errno == errno.E2BIG:  # what Pyodide gives where it can't wait
            text = "Sockets can't wait in a function that JavaScript calls: start a task there"
            raise RuntimeError(text) from None
        if error.errno not in FAILED:
            raise
        raise NETWORK.error(sock, error.errno) from None


def _recv(sock: socket.socket, size: int, flags: int = 0, /) -> bytes:
    """socket.recv; C's own is not told of flags here."""
    if flags:
        raise OSError(errno.EOPNOTSUPP, "recv has no flags here: select says whether data is there")
    return RECV(sock, size)


def _getaddrinfo(
    host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
) -> Any:
    """socket.getaddrinfo; a name's address stands for it until a connection is made."""
    host = NETWORK.sockets.alias(host) if _is_ipv6(host) else host
    # Whether this machine has IPv6 is not known here: C's own knows no such flag.
    return GETADDRINFO(host, port, family, type, proto, flags & ~socket.AI_ADDRCONFIG)


def _select(reads: Any, writes: Any, excepts: Any, timeout: float | None = None, /) -> Any:
    """select.select, by poll, which waits."""
    poll = select.poll()
    wanted: dict[int, int] = {}
    for files, event in ((reads, READ), (writes, WRITE)):
        for file in files:
            fd = file if isinstance(file, int) else file.fileno()
            wanted[fd] = wanted.get(fd, 0) | event
    for fd, events in wanted.items():
        poll.register(fd, events)
    found = dict(poll.poll(None if timeout is None else max(timeout, 0) * 1000))

    def ready(files: Any, events: int) -> list[Any]:
        fds = [file if isinstance(file, int) else file.fileno() for file in files]
        return [f for f, fd in zip(files, fds, strict=True) if found.get(fd, 0) & events]

    broken = select.POLLERR | select.POLLHUP
    return ready(reads, READ | broken), ready(writes, WRITE | select.POLLERR), []


class _Methods:
    """What Pyodide's loop gets beside CPython's."""

    def _add_reader(self, fd: Any, callback: Any, *args: Any) -> asyncio.Handle:
        return NETWORK.watch(self, _fd(fd), READ, callback, args)

    def _remove_reader(self, fd: Any) -> bool:
        return NETWORK.forget(_fd(fd), READ)

    def _add_writer(self, fd: Any, callback: Any, *args: Any) -> asyncio.Handle:
        return NETWORK.watch(self, _fd(fd), WRITE, callback, args)

    def _remove_writer(self, fd: Any) -> bool:
        return NETWORK.forget(_fd(fd), WRITE)

    async def create_server(self, *_: Any, **__: Any) -> Any:
        raise OSError(errno.ENETDOWN, os.strerror(errno.ENETDOWN))

    def _sock_connect_cb(self, future: Any, sock: socket.socket, address: Any) -> None:
        if future.done():
            return
        number = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number == 0:
            future.set_result(None)
        else:
            future.set_exception(NETWORK.error(sock, number))


def _fd(file: Any) -> int:
    return file if isinstance(file, int) else file.fileno()


def patch() -> Network:
    """Put all of this in place."""
    loop: Any = asyncio.get_event_loop()
    loop._transports = weakref.WeakValueDictionary()
    kind: Any = type(loop)
    for names, origin in (
        (OF_SELECTOR_LOOP, selector_events.BaseSelectorEventLoop),
        (OF_BASE_LOOP, base_events.BaseEventLoop),
        (" ".join(name for name in vars(_Methods) if "__" not in name), _Methods),
    ):
        for name in names.split():
            setattr(kind, name, vars(origin)[name])
    selector_events._HAS_SENDMSG = False  # type: ignore[attr-defined] # it does not wait
    socket.socket.connect = _connect  # type: ignore[assignment, method-assign]
    socket.socket.recv = _recv  # type: ignore[assignment, method-assign]
    socket.getaddrinfo = _getaddrinfo
    select.select = _select
    # On Emscripten urllib3 would fetch with JavaScript's fetch in place of sockets.
    stand_in: Any = ModuleType("urllib3.contrib.emscripten")
    stand_in.inject_into_urllib3 = lambda: None
    sys.modules[stand_in.__name__] = stand_in
    return NETWORK
