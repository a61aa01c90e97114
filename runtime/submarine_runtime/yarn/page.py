"""The job's page on YARN: a small HTTP server, and a thread that reports the progress.

YARN's proxy sends requests to skein's application master, which accepts no other sender and
forwards them to the process that knows the job: the coordinator, or the agent of a single task.
The page is read-only. A failure does not affect the job.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from typing import Any, Callable, Mapping

from submarine_runtime.network import (
    Address,
    UnknownPeerError,
    addresses_of,
    peer_uid,
    remote_address,
)
from submarine_runtime.protocol import JobSpec, JobStore, LogServer
from submarine_runtime.translation import _
from submarine_runtime.yarn.container import write_log
from submarine_runtime.yarn.master import ApplicationMaster, MasterError
from submarine_runtime.yarn.page_html import render_page
from submarine_runtime.yarn.page_text import write_text
from submarine_runtime.yarn.unregistration import UnregistrationError, unregister

#: The master shows the page as ``pages/ROUTE``; its first page opens it.
ROUTE = "job"
LINK = "Submarine job"
LOOPBACK = "127.0.0.1"
UPDATE_SECONDS = 2.0
END_SECONDS = 2.0
#: Seconds for which a page is not made again.
CACHE_SECONDS = 1.0
#: Seconds that one request may take, and bytes of its line and headers.
REQUEST_SECONDS, MAX_HEAD = 5.0, 16384
_REFUSAL = b"Open the job's page from its application's page on YARN.\n"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


class PageServer:
    """HTTP server that shows a page to the application master.

    Other hosts and other users of this machine are refused, so they cannot bypass the proxy.

    Parameters
    ----------
    listen
        Returns a socket that listens at an address, on a port of its choice.
    host
        The address.
    master
        Host of the application master; None: this host.
    page
        Returns the page.
    """

    def __init__(
        self,
        listen: Callable[[str], socket.socket],
        host: str,
        master: str | None,
        page: Callable[[], bytes],
    ) -> None:
        self._hosts = set() if master is None else addresses_of(master)
        self._page = page
        self._listener = listen(host)
        self.url = f"http://{host}:{self._listener.getsockname()[1]}/"

    def serve(self) -> None:
        """Serve one request at a time in a thread."""
        threading.Thread(target=self._run, name="yarn-page-server", daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                connection, _address = self._listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                connection.settimeout(REQUEST_SECONDS)
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        if not _is_from_master(connection, self._hosts):
            _respond(connection, "403 Forbidden", _REFUSAL)
            return
        method, _space, target = _request_line(connection).partition(" ")
        if method not in ("GET", "HEAD"):
            _respond(connection, "405 Method Not Allowed", b"", "Allow: GET, HEAD")
        elif target.partition("?")[0] != "/":
            _respond(connection, "404 Not Found", b"There is only one page.\n")
        else:
            page = self._page()
            kind = "text/html; charset=utf-8"
            _respond(connection, "200 OK", page, kind=kind, head=method == "HEAD")


def _request_line(connection: socket.socket) -> str:
    """Return method and target; empty if the request is malformed, too large or too slow."""
    head, until = b"", time.monotonic() + REQUEST_SECONDS
    while b"\r\n\r\n" not in head:
        more = connection.recv(MAX_HEAD)
        head += more
        if not more or len(head) > MAX_HEAD or time.monotonic() > until:
            return ""
    return head.partition(b"\r\n")[0].decode("latin-1").rpartition(" ")[0]


def _respond(
    connection: socket.socket,
    status: str,
    body: bytes,
    *more: str,
    kind: str = "text/plain",
    head: bool = False,
) -> None:
    lines = [
        f"HTTP/1.1 {status}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        f"Content-Security-Policy: {_POLICY}",
        "X-Content-Type-Options: nosniff",
        "Cache-Control: no-store",
        "Connection: close",
        *more,
    ]
    text = "\r\n".join(lines) + "\r\n\r\n"
    connection.sendall(text.encode() + (b"" if head else body))


def _is_from_master(request: socket.socket, hosts: set[Address]) -> bool:
    """Whether a connection comes from this user on this machine, or from one of ``hosts``."""
    try:
        uid = peer_uid(request)
    except UnknownPeerError:
        uid = None
        hosts = hosts or addresses_of(LOOPBACK)
    # The master runs as the user of the job's other containers, and uses any address of its host.
    return uid == os.geteuid() if uid is not None else remote_address(request) in hosts


class PageThread:
    """Serve the page, and report the progress, until the job ends.

    Parameters
    ----------
    record
        Returns the job's record as JSON values.
    progress
        Returns the progress from 0 to 1; None: unknown.
    spec, store
        Of the job.
    listen
        See ``PageServer``.
    report
        Called with a sentence for the job's events.
    """

    def __init__(
        self,
        record: Callable[[], Mapping[str, Any]],
        progress: Callable[[], float | None],
        spec: JobSpec,
        store: JobStore,
        listen: Callable[[str], socket.socket],
        report: Callable[[str], None],
    ) -> None:
        self._record, self._progress, self._report = record, progress, report
        self._listen = listen
        self._fixed = {
            "images": {role.name: spec.image_of(role) or None for role in spec.roles},
            "file_browser": file_browser(store),
        }
        self._page, self._made = b"", float("-inf")
        self._has_text = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="yarn-page", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def finish(self) -> None:
        """Report the last progress and write the page as text; wait a limited time.

        The page is served until the process ends.
        """
        self._over.set()
        self._thread.join(END_SECONDS)
        with suppress(OSError, KeyError):  # A full disk does not change how the job ends.
            write_text(self._job())
            self._has_text = True

    def unregister(self, server: LogServer, succeeded: bool) -> bool:
        """Let the tracking URL lead to the text; the last action of the job, after its record.

        Returns
        -------
        bool
            Whether the application has ended for YARN.
        """
        if not self._has_text:
            return False
        try:
            return unregister(server, succeeded, str(self._record().get("detail") or ""))
        except UnregistrationError as error:
            write_log(str(error))
            return False

    def page(self) -> bytes:
        """Return the page of a record of the last second."""
        now = time.monotonic()
        if now - self._made >= CACHE_SECONDS:
            self._page = render_page(self._job())
            self._made = now
        return self._page

    def _job(self) -> dict[str, Any]:
        return {**self._record(), **self._fixed}

    def _run(self) -> None:
        try:
            master = ApplicationMaster()
            self._show_on(master)
        except (MasterError, OSError, ValueError) as exc:
            self._report(_("There is no page on YARN: {why}").format(why=str(exc)[:300]))
            return
        self._report(_("The job is on its YARN page."))
        over = False
        try:
            while True:
                master.set_progress(self._progress())
                if over:
                    return
                over = self._over.wait(UPDATE_SECONDS)
        except MasterError:
            return  # The master is ending.
        finally:
            master.close()

    def _show_on(self, master: ApplicationMaster) -> None:
        # A task in a separate container is reached over the network.
        separate = os.environ.get("SKEIN_CONTAINER_ID")
        host = (os.environ.get("NM_HOST") or LOOPBACK) if separate else LOOPBACK
        server = PageServer(self._listen, host, master.host if separate else None, self.page)
        server.serve()
        try:
            master.add_page(ROUTE, LINK, server.url)
        except MasterError:
            master.close()
            raise


def file_browser(store: JobStore) -> str:
    """Return the URL of the NameNode's file browser, to which a path is added; empty: none."""
    if store.kind != "webhdfs" or store.gateway or not store.webhdfs:
        return ""
    return f"{store.webhdfs[0].rstrip('/')}/explorer.html#"
