"""The request that unregisters an application: its signature and its address."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from submarine_runtime.kerberos import Token, token_bytes
from submarine_runtime.protocol import LogServer
from submarine_runtime.yarn import UnregistrationError, unregister, unregistration
from submarine_runtime.yarn.unregistration import text_address
from tests.unit.yarn.hadoop_rpc import Scheduler

ENVIRON = {"NM_HOST": "n1", "NM_PORT": "8041", "CONTAINER_ID": "container_1_1_01_1", "USER": "ada"}
TOKEN = Token("", b"identifier", b"password", "YARN_AM_RM_TOKEN", "")


def test_the_text_is_on_the_history_server() -> None:
    address = text_address("http://jhs:19888/jobhistory/logs/", ENVIRON)
    assert address == (
        "http://jhs:19888/jobhistory/logs/n1:8041/container_1_1_01_1/container_1_1_01_1/ada/"
        "submarine-job.txt/?start=0"
    )


@pytest.mark.parametrize("lacking", [*ENVIRON, "log server"])
def test_without_one_of_its_parts_there_is_no_address(lacking: str) -> None:
    environ = {name: value for name, value in ENVIRON.items() if name != lacking}
    server = "" if lacking == "log server" else "http://jhs:19888/jobhistory/logs"
    assert text_address(server, environ) == ""
    assert text_address("file:///etc", ENVIRON) == ""


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the master's container."""
    (tmp_path / "tokens").write_bytes(token_bytes([TOKEN]))
    for name, value in {**ENVIRON, "HADOOP_TOKEN_FILE_LOCATION": str(tmp_path / "tokens")}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("container")
def test_the_application_ends_with_the_address_of_the_text() -> None:
    scheduler = Scheduler(TOKEN)
    with contextlib.closing(scheduler):
        # The first ResourceManager is down.
        server = LogServer("http://jhs/logs", ["127.0.0.1:1", scheduler.address])
        unregister(server, succeeded=False, detail="It failed.")
    assert len(scheduler.requests) == 2
    request = scheduler.requests[0]
    assert request[1] == b"It failed."
    assert request[2].startswith(b"http://jhs/logs/n1:8041/container_1_1_01_1/")
    assert request[3] == 2


@pytest.mark.usefixtures("container")
@pytest.mark.parametrize(
    ("token", "changes", "reason"),
    [
        (TOKEN, {"qop": "auth-conf"}, "requires another protection"),
        (TOKEN, {"error": "org.x.StandbyException"}, "StandbyException"),
        (replace(TOKEN, password=b"another"), {}, "refuses the token"),
    ],
)
def test_a_refusal_is_one_sentence(
    token: Token, changes: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unregistration, "LIMIT", 0.5)
    scheduler = Scheduler(token, **changes)
    with contextlib.closing(scheduler), pytest.raises(UnregistrationError, match=reason):
        unregister(LogServer("http://jhs/logs", [scheduler.address]), succeeded=True, detail="")
    assert scheduler.requests == []


@pytest.mark.usefixtures("container")
def test_the_request_is_repeated_until_a_resourcemanager_knows_the_master() -> None:
    error = "org.x.ApplicationMasterNotRegisteredException"
    scheduler = Scheduler(TOKEN, error=error, errors=2)
    with contextlib.closing(scheduler):
        server = LogServer("http://jhs/logs", ["127.0.0.1:1", scheduler.address])
        assert unregister(server, succeeded=True, detail="")
    assert len(scheduler.requests) == 2


@pytest.mark.usefixtures("container")
def test_a_resourcemanager_that_refuses_the_token_is_asked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheduler = Scheduler(replace(TOKEN, password=b"another"))
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    server = LogServer("http://jhs/logs", [scheduler.address])
    with contextlib.closing(scheduler), pytest.raises(UnregistrationError):
        unregister(server, succeeded=True, detail="")
    assert not any(pauses)


def test_a_container_without_the_masters_token_does_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("HADOOP_TOKEN_FILE_LOCATION", raising=False)
    unregister(LogServer("http://jhs/logs", ["127.0.0.1:1"]), succeeded=True, detail="")
