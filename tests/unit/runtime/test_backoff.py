"""Pauses between attempts: doubled up to a maximum, with jitter."""

from __future__ import annotations

import pytest

from submarine_runtime.backoff import Backoff


@pytest.fixture
def no_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.uniform", lambda least, most: most)


@pytest.mark.usefixtures("no_jitter")
def test_pauses_double_up_to_the_longest_and_start_again_after_a_success() -> None:
    backoff = Backoff(1.0, 6.0)
    assert [backoff.pause() for _ in range(5)] == [1.0, 2.0, 4.0, 6.0, 6.0]
    backoff.reset()
    assert backoff.pause() == 1.0


@pytest.mark.usefixtures("no_jitter")
def test_one_pause_may_have_another_maximum() -> None:
    backoff = Backoff(4.0, 60.0)
    assert [backoff.pause(), backoff.pause(5.0), backoff.pause()] == [4.0, 5.0, 10.0]


def test_a_pause_is_shortened_by_at_most_a_half() -> None:
    pauses = [Backoff(8.0, 8.0).pause() for _ in range(200)]
    assert min(pauses) >= 4.0
    assert max(pauses) <= 8.0
    assert max(pauses) - min(pauses) > 1.0
