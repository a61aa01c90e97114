"""The directories of ``--save-output`` of one attempt; only jobs with this option load the module.

Files are staged for ``submarine_runtime.publication``; ``streams`` publishes finished parts.
"""

from __future__ import annotations

import hashlib
import json
import time
from shutil import rmtree
from typing import Any, Callable, Mapping

from submarine_runtime.agent.outputs.files import find_outputs
from submarine_runtime.agent.outputs.streams import StreamUploader, own_files, unsaved
from submarine_runtime.protocol import AgentConfig, NamedOutput
from submarine_runtime.publication import (
    Attempt,
    discard_outputs,
    list_path,
    part_path,
    publish_outputs,
    set_modes,
    staging_path,
    writes,
    writes_outputs,
)
from submarine_runtime.record import Status
from submarine_runtime.storage import Scratch, Store, StoreError, make_directories, retry
from submarine_runtime.translation import _


class TaskOutputs:
    """The outputs of one attempt of a task.

    Parameters
    ----------
    config
        With the ``epoch`` and ``attempt``.
    on_event
        Receives kind, detail and data of an event; called in any thread.
    """

    def __init__(
        self,
        config: AgentConfig,
        store: Store,
        scratch: Scratch,
        task: str,
        on_event: Callable[[str, str], None],
    ) -> None:
        self._config, self._store, self._scratch, self._task = config, store, scratch, task
        self._on_event = on_event
        self._several = writes_outputs(config.spec) > 1
        self._streams: dict[str, StreamUploader] = {}

    def prepare(self) -> str:
        """Empty the directories before the program starts; return why that failed, or nothing.

        The published parts of streams are listed for the program.
        """
        try:
            for output in (one for one in self._config.publish if not one.is_model):
                rmtree(self._scratch.saved_output(output.name), ignore_errors=True)
                make_directories(self._scratch.saved_output(output.name))
            deadline = time.monotonic() + self._config.save_grace
            for output in self._config.publish:
                retry(lambda: self._prepare(output), deadline, store=self._store)  # noqa: B023
        except (StoreError, OSError, ValueError) as exc:
            return _("Outputs cannot be saved: {error}.").format(error=str(exc).rstrip("."))[:1000]
        return ""

    def _prepare(self, output: NamedOutput) -> None:
        set_modes(self._store, output, self._config.record.job_id)
        if output.stream or output.parts:
            stream = StreamUploader(
                self._config,
                self._store,
                output,
                self._scratch,
                self._task,
                self._several and not output.parts,
                self._on_event,
            )
            stream.prepare()
            self._streams[output.name] = stream

    def start(self, is_running: Callable[[], bool]) -> None:
        """Begin to upload the parts of streams.

        Parameters
        ----------
        is_running
            See ``SyncThread``.
        """
        for stream in self._streams.values():
            stream.start(is_running)

    def stop(self) -> None:
        """Stop to upload parts; from any thread."""
        for stream in self._streams.values():
            stream.stop()

    def save(
        self,
        attempt: Attempt,
        missing: Callable[[str], None],
        *,
        succeeded: bool,
    ) -> str | None:
        """Stage the files after the end of the program; return the first error's sentence.

        Parameters
        ----------
        attempt
            Repeats a call after transient errors; raises StoreError.
        missing
            Called with one sentence for each file that is not saved.
        succeeded
            Whether the task has succeeded. Otherwise its files are not published.
        """
        failure = None
        for output in self._config.publish:
            stream = self._streams.get(output.name)
            if not writes(self._config.spec, output, self._task):
                continue
            if not succeeded:
                self._report_unpublished(output, missing)
            elif stream is not None:
                failure = stream.finish(attempt, missing) or failure
            else:
                failure = self._stage(output, attempt, missing) or failure
            if succeeded and failure is None and stream is not None:
                failure = self._list_files(output, stream.files(), attempt)
        return failure

    def publish(self, status: Status, attempt: Attempt, *, succeeded: bool) -> str | None:
        """Publish the outputs of a job with one task, or delete what was staged for them.

        Returns
        -------
        str or None
            A failure, one sentence.
        """
        config, job_id = self._config, self._config.record.job_id
        if not succeeded:
            discard_outputs(self._store, config.publish, job_id)
            return None
        tasks = {self._task: (config.epoch, config.attempt)}
        done = publish_outputs(self._store, config.publish, config.spec, job_id, tasks, attempt)
        status.set_record(saved_outputs=done.outputs)
        for sentence in done.warnings:
            status.warn(sentence)
        return done.failure or None

    def _stage(
        self, output: NamedOutput, attempt: Attempt, missing: Callable[[str], None]
    ) -> str | None:
        """Upload the files of an output to its hidden directory, and list them."""
        staging = staging_path(output.uri, self._config.record.job_id)
        files: dict[str, int] = {}
        digests: dict[str, str] = {}
        several = self._several and not output.is_model
        try:
            attempt(lambda: self._store.make_directory(staging))
            for path, item in own_files(self._scratch, output, missing):
                target = part_path(path, self._task, several)
                source, place = item.source, f"{staging}/{target}"
                files[target] = attempt(lambda: self._store.upload(place, source))  # noqa: B023
                if output.is_model:
                    digests[target] = _sha256(source)
        except (StoreError, ValueError) as exc:
            return unsaved(output, exc)
        return self._list_files(output, files, attempt, digests)

    def _list_files(
        self,
        output: NamedOutput,
        files: dict[str, int],
        attempt: Attempt,
        digests: Mapping[str, str] = {},
    ) -> str | None:
        config = self._config
        content: dict[str, Any] = {"epoch": config.epoch, "attempt": config.attempt}
        content.update(files=files, digests=dict(digests))
        path, data = list_path(output.name, self._task), json.dumps(content).encode()
        try:
            attempt(lambda: self._store.publish(path, data))
        except StoreError as exc:
            return unsaved(output, exc)
        return None

    def _report_unpublished(self, output: NamedOutput, missing: Callable[[str], None]) -> None:
        found = find_outputs({output.name: self._scratch.saved_output(output.name)})
        if next(found, None) is not None:
            missing(
                _(
                    "{option}: files were not published, because {task} did not end with success."
                ).format(option=output.option, task=self._task)
            )


def _sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
