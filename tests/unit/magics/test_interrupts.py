"""Interrupts that come at a bad moment: ignored, later, or at once."""

from __future__ import annotations

import signal
import threading

import pytest

from submarine_magics.execution import in_one_go, interruptible, undisturbed


def test_an_interrupt_between_two_steps_comes_after_them() -> None:
    done: list[str] = []

    def two_steps() -> None:
        with in_one_go():
            signal.raise_signal(signal.SIGINT)
            done.append("second step")

    with pytest.raises(KeyboardInterrupt):
        two_steps()
    assert done == ["second step"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_nothing_disturbs_and_then_something_may_again() -> None:
    with undisturbed():
        signal.raise_signal(signal.SIGINT)
        with in_one_go():
            signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), undisturbed(), interruptible():
        signal.raise_signal(signal.SIGINT)


def test_threads_are_let_through() -> None:
    done = []

    def work() -> None:
        with undisturbed(), interruptible(), in_one_go():
            done.append("worked")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert done == ["worked"]
