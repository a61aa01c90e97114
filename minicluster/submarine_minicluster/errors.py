"""The exception that the minicluster raises."""

from __future__ import annotations


class MiniclusterError(RuntimeError):
    """The minicluster cannot carry out a command.

    The message states the cause, the place and the fix. It may end with the last error lines of a
    daemon, each on its own line.
    """
