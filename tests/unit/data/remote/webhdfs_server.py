"""A server that speaks WebHDFS's redirects over a dictionary of files, with faults on request."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from submarine_data.remote import ClientConfiguration
from submarine_runtime.protocol import HdfsClients

#: Receives the number of the body and its bytes; returns status, announced length, bytes to send.
Fault = Callable[[int, bytes], "tuple[int, int, bytes]"]


class WebHdfs:
    """The state of the server.

    Attributes
    ----------
    files
        Path -> content.
    ranges
        Offset and length of each range that was requested.
    fault
        Changes the bodies of files; None: they are sent as they are.
    away
        Number of further requests to the NameNode that a standby answers.
    block
        Size of blocks.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.files: dict[str, bytes] = {}
        self.ranges: list[tuple[int, int]] = []
        self.queries: list[dict[str, str]] = []
        self.fault: Fault | None = None
        self.away = 0
        self.refused: tuple[int, str] | None = None
        self.block = 128 << 20
        self.bodies = 0

    @property
    def configuration(self) -> ClientConfiguration:
        """Clients of this server."""
        hdfs = HdfsClients("hdfs://fake:8020", {"fake:8020": [self.url]})
        return ClientConfiguration(hdfs, user="alice")


@contextmanager
def serving() -> Iterator[WebHdfs]:
    """Serve on a port of loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    state = WebHdfs(f"http://127.0.0.1:{server.server_port}")
    server.RequestHandlerClass = type("Handler", (_Handler,), {"state": state})
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    state: WebHdfs

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        self._dispatch()

    def do_PUT(self) -> None:
        self._dispatch()

    def do_DELETE(self) -> None:
        self._dispatch()

    def _dispatch(self) -> None:
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        path = unquote(parts.path.removeprefix("/webhdfs/v1")).rstrip("/") or "/"
        if query.get("datanode"):
            self._datanode(path, query)
            return
        self.state.queries.append(query)
        if self.state.away:
            self.state.away -= 1
            self._refuse(403, "StandbyException")
        elif self.state.refused:
            self._refuse(*self.state.refused)
        else:
            getattr(self, "_" + query["op"].lower())(path, query)

    def _refuse(self, status: int, name: str, message: str = "no") -> None:
        self._json({"RemoteException": {"exception": name, "message": message}}, status)

    def _json(self, value: Any, status: int = 200) -> None:
        self._send(status, json.dumps(value).encode())

    def _send(self, status: int, body: bytes, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def _status(self, path: str) -> dict[str, Any] | None:
        if path in self.state.files:
            size, kind = len(self.state.files[path]), "FILE"
        elif any(name.startswith(f"{path.rstrip('/')}/") for name in self.state.files):
            size, kind = 0, "DIRECTORY"
        else:
            return None
        return {
            "length": size,
            "type": kind,
            "blockSize": self.state.block,
            "modificationTime": 5000,
            "permission": "644",
        }

    def _getfilestatus(self, path: str, _query: dict[str, str]) -> None:
        status = self._status(path)
        if status is None:
            self._refuse(404, "FileNotFoundException")
        else:
            self._json({"FileStatus": {**status, "pathSuffix": ""}})

    def _liststatus(self, path: str, _query: dict[str, str]) -> None:
        base = f"{path.rstrip('/')}/"
        names = {
            name[len(base) :].split("/")[0] for name in self.state.files if name.startswith(base)
        }
        found = [
            {**(self._status(base + name) or {}), "pathSuffix": name} for name in sorted(names)
        ]
        self._json({"FileStatuses": {"FileStatus": found}})

    def _redirect(self) -> None:
        self.send_response(307)
        self.send_header("Location", f"{self.state.url}{self.path}&datanode=true")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _open(self, _path: str, _query: dict[str, str]) -> None:
        self._redirect()

    def _create(self, _path: str, _query: dict[str, str]) -> None:
        self._redirect()

    def _rename(self, path: str, query: dict[str, str]) -> None:
        self.state.files[query["destination"]] = self.state.files.pop(path)
        self._json({"boolean": True})

    def _mkdirs(self, _path: str, _query: dict[str, str]) -> None:
        self._json({"boolean": True})

    def _delete(self, path: str, _query: dict[str, str]) -> None:
        for name in [one for one in self.state.files if f"{one}/".startswith(f"{path}/")]:
            del self.state.files[name]
        self._json({"boolean": True})

    def _datanode(self, path: str, query: dict[str, str]) -> None:
        if query["op"] == "CREATE":
            self.state.files[path] = self.rfile.read(int(self.headers["Content-Length"]))
            self._send(201, b"")
            return
        offset, length = int(query.get("offset", 0)), int(query["length"])
        self.state.ranges.append((offset, length))
        body = self.state.files[path][offset : offset + length]
        announced, status, number = len(body), 200, self.state.bodies
        self.state.bodies += 1
        if self.state.fault is not None:
            status, announced, body = self.state.fault(number, body)
        self._send(status, body, announced)
        self.close_connection = True
