"""A small MCP client that speaks to one server over standard input and output, or HTTP.

It reads where it waits, in the caller's thread, so that its own share of a
call's time is a small fraction of a millisecond.
"""

import http.client
import json
import os
import select
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .samples import Stopwatch

PROTOCOL = "2025-06-18"
SILENCE = 300  # seconds after which a server that says nothing is given up

# An answer: what the tool said, and the milliseconds from request to answer.
Answer = tuple[dict[str, Any], float]


class ServerError(Exception):
    """A server ended, or answered with an error."""


class Server:
    """A server process that has answered initialize."""

    def __init__(self, command: list[str], env: dict[str, str], cwd: Path | None = None) -> None:
        self.command = command
        self.log = tempfile.TemporaryFile()
        self.next = 0
        watch = Stopwatch()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=env,
            cwd=cwd,
            bufsize=0,
        )
        self.unread = bytearray()
        try:
            self.info = self.request(
                "initialize",
                {
                    "protocolVersion": PROTOCOL,
                    "capabilities": {},
                    "clientInfo": {"name": "bench", "version": "1"},
                },
            )["serverInfo"]
            self.started = watch.ms()  # from the start of the process to the answer
            self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self.process.pid

    def close(self) -> None:
        """End the server as a client does, by closing its input; by force if need be."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # it has ended
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its result; nothing else may be in flight."""
        return self.receive(self.send(method, params))

    def send(self, method: str, params: dict[str, Any]) -> int:
        """Send a request; its number is for receive."""
        self.next += 1
        self._write({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})
        return self.next

    def receive(self, wanted: int) -> dict[str, Any]:
        """Wait for the result of a request; those of others are dropped."""
        while True:
            key, result = self._read()
            if key == wanted:
                return result

    def call(self, tool: str, arguments: dict[str, Any], streamed: bool = False) -> Answer:
        """Call a tool; streamed asks for progress notifications."""
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if streamed:
            params["_meta"] = {"progressToken": "bench"}
        watch = Stopwatch()
        result = self.request("tools/call", params)
        return result, watch.ms()

    def calls(
        self,
        tool: str,
        arguments: Iterable[dict[str, Any]],
        in_flight: int,
        each: Callable[[Answer], None],
    ) -> None:
        """Call a tool with each of the arguments, so many at once."""
        waiting: dict[int, float] = {}
        rest = iter(arguments)

        def send_next() -> None:
            for one in rest:
                sent = time.perf_counter()
                waiting[self.send("tools/call", {"name": tool, "arguments": one})] = sent
                return

        for _ in range(in_flight):
            send_next()
        while waiting:
            key, result = self._read()
            if key in waiting:
                took = (time.perf_counter() - waiting.pop(key)) * 1000
                send_next()
                each((result, took))

    def _write(self, message: dict[str, Any]) -> None:
        try:
            text = memoryview(json.dumps(message).encode() + b"\n")
            while text:
                text = text[self.process.stdin.write(text) :]
        except BrokenPipeError:
            raise self._failed("ended") from None

    def _read(self) -> tuple[int | None, dict[str, Any]]:
        """The next answer, with None in place of its number when the line is something else."""
        line = self._line()
        if not line.startswith(b"{"):
            return None, {}  # a log line: some servers write them where they must not
        message = json.loads(line)
        if "error" in message:
            raise self._failed(f"answered {message['error']}")
        if "result" not in message:
            return None, {}
        return message["id"], message["result"]

    def _line(self) -> bytes:
        """The next line of the server's output."""
        output = self.process.stdout.fileno()
        end = self.unread.find(b"\n")
        while end < 0:
            if not select.select([output], [], [], SILENCE)[0]:
                self.process.kill()
                raise self._failed(f"said nothing for {SILENCE} s")
            piece = os.read(output, 1 << 20)
            if not piece:
                raise self._failed("ended")
            found = piece.find(b"\n")
            end = len(self.unread) + found if found >= 0 else -1
            self.unread += piece
        line = bytes(self.unread[: end + 1])
        del self.unread[: end + 1]
        return line

    def _failed(self, what: str) -> ServerError:
        self.log.seek(max(0, os.fstat(self.log.fileno()).st_size - 2000))
        said = self.log.read().decode(errors="replace").strip()
        return ServerError(f"{' '.join(self.command)} {what}\n{said}")


class WebServer:
    """A server process that answers over HTTP, and one connection to it with a session."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.process = subprocess.Popen(
            [*command, "--http", f"127.0.0.1:{port}", "--http-requests", "0"],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=env,
        )
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SILENCE)
        self.headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        self.next = 0
        watch = Stopwatch()
        while True:
            try:
                self.connection.connect()
                break
            except ConnectionRefusedError:
                if watch.ms() > 1000 * SILENCE or self.process.poll() is not None:
                    raise ServerError(f"{' '.join(command)} does not listen") from None
                time.sleep(0.01)
        hello = {
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        self._post({"method": "initialize", "params": hello, "id": 0})
        self.headers["MCP-Protocol-Version"] = PROTOCOL
        self._post({"method": "notifications/initialized"})

    def __enter__(self) -> "WebServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()
        self.process.terminate()
        self.process.wait()

    def call(self, tool: str, arguments: dict[str, Any], streamed: bool = False) -> Answer:
        """Call a tool; streamed asks for progress notifications."""
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if streamed:
            params["_meta"] = {"progressToken": "bench"}
        self.next += 1
        watch = Stopwatch()
        text = self._post({"method": "tools/call", "params": params, "id": self.next})
        for line in text.splitlines():
            if line.startswith(b"data: {"):
                message = json.loads(line[6:])
                if message.get("id") == self.next:
                    return message["result"], watch.ms()
        raise ServerError(f"no answer in {text[:2000]!r}")

    def _post(self, message: dict[str, Any]) -> bytes:
        body = json.dumps({"jsonrpc": "2.0", **message})
        self.connection.request("POST", "/mcp", body, self.headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise ServerError(f"{answer.status} {text.decode(errors='replace')}")
        if session := answer.getheader("Mcp-Session-Id"):
            self.headers["Mcp-Session-Id"] = session
        return text
