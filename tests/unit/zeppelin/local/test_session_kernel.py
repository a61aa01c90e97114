"""Decisions about sessions in containers: owners, refusals, calls of ``z``, losses."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any

import pytest

from submarine_jobs.errors import RefusedError, SubmarineError, UsageError
from submarine_zeppelin.interface import SESSION_KERNEL, Context, Server
from submarine_zeppelin.local import container_process, values
from submarine_zeppelin.local.container_process import ContainerProcess
from submarine_zeppelin.local.context_server import MAX_CALL, ContextServer, Forms
from submarine_zeppelin.local.kernel import Kernel
from submarine_zeppelin.local.python import PythonInterpreter


class Note(Server):
    """A server without notes."""

    def paragraphs(self, note_id: str, user: str) -> list[Any]:
        return []

    def output(self, context: Context) -> Any:
        raise NotImplementedError


def interpreter(kernel: str) -> PythonInterpreter:
    return PythonInterpreter({SESSION_KERNEL: kernel}, Note(), "shared")


def test_each_user_of_a_note_has_an_own_session_in_containers() -> None:
    ada, bob = Context("2J", "p", user="ada"), Context("2J", "p", user="bob")
    for kernel, same in (("", True), ("gpu4", False)):
        one = interpreter(kernel)
        assert (one.serial_key(ada) == one.serial_key(bob)) is same
        assert (one._session(ada) is one._session(bob)) is same
        assert one._session(ada) is one._session(ada)
        assert one._session(ada) is not one._session(Context("2K", "p", user="ada"))


def test_values_come_from_the_session_of_the_user() -> None:
    one = interpreter("gpu4")
    ada = one._session(Context("2J", "p", user="ada"))
    assert values._sessions["shared", "2J", "ada"] is ada
    with pytest.raises(UsageError, match="has not started"):
        values.pack_session_values("shared", "2J", "bob", ["x"])


def test_a_session_acts_as_the_user_or_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine without a cluster the jobs of others would run as this account."""
    monkeypatch.setenv("SUBMARINE_BACKEND", "local")
    process = interpreter("gpu4")._process("ada")
    assert isinstance(process, ContainerProcess)
    with pytest.raises(RefusedError, match="not as ada"):
        process._session_for({})


def test_calls_of_z_are_answered_in_messages() -> None:
    server = ContextServer(Note().resources)
    server.forms = Forms({"rate": "5"})
    call = {"op": "form", "kind": "TextBox", "name": "rate", "default": "1"}
    assert json.loads(server.answer(json.dumps(call).encode())) == {"value": "5"}
    assert "error" in json.loads(server.answer(b"x" * (MAX_CALL + 1)))


def remote_kernel(**state: Any) -> Any:
    return SimpleNamespace(**{"loss": "", "code": None, "connected": True, **state})


def is_alive(process: ContainerProcess) -> bool:
    return process.alive


def test_a_loss_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container_process, "_LOSS_SECONDS", 0.0)
    process = ContainerProcess("gpu4", lambda options: pytest.fail("not started"))
    assert process.take_loss() is None  # It was never started.
    assert not is_alive(process)
    process._remote = remote_kernel()
    assert is_alive(process)
    assert process.take_loss() is None
    process._remote = remote_kernel(loss="The container is gone.")
    assert not is_alive(process)
    assert str(process.take_loss()) == (
        "The container is gone. The variables of this note are lost. Run the paragraphs again; the "
        "next run starts a new session."
    )
    assert process.take_loss() is None
    process._loss_reported = False
    process._remote = remote_kernel(code=1)
    assert str(process.take_loss()).startswith("The Python process of this session has ended.")


@pytest.mark.parametrize(
    ("connected", "started", "sentence"),
    [
        (True, True, ""),
        (False, True, "cannot be reached now"),
        (True, False, "has not begun this paragraph"),
    ],
)
def test_a_stop_ends_a_paragraph_that_cannot_be_interrupted(
    connected: bool, started: bool, sentence: str
) -> None:
    process = ContainerProcess("gpu4", lambda options: pytest.fail("not started"))
    process._remote = remote_kernel(connected=connected)
    kernel = Kernel(process, 1000, ContextServer(Note().resources))
    now = time.monotonic()
    kernel._check_stop(started, now)  # A moment later the network may be back.
    if not sentence:
        kernel._check_stop(started, now - 3600)
        return
    with pytest.raises(SubmarineError, match=sentence):
        kernel._check_stop(started, now - 3600)
