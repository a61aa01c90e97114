"""The job's page on YARN; the verb ``page`` shows it for a single task.

The page is script-free HTML with escaped text and links to http and https only. The agent starts
the verb beside a running program and writes one JSON object in each line to its standard input.
The first line of its standard output says whether the page works. The process ends with its input.
It needs skein in its own interpreter; without it there is no page, and the job is not affected.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from contextlib import suppress
from html import escape
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Mapping, Sequence

from submarine_runtime.network import (
    Address,
    UnknownPeerError,
    addresses_of,
    peer_uid,
    range_listener,
    remote_address,
)
from submarine_runtime.translation import _

MAX_LINE = 1 << 16
#: Seconds that one call to the application master may take.
CALL_SECONDS = 10.0
#: Seconds between two updates of the progress; the master reports to YARN every few seconds.
PROGRESS_SECONDS = 2.0
ROUTE = "job"
LINK = _("Submarine job")
LOOPBACK = "127.0.0.1"
REFRESH_SECONDS = 5
MAX_TEXT = 300
MAX_LINKS = 30

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="{refresh}">
<title>{title}</title><style>
body {{ font: 15px/1.5 sans-serif; margin: 2em; max-width: 50em; color: #222; }}
th {{ text-align: left; padding-right: 1.5em; font-weight: 600; vertical-align: top; }}
progress {{ width: 20em; vertical-align: middle; }}
</style></head><body><h1>{title}</h1><table>{rows}</table>{links}</body></html>
"""


class PageServer:
    """HTTP server that shows the job to the application master.

    YARN's proxy sends requests to the master, which accepts no other sender and forwards them.
    Other hosts and other users of this machine are refused here, so they cannot bypass the proxy.

    Parameters
    ----------
    master
        Host of the application master; None: this host.
    ports
        Range of its port, ``LOW-HIGH``; empty: any.
    """

    def __init__(self, host: str, master: str | None = None, ports: str = "") -> None:
        self.job: dict[str, Any] = {}
        outer = self
        hosts = set() if master is None else addresses_of(master)

        class Server(HTTPServer):
            def server_bind(self) -> None:
                if ports:
                    self.socket.close()
                    self.socket = range_listener(host, ports)
                    self.server_name, self.server_port = self.socket.getsockname()
                else:
                    super().server_bind()

            def verify_request(self, request: Any, client_address: Any) -> bool:
                if _is_from_master(request, hosts):
                    return True
                with suppress(OSError):
                    request.sendall(_REFUSED)
                return False

        class Handler(BaseHTTPRequestHandler):
            timeout = 10

            def do_GET(self) -> None:
                body = render_page(outer.job)
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
        """Serve one request at a time in a thread."""
        threading.Thread(target=self._server.serve_forever, args=(5.0,), daemon=True).start()


def _is_from_master(request: socket.socket, hosts: set[Address]) -> bool:
    """Whether a connection comes from this user on this machine, or from one of ``hosts``."""
    try:
        uid = peer_uid(request)
    except UnknownPeerError:
        uid = None
        hosts = hosts or addresses_of(LOOPBACK)
    # The master runs as the user of the job's other containers, and uses any address of its host.
    return uid == os.geteuid() if uid is not None else remote_address(request) in hosts


_REFUSAL_TEXT = b"Open the job's page from its application's page on YARN.\n"
_REFUSED = b"HTTP/1.0 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s" % (
    len(_REFUSAL_TEXT),
    _REFUSAL_TEXT,
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


class ApplicationMaster:
    """skein's application master, with a timeout on every call."""

    def __init__(self) -> None:
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "grpc_proxy"):
            os.environ.pop(name, None)  # The master is never behind a proxy.
        # cost: a module that only the connection to a master on YARN needs.
        from submarine_runtime.yarn.skein_import import import_skein

        skein = import_skein()
        self._proto = skein.proto
        self._client = skein.ApplicationClient.from_current()
        self._progress: float | None = None
        self._progress_at = 0.0

    def add_page(self, url: str) -> None:
        """Add a link to ``url`` to the application's page; the master forwards requests."""
        request = self._proto.Proxy(route=ROUTE, target=url, link_name=LINK)
        self._client._call("AddProxy", request, timeout=CALL_SECONDS)

    def set_progress(self, value: Any) -> None:
        """Report the progress if it is a new number from 0 to 1, at most once in two seconds."""
        if not isinstance(value, (int, float)) or not 0 <= value <= 1:
            return
        now = time.monotonic()
        if value == self._progress or (now - self._progress_at < PROGRESS_SECONDS and value < 1):
            return
        self._progress, self._progress_at = float(value), now
        request = self._proto.SetProgressRequest(progress=float(value))
        self._client._call("SetProgress", request, timeout=CALL_SECONDS)


class OwnPage:
    """The page in this process, which needs skein; raises any exception if there can be none.

    Parameters
    ----------
    ports
        See ``PageServer``.
    """

    def __init__(self, ports: str = "") -> None:
        # A task in a separate container is reached over the network.
        if os.environ.get("SKEIN_CONTAINER_ID"):
            address = os.environ["SKEIN_APPMASTER_ADDRESS"].rpartition(":")[0].strip("[]")
            self._server = PageServer(os.environ.get("NM_HOST") or LOOPBACK, address, ports)
        else:
            self._server = PageServer(LOOPBACK, ports=ports)
        self._master = ApplicationMaster()
        self._server.serve()
        self._master.add_page(self._server.url)

    def update(self, job: Mapping[str, Any]) -> None:
        """Show the fields of ``render_page``; raises any exception if the master is ending."""
        self._server.job = {**self._server.job, **job}
        self._master.set_progress(job.get("progress"))

    def close(self) -> None:
        """End with the process."""


def main(arguments: Sequence[str]) -> int:
    """Show the job until standard input ends; return 3 if there can be no page."""
    if len(arguments) > 1:
        sys.stderr.write("usage: python -I runtime.zip page [LOW-HIGH]\n")
        return 2
    try:
        page = OwnPage(*arguments)
    except Exception as exc:
        # skein and grpc raise many exceptions; the job continues without a page.
        _answer(ok=False, why=f"{type(exc).__name__}: {exc}"[:300])
        return 3
    _answer(ok=True)
    _show(page)
    return 0


def _show(page: OwnPage) -> None:
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
        try:
            page.update(job)
        except Exception:
            return  # The master is ending.


def _answer(**fields: Any) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def render_page(job: Mapping[str, Any]) -> bytes:
    """Return the page of a job as HTML.

    Parameters
    ----------
    job
        ``job_id name state detail progress task host log_url links``; every value is untrusted.
    """
    rows = [_row("State", _text(job.get("state"))), _row("Progress", _progress(job))]
    for label, key in (("Detail", "detail"), ("Job", "job_id"), ("Task", "task"), ("Host", "host")):
        if job.get(key):
            rows.append(_row(label, _text(job[key])))
    links = job.get("links")
    named = dict(links) if isinstance(links, Mapping) else {}
    if job.get("log_url"):
        named = {"Log of the task": job["log_url"], **named}
    items = "".join(_link(label, url) for label, url in list(named.items())[:MAX_LINKS])
    text = _PAGE.format(
        refresh=REFRESH_SECONDS,
        title=_text(job.get("name") or job.get("job_id") or "job"),
        rows="".join(rows),
        links=f"<h2>Links</h2><ul>{items}</ul>" if items else "",
    )
    return text.encode("utf-8", "replace")


def _row(label: str, value: str) -> str:
    return f"<tr><th>{label}</th><td>{value}</td></tr>"


def _text(value: Any) -> str:
    return escape(str(value or "")[:MAX_TEXT])


def _progress(job: Mapping[str, Any]) -> str:
    value = job.get("progress")
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= 1:
        return _("not reported")
    return f'<progress max="1" value="{value:.3f}"></progress> {100 * value:.0f} %'


def _link(label: Any, url: Any) -> str:
    address = str(url)
    if not address.startswith(("http://", "https://")) or len(address) > 2000:
        return f"<li>{_text(label)}: {_text(address)}</li>"
    return f'<li><a rel="noreferrer" href="{escape(address)}">{_text(label)}</a></li>'
