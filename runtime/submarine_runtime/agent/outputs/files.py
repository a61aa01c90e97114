"""Save the program's outputs to the job directory, file by file, without reading files whole.

Only regular files are saved: a link could name any file that the agent may read. ``agent.shipping``
ships logs.
"""

from __future__ import annotations

import os
import stat
from fnmatch import fnmatchcase
from typing import Callable, Iterator, Mapping, NamedTuple, Sequence

from submarine_runtime.protocol import CHECKSUMMED, layout
from submarine_runtime.record import UnsavedFiles
from submarine_runtime.storage import StoreError
from submarine_runtime.translation import _

MAX_FILES = 20_000
#: Maximum number of entries of the working directory that are considered.
MAX_ENTRIES = 200_000
#: Prefixes of the names under which YARN localises files and directories for the program.
LOCALISED = ("localized-", CHECKSUMMED)
#: Cache directories of programs and libraries.
CACHES = frozenset(
    {
        *("__pycache__", ".cache", ".config", ".ipynb_checkpoints", ".pytest_cache"),
        *(".mypy_cache", ".ruff_cache", ".triton", ".nv", ".torch", ".local"),
    }
)


class OutputFile(NamedTuple):
    """One file to save: path in the job directory, local path, size; or why it is not saved.

    ``special``: it is a link, a pipe or another special file.
    """

    path: str
    source: str
    size: int
    refusal: str = ""
    special: bool = False


def find_outputs(directories: Mapping[str, str], prefix: str = "") -> Iterator[OutputFile]:
    """Yield all files of the output directories, links and invalid names with their refusal.

    Parameters
    ----------
    directories
        Name in the job directory -> local directory.
    prefix
        Path in the job directory: ``tasks/worker-1/`` for a task that is not the chief.
    """
    count = 0
    for name, root in sorted(directories.items()):
        for directory, subdirectories, files in os.walk(root):
            subdirectories.sort()
            links = [d for d in subdirectories if os.path.islink(os.path.join(directory, d))]
            for file in sorted(files + links):
                count += 1
                if count > MAX_FILES:
                    yield OutputFile(
                        prefix + name,
                        root,
                        0,
                        _("More than {max_files} files: the rest of {name}.").format(
                            max_files=MAX_FILES, name=name
                        ),
                    )
                    return
                source = os.path.join(directory, file)
                yield _item(f"{prefix}{name}/{os.path.relpath(source, root)}", source)


def _item(path: str, source: str) -> OutputFile:
    shown = path.encode("utf-8", "backslashreplace").decode()[:300]
    try:
        path.encode("utf-8")
        info = os.lstat(source)
    except UnicodeEncodeError:
        return OutputFile(
            shown,
            source,
            0,
            _("{shown!r} was not saved: its name is not UTF-8.").format(shown=shown),
        )
    except OSError as exc:
        return OutputFile(
            shown,
            source,
            0,
            _("{shown!r} was not saved: {strerror}.").format(shown=shown, strerror=exc.strerror),
        )
    if not stat.S_ISREG(info.st_mode):
        return OutputFile(
            shown,
            source,
            0,
            _("{shown!r} was not saved: it is not a plain file.").format(shown=shown),
            special=True,
        )
    if any(ord(character) < 32 or character == "\x7f" for character in path):
        return OutputFile(
            shown,
            source,
            0,
            _("{shown!r} was not saved: control characters in its name.").format(shown=shown),
        )
    return OutputFile(path, source, info.st_size)


def save_outputs(
    items: Iterator[OutputFile],
    upload: Callable[[str, str], int],
    saved: Callable[[str, int], None],
    missing: Callable[[str], None],
) -> str | None:
    """Upload each item; return the first error's sentence, or None if all are saved.

    Parameters
    ----------
    upload
        Uploads a local file to a path of the job directory, with retries.
    saved, missing
        Called for each saved file, and with one sentence for each file that is not saved.
    """
    failure: str | None = None
    for item in items:
        if item.refusal:
            missing(item.refusal)
            continue
        try:
            saved(item.path, upload(item.path, item.source))
        except StoreError as exc:
            failure = failure or str(exc)
            missing(_("{path!r} was not saved: {error}.").format(path=item.path[:300], error=exc))
            if exc.transient:
                return failure  # The time for retries is used up.
    return failure


def written_files(
    directory: str, began: float, keep: Sequence[str], prefix: str, unsaved: UnsavedFiles
) -> Iterator[OutputFile]:
    """Yield files of the working directory that were written since ``began`` and match a pattern.

    The others are counted in ``unsaved``. The time of a file is that of its last change by the
    kernel (``st_ctime``), so that an unpacked or copied file counts as written as well. Links and
    localised files are omitted; a file that was added to a localised directory counts.

    Parameters
    ----------
    began
        Seconds since the epoch.
    keep
        Patterns of files to save.
    prefix
        Path in the job directory; empty for the chief.
    unsaved
        Receives the written files that match no pattern.
    """
    count = 0
    for place, inside, names in _walk(directory):
        for name in sorted(names):
            count += 1
            if count > MAX_ENTRIES:
                return
            source = os.path.join(place, name)
            path = os.path.normpath(os.path.join(inside, name))
            try:
                info = os.lstat(source)
            except OSError:
                continue
            if not stat.S_ISREG(info.st_mode) or info.st_ctime <= began or name.endswith(".pyc"):
                continue
            if matches(path, keep):
                yield _item(f"{prefix}{layout.FILES}/{path}", source)
            else:
                unsaved.add(path.encode("utf-8", "backslashreplace").decode()[:200], info.st_size)


def _walk(directory: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield each directory without caches: its path, its path in ``directory``, its file names.

    A link is followed if it leads to a directory that YARN localised for this container.
    """
    tops = [(directory, "")]
    for top, below in tops:
        for place, directories, names in os.walk(top):
            inside = os.path.normpath(os.path.join(below, os.path.relpath(place, top)))
            directories[:] = sorted(name for name in directories if name not in CACHES)
            if top == directory:
                for name in directories:
                    path = os.path.join(place, name)
                    if _is_localised(path, directory):
                        tops.append((os.path.realpath(path), os.path.join(inside, name)))
            yield place, inside, names


def _is_localised(path: str, directory: str) -> bool:
    """Return whether a path is a link to something that YARN localised for this container."""
    if not os.path.islink(path):
        return False
    target = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
    beside, name = os.path.split(target)
    return beside == os.path.dirname(os.path.abspath(directory)) and name.startswith(LOCALISED)


def matches(path: str, patterns: Sequence[str]) -> bool:
    """Return whether a pattern matches a relative path or a parent of it; ``*`` matches ``/``."""
    parts = path.split("/")
    places = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return any(fnmatchcase(place, pattern) for pattern in patterns for place in places)
