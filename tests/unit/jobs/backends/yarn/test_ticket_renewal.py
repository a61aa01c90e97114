"""When a ticket is renewed; ``tests/kerberos/test_renewal.py`` renews real ones."""

from __future__ import annotations

import time

import pytest

from submarine_jobs.backends.yarn.cluster import CachedTicket, TicketRenewal, ticket_renewal
from submarine_jobs.errors import TicketError
from submarine_runtime.kerberos import GssError

LIFE = 36_000.0


class Cache:
    """A cache whose ticket the KDC renews, or refuses to renew."""

    def __init__(self) -> None:
        self.ticket: CachedTicket | None = None
        self.attempts, self.answers = 0, True

    def put(self, left: float, *, renewable: float) -> None:
        end = time.time() + left
        until = end + renewable if renewable else 0
        self.ticket = CachedTicket("alice@EXAMPLE.COM", end - LIFE, end, until)

    def renew(self) -> None:
        self.attempts += 1
        if not self.answers:
            raise GssError("Cannot contact any KDC")
        self.put(LIFE, renewable=LIFE)


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> Cache:
    made = Cache()
    monkeypatch.setattr(ticket_renewal, "cached_ticket", lambda: made.ticket)
    monkeypatch.setattr(ticket_renewal, "renew_ticket", made.renew)
    return made


@pytest.mark.parametrize(
    ("left", "renewable", "attempts"),
    [
        (LIFE * 0.6, LIFE, 0),
        (LIFE * 0.4, LIFE, 1),
        (LIFE * 0.4, 0, 0),
        (-1, LIFE, 0),
    ],
)
def test_only_a_renewable_ticket_is_renewed_in_its_second_half(
    cache: Cache, left: float, renewable: float, attempts: int
) -> None:
    cache.put(left, renewable=renewable)
    renewal = TicketRenewal()
    renewal.step()
    renewal.step()
    assert cache.attempts == attempts


def test_the_cache_is_read_at_least_every_five_minutes(cache: Cache) -> None:
    renewal = TicketRenewal()
    assert renewal.step() == 300
    cache.put(LIFE, renewable=LIFE)
    assert renewal.step() == 300
    cache.put(LIFE / 2 + 20, renewable=LIFE)
    assert 15 < renewal.step() <= 20


def test_a_failure_is_reported_once_and_repeated(
    cache: Cache, caplog: pytest.LogCaptureFixture
) -> None:
    cache.put(100, renewable=LIFE)
    cache.answers = False
    renewal = TicketRenewal()
    for _number in range(3):
        assert 9 < renewal.step() <= 10
    assert cache.attempts == 3
    (shown,) = [one for one in caplog.records if one.levelname == "WARNING"]
    assert "Cannot contact any KDC" in shown.getMessage()
    assert "ends in 99 s" in shown.getMessage()


@pytest.mark.parametrize("reason", ["Clock skew too great", "Ticket not yet valid"])
def test_a_wrong_clock_is_not_corrected_by_a_ticket(reason: str) -> None:
    error = TicketError(reason)
    assert "Set the clock of this machine" in error.fix
    assert "login" not in error.fix
