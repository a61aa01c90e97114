"""A lease of a job: what counts as time without its owner, and what a job does that waited."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from submarine_runtime.protocol import layout
from submarine_runtime.storage import Entry, LeaseWatch, LocalStore, StoreError, renewal_interval
from submarine_runtime.storage.leases import Lease
from tests.waiting import until

# --- the count


def silent(lease: Lease, seconds: float, start: float = 0.0) -> float:
    """Pass a time without a sign of life; return the time after it."""
    now, end = start, start + seconds
    while now < end:
        now = min(end, now + max(0.5, lease.pause(now)))
        lease.checked(now, False)
    return now


def test_a_lease_is_over_after_so_much_time_without_a_sign() -> None:
    lease = Lease(100.0, 0.0)
    silent(lease, 90.0)
    assert not lease.expired
    silent(lease, 15.0, 90.0)
    assert lease.expired


def test_each_sign_begins_it_anew() -> None:
    lease = Lease(100.0, 0.0)
    now = silent(lease, 80.0)
    lease.renewed(now)
    now = silent(lease, 80.0, now)
    lease.checked(now, True)
    silent(lease, 80.0, now)
    assert not lease.expired


def test_time_in_which_nothing_could_be_read_does_not_count() -> None:
    lease = Lease(100.0, 0.0)
    now = silent(lease, 40.0)
    left = lease.left
    for _ in range(1000):
        now += 25.0
        lease.checked(now, None)
    assert lease.left == left
    assert not lease.expired
    now += 25.0
    lease.checked(now, False)  # the first that can be read tells nothing of the time before
    assert not lease.expired


def test_after_an_outage_there_is_time_to_write_a_sign() -> None:
    lease = Lease(100.0, 0.0)
    now = silent(lease, 95.0)
    assert 0 < lease.left < 10
    lease.checked(now + 1, None)
    lease.checked(now + 500, False)
    assert lease.left >= 50


def test_little_counts_of_a_period_without_checks() -> None:
    lease = Lease(100.0, 0.0)
    lease.checked(86400.0, False)  # the agent was stopped for a day
    assert not lease.expired
    assert lease.left == 100.0 - 2 * lease.every


def test_what_had_passed_before_counts() -> None:
    lease = Lease(100.0, 0.0, spent=99.0)
    silent(lease, 2.0)
    assert lease.expired


@given(st.floats(0.01, 1e6))
def test_two_missed_signs_are_allowed(seconds: float) -> None:
    assert 0 < renewal_interval(seconds) <= 60.0
    lease = Lease(seconds, 0.0)
    silent_for = 3 * renewal_interval(seconds)
    lease.checked(silent_for / 2, False)
    lease.checked(silent_for, False)
    assert not lease.expired


@given(
    st.lists(st.tuples(st.floats(0.0, 300.0), st.sampled_from([True, False, None])), max_size=60)
)
def test_it_is_never_over_before_its_time(looks: list[tuple[float, bool | None]]) -> None:
    lease, now, quiet = Lease(100.0, 0.0), 0.0, 0.0
    for passed, sign in looks:
        now, quiet = now + passed, 0.0 if sign else quiet + passed
        lease.checked(now, sign)
        assert not lease.expired or quiet >= 100.0
        if lease.expired:
            return
        assert lease.pause(now) > 0  # no busy loop


# --- the watch over a job directory


class Directory(LocalStore):
    """A job directory that can be away."""

    away = False
    looks = 0

    def stat(self, path: str) -> Entry | None:
        self.looks += 1
        if self.away:
            raise StoreError("the NameNode is away", transient=True)
        return super().stat(path)


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    store = Directory(str(tmp_path))
    store.publish(layout.INTENT, b"{}")
    store.publish(layout.CLAIM, b"{}")
    return store


def begin(watch: LeaseWatch, *, hold: bool = True) -> str:
    return watch.begin(layout.CLAIM, time.sleep, lambda: False, wait_for_renewal=hold)


def older(store: Directory, name: str, seconds: float) -> None:
    import os

    path = Path(store._root) / name
    moment = path.stat().st_mtime - seconds
    os.utime(path, (moment, moment))


@pytest.mark.slow
def test_it_says_once_that_time_is_up(directory: Directory) -> None:
    said: list[str] = []
    watch = LeaseWatch(directory, 0.4, said.append)
    assert begin(watch) == ""
    until(lambda: said)
    assert said == ["The job's lease was not renewed for 0.4 s."]


@pytest.mark.slow
def test_signs_on_the_port_cost_the_file_system_nothing(directory: Directory) -> None:
    said: list[str] = []
    watch = LeaseWatch(directory, 4.0, said.append)
    begin(watch)
    began = directory.looks
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        watch.renew()
        time.sleep(0.02)
    watch.stop()
    assert not said
    # On a machine that stood still for a second there may be a look.
    assert directory.looks <= began + 1


def test_without_a_lease_nothing_is_looked_at(directory: Directory) -> None:
    watch = LeaseWatch(directory, None, lambda sentence: pytest.fail(sentence))
    assert begin(watch) == ""
    watch.renew()
    watch.stop()
    assert directory.looks == 0


@pytest.mark.slow
def test_a_job_whose_owner_went_while_it_waited_never_begins(directory: Directory) -> None:
    older(directory, layout.INTENT, 3600)
    watch = LeaseWatch(directory, 0.4, lambda sentence: pytest.fail(sentence))
    assert "was not renewed" in begin(watch)


def test_a_job_that_waited_long_begins_with_a_fresh_sign(directory: Directory) -> None:
    older(directory, layout.INTENT, 3600)
    directory.publish(layout.LEASE, b"{}")
    watch = LeaseWatch(directory, 60.0, lambda sentence: pytest.fail(sentence))
    assert begin(watch) == ""
    watch.stop()


@pytest.mark.slow
def test_a_late_sign_still_lets_it_begin(directory: Directory) -> None:
    """The owner could not write for a while: its next sign comes before half a lease."""
    older(directory, layout.INTENT, 3600)
    looks = directory.looks

    def write() -> None:
        until(lambda: directory.looks > looks + 2)  # the first look has found nothing
        directory.publish(layout.LEASE, b"{}")

    threading.Thread(target=write).start()
    watch = LeaseWatch(directory, 12.0, lambda sentence: pytest.fail(sentence))
    assert begin(watch) == ""
    watch.stop()


def test_a_job_that_had_begun_goes_on_at_once(directory: Directory) -> None:
    """Its master was started again: its signs came on the port of the earlier one."""
    older(directory, layout.INTENT, 3600)
    watch = LeaseWatch(directory, 600.0, lambda sentence: pytest.fail(sentence))
    assert begin(watch, hold=False) == ""
    directory.away = True
    assert begin(LeaseWatch(directory, 600.0, pytest.fail), hold=False) == ""
    watch.stop()


@pytest.mark.slow
def test_no_job_is_ended_while_the_file_system_is_away(directory: Directory) -> None:
    said: list[str] = []
    watch = LeaseWatch(directory, 0.4, said.append)
    begin(watch)
    directory.away = True
    looks = directory.looks
    until(lambda: directory.looks > looks + 8)  # many times the lease
    assert not said
    directory.away = False
    until(lambda: said)
