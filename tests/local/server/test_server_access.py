"""Identity and permissions from another service, as under a hub; TLS ends at a proxy."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from submarine_jobs.client import Job
from tests.local.server.jupyter_server import API, BASE, TOKEN, Server, running
from tests.submission import Submit

#: ada may do everything, eve may read, mallory nothing. Another service authenticates them.
CONFIG = f"""\
from jupyter_server.auth import Authorizer, IdentityProvider, User

NAMES = {{"token {TOKEN}": "ada", "token of-eve": "eve", "token of-mallory": "mallory"}}

class Hub(IdentityProvider):
    def get_user(self, handler):
        name = NAMES.get(handler.request.headers.get("Authorization", ""))
        return User(username=name) if name else None

    def is_token_authenticated(self, handler):
        return handler.current_user is not None

class Rules(Authorizer):
    def is_authorized(self, handler, user, action, resource):
        may = {{"ada": ("read", "write", "execute"), "eve": ("read",)}}.get(user.username, ())
        return resource != "submarine" or action in may

c.ServerApp.identity_provider_class = Hub
c.ServerApp.authorizer_class = Rules
c.ServerApp.allow_unauthenticated_access = False
"""


@pytest.fixture(scope="module", params=[True, False], ids=["trusting", "plain"])
def server(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Server]:
    scratch = tmp_path_factory.mktemp("server")
    (scratch / "jupyter").mkdir()
    (scratch / "jupyter/jupyter_server_config.py").write_text(CONFIG)
    with running(scratch, f"--ServerApp.trust_xheaders={request.param}") as made:
        yield made


@pytest.fixture(scope="module")
def done(submit: Submit) -> Job:
    job = submit("print('hello')")
    job.wait_success(120)
    return job


def test_the_authorizer_decides_what_a_user_may(server: Server, done: Job) -> None:
    reads = ("jobs", "cluster", f"jobs/{done.id}", f"jobs/{done.id}/log?stream=stdout")
    page = f"{BASE}submarine/tensorboard/{done.id}/"
    for path in reads:
        assert server.call("GET", path).status == 200, path
        assert server.call("GET", path, token="of-eve").status == 200, path
    for token in ("of-mallory", "of-nobody", None):
        for path in (*reads, page, "channel", f"jobs/{done.id}/log/search?q=a"):
            assert server.call("GET", path, token=token).status in (403, 302), (token, path)
    for act in ("cancel", "rerun", "models"):
        for token in ("of-eve", "of-mallory", "of-nobody", None):
            answer = server.call("POST", f"jobs/{done.id}/{act}", {}, token=token)
            assert answer.status in (403, 302), (token, act)
    # Nothing was done: there is the one job, and no version of a model.
    assert server.call("GET", "jobs").json["total"] == 1
    assert server.call("GET", f"jobs/{done.id}/models").json["models"] == []
    # An ended job cannot be cancelled; the reason is not a permission.
    answer = server.call("POST", f"jobs/{done.id}/cancel", {})
    assert (answer.status, answer.json["code"]) == (409, "refused")


def upgraded(server: Server, token: str, **headers: str) -> int:
    """The status of an attempt to open the websocket; 101 where it opened."""

    async def attempt() -> int:
        sent = {
            "Authorization": f"token {token}",
            **{k.replace("_", "-"): v for k, v in headers.items()},
        }
        request = HTTPRequest(f"ws://127.0.0.1:{server.port}{API}channel", headers=sent)
        try:
            channel = await websocket_connect(request)
        except HTTPClientError as error:
            return int(error.code)
        channel.close()
        while await channel.read_message() is not None:
            pass
        return 101

    return asyncio.run(asyncio.wait_for(attempt(), 60))


def test_the_websocket_needs_the_permission_to_read(server: Server) -> None:
    assert upgraded(server, TOKEN, Origin=server.origin) == 101
    assert upgraded(server, "of-eve", Origin=server.origin) == 101
    assert upgraded(server, "of-mallory", Origin=server.origin) == 403
    assert upgraded(server, "of-nobody", Origin=server.origin) == 403


def test_a_proxy_that_ends_tls_says_so_and_the_origin_is_exact(server: Server) -> None:
    secure = server.origin.replace("http://", "https://")
    by_tls: list[dict[str, Any]] = [{"X_Forwarded_Proto": it} for it in ("https", "https, http")]
    for forwarded in by_tls:
        assert server.call("GET", "jobs", Origin=secure, **forwarded).status == 200
        assert upgraded(server, TOKEN, Origin=secure, **forwarded) == 101
        # The page came by TLS: one that did not is another origin, and so is another host.
        for origin in (server.origin, "https://evil.example", secure + "1", "null"):
            assert server.call("GET", "jobs", Origin=origin, **forwarded).status == 403, origin
            assert upgraded(server, TOKEN, Origin=origin, **forwarded) == 403, origin
    # A proxy that says nothing, or nonsense.
    silent_or_wrong: list[dict[str, Any]] = [{}, {"X_Forwarded_Proto": "gopher"}]
    for words in silent_or_wrong:
        assert server.call("GET", "jobs", Origin=secure, **words).status == 403
        assert server.call("GET", "jobs", Origin=server.origin, **words).status == 200


def test_only_a_server_that_trusts_its_proxy_believes_its_other_words(
    server: Server, request: pytest.FixtureRequest
) -> None:
    trusting = "trusting" in request.node.name
    secure = server.origin.replace("http://", "https://")
    answer = server.call("GET", "jobs", Origin=secure, X_Scheme="https")
    assert answer.status == (200 if trusting else 403)
    # A host that the request was not sent to is never ours.
    other = "https://hub.example"
    sent: dict[str, Any] = {"X_Forwarded_Host": "hub.example", "X_Forwarded_Proto": "https"}
    assert server.call("GET", "jobs", Origin=other, **sent).status == 403


def test_the_end_of_a_connection_is_announced(server: Server) -> None:
    """A proxy keeps connections: the next request over this one would have no answer."""

    def post(path: str, **headers: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        with contextlib.closing(connection):
            connection.request("POST", API + path, json.dumps({"why": "x"}), headers)
            return connection.getresponse()

    refused = post("jobs/digits-20261120-7f3a/cancel")
    assert (refused.status, refused.getheader("Connection")) == (403, "close")
    answered = post("jobs/digits-20261120-7f3a/cancel", Authorization=f"token {TOKEN}")
    assert (answered.status, answered.getheader("Connection")) == (404, None)
