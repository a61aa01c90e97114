"""How long a job lives on without a sign of life of whoever started it.

A sign comes on the job's port (``wire.RENEW``), or as a new ``lease.json`` in the job directory,
which is looked at only where the port is silent. Ends nothing: says once that time is up.
"""

from __future__ import annotations

import threading
import time
from typing import Callable

from submarine_runtime.protocol import layout
from submarine_runtime.storage.store import Store, StoreError, patiently

#: Signs that are due within one lease: so many may be lost but one.
SIGNS = 4
LONGEST_PAUSE = 60.0
#: Seconds between two looks of a job that must not start yet, at most.
HOLD_STEP = 10.0
#: Seconds that the first look into the job directory may be repeated.
BEGIN_GRACE = 120.0


def pause_of(seconds: float) -> float:
    """Seconds between two signs of life, and between two looks for them."""
    return min(seconds / SIGNS, LONGEST_PAUSE)


class Lease:
    """The count, by a monotonic clock that its callers read; pure.

    Time counts from one look that found nothing new to the next. Time in which the job directory
    could not be read does not, nor does most of a stretch in which nobody looked.

    Parameters
    ----------
    spent
        Seconds that had passed since the last sign when counting began.

    Attributes
    ----------
    every
        Seconds between two signs, and between two looks.
    left
        Seconds until time is up.
    """

    def __init__(self, seconds: float, now: float, spent: float = 0.0) -> None:
        self.seconds = seconds
        self.every = pause_of(seconds)
        self.left = seconds - max(0.0, spent)
        self._counted = now
        self._readable = True

    @property
    def expired(self) -> bool:
        """Whether time is up."""
        return self.left <= 0

    def renewed(self, now: float) -> None:
        """There was a sign."""
        self.left, self._counted, self._readable = self.seconds, now, True

    def looked(self, now: float, sign: bool | None) -> None:
        """Somebody has looked for a sign; None: the job directory could not be read."""
        passed, self._counted = min(now - self._counted, 2 * self.every), now
        if sign:
            self.renewed(now)
        elif sign is None:
            self._readable = False
        elif self._readable:
            self.left -= passed
        else:  # who could not write meanwhile must have the time to try again
            self._readable, self.left = True, max(self.left, self.seconds / 2)

    def pause(self, now: float) -> float:
        """Seconds until it is worth to look: a sign on the port is not overdue before."""
        return max(0.0, self._counted + min(1.5 * self.every, max(self.left, 0.0)) - now)


class LeaseWatch:
    """The lease of one job, and the thread that looks after it.

    Parameters
    ----------
    seconds
        None: the job lives for ever; nothing here does anything then.
    on_expired
        Called once, from the thread, with a sentence.
    """

    def __init__(
        self, store: Store, seconds: float | None, on_expired: Callable[[str], None]
    ) -> None:
        self._store = store
        self._seconds = seconds
        self._on_expired = on_expired
        self._lock = threading.Lock()
        self._lease: Lease | None = None
        self._seen: float | None = None
        self._wake = threading.Event()
        self._stopping = False

    def begin(
        self,
        published: str,
        wait: Callable[[float], object],
        given_up: Callable[[], bool],
        *,
        hold: bool = True,
        grace: float = BEGIN_GRACE,
    ) -> str:
        """Begin to count; a sentence when time was up already, and nothing may be started.

        How long the job has waited is told by the times of files, which all come from the clock of
        the job directory's file system. Who was silent for too long is given half a lease more,
        since it may not have been able to write.

        Parameters
        ----------
        published
            A file of the job directory that has just been put there.
        wait
            How to wait for some seconds, or less.
        given_up
            Whether there is nothing to wait for any more.
        hold
            Whether a job whose time is up waits here. One that has begun before goes on, with half
            a lease left; nor does it wait for a job directory that cannot be read.
        grace
            Seconds that it may wait for a job directory that cannot be read.

        Raises
        ------
        StoreError
            If it is to wait and the job directory cannot be read for ``grace`` seconds.
        """
        if self._seconds is None:
            return ""
        deadline = time.monotonic() + (grace if hold else 0.0)
        try:
            spent = patiently(
                lambda: self._spent(published), deadline, wait=wait, store=self._store
            )
        except StoreError:
            if hold:
                raise
            spent = 0.0
        if spent >= self._seconds:
            spent = self._seconds / 2
            lease = Lease(self._seconds, time.monotonic(), spent)
            if hold and not self._found(lease, wait, given_up):
                return self._sentence()
        self._lease = Lease(self._seconds, time.monotonic(), spent)
        threading.Thread(target=self._run, name="lease", daemon=True).start()
        return ""

    def renew(self) -> None:
        """There was a sign on the port; from any thread."""
        with self._lock:
            if self._lease is not None:
                self._lease.renewed(time.monotonic())

    def stop(self) -> None:
        """The job ends anyway."""
        self._stopping = True
        self._wake.set()

    def _spent(self, published: str) -> float:
        """Seconds between the last sign in the job directory and now."""
        now = self._store.stat(published)
        sign = self._store.stat(layout.LEASE)
        self._seen = sign.modified if sign else None
        began = sign or self._store.stat(layout.INTENT)
        return now.modified - began.modified if now and began else 0.0

    def _found(
        self, lease: Lease, wait: Callable[[float], object], given_up: Callable[[], bool]
    ) -> bool:
        """Whether there is a sign after all before ``lease`` is over, or waiting is given up."""
        while not lease.expired:
            step = min(HOLD_STEP, lease.every / 2)
            until = time.monotonic() + step
            while (left := until - time.monotonic()) > 0 and not given_up():
                wait(left)
            if given_up():
                return True
            sign = self._look()
            if sign:
                return True
            lease.looked(time.monotonic(), sign)
        return False

    def _look(self) -> bool | None:
        """Whether there is a new sign in the job directory; None where it cannot be read."""
        try:
            found = self._store.stat(layout.LEASE)
        except StoreError:
            return None
        seen, self._seen = self._seen, found.modified if found else None
        return found is not None and self._seen != seen

    def _run(self) -> None:
        lease = self._lease
        assert lease is not None
        while not self._stopping:
            with self._lock:
                pause = lease.pause(time.monotonic())
            if pause > 0:
                self._wake.wait(pause)
                continue
            sign = self._look()
            with self._lock:
                lease.looked(time.monotonic(), sign)
                over = lease.expired
            if over and not self._stopping:
                self._on_expired(self._sentence())
                return

    def _sentence(self) -> str:
        return f"Nobody gave a sign of life for {self._seconds:g} s, the job's lease."
