"""Runs of paragraphs: each once, in order, cancelled at once, and always with an answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from thriftpy2.thrift import TClient

from submarine_jobs.errors import UsageError
from submarine_zeppelin.execution import (
    Delivery,
    Execution,
    Executions,
    Outputs,
    Sessions,
    executions,
)
from submarine_zeppelin.interface import Code, Context, Kind, Message, Result
from submarine_zeppelin.service import Handler
from submarine_zeppelin.thrift import BoundSocket, Callers, InterpreterServer, connected, protocol
from tests.unit.zeppelin.execution.rig import (
    NOTE,
    NoServer,
    Obedient,
    Running,
    context,
    html,
    running,
    wait_for,
)


class Rig:
    """Executions over a fake server; each call of ``interpret`` in a thread, as the server's."""

    def __init__(self, server: Running) -> None:
        self.server = server
        self.outputs = Outputs(server.events)
        self.executions = Executions(self.outputs.begin, Delivery(self.outputs))
        self.interpreter = Obedient()
        self._threads = ThreadPoolExecutor(32)

    def call(self, paragraph: str = "p1", text: str = "a", **more: Any) -> Future[Result]:
        def interpret() -> Result:
            place: Context = replace(context(paragraph), **more)
            execution = self.executions.run(self.interpreter, text, place)
            self.last: Execution = execution
            assert execution.result is not None
            return execution.result

        return self._threads.submit(interpret)

    def close(self) -> None:
        for event in self.interpreter.go.values():
            event.set()
        self._threads.shutdown()


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setattr(executions, "AFTER_CANCEL", 0.05)
    monkeypatch.setattr(executions, "CLOSE_FOLLOWS", 0.3)
    with running() as server:
        made = Rig(server)
        yield made
        made.close()


def test_what_is_asked_again_while_it_runs_is_the_same_run(rig: Rig) -> None:
    go = rig.interpreter.hold("p1")
    first = rig.call()
    wait_for(lambda: rig.interpreter.running)
    again = [rig.call() for _ in range(5)]
    go.set()
    assert {id(one.result(60)) for one in [first, *again]} == {id(first.result())}
    assert rig.interpreter.began == [("p1", "a")]


def test_a_copy_of_a_note_has_the_ids_of_its_paragraphs_and_runs_of_its_own(rig: Rig) -> None:
    go = rig.interpreter.hold("p1")
    first = rig.call()
    wait_for(lambda: rig.interpreter.running)
    copy = rig.call(note_id="2NCOPY")
    wait_for(lambda: len(rig.interpreter.began) == 2)
    assert rig.executions.status("p1") == "RUNNING"
    go.set()
    assert first.result(60) == copy.result(60)
    assert rig.executions.status("p1") == "UNKNOWN"
    shown = [rig.outputs.current(context("p1")), rig.outputs.current(rig.last.context)]
    assert [one.context.note_id for one in shown] == [NOTE, rig.last.context.note_id]


def test_a_result_that_did_not_arrive_is_given_again_and_one_that_did_is_not(rig: Rig) -> None:
    first = rig.call().result(60)
    rig.executions.delivered(rig.last, reached=False)
    assert rig.call().result(60) is first
    rig.executions.delivered(rig.last, reached=True)
    assert rig.call().result(60) is not first
    assert len(rig.interpreter.began) == 2


def test_while_what_it_began_is_active_the_same_text_is_not_run_again(rig: Rig) -> None:
    rig.interpreter.result = Result(Code.KEEP)
    rig.call().result(60)
    rig.executions.delivered(rig.last, reached=True)
    rig.outputs.current(context()).show([html("job")])
    rig.interpreter.is_active = True
    assert rig.call().result(60) == Result(Code.KEEP)
    assert rig.server.fake.saved["p1"] == [html("job")]
    assert rig.interpreter.began == [("p1", "a")]
    rig.call(text="b").result(60)
    assert rig.interpreter.began == [("p1", "a"), ("p1", "b")]


def test_another_session_has_runs_of_its_own(rig: Rig) -> None:
    """Another user's, or this one after a restart: what the first began is not theirs."""
    rig.interpreter.result = Result(Code.KEEP)
    rig.interpreter.is_active = True
    rig.call().result(60)
    rig.executions.delivered(rig.last, reached=True)
    first, rig.interpreter = rig.interpreter, Obedient()
    assert rig.call().result(60).code is Code.SUCCESS
    assert (first.began, rig.interpreter.began) == ([("p1", "a")], [("p1", "a")])
    # A server that has come back means the run that there is, whatever session it has made.
    go = rig.interpreter.hold("p1")
    running = rig.call(text="b")
    wait_for(lambda: rig.interpreter.running)
    rig.interpreter = Obedient()
    again = rig.call(text="b", recovering=True)
    go.set()
    assert again.result(60) == running.result(60)
    assert not rig.interpreter.began


def test_a_server_that_comes_back_gets_the_run_that_went_on(rig: Rig) -> None:
    go = rig.interpreter.hold("p1")
    first = rig.call()
    wait_for(lambda: rig.interpreter.running)
    back = rig.call(text="other", recovering=True)
    go.set()
    assert back.result(60) is first.result(60)
    rig.executions.delivered(rig.last, reached=True)
    assert rig.call(recovering=True).result(60) is first.result()
    assert rig.interpreter.began == [("p1", "a")]
    # One that this process has never heard of is the interpreter's to find.
    rig.call("p2", recovering=True).result(60)
    assert ("p2", "a") in rig.interpreter.began
    assert ("all", "p2", 0) not in rig.server.fake.calls


def test_paragraphs_of_a_note_run_in_the_order_of_their_coming(rig: Rig) -> None:
    go = rig.interpreter.hold("p1")
    calls = [rig.call("p1")]
    wait_for(lambda: rig.executions.status("p1") == "RUNNING")
    for name in ("p2", "p3"):
        calls.append(rig.call(name))
        wait_for(partial(lambda name: rig.executions.status(name) == "PENDING", name))
    assert rig.executions.status("nobody") == "UNKNOWN"
    go.set()
    for call in calls:
        call.result(60)
    assert [name for name, _ in rig.interpreter.began] == ["p1", "p2", "p3"]
    assert rig.interpreter.most_beside == 1
    assert rig.executions.status("p1") == "UNKNOWN"


def test_cancel_answers_and_what_waits_behind_it_goes_on(rig: Rig) -> None:
    first = rig.interpreter.hold("p1")
    calls = [rig.call("p1")]
    wait_for(lambda: rig.executions.status("p1") == "RUNNING")
    calls.append(rig.call("p2"))
    wait_for(lambda: rig.executions.status("p2") == "PENDING")
    calls.append(rig.call("p3"))
    wait_for(lambda: rig.executions.status("p3") == "PENDING")
    rig.executions.cancel(rig.interpreter, context("p2"))
    assert calls[1].result(60).code is Code.ERROR
    assert not first.is_set()
    assert rig.executions.status("p3") == "PENDING"  # the first still runs
    rig.executions.cancel(rig.interpreter, context("p1"))
    assert calls[0].result(60).code is Code.SUCCESS
    calls[2].result(60)
    assert [name for name, _ in rig.interpreter.began] == ["p1", "p3"]


def test_one_that_does_not_stop_is_answered_for(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executions, "TO_STOP", 0.05)
    rig.interpreter.deaf = True
    go = rig.interpreter.hold("p1")
    call = rig.call()
    wait_for(lambda: rig.executions.status("p1") == "RUNNING")
    rig.executions.cancel(rig.interpreter, context("p1"))
    result = call.result(60)
    assert result.code is Code.ERROR
    assert "did not stop" in result.messages[-1].data
    assert rig.executions.busy()
    go.set()
    wait_for(lambda: not rig.executions.busy())


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (UsageError("There is no queue x.", "Choose y."), "There is no queue x. Choose y.\n"),
        (ValueError("secret"), "Submarine failed inside itself (ValueError)"),
        (SystemExit(3), "Submarine failed inside itself (SystemExit)"),
        (KeyboardInterrupt(), "Submarine failed inside itself (KeyboardInterrupt)"),
    ],
)
def test_whatever_is_raised_is_one_sentence(rig: Rig, error: BaseException, said: str) -> None:
    rig.interpreter.raises = error
    result = rig.call().result(60)
    assert result.code is Code.ERROR
    assert result.messages[0].data.startswith(said)
    assert "secret" not in result.messages[0].data


def test_a_server_that_is_away_does_not_keep_a_paragraph_from_running(rig: Rig) -> None:
    rig.server.go_away()
    assert rig.call().result(120).messages == (Message(Kind.TEXT, "done"),)


def test_no_more_ended_runs_are_remembered_than_needed(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executions, "KEPT", 5)
    for number in range(20):
        rig.call(f"n{number}").result(60)
    wait_for(lambda: not rig.executions.busy())
    assert len(rig.executions._runs) <= 6
    assert len(rig.executions._lanes) <= 1


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["call", "call", "call", "end", "cancel", "delivered", "lost"]),
        st.sampled_from(["p1", "p2", "p3"]),
        st.sampled_from("ab"),
    ),
    max_size=14,
)


@settings(max_examples=40)
@given(steps=STEPS)
def test_in_any_order_of_events_each_call_is_answered_and_no_run_is_doubled(
    steps: list[tuple[str, str, str]],
) -> None:
    before = executions.AFTER_CANCEL, executions.CLOSE_FOLLOWS
    executions.AFTER_CANCEL = executions.CLOSE_FOLLOWS = 0.0
    try:
        with running() as server:
            rig = Rig(server)
            calls = [(name, _step(rig, *one)) for one in steps if (name := one[0])]
            for event in (rig.interpreter.hold(name) for name in ("p1", "p2", "p3")):
                event.set()
            asked = [call for name, call in calls if name == "call" and call is not None]
            for call in asked:
                assert call.result(60).code in Code
            wait_for(lambda: not rig.executions.busy())
            assert rig.interpreter.most_beside <= 1
            assert len(rig.interpreter.began) <= len(asked)
            rig.close()
    finally:
        executions.AFTER_CANCEL, executions.CLOSE_FOLLOWS = before


def _step(rig: Rig, what: str, paragraph: str, text: str) -> Future[Result] | None:
    if what == "call":
        rig.interpreter.hold(paragraph)
        return rig.call(paragraph, text)
    if what == "end":
        rig.interpreter.hold(paragraph).set()
    elif what == "cancel":
        rig.executions.cancel(rig.interpreter, context(paragraph))
    elif hasattr(rig, "last"):
        rig.executions.delivered(rig.last, reached=what == "delivered")
    return None


def test_at_the_end_nothing_begins_and_nothing_is_cancelled(rig: Rig) -> None:
    go = rig.interpreter.hold("p1")
    running_one = rig.call("p1")
    wait_for(lambda: rig.executions.status("p1") == "RUNNING")
    waiting = rig.call("p2")
    wait_for(lambda: rig.executions.status("p2") == "PENDING")
    rig.executions.stop()
    assert waiting.result(60).code is Code.ERROR
    assert rig.call("p3").result(60).code is Code.ERROR
    go.set()
    assert running_one.result(60).code is Code.SUCCESS
    wait_for(lambda: not rig.executions.busy())
    assert rig.interpreter.began == [("p1", "a")]
    assert rig.interpreter.cancelled == []


def test_a_cancel_before_a_close_is_the_servers_and_cancels_nothing(rig: Rig) -> None:
    rig.interpreter.hold("p1")
    call = rig.call()
    wait_for(lambda: rig.executions.status("p1") == "RUNNING")
    rig.executions.cancel(rig.interpreter, context("p1"))
    rig.executions.closing(rig.interpreter)
    wait_for(lambda: not [one for one in threading.enumerate() if one.name == "cancel"])
    assert rig.interpreter.cancelled == []
    rig.interpreter.hold("p1").set()
    call.result(60)


def test_a_connection_that_is_lost_loses_no_result(rig: Rig) -> None:
    """As the server's client does it: the same call again, on another connection."""
    sessions = Sessions(NoServer(), lambda properties: None)
    sessions._made["s", "c"] = rig.interpreter
    nothing = (lambda *_: None,) * 3
    bound = BoundSocket("127.0.0.1", range(0))
    handler = Handler(sessions, rig.executions, *nothing)
    server = InterpreterServer(handler, bound, Callers("127.0.0.1", bound.port))
    server.start()
    place = protocol.RemoteInterpreterContext(noteId="n", paragraphId="p1")

    def ask(*, listen: bool) -> Any:
        wire = connected("127.0.0.1", bound.port, timeout=60)
        client = TClient(protocol.RemoteInterpreterService, wire)
        try:
            if listen:
                return client.interpret("s", "c", "a", place)
            client._send("interpret", sessionId="s", className="c", text="a", context=place)
            wait_for(lambda: rig.interpreter.running)
            return None
        finally:
            client.close()

    go = rig.interpreter.hold("p1")
    ask(listen=False)
    again = ThreadPoolExecutor(1).submit(ask, listen=False)  # lost while it runs
    again.result(60)
    go.set()
    wait_for(lambda: not rig.executions.busy())
    assert ask(listen=True).msg[0].data == "done"  # lost with its answer on the way
    assert len(rig.interpreter.began) == 1
    wait_for(lambda: all(one.delivered for one in rig.executions._runs.values()))
    assert ask(listen=True).msg[0].data == "done"  # the page's button, afterwards
    assert len(rig.interpreter.began) == 2
    server.stop()


def test_threads_do_not_pile_up(rig: Rig) -> None:
    for _ in range(3):
        rig.call().result(60)
        rig.executions.delivered(rig.last, reached=True)
    wait_for(
        lambda: not [one for one in threading.enumerate() if one.name.startswith("paragraph-")]
    )
