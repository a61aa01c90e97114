"""Lineage of a model: job, program, data, parameters, environment and metrics.

It is recorded when a version is saved by a client, because sizes and times of the data may change
later. For a version without a record, and for a final model, it is what is known now.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from submarine_jobs.errors import StorageError
from submarine_jobs.inputs import without_user
from submarine_jobs.outputs import read_metrics
from submarine_jobs.storage import Storage
from submarine_jobs.text import one_line, size, timestamp
from submarine_runtime.protocol import layout
from submarine_runtime.translation import _, ngettext

if TYPE_CHECKING:
    from submarine_jobs.access import JobHandle
    from submarine_runtime.protocol import JobSpec

LINEAGE_FILE = "lineage.json"
#: Maximum number of entries of a directory of data that are listed.
MAX_LISTED = 10_000
_DIGEST_SHOWN = 12


def record_lineage(job: JobHandle, version: str) -> None:
    """Write the lineage of a version beside it, unless that fails or was done before."""
    path = f"{layout.MODELS}/{version}/{LINEAGE_FILE}"
    try:
        job.directory.publish_json_exclusive(path, _lineage(job, version, time.time()))
    except StorageError:
        return  # The version is saved; `read_lineage` returns what is known later.


def read_lineage(job: JobHandle, version: str = "", moment: float | None = None) -> dict[str, Any]:
    """Return the lineage of a version, or of the final model.

    Parameters
    ----------
    moment
        Time of the version in epoch seconds; later metrics are not part of it.
    """
    if version:
        path = f"{layout.MODELS}/{version}/{LINEAGE_FILE}"
        recorded = job.directory.read_json(path)
        if isinstance(recorded, dict):
            return recorded
    return _lineage(job, version, moment)


def _lineage(job: JobHandle, version: str, moment: float | None) -> dict[str, Any]:
    record = job.record()
    found: dict[str, Any] = {
        "job": job.id,
        "version": version,
        "user": record.user,
        "job_dir": job.directory.url,
        "recorded": time.time(),
    }
    try:
        spec = job.directory.spec()
    except (FileNotFoundError, ValueError):
        return found
    return {
        **found,
        "program": spec.program,
        "bundle_digest": spec.bundle_digest,
        "notebook": spec.notebook,
        "cell": spec.cell_id,
        "resumed_from": spec.resume_from,
        "data": _data(job, spec, record.created),
        "parameters": dict(spec.params),
        "environment": {
            "framework": spec.framework,
            "python_env": spec.python_env,
            "python": spec.python,
            "docker_image": spec.docker_image,
        },
        "metrics": _metrics(job, moment),
    }


def _data(job: JobHandle, spec: JobSpec, created: float | None) -> list[dict[str, Any]]:
    uris = {item.name: item.uri for item in spec.inputs}
    if spec.input_path and spec.input_path not in uris.values():
        uris["input_path"] = spec.input_path
    found = []
    for name, uri in uris.items():
        path = job.directory.storage.path_of(uri)
        known = _extent(job.directory.storage, path) if path is not None else {}
        modified = known.get("modified")
        if modified is not None and created is not None:
            known["changed"] = modified > created
        found.append({"name": name, "uri": without_user(uri), **known})
    return found


def _extent(storage: Storage, path: str) -> dict[str, Any]:
    """Return number of files, bytes and newest modification time; empty if they are not known."""
    try:
        top = storage.stat(path)
        if top is None:
            return {}
        if not top.is_directory:
            return {"files": 1, "size": top.size, "modified": top.modified}
        count, total, newest, seen, pending = 0, 0, top.modified, 0, [path]
        while pending and seen < MAX_LISTED:
            folder = pending.pop()
            for entry in storage.list_directory(folder):
                seen += 1
                newest = max(newest, entry.modified)
                if entry.is_directory:
                    pending.append(f"{folder}/{entry.name}")
                else:
                    count, total = count + 1, total + entry.size
        found: dict[str, Any] = {"files": count, "size": total, "modified": newest}
        return {**found, "partial": True} if pending else found
    except (StorageError, FileNotFoundError):
        return {}


def _metrics(job: JobHandle, moment: float | None) -> dict[str, float]:
    """Return the newest value of each scalar of the chief until a time."""
    try:
        rows = read_metrics(job.directory, job.chief)
    except StorageError:
        return {}
    found: dict[str, float] = {}
    for row in rows:
        if moment is None or row.time <= moment:
            found.update(row.scalars)
    return found


def lineage_rows(lineage: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return label and value of each row of a lineage, sanitized."""
    rows = [(_("Job"), str(lineage.get("job") or ""))]
    if program := lineage.get("program"):
        digest = str(lineage.get("bundle_digest") or "")[:_DIGEST_SHOWN]
        rows.append((_("Program"), _("{0}, bundle sha256 {1}").format(program, digest)))
    if notebook := lineage.get("notebook"):
        cell = lineage.get("cell")
        words = _("{notebook}, cell {cell}").format(notebook=notebook, cell=cell)
        rows.append((_("Notebook"), words if cell else str(notebook)))
    if earlier := lineage.get("resumed_from"):
        rows.append((_("Continues"), str(earlier)))
    rows += [(_("Data"), _data_words(item)) for item in lineage.get("data") or ()]
    for label, key in ((_("Parameters"), "parameters"), (_("Metrics"), "metrics")):
        values = lineage.get(key)
        if isinstance(values, dict) and values:
            rows.append((label, ", ".join(f"{name}={value}" for name, value in values.items())))
    environment = lineage.get("environment")
    if isinstance(environment, dict):
        words = ", ".join(f"{name} {value}" for name, value in environment.items() if value)
        rows.append((_("Environment"), words))
    return [(label, one_line(words, 500)) for label, words in rows]


def _data_words(item: Mapping[str, Any]) -> str:
    words = f"{item.get('name')}={item.get('uri')}"
    if "size" in item:
        files = ngettext("{count} file", "{count} files", item["files"]).format(count=item["files"])
        least = _("at least ") if item.get("partial") else ""
        words += _(": {least}{files}, {size}, of {time}").format(
            least=least, files=files, size=size(item["size"]), time=timestamp(item["modified"])
        )
    if item.get("changed"):
        words += _(", changed after the job was submitted")
    return words
