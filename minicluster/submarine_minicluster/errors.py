"""The one exception of the minicluster: a sentence for the person who typed the command."""

from __future__ import annotations


class MiniclusterError(RuntimeError):
    """The minicluster cannot do what was asked.

    The message is complete: it says what is wrong, where, and what would be right. It may end with
    the last error lines of a daemon, each on its own line.
    """
