"""Save the outputs of a task in a thread, so that the agent still receives orders."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import Any, Callable, Iterator, Mapping, Sequence, TypeVar

from submarine_runtime.agent.outputs.files import (
    OutputFile,
    find_outputs,
    save_outputs,
    written_files,
)
from submarine_runtime.files import temporary_name
from submarine_runtime.protocol import layout
from submarine_runtime.record import UnsavedFiles
from submarine_runtime.snapshots import is_complete, uncommitted_checkpoints
from submarine_runtime.storage import Scratch, Store, StoreError, retry
from submarine_runtime.translation import _

T = TypeVar("T")
#: Saves further outputs: called with a function that repeats a call, ``saved`` and ``missing``.
SaveMore = Callable[
    [Callable[[Callable[[], Any]], Any], Callable[[str, int], None], Callable[[str], None]],
    "str | None",
]
MAX_LISTED = 500
MAX_MISSING = 50
#: Maximum number of processes of one container for which values are saved.
MAX_PROCESSES = 1024


def _save_nothing(*_functions: object) -> str | None:
    return None


class OutputSaver:
    """One save of the output directories.

    Parameters
    ----------
    prefix
        Path in the job directory; empty for the chief. The chief's returned values are saved too.
    seconds
        Time limit while the job directory is not available.
    before, on_end
        Called in the thread at its beginning and its end.
    left_out
        Returns whether a file is not the program's; None: all are.
    keep
        Patterns of files in the working directory that are saved as well.
    first_rank
        Rank of the task's first process, if the values of every rank are returned.
    save_more
        ``Attempt.save_outputs``, called if everything else is saved.
    succeeded
        See ``save_all``.

    Attributes
    ----------
    failure
        Why not everything is saved, one sentence; None without an error.
    done
        Whether the thread has finished.
    """

    def __init__(
        self,
        store: Store,
        scratch: Scratch,
        prefix: str,
        seconds: float,
        before: Callable[[], None] = lambda: None,
        on_end: Callable[[], None] = lambda: None,
        left_out: Callable[[str], bool] | None = None,
        keep: Sequence[str] = (),
        first_rank: int | None = None,
        save_more: SaveMore = _save_nothing,
        *,
        succeeded: bool = True,
    ) -> None:
        self._save_more, self._succeeded = save_more, succeeded
        self._keep, self._first_rank = keep, first_rank
        self._unsaved = UnsavedFiles()
        self._warnings: list[str] = []
        self._store = store
        self._scratch = scratch
        self._prefix = prefix
        self._deadline = time.monotonic() + seconds
        self._before, self._on_end = before, on_end
        self._left_out = left_out
        self._cancelled = threading.Event()
        self._outputs: list[tuple[str, int]] = []
        self._missing: list[str] = []
        self._thread = threading.Thread(target=self._run, name="saving", daemon=True)
        self.failure: str | None = None
        self.done = False

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def cancel(self) -> None:
        """Stop after the current file: the job no longer needs the outputs of this attempt."""
        self._deadline = 0.0
        self._cancelled.set()

    def join(self, seconds: float) -> bool:
        """Wait for the end; return False after the timeout."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def saved_outputs(self) -> dict[str, Any]:
        """Return ``outputs`` and ``missing`` for the coordinator; as many as fit on a line."""
        saved = list(self._outputs)
        outputs = [{"path": path, "size": size} for path, size in saved[:MAX_LISTED]]
        return {
            "outputs": outputs,
            "saved": [len(saved), sum(size for _, size in saved)],
            "missing": list(self._missing),
            "warnings": list(self._warnings),
            "unsaved": self._unsaved.to_json(),
        }

    def _run(self) -> None:
        try:
            self._before()
            self.failure = save_all(
                self._scratch,
                self._upload,
                self._saved,
                self._add_missing,
                self._unsaved,
                succeeded=self._succeeded,
                keep=self._keep,
                prefix=self._prefix,
                first_rank=self._first_rank,
                left_out=self._left_out,
            ) or self._save_more(self._attempt, self._saved, self._add_missing)
            if not self._prefix or self._first_rank is not None:
                self._warnings += missing_value_reasons(self._scratch)
        finally:
            self.done = True
            self._on_end()

    def _upload(self, path: str, source: str) -> int:
        return self._attempt(lambda: self._store.upload(path, source))

    def _attempt(self, action: Callable[[], T]) -> T:
        if self._cancelled.is_set():
            raise StoreError(_("the task is ending"), transient=True)
        return retry(
            action,
            lambda: self._deadline,
            wait=self._cancelled.wait,
            store=self._store,
        )

    def _saved(self, path: str, size: int) -> None:
        self._outputs.append((path, size))

    def _add_missing(self, sentence: str) -> None:
        if len(self._missing) < MAX_MISSING:
            self._missing.append(sentence[:500])


class VersionSaver:
    """Executes ``save`` orders, one at a time, each in a thread.

    Parameters
    ----------
    send
        Sends the answer over the link.
    """

    def __init__(
        self, store: Store, scratch: Scratch, send: Callable[[dict[str, Any]], None]
    ) -> None:
        self._store, self._scratch, self._send = store, scratch, send
        self._busy = threading.Lock()

    def save(self, order: Mapping[str, Any]) -> None:
        """Start; the answer is sent at the end."""
        if not self._busy.acquire(blocking=False):
            error = _("a version is being saved already")
            self._send({"type": "saved", "id": order.get("id"), "error": error})
            return
        threading.Thread(target=self._run, args=(order,), name="save", daemon=True).start()

    def _run(self, order: Mapping[str, Any]) -> None:
        answer: dict[str, Any] = {"type": "saved", "id": order.get("id")}
        try:
            name = str(order.get("name") or "")
            answer["version"] = model_version(self._store, self._scratch, name)
        except ValueError as exc:
            answer["error"] = str(exc)
        finally:
            self._busy.release()
        self._send(answer)


def model_version(store: Store, scratch: Scratch, name: str) -> dict[str, Any]:
    """Save the model directory now as a version; return the content of ``version.json``.

    Raises
    ------
    ValueError
        If it cannot be saved; one sentence.
    """
    # cost: the modules that save a version, which few jobs do while they run.
    from submarine_runtime.snapshots import VersionError, save_version

    try:
        return save_version(store, scratch, name)
    except (VersionError, StoreError, OSError) as exc:
        raise ValueError(str(exc)[:1000]) from exc


def save_all(
    scratch: Scratch,
    upload: Callable[[str, str], int],
    saved: Callable[[str, int], None],
    missing: Callable[[str], None],
    unsaved: UnsavedFiles,
    *,
    succeeded: bool,
    keep: Sequence[str] = (),
    prefix: str = "",
    first_rank: int | None = None,
    left_out: Callable[[str], bool] | None = None,
) -> str | None:
    """Save a task's output directories, its files in ``keep`` and its returned values.

    Parameters
    ----------
    upload, saved, missing
        See ``save_outputs``.
    unsaved
        The files that no pattern keeps are added to it.
    succeeded
        Whether the program has succeeded. Otherwise checkpoint files without their end, and
        checkpoints that Orbax has not completed, are not saved: the disk was full, or the program
        ended while it wrote them.
    prefix, first_rank, left_out
        See ``OutputSaver``.

    Returns
    -------
    str or None
        The first error's sentence; None if everything is saved.
    """
    checkpoints = scratch.outputs[layout.CHECKPOINTS] + os.sep

    def outputs() -> Iterator[OutputFile]:
        found = list(find_outputs(scratch.outputs, prefix))
        written: dict[OutputFile, str] = {}
        if not succeeded:
            written = {
                one: one.source[len(checkpoints) :]
                for one in found
                if one.source.startswith(checkpoints) and not one.refusal
            }
        uncommitted = uncommitted_checkpoints(checkpoints, written.values())
        for one in found:
            path = written.get(one)
            if path is not None and (
                path.startswith(uncommitted) or not is_complete(one.source, one.size)
            ):
                sentence = _("{path!r} was not saved: it is incomplete.")
                one = one._replace(refusal=sentence.format(path=one.path[:300]))
            yield one
        if scratch.began is not None:
            yield from written_files(scratch.program, scratch.began, keep, prefix, unsaved)

    def items() -> Iterator[OutputFile]:
        yield from (one for one in outputs() if left_out is None or not left_out(one.source))
        yield from _result_files(scratch, not prefix, first_rank)

    return save_outputs(items(), upload, saved, missing)


def _result_files(scratch: Scratch, chief: bool, first_rank: int | None) -> list[OutputFile]:
    """Return files of ``--return``: the chief's values, and with a rank those of each process."""
    found = []
    for number in range(MAX_PROCESSES if first_rank is not None else 1):
        source = scratch.path(f"result-{number}.zip" if number else layout.RESULT)
        if not os.path.isfile(source) or os.path.islink(source):
            continue
        size = os.path.getsize(source)
        if chief and not number:
            found.append(OutputFile(layout.RESULT, source, size))
        if first_rank is not None:
            found.append(OutputFile(f"{layout.RANKS}/{first_rank + number}.zip", source, size))
    return found


def missing_value_reasons(scratch: Scratch) -> list[str]:
    """Return why values of ``--return`` are missing, a sentence each."""
    try:
        with open(scratch.path("returns.txt"), encoding="utf-8", errors="replace") as file:
            sentences = [line.strip() for line in file.read(1 << 16).splitlines()]
    except OSError:
        return []
    return sentences[:MAX_MISSING]


def save_output_directory(
    store: Store,
    scratch: Scratch,
    task: str,
    attempt: Callable[[Callable[[], Any]], Any],
    saved: Callable[[str, int], None],
    missing: Callable[[str], None],
) -> str | None:
    """Save ``SUBMARINE_OUTPUT_DIR`` to ``outputs/<task>/`` by one rename.

    Parameters
    ----------
    attempt
        Repeats a call after transient errors; raises StoreError.
    saved, missing
        See ``save_outputs``.

    Returns
    -------
    str or None
        The first error's sentence; then nothing is saved.
    """
    target = f"{layout.OUTPUTS}/{layout.task_directory(task)}"
    temporary = temporary_name(target)
    parent, name = os.path.split(temporary)
    done: list[tuple[str, int]] = []

    def shown(text: str) -> str:
        return text.replace(temporary, target)

    failure = save_outputs(
        find_outputs({name: scratch.saved_output()}, f"{parent}/"),
        lambda path, source: int(attempt(lambda: store.upload(path, source))),
        lambda path, size: done.append((shown(path), size)),
        lambda sentence: missing(shown(sentence)),
    )

    def publish() -> None:
        if store.exists(temporary) or not store.exists(target):  # Else a reply was lost.
            store.delete(target, recursive=True)  # Of an earlier attempt.
            store.move(temporary, target)

    try:
        if failure is None and done:
            attempt(publish)
    except StoreError as exc:
        failure = _("{path!r} was not saved: {error}.").format(path=target, error=exc)
        missing(failure)
    if failure is None:
        for path, size in done:
            saved(path, size)
        return None
    with suppress(StoreError):  # The name is hidden.
        store.delete(temporary, recursive=True)
    return shown(failure)
