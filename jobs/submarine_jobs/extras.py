"""Optional dependencies: the extras of the wheel, and the error where one is not installed.

Every feature that needs an extra calls ``require_extra`` before it does anything else. The check
imports nothing, so help and completion work without extras.
"""

from __future__ import annotations

import importlib.util
import shlex
import sys
from collections.abc import Collection

from submarine_jobs.errors import SubmarineError
from submarine_runtime.translation import _

#: The modules that each extra installs and this project imports; pyproject.toml lists the versions.
EXTRAS = {
    "zeppelin": ("thriftpy2",),
    "workflows": ("cronsim", "nbclient", "papermill", "requests"),
    "spark": ("pyspark",),
    "data": ("pyarrow", "fastavro", "lmdb", "cramjam", "crc32c"),
}


class MissingExtraError(SubmarineError):
    """An extra of this package is not installed in this Python; the message has the command."""


def require_extra(extra: str, modules: Collection[str] | None = None) -> None:
    """Raise MissingExtraError unless the modules of an extra are installed.

    Parameters
    ----------
    extra
        A key of ``EXTRAS``.
    modules
        Those of its modules that the feature needs; None: all.
    """
    needed = EXTRAS[extra] if modules is None else modules
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            _("The extra {extra} is not installed (missing: {modules}); type {command}").format(
                extra=extra, modules=", ".join(missing), command=install_command(extra)
            )
        )


def install_command(extra: str) -> str:
    """Return the command that installs an extra into this Python."""
    python = shlex.quote(sys.executable or "python3")
    return f"{python} -m pip install 'jupyter-submarine[{extra}]'"
