"""Runs of paragraphs: no repeated runs, order, cancellation, and an answer for each call."""

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
    Execution,
    Executions,
    InterpreterSessions,
    OutputWriter,
    ResourcePool,
    executions,
)
from submarine_zeppelin.interface import Code, Context, Kind, Message, Result
from submarine_zeppelin.notes import expand_text
from submarine_zeppelin.service.handler import Handler
from submarine_zeppelin.thrift import (
    AccessPolicy,
    BoundSocket,
    EventClient,
    InterpreterServer,
    open_protocol,
    protocol,
)
from tests.random_examples import examples
from tests.unit.zeppelin.execution.fake_server import (
    NOTE,
    ControlledInterpreter,
    NoServer,
    Running,
    context,
    html,
    running,
)
from tests.waiting import until


class RunningExecutions:
    """Executions with a fake server; each call of ``interpret`` runs in a thread."""

    def __init__(self, server: Running) -> None:
        self.server = server
        self.outputs = OutputWriter(server.events)
        self.executions = Executions(self.outputs)
        self.interpreter = ControlledInterpreter()
        self._threads = ThreadPoolExecutor(32)

    def call(self, paragraph: str = "p1", text: str = "a", **more: Any) -> Future[Result]:
        def interpret() -> Result:
            run_context: Context = replace(context(paragraph), **more)
            execution = self.executions.run(self.interpreter, text, run_context)
            self.last: Execution = execution
            assert execution.result is not None
            return execution.result

        return self._threads.submit(interpret)

    def close(self) -> None:
        for event in self.interpreter.go.values():
            event.set()
        self._threads.shutdown()


@pytest.fixture
def running_executions(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningExecutions]:
    monkeypatch.setattr(executions, "CANCEL_DELAY", 0.05)
    monkeypatch.setattr(executions, "CLOSE_WINDOW", 0.3)
    with running() as server:
        made = RunningExecutions(server)
        yield made
        made.close()


def test_repeated_calls_during_a_run_return_the_same_run(
    running_executions: RunningExecutions,
) -> None:
    go = running_executions.interpreter.hold("p1")
    first = running_executions.call()
    until(lambda: running_executions.interpreter.running)
    again = [running_executions.call() for _ in range(5)]
    go.set()
    assert {id(one.result(60)) for one in [first, *again]} == {id(first.result())}
    assert running_executions.interpreter.began == [("p1", "a")]


def test_a_copy_of_a_note_has_its_own_runs(running_executions: RunningExecutions) -> None:
    go = running_executions.interpreter.hold("p1")
    first = running_executions.call()
    until(lambda: running_executions.interpreter.running)
    copy = running_executions.call(note_id="2NCOPY")
    until(lambda: len(running_executions.interpreter.began) == 2)
    assert running_executions.executions.status("p1") == "RUNNING"
    go.set()
    assert first.result(60) == copy.result(60)
    assert running_executions.executions.status("p1") == "UNKNOWN"
    shown = [
        running_executions.outputs.current(context("p1")),
        running_executions.outputs.current(running_executions.last.context),
    ]
    assert [one.context.note_id for one in shown] == [NOTE, running_executions.last.context.note_id]


def test_a_result_is_repeated_only_if_it_was_not_delivered(
    running_executions: RunningExecutions,
) -> None:
    first = running_executions.call().result(60)
    running_executions.executions.result_sent(running_executions.last, delivered=False)
    assert running_executions.call().result(60) is first
    running_executions.executions.result_sent(running_executions.last, delivered=True)
    assert running_executions.call().result(60) is not first
    assert len(running_executions.interpreter.began) == 2


@pytest.mark.slow
def test_a_run_before_the_first_answer_is_recorded_keeps_the_output(
    running_executions: RunningExecutions,
) -> None:
    """The server clears the output when a run begins, and keeps what the events bring."""
    running_executions.interpreter.result = Result(Code.KEEP)
    running_executions.call().result(60)
    running_executions.outputs.current(context()).show([html("job")])
    until(lambda: running_executions.server.fake.saved.get("p1") == [html("job")])
    running_executions.server.fake.saved["p1"] = []
    assert running_executions.call().result(60) == Result(Code.KEEP)
    assert running_executions.server.fake.saved["p1"] == [html("job")]
    assert running_executions.interpreter.began == [("p1", "a")]


def test_the_same_text_is_not_run_again_while_its_work_is_active(
    running_executions: RunningExecutions,
) -> None:
    running_executions.interpreter.result = Result(Code.KEEP)
    running_executions.call().result(60)
    running_executions.executions.result_sent(running_executions.last, delivered=True)
    running_executions.outputs.current(context()).show([html("job")])
    running_executions.interpreter.is_active = True
    assert running_executions.call().result(60) == Result(Code.KEEP)
    assert running_executions.server.fake.saved["p1"] == [html("job")]
    assert running_executions.interpreter.began == [("p1", "a")]
    running_executions.call(text="b").result(60)
    assert running_executions.interpreter.began == [("p1", "a"), ("p1", "b")]


def test_another_session_has_its_own_runs(running_executions: RunningExecutions) -> None:
    """A session of another user, or the same session after a restart."""
    running_executions.interpreter.result = Result(Code.KEEP)
    running_executions.interpreter.is_active = True
    running_executions.call().result(60)
    running_executions.executions.result_sent(running_executions.last, delivered=True)
    first, running_executions.interpreter = running_executions.interpreter, ControlledInterpreter()
    assert running_executions.call().result(60).code is Code.SUCCESS
    assert (first.began, running_executions.interpreter.began) == ([("p1", "a")], [("p1", "a")])
    # A restarted server receives the existing run, also in a new session.
    go = running_executions.interpreter.hold("p1")
    running = running_executions.call(text="b")
    until(lambda: running_executions.interpreter.running)
    running_executions.interpreter = ControlledInterpreter()
    again = running_executions.call(text="b", recovering=True)
    go.set()
    assert again.result(60) == running.result(60)
    assert not running_executions.interpreter.began


def test_another_value_of_a_form_is_another_run(
    running_executions: RunningExecutions, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpreter = running_executions.interpreter
    monkeypatch.setattr(interpreter, "expand", expand_text)
    interpreter.is_active = True
    interpreter.result = Result(Code.SUCCESS, (), {"params": {}, "forms": {"size": {}}})
    run = "run --memory ${size=1G}"
    for params in ({}, {"size": "1G"}, {"size": "2G"}, {"size": "2G"}):
        result = running_executions.call(text=run, params=params).result(60)
        assert result.forms == interpreter.result.forms
        running_executions.executions.result_sent(running_executions.last, delivered=True)
    assert interpreter.began == [("p1", "run --memory 1G"), ("p1", "run --memory 2G")]


def test_a_restarted_server_receives_the_active_run(running_executions: RunningExecutions) -> None:
    go = running_executions.interpreter.hold("p1")
    first = running_executions.call()
    until(lambda: running_executions.interpreter.running)
    back = running_executions.call(text="other", recovering=True)
    go.set()
    assert back.result(60) is first.result(60)
    running_executions.executions.result_sent(running_executions.last, delivered=True)
    assert running_executions.call(recovering=True).result(60) is first.result()
    assert running_executions.interpreter.began == [("p1", "a")]
    # The interpreter handles a recovered paragraph without a run in this process.
    running_executions.call("p2", recovering=True).result(60)
    assert ("p2", "a") in running_executions.interpreter.began
    assert ("all", "p2", 0) not in running_executions.server.fake.calls


def test_paragraphs_of_a_note_run_in_the_order_of_the_calls(
    running_executions: RunningExecutions,
) -> None:
    go = running_executions.interpreter.hold("p1")
    calls = [running_executions.call("p1")]
    until(lambda: running_executions.executions.status("p1") == "RUNNING")
    for name in ("p2", "p3"):
        calls.append(running_executions.call(name))
        until(partial(lambda name: running_executions.executions.status(name) == "PENDING", name))
    assert running_executions.executions.status("unknown") == "UNKNOWN"
    go.set()
    for call in calls:
        call.result(60)
    assert [name for name, _ in running_executions.interpreter.began] == ["p1", "p2", "p3"]
    assert running_executions.interpreter.max_parallel == 1
    assert running_executions.executions.status("p1") == "UNKNOWN"


@pytest.mark.slow
def test_cancel_ends_a_run_and_later_runs_continue(running_executions: RunningExecutions) -> None:
    first = running_executions.interpreter.hold("p1")
    calls = [running_executions.call("p1")]
    until(lambda: running_executions.executions.status("p1") == "RUNNING")
    calls.append(running_executions.call("p2"))
    until(lambda: running_executions.executions.status("p2") == "PENDING")
    calls.append(running_executions.call("p3"))
    until(lambda: running_executions.executions.status("p3") == "PENDING")
    running_executions.executions.cancel(running_executions.interpreter, context("p2"))
    assert calls[1].result(60).code is Code.ERROR
    assert not first.is_set()
    assert running_executions.executions.status("p3") == "PENDING"  # the first still runs
    running_executions.executions.cancel(running_executions.interpreter, context("p1"))
    assert calls[0].result(60).code is Code.SUCCESS
    calls[2].result(60)
    assert [name for name, _ in running_executions.interpreter.began] == ["p1", "p3"]


def test_a_run_that_does_not_stop_gets_an_answer(
    running_executions: RunningExecutions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executions, "STOP_TIMEOUT", 0.05)
    running_executions.interpreter.ignores_cancel = True
    go = running_executions.interpreter.hold("p1")
    call = running_executions.call()
    until(lambda: running_executions.executions.status("p1") == "RUNNING")
    running_executions.executions.cancel(running_executions.interpreter, context("p1"))
    result = call.result(60)
    assert result.code is Code.ERROR
    assert "did not stop" in result.messages[-1].data
    assert running_executions.executions.busy()
    go.set()
    until(lambda: not running_executions.executions.busy())


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (UsageError("There is no queue x.", "Choose y."), "There is no queue x. Choose y.\n"),
        (ValueError("secret"), "Internal error in Submarine (ValueError)"),
        (SystemExit(3), "Internal error in Submarine (SystemExit)"),
        (KeyboardInterrupt(), "Internal error in Submarine (KeyboardInterrupt)"),
    ],
)
def test_exceptions_are_reported_in_one_sentence(
    running_executions: RunningExecutions, error: BaseException, said: str
) -> None:
    running_executions.interpreter.raises = error
    result = running_executions.call().result(60)
    assert result.code is Code.ERROR
    assert result.messages[0].data.startswith(said)
    assert "secret" not in result.messages[0].data


def test_paragraphs_run_while_the_server_is_unavailable(
    running_executions: RunningExecutions,
) -> None:
    running_executions.server.stop()
    assert running_executions.call().result(120).messages == (Message(Kind.TEXT, "done"),)


def test_the_number_of_ended_runs_is_limited(
    running_executions: RunningExecutions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executions, "MAX_ENDED", 5)
    for number in range(20):
        running_executions.call(f"n{number}").result(60)
    until(lambda: not running_executions.executions.busy())
    assert len(running_executions.executions._runs) <= 6
    assert len(running_executions.executions._last) <= 1


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["call", "call", "call", "end", "cancel", "delivered", "lost"]),
        st.sampled_from(["p1", "p2", "p3"]),
        st.sampled_from("ab"),
    ),
    max_size=14,
)


@settings(max_examples=examples(40))
@given(steps=STEPS)
def test_each_call_is_answered_in_any_order_of_events(
    steps: list[tuple[str, str, str]],
) -> None:
    before = executions.CANCEL_DELAY, executions.CLOSE_WINDOW
    executions.CANCEL_DELAY = executions.CLOSE_WINDOW = 0.0
    try:
        with running() as server:
            running_executions = RunningExecutions(server)
            calls = [(name, _step(running_executions, *one)) for one in steps if (name := one[0])]
            for event in (running_executions.interpreter.hold(name) for name in ("p1", "p2", "p3")):
                event.set()
            pending = [call for name, call in calls if name == "call" and call is not None]
            for call in pending:
                assert call.result(60).code in Code
            until(lambda: not running_executions.executions.busy())
            assert running_executions.interpreter.max_parallel <= 1
            assert len(running_executions.interpreter.began) <= len(pending)
            running_executions.close()
    finally:
        executions.CANCEL_DELAY, executions.CLOSE_WINDOW = before


def _step(
    running_executions: RunningExecutions, what: str, paragraph: str, text: str
) -> Future[Result] | None:
    if what == "call":
        running_executions.interpreter.hold(paragraph)
        return running_executions.call(paragraph, text)
    if what == "end":
        running_executions.interpreter.hold(paragraph).set()
    elif what == "cancel":
        running_executions.executions.cancel(running_executions.interpreter, context(paragraph))
    elif hasattr(running_executions, "last"):
        running_executions.executions.result_sent(
            running_executions.last, delivered=what == "delivered"
        )
    return None


def test_stop_rejects_new_runs_and_cancels_none(running_executions: RunningExecutions) -> None:
    go = running_executions.interpreter.hold("p1")
    running_one = running_executions.call("p1")
    until(lambda: running_executions.executions.status("p1") == "RUNNING")
    waiting = running_executions.call("p2")
    until(lambda: running_executions.executions.status("p2") == "PENDING")
    running_executions.executions.stop()
    assert waiting.result(60).code is Code.ERROR
    assert running_executions.call("p3").result(60).code is Code.ERROR
    go.set()
    assert running_one.result(60).code is Code.SUCCESS
    until(lambda: not running_executions.executions.busy())
    assert running_executions.interpreter.began == [("p1", "a")]
    assert running_executions.interpreter.cancelled == []


def test_a_cancel_before_a_close_is_discarded(running_executions: RunningExecutions) -> None:
    running_executions.interpreter.hold("p1")
    call = running_executions.call()
    until(lambda: running_executions.executions.status("p1") == "RUNNING")
    running_executions.executions.cancel(running_executions.interpreter, context("p1"))
    running_executions.executions.expect_close(running_executions.interpreter)
    until(lambda: not [one for one in threading.enumerate() if one.name == "cancel"])
    assert running_executions.interpreter.cancelled == []
    running_executions.interpreter.hold("p1").set()
    call.result(60)


def test_a_lost_connection_does_not_lose_the_result(running_executions: RunningExecutions) -> None:
    """The server's client repeats the call on another connection."""
    sessions = InterpreterSessions(NoServer(), lambda properties: None)
    sessions._interpreters["s", "c"] = running_executions.interpreter
    nothing = (lambda *_: None,) * 3
    bound = BoundSocket("127.0.0.1", range(0))
    handler = Handler(
        sessions,
        running_executions.executions,
        ResourcePool(EventClient("127.0.0.1", 1, "group")),
        *nothing,
    )
    server = InterpreterServer(handler, bound, AccessPolicy("127.0.0.1", bound.port))
    server.start()
    wire_context = protocol.RemoteInterpreterContext(noteId="n", paragraphId="p1")

    def call_server(*, listen: bool) -> Any:
        wire = open_protocol("127.0.0.1", bound.port, timeout=60)
        client = TClient(protocol.RemoteInterpreterService, wire)
        try:
            if listen:
                return client.interpret("s", "c", "a", wire_context)
            client._send("interpret", sessionId="s", className="c", text="a", context=wire_context)
            until(lambda: running_executions.interpreter.running)
            return None
        finally:
            client.close()

    go = running_executions.interpreter.hold("p1")
    call_server(listen=False)
    again = ThreadPoolExecutor(1).submit(call_server, listen=False)  # lost during the run
    again.result(60)
    go.set()
    until(lambda: not running_executions.executions.busy())
    assert call_server(listen=True).msg[0].data == "done"  # was lost before the answer
    assert len(running_executions.interpreter.began) == 1
    until(lambda: all(one.delivered for one in running_executions.executions._runs.values()))
    assert call_server(listen=True).msg[0].data == "done"  # a new run by the user
    assert len(running_executions.interpreter.began) == 2
    server.stop()


def test_threads_of_runs_end(running_executions: RunningExecutions) -> None:
    for _ in range(3):
        running_executions.call().result(60)
        running_executions.executions.result_sent(running_executions.last, delivered=True)
    until(lambda: not [one for one in threading.enumerate() if one.name.startswith("paragraph-")])
