"""The values that a program returned with ``--return``."""

from __future__ import annotations

import functools
import re
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from submarine_jobs.errors import SubmarineError
from submarine_jobs.outputs.values import unpack_values
from submarine_jobs.text import one_line
from submarine_runtime.protocol import layout
from submarine_runtime.translation import _
from submarine_runtime.values import DEFAULT_LIMIT

if TYPE_CHECKING:
    from submarine_jobs.access import JobHandle
    from submarine_runtime.protocol import JobRecord

#: Maximum bytes of values that are read for display; ``job.result`` has no such limit.
SHOWN_LIMIT = 16 << 20
_FEW = 6
_RANK = re.compile(r"(\d{1,6})\.zip\Z")


class Result(Mapping[str, Any]):
    """Values by name. For a value that could not be sent, access raises with the reason."""

    def __init__(
        self,
        values: Mapping[str, Any],
        refused: Mapping[str, str],
        read_ranks: Callable[[], list[Result]] | None = None,
    ) -> None:
        self._values = values
        self.refused = refused
        self._read_ranks = read_ranks

    @property
    def ranks(self) -> list[Result]:
        """The values of every rank, in order, of a job with ``--return-all-ranks``.

        Raises
        ------
        SubmarineError
            If the job was run without that option.
        """
        return self._read_ranks() if self._read_ranks is not None else [self]

    def __getitem__(self, name: str) -> Any:
        if name in self.refused:
            raise SubmarineError(
                _("The program could not return {name}: {refused}").format(
                    name=name, refused=self.refused[name]
                )
            )
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<Result {', '.join([*self._values, *(f'{n} (refused)' for n in self.refused)])}>"


def read_result(job: JobHandle) -> Result:
    """Read and unpack ``result.zip``; it contains data only, no code.

    Raises
    ------
    SubmarineError
        If the job has no result, or the file is invalid.
    """
    try:
        # Read one byte more than the limit, so that a larger file is refused.
        path = job.directory.file(layout.RESULT)
        packed = job.directory.storage.read(path, 0, DEFAULT_LIMIT + 1)
    except FileNotFoundError:
        state = job.record().state
        if not state.ended:
            raise SubmarineError(
                _("Job {job} is {state}; its values come with its end.").format(
                    job=job.id, state=state.value
                ),
                _("Wait for it: job.wait()."),
            ) from None
        raise SubmarineError(
            _("Job {job} ({state}) has left no values.").format(job=job.id, state=state.value),
            _("Name them with --return when you run it; a job that fails leaves none."),
        ) from None
    content = unpack_values(packed)
    return Result(content.values, content.refused, functools.partial(_read_ranks, job))


def _read_ranks(job: JobHandle) -> list[Result]:
    storage, place = job.directory.storage, job.directory.file(layout.RANKS)
    try:
        names = [name for name, _size in storage.walk(place)]
    except FileNotFoundError:
        names = []
    ranks = sorted(int(m[1]) for name in names if (m := _RANK.match(name)))
    if not ranks:
        raise SubmarineError(
            _("Job {job} returned the values of rank 0 only.").format(job=job.id),
            _("Run it with --return-all-ranks to have those of every rank."),
        )
    found, left = [], DEFAULT_LIMIT
    for rank in ranks:
        # Read one byte more than the rest of the limit, so that a truncated file is not unpacked.
        packed = storage.read(job.directory.file(f"{layout.RANKS}/{rank}.zip"), 0, left + 1)
        left -= len(packed)
        if left < 0:
            raise SubmarineError(
                _(
                    "The values of the {count} ranks of job {job} are larger than "
                    "{limit} MiB together."
                ).format(count=len(ranks), job=job.id, limit=DEFAULT_LIMIT >> 20),
                _("Read files of {url}/{ranks} one by one, or return less.").format(
                    url=job.directory.url, ranks=layout.RANKS
                ),
            )
        content = unpack_values(packed)
        found.append(Result(content.values, content.refused))
    return found


def has_result(record: JobRecord) -> bool:
    """Return whether the job has returned values."""
    return any(item.path == layout.RESULT for item in record.outputs)


def format_results(job: JobHandle, record: JobRecord) -> dict[str, str]:
    """Return the returned values by name as short text.

    Empty if there are none, they cannot be read, or they exceed ``SHOWN_LIMIT`` bytes.
    """
    sizes = [item.size for item in record.outputs if item.path == layout.RESULT]
    if not sizes or sizes[0] > SHOWN_LIMIT:
        return {}
    try:
        return {name: _short(value) for name, value in job.result.items()}
    except (SubmarineError, OSError, ValueError):
        return {}


def _short(value: Any) -> str:
    if type(value).__name__ in ("DataFrame", "Series") and hasattr(value, "shape"):
        return f"{type(value).__name__} {'x'.join(map(str, value.shape))}"
    shape = getattr(value, "shape", None)
    if shape:
        return _("array {shape} {type}").format(
            shape="x".join(map(str, shape)), type=getattr(value, "dtype", "")
        )
    if shape == ():
        value = value.item()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)) and len(value) > _FEW and _numbers(value):
        return _("{count} numbers, {first:.4g} … {last:.4g}").format(
            count=len(value), first=value[0], last=value[-1]
        )
    return one_line(reprlib.repr(value), 120)


def _numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, (int, float)) for value in values)
