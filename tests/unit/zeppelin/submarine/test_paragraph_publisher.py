"""Cards in paragraphs: updates during and after the run, metrics, other runs, limits in memory."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from submarine_jobs.frontends import JobDisplays, LiveCards
from submarine_jobs.model import JobView, Profile
from submarine_runtime.protocol import JobRecord, State, TaskRecord
from submarine_zeppelin.display import ShownJob
from submarine_zeppelin.interface import (
    Context,
    Kind,
    Message,
    NoteParagraph,
    Output,
    ParagraphGoneError,
    Server,
)
from submarine_zeppelin.submarine import interpreter as submarine, paragraph_publisher
from submarine_zeppelin.submarine.interpreter import SubmarineInterpreter
from submarine_zeppelin.submarine.interruption import Interruption
from submarine_zeppelin.submarine.job_index import ParagraphJob, ParagraphJobIndex
from submarine_zeppelin.submarine.paragraph_publisher import ParagraphPublisher
from tests.waiting import until

CONTEXT = Context("note", "paragraph", user="ada")
LIMIT = 102_400


class RecordedOutput(Output):
    """Records the newest output."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.shows = 0
        self.gone = False

    def show(self, messages: Sequence[Message]) -> None:
        if self.gone:
            raise ParagraphGoneError("deleted")
        self.messages, self.shows = list(messages), self.shows + 1

    def append(self, text: str, kind: Kind = Kind.TEXT) -> None:
        raise AssertionError("the output must be shown as a whole")

    def link(self, label: str, url: str, tooltip: str = "") -> None:
        """Do nothing."""

    @property
    def text(self) -> str:
        return "\n".join(one.data for one in self.messages)


class FakeJob:
    """A job whose views the test sends."""

    def __init__(self, state_dir: Path, name: str = "a-job") -> None:
        self.id = name
        self.directory = None
        self.send: Any = None
        self.unsubscribed = threading.Event()
        watcher = SimpleNamespace(subscribe=self._subscribe)
        profile = Profile(state_dir=state_dir)
        self.session = SimpleNamespace(watcher=watcher, profile=profile)

    def _subscribe(self, job: object, on_view: Any, *, display: bool) -> Callable[[], None]:
        assert not display  # No page of a Jupyter server shows the paragraph.
        self.send = on_view
        return self.unsubscribed.set

    def view(self, state: State = State.RUNNING, tail: str = "") -> JobView:
        tasks = [TaskRecord("worker:0", "worker", 0, state=state, started=1.0)]
        return JobView(JobRecord(self.id, self.id, state, tasks=tasks), tail=tail)


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Reads of metrics wait for this event; it is set."""
    storage = threading.Event()
    storage.set()

    def read(self: ShownJob) -> bool:
        storage.wait(60)
        return False

    monkeypatch.setattr(ShownJob, "read_metrics", read)
    return storage


@pytest.fixture
def index(tmp_path: Path) -> ParagraphJobIndex:
    return ParagraphJobIndex.of(Profile(state_dir=tmp_path))


def show(
    job: FakeJob, live: LiveCards | None = None
) -> tuple[ParagraphPublisher, RecordedOutput, JobDisplays]:
    output = RecordedOutput()
    publisher = ParagraphPublisher(CONTEXT, output, LIMIT)
    displays = JobDisplays(publisher, live or LiveCards(in_page=False))
    publisher.on_gone = displays.close
    displays.show(job)  # type: ignore[arg-type]
    return publisher, output, displays


@pytest.mark.usefixtures("metrics")
def test_a_card_is_updated_until_its_final_view(tmp_path: Path, index: ParagraphJobIndex) -> None:
    job = FakeJob(tmp_path)
    publisher, output, _ = show(job)
    assert "RUNNING" in output.text
    assert [row.job_id for row in index.unfinished()] == ["a-job"]
    was_active = publisher.active
    assert was_active
    job.send(job.view(tail="the first line\n"))
    assert "the first line" in output.text
    job.send(job.view())
    assert "the first line" in output.text, "a view without log keeps the lines"
    job.send(job.view(State.LOST))
    assert "LOST" in output.text
    assert index.unfinished(), "a lost job may be found again"
    job.send(job.view(State.SUCCEEDED))
    assert "SUCCEEDED" in output.text
    assert not publisher.active
    publisher.wait_final(job, 60)  # type: ignore[arg-type]
    until(lambda: not index.unfinished())
    # A final card is not changed, also not by a paragraph that has waited for the job.
    job.send(job.view())
    assert "SUCCEEDED" in output.text


def test_slow_storage_does_not_delay_updates(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, metrics: threading.Event
) -> None:
    monkeypatch.setattr(paragraph_publisher, "METRICS_INTERVAL", 0.0)
    metrics.clear()
    job = FakeJob(tmp_path)
    publisher, output, _ = show(job)
    before = set(threading.enumerate())
    for number in range(3):
        job.send(job.view(tail=f"line {number}\n"))
        assert f"line {number}" in output.text
    assert set(threading.enumerate()) <= before, "one read at a time"
    job.send(job.view(State.SUCCEEDED))
    assert "SUCCEEDED" in output.text
    publisher.wait_final(job, 0.01)  # type: ignore[arg-type]
    assert ParagraphJobIndex.of(job.session.profile).unfinished()
    metrics.set()
    publisher.wait_final(job, 60)  # type: ignore[arg-type]
    until(lambda: not ParagraphJobIndex.of(job.session.profile).unfinished())


@pytest.mark.usefixtures("metrics")
def test_a_card_is_not_updated_if_another_process_uses_the_paragraph(
    tmp_path: Path, index: ParagraphJobIndex
) -> None:
    job = FakeJob(tmp_path)
    _, output, _ = show(job)
    index.clear_paragraph(CONTEXT.key)
    job.send(job.view(State.SUCCEEDED))
    assert "SUCCEEDED" not in output.text
    assert job.unsubscribed.is_set()


@pytest.mark.usefixtures("metrics")
def test_the_end_of_one_job_does_not_stop_the_updates_of_another(tmp_path: Path) -> None:
    first, second = FakeJob(tmp_path, "first"), FakeJob(tmp_path, "second")
    publisher, output, displays = show(first)
    displays.show(second)  # type: ignore[arg-type]
    first.send(first.view(State.SUCCEEDED))
    publisher.wait_final(first, 60)  # type: ignore[arg-type]
    first.view = lambda *words: FakeJob.view(first, State.SUCCEEDED)  # type: ignore[method-assign]
    displays.finish(first)  # type: ignore[arg-type]
    second.send(second.view(tail="goes on\n"))
    assert "goes on" in output.text
    assert not second.unsubscribed.is_set()


@pytest.mark.usefixtures("metrics")
def test_a_later_run_or_a_deletion_ends_the_updates(tmp_path: Path) -> None:
    job = FakeJob(tmp_path)
    publisher, output, _ = show(job)
    shows = output.shows
    publisher.supersede()
    assert job.unsubscribed.is_set()
    job.send(job.view(State.SUCCEEDED))
    assert output.shows == shows
    with pytest.raises(ParagraphGoneError):
        publisher.write("text")
    deleted = FakeJob(tmp_path, "deleted")
    _, output, _ = show(deleted)
    output.gone = True
    deleted.send(deleted.view())
    assert deleted.unsubscribed.is_set()


@pytest.mark.usefixtures("metrics")
def test_pause_is_shown_on_cards_that_may_change(tmp_path: Path, index: ParagraphJobIndex) -> None:
    jobs = [FakeJob(tmp_path, name) for name in ("running", "ended", "other")]
    shown = [show(job) for job in jobs]
    jobs[1].send(jobs[1].view(State.SUCCEEDED))
    shown[1][0].wait_final(jobs[1], 60)  # type: ignore[arg-type]
    index.put(ParagraphJob("other", *CONTEXT.key, "ada", "default"))
    index.mark_final("other", CONTEXT.key)  # another process uses the paragraph
    for publisher, _, _ in shown:
        publisher.pause()
    paused = ["this card is not updated" in output.text for _, output, _ in shown]
    assert paused == [True, False, False]


@pytest.mark.usefixtures("metrics")
def test_a_step_is_replaced_by_the_card_or_removed(tmp_path: Path) -> None:
    output = RecordedOutput()
    publisher = ParagraphPublisher(CONTEXT, output, LIMIT)
    displays = JobDisplays(publisher, LiveCards(in_page=False))
    displays.place = displays.line("Submitting ...", None)
    displays.line("Packing: 50 %", displays.place)
    assert [(one.kind, one.data) for one in output.messages] == [(Kind.TEXT, "Packing: 50 %\n")]
    publisher.remove(displays.place)
    assert output.messages == []
    displays.place = displays.line("Submitting ...", None)
    displays.show(FakeJob(tmp_path))  # type: ignore[arg-type]
    assert len(output.messages) == 1
    assert "RUNNING" in output.text


@pytest.mark.slow
def test_stop_does_not_separate_a_card_from_its_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("submarine_zeppelin.submarine.interruption._INTERVAL", 0.05)
    stop = Interruption()
    publisher = ParagraphPublisher(CONTEXT, RecordedOutput(), LIMIT, stop)
    complete = []

    def work() -> None:
        with publisher.uninterrupted():
            stop.request()
            time.sleep(0.3)
            complete.append(True)
        for _ in range(1000):  # The exception is raised between two statements.
            time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        stop.run(work)
    assert complete


def test_the_index_is_shared_by_processes(tmp_path: Path) -> None:
    here, there = ParagraphJobIndex(tmp_path), ParagraphJobIndex(tmp_path)
    here.put(ParagraphJob("a-job", "note", "paragraph", "ada", "default"))
    assert not here.is_superseded("a-job", ("note", "paragraph"))
    there.clear_paragraph(("note", "paragraph"))
    assert here.is_superseded("a-job", ("note", "paragraph"))
    there.put(ParagraphJob("a-job", "note", "paragraph", "ada", "default"))
    assert not here.is_superseded("a-job", ("note", "paragraph"))
    # The job is also shown in another paragraph.
    there.put(ParagraphJob("a-job", "note", "other", "ada", "default"))
    there.clear_paragraph(("note", "other"))
    assert not here.is_superseded("a-job", ("note", "paragraph"))
    (tmp_path / "zeppelin.sqlite").write_bytes(b"nonsense")
    assert not here.is_superseded("a-job", ("note", "paragraph"))


class NoServer(Server):
    """Server that must not be called."""

    def paragraphs(self, note_id: str, user: str) -> list[NoteParagraph]:
        raise AssertionError("no paragraph may be read")

    def output(self, context: Context) -> Output:
        raise AssertionError("no output may be requested")


@pytest.mark.slow
@pytest.mark.usefixtures("metrics")
def test_the_number_of_outputs_in_memory_is_limited(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(submarine, "_MAX_ENDED", 10)
    monkeypatch.setattr(submarine, "_MAX_OUTPUTS", 20)
    interpreter = SubmarineInterpreter({}, NoServer(), "session")

    def begin(name: str, *jobs: FakeJob) -> weakref.ref[ParagraphPublisher]:
        context = Context("2N", name)
        publisher = ParagraphPublisher(context, RecordedOutput(), LIMIT)
        displays = JobDisplays(publisher, interpreter._live)
        publisher.on_gone = displays.close
        interpreter._begin(context, publisher, Interruption())
        for job in jobs:
            displays.show(job)  # type: ignore[arg-type]
        return weakref.ref(publisher)

    for number in range(8):
        begin(f"on-{number}", FakeJob(tmp_path, f"job-{number}"))

    # A function, so that no variable of this frame refers to the publisher.
    def end() -> weakref.ref[ParagraphPublisher]:
        ended = FakeJob(tmp_path, "ended")
        removed = begin("ended", ended)
        ended.send(ended.view(State.SUCCEEDED))
        publisher = removed()
        assert publisher is not None
        publisher.wait_final(ended, 60)  # type: ignore[arg-type]
        return removed

    removed = end()
    for number in range(40):
        begin(f"ended-{number}")
    kept = [place[1] for place in interpreter._outputs]
    assert kept[:8] == [f"on-{number}" for number in range(8)]
    assert kept[8:] == [f"ended-{number}" for number in range(30, 40)]
    gc.collect()
    until(lambda: removed() is None, "the removed output to be freed")
    interpreter.close()
