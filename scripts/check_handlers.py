"""Fail if a handler of the server extension can be reached without authentication.

Checks the routes of the extension, and each method that a request or a websocket can reach,
inherited ones included: it must have been created by ``access.guarded``, which authenticates and
authorizes the request. The content of the methods is not checked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from jupyter_server.base.handlers import APIHandler, JupyterHandler
from tornado.web import RequestHandler
from tornado.websocket import WebSocketHandler

from submarine_server.base.handlers import RESOURCE, is_guarded

ACTIONS = ("read", "write", "execute")
#: Called by tornado after a websocket was opened by ``get``.
SOCKET_METHODS = ("open", "on_message", "on_ping", "on_pong", "on_close")
#: Methods that authenticate; handlers of the extension must not override them.
DECIDING = ("get_current_user", "current_user", "identity_provider", "authorizer", "_execute")
#: Answers a browser's preflight request of another origin.
PREFLIGHT = (APIHandler.options,)
#: Classes of other packages that may override ``DECIDING``.
FOREIGN = ("tornado", "jupyter_server", "jupyter_server_proxy")


def problems(handler: type[RequestHandler]) -> Iterator[str]:
    """Return the problems of one handler class, one sentence each."""
    name = f"{handler.__module__}.{handler.__qualname__}"
    if not issubclass(handler, JupyterHandler):
        yield f"{name} is no JupyterHandler: it cannot identify the user."
        return
    for method in handler.SUPPORTED_METHODS:
        yield from _method(handler, name, method)
    if issubclass(handler, WebSocketHandler) and not is_guarded(handler.get):
        words = ", ".join(word for word in SOCKET_METHODS if word in _own(handler))
        yield f"{name} opens a websocket ({words or 'open'}) and its `get` is not guarded."
    for word in DECIDING:
        owner = next((cls for cls in handler.__mro__ if word in vars(cls)), None)
        if owner is not None and owner.__module__.split(".")[0] not in FOREIGN:
            yield f"{name}.{word} is of its own: who asks is jupyter-server's to find out."


def _method(handler: type[RequestHandler], name: str, method: str) -> Iterator[str]:
    found = getattr(handler, method.lower(), None)
    if found is None or found is RequestHandler.get or found in PREFLIGHT:
        return  # tornado answers 405.
    action = getattr(found, "__guarded__", None)
    if not is_guarded(found):
        yield (
            f"{name}.{method.lower()} is not guarded: put @guarded('read') or another action above "
            f"it, or leave {method} out of SUPPORTED_METHODS."
        )
    elif action is None or action[0] not in ACTIONS or action[1] != RESOURCE:
        yield f"{name}.{method.lower()} asks for {action!r}, which is no action on {RESOURCE}."


def _own(handler: type[RequestHandler]) -> set[str]:
    return {word for cls in handler.__mro__ for word in vars(cls)}


def check(routes: Iterable[tuple[Any, ...]]) -> list[str]:
    """Return the problems of the handlers of ``routes``."""
    found: list[str] = []
    for handler in dict.fromkeys(route[1] for route in routes):
        found += problems(handler)
    return found


def main() -> int:
    """Check all routes; the exit status."""
    from submarine_server.extension import routes

    table = routes()
    found = check(table)
    for words in found:
        print(words, file=sys.stderr)
    if not found:
        print(f"{len(table)} routes, each guarded")
    return 1 if found or not table else 0


if __name__ == "__main__":
    sys.exit(main())
