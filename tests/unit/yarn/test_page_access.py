"""The YARN page of a job answers the application master only."""

from __future__ import annotations

import os
import urllib.error
import urllib.request

import pytest

from submarine_runtime.network import peers
from submarine_runtime.yarn import PageServer
from tests.second_user import as_user, needs_root


@pytest.fixture
def page() -> PageServer:
    made = PageServer("127.0.0.1")
    made.job = {"job_id": "digits-20261123-1a2b", "state": "RUNNING"}
    made.serve()
    return made


def read(page: PageServer) -> str:
    with urllib.request.urlopen(page.url, timeout=30) as reply:
        text: str = reply.read().decode()
    return text


@needs_root
def test_another_user_of_the_node_is_refused(page: PageServer) -> None:
    said = as_user(
        f"""
        connection = http.client.HTTPConnection({page.url[7:-1]!r}, timeout=20)
        connection.request("GET", "/")
        reply = connection.getresponse()
        return reply.status, reply.read()
        """
    )
    assert said == "(403, b\"Open the job's page from its application's page on YARN.\\n\")"
    assert "digits-20261123-1a2b" in read(page)


def test_another_host_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection from another machine has no user id."""
    monkeypatch.setattr("submarine_runtime.yarn.page.peer_uid", lambda request: None)
    for master, answers in ((None, False), ("192.0.2.7", False), ("localhost", True)):
        page = PageServer("127.0.0.1", master)
        page.serve()
        if answers:
            assert "<html" in read(page)
        else:
            with pytest.raises(urllib.error.HTTPError, match="403"):
                read(page)


def test_a_system_without_user_ids_shows_the_page(
    page: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "_NETLINK", None)
    monkeypatch.setattr(peers, "_TABLES", (f"/nowhere/{os.getpid()}",))
    assert "digits-20261123-1a2b" in read(page)
