"""Localize the files of a job into a directory of this machine, as YARN does in a container.

For backends that start the runtime's programs in a directory of this machine or of a shared file
system: ``python -I runtime.zip agent --directory DIRECTORY``, for a distributed job ``supervise``.

A job of one task::

    agent.json secret.json secret-env.json bundle.zip values.zip runtime.zip submarine_data.zip
    program/<localized>

A distributed job: the files of the coordinator, and one directory for each role, from which the
coordinator makes one directory for each task::

    coordinator.json secret.json runtime.zip
    <role>/agent.json secret.json secret-env.json bundle.zip values.zip runtime.zip
           submarine_data.zip program/<localized>
"""

from __future__ import annotations

import json
import lzma
import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from submarine_jobs.backends.base import Submission
from submarine_jobs.config import make_private
from submarine_jobs.errors import RefusedError
from submarine_jobs.inputs import find_copy, localized_entries
from submarine_runtime.files import replace_file
from submarine_runtime.protocol import AgentConfig, has_secrets, layout, to_json
from submarine_runtime.translation import _

RUNTIME = "runtime.zip"
LOOPBACK = "127.0.0.1"
#: Exceptions of the standard library for a damaged or encrypted archive and for a full disk.
_UNPACK_ERRORS = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError,
    OSError, EOFError, RuntimeError, NotImplementedError, ValueError,
)  # fmt: skip


def localize(submission: Submission, scratch: Path, listen: str = LOOPBACK) -> None:
    """Write the files of ``submission`` to the existing directory ``scratch``.

    Parameters
    ----------
    listen
        The address at which agents and coordinator listen; loopback where all clients and tasks are
        on one machine.

    Raises
    ------
    StorageError
        If the job directory cannot be read.
    RefusedError
        If an archive cannot be unpacked, or has a member outside its directory.
    """
    if submission.coordinator is None:
        _task_files(submission, scratch, submission.agent, listen)
        return
    config = replace(submission.coordinator, listen=listen)
    write_json(scratch / layout.COORDINATOR, to_json(config))
    for role in submission.spec.roles:
        directory = scratch / role.name
        directory.mkdir(mode=0o700, exist_ok=True)
        _task_files(submission, directory, submission.agent.of_role(role), listen)
    first = scratch / submission.spec.roles[0].name
    for name in (layout.SECRET, RUNTIME):
        (scratch / name).unlink(missing_ok=True)
        os.link(first / name, scratch / name)


def _task_files(submission: Submission, directory: Path, agent: AgentConfig, listen: str) -> None:
    storage, job_dir = submission.storage, submission.job_dir
    write_json(directory / layout.AGENT, to_json(replace(agent, listen=listen)))
    names = [layout.SECRET, layout.BUNDLE, layout.VALUES]
    if has_secrets(agent.spec, agent.task_role):
        names.append(layout.SECRET_ENV)
    for name in names:
        if storage.stat(f"{job_dir}/{name}") is not None:
            storage.download(f"{job_dir}/{name}", directory / name)
            (directory / name).chmod(0o600)
    storage.download(submission.runtime_zip, directory / RUNTIME)
    if submission.data_zip is not None:
        storage.download(submission.data_zip, directory / layout.DATA_PACKAGE)
    for item in localized_entries(submission.spec):
        path, archived = find_copy(storage, job_dir, item)
        target = directory / "program" / item.target
        make_private(target.parent)
        if archived:
            _unpack(Path(path), target, item.source)
        else:
            storage.download(path, target)
        if item.mode != "rw":
            _protect(target)


class _UnsafeMemberError(Exception):
    """A member of an archive was refused; the message is the reason."""


def _unpack(archive: Path, target: Path, source: str) -> None:
    """Unpack an archive; `source` is its name in messages."""
    target.mkdir(mode=0o700, exist_ok=True)
    try:
        if archive.suffix in (".zip", ".jar"):
            with zipfile.ZipFile(archive) as zipped:
                for info in zipped.infolist():
                    _inner(info.orig_filename)
            # This function creates no links and does not apply modes.
            shutil.unpack_archive(archive, target, "zip")
            return
        # Python 3.11.2 (Debian 12) has no filters, and those of some later releases are incomplete,
        # so `_safe_members` checks too.
        options: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        with tarfile.open(archive) as tar:
            tar.extractall(target, members=_safe_members(tar), **options)  # noqa: S202 - checked
    except _UnsafeMemberError as exc:
        raise RefusedError(
            _("{source} is not unpacked: {error}.").format(source=source, error=exc)
        ) from None
    except _UNPACK_ERRORS as exc:
        raise RefusedError(
            _("{source} cannot be unpacked: {error}.").format(source=source, error=exc)
        ) from None


def _safe_members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the members of `tar`; raise _UnsafeMemberError for one that leaves its directory.

    ``..`` is allowed only at the beginning of the target of a link, and no member may be below a
    link. So a chain of links cannot leave the directory if each link alone does not.
    """
    links: set[tuple[str, ...]] = set()
    for member in tar:
        name = _inner(member.name)
        if any(name[:depth] in links for depth in range(1, len(name))):
            raise _UnsafeMemberError(_("{member!r} is below a link").format(member=member.name))
        if member.issym():
            parts = [part for part in member.linkname.split("/") if part not in ("", ".")]
            ups = next((n for n, part in enumerate(parts) if part != ".."), len(parts))
            absolute = member.linkname.startswith("/")
            if absolute or ".." in parts[ups:] or not name or ups >= len(name):
                raise _UnsafeMemberError(
                    _("the link {member!r} leads out of it").format(member=member.name)
                )
            links.add(name)
        elif member.islnk():
            to = _inner(member.linkname)
            if any(to[:depth] in links for depth in range(1, len(to) + 1)):
                raise _UnsafeMemberError(
                    _("{member!r} is a hard link to a link").format(member=member.name)
                )
        elif not member.isreg() and not member.isdir():
            raise _UnsafeMemberError(
                _("{member!r} is neither a file nor a directory").format(member=member.name)
            )
        # Drop owners and special bits; make all files readable and removable by this user.
        member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
        member.mode = member.mode & 0o755 | (0o700 if member.isdir() else 0o600)
        yield member


def _inner(name: str) -> tuple[str, ...]:
    """Return the parts of a member's name; raise _UnsafeMemberError if it is not inside."""
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise _UnsafeMemberError(_("{name!r} is not a path inside it").format(name=name[:120]))
    return parts


def _protect(target: Path) -> None:
    """Make localized files read-only, as YARN does; directories stay writable."""
    for path in [target] if target.is_file() else target.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file of mode 0600, published by rename."""
    replace_file(path, json.dumps(content).encode(), mode=0o600)
