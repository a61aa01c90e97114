"""``%input_path% %checkpoint_path% %saved_model_path%``: filled in as in Apache Submarine.

One pass: what a path brings in is not looked at again. Does not quote for a shell; the text takes
the place of the placeholder as it stands, so a user may write the quotes where they are needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from submarine_jobs.errors import UsageError

NAMES = ("input_path", "checkpoint_path", "saved_model_path")
_PLACEHOLDER = re.compile("%(" + "|".join(NAMES) + ")%")


def fill(text: str, paths: Mapping[str, str | None], where: str) -> str:
    """``text`` with each placeholder replaced by its path.

    Parameters
    ----------
    where
        What ``text`` is, for the refusal: ``--worker_launch_cmd``.

    Raises
    ------
    UsageError
        If a placeholder is used whose option was not given.
    """

    def path_of(match: re.Match[str]) -> str:
        path = paths.get(match[1])
        if path is None:
            raise UsageError(
                f"{where} uses %{match[1]}%, but --{match[1]} is not given.",
                f"Add --{match[1]} PATH.",
            )
        return path

    return _PLACEHOLDER.sub(path_of, text)
