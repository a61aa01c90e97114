"""Describe the archives of a packed Python environment.

An environment is one archive, or a base archive with the archive of the files that differ from it.
The description is a file beside the archives. It has their digests, and the first line is that of
the description itself, so that nothing runs from a damaged one.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Mapping, NamedTuple

#: Bytes of the first line.
_DIGEST = 64


class EnvironmentArchive(NamedTuple):
    """File name, size in bytes and SHA-256 of an archive."""

    name: str
    size: int
    sha256: str


class EnvironmentLayers(NamedTuple):
    """The archives of an environment.

    Parameters
    ----------
    archive
        The only archive, or the base.
    delta
        The archive of the files that the base does not have; None: there is one archive.
    omitted
        Paths of the base that the environment does not have, or has in the delta.
    source
        Value of ``--python-env`` that it was made for.
    """

    archive: EnvironmentArchive
    delta: EnvironmentArchive | None = None
    omitted: tuple[str, ...] = ()
    source: str = ""

    @property
    def archives(self) -> tuple[EnvironmentArchive, ...]:
        """The archives, the base first."""
        return (self.archive,) if self.delta is None else (self.archive, self.delta)

    def to_bytes(self) -> bytes:
        """Return the description."""
        content = {"version": 1, "archives": self.archives, "omitted": self.omitted}
        text = json.dumps({**content, "source": self.source}).encode()
        return hashlib.sha256(text).hexdigest().encode() + b"\n" + text

    @classmethod
    def from_bytes(cls, data: bytes) -> EnvironmentLayers:
        """Parse a description.

        Raises
        ------
        ValueError
            If it is damaged.
        """
        text = data[_DIGEST + 1 :]
        if data[: _DIGEST + 1] != hashlib.sha256(text).hexdigest().encode() + b"\n":
            raise ValueError("digest of the description")
        content: Mapping[str, Any] = json.loads(text)
        archives = [EnvironmentArchive(*entry) for entry in content["archives"]]
        delta = archives[1] if len(archives) > 1 else None
        return cls(archives[0], delta, tuple(content["omitted"]), content.get("source", ""))
