"""HTTP client of a notebook server that was started by ``submarine notebook start``."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
from typing import Any
from urllib.parse import urlsplit

from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from submarine_jobs.access import tls_context
from submarine_jobs.client import Job


class HttpClient:
    """A client with the page's address and optionally its token; trusts the job's certificate."""

    def __init__(self, job: Job, page: str, token: str = "") -> None:
        self.context: ssl.SSLContext = tls_context(job.directory.secret())
        place = urlsplit(page)
        self.host, self.port, self.page = str(place.hostname), int(place.port or 0), place.path
        self.token = token

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Send a request with a JSON body; return status, headers and body."""
        return self._send(method, path, json.dumps(body) if body is not None else None, headers)

    def post(
        self, path: str, body: str, headers: dict[str, str]
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Send a request with a text as its body."""
        return self._send("POST", path, body, headers)

    def _send(
        self, method: str, path: str, data: str | None, headers: dict[str, str] | None
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection = http.client.HTTPSConnection(
            self.host, self.port, timeout=60, context=self.context
        )
        given = dict(headers or {})
        if self.token:
            given["Authorization"] = f"token {self.token}"
        try:
            connection.request(method, path, data, given)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def save(self, name: str, mark: str) -> None:
        """Save a notebook like the page."""
        content = {"cells": [], "metadata": {"mark": mark}, "nbformat": 4, "nbformat_minor": 5}
        model = {"type": "notebook", "content": content}
        status, _, body = self.ask("PUT", f"/api/contents/{name}", model)
        assert status in (200, 201), body

    async def run(self, code: str) -> str:
        """Start a kernel, execute code through the websocket, and return what it printed."""
        status, _, body = self.ask("POST", "/api/kernels", {"name": "python3"})
        assert status == 201, body
        kernel = json.loads(body)["id"]
        url = f"wss://{self.host}:{self.port}/api/kernels/{kernel}/channels"
        request = HTTPRequest(
            url, ssl_options=self.context, headers={"Authorization": f"token {self.token}"}
        )
        socket = await websocket_connect(request)
        content = {"code": code, "silent": False, "store_history": False, "user_expressions": {}}
        header = {"msg_id": "m", "msg_type": "execute_request", "session": "s", "username": ""}
        header |= {"date": "2026-01-01T00:00:00Z", "version": "5.3"}
        message = {"channel": "shell", "header": header, "parent_header": {}, "metadata": {}}
        await socket.write_message(json.dumps({**message, "content": content}))
        printed = ""
        while True:
            heard = await socket.read_message()
            assert isinstance(heard, str), "the kernel's connection ended"
            found = json.loads(heard)
            if found["parent_header"].get("msg_id") != "m":
                continue
            if found["msg_type"] == "stream":
                printed += found["content"]["text"]
            # The reply uses another channel and may arrive before the output; this status cannot.
            if found["msg_type"] == "status" and found["content"]["execution_state"] == "idle":
                break
        socket.close()
        while await asyncio.wait_for(socket.read_message(), 10) is not None:
            pass  # Only now its connection is closed.
        return printed
