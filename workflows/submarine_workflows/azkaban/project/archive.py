"""A project as a zip that is the same bytes for the same files: fixed times, modes and order."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field

#: The first moment that a zip can say.
_MOMENT = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644
_EXECUTABLE = 0o100755
_SCRIPT = b"#!"


@dataclass(frozen=True)
class Project:
    """What is uploaded.

    Attributes
    ----------
    name
        Of the project, where nobody says another.
    flows
        Ids of its flows; Azkaban drops the schedules of flows that an upload does not have.
    files
        Path -> content.
    packed
        A zip that was a project before and stays as it is.
    """

    name: str
    flows: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    packed: bytes | None = None

    def to_zip(self) -> bytes:
        """The project's zip; equal for equal files."""
        if self.packed is not None:
            return self.packed
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for path, content in sorted(self.files.items()):
                info = zipfile.ZipInfo(path, _MOMENT)
                info.compress_type = zipfile.ZIP_DEFLATED
                info.create_system = 3
                mode = _EXECUTABLE if content.startswith(_SCRIPT) else _MODE
                info.external_attr = mode << 16
                archive.writestr(info, content)
        return target.getvalue()


def digest(packed: bytes) -> str:
    """What tells one project's zip from another, short enough for a sentence."""
    return hashlib.sha256(packed).hexdigest()[:12]
