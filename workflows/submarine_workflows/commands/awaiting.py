"""``submarine workflow await``: until a file or folder is there, wherever it may be.

Looks seldom, and less often the longer it takes. A storage that does not answer is no failure until
the time is over: it may be away for the same reason for which the data is late.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from submarine_jobs.concurrency import call_within
from submarine_jobs.errors import StorageError, SubmarineError, UsageError
from submarine_jobs.model import Profile
from submarine_jobs.text import duration
from submarine_workflows.locations import place_of, profile_in_force, without_password
from submarine_workflows.model import parameters_in

#: Seconds between two looks: at first, and at most.
FIRST, LONGEST = 1.0, 60.0
#: Seconds that one look may take.
PATIENCE = 60.0
_SHORTEST = 5.0


class NotThereError(SubmarineError):
    """What was waited for has not come in time."""

    exit_code = 124


def filled_in(url: str, values: Mapping[str, str]) -> str:
    """``url`` with ``{name}`` and ``${name}`` replaced.

    Raises
    ------
    UsageError
        If one of them has no value.
    """
    from submarine_workflows.local import filler

    try:
        return filler(values)(parameters_in(url))
    except UsageError as exc:
        raise UsageError(f"{without_password(url)}: {exc.message}", exc.fix) from None


def wait_for_data(
    url: str,
    timeout: float,
    say: Callable[[str], None],
    profile: Callable[[], Profile] = profile_in_force,
    first: float = FIRST,
) -> float:
    """Wait until something is at ``url``; gives the seconds that it took.

    Parameters
    ----------
    profile
        Whose HDFS is meant, and as whom; asked for only where it is HDFS.

    Raises
    ------
    NotThereError
        If it has not come after ``timeout`` seconds.
    UsageError
        If nothing could ever be there: nobody knows such a URL.
    """
    shown = without_password(url)
    began = time.monotonic()
    pause, trouble, told = first, "", False
    while True:
        left = timeout - (time.monotonic() - began)
        try:
            patience = min(PATIENCE, max(left, _SHORTEST))
            there = call_within(patience, lambda: place_of(url, profile).exists())
            last = ""
        except StorageError as exc:
            there, last = False, str(exc)
        except TimeoutError:
            there, last = False, f"{shown} cannot be looked for: there is no answer."
        if there:
            return time.monotonic() - began
        if last and last != trouble:
            say(f"{last} It is tried again.")
        elif trouble and not last:
            say(f"{shown} can be looked for again.")
        trouble = last
        left = timeout - (time.monotonic() - began)
        if left <= 0:
            why = f" The last time it could not be seen: {last}" if last else ""
            raise NotThereError(f"{shown} is not there after {duration(timeout)}.{why}")
        if not told:
            told = True
            say(f"Waiting for {shown}, at most {duration(timeout)} …")
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, LONGEST)
