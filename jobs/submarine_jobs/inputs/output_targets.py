"""Check the URIs of outputs before a submission, and resolve them to paths.

They are those of ``--save-output``, and that of ``--saved_model_path``. Nothing is created.
The job checks again that a directory is free when it publishes.
"""

from __future__ import annotations

import os
import posixpath
from dataclasses import replace

from submarine_jobs.errors import UsageError
from submarine_jobs.inputs.locations import without_user
from submarine_jobs.model import JobSpec, NamedOutput
from submarine_jobs.storage import LocalStorage, Storage, encryption_zone_error
from submarine_runtime.protocol import APPEND_RUN, OVERWRITE
from submarine_runtime.storage import StoreError, WebHdfsStore
from submarine_runtime.translation import _

#: Directory of the job root for results that are returned as frames.
PREDICTIONS = "predictions"
#: Names of directories of HDFS that no job writes to.
_SPECIAL = frozenset({".Trash", ".snapshot", ".reserved"})


def output_targets(spec: JobSpec, storage: Storage, root: str) -> tuple[NamedOutput, ...]:
    """Return the outputs of ``spec`` with paths in ``storage``.

    Parameters
    ----------
    root
        The job root.

    Raises
    ------
    UsageError
        If the job could not publish an output; one sentence that names it.
    StorageError
        If the file system does not answer.
    """
    found = []
    others = [(_("the job root"), root)]
    read = [(f"--input {item.name}", item.uri) for item in spec.inputs]
    read += [("--checkpoint_path", spec.checkpoint_path or ""), ("--input_path", _input(spec))]
    others += [(name, path) for name, uri in read if uri and (path := storage.path_of(uri))]
    for item in spec.published:
        path = _path(item, storage)
        for name, other in others:
            if other == root and path.startswith(f"{root}/{PREDICTIONS}/"):
                continue
            if _overlap(path, other):
                raise UsageError(
                    _("{option}: {url} overlaps with {other}, {path}.").format(
                        option=item.option, url=storage.url(path), other=name, path=other
                    ),
                    _("Name a directory of its own."),
                )
        others.append((item.option, path))
        _check_target(item, path, storage)
        _check_parent(item, path, storage)
        found.append(replace(item, uri=path))
    return tuple(found)


def _input(spec: JobSpec) -> str:
    return spec.input_path or ""


def _path(item: NamedOutput, storage: Storage) -> str:
    path = storage.path_of(item.uri)
    if path is None:
        raise UsageError(
            _(
                "{option}{mark}{uri} is not in the file system of the job directory, {prefix}."
            ).format(
                option=item.option,
                mark=" " if item.is_model else "=",
                uri=without_user(item.uri)[:200],
                prefix=storage.prefix,
            ),
            _("Give an absolute path in {prefix}, or let the program write there itself.").format(
                prefix=storage.prefix
            ),
        )
    parts = path.strip("/").split("/")
    given = item.uri.partition("://")[2] or item.uri
    if path == "/" or ".." in given.split("/") or _SPECIAL.intersection(parts):
        raise UsageError(
            _("{option}: {url} is not a directory for data.").format(
                option=item.option, url=without_user(item.uri)[:200]
            ),
            _("Name a directory that may be created, such as hdfs:///data/predictions."),
        )
    return path


def _overlap(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def _check_target(item: NamedOutput, path: str, storage: Storage) -> None:
    """Refuse a target that is a file or occupied, and one in an encryption zone."""
    url = storage.url(path)
    for place in (path, posixpath.dirname(path)):  # The target may be the root of a zone.
        if storage.in_encryption_zone(place):
            raise encryption_zone_error(
                item.option,
                storage.url(place),
                _("Name a directory outside of encryption zones."),
            )
    entry = storage.stat(path)
    if entry is None:
        return
    if not entry.is_directory:
        raise UsageError(
            _("{option}: {url} is a file.").format(option=item.option, url=url),
            _("Name a directory."),
        )
    if not item.mode and storage.list_directory(path):
        fix = _(
            "Write {uri}:overwrite to replace its files, or {uri}:append-run for a new "
            "directory in it."
        ).format(uri=without_user(item.uri)[:200])
        if item.is_model:
            fix = _("Name another version, such as hdfs:///models/digits/8.")
        if item.stream:
            fix = _("Name another directory, or write :append-run:stream.")
        raise UsageError(
            _("{option}: {url} exists and is not empty.").format(option=item.option, url=url),
            fix,
        )


def _check_parent(item: NamedOutput, path: str, storage: Storage) -> None:
    """Refuse a target in whose nearest directory this user may not create files."""
    there = path if item.mode == APPEND_RUN or item.stream else posixpath.dirname(path)
    while there != "/" and (entry := storage.stat(there)) is None:
        there = posixpath.dirname(there)
    entry = storage.stat(there)
    problem = _("you may not write there")
    if entry is not None and not entry.is_directory:
        problem = _("it is a file")
    elif isinstance(storage, LocalStorage):
        if os.access(there, os.W_OK | os.X_OK):
            return
    else:
        problem = _refusal(storage, there)
        if not problem:
            return
    what = _("replaced") if item.mode == OVERWRITE else _("created")
    raise UsageError(
        _("{option}: {url} cannot be {what} in {there}: {problem}.").format(
            option=item.option,
            url=storage.url(path),
            what=what,
            there=storage.url(there),
            problem=problem,
        ),
        _("Name a directory in which you may create files."),
    )


def _refusal(storage: Storage, directory: str) -> str:
    """Return why HDFS would refuse new files in a directory; empty: not known."""
    try:
        store = storage.open_store(directory)
        if not isinstance(store, WebHdfsStore):
            return ""
        try:
            store.call("GET", directory, "CHECKACCESS", {"fsaction": "-wx"})
        except StoreError as error:
            if "ermission denied" in str(error):
                return _("you may not write there")
        usage = store.call("GET", directory, "GETQUOTAUSAGE").json_object().get("QuotaUsage")
    except (StoreError, ValueError):
        return ""  # A gateway or a version without this call: the job reports it at its end.
    usage = usage if isinstance(usage, dict) else {}
    for used, quota in (("fileAndDirectoryCount", "quota"), ("spaceConsumed", "spaceQuota")):
        limit = usage.get(quota)
        if isinstance(limit, int) and 0 <= limit <= int(usage.get(used) or 0):
            return _("its quota is used up")
    return ""
