"""Outputs on the server: contents, calls, limits, memory."""

from __future__ import annotations

import gc
import threading
import time

import pytest
from hypothesis import given, strategies as st

from submarine_zeppelin.execution import OutputWriter, output, output_writer as writing
from submarine_zeppelin.interface import (
    Code,
    Kind,
    Message,
    ParagraphGoneError,
    Result,
    fit,
    last_lines,
    output_limit,
)
from tests.unit.zeppelin.execution.fake_server import Running, context, html, running
from tests.waiting import until


def text(data: str) -> Message:
    return Message(Kind.TEXT, data)


@pytest.mark.slow
def test_contents_are_saved_and_only_changes_are_sent() -> None:
    with running() as server:
        outputs = OutputWriter(server.events)
        one = outputs.begin(context())
        one.clear()
        one.show([html("a"), html("b")])
        until(lambda: server.fake.saved.get("p1") == [html("a"), html("b")])
        server.fake.calls.clear()
        one.show([html("a"), html("c")])
        until(lambda: server.fake.saved["p1"] == [html("a"), html("c")])
        assert server.fake.calls == [("update", "p1", 1, "c"), ("checkpoint", "p1")]
        one.show([html("d")])
        until(lambda: server.fake.saved["p1"] == [html("d")])


def test_many_lines_are_sent_in_few_calls() -> None:
    with running() as server:
        outputs = OutputWriter(server.events)
        one = outputs.begin(context())
        one.clear()
        for number in range(10_000):
            one.append(f"{number}\n")
        outputs.finish(one)
        whole = "".join(f"{number}\n" for number in range(10_000))
        assert server.fake.saved["p1"] == server.fake.shown["p1"] == [text(whole)]
        assert len(server.fake.calls) < 100


@pytest.mark.slow
def test_streamed_text_is_appended_and_saved_during_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(output, "SAVE_EVERY", 0.3)
    monkeypatch.setattr(writing, "SAVE_EVERY", 0.3)
    with running() as server:
        one = OutputWriter(server.events).begin(context())
        one.append("a\n")
        until(lambda: server.fake.shown.get("p1") == [text("a\n")])
        one.append("b\n")
        until(lambda: server.fake.saved.get("p1") == [text("a\nb\n")])


def test_waiting_outputs_are_sent_before_the_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "BATCH_DELAY", 3600.0)  # the thread would send it too late
    with running() as server:
        outputs = OutputWriter(server.events)
        outputs.begin(context()).show([html("the last contents")])
        outputs.flush_all()
        assert server.fake.saved["p1"] == [html("the last contents")]


@pytest.mark.slow
def test_updates_after_a_result_send_all_contents() -> None:
    """A checkpoint saves updates, not the returned result."""
    with running() as server:
        outputs = OutputWriter(server.events)
        one = outputs.begin(context())
        one.show([html("a"), html("b")])
        until(lambda: "p1" in server.fake.saved)
        outputs.finish_run(one, Result(Code.SUCCESS, (html("x"), html("y"))))
        server.fake.calls.clear()
        outputs.finish(one)
        assert server.fake.calls == []
        one.show([html("x"), html("z")])
        until(lambda: server.fake.saved["p1"] == [html("x"), html("z")])


def test_an_error_without_messages_keeps_the_output() -> None:
    with running() as server:
        outputs = OutputWriter(server.events)
        one = outputs.begin(context())
        one.append("so far\n")
        assert outputs.finish_run(one, Result(Code.ERROR)).messages == (text("so far\n"),)


@pytest.mark.slow
def test_writes_to_a_deleted_paragraph_raise() -> None:
    with running() as server:
        outputs = OutputWriter(server.events)
        one = outputs.begin(context())
        one.show([html("a")])
        until(lambda: server.fake.saved.get("p1"))
        server.fake.deleted.add("p1")
        one.show([html("b")])
        until(lambda: one.closed)
        with pytest.raises(ParagraphGoneError, match="p1"):
            one.show([html("c")])
        with pytest.raises(ParagraphGoneError):
            one.append("c")
        with pytest.raises(ParagraphGoneError):
            one.link("JOB", "http://h/p")


@pytest.mark.slow
def test_rejected_updates_of_a_paragraph_are_retried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writing, "MAX_PAUSE", 0.2)
    with running() as server:
        one = OutputWriter(server.events).begin(context())
        server.fake.refuse = 2
        one.show([html("a")])
        until(lambda: server.fake.saved.get("p1") == [html("a")])


def test_a_later_run_closes_the_output_of_the_earlier_one() -> None:
    with running() as server:
        outputs = OutputWriter(server.events)
        before = outputs.begin(context())
        now = outputs.begin(context())
        with pytest.raises(ParagraphGoneError, match="run again"):
            before.show([html("late")])
        assert outputs.current(context()) is now


@pytest.mark.slow
def test_all_outputs_are_sent_to_a_restarted_server() -> None:
    with running() as server:
        outputs = OutputWriter(server.events)
        one = outputs.begin(context())
        one.show([html("a")])
        until(lambda: server.fake.saved.get("p1"))
        server.stop()
        server.fake.saved.clear()
        server.fake.shown.clear()
        one.show([html("b")])
        server.restart()
        outputs.resend_all()
        until(lambda: server.fake.saved.get("p1") == [html("b")])


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc", "//h", ""])
def test_links_must_be_http(url: str) -> None:
    with running() as server, pytest.raises(ValueError, match="http"):
        OutputWriter(server.events).begin(context()).link("JOB", url)


def test_concurrent_writes_end_with_the_last_one() -> None:
    with running() as server:
        outputs = OutputWriter(server.events)
        one = outputs.begin(context())
        threads = [
            threading.Thread(target=lambda n=n: [one.show([html(f"{n} {k}")]) for k in range(50)])
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        one.show([html("last")])
        until(lambda: server.fake.saved.get("p1") == [html("last")])
        time.sleep(0)
        assert server.fake.shown["p1"] == [html("last")]


PIECES = st.lists(
    st.builds(
        Message,
        st.sampled_from([Kind.TEXT, Kind.HTML, Kind.TABLE]),
        st.one_of(
            st.text(alphabet="ab\n\t", max_size=40),
            st.integers(1, 5000).map(lambda size: ("line of text\n" * 500)[:size]),
        ),
    ),
    max_size=8,
)


@given(pieces=PIECES, limit=st.integers(1000, 4000))
def test_outputs_are_cut_to_the_limit(pieces: list[Message], limit: int) -> None:
    kept = fit(pieces, limit)
    assert sum(len(one.data) for one in kept) <= limit
    if sum(len(one.data) for one in pieces) <= limit - 200:
        assert kept == pieces
    elif sum(len(one.data) for one in pieces) > limit:
        assert any("cut" in one.data for one in kept)


@given(pieces=st.lists(st.text(alphabet="ab\n", max_size=900), max_size=40))
def test_streamed_text_keeps_its_end(pieces: list[str]) -> None:
    with running() as server:
        outputs = OutputWriter(server.events)
        outputs.limit = 2000
        one = outputs.begin(context())
        for piece in pieces:
            one.append(piece)
        (shown,) = one.messages or [text("")]
        whole = "".join(pieces)
        assert len(shown.data) <= 2000
        newest = shown.data.partition("\n")[2] if whole != shown.data else whole
        assert whole.endswith(newest)
        assert whole == shown.data or len(newest) >= min(len(whole), 500) or "\n" in whole
        one.close("over")


def test_tables_are_cut_by_rows_and_images_by_their_own_limit() -> None:
    table = Message(Kind.TABLE, "a\tb\n" + "1\t2\n" * 1000)
    kept = fit([table], 1000)
    assert [one.kind for one in kept] == [Kind.TABLE, Kind.TEXT]
    rows = kept[0].data.count("\n")
    assert kept[0].data == "a\tb\n" + "1\t2\n" * (rows - 1) + "1\t2"
    assert f"The last {1000 - rows:,} rows" in kept[1].data
    picture = Message(Kind.IMG, "x" * 300_000)
    assert fit([picture, text("below")], 1000) == [picture, text("below")]
    assert "image" in fit([Message(Kind.IMG, "x" * 5_000_000)], 1000)[0].data


def test_output_limit() -> None:
    name = "zeppelin.interpreter.output.limit"
    assert output_limit({}) == 102_400
    assert output_limit({name: "5000"}) == 5000
    assert output_limit({name: "nonsense"}) == 102_400
    assert last_lines("a\nbb\nccc", 5) == "ccc"
    assert last_lines("abcdef", 3) == "def"


def save_sixty_outputs(server: Running, outputs: OutputWriter) -> None:
    """Save outputs of which the writer keeps 20, check them, and write into two released ones.

    A function, because slipcover reads the variables of all frames, and a frame keeps the values
    that were read until it ends, also those that are deleted afterwards.
    """
    held = []
    for number in range(60):
        one = outputs.begin(context(f"p{number}"))
        one.show([Message(Kind.IMG, "x" * 30_000 if number < 30 else "y")])
        outputs.finish(one)
        held.append(one)
    assert [one.released for one in held] == [True] * 40 + [False] * 20
    assert sum(one.size for one in held[:30]) == 0
    assert server.fake.saved["p0"] == [Message(Kind.IMG, "x" * 30_000)]
    outputs.resend_all()  # released outputs are not sent as empty
    held[0].append("more")
    outputs.finish(held[0])
    assert [piece.kind for piece in server.fake.saved["p0"]] == [Kind.TEXT]
    assert "is not available" in server.fake.saved["p0"][0].data
    held[1].show([html("new")])
    outputs.finish(held[1])
    assert server.fake.saved["p1"] == [html("new")]
    assert server.fake.saved["p2"] == [Message(Kind.IMG, "x" * 30_000)]
    assert len(outputs._held) <= 25  # outputs that wait to be sent are kept


@pytest.mark.slow
def test_memory_of_saved_outputs_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MAX_SIZE", 100_000)
    monkeypatch.setattr(writing, "MAX_OUTPUTS", 20)
    with running() as server:
        outputs = OutputWriter(server.events)
        save_sixty_outputs(server, outputs)
        gc.collect()
        assert len(outputs._sent_at) <= 25  # released outputs are not referenced
        again = outputs.begin(context("p3"))
        assert outputs.current(context("p3")) is again
