"""Pictures of runs: one thread for all of them, which ends with the last run."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.commands import execute
from submarine_jobs.errors import SubmarineError
from submarine_jobs.frontends import Frontend
from submarine_workflows.display import MIME_TYPE
from submarine_workflows.formats import read_workflow
from submarine_workflows.model.serialization import to_json
from submarine_workflows.notebook import RunWatcher, arguments_of, live_display as watching
from submarine_workflows.notebook.live_display import MAX_WATCHED
from submarine_workflows.notebook.local_run import LocalRun
from submarine_workflows.runs import Journal, Lock, Runs, table_of, view_of
from tests.waiting import until

TEXT = "nodes:\n- {name: a, type: noop}\n- {name: b, type: noop, dependsOn: [a]}\n"


class Run:
    """A run whose journal the test writes."""

    def __init__(self, runs: Runs) -> None:
        self.folder = runs.new("nightly")
        self.folder.workflow.write_text(json.dumps(to_json(read_workflow(TEXT, "nightly"))))
        self.lock = Lock(self.folder.runner_lock)
        assert self.lock.acquire()
        self.journal = Journal(self.folder.journal, print)
        self.journal.add("begin", pid=1, execid=1)

    def end(self, status: str = "SUCCEEDED") -> None:
        self.journal.add("end", status=status)
        self.journal.close()
        self.lock.release()


class Picture:
    """What a notebook would show."""

    def __init__(self) -> None:
        self.shown: list[Mapping[str, Any]] = []
        self.threads: set[str] = set()

    def __call__(self, bundle: Mapping[str, Any]) -> None:
        self.shown.append(bundle[MIME_TYPE])
        self.threads.add(threading.current_thread().name)

    def status(self) -> str:
        return str(self.shown[-1]["status"]) if self.shown else ""

    def nodes(self) -> list[object]:
        return [node["status"] for node in self.shown[-1]["nodes"]] if self.shown else []


@pytest.fixture
def threads() -> Callable[[], int]:
    """Count the threads of watchers that the test started; other tests may have left some."""
    before = set(threading.enumerate())

    def count() -> int:
        started = set(threading.enumerate()) - before
        return [thread.name for thread in started].count("submarine-runs")

    return count


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    monkeypatch.setattr(watching, "POLL_INTERVAL", 0.02)
    return Runs(tmp_path / "workflows")


@pytest.mark.slow
def test_pictures_follow_their_journals_from_one_thread_that_ends(
    runs: Runs, threads: Callable[[], int]
) -> None:
    watcher, several = RunWatcher(), [Run(runs) for _ in range(5)]
    pictures = [Picture() for _ in several]
    for run, picture in zip(several, pictures, strict=True):
        watcher.watch(LocalRun(run.folder, "%submarine"), picture)
    until(lambda: all(picture.status() == "RUNNING" for picture in pictures))
    until(lambda: threads() == 1)
    several[0].journal.add("node", node="a", status="RUNNING")
    until(lambda: pictures[0].nodes() == ["RUNNING", "READY"])
    for run in several:
        run.end()
    until(lambda: all(picture.status() == "SUCCEEDED" for picture in pictures))
    until(lambda: threads() == 0)
    assert {name for picture in pictures for name in picture.threads} == {"submarine-runs"}
    late = Run(runs)
    after = Picture()
    watcher.watch(LocalRun(late.folder, "%submarine"), after)
    until(lambda: after.status() == "RUNNING")
    late.end("FAILED")
    until(lambda: after.status() == "FAILED")
    until(lambda: threads() == 0)


def test_of_a_run_that_goes_on_again_what_waits_has_no_end(runs: Runs) -> None:
    run = Run(runs)
    for name, status in (("a", "FAILED"), ("b", "CANCELLED")):
        run.journal.add("node", node=name, status="RUNNING", attempt=0, log="x")
        run.journal.add("node", node=name, status=status, reason="Too bad.", code=1)
    run.journal.add("end", status="FAILED")
    run.journal.add("begin", pid=1, execid=1)
    shown = LocalRun(run.folder, "submarine").render()[0]
    assert ", 0 of 2 nodes\n" in shown["text/plain"]
    assert "Too bad" not in shown["text/plain"]
    view = view_of(run.folder)
    rows = table_of(view, time.time()).splitlines()[2:]
    assert [row.split() for row in rows] == [["a", "READY", "-", "-"], ["b", "READY", "-", "-"]]
    assert [node.attempt for node in view.nodes] == [0, 0], "the next one is counted from there"
    run.end()


def test_one_that_breaks_or_is_removed_holds_up_no_other(
    runs: Runs, threads: Callable[[], int]
) -> None:
    watcher, several = RunWatcher(), [Run(runs) for _ in range(3)]
    good = Picture()

    def broken(_bundle: Mapping[str, Any]) -> None:
        raise OSError("the front end is gone")

    gone = Picture()
    watcher.watch(LocalRun(several[0].folder, "%submarine"), broken)
    watcher.watch(LocalRun(several[1].folder, "%submarine"), gone)
    until(lambda: gone.shown)
    shutil.rmtree(several[1].folder.path)
    watcher.watch(LocalRun(several[2].folder, "%submarine"), good)
    until(lambda: good.status() == "RUNNING")
    several[2].end()
    until(lambda: good.status() == "SUCCEEDED")
    until(lambda: threads() == 0)
    several[0].end()


def test_a_killed_runner_is_reported(runs: Runs) -> None:
    run, picture = Run(runs), Picture()
    look = RunWatcher().watch(LocalRun(run.folder, "%submarine"), picture)
    until(lambda: picture.status() == "RUNNING")
    run.lock.release()  # as its death does
    until(lambda: picture.status() == "EXECUTION_STOPPED")
    before = len(picture.shown)
    look()
    assert len(picture.shown) == before  # nothing follows an end
    run.journal.close()


def test_the_number_of_live_pictures_has_a_bound(runs: Runs) -> None:
    watcher, run = RunWatcher(), Run(runs)
    pictures = [Picture() for _ in range(MAX_WATCHED + 3)]
    for picture in pictures:
        watcher.watch(LocalRun(run.folder, "%submarine"), picture)
    assert len(watcher._watched) == MAX_WATCHED
    run.end()
    until(lambda: all(picture.status() == "SUCCEEDED" for picture in pictures[3:]))


def test_a_large_picture_is_renewed_less_often(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "MAX_RATE", 0.001)  # as if it took days
    run, picture = Run(runs), Picture()
    look = RunWatcher().watch(LocalRun(run.folder, "%submarine"), picture)
    until(lambda: picture.shown)
    run.journal.add("node", node="a", status="RUNNING")
    for _ in range(5):
        look()
    assert len(picture.shown) == 1
    run.end()
    until(lambda: picture.status() == "SUCCEEDED")


def test_words_are_handed_on_as_they_were_typed() -> None:
    from submarine_workflows.commands.run_workflow import run

    typed = [
        "nightly", "train", "-p", "date", "2026", "-p", "x", "--wait", "--timeout", "2h",
        "--disable", "a", "--disable=b", "--max-parallel", "3", "--wait", "--scheduled",
    ]  # fmt: skip
    with run.make_context("run", list(typed)) as ctx:
        words = arguments_of(ctx, Path("/n/nightly.flow"), ("wait",))
    with run.make_context("run", words) as again:
        names = ("parameters", "disable", "max_parallel", "timeout", "scheduled", "nodes")
        assert {name: again.params[name] for name in names} == {
            name: ctx.params[name] for name in names
        }
        assert again.params["file"] == "/n/nightly.flow"
        assert again.params["wait"] is False


def test_resuming_by_name_is_handed_on_too() -> None:
    from submarine_workflows.commands.run_workflow import run

    for typed, kept in ((["--resume"], ""), (["--resume", "nightly-1"], "nightly-1")):
        with run.make_context("run", [*typed, "--concurrent", "skip"]) as ctx:
            words = arguments_of(ctx, None, ())
        with run.make_context("run", words) as again:
            assert (again.params["resume"], again.params["file"]) == (kept, None)


@pytest.mark.slow
def test_a_notebook_whose_runner_cannot_begin_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Notebook(Frontend):
        kind = "notebook"
        interactive = True

    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lame.flow").write_text("nodes:\n- {name: a, notebook: absent.ipynb}\n")
    with pytest.raises(SubmarineError, match=r"absent\.ipynb"):
        execute(["workflow", "run", "lame"], Notebook())
    assert not list((tmp_path / "state").rglob("*.log"))
    (tmp_path / "state" / "file").write_text("")
    with pytest.raises(SubmarineError, match="cannot be used"):
        execute(["workflow", "run", "lame", "--runs", str(tmp_path / "state/file")], Notebook())
