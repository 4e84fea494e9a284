"""A package index and an npm registry on loopback, with small generated packages."""

import base64
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

RELEASED = "2026-01-01T00:00:00Z"  # older than any minimum age for releases


class Registries:
    """Serves packages one000, one001, …, for Python below /simple, for npm below /npm."""

    def __init__(self, packages: int) -> None:
        files: dict[str, tuple[str, bytes]] = {}
        self.names = [f"one{number:03}" for number in range(packages)]

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                kind, body = files.get(self.path.rstrip("/"), ("", b""))
                self.send_response(200 if kind else 404)
                self.send_header("Content-Type", kind or "text/plain")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        class Many(ThreadingHTTPServer):
            request_queue_size = 256  # clients that fetch 100 packages connect at once
            daemon_threads = True

        self._server = Many(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        for name in self.names:
            files.update(_python(self.url, name))
            files.update(_npm(self.url, name))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> "Registries":
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def env(self) -> dict[str, str]:
        """The environment of a server that gets its packages from here."""
        return {
            "RILLBOX_INDEX_URL": f"{self.url}/simple",
            "NPM_CONFIG_REGISTRY": f"{self.url}/npm/",
        }


def wheel(name: str) -> bytes:
    """A wheel of one module that counts 1."""
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": "count = 1\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{path},sha256={_encoded(hashlib.sha256(text.encode()))},{len(text)}\n"
        for path, text in files.items()
    )
    files[f"{info}/RECORD"] = record + f"{info}/RECORD,,\n"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in files.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    return data.getvalue()


def _encoded(digest) -> str:
    return base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()


def _python(url: str, name: str) -> dict[str, tuple[str, bytes]]:
    content = wheel(name)
    filename = f"{name}-1.0-py3-none-any.whl"
    page = {
        "meta": {"api-version": "1.1"},
        "name": name,
        "files": [
            {
                "filename": filename,
                "url": f"{url}/files/{filename}",
                "hashes": {"sha256": hashlib.sha256(content).hexdigest()},
                "upload-time": RELEASED,
            }
        ],
    }
    return {
        f"/simple/{name}": ("application/vnd.pypi.simple.v1+json", json.dumps(page).encode()),
        f"/files/{filename}": ("application/octet-stream", content),
    }


def _npm(url: str, name: str) -> dict[str, tuple[str, bytes]]:
    manifest = {"name": name, "version": "1.0.0", "type": "module", "exports": "./index.js"}
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for path, text in (
            ("package/package.json", json.dumps(manifest)),
            ("package/index.js", "export const count = 1;\n"),
        ):
            member = tarfile.TarInfo(path)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    content = data.getvalue()
    path = f"/npm/{name}/-/{name}-1.0.0.tgz"
    dist = {
        "tarball": url + path,
        "integrity": "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode(),
    }
    page = {
        "name": name,
        "dist-tags": {"latest": "1.0.0"},
        "versions": {"1.0.0": {**manifest, "dist": dist}},
        "time": {"1.0.0": RELEASED},
    }
    return {
        f"/npm/{name}": ("application/json", json.dumps(page).encode()),
        path: ("application/octet-stream", content),
    }
