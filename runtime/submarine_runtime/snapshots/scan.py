"""Scan a directory that a program writes: which files exist, and which are complete.

A file is complete if it has not changed between two scans, no process has it open for writing, and
an archive has its end. Only names, times, a few bytes of archives and metadata files are read.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import signal
import stat
from contextlib import suppress
from typing import Iterable, Iterator, Mapping, NamedTuple

from submarine_runtime.translation import _

#: Directories with more files than this are not synced while the program runs.
MAX_FILES = 20_000
#: The file that names the parts of a checkpoint of torch.distributed.checkpoint.
PARTS_FILE = ".metadata"
#: Metadata files of libraries are small.
MAX_METADATA = 64 << 20
_PART = re.compile(rb"__\d+_\d+\.distcp")
#: Names of unfinished files: of editors and downloads, of TensorFlow (``ckpt-1_temp/``,
#: ``.tempstate123``, ``checkpoint.tmp123``, and ``workertemp_1/`` of workers that are not the
#: chief) and of Orbax.
_TEMPORARY = re.compile(
    r"^\.(?!metadata$)|~$|^te?mp[._-]|\.(tmp|temp)[^.]*$|\.(part|partial|swp|lock|incomplete|crdownload)$"
    r"|\.tempstate\d+$|_temp$|^workertemp_\d+$|orbax-checkpoint-tmp"
)
#: Files that libraries never leave empty: an empty one remains when the disk is full.
_NEVER_EMPTY = re.compile(r"\.(?:pt|pth|pkl|ckpt|bin|safetensors|distcp|npz|h5|keras)$")
_ZIP_START = b"PK\x03\x04"
_ZIP_END = b"PK\x05\x06"
#: The end record of a zip is 22 bytes and a comment of at most 65,535.
_ZIP_TAIL = 22 + 65_535
#: TensorFlow's file that names the newest checkpoint.
STATE_FILE = "checkpoint"
#: Metadata file -> the fields of its JSON that form the step; none: the file is one number (with
#: ``global_step`` before it in DeepSpeed's ``latest``).
_METADATA: dict[str, tuple[str, ...]] = {
    "training_metadata.json": ("epoch", "batch"),
    "trainer_state.json": ("global_step",),
    "latest_checkpointed_iteration.txt": (),
    "latest": (),
    PARTS_FILE: (),
}
#: Orbax's file in the directory of a checkpoint, with the time at which it was complete.
_ORBAX_METADATA = "_CHECKPOINT_METADATA"
_STATE_LINE = re.compile(rb'^model_checkpoint_path:\s*"([^"\n]+)"', re.MULTILINE)


class FileState(NamedTuple):
    """The state of a file in one scan: the file has changed if any of these differ."""

    inode: int
    size: int
    modified_ns: int


def state_of(path: str) -> FileState | None:
    """Return the state of a file or link; None: there is none."""
    try:
        info = os.lstat(path)
    except OSError:
        return None
    return FileState(info.st_ino, info.st_size, info.st_mtime_ns)


def scan_directory(root: str) -> dict[str, FileState]:
    """Return all regular files with a final name: path below ``root`` -> state.

    Links, hidden and temporary names are omitted, and checkpoints that Orbax has not completed:
    with a directory for each process it writes them under their final name.

    Raises
    ------
    OSError
        ``EFBIG`` if there are more than ``MAX_FILES`` files.
    """
    found: dict[str, FileState] = {}
    pending = [""]
    while pending:
        directory = pending.pop()
        with suppress(FileNotFoundError, NotADirectoryError):  # Removed in the meantime.
            for name, entry in _entries(os.path.join(root, directory)):
                path = f"{directory}/{name}" if directory else name
                if entry.is_dir(follow_symlinks=False):
                    pending.append(path)
                    continue
                with suppress(FileNotFoundError):
                    info = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(info.st_mode):
                        found[path] = FileState(info.st_ino, info.st_size, info.st_mtime_ns)
        if len(found) + len(pending) > MAX_FILES:
            raise OSError(
                errno.EFBIG, _("more than {max_files} files").format(max_files=MAX_FILES), root
            )
    uncommitted = uncommitted_checkpoints(root, found)
    if not uncommitted:
        return found
    return {path: state for path, state in found.items() if not path.startswith(uncommitted)}


def uncommitted_checkpoints(root: str, paths: Iterable[str]) -> tuple[str, ...]:
    """Return the directories of checkpoints that Orbax has begun and not completed.

    Parameters
    ----------
    paths
        Files below ``root``; the result has such paths too, with a slash at the end.
    """
    return tuple(
        path[: -len(_ORBAX_METADATA)]
        for path in paths
        if path.rpartition("/")[2] == _ORBAX_METADATA and _is_uncommitted(os.path.join(root, path))
    )


def _is_uncommitted(path: str) -> bool:
    """Return whether Orbax has begun a checkpoint with this metadata file, and not ended it."""
    try:
        with open(path, "rb") as file:
            values = json.loads(file.read(MAX_METADATA))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(values, dict) and values.get("commit_timestamp_nsecs", 0) is None


def _entries(directory: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    with os.scandir(directory) as listing:
        for entry in listing:
            if _TEMPORARY.search(entry.name) is None and _is_valid_name(entry.name):
                yield entry.name, entry


def _is_valid_name(name: str) -> bool:
    """Return whether a store supports this name: UTF-8 without control characters."""
    if name.isascii():
        return name.isprintable()
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return not any(ord(character) < 32 or character == "\x7f" for character in name)


def is_complete(path: str, size: int) -> bool:
    """Return whether no process writes to a file and it has its end, as far as that can be seen.

    PyTorch, Keras and NumPy write zip archives; Keras and transformers JSON with the step. On a
    file system without leases writers are not detected; a file that does not change counts as
    complete there.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return not _has_writer(descriptor) and _has_end(descriptor, path, size)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _has_writer(descriptor: int) -> bool:
    """Return whether a process has the file open for writing: then no read lease is granted."""
    try:
        # If a writer opens the file now, the kernel sends SIGURG, which is ignored by default.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as exc:
        return exc.errno == errno.EAGAIN
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def _has_end(descriptor: int, path: str, size: int) -> bool:
    if size == 0 and _NEVER_EMPTY.search(path):
        return False
    if size <= MAX_METADATA and _METADATA.get(os.path.basename(path)):
        return bool(step_of(path, os.pread(descriptor, size, 0)))
    if os.pread(descriptor, 4, 0) != _ZIP_START:
        return True
    tail = min(size, _ZIP_TAIL)
    return _ZIP_END in os.pread(descriptor, tail, size - tail)


def metadata_text(path: str, seen: FileState) -> bytes | None:
    """Return the content of a metadata file of a library.

    Keras' BackupAndRestore, transformers' Trainer, DeepSpeed and Megatron write the step to one,
    torch.distributed.checkpoint the names of the files.

    Parameters
    ----------
    path
        Path at which the file can be read.

    Returns
    -------
    None if the file has changed since the scan.
    """
    try:
        with open(path, "rb") as file:
            text = file.read(MAX_METADATA)
            info = os.fstat(file.fileno())
    except OSError:
        return None
    if (info.st_size, info.st_mtime_ns) != (seen.size, seen.modified_ns):
        return None
    return text


def parts_of(path: str, text: bytes) -> list[str]:
    """Return the files beside a metadata file that it names."""
    if path.rpartition("/")[2] != PARTS_FILE or len(text) == MAX_METADATA:  # cut off
        return []
    return sorted(part.decode() for part in set(_PART.findall(text)))


def is_metadata(path: str) -> bool:
    """Return whether a library writes the step, or the names of files, to files of this name."""
    return path.rpartition("/")[2] in _METADATA


def step_of(path: str, text: bytes) -> list[int]:
    """Return the step in the content of a metadata file; empty: there is none."""
    name = path.rpartition("/")[2]
    if name == PARTS_FILE:
        return []
    fields = _METADATA[name]
    try:
        if name == "latest":
            _before, found, text = text.strip().partition(b"global_step")
            return [int(text)] if found else []
        if not fields:
            return [int(text)]
        values = json.loads(text)
        return [int(values.get(name) or 0) for name in fields]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return []


def is_being_saved(files: Mapping[str, FileState], before: Mapping[str, FileState]) -> bool:
    """Return whether a part of a checkpoint has changed since ``before``, and its marker has not.

    torch.distributed.checkpoint writes the marker when the parts of all tasks are complete, also if
    it writes to the same directory again.
    """
    for path, state in files.items():
        directory, _, name = path.rpartition("/")
        if name == PARTS_FILE and before.get(path) == state:
            for other, seen in files.items():
                is_part = other.endswith(".distcp") and other.rpartition("/")[0] == directory
                if is_part and before.get(other) != seen:
                    return True
    return False


def is_coherent(root: str, files: Mapping[str, FileState]) -> bool:
    """Return whether every TensorFlow ``checkpoint`` file in ``files`` names an existing one."""
    for path in files:
        directory, _, name = path.rpartition("/")
        if name != STATE_FILE:
            continue
        try:
            with open(os.path.join(root, path), "rb") as file:
                match = _STATE_LINE.search(file.read(1 << 16))
        except OSError:
            return False
        if match is None:
            continue
        prefix = match.group(1).decode("utf-8", "replace")
        # An absolute prefix replaces the rest in join; a prefix outside the directory is ignored.
        named = os.path.relpath(os.path.join(root, directory, prefix), root)
        if named.startswith("../"):
            continue
        if not any(other.startswith((f"{named}.", f"{named}/")) for other in files):
            return False
    return True
