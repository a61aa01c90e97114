"""Attempts of bob, and of a process without a login, on the server of alice.

Each attempt is made through the proxy and on the port of alice's server itself, which every local
process reaches. ``docs/jupyterhub.md`` shows the table; a test compares both.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import pytest

from tests.browser.calls import API, Answer, call
from tests.browser.lab import ROOT
from tests.hub.hub import Hub
from tests.hub.person import Person

pytestmark = pytest.mark.full


@dataclass(frozen=True)
class Request:
    """A request to the server of alice; ``{job}`` is her job."""

    name: str
    method: str
    path: str
    websocket: bool = False

    def send(self, base: str, job: str, headers: dict[str, str], query: str = "") -> Answer:
        """Send it to the address of alice's server."""
        path = self.path.format(job=job)
        if query:
            path += ("&" if "?" in path else "?") + query
        upgrade = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
            "Origin": base.removesuffix("/user/alice/"),
        }
        return call(
            base,
            path,
            self.method,
            headers={**(upgrade if self.websocket else {}), **headers},
            body={} if self.method == "POST" else None,
        )


REQUESTS = (
    Request("list the jobs", "GET", API + "jobs"),
    Request("read a job", "GET", API + "jobs/{job}"),
    Request("read a log", "GET", API + "jobs/{job}/log?task=worker:0&stream=stdout"),
    Request("cancel a job", "POST", API + "jobs/{job}/cancel"),
    Request("run a job again", "POST", API + "jobs/{job}/rerun"),
    Request("open the websocket", "GET", API + "channel", websocket=True),
    Request("open TensorBoard", "GET", "submarine/tensorboard/{job}/"),
    Request("read TensorBoard's data", "POST", "submarine/tensorboard/{job}/data/runs"),
)
EVIL = "http://evil.example"
#: Statuses of REQUESTS, in this order, by what the attempt presents.
TABLE = {
    "nothing": (403, 403, 403, 403, 403, 403, 302, 403),
    "a made-up token": (403, 403, 403, 403, 403, 403, 302, 403),
    "bob's token": (403, 403, 403, 403, 403, 403, 403, 403),
    "bob's token in the address": (403, 403, 403, 403, 403, 403, 302, 403),
    "the token of bob's server": (403, 403, 403, 403, 403, 403, 403, 403),
    "bob's cookies": (403, 403, 403, 403, 403, 403, 302, 403),
    "bob's cookie under the name of alice's": (403, 403, 403, 403, 403, 403, 302, 403),
    # jupyter-server itself answers that there is nothing.
    "alice's cookies, from a page of another site": (404, 404, 404, 403, 403, 403, 403, 403),
    # As her browser sends them by itself: what changes something is refused.
    "alice's cookies, without the XSRF token": (200, 200, 200, 403, 403, 101, 200, 200),
}


@dataclass(frozen=True)
class World:
    """Two users with a job each, and everything that an attempt may present."""

    hub: Hub
    alice: Person
    bob: Person
    headers: dict[str, tuple[dict[str, str], str]]


@pytest.fixture(scope="module")
def world(hub: Hub, people: dict[str, Person]) -> World:
    """Both users are logged in; each has run a job."""
    alice, bob = people["alice"], people["bob"]
    own = hub.server("bob").environ()["JUPYTERHUB_API_TOKEN"]
    xsrf = {"X-XSRFToken": bob.cookie("_xsrf")}
    renamed = f"{bob.cookies()}; jupyterhub-user-alice={bob.cookie('jupyterhub-user-bob')}"
    presented = {
        "nothing": ({}, ""),
        "a made-up token": ({"Authorization": f"token {secrets.token_hex(16)}"}, ""),
        "bob's token": ({"Authorization": f"token {hub.token('bob')}"}, ""),
        "bob's token in the address": ({}, f"token={hub.token('bob')}"),
        "the token of bob's server": ({"Authorization": f"token {own}"}, ""),
        "bob's cookies": ({"Cookie": bob.cookies(), **xsrf}, ""),
        "bob's cookie under the name of alice's": ({"Cookie": renamed, **xsrf}, ""),
        "alice's cookies, from a page of another site": (
            {"Cookie": alice.cookies(), "Origin": EVIL, "Sec-Fetch-Site": "cross-site"},
            "",
        ),
        "alice's cookies, without the XSRF token": ({"Cookie": alice.cookies()}, ""),
    }
    return World(hub, alice, bob, presented)


@pytest.mark.parametrize("where", ["proxy", "port"])
@pytest.mark.parametrize("what", TABLE)
def test_attempts_are_refused(world: World, what: str, where: str) -> None:
    origin = world.hub.origin if where == "proxy" else world.hub.server_url("alice")
    headers, query = world.headers[what]
    base = f"{origin}/user/alice/"
    answers = [it.send(base, world.alice.job, headers, query) for it in REQUESTS]
    statuses = tuple(answer.status for answer in answers)
    assert statuses == TABLE[what]
    for answer in answers:
        if answer.status != 200:
            assert world.alice.job.encode() not in answer.body
            assert b"hello from alice" not in answer.body
        if answer.status == 302:
            assert answer.headers["location"].startswith("/hub/api/oauth2/authorize?")


@pytest.mark.parametrize("where", ["proxy", "port"])
def test_alice_herself_is_admitted(world: World, where: str) -> None:
    """Without this, the table could show a server that refuses everything."""
    origin = world.hub.origin if where == "proxy" else world.hub.server_url("alice")
    headers = {"Authorization": f"token {world.hub.token('alice')}"}
    found = {
        it.name: it.send(f"{origin}/user/alice/", world.alice.job, headers).status
        for it in REQUESTS
    }
    assert found == {
        "list the jobs": 200,
        "read a job": 200,
        "read a log": 200,
        "cancel a job": 409,  # it has ended
        "run a job again": 201,
        "open the websocket": 101,
        "open TensorBoard": 200,
        "read TensorBoard's data": 200,
    }


def test_the_page_shows_this_table() -> None:
    page = (ROOT / "docs" / "jupyterhub.md").read_text()
    names = ["presents", *(it.name for it in REQUESTS)]
    rows = [names, *([what, *map(str, statuses)] for what, statuses in TABLE.items())]
    for row in rows:
        assert f"| {' | '.join(row)} |\n" in page, row
