"""Stop raises KeyboardInterrupt in a paragraph's thread until its run has ended."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

import pytest

from submarine_zeppelin.submarine import interruption
from submarine_zeppelin.submarine.interruption import Interruption
from tests.waiting import until


class Run:
    """A run in its own thread, which ends in any case."""

    def __init__(self, stop: Interruption, work: Callable[[Run], None]) -> None:
        self.started, self.abandoned = threading.Event(), threading.Event()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._perform, args=(stop, work), daemon=True)
        self._thread.start()

    def end(self) -> BaseException | None:
        """Return the exception of the run; do not wait long for one that is not interrupted."""
        self._thread.join(30)
        interrupted = not self._thread.is_alive()
        self.abandoned.set()
        self._thread.join(30)
        assert interrupted, "the run was not interrupted"
        return self.error

    def wait(self) -> None:
        self.started.set()
        while not self.abandoned.is_set():
            time.sleep(0.01)

    def _perform(self, stop: Interruption, work: Callable[[Run], None]) -> None:
        try:
            stop.run(lambda: work(self))
            # After the run no exception may be raised, although one was just requested.
            time.sleep(3 * interruption._INTERVAL)
        except BaseException as error:
            self.error = error


@pytest.fixture(autouse=True)
def short_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interruption, "_INTERVAL", 0.05)


def test_a_run_is_interrupted() -> None:
    stop = Interruption()
    run = Run(stop, Run.wait)
    assert run.started.wait(60)
    stop.request()
    assert isinstance(run.end(), KeyboardInterrupt)


def test_a_request_before_the_run_interrupts_it() -> None:
    stop = Interruption()
    stop.request()
    assert isinstance(Run(stop, Run.wait).end(), KeyboardInterrupt)


def test_an_exception_that_a_finalizer_ignores_is_raised_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Pytest's hook is Python code, which the next exception interrupts on a busy machine.
    ignored: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)

    class Finalized:
        interrupted = False

        def __init__(self, run: Run) -> None:
            self.run = run

        def __del__(self) -> None:
            try:
                self.run.wait()
            except KeyboardInterrupt:
                Finalized.interrupted = True
                raise  # Python ignores it.

    def work(run: Run) -> None:
        finalized = Finalized(run)
        del finalized
        run.wait()

    stop = Interruption()
    run = Run(stop, work)
    assert run.started.wait(60)
    stop.request()
    assert isinstance(run.end(), KeyboardInterrupt)
    assert Finalized.interrupted
    assert len(ignored) == 1


def test_a_broad_handler_does_not_keep_the_run_alive() -> None:
    caught = []

    def work(run: Run) -> None:
        try:
            run.wait()
        except BaseException as error:
            caught.append(error)
        run.wait()

    stop = Interruption()
    run = Run(stop, work)
    assert run.started.wait(60)
    stop.request()
    assert isinstance(run.end(), KeyboardInterrupt)
    assert len(caught) == 1


@pytest.mark.slow
def test_the_handler_of_an_interrupt_is_not_interrupted() -> None:
    cancelled = threading.Event()

    def work(run: Run) -> None:
        try:
            run.wait()
        except KeyboardInterrupt:
            for _ in range(20):
                try:
                    raise FileNotFoundError
                except FileNotFoundError:
                    time.sleep(interruption._INTERVAL / 4)
            cancelled.set()
            raise

    stop = Interruption()
    run = Run(stop, work)
    assert run.started.wait(60)
    stop.request()
    assert isinstance(run.end(), KeyboardInterrupt)
    assert cancelled.is_set()


@pytest.mark.slow
def test_an_acknowledged_interrupt_is_not_repeated() -> None:
    def work(run: Run) -> None:
        try:
            run.wait()
        except KeyboardInterrupt:
            stop.acknowledge()
        time.sleep(5 * interruption._INTERVAL)

    stop = Interruption()
    run = Run(stop, work)
    assert run.started.wait(60)
    stop.request()
    assert run.end() is None


@pytest.mark.slow
def test_nothing_is_raised_after_the_run() -> None:
    for number in range(200):
        stop = Interruption()
        raised_after: list[BaseException] = []

        def perform(stop: Interruption = stop, raised: list[BaseException] = raised_after) -> None:
            try:
                stop.run(lambda: time.sleep(0.001))
            except KeyboardInterrupt:
                pass
            try:
                for _ in range(10):
                    time.sleep(0.001)
            except KeyboardInterrupt as error:
                raised.append(error)

        thread = threading.Thread(target=perform, daemon=True)
        thread.start()
        time.sleep(number * 0.00002)
        stop.request()
        thread.join(60)
        assert not raised_after
        until(lambda thread=thread: not thread.is_alive())  # type: ignore[misc]
