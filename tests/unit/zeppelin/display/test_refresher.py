"""Cards that go on after their paragraph: when they are drawn, and when somebody else has it."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from submarine_zeppelin.display import Refresher
from submarine_zeppelin.submarine.job_index import KnownJobs, Placed
from tests.waiting import until


class Played:
    """A page with one card, whose job is told of by the test."""

    def __init__(self) -> None:
        self.shows = 0
        self.final = self.paused = False
        self.measured = 0
        self.storage = threading.Event()
        self.storage.set()
        self.tell: Any = None
        self.unsubscribed = threading.Event()
        watcher = SimpleNamespace(subscribe=self._subscribe)
        self.job = SimpleNamespace(id="a-job", session=SimpleNamespace(watcher=watcher))

    def _subscribe(self, job: object, hear: Any) -> Any:
        self.tell = hear
        return self.unsubscribed.set

    def show(self) -> None:
        self.shows += 1

    def hear(self, view: str) -> None:
        self.final = view == "ended"

    def measure(self) -> bool:
        """Nothing was measured; reading may take until the test lets it end."""
        self.measured += 1
        if not self.final:
            self.storage.wait(60)
        return False


def kept(refresher: Refresher, left: Any = lambda: False) -> tuple[Any, threading.Event]:
    played, done = Played(), threading.Event()
    page: Any = played
    refresher.add(page, page, done.set, left)
    return played, done


def test_a_card_is_drawn_until_its_last_word() -> None:
    refresher = Refresher()
    played, done = kept(refresher)
    until(lambda: played.shows == 1)
    played.tell("running")
    until(lambda: played.shows == 2)
    assert not done.is_set()
    played.tell("ended")
    until(done.is_set)
    until(played.unsubscribed.is_set)
    assert played.shows == 3
    refresher.close()


def test_a_card_is_drawn_although_nothing_is_heard_of_its_job() -> None:
    refresher = Refresher()
    first, _ = kept(refresher)
    until(lambda: first.shows == 1)
    time.sleep(0.2)  # the thread waits for news now
    second, _ = kept(refresher)
    until(lambda: second.shows == 1, seconds=30)
    refresher.close()


def test_a_storage_that_does_not_answer_holds_no_card_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("submarine_zeppelin.display.refresher.METRICS", 0.0)
    refresher = Refresher()
    slow: Any = Played()
    slow.storage.clear()
    refresher.add(slow, slow, threading.Event().set)
    until(lambda: slow.shows == 1 and slow.measured == 1)
    other, done = kept(refresher)
    slow.tell("running")
    until(lambda: slow.shows == 2)
    slow.tell("running")
    until(lambda: slow.shows == 3)
    assert slow.measured == 1  # one at a time
    other.tell("ended")
    until(done.is_set)
    slow.storage.set()
    refresher.close()


def test_a_paragraph_that_another_process_has_now_is_not_written() -> None:
    refresher, left = Refresher(), threading.Event()
    played, done = kept(refresher, left.is_set)
    until(lambda: played.shows == 1)
    left.set()
    played.tell("ended")
    until(played.unsubscribed.is_set)
    assert played.shows == 1
    assert not done.is_set()
    refresher.close()


def test_at_the_end_of_the_interpreter_a_card_says_that_it_stands_still() -> None:
    refresher, left = Refresher(), threading.Event()
    played, _ = kept(refresher)
    other, _ = kept(refresher, left.is_set)
    over, done = kept(refresher)
    until(lambda: played.shows == other.shows == over.shows == 1)
    over.tell("ended")
    until(done.is_set)
    left.set()
    refresher.close()
    assert (played.paused, played.shows) == (True, 2)
    assert (other.shows, over.shows) == (1, 2), "of another process, and with its last word"


def test_its_thread_ends_with_it() -> None:
    before = set(threading.enumerate())
    refresher = Refresher()
    played, _ = kept(refresher)
    until(lambda: played.shows == 1)
    started = {one for one in set(threading.enumerate()) - before if "submarine" in one.name}
    assert started
    refresher.close()
    assert played.unsubscribed.is_set()
    until(lambda: not any(one.is_alive() for one in started))


def test_who_has_a_paragraph_is_in_the_index_of_all_processes(tmp_path: Path) -> None:
    here, there = KnownJobs(tmp_path), KnownJobs(tmp_path)
    here.put(Placed("a-job", "note", "paragraph", "ada", "default"))
    assert not here.left("a-job", ("note", "paragraph"))
    there.leave(("note", "paragraph"))
    assert here.left("a-job", ("note", "paragraph"))
    there.put(Placed("a-job", "note", "paragraph", "ada", "default"))
    assert not here.left("a-job", ("note", "paragraph"))
    # In another paragraph too: the first one goes on.
    there.put(Placed("a-job", "note", "other", "ada", "default"))
    there.leave(("note", "other"))
    assert not here.left("a-job", ("note", "paragraph"))
    (tmp_path / "zeppelin.sqlite").write_bytes(b"nonsense")
    assert not here.left("a-job", ("note", "paragraph"))
