"""The directories ``SUBMARINE_OUTPUT_DIR`` and ``SUBMARINE_OUTPUT_<NAME>`` of one attempt.

The first is saved to ``outputs/<task>/`` of the job directory by one rename. The others are staged
for ``submarine_runtime.publication``; ``streams`` publishes those with ``:stream``.
"""

from __future__ import annotations

import json
import posixpath
import time
from contextlib import suppress
from shutil import rmtree
from typing import TYPE_CHECKING, Callable

from submarine_runtime.agent import outputs
from submarine_runtime.agent.outputs.files import (
    find_outputs,
    own_files,
    save_outputs,
    unsaved,
)
from submarine_runtime.files import temporary_name
from submarine_runtime.protocol import AgentConfig, NamedOutput, layout
from submarine_runtime.publication import (
    Attempt,
    list_path,
    part_path,
    set_modes,
    staging_path,
    writes_outputs,
)
from submarine_runtime.storage import Scratch, Store, StoreError, make_directories, retry
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_runtime.agent.outputs.streams import StreamUploader


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
        names = ["", *(output.name for output in self._config.publish)]
        try:
            for name in names:
                rmtree(self._scratch.saved_output(name), ignore_errors=True)
                make_directories(self._scratch.saved_output(name))
            deadline = time.monotonic() + self._config.save_grace
            for output in self._config.publish:
                retry(lambda: self._prepare(output), deadline, store=self._store)  # noqa: B023
        except (StoreError, OSError, ValueError) as exc:
            return _("--save-output cannot be used: {error}.").format(error=str(exc).rstrip("."))[
                :1000
            ]
        return ""

    def _prepare(self, output: NamedOutput) -> None:
        set_modes(self._store, output, self._config.record.job_id)
        if output.stream:
            stream = outputs.StreamUploader(
                self._config,
                self._store,
                output,
                self._scratch,
                self._task,
                self._several,
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
        saved: Callable[[str, int], None],
        missing: Callable[[str], None],
        *,
        succeeded: bool,
    ) -> str | None:
        """Save everything after the end of the program; return the first error's sentence.

        Parameters
        ----------
        attempt
            Repeats a call after transient errors; raises StoreError.
        saved, missing
            See ``save_outputs``; files of ``--save-output`` are not counted.
        succeeded
            Whether the task has succeeded. Otherwise only ``--save-on-failure`` saves files.
        """
        failure = None
        if succeeded or self._config.spec.save_on_failure:
            failure = self._save_own(attempt, saved, missing)
        for output in self._config.publish:
            stream = self._streams.get(output.name)
            if not succeeded:
                self._report_unpublished(output, missing)
            elif stream is not None:
                failure = stream.finish(attempt, missing) or failure
            else:
                failure = self._stage(output, attempt, missing) or failure
            if succeeded and failure is None and stream is not None:
                failure = self._list_files(output, stream.files(), attempt)
        return failure

    def _save_own(
        self,
        attempt: Attempt,
        saved: Callable[[str, int], None],
        missing: Callable[[str], None],
    ) -> str | None:
        """Save ``SUBMARINE_OUTPUT_DIR``; it appears whole, or not at all."""
        target = f"{layout.OUTPUTS}/{layout.task_directory(self._task)}"
        temporary = temporary_name(target)
        parent, name = posixpath.split(temporary)
        done: list[tuple[str, int]] = []

        def shown(text: str) -> str:
            return text.replace(temporary, target)

        failure = save_outputs(
            find_outputs({name: self._scratch.saved_output()}, f"{parent}/"),
            lambda path, source: int(attempt(lambda: self._store.upload(path, source))),
            lambda path, size: done.append((shown(path), size)),
            lambda sentence: missing(shown(sentence)),
        )

        def publish() -> None:
            if not self._store.exists(temporary) and self._store.exists(target):
                return  # The reply to an earlier rename was lost.
            self._store.delete(target, recursive=True)  # Of an earlier attempt.
            self._store.move(temporary, target)

        try:
            if failure is None and done:
                attempt(publish)
        except StoreError as exc:
            failure = _("{path!r} was not saved: {error}.").format(path=target, error=exc)
            missing(failure)
        if failure is None:
            for path, size in done:
                saved(path, size)
        else:
            with suppress(StoreError):  # The name is hidden.
                self._store.delete(temporary, recursive=True)
            failure = shown(failure)
        return failure

    def _stage(
        self, output: NamedOutput, attempt: Attempt, missing: Callable[[str], None]
    ) -> str | None:
        """Upload the files of an output to its hidden directory, and list them."""
        staging = staging_path(output.uri, self._config.record.job_id)
        files: dict[str, int] = {}
        try:
            attempt(lambda: self._store.make_directory(staging))
            for path, item in own_files(self._scratch, output, missing):
                target = part_path(path, self._task, self._several)
                source, place = item.source, f"{staging}/{target}"
                files[target] = attempt(lambda: self._store.upload(place, source))  # noqa: B023
        except (StoreError, ValueError) as exc:
            return unsaved(output, exc)
        return self._list_files(output, files, attempt)

    def _list_files(
        self, output: NamedOutput, files: dict[str, int], attempt: Attempt
    ) -> str | None:
        config = self._config
        content = {"epoch": config.epoch, "attempt": config.attempt, "files": files}
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
                    "--save-output {name}: files were not published, because {task} did not "
                    "end with success."
                ).format(name=output.name, task=self._task)
            )
