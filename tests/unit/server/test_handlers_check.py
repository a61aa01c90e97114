"""The check of all handlers: it passes on ours and fails on each way to leave a door open."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jupyter_server.base.handlers import APIHandler, JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from jupyter_server_proxy.handlers import ProxyHandler
from tornado.web import RequestHandler, authenticated
from tornado.websocket import WebSocketHandler

from submarine_server.base import BaseHandler, guarded
from submarine_server.extension import routes


def _script() -> ModuleType:
    path = Path(__file__).parents[3] / "scripts" / "check_handlers.py"
    spec = importlib.util.spec_from_file_location("check_handlers", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check = _script().check


class Good(BaseHandler):
    @guarded("read")
    async def get(self) -> None: ...

    @guarded("write")
    async def post(self) -> None: ...


class GoodSocket(WebSocketMixin, WebSocketHandler, JupyterHandler):
    @guarded("read")
    async def get(self, *args: Any, **kwargs: Any) -> None: ...


class Bare(BaseHandler):
    async def get(self) -> None: ...


class OnlyAuthenticated(APIHandler):
    @authenticated
    async def put(self) -> None: ...


class Copied(Good):
    @functools.wraps(Good.get)
    async def get(self) -> None:  # type: ignore[override]
        """It has the mark, and checks no permission."""


class Added(Good):
    async def delete(self) -> None: ...


class InvalidHandler(BaseHandler):
    @guarded("whatever")
    async def get(self) -> None: ...


class Socket(WebSocketMixin, WebSocketHandler, JupyterHandler):
    async def open(self, *args: Any, **kwargs: Any) -> None: ...


class Proxy(ProxyHandler):
    @guarded("read")
    async def get(self, *args: Any, **kwargs: Any) -> None: ...


class Stranger(RequestHandler):
    @guarded("read")
    async def get(self) -> None: ...


class Anybody(Good):
    def get_current_user(self) -> str:
        return "root"


def test_all_of_ours_are_guarded() -> None:
    table = routes()
    assert len(table) > 10
    assert check(table) == []


@pytest.mark.parametrize("handler", [Good, GoodSocket])
def test_a_guarded_handler_passes(handler: type) -> None:
    assert check([("/x", handler)]) == []


@pytest.mark.parametrize(
    ("handler", "named"),
    [
        (Bare, ["get"]),
        (OnlyAuthenticated, ["put"]),
        (Copied, ["get"]),
        (Added, ["delete"]),
        (InvalidHandler, ["whatever"]),
        (Socket, ["get", "websocket"]),
        (Proxy, ["head", "post", "delete", "patch", "put", "options"]),
        (Stranger, ["no JupyterHandler"]),
        (Anybody, ["get_current_user"]),
    ],
)
def test_an_open_door_is_named(handler: type, named: list[str]) -> None:
    found = check([("/good", Good), ("/x", handler)])
    assert len(found) == len(named), found
    for words in named:
        assert any(handler.__name__ in line and words in line for line in found), (words, found)


def test_the_extension_adds_no_route_beside_them() -> None:
    from submarine_server.extension import SubmarineServer

    made = SubmarineServer()
    made.initialize_handlers()
    assert [route[:2] for route in made.handlers] == [route[:2] for route in routes()]
