"""A table of ``submarine.toml`` that belongs to another package of ours, from all files at once.

Does not know what its values mean.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from submarine_jobs.config.file import ConfigFile, read_files
from submarine_jobs.config.project_trust import trusted_files


@dataclass(frozen=True)
class SectionValue:
    """One value in force.

    Attributes
    ----------
    where
        ``file:line``, for sentences.
    personal
        Whether it stands in the user's own file and not in that of a project, which may be
        somebody else's work.
    """

    value: str
    where: str
    personal: bool


def load_section(
    name: str, *, environ: Mapping[str, str] | None = None, cwd: Path | None = None
) -> dict[str, SectionValue]:
    """The values of the table ``name`` by their keys; a project's file goes over the user's.

    Raises
    ------
    ConfigError
        If a file cannot be read or holds something impossible.
    """
    environ = os.environ if environ is None else environ
    return _values(name, trusted_files(environ, cwd or Path.cwd()))


def user_section(name: str, *, environ: Mapping[str, str] | None = None) -> dict[str, SectionValue]:
    """As ``load_section``, of the user's own file alone."""
    return _values(name, read_files(os.environ if environ is None else environ, None))


def _values(name: str, tables: list[ConfigFile]) -> dict[str, SectionValue]:
    return {
        key: SectionValue(value, table.where(f"{name}.{key}"), table.personal)
        for table in tables
        for key, value in table.sections.get(name, {}).items()
    }
