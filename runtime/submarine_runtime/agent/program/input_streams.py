"""Feed inputs with mode ``stream`` to the program through named pipes; only such jobs load this.

A process with the program's Python (``submarine_data.feeder``) writes to each pipe. The agent also
holds the writing end, and closes it when that process has succeeded: the program does not see the
end of the data if the process failed or was killed.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import struct
import subprocess
from contextlib import suppress
from typing import Any, Callable, Mapping, Sequence
from zlib import crc32

from submarine_runtime.agent.program.ending import Ending, requested_ending
from submarine_runtime.agent.program.environment import (
    ProgramResources,
    interpreter,
    program_environment,
)
from submarine_runtime.agent.program.failure import last_line
from submarine_runtime.files import replace_file
from submarine_runtime.frameworks import Setup
from submarine_runtime.processes import Guard
from submarine_runtime.protocol import AgentConfig, EndReason, NamedInput, layout
from submarine_runtime.snapshots import FileState, SnapshotWriter
from submarine_runtime.storage import Scratch, Store, StoreError, make_directories
from submarine_runtime.translation import _

#: Files in the directory of an input; ``submarine_data.feeder`` has these names too.
ORDER, PIPE, HISTORY, LOG = "stream.json", "stream", "history.json", "feeder.log"
#: Seconds between the state that a checkpoint has and its first byte: the program copies it, or
#: another task's clock differs.
BEFORE_WRITING = 1.0
#: Seconds that a process has to write the last position.
LAST_POSITION = 0.5
#: A larger file that has grown is a checkpoint: its content is not compared.
_LOG_BYTES = 64 << 20


class InputStreams:
    """The streams of one attempt of a task.

    Parameters
    ----------
    event
        Receives kind, detail and data of an event.

    Attributes
    ----------
    sentences
        What the job's warnings say about records that are sent again.
    """

    def __init__(
        self,
        config: AgentConfig,
        store: Store,
        scratch: Scratch,
        event: Callable[[str, str, dict[str, Any]], None],
    ) -> None:
        self._config, self._store, self._scratch, self._event = config, store, scratch, event
        self._path = f"{layout.SNAPSHOTS}/{config.role}-{config.index}/streams.json"
        self._names = [one.name for one in config.fetch if one.mode == "stream"]
        self._feeders: dict[str, subprocess.Popen[bytes]] = {}
        self._writers: dict[str, int] = {}
        self._shipped: dict[str, Any] = {}
        self._resumed = False
        self._said: dict[str, str] = {}
        self.sentences: list[str] = []

    def _file(self, name: str, file: str) -> str:
        return self._scratch.path("inputs", name, file)

    def _histories(self) -> dict[str, Any]:
        found = {}
        for name in self._names:
            with suppress(FileNotFoundError), open(self._file(name, HISTORY), "rb") as file:
                found[name] = json.load(file)
        return found

    def ship(self) -> None:
        """Save the positions to the job directory; raise StoreError if that fails."""
        found = self._histories()
        if found and found != self._shipped:
            self._store.publish(self._path, json.dumps(found).encode())
            self._shipped = found

    @staticmethod
    def checkpoint_began(
        files: Mapping[str, FileState],
        published: Mapping[str, FileState],
        quiet: float,
        path_of: Callable[[str], str],
        writer: SnapshotWriter,
    ) -> float:
        """Return when the program began to write a new checkpoint; 0: there is none.

        That is the birth of its oldest file or, of a file that was written in place, the last scan
        before that. Files below half of the largest one (metrics) and files that have only grown
        (logs) are no checkpoint: the program would restore an older one.

        Parameters
        ----------
        files, published
            Files of this snapshot and of the one before.
        quiet
            When the directory was last seen as in ``published``.
        """
        old = {seen.inode: seen for seen in published.values()}
        saved = (
            {(f.size, f.modified_ns): f.crc for f in writer.newest.files} if writer.newest else {}
        )
        largest = max((seen.size for seen in files.values()), default=0)
        earlier = max((seen.modified_ns for seen in published.values()), default=0) / 1e9
        times, checkpoint = [], False
        for path, seen in files.items():
            before, place = old.get(seen.inode), path_of(path)
            if before == seen:
                continue
            born = birth_of(place)
            in_place = before is not None and born * 1e9 <= before.modified_ns
            if before is not None and in_place and seen.size >= before.size < _LOG_BYTES:
                with open(place, "rb") as file:
                    if crc32(file.read(before.size)) == saved.get(before[1:]):
                        continue
            checkpoint = checkpoint or 2 * seen.size >= largest
            # Without the birth of a renamed file: the end of the checkpoint before.
            times.append(quiet if in_place else born or earlier)
        return min(times) - BEFORE_WRITING if checkpoint else 0.0

    def resume(self, began: float) -> None:
        """Continue where the restored checkpoint was begun; before ``start``.

        Parameters
        ----------
        began
            See ``Manifest``; 0 begins the streams anew.

        Raises
        ------
        StoreError, OSError
            If the positions cannot be read or written.
        """
        self._resumed = True
        try:
            known = json.loads(self._store.read(self._path) or b"{}")
        except ValueError as exc:
            raise StoreError(f"{self._path}: {exc}") from exc
        local = self._histories()
        for name in self._names:
            found = max((h[name] for h in (known, local) if name in h), key=_last, default=None)
            if found is None or not found["entries"]:
                continue
            entries = [entry for entry in found["entries"] if entry[0] <= began]
            read = found["entries"][-1][4]
            records = entries[-1][3] if entries else 0
            found["entries"] = entries
            replace_file(self._file(name, HISTORY), json.dumps(found).encode())
            sentence = _(
                "--input {name} continues at record {records}; the program had read {count} of the "
                "records from there on before, and reads them again."
            ).format(name=name, records=records, count=max(0, read - records))
            self._event("stream", sentence, {"name": name, "repeated": max(0, read - records)})
            self.sentences.append(sentence)

    def start(self, setup: Setup, resources: ProgramResources, guard: Guard) -> Ending | None:
        """Make the pipes and start the processes; return the ending if that is impossible."""
        try:
            failure = self._start(setup, resources, guard)
        except (StoreError, OSError, ValueError) as exc:
            failure = str(exc)
        return Ending(EndReason.LAUNCH_FAILED, failure[:500]) if failure else None

    def _start(self, setup: Setup, resources: ProgramResources, guard: Guard) -> str:
        if len(setup.processes) > 1:
            return _(
                "--input {name}: one process can read a stream, and this task starts {count}; use "
                ":shard, or submarine_data in the program."
            ).format(name=self._names[0], count=len(setup.processes))
        if not self._resumed and (self._config.epoch, self._config.attempt) > (1, 1):
            self.resume(0.0)
        variables = program_environment(self._config, self._scratch, os.environ, setup, resources)
        package = self._scratch.path(layout.DATA_PACKAGE)
        places = [package, variables.get("PYTHONPATH", "")]
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, places))
        for name in self._names:
            if not os.path.exists(self._file(name, ORDER)):
                continue  # This task has no share.
            pipe = self._file(name, PIPE)
            with suppress(FileNotFoundError):
                os.unlink(pipe)
            os.mkfifo(pipe, 0o600)
            both = os.open(pipe, os.O_RDWR)  # A writing end alone would wait for a reader.
            self._writers[name] = os.open(pipe, os.O_WRONLY)
            if resources.inputs[name] == "-":
                resources.stdin = os.open(pipe, os.O_RDONLY)
            os.close(both)
            self._feeders[name] = self._feeder(name, variables)
            guard.always(self._feeders[name].pid)
        return ""

    def _feeder(self, name: str, variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
        directory = self._scratch.path("inputs", name)
        command = [interpreter(self._config, self._scratch), "-m", "submarine_data.feeder"]
        with open(self._file(name, LOG), "wb") as log:
            return subprocess.Popen(
                [*command, directory],
                cwd=directory,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def ending(self, ending: Ending) -> Ending:
        """Return the ending of the program; a failed stream is its reason."""
        # Its data was incomplete, whatever the program made of it.
        problem = self.problem()
        cancelled = ending.reason is EndReason.CANCELLED
        return requested_ending(problem) if problem and not cancelled else ending

    def problem(self) -> dict[str, str] | None:
        """End the streams whose processes have succeeded; return a request if one has failed.

        The warnings of the processes, such as a wait for HDFS, become events.
        """
        for name, feeder in self._feeders.items():
            status = feeder.poll()
            said = last_line(self._file(name, LOG))
            if said and not status and said != self._said.get(name):
                self._said[name] = said
                self._event("warning", f"--input {name}: {said}", {})
            if status == 0 and name in self._writers:
                os.close(self._writers.pop(name))
            elif status:
                said = said or _(
                    "the process that reads the data ended with status {status}"
                ).format(status=status)
                why = _("--input {name}: {said}").format(name=name, said=said)
                return {"reason": EndReason.INPUT_MISSING.value, "why": why[:1000]}
        return None

    def end(self) -> None:
        """End the processes after the end of the program."""
        for feeder in self._feeders.values():
            # Without its reader it notes how far that came, and ends.
            with suppress(subprocess.TimeoutExpired):
                feeder.wait(LAST_POSITION)
            if feeder.poll() is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(feeder.pid, signal.SIGKILL)
            feeder.wait()
        for writer in self._writers.values():
            os.close(writer)
        self._feeders, self._writers = {}, {}


def prepare_stream(
    config: AgentConfig,
    scratch: Scratch,
    one: NamedInput,
    place: tuple[int, int],
    files: Sequence[tuple[str, int]],
) -> str:
    """Write the order for the process that reads a stream; return the program's variable.

    Parameters
    ----------
    place
        Index of the task's share, and number of shares; without a share there is no order.
    files
        URI and size of all files.
    """
    root = scratch.path("inputs", one.name)
    make_directories(root)
    index, count = place
    if count == 0:
        return os.devnull
    order = {"files": files, "rank": index, "world": count, "options": one.options}
    replace_file(os.path.join(root, ORDER), json.dumps(order).encode(), mode=0o600)
    return "-" if "to=stdin" in one.options else os.path.join(root, PIPE)


def birth_of(path: str) -> float:
    """Return when a file was created, seconds since the epoch, by statx(2); 0: not known."""
    data = ctypes.create_string_buffer(256)
    try:
        failed = ctypes.CDLL(None).statx(-100, os.fsencode(path), 0x100, 0x800, data)
    except (OSError, AttributeError):
        return 0.0
    if failed or not struct.unpack_from("I", data)[0] & 0x800:
        return 0.0
    seconds, nanoseconds = struct.unpack_from("qI", data, 80)
    return float(seconds + nanoseconds / 1e9)


def _last(history: Mapping[str, Any]) -> float:
    return float(history["entries"][-1][0]) if history["entries"] else 0.0
