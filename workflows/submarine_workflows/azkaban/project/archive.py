"""Build the zip file of a project reproducibly, with fixed times, modes and order."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field

#: Earliest time that a zip file can store.
_MODIFICATION_TIME = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644
_EXECUTABLE = 0o100755
_SCRIPT = b"#!"


@dataclass(frozen=True)
class Project:
    """A project to upload.

    Attributes
    ----------
    name
        Default name of the project.
    flows
        Ids of its flows. Azkaban removes the schedules of flows that an upload does not contain.
    files
        Path -> content.
    packed
        Zip file of an existing project, uploaded unchanged.
    """

    name: str
    flows: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    packed: bytes | None = None

    def to_zip(self) -> bytes:
        """Return the project's zip file; equal for equal files."""
        if self.packed is not None:
            return self.packed
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for path, content in sorted(self.files.items()):
                info = zipfile.ZipInfo(path, _MODIFICATION_TIME)
                info.compress_type = zipfile.ZIP_DEFLATED
                info.create_system = 3
                mode = _EXECUTABLE if content.startswith(_SCRIPT) else _MODE
                info.external_attr = mode << 16
                archive.writestr(info, content)
        return target.getvalue()


def digest(packed: bytes) -> str:
    """Return a short identifier of a project's zip file, for messages."""
    return hashlib.sha256(packed).hexdigest()[:12]
