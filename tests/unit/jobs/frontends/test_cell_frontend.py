"""Results, progress lines and cards of commands in the output of a cell or paragraph."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from submarine_jobs.display import MIME_TYPE
from submarine_jobs.frontends import (
    INTERRUPTED,
    JOB_FAILED,
    CellFrontend,
    JobDisplays,
    LiveCards,
    MimeBundle,
    Outcome,
    Publisher,
)
from submarine_jobs.model import JobView
from submarine_runtime.protocol import JobRecord, Output, State


class FakePublisher(Publisher):
    """Records what is shown: texts, and bundles by display id."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.displays: dict[str, MimeBundle] = {}
        self.cell = 1

    @property
    def place(self) -> object:
        return self.cell

    def write(self, text: str) -> None:
        self.texts.append(text)

    def show(self, bundle: MimeBundle, display_id: str, *, update: bool = False) -> None:
        assert (display_id in self.displays) is update
        self.displays[display_id] = bundle

    def remove(self, display_id: str) -> None:
        del self.displays[display_id]

    @property
    def shown(self) -> list[str]:
        """State of each card, and text of each other display."""
        return [
            one[MIME_TYPE]["state"] if MIME_TYPE in one else one["text/plain"]
            for one in self.displays.values()
        ]


class FakeJob:
    """A job whose views the test sends."""

    def __init__(self, name: str = "demo", state: State = State.RUNNING) -> None:
        self.id = name
        self.state = state
        self.send: Any = None
        self.session = SimpleNamespace(watcher=SimpleNamespace(subscribe=self._subscribe))

    def view(self) -> JobView:
        return JobView(JobRecord(self.id, self.id, self.state))

    def wait(self, on_interrupt: str) -> JobRecord:
        self.state = State.SUCCEEDED
        return self.view().record

    def _subscribe(self, job: object, send: Any, *, display: bool) -> Any:
        self.send = send
        return lambda: setattr(self, "send", None)


def make_frontend(live: LiveCards | None = None) -> tuple[CellFrontend, FakePublisher]:
    publisher = FakePublisher()
    frontend = CellFrontend(JobDisplays(publisher, live))
    frontend.begin_command()
    return frontend, publisher


def make_job(name: str = "demo", state: State = State.RUNNING) -> Any:
    return cast("Any", FakeJob(name, state))


def test_a_card_replaces_the_progress_line_and_a_later_line_does_not_replace_the_card() -> None:
    frontend, publisher = make_frontend()
    frontend.show_progress("Packing ...")
    frontend.show_progress("Submitting ...")
    assert publisher.shown == ["Submitting ..."]
    frontend.displays.show(make_job())
    assert publisher.shown == ["RUNNING"]
    frontend.show_progress("Waiting ...")
    assert publisher.shown == ["RUNNING", "Waiting ..."]
    frontend.end_command()
    assert publisher.shown == ["RUNNING"]


def test_a_wait_shows_one_card_to_its_end() -> None:
    frontend, publisher = make_frontend()
    job = make_job()
    frontend.displays.show(job)
    record = frontend.watch(job)
    assert record.state is State.SUCCEEDED
    frontend.show_outcome(Outcome("the text", job=job, exit_code=JOB_FAILED))
    assert publisher.shown == ["SUCCEEDED"]
    assert publisher.texts == []
    assert job.send is None


def test_the_result_is_a_card_html_text_or_json() -> None:
    frontend, publisher = make_frontend()
    job = make_job()
    frontend.show_outcome(Outcome("the job", job=job))
    frontend.show_outcome(Outcome("the job", job=job))
    frontend.show_outcome(Outcome("a table", "<table>", mime={"a/b": 1}))
    frontend.show_outcome(Outcome("some \x1b text"))
    frontend.show_outcome(Outcome("text", value={"a": 1}, as_json=True))
    frontend.show_outcome(Outcome("Stopped waiting.", exit_code=INTERRUPTED, job=job))
    assert publisher.shown == ["RUNNING", "a table"]
    bundle = list(publisher.displays.values())[1]
    assert bundle == {"a/b": 1, "text/html": "<table>", "text/plain": "a table"}
    assert publisher.texts == ["some \ufffd text\n", '{\n  "a": 1\n}\n', "Stopped waiting.\n"]
    publisher.cell = 2
    frontend.show_outcome(Outcome("the job", job=job))
    assert publisher.shown == ["RUNNING", "a table", "RUNNING"]


def test_a_quiet_command_shows_no_progress_and_no_card() -> None:
    frontend, publisher = make_frontend()
    frontend.begin_command(quiet=True)
    assert frontend.show_progress("Submitting ...")
    assert frontend.add_output({"text/plain": "x"}) is None
    assert frontend.watch(make_job()).state is State.SUCCEEDED
    assert not publisher.displays


def test_displays_that_are_closed_stop_their_own_cards_only() -> None:
    live = LiveCards(max_live=2)
    (one, _), (other, shown) = make_frontend(live), make_frontend(live)
    first, second, third = (make_job(name) for name in ("first", "second", "third"))
    one.displays.show(first)
    one.displays.show(second)
    other.displays.show(third)
    # The oldest card is paused, because only two are live.
    assert first.send is None
    one.displays.close()
    assert second.send is None
    assert third.send is not None
    third.state = State.SUCCEEDED
    third.send(third.view())
    assert shown.shown == ["SUCCEEDED"]


def test_a_process_that_must_not_load_values_shows_the_card_without_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[str] = []

    def load(job: Any, record: JobRecord) -> dict[str, str]:
        loaded.append(job.id)
        return {"acc": "0.5"}

    monkeypatch.setattr("submarine_jobs.frontends.job_displays.format_results", load)
    record = JobRecord("demo", "demo", State.SUCCEEDED, outputs=[Output("result.zip", 10)])
    for readable in (False, True):
        frontend, publisher = make_frontend()
        publisher.reads_results = readable
        job = make_job(state=State.SUCCEEDED)
        job.view = lambda: JobView(record)
        frontend.displays.show(job)
        (bundle,) = publisher.displays.values()
        assert ("Returned acc: 0.5" in bundle["text/plain"]) is readable
    assert loaded == ["demo"]
