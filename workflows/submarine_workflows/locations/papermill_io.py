"""Papermill handlers for ``hdfs://`` and other URLs, found by entry points.

Papermill imports this module when it starts, so it imports nothing at the top. Papermill's own HDFS
handler needs a JVM and pyarrow.
"""

from __future__ import annotations

from submarine_runtime.translation import _


class SubmarineIO:
    """Papermill handler for all URLs that ``locations`` supports."""

    @classmethod
    def read(cls, path: str) -> str:
        """Return the text of the notebook or parameter file at ``path``."""
        # cost: papermill imports this module at its start.
        from submarine_workflows.locations.urls import find_location

        return find_location(path).read().decode("utf-8")

    @classmethod
    def write(cls, buf: str, path: str) -> None:
        """Write a notebook to ``path``."""
        # cost: papermill imports this module at its start.
        from submarine_workflows.locations.urls import find_location

        find_location(path).write(buf.encode("utf-8", "replace"))

    @classmethod
    def listdir(cls, path: str) -> list[str]:
        """Raise an error: running a notebook requires no listing."""
        # cost: papermill imports this module at its start.
        from papermill.exceptions import PapermillException

        raise PapermillException(
            _("{path}: listing is not supported, only reading and writing.").format(path=path)
        )

    @classmethod
    def pretty_path(cls, path: str) -> str:
        """Return ``path`` without a password."""
        # cost: papermill imports this module at its start.
        from submarine_workflows.locations.location import without_password

        return without_password(path)
