"""Ownership of a job: the owner of its directory and the user that its record names.

Notes
-----
The owner of the directory can write any name into the record. The file system determines the owner
of the directory: its uid on this machine, the NameNode's entry on HDFS. With simple authentication
HDFS accepts the name that a client sends, so there the check protects against mistakes only.

A job belongs to the user of this process if the file system names that user as the owner and the
record names that user or none. The owner never changes, so the index of jobs stores it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from submarine_runtime.protocol.record import JobRecord


class Owner(NamedTuple):
    """The owner of a job directory and the user that its record names.

    Attributes
    ----------
    name
        Owner according to the file system; empty: the account of this process, or unknown.
    recorded
        User in the record or intent; empty: none.
    """

    name: str = ""
    recorded: str = ""

    def foreign_to(self, user: str) -> str:
        """Return the owner or recorded user that is not ``user``; empty if both are ``user``."""
        return next((name for name in self if name not in ("", user)), "")


def with_owner(record: JobRecord, owner: Owner | None) -> JobRecord:
    """Return ``record`` with the directory owner as user; warn if the record names another user."""
    if owner is None or not owner.name or record.user == owner.name:
        return record
    words = (
        f"The record names {record.user} as the job's user, but its directory belongs to "
        f"{owner.name}."
    )
    warnings = [words, *record.warnings] if record.user else record.warnings
    return replace(record, user=owner.name, warnings=warnings)
