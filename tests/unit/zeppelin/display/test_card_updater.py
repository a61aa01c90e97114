"""Updates of cards after the run of their paragraph."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from submarine_zeppelin.display import CardUpdater
from submarine_zeppelin.submarine.job_index import ParagraphJob, ParagraphJobIndex
from tests.waiting import until


class FakePage:
    """A page with one card, whose views the test sends."""

    def __init__(self) -> None:
        self.shows = 0
        self.final = self.paused = False
        self.reads = 0
        self.storage = threading.Event()
        self.storage.set()
        self.send: Any = None
        self.unsubscribed = threading.Event()
        watcher = SimpleNamespace(subscribe=self._subscribe)
        self.job = SimpleNamespace(id="a-job", session=SimpleNamespace(watcher=watcher))

    def _subscribe(self, job: object, on_view: Any) -> Any:
        self.send = on_view
        return self.unsubscribed.set

    def show(self) -> None:
        self.shows += 1

    def update(self, view: str) -> None:
        self.final = view == "ended"

    def read_metrics(self) -> bool:
        """Return no metrics; block until the test sets the event."""
        self.reads += 1
        if not self.final:
            self.storage.wait(60)
        return False


def add_card(updater: CardUpdater, superseded: Any = lambda: False) -> tuple[Any, threading.Event]:
    page: Any = FakePage()
    done = threading.Event()
    updater.add(page, page, done.set, superseded)
    return page, done


@pytest.mark.slow
def test_a_card_is_updated_until_its_final_view() -> None:
    updater = CardUpdater()
    page, done = add_card(updater)
    until(lambda: page.shows == 1)
    page.send("running")
    until(lambda: page.shows == 2)
    assert not done.is_set()
    page.send("ended")
    until(done.is_set)
    until(page.unsubscribed.is_set)
    assert page.shows == 3
    updater.close()


def test_a_card_is_shown_without_news_of_its_job() -> None:
    updater = CardUpdater()
    first, _ = add_card(updater)
    until(lambda: first.shows == 1)
    time.sleep(0.2)  # the thread is waiting
    second, _ = add_card(updater)
    until(lambda: second.shows == 1, seconds=30)
    updater.close()


@pytest.mark.slow
def test_slow_storage_does_not_delay_updates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("submarine_zeppelin.display.card_updater.METRICS_INTERVAL", 0.0)
    updater = CardUpdater()
    slow: Any = FakePage()
    slow.storage.clear()
    updater.add(slow, slow, threading.Event().set)
    until(lambda: slow.shows == 1 and slow.reads == 1)
    other, done = add_card(updater)
    slow.send("running")
    until(lambda: slow.shows == 2)
    slow.send("running")
    until(lambda: slow.shows == 3)
    assert slow.reads == 1  # one read at a time
    other.send("ended")
    until(done.is_set)
    slow.storage.set()
    updater.close()


def test_a_card_is_not_updated_if_another_process_uses_the_paragraph() -> None:
    updater, superseded = CardUpdater(), threading.Event()
    page, done = add_card(updater, superseded.is_set)
    until(lambda: page.shows == 1)
    superseded.set()
    page.send("ended")
    until(page.unsubscribed.is_set)
    assert page.shows == 1
    assert not done.is_set()
    updater.close()


def test_close_marks_cards_as_paused() -> None:
    updater, superseded = CardUpdater(), threading.Event()
    page, _ = add_card(updater)
    other, _ = add_card(updater, superseded.is_set)
    over, done = add_card(updater)
    until(lambda: page.shows == other.shows == over.shows == 1)
    over.send("ended")
    until(done.is_set)
    superseded.set()
    updater.close()
    assert (page.paused, page.shows) == (True, 2)
    assert (other.shows, over.shows) == (1, 2), "superseded and final cards are not updated"


def test_the_thread_ends_on_close() -> None:
    before = set(threading.enumerate())
    updater = CardUpdater()
    page, _ = add_card(updater)
    until(lambda: page.shows == 1)
    started = {one for one in set(threading.enumerate()) - before if "submarine" in one.name}
    assert started
    updater.close()
    assert page.unsubscribed.is_set()
    until(lambda: not any(one.is_alive() for one in started))


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
