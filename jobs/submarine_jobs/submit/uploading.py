"""Bring a job's files into its directory, some at a time, and the runtime into the shared cache."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from submarine_jobs.access import JobDirectory
from submarine_jobs.submit.runtime_zip import runtime_zip
from submarine_runtime.protocol import layout

MAX_UPLOADS = 4


def upload(directory: JobDirectory, root: str, files: Mapping[str, bytes | None]) -> str:
    """Publish ``files`` (name -> content; None is left out) in the job directory.

    Returns
    -------
    str
        Path of the runtime's zip, which is uploaded once for all jobs below ``root``.
    """
    storage = directory.storage
    runtime = runtime_zip()
    runtime_path = f"{root}/{layout.RUNTIME_CACHE}/{runtime.name}"

    def publish(item: tuple[str, bytes]) -> None:
        storage.publish(directory.file(item[0]), item[1])

    def publish_runtime() -> None:
        if storage.stat(runtime_path) is None:
            storage.publish(runtime_path, runtime.data)

    present = [(name, data) for name, data in files.items() if data is not None]
    with ThreadPoolExecutor(MAX_UPLOADS, "submarine-upload") as pool:
        pending = [pool.submit(publish, item) for item in present]
        pending.append(pool.submit(publish_runtime))
        for upload_done in pending:
            upload_done.result()
    return runtime_path
