"""The values that a program returned, as a mapping that says why a name is not in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from submarine_jobs.errors import SubmarineError
from submarine_runtime.protocol import layout

if TYPE_CHECKING:
    from submarine_jobs.job import Job


class Result(Mapping[str, Any]):
    """Values of ``--return`` by name; a name that could not be sent raises with the reason."""

    def __init__(self, values: Mapping[str, Any], refused: Mapping[str, str]) -> None:
        self._values = values
        self.refused = refused

    def __getitem__(self, name: str) -> Any:
        if name in self.refused:
            raise SubmarineError(f"The program could not return {name}: {self.refused[name]}")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<Result {', '.join([*self._values, *(f'{n} (refused)' for n in self.refused)])}>"


def read_result(job: Job) -> Result:
    """Fetch and unpack ``result.zip``; it holds data only, never code.

    Raises
    ------
    SubmarineError
        If the job has left none, or it is not what a program of ours writes.
    """
    from submarine_jobs.values import unpack_values

    try:
        packed = job.directory.storage.read(job.directory.file(layout.RESULT))
    except FileNotFoundError:
        state = job.record().state
        if not state.ended:
            raise SubmarineError(
                f"Job {job.id} is {state.value}; its values come with its end.",
                "Wait for it: job.wait().",
            ) from None
        raise SubmarineError(
            f"Job {job.id} ({state.value}) has left no values.",
            "Name them with --return when you run it; a job that fails leaves none.",
        ) from None
    return Result(*unpack_values(packed))
