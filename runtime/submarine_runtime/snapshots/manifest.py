"""The list of files of a snapshot: written last, so that a snapshot with a list is complete.

``snapshots`` and ``mirror`` write it, ``restore`` reads it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Mapping, Sequence

from submarine_runtime.protocol.fields import known_fields

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
    """

    number: int
    time: float
    files: tuple[ManifestEntry, ...] = field(default=())
    version: int = MANIFEST_VERSION
    round: int = 0
    answered: int = 0
    steps: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """Read what ``to_bytes`` wrote.

        Raises
        ------
        ValueError
            If it is malformed, of a newer version, or has a path outside the directory.
        """
        try:
            raw: dict[str, Any] = json.loads(data)
            values = known_fields(cls, raw)
            values["files"] = tuple(
                ManifestEntry(**known_fields(ManifestEntry, item)) for item in raw["files"]
            )
            steps = dict(raw.get("steps") or {})
            values["steps"] = {str(name): [int(n) for n in step] for name, step in steps.items()}
            values["round"] = int(raw.get("round") or 0)
            values["answered"] = int(raw.get("answered") or 0)
            manifest = cls(**values)
            if int(manifest.version) > MANIFEST_VERSION:
                raise ValueError(f"it is of version {manifest.version}, newer than this agent's")
            for file in manifest.files:
                if not (is_below(file.path) and (not file.data or is_below(file.data))):
                    raise ValueError(f"it names {file.path[:200]!r}, which is no path below it")
        except (KeyError, TypeError, AttributeError, RecursionError) as exc:
            raise ValueError(f"it has the wrong form: {exc}") from exc
        return manifest


def is_below(path: str) -> bool:
    """Return whether a relative path stays below the directory that it is joined to."""
    parts = path.split("/")
    return "\0" not in path and all(part not in ("", ".", "..") for part in parts)
