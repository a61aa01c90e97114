"""Interrupts are ignored, deferred or allowed in a block of code."""

from __future__ import annotations

import signal
import threading

import pytest

from submarine_magics.execution import allow_interrupts, defer_interrupts, ignore_interrupts


def test_an_interrupt_between_two_steps_is_deferred() -> None:
    done: list[str] = []

    def two_steps() -> None:
        with defer_interrupts():
            signal.raise_signal(signal.SIGINT)
            done.append("second step")

    with pytest.raises(KeyboardInterrupt):
        two_steps()
    assert done == ["second step"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_interrupts_are_ignored_and_then_allowed() -> None:
    with ignore_interrupts():
        signal.raise_signal(signal.SIGINT)
        with defer_interrupts():
            signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), ignore_interrupts(), allow_interrupts():
        signal.raise_signal(signal.SIGINT)


def test_nothing_changes_in_other_threads() -> None:
    done = []

    def work() -> None:
        with ignore_interrupts(), allow_interrupts(), defer_interrupts():
            done.append("worked")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert done == ["worked"]
