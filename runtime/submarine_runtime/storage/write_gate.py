"""Reject writes to the job directory after a suspend of this machine, until they are confirmed."""

from __future__ import annotations

import threading
from typing import Callable

from submarine_runtime.storage.store import StoreError, UnconfirmedError
from submarine_runtime.suspend import SuspendMeter, suspended
from submarine_runtime.translation import _


class WriteGate:
    """Reject writes after a suspend until another process or the job directory confirms them.

    Parameters
    ----------
    may_continue
        Called after a suspend, in the thread that writes. Returns whether this process may continue
        to write; raises StoreError if that cannot be determined at present. None: the thread that
        is connected to the coordinator calls ``confirm``.
    """

    def __init__(self, may_continue: Callable[[], bool] | None = None) -> None:
        self._meter = SuspendMeter()
        self._may_continue = may_continue
        self._lock = threading.RLock()
        self._checking = self._superseded = False

    @property
    def closed(self) -> bool:
        """Whether writes are rejected now."""
        return self._superseded or self._meter.seconds() > 0.0

    def confirm(self, until: float) -> None:
        """Allow writes: this process was confirmed when ``suspended()`` was ``until``."""
        self._meter.reset(until)

    def check(self) -> None:
        """Return if writes are allowed.

        Raises
        ------
        StoreError
            If they are rejected. The error is transient unless ``may_continue`` has returned False.
        """
        if not self.closed:
            return
        with self._lock:
            if self._checking:
                return  # A read or write of ``may_continue`` itself.
            if not self._superseded and self._may_continue is not None:
                measured = suspended()
                self._checking = True
                try:
                    self._superseded = not self._may_continue()
                finally:
                    self._checking = False
                if not self._superseded:
                    self._meter.reset(measured)
            if self._superseded:
                raise StoreError(_("this process was suspended and has been replaced"))
            if self.closed:
                raise UnconfirmedError(
                    _("this machine was suspended; the coordinator has not confirmed the task yet"),
                    True,
                )
