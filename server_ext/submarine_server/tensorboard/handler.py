"""The way from a browser to a TensorBoard that this server has started; to nowhere else.

The address is chosen here alone: a job's id leads to a Unix socket in a directory of this user's.
Requests are no sign of life of the server's user, so an open tab does not keep an idle server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

from jupyter_server_proxy.handlers import ProxyHandler, RewritableResponse
from tornado.httputil import HTTPHeaders
from tornado.web import HTTPError

from submarine_jobs.tensorboards import MAX_JOBS, Board
from submarine_jobs.text import escape_html
from submarine_server.base import ApiError, api_error, checked_job_id, core_of, guarded
from submarine_server.tensorboard import proxy_headers as headers
from submarine_server.tensorboard.registry import SETTING, Key, TensorBoards

#: TensorBoard's forms name runs and tags.
MAX_BODY = 4 << 20
#: Seconds that TensorBoard may take for an answer.
ANSWER_SECONDS = 120.0
_PAGES = ("", "/", "/index.html")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'"
_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>TensorBoard</title>
<style>body{{font:15px/1.5 sans-serif;margin:3em auto;max-width:40em;padding:0 1em}}
@media(prefers-color-scheme:dark){{body{{background:#111;color:#ddd}}}}</style></head>
<body><h1>TensorBoard</h1><p>{error}</p><p>{fix}</p></body></html>"""


def job_ids(text: str) -> Key:
    """The set of jobs that an address names, in one order whatever the address's is."""
    words = [word for word in text[: 200 * MAX_JOBS].split(",") if word]
    found = tuple(sorted({checked_job_id(word) for word in words}))
    if not found:
        raise ApiError(404, "This address names no job.")
    if len(found) > MAX_JOBS:
        raise ApiError(400, f"A TensorBoard shows at most {MAX_JOBS} jobs.")
    return found


class TensorBoardHandler(ProxyHandler):  # type: ignore[misc]
    """``submarine/tensorboard/<job>[,<job>...]/...``."""

    #: The proxy has more, which nobody guards.
    SUPPORTED_METHODS = ("GET", "POST")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(
            *args,
            **kwargs,
            host_allowlist=lambda self, host: host == "localhost" and bool(self.unix_socket),
            update_last_activity=False,
            # It looks at the names of the parameters, and cannot do without ``self`` among them.
            rewrite_response=lambda response: self._rewrite(response),
        )
        self._board: Board | None = None
        self._path = ""
        # The proxy has put it on the instance, where no method of ours would be found.
        self._send_away: Callable[..., None] = getattr(self, "redirect")  # noqa: B009
        self.redirect = self._redirect_once

    def _redirect_once(self, *args: Any, **kwargs: Any) -> None:
        """Jupyter's server sends to the login page, and then the proxy's ``prepare`` again."""
        if not self._finished:
            self._send_away(*args, **kwargs)

    async def prepare(self, *args: Any, **kwargs: Any) -> None:
        """Refuse websockets, which TensorBoard has none of, and bodies beyond all forms."""
        if "Upgrade" in self.request.headers:
            raise ApiError(400, "There is no websocket here.")
        if len(self.request.body) > MAX_BODY:
            raise ApiError(413, f"A request here holds at most {MAX_BODY} bytes.")
        await super().prepare(*args, **kwargs)

    @guarded("read", page=True)
    async def get(self, jobs: str, path: str | None = None) -> None:
        """Show it."""
        await self._pass_on(jobs, path)

    @guarded("read")
    async def post(self, jobs: str, path: str | None = None) -> None:
        """TensorBoard asks for many curves at once this way; it changes nothing."""
        await self._pass_on(jobs, path)

    async def http_get(self, *_: Any, **__: Any) -> None:
        """Not reached: ``get`` never looks for a websocket."""
        raise HTTPError(405)

    def open(self, *_: Any, **__: Any) -> None:
        """No websocket is ever opened."""
        self.close()

    async def _pass_on(self, jobs: str, path: str | None) -> None:
        key = job_ids(jobs)
        boards = cast("TensorBoards", self.settings[SETTING])
        if path is None:
            for job_id in key:
                await core_of(self).job(job_id)
            self._add_slash(key)
            return
        self._path = path
        for last in (False, True):
            async with boards.board(key) as board:
                self._board, self.unix_socket = board, board.process.socket
                try:
                    await self.proxy("localhost", 80, path)
                    return
                except (HTTPError, OSError) as error:
                    if isinstance(error, HTTPError) and error.status_code < 500:
                        raise
                    if last or isinstance(error, ApiError):
                        raise ApiError(502, "TensorBoard does not answer.", "Reload.") from error
            # It may have died at this very moment: then once more, with a new one.
            await asyncio.sleep(0.3)

    def _add_slash(self, key: Key) -> None:
        """TensorBoard's addresses are relative to its page; so is this one, to our own."""
        query = headers.clean_query(self.request.query)
        self.set_status(302)
        self.set_header("Location", f"{','.join(key)}/{'?' if query else ''}{query}")

    def get_client_uri(self, protocol: str, host: str, port: int, proxied_path: str) -> str:
        """The address at the backend, without the browser's credentials."""
        query = headers.clean_query(self.request.query)
        uri = f"{protocol}://{host}:{port}{headers.backend_path(proxied_path)}"
        return f"{uri}?{query}" if query else uri

    def proxy_request_headers(self) -> HTTPHeaders:
        """Named headers only."""
        plain = self._path in _PAGES
        return HTTPHeaders(headers.backend_headers(self.request.headers, plain=plain))

    def proxy_request_options(self) -> dict[str, Any]:
        """Redirects are for the browser."""
        return {
            "follow_redirects": False,
            "connect_timeout": 10.0,
            "request_timeout": ANSWER_SECONDS,
        }

    async def _proxy_progressive(self, *args: Any) -> None:
        """A stream would pass by what is done to headers; TensorBoard has none."""
        await self._proxy_buffered(*args)

    def _rewrite(self, response: RewritableResponse) -> None:
        if response.code in (301, 302, 303, 307, 308):
            raise ApiError(502, "TensorBoard sent its visitor elsewhere.")
        kept = headers.browser_headers(response.headers.get_all())
        if self._path in _PAGES and response.body and self._board is not None:
            response.body = headers.page_body(response.body, self._board.notices())
        response.headers = HTTPHeaders(kept)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """One sentence on a page; nothing of the request is repeated but escaped."""
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
        """What was foreseen is one short line."""
        found = api_error(value) if value is not None else None
        if found is None:
            super().log_exception(typ, value, tb)
        else:
            self.log.debug("submarine tensorboard: %d %s", found.status_code, found.error)


PAGES: list[tuple[str, type]] = [
    (r"/submarine/tensorboard/(?P<jobs>[^/]*)(?P<path>/.*)?", TensorBoardHandler)
]
