"""A job's port as ``protocol.wire`` says it: TLS, token, scripted streams; and a job to look at it.

Stands in for a coordinator that drops connections, repeats and leaves out what a test wants; the
real one is in tests/local.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

from submarine_jobs.access import JobDirectory, create_secret
from submarine_jobs.client import Job
from submarine_jobs.model import JobSpec, Role
from submarine_jobs.storage import LocalStorage
from submarine_runtime.protocol import JobRecord, State, layout, wire

JOB_ID = "gang-20261121-0a1b"


def log_line(task: str, attempt: str, offset: int, data: bytes, stream: str = "stdout") -> Any:
    place = {"task": task, "attempt": attempt, "stream": stream, "offset": offset}
    return {"type": "log", **place, "data": base64.b64encode(data).decode()}


def skip_line(task: str, attempt: str, offset: int, to: int) -> Any:
    return {
        "type": "skip",
        "task": task,
        "attempt": attempt,
        "stream": "stdout",
        "offset": offset,
        "to": to,
    }


class Port:
    """Each stream that is opened gets the next of ``scripts``; then its connection breaks."""

    def __init__(self, root: Path, scripts: Iterable[list[Any]]) -> None:
        self.secret = create_secret(JOB_ID)
        self.scripts = list(scripts)
        self.asked: list[dict[str, str]] = []
        self.logs: dict[str, bytes] = {}
        self.record = JobRecord(JOB_ID, "gang", State.RUNNING)
        self.open = 0
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        pem = root / "server.pem"
        pem.write_text(self.secret.certificate + self.secret.key)
        context.load_cert_chain(pem)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        port = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None:
                pass

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
                assert self.headers["Authorization"] == f"Bearer {port.secret.token}"
                if parts.path == wire.STATUS:
                    self._send(json.dumps(port.record.to_json()).encode())
                elif parts.path == wire.LOG:
                    key = f"{query['task']}/{query.get('attempt', 'e1-a1')}/{query['stream']}"
                    data, offset = port.logs.get(key), int(query["offset"])
                    if data is None:
                        self.send_error(404)
                        return
                    offset = max(0, len(data) + offset) if offset < 0 else offset
                    piece = data[offset : offset + int(query["limit"])]
                    self._send(piece, {wire.OFFSET_HEADER: offset, wire.LENGTH_HEADER: len(data)})
                else:
                    port.asked.append(query)
                    self.send_response(200)
                    self.end_headers()
                    for line in port.scripts.pop(0) if port.scripts else ():
                        self.wfile.write(json.dumps(line).encode() + b"\n")

            def _send(self, body: bytes, headers: Any = None) -> None:
                self.send_response(200)
                for name, value in (headers or {}).items():
                    self.send_header(name, str(value))
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        return Handler


class FollowedJob(Job):
    """A job whose record is the port's; everything else is the real thing."""

    def __init__(self, root: Path, port: Port, roles: tuple[Role, ...]) -> None:
        directory = JobDirectory(LocalStorage(), str(root))
        session: Any = SimpleNamespace(store=SimpleNamespace(get=lambda _: None))
        backend: Any = None
        super().__init__(session, JOB_ID, "gang", backend, directory, None)
        self.port = port
        storage = directory.storage
        storage.publish(
            directory.file(layout.SPEC), JobSpec("gang", "local", roles=roles).to_bytes()
        )
        storage.publish(directory.file(layout.SECRET), port.secret.to_bytes())
        self.announce()

    def announce(self) -> None:
        host, number = self.port.server.server_address[:2]
        self.directory.publish_json(layout.LIVE, {"host": host, "port": number})

    def record(self) -> JobRecord:
        if not self.port.scripts:
            self.port.record.state = State.SUCCEEDED
        return self.port.record

    def ship(self, task: str, attempt: tuple[int, int], data: bytes, offset: int = 0) -> None:
        place = layout.log_directory(task, *attempt)
        name = layout.segment_name("stdout", offset)
        self.directory.storage.publish(self.directory.file(f"{place}/{name}"), data)
