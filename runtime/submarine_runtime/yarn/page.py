"""The verb ``page``: shows one job on its own YARN page and passes its progress to YARN.

The agent starts it beside a running program and writes one JSON object a line to its standard
input; the first line of its standard output says whether it works. It ends when its input does.
It needs skein in its own interpreter; without it there is no page, and the job does not mind.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Sequence

from submarine_runtime.network import (
    Address,
    UnknownPeerError,
    addresses_of,
    peer_uid,
    remote_address,
)
from submarine_runtime.yarn.page_html import page

MAX_LINE = 1 << 16
#: Seconds that one call to the application master may take.
CALL_SECONDS = 10.0
#: Seconds between two words on progress; the master itself speaks to YARN every few seconds.
PROGRESS_SECONDS = 2.0
ROUTE = "job"
LINK = "Submarine job"
LOOPBACK = "127.0.0.1"


class Page:
    """The job as last told, and the small server that shows it to the application master.

    YARN's proxy asks the master, which lets nobody else in and passes the request on. Other hosts
    and other users of this machine are refused here, so they cannot go around the proxy.

    Parameters
    ----------
    master
        Host of the application master; None: this container's.
    """

    def __init__(self, host: str, master: str | None = None) -> None:
        self.job: dict[str, Any] = {}
        outer = self
        hosts = set() if master is None else addresses_of(master)

        class Server(HTTPServer):
            def verify_request(self, request: Any, client_address: Any) -> bool:
                if _is_from_master(request, hosts):
                    return True
                with suppress(OSError):
                    request.sendall(_REFUSED)
                return False

        class Handler(BaseHTTPRequestHandler):
            timeout = 10

            def do_GET(self) -> None:
                body = page(outer.job)
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Content-Security-Policy", _POLICY)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                return

        self._server = Server((host, 0), Handler)
        self.url = f"http://{host}:{self._server.server_port}/"

    def serve(self) -> None:
        """Answer, one request at a time, in the background."""
        threading.Thread(target=self._server.serve_forever, args=(5.0,), daemon=True).start()


def _is_from_master(request: socket.socket, hosts: set[Address]) -> bool:
    """Whether a connection comes from this user on this machine, or from another one's address."""
    try:
        uid = peer_uid(request)
    except UnknownPeerError:
        uid = None
        hosts = hosts or addresses_of(LOOPBACK)
    # The master runs as the user of the job's other containers, and on any address of its machine.
    return uid == os.geteuid() if uid is not None else remote_address(request) in hosts


_WORDS = b"Open the job's page from its application's page on YARN.\n"
_REFUSED = b"HTTP/1.0 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s" % (
    len(_WORDS),
    _WORDS,
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


class Master:
    """skein's application master, with a timeout on every call."""

    def __init__(self) -> None:
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "grpc_proxy"):
            os.environ.pop(name, None)  # the master is never behind one
        import skein  # type: ignore[import-not-found,import-untyped,unused-ignore]
        from skein import proto

        self._proto = proto
        self._client = skein.ApplicationClient.from_current()
        self._told: float | None = None
        self._at = 0.0

    def add_page(self, url: str) -> None:
        """Put a link to ``url`` on the application's page; the master passes requests on."""
        request = self._proto.Proxy(route=ROUTE, target=url, link_name=LINK)
        self._client._call("AddProxy", request, timeout=CALL_SECONDS)

    def progress(self, value: Any) -> None:
        """Tell how far the job is, if that is a number from 0 to 1, new, and not too soon."""
        if not isinstance(value, (int, float)) or not 0 <= value <= 1:
            return
        now = time.monotonic()
        if value == self._told or (now - self._at < PROGRESS_SECONDS and value < 1):
            return
        self._told, self._at = float(value), now
        request = self._proto.SetProgressRequest(progress=float(value))
        self._client._call("SetProgress", request, timeout=CALL_SECONDS)


def main(arguments: Sequence[str]) -> int:
    """Show the job until standard input ends; 3 if that is not possible here."""
    if arguments:
        sys.stderr.write("usage: python -I runtime.zip page\n")
        return 2
    try:
        # A task beside its master is reached over the network, one within it is not.
        if os.environ.get("SKEIN_CONTAINER_ID"):
            address = os.environ["SKEIN_APPMASTER_ADDRESS"].rpartition(":")[0].strip("[]")
            shown = Page(os.environ.get("NM_HOST") or LOOPBACK, address)
        else:
            shown = Page(LOOPBACK)
        master = Master()
        shown.serve()
        master.add_page(shown.url)
    except Exception as exc:
        # skein and grpc may fail in many ways, and none of them is the job's concern.
        _answer(ok=False, why=f"{type(exc).__name__}: {exc}"[:300])
        return 3
    _answer(ok=True)
    _follow(shown, master)
    return 0


def _follow(shown: Page, master: Master) -> None:
    while True:
        line = sys.stdin.readline(MAX_LINE)
        if not line:
            return
        try:
            job = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(job, dict):
            continue
        shown.job = {**shown.job, **job}
        try:
            master.progress(job.get("progress"))
        except Exception:
            return  # the master is going away


def _answer(**words: Any) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()
