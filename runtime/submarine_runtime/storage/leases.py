"""End a job if its lease is not renewed.

The client that started the job renews the lease on the job's port (``wire.RENEW``), or by a new
``lease.json`` in the job directory, which is checked only if the port is not used.
"""

from __future__ import annotations

import threading
import time
from typing import Callable

from submarine_runtime.protocol import layout
from submarine_runtime.storage.retries import retry
from submarine_runtime.storage.store import Store, StoreError
from submarine_runtime.translation import _

#: Renewals within one lease; all but one of them may be lost.
RENEWALS = 4
LONGEST_PAUSE = 60.0
#: Maximum number of seconds between two checks of a job that must not start yet.
HOLD_STEP = 10.0
#: Seconds for which the first check of the job directory is retried.
BEGIN_GRACE = 120.0


def renewal_interval(seconds: float) -> float:
    """Return the seconds between two renewals, and between two checks for them."""
    return min(seconds / RENEWALS, LONGEST_PAUSE)


class Lease:
    """The remaining time, by a monotonic clock that the callers read; pure.

    Time counts from one check without a renewal to the next. Time in which the job directory could
    not be read does not count, nor does most of a period without checks.

    Parameters
    ----------
    spent
        Seconds since the last renewal when counting began.

    Attributes
    ----------
    every
        Seconds between two renewals, and between two checks.
    left
        Seconds until expiry.
    """

    def __init__(self, seconds: float, now: float, spent: float = 0.0) -> None:
        self.seconds = seconds
        self.every = renewal_interval(seconds)
        self.left = seconds - max(0.0, spent)
        self._counted = now
        self._readable = True

    @property
    def expired(self) -> bool:
        """Whether the lease has expired."""
        return self.left <= 0

    def renewed(self, now: float) -> None:
        """Record a renewal."""
        self.left, self._counted, self._readable = self.seconds, now, True

    def checked(self, now: float, renewal: bool | None) -> None:
        """Record a check for a renewal; None: the job directory could not be read."""
        passed, self._counted = min(now - self._counted, 2 * self.every), now
        if renewal:
            self.renewed(now)
        elif renewal is None:
            self._readable = False
        elif self._readable:
            self.left -= passed
        else:  # A client that could not write in the meantime gets time to try again.
            self._readable, self.left = True, max(self.left, self.seconds / 2)

    def pause(self, now: float) -> float:
        """Return the seconds until the next check, when a renewal on the port is overdue."""
        return max(0.0, self._counted + min(1.5 * self.every, max(self.left, 0.0)) - now)


class LeaseWatch:
    """The lease of one job, and the thread that checks it.

    Parameters
    ----------
    seconds
        None: the job has no lease; all methods do nothing.
    on_expired
        Called once, in the thread, with a sentence.
    """

    def __init__(
        self, store: Store, seconds: float | None, on_expired: Callable[[str], None]
    ) -> None:
        self._store = store
        self._seconds = seconds
        self._on_expired = on_expired
        self._lock = threading.Lock()
        self._lease: Lease | None = None
        self._last_renewal: float | None = None
        self._wake = threading.Event()
        self._stopping = False

    def begin(
        self,
        published: str,
        wait: Callable[[float], object],
        is_cancelled: Callable[[], bool],
        *,
        wait_for_renewal: bool = True,
        grace: float = BEGIN_GRACE,
    ) -> str:
        """Start to count; return a sentence if the lease had expired and nothing may be started.

        The times of files, which are all from the clock of the job directory's file system, show
        how long the job has waited. An expired lease is extended by half of its length, because the
        client may not have been able to write.

        Parameters
        ----------
        published
            A file of the job directory that has just been published.
        wait
            Function that waits for some seconds, or less.
        is_cancelled
            Returns whether to stop the wait, because the job ends anyway.
        wait_for_renewal
            Whether a job with an expired lease waits here for a renewal. A job that has started
            before continues with half a lease, and does not wait for a job directory that cannot be
            read.
        grace
            Seconds to wait for a job directory that cannot be read.

        Raises
        ------
        StoreError
            With ``wait_for_renewal``, if the job directory cannot be read for ``grace`` seconds.
        """
        if self._seconds is None:
            return ""
        deadline = time.monotonic() + (grace if wait_for_renewal else 0.0)
        try:
            spent = retry(lambda: self._spent(published), deadline, wait=wait, store=self._store)
        except StoreError:
            if wait_for_renewal:
                raise
            spent = 0.0
        if spent >= self._seconds:
            spent = self._seconds / 2
            lease = Lease(self._seconds, time.monotonic(), spent)
            if wait_for_renewal and not self._found(lease, wait, is_cancelled):
                return self._sentence()
        self._lease = Lease(self._seconds, time.monotonic(), spent)
        threading.Thread(target=self._run, name="lease", daemon=True).start()
        return ""

    def renew(self) -> None:
        """Record a renewal on the port; from any thread."""
        with self._lock:
            if self._lease is not None:
                self._lease.renewed(time.monotonic())

    def stop(self) -> None:
        """Stop to check, because the job ends."""
        self._stopping = True
        self._wake.set()

    def _spent(self, published: str) -> float:
        """Return the seconds between the last renewal in the job directory and now."""
        now = self._store.stat(published)
        renewal = self._store.stat(layout.LEASE)
        self._last_renewal = renewal.modified if renewal else None
        began = renewal or self._store.stat(layout.INTENT)
        return now.modified - began.modified if now and began else 0.0

    def _found(
        self, lease: Lease, wait: Callable[[float], object], is_cancelled: Callable[[], bool]
    ) -> bool:
        """Wait until ``lease`` expires; return whether there is a renewal, or ``is_cancelled``."""
        while not lease.expired:
            step = min(HOLD_STEP, lease.every / 2)
            until = time.monotonic() + step
            while (left := until - time.monotonic()) > 0 and not is_cancelled():
                wait(left)
            if is_cancelled():
                return True
            renewal = self._check()
            if renewal:
                return True
            lease.checked(time.monotonic(), renewal)
        return False

    def _check(self) -> bool | None:
        """Return whether the job directory has a new renewal; None if it cannot be read."""
        try:
            found = self._store.stat(layout.LEASE)
        except StoreError:
            return None
        before, self._last_renewal = self._last_renewal, found.modified if found else None
        return found is not None and self._last_renewal != before

    def _run(self) -> None:
        lease = self._lease
        assert lease is not None
        while not self._stopping:
            with self._lock:
                pause = lease.pause(time.monotonic())
            if pause > 0:
                self._wake.wait(pause)
                continue
            renewal = self._check()
            with self._lock:
                lease.checked(time.monotonic(), renewal)
                over = lease.expired
            if over and not self._stopping:
                self._on_expired(self._sentence())
                return

    def _sentence(self) -> str:
        return _("The job's lease was not renewed for {seconds:g} s.").format(seconds=self._seconds)
