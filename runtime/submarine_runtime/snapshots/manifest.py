"""The list of files of a snapshot: written last, so that a snapshot with a list is complete.

``writer`` and ``checkpoint_path`` write it, ``restoration`` reads it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Mapping, Sequence

from submarine_runtime.protocol import from_json, to_json

MANIFEST_VERSION = 1


@dataclass(frozen=True)
class ManifestEntry:
    """One file of a snapshot.

    Parameters
    ----------
    path
        Below the directory that was saved, ``/`` between the parts.
    modified_ns
        Its modification time, nanoseconds since the epoch.
    crc
        CRC-32 of its bytes.
    data, offset
        The file that holds its bytes, and their offset in it. In the manifest of a checkpoint path
        ``data`` is the file that is still to be renamed; empty: it has its own name.
    """

    path: str
    size: int
    modified_ns: int
    crc: int
    data: str = ""
    offset: int = 0


@dataclass(frozen=True)
class Manifest:
    """A snapshot: its number, its time (seconds since the epoch), its files.

    Parameters
    ----------
    round
        Newest snapshot round that the coordinator had requested by then; 0: none.
    answered
        Newest round at which it was still the newest snapshot; 0: none.
    steps
        Name of a metadata file -> the step that a library wrote to it.
    needs
        Name of a metadata file -> the files of its directory that it names.
    world
        Number of processes that write checkpoints together; 0: not known.
    began
        When the program began to write the newest checkpoint in it, seconds since the epoch; 0: not
        known. Streams continue there (``agent.program.input_streams``).
    """

    number: int
    time: float
    files: tuple[ManifestEntry, ...] = field(default=())
    version: int = MANIFEST_VERSION
    round: int = 0
    answered: int = 0
    steps: Mapping[str, Sequence[int]] = field(default_factory=dict)
    began: float = 0.0
    needs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    world: int = 0

    def to_bytes(self) -> bytes:
        """Return JSON."""
        return json.dumps(to_json(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """Read what ``to_bytes`` wrote.

        Raises
        ------
        ValueError
            If it is malformed, of a newer version, or has a path outside the directory.
        """
        try:
            manifest = from_json(cls, json.loads(data))
        except (ValueError, RecursionError) as exc:
            raise ValueError(f"it has the wrong form: {exc}") from exc
        if manifest.version > MANIFEST_VERSION:
            raise ValueError(f"it is of version {manifest.version}, newer than this agent's")
        for file in manifest.files:
            if not (is_below(file.path) and (not file.data or is_below(file.data))):
                raise ValueError(f"it names {file.path[:200]!r}, which is no path below it")
        return manifest


def is_below(path: str) -> bool:
    """Return whether a relative path stays below the directory that it is joined to."""
    parts = path.split("/")
    return "\0" not in path and all(part not in ("", ".", "..") for part in parts)
