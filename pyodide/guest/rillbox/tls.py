"""Python's ssl, whose TLS is Deno's: see tls.ts.

Pyodide's own ssl has the names and no TLS. Here are SSLObject, which all else stands
on, and SSLSocket. A context that names no certificates trusts those that Deno trusts,
also where it names certifi's, which are the same.
"""

import errno
import ipaddress
import json
import socket
import ssl
from typing import Any

from pyodide.ffi import run_sync, to_js

from . import errors
from .network import NETWORK

# How much is asked of a socket at a time, in bytes.
CHUNK = 1 << 16
NAMES = {"C": "countryName", "O": "organizationName", "CN": "commonName"}
VERSIONS = {ssl.TLSVersion.TLSv1_2: "TLSv1.2", ssl.TLSVersion.TLSv1_3: "TLSv1.3"}
# What verification says.
ISSUER = ("UNABLE_TO_", "SELF_SIGNED", "DEPTH_ZERO")  # whom nobody here trusts
CERTIFICATE = ("CERT_", "UNABLE_", "SELF_SIGNED", "DEPTH_ZERO", "ERR_TLS_CERT", "HOSTNAME")


class SSLObject(ssl.SSLObject):
    """The client's end of a connection, between two MemoryBIOs."""

    _context: Any
    _end: Any = None
    _over: bool = False  # the end of what comes in was told

    @classmethod
    def _create(  # type: ignore[override]
        cls,
        incoming: Any,
        outgoing: Any,
        server_side: bool = False,
        server_hostname: str | None = None,
        session: Any = None,
        context: Any = None,
    ) -> "SSLObject":
        if server_side:
            raise OSError(errno.ENETDOWN, "TLS is a client's only here")
        if context.check_hostname and not server_hostname:
            raise ValueError("check_hostname requires server_hostname")
        made = cls.__new__(cls)
        made._incoming, made._outgoing = incoming, outgoing
        made._context, made._server_hostname = context, context._encode_hostname(server_hostname)
        return made

    context = property(lambda self: self._context)
    server_hostname = property(lambda self: self._server_hostname)
    server_side = property(lambda self: False)

    def _begin(self) -> Any:
        context, host = self._context, self._server_hostname or ""
        trusted = vars(context).get("_trusted", [])
        options = {
            "host": host.strip("[]").rstrip("."),
            "address": _is_address(host),
            "checkHost": bool(host) and context.check_hostname,
            "verify": context.verify_mode != ssl.CERT_NONE,
            "trusted": trusted,
            "all": vars(context).get("_all", False),
            "protocols": vars(context).get("_protocols", []),
            "lowest": VERSIONS.get(context.minimum_version, "TLSv1.2"),
            "highest": VERSIONS.get(context.maximum_version, "TLSv1.3"),
            "certificate": vars(context).get("_certfile_data"),
            "key": vars(context).get("_keyfile_data"),
            "password": vars(context).get("_key_password"),
        }
        self._end = NETWORK.sockets.tls(to_js(options, dict_converter=_object))
        self._settle()
        return self._end

    def _settle(self) -> None:
        """Let everything have its effect; what is to be sent goes to the outgoing BIO."""
        run_sync(self._end.settled())
        self._send()

    def _send(self) -> None:
        if data := self._end.take().to_bytes():
            self._outgoing.write(data)

    def _take(self) -> bool:
        """Take what came in; whether there was anything."""
        data = self._incoming.read()
        if data:
            self._end.feed(to_js(data))
        elif self._incoming.eof and not self._over:
            self._over = True
            self._end.feed(None)
        else:
            return False
        return True

    def _check(self) -> None:
        if not self._end.error:
            return
        text, code = str(self._end.error), str(self._end.code)
        context = vars(self._context)
        if code.startswith(ISSUER) and (context.get("_all") or not context.get("_trusted")):
            text = f"{text} ({errors.UNTRUSTED})"
        if code.startswith(CERTIFICATE) or "ertificate" in text:
            error = ssl.SSLCertVerificationError(
                1, f"[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {text}"
            )
            error.reason, error.library = "CERTIFICATE_VERIFY_FAILED", "SSL"
            error.verify_code, error.verify_message = 1, text
            raise error
        failure = ssl.SSLError(1, f"[SSL] {text}")
        failure.reason, failure.library = code or "TLS", "SSL"
        raise failure

    def do_handshake(self) -> None:
        end = self._end or self._begin()
        while not end.done:
            took = self._take()
            if took:
                self._settle()
            self._check()
            if not end.done and not took:
                raise self._end_or(ssl.SSLWantReadError(2, "The operation did not complete (read)"))

    def _end_or(self, wait: ssl.SSLError) -> ssl.SSLError:
        if self._incoming.eof:
            return ssl.SSLEOFError(8, "EOF occurred in violation of protocol")
        return wait

    def _begun(self) -> Any:
        if self._end is None or not self._end.done:
            self.do_handshake()
        return self._end

    def read(self, size: int = 1024, buffer: Any = None) -> Any:  # type: ignore[override]
        end = self._begun()
        while not end.pending and not end.ended:
            if not self._take():
                raise self._end_or(ssl.SSLWantReadError(2, "The operation did not complete (read)"))
            if not end.pending:
                self._settle()
                self._check()
        data = end.read(size).to_bytes()
        if buffer is None:
            return data
        buffer[: len(data)] = data
        return len(data)

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self._begun()
        self._check()
        run_sync(self._end.write(to_js(view)))
        self._send()
        return view.nbytes

    def pending(self) -> int:
        return self._end.pending if self._end else 0

    def unwrap(self) -> None:
        if not self._end:
            raise ValueError("No SSL wrapper around it")
        self._end.end()
        self._settle()
        while not self._end.ended:
            if not self._take():
                raise self._end_or(ssl.SSLWantReadError(2, "The operation did not complete (read)"))
            self._settle()

    def getpeercert(self, binary_form: bool = False) -> Any:
        if not self._end or not self._end.done:
            raise ValueError("handshake not done yet")
        if binary_form:
            der = self._end.certificate
            return der.to_bytes() if der else None
        if self._context.verify_mode == ssl.CERT_NONE or not (text := self._end.fields):
            return {}
        fields = json.loads(text)
        for whose in ("subject", "issuer"):
            fields[whose] = tuple(
                ((NAMES.get(key, key), value),) for key, value in fields[whose].items()
            )
        fields["subjectAltName"] = tuple(map(tuple, fields["subjectAltName"]))
        return fields | {"version": 3}

    def selected_alpn_protocol(self) -> str | None:
        return self._end.protocol if self._end else None

    def version(self) -> str | None:
        return self._end.version if self._end and self._end.done else None

    def cipher(self) -> Any:
        return (self._end.cipher, self.version(), 256) if self.version() else None

    def compression(self) -> None:
        return None


class SSLSocket(ssl.SSLSocket):
    """A socket with an SSLObject before it."""

    _sslobj: Any

    @classmethod
    def _create(  # type: ignore[override]
        cls,
        sock: Any,
        server_side: bool = False,
        do_handshake_on_connect: bool = True,
        suppress_ragged_eofs: bool = True,
        server_hostname: str | None = None,
        context: Any = None,
        session: Any = None,
    ) -> "SSLSocket":
        if sock.type != socket.SOCK_STREAM:
            raise NotImplementedError("only stream sockets are supported")
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = SSLObject._create(incoming, outgoing, server_side, server_hostname, session, context)
        made = cls.__new__(cls)
        timeout = sock.gettimeout()
        socket.socket.__init__(made, sock.family, sock.type, sock.proto, sock.fileno())
        sock.detach()
        made.settimeout(timeout)
        made._sslobj, made._context, made._server_hostname = tls, context, server_hostname
        made._on_connect, made._suppress = do_handshake_on_connect, suppress_ragged_eofs
        made.server_side = False
        try:
            made.getpeername()
        except OSError:
            return made
        if do_handshake_on_connect:
            made._shake()
        return made

    server_side = False  # type: ignore[assignment]
    session = session_reused = None  # type: ignore[assignment]

    def _shake(self) -> None:
        try:
            self.do_handshake()
        except BaseException:
            self.close()
            raise

    def connect(self, address: Any) -> None:
        socket.socket.connect(self, address)
        if self._on_connect:
            self._shake()

    def connect_ex(self, address: Any) -> int:
        number = socket.socket.connect_ex(self, address)
        if not number and self._on_connect:
            self._shake()
        return number

    def _flush(self) -> None:
        """Send what TLS wants to be sent."""
        outgoing = self._sslobj._outgoing
        while data := outgoing.read():
            sent = 0
            try:
                while sent < len(data):
                    sent += socket.socket.send(self, data[sent : sent + CHUNK])
            except BlockingIOError:
                raise ssl.SSLWantWriteError(3, "The operation did not complete (write)") from None
            finally:
                if sent < len(data):
                    outgoing.write(data[sent:])

    def _do(self, step: Any, *args: Any) -> Any:
        """Take a step of TLS, with all that is sent and received for it."""
        while True:
            try:
                result = step(*args)
            except ssl.SSLWantReadError as want:
                self._flush()
                try:
                    data = socket.socket.recv(self, CHUNK)
                except BlockingIOError:
                    raise want from None
                if data:
                    self._sslobj._incoming.write(data)
                else:
                    self._sslobj._incoming.write_eof()
            else:
                self._flush()
                return result

    def do_handshake(self, block: bool = False) -> None:
        self._do(self._sslobj.do_handshake)

    def read(self, size: int = 1024, buffer: Any = None) -> Any:  # type: ignore[override]
        try:
            return self._do(self._sslobj.read, size, buffer)
        except ssl.SSLEOFError:
            if not self._suppress:
                raise
            return b"" if buffer is None else 0

    def write(self, data: Any) -> int:
        return self._do(self._sslobj.write, data)

    def send(self, data: Any, flags: int = 0) -> int:
        return self.write(memoryview(data).cast("B")[:CHUNK]) if len(data) else 0

    def sendall(self, data: Any, flags: int = 0) -> None:
        view = memoryview(data).cast("B")
        for start in range(0, len(view), CHUNK):
            self.write(view[start : start + CHUNK])

    def sendfile(self, file: Any, offset: int = 0, count: int | None = None) -> int:
        return self._sendfile_use_send(file, offset, count)

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        return self.read(buflen) if buflen else b""

    def recv_into(self, buffer: Any, nbytes: int | None = None, flags: int = 0) -> int:
        with memoryview(buffer).cast("B") as view:
            return self.read(nbytes or len(view), view) if len(view) else 0

    def _no_datagrams(self, *_: Any) -> Any:
        raise ValueError("not allowed on instances of SSLSocket")

    recvfrom = recvfrom_into = sendto = _no_datagrams

    def shutdown(self, how: int) -> None:
        socket.socket.shutdown(self, how)

    def _real_close(self) -> None:  # type: ignore[override]
        if end := self._sslobj._end:
            end.close()
        super()._real_close()  # type: ignore[misc]

    def unwrap(self) -> Any:
        self._do(self._sslobj.unwrap)
        plain = socket.socket(self.family, self.type, self.proto, self.fileno())
        plain.settimeout(self.gettimeout())
        self.detach()
        return plain

    def pending(self) -> int:
        return self._sslobj.pending()

    def getpeercert(self, binary_form: bool = False) -> Any:
        return self._sslobj.getpeercert(binary_form)

    def selected_alpn_protocol(self) -> str | None:
        return self._sslobj.selected_alpn_protocol()

    def version(self) -> str | None:
        return self._sslobj.version()

    def cipher(self) -> Any:
        return self._sslobj.cipher()


def _object(entries: Any) -> Any:
    import js

    return js.Object.fromEntries(entries)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _wrap_bio(
    context: Any,
    incoming: Any,
    outgoing: Any,
    server_side: bool = False,
    server_hostname: str | None = None,
    session: Any = None,
) -> SSLObject:
    return SSLObject._create(incoming, outgoing, server_side, server_hostname, session, context)


def _load(context: Any, cafile: Any = None, capath: Any = None, cadata: Any = None) -> None:
    """SSLContext.load_verify_locations."""
    if cafile is None and capath is None and cadata is None:
        raise TypeError("cafile, capath and cadata cannot be all omitted")
    if capath is not None:
        raise NotImplementedError("give cafile or cadata: a directory of certificates is not read")
    if cafile is not None:
        if str(cafile).endswith("/certifi/cacert.pem"):
            context._all = True
        else:
            with open(cafile, encoding="utf-8", errors="replace") as file:
                _trust(context, file.read())
    if cadata is not None:
        text = cadata if isinstance(cadata, str) else ssl.DER_cert_to_PEM_cert(cadata)
        _trust(context, text)


def _trust(context: Any, text: str) -> None:
    if ssl.PEM_HEADER not in text:
        raise ssl.SSLError(1, "[X509: NO_CERTIFICATE_OR_CRL_FOUND] no certificate or crl found")
    context._trusted = [*vars(context).get("_trusted", []), text]


def _load_defaults(context: Any, purpose: Any = ssl.Purpose.SERVER_AUTH) -> None:
    context._all = True


def _set_alpn(context: Any, protocols: Any) -> None:
    context._protocols = list(protocols)


def _get_server_certificate(
    addr: Any, ssl_version: Any = None, ca_certs: Any = None, timeout: float | None = None
) -> str:
    """The certificate of a server, in PEM; verified if ca_certs says whom to trust."""
    context: Any = ssl._create_unverified_context()
    if ca_certs is not None:
        context = ssl.create_default_context(cafile=ca_certs)
    with socket.create_connection(addr, timeout) as sock:
        with context.wrap_socket(sock, server_hostname=addr[0]) as tls:
            return ssl.DER_cert_to_PEM_cert(tls.getpeercert(True))


def patch() -> None:
    """Give ssl all of this."""
    kind: Any = ssl.SSLContext
    kind.wrap_bio = _wrap_bio
    kind.load_verify_locations = _load
    kind.load_default_certs = _load_defaults
    kind.set_default_verify_paths = _load_defaults
    kind.set_alpn_protocols = _set_alpn
    kind.sslsocket_class = ssl.SSLSocket = SSLSocket  # type: ignore[misc]
    kind.sslobject_class = ssl.SSLObject = SSLObject  # type: ignore[misc]
    ssl.get_server_certificate = _get_server_certificate  # type: ignore[assignment]
    ssl.HAS_TLSv1_3 = ssl.HAS_NEVER_CHECK_COMMON_NAME = True
