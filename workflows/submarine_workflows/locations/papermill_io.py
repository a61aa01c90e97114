"""How ``papermill hdfs://...`` reads and writes: the handlers that papermill finds by entry point.

Imported whenever papermill is, so it imports nothing of weight; and papermill's own handler for
HDFS needs a JVM and pyarrow.
"""

from __future__ import annotations


class SubmarineIO:
    """One of papermill's handlers, for all URLs that ``places`` knows."""

    @classmethod
    def read(cls, path: str) -> str:
        """The text of the notebook or parameter file at ``path``."""
        from submarine_workflows.locations.urls import place_of

        return place_of(path).read().decode("utf-8")

    @classmethod
    def write(cls, buf: str, path: str) -> None:
        """Put a notebook in the place of what was at ``path``."""
        from submarine_workflows.locations.urls import place_of

        place_of(path).write(buf.encode("utf-8", "replace"))

    @classmethod
    def listdir(cls, path: str) -> list[str]:
        """Nothing that papermill needs to run a notebook."""
        from papermill.exceptions import PapermillException

        raise PapermillException(f"{path}: notebooks there are not listed, only read and written.")

    @classmethod
    def pretty_path(cls, path: str) -> str:
        """``path`` as it may be shown."""
        from submarine_workflows.locations.location import without_password

        return without_password(path)
