"""Compare an environment with the last one that this machine has packed as a whole.

One more ``pip install`` changes few files of an environment. The files of the last whole archive,
its base, are remembered on this machine with size, time and digest, so only changed files are read,
and only those and new ones are packed, as a delta.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from submarine_jobs.environments.archive import archive_mode
from submarine_jobs.environments.inventory import EnvironmentFile
from submarine_runtime.files import replace_file

#: A delta that has more than this part of the environment's bytes is packed again each time, and
#: unpacked beside files that are not used: a whole archive is better.
MAX_CHANGED = 0.2
_CACHED = "__pycache__"


@dataclass(frozen=True)
class Base:
    """A whole archive that this machine has packed.

    Parameters
    ----------
    digest
        Digest of its content.
    version
        Version of its Python.
    files
        Name -> mode and SHA-256 of each file that counts.
    """

    digest: str
    version: str
    files: Mapping[str, str]


@dataclass(frozen=True)
class Difference:
    """What an environment has, and its base does not.

    Parameters
    ----------
    items
        New and changed files, with the byte code of those.
    omitted
        Sorted names of files of the base that the environment does not have, or has in ``items``.
    """

    items: tuple[EnvironmentFile, ...]
    omitted: tuple[str, ...]


def file_states(items: Collection[EnvironmentFile], digests: Mapping[str, str]) -> dict[str, str]:
    """Return name -> mode and digest of the files that count."""
    return {
        item.name: f"{archive_mode(item):o} {digests[item.name]}" for item in items if item.counts
    }


def difference(
    base: Base, items: Collection[EnvironmentFile], states: Mapping[str, str]
) -> Difference | None:
    """Return the difference of an environment and its base; None if it is too large for a delta."""
    changed = {name for name, state in states.items() if base.files.get(name) != state}
    gone = base.files.keys() - states.keys()
    chosen = tuple(
        item
        for item in items
        if item.name in changed or (not item.counts and _source_name(item.name) in changed)
    )
    total = sum(item.size for item in items)
    if sum(item.size for item in chosen) > MAX_CHANGED * total:
        return None
    if len(gone) > MAX_CHANGED * len(base.files):
        return None
    return Difference(chosen, tuple(sorted(gone | (changed & base.files.keys()))))


def _source_name(code: str) -> str:
    """Return the name of the source of byte code: ``a/__pycache__/b.cpython-311.pyc`` -> a/b.py."""
    directory, _, name = code.rpartition(f"/{_CACHED}/")
    return f"{directory}/{name.partition('.')[0]}.py"


class FileRecords:
    """Digests and bases that this machine knows, in files of a directory.

    They are an optimization: a file that is missing or damaged counts as empty.

    Parameters
    ----------
    directory
        Host-local directory.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def known_digests(self, key: str, items: Collection[EnvironmentFile]) -> dict[str, str]:
        """Return name -> digest of the files whose size and times have not changed.

        Parameters
        ----------
        key
            Identifies the environment.
        """
        files = self._read(f"files-{key}").get("files")
        if not isinstance(files, dict):
            return {}
        found = {}
        for item in items:
            entry = files.get(item.name)
            if isinstance(entry, list) and entry[:3] == [item.size, item.modified, item.changed]:
                found[item.name] = str(entry[3])
        return found

    def store_digests(
        self, key: str, items: Collection[EnvironmentFile], digests: Mapping[str, str]
    ) -> None:
        """Remember the digests of an environment."""
        files = {
            item.name: [item.size, item.modified, item.changed, digests[item.name]]
            for item in items
            if item.counts
        }
        self._write(f"files-{key}", {"version": 1, "files": files})

    def base(self, key: str) -> Base | None:
        """Return the base of an environment.

        Parameters
        ----------
        key
            Identifies the environment and the cluster.
        """
        content = self._read(f"base-{key}")
        digest, version, files = (content.get(name) for name in ("digest", "python", "files"))
        if isinstance(digest, str) and isinstance(version, str) and isinstance(files, dict):
            return Base(digest, version, files)
        return None

    def store_base(self, key: str, base: Base) -> None:
        """Remember the base of an environment."""
        content = {"version": 1, "digest": base.digest, "python": base.version}
        self._write(f"base-{key}", {**content, "files": dict(base.files)})

    def _path(self, name: str) -> Path:
        return self._directory / f"environment-{name}.json"

    def _read(self, name: str) -> dict[str, Any]:
        with suppress(OSError, ValueError):
            content = json.loads(self._path(name).read_bytes())
            if isinstance(content, dict) and content.get("version") == 1:
                return content
        return {}

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        replace_file(self._path(name), json.dumps(content).encode())
