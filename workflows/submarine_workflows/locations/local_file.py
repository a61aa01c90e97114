"""A notebook in a local file, replaced atomically."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from submarine_jobs.errors import StorageError, UsageError
from submarine_jobs.text import printable, sibling_hint
from submarine_runtime.files import replace_file
from submarine_runtime.translation import _
from submarine_workflows.locations.location import MAX_BYTES, Location, check_size


class LocalLocation(Location):
    """A file on this machine."""

    retry_seconds = 3.0

    def __init__(self, path: Path) -> None:
        self.local = path
        self.url = str(path)

    def make_directory(self) -> None:
        """Create the folder of the file if it does not exist."""
        assert self.local is not None
        try:
            self.local.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                _("{parent} cannot be created: {strerror}.").format(
                    parent=printable(str(self.local.parent), 200), strerror=error.strerror or error
                )
            ) from None

    def read(self) -> bytes:
        """See ``Location.read``."""
        assert self.local is not None
        try:
            with self.local.open("rb") as stream:
                return check_size(stream.read(MAX_BYTES + 1), self.url)
        except OSError as error:
            raise UsageError(
                _("{url} cannot be read: {strerror}.").format(
                    url=printable(self.url, 200), strerror=error.strerror or error
                ),
                sibling_hint(self.local) if isinstance(error, FileNotFoundError) else "",
            ) from None

    def exists(self) -> bool:
        """See ``Location.exists``."""
        assert self.local is not None
        try:
            self.local.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except (OSError, ValueError) as error:
            raise StorageError(
                _("{url} cannot be checked: {error}.").format(
                    url=printable(self.url, 200), error=error
                )
            ) from None
        return True

    def write(self, data: bytes) -> None:
        """See ``Location.write``: written to disk, then renamed."""
        assert self.local is not None
        try:
            write_by_rename(self.local, data)
        except FileNotFoundError:
            raise UsageError(
                _("There is no folder {parent} to write {local} to.").format(
                    parent=printable(str(self.local.parent), 200),
                    local=printable(self.local.name, 100),
                ),
                _("Create it, or give another path with -o."),
            ) from None
        except OSError as error:
            raise StorageError(
                _("{url} cannot be written: {strerror}.").format(
                    url=printable(self.url, 200), strerror=error.strerror or error
                )
            ) from None


def write_by_rename(path: Path, data: bytes) -> None:
    """Replace the file at ``path`` atomically; a symbolic link is followed."""
    target = Path(os.path.realpath(path))
    try:
        old = target.stat().st_mode
    except FileNotFoundError:
        old = None
    if old is not None and not stat.S_ISREG(old):
        # A device or a pipe cannot be replaced.
        with target.open("wb") as stream:
            stream.write(data)
        return
    replace_file(target, data, mode=None if old is None else stat.S_IMODE(old), sync=True)
