"""``submarine workflow await``: wait until a file or folder exists, at any location.

The polling interval grows with the waiting time. Storage errors are not final before the timeout:
the storage may be down for the same reason that delays the data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from submarine_jobs.concurrency import call_with_timeout
from submarine_jobs.errors import StorageError, SubmarineError, UsageError
from submarine_jobs.model import Profile
from submarine_jobs.text import duration
from submarine_runtime.translation import _
from submarine_workflows.local import parameter_filler
from submarine_workflows.locations import current_profile, find_location, without_password
from submarine_workflows.model import parameters_in

#: Seconds between checks: initial and maximum.
FIRST, LONGEST = 1.0, 60.0
#: Timeout of one check, in seconds.
PATIENCE = 60.0
_SHORTEST = 5.0


class DataMissingError(SubmarineError):
    """The awaited data did not appear in time."""

    exit_code = 124


def fill_parameters(url: str, values: Mapping[str, str]) -> str:
    """Return ``url`` with ``{name}`` and ``${name}`` replaced.

    Raises
    ------
    UsageError
        If a parameter has no value.
    """
    try:
        return parameter_filler(values)(parameters_in(url))
    except UsageError as exc:
        raise UsageError(f"{without_password(url)}: {exc.message}", exc.fix) from None


def wait_for_data(
    url: str,
    timeout: float,
    say: Callable[[str], None],
    profile: Callable[[], Profile] = current_profile,
    first: float = FIRST,
) -> float:
    """Wait until data exists at ``url``; return the seconds that it took.

    Parameters
    ----------
    profile
        Returns the profile for HDFS and its user; called only for HDFS.

    Raises
    ------
    DataMissingError
        If the data does not exist after ``timeout`` seconds.
    UsageError
        If the URL is not supported.
    """
    shown = without_password(url)
    began = time.monotonic()
    pause, last_failure, reported = first, "", False
    while True:
        left = timeout - (time.monotonic() - began)
        try:
            patience = min(PATIENCE, max(left, _SHORTEST))
            there = call_with_timeout(patience, lambda: find_location(url, profile).exists())
            last = ""
        except StorageError as exc:
            there, last = False, str(exc)
        except TimeoutError:
            there, last = (
                False,
                _("{shown} cannot be checked: there is no answer.").format(shown=shown),
            )
        if there:
            return time.monotonic() - began
        if last and last != last_failure:
            say(_("{last} The check is repeated.").format(last=last))
        elif last_failure and not last:
            say(_("{shown} can be checked again.").format(shown=shown))
        last_failure = last
        left = timeout - (time.monotonic() - began)
        if left <= 0:
            why = _(" The last check failed: {last}").format(last=last) if last else ""
            raise DataMissingError(
                _("{shown} does not exist after {timeout}.{why}").format(
                    shown=shown, timeout=duration(timeout), why=why
                )
            )
        if not reported:
            reported = True
            say(
                _("Waiting for {shown}, at most {timeout} …").format(
                    shown=shown, timeout=duration(timeout)
                )
            )
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, LONGEST)
