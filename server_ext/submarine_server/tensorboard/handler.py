"""Proxy from the browser to the TensorBoard processes of this server, and to no other address.

The target is the Unix socket of the process for the requested jobs. Requests do not count as
activity, so that an open tab does not keep an idle server alive.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

from jupyter_server_proxy.handlers import ProxyHandler, RewritableResponse
from tornado.httputil import HTTPHeaders
from tornado.web import HTTPError

from submarine_jobs.tensorboards import MAX_JOBS, TensorBoardInstance
from submarine_jobs.text import escape_html
from submarine_runtime.translation import _
from submarine_server.base import ApiError, api_error, guarded, require_job_id, service_of
from submarine_server.tensorboard import proxy_headers as headers
from submarine_server.tensorboard.registry import SETTING, Key, TensorBoards

#: Maximum size of a request; TensorBoard's forms contain names of runs and tags.
MAX_BODY = 4 << 20
#: Timeout of TensorBoard in seconds.
TIMEOUT = 120.0
_INDEX_PATHS = ("", "/", "/index.html")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'"
_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>TensorBoard</title>
<style>body{{font:15px/1.5 sans-serif;margin:3em auto;max-width:40em;padding:0 1em}}
@media(prefers-color-scheme:dark){{body{{background:#111;color:#ddd}}}}</style></head>
<body><h1>TensorBoard</h1><p>{error}</p><p>{fix}</p></body></html>"""


def job_ids(text: str) -> Key:
    """Return the sorted set of jobs in an address."""
    words = [word for word in text[: 200 * MAX_JOBS].split(",") if word]
    found = tuple(sorted({require_job_id(word) for word in words}))
    if not found:
        raise ApiError(404, _("This address names no job."))
    if len(found) > MAX_JOBS:
        raise ApiError(
            400, _("A TensorBoard shows at most {max_jobs} jobs.").format(max_jobs=MAX_JOBS)
        )
    return found


class TensorBoardHandler(ProxyHandler):  # type: ignore[misc]
    """``submarine/tensorboard/<job>[,<job>...]/...``."""

    #: Other methods of the proxy are not guarded.
    SUPPORTED_METHODS = ("GET", "POST")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(
            *args,
            **kwargs,
            host_allowlist=lambda self, host: host == "localhost" and bool(self.unix_socket),
            update_last_activity=False,
            # The proxy inspects the parameter names: a bound method would include ``self``.
            rewrite_response=lambda response: self._rewrite(response),
        )
        self._instance: TensorBoardInstance | None = None
        self._path = ""
        # The proxy sets it on the instance, which hides methods of this class.
        self._redirect: Callable[..., None] = getattr(self, "redirect")  # noqa: B009
        self.redirect = self._redirect_once

    def _redirect_once(self, *args: Any, **kwargs: Any) -> None:
        """Redirect once: jupyter-server and the proxy both redirect to the login page."""
        if not self._finished:
            self._redirect(*args, **kwargs)

    async def prepare(self, *args: Any, **kwargs: Any) -> None:
        """Reject websockets, which TensorBoard does not use, and large bodies."""
        if "Upgrade" in self.request.headers:
            raise ApiError(400, _("TensorBoard has no websocket."))
        if len(self.request.body) > MAX_BODY:
            raise ApiError(
                413, _("A request may have at most {max_body} bytes.").format(max_body=MAX_BODY)
            )
        await super().prepare(*args, **kwargs)

    @guarded("read", page=True)
    async def get(self, jobs: str, path: str | None = None) -> None:
        """Show TensorBoard."""
        await self._proxy(jobs, path)

    @guarded("read")
    async def post(self, jobs: str, path: str | None = None) -> None:
        """Return several curves at once; TensorBoard's POST requests do not change anything."""
        await self._proxy(jobs, path)

    async def http_get(self, *_: Any, **__: Any) -> None:
        """Never called: ``get`` does not open websockets."""
        raise HTTPError(405)

    def open(self, *_: Any, **__: Any) -> None:
        """Never called: no websocket is opened."""
        self.close()

    async def _proxy(self, jobs: str, path: str | None) -> None:
        key = job_ids(jobs)
        boards = cast("TensorBoards", self.settings[SETTING])
        if path is None:
            for job_id in key:
                await service_of(self).job(job_id)
            self._add_slash(key)
            return
        self._path = path
        for last in (False, True):
            async with boards.open_instance(key) as instance:
                self._instance, self.unix_socket = instance, instance.process.socket
                try:
                    await self.proxy("localhost", 80, path)
                    return
                except (HTTPError, OSError) as error:
                    if isinstance(error, HTTPError) and error.status_code < 500:
                        raise
                    if last or isinstance(error, ApiError):
                        raise ApiError(
                            502, _("TensorBoard does not answer."), _("Reload.")
                        ) from error
            # The process may have just died: retry once with a new one.
            await asyncio.sleep(0.3)

    def _add_slash(self, key: Key) -> None:
        """Redirect to the address with a slash: TensorBoard's links are relative to it."""
        query = headers.clean_query(self.request.query)
        self.set_status(302)
        self.set_header("Location", f"{','.join(key)}/{'?' if query else ''}{query}")

    def get_client_uri(self, protocol: str, host: str, port: int, proxied_path: str) -> str:
        """Return the backend address without the browser's credentials."""
        query = headers.clean_query(self.request.query)
        uri = f"{protocol}://{host}:{port}{headers.backend_path(proxied_path)}"
        return f"{uri}?{query}" if query else uri

    def proxy_request_headers(self) -> HTTPHeaders:
        """Return the allowed headers."""
        plain = self._path in _INDEX_PATHS
        return HTTPHeaders(headers.backend_headers(self.request.headers, plain=plain))

    def proxy_request_options(self) -> dict[str, Any]:
        """Pass redirects to the browser."""
        return {
            "follow_redirects": False,
            "connect_timeout": 10.0,
            "request_timeout": TIMEOUT,
        }

    async def _proxy_progressive(self, *args: Any) -> None:
        """Buffer streams, so that their headers are filtered too; TensorBoard has none."""
        await self._proxy_buffered(*args)

    def _rewrite(self, response: RewritableResponse) -> None:
        if response.code in (301, 302, 303, 307, 308):
            raise ApiError(502, _("TensorBoard redirected the request to another address."))
        kept = headers.browser_headers(response.headers.get_all())
        if self._path in _INDEX_PATHS and response.body and self._instance is not None:
            response.body = headers.page_body(response.body, self._instance.notices())
        response.headers = HTTPHeaders(kept)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Respond with an error page; data of the request is escaped."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        found = api_error(error) if error is not None else None
        if found is None:
            found = ApiError(status_code, f"{HTTPStatus(status_code).phrase}.")
        self.set_status(found.status_code)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Content-Security-Policy", _POLICY)
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Cache-Control", "no-store")
        self.finish(
            _PAGE.format(error=escape_html(found.error, 2000), fix=escape_html(found.fix, 2000))
        )

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """Log expected errors in one line."""
        found = api_error(value) if value is not None else None
        if found is None:
            super().log_exception(typ, value, tb)
        else:
            self.log.debug("submarine tensorboard: %d %s", found.status_code, found.error)


ROUTES: list[tuple[str, type]] = [
    (r"/submarine/tensorboard/(?P<jobs>[^/]*)(?P<path>/.*)?", TensorBoardHandler)
]
