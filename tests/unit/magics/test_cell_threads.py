"""Threads of a notebook that may start a job, for which a headless run waits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from submarine_jobs.client import started_jobs as started
from submarine_magics.execution import threads_of_cells

CELL = """
def work():
    begun.set()
    end.wait()
"""


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A notebook with a function that runs until the test ends."""
    monkeypatch.setattr(started, "_kept", {})
    names: dict[str, Any] = {"begun": threading.Event(), "end": threading.Event()}
    exec(CELL, names)
    yield SimpleNamespace(user_ns=names, user_global_ns=names)
    names["end"].set()


def begin(shell: Any, **how: Any) -> threading.Thread:
    thread = threading.Thread(target=shell.user_ns["work"], **how)
    thread.start()
    assert shell.user_ns["begun"].wait(60)
    return thread


@pytest.mark.parametrize(
    "imported", ["import submarine_jobs as s", "from submarine_jobs import run"]
)
def test_a_thread_in_a_function_of_the_notebook(shell: Any, imported: str) -> None:
    thread = begin(shell)
    # A notebook that does not use jobs is executed as by papermill, which waits for no threads.
    assert threads_of_cells(shell) == []
    exec(imported, shell.user_ns)
    assert threads_of_cells(shell) == [thread]
    shell.user_ns["end"].set()
    thread.join()
    assert threads_of_cells(shell) == []


def test_other_threads_are_ignored(shell: Any) -> None:
    exec("import submarine_jobs", shell.user_ns)
    begin(shell, daemon=True)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()  # The thread is idle now.
        library = threading.Thread(target=shell.user_ns["end"].wait)
        library.start()
        assert threads_of_cells(shell) == []
    shell.user_ns["end"].set()
    library.join()
