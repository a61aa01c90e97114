"""Whose job it is: the owner of its directory, and the user that its record names.

Notes
-----
The record is text in the directory: the owner of the directory can write any name into it. The
owner of the directory is what the file system says: on this machine the uid of the directory, on
HDFS the owner that the NameNode has. With simple authentication HDFS believes the name that a
client gives, so there the check protects against mistakes, not against an attacker.

A job is one's own if the file system names this process's user as the owner, and the record names
that user or none. The owner never changes, so it is noted in the index of jobs.
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
