"""Run a prediction in a worker: its share of the parts, then the summary."""

from __future__ import annotations

import json
import os
import time
from typing import Any, Mapping, NamedTuple, Sequence

from submarine_data import sharding
from submarine_data.dataset import Dataset, open_dataset
from submarine_data.errors import DataError
from submarine_data.file_systems import file_system_of
from submarine_data.prediction.errors import PredictionError
from submarine_data.prediction.functions import Functions
from submarine_data.prediction.part_files import PartResult, PartWriter, read_part
from submarine_data.prediction.parts import Part, cut, part_size
from submarine_data.prediction.summary import (
    MANIFEST,
    check_same_columns,
    is_missing,
    manifest_of,
    read_summary,
    summary_bytes,
    summary_name,
)
from submarine_runtime.files import replace_file
from submarine_runtime.publication import part_path, staging_path
from submarine_runtime.translation import _

#: Seconds between two looks for the summaries of other workers.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0
#: The role of the tasks.
_ROLE = "worker"


class Settings(NamedTuple):
    """What a prediction does; ``submarine predict`` writes the values into the program.

    Parameters
    ----------
    input
        Name of the input with the data.
    output
        Name of the ``--save-output`` that receives the parts.
    uri
        Its URI, without ``append-run``.
    append_run
        Whether the files are in a directory of the URI that is named after the job.
    stream
        Whether parts are published while the job runs, not at its end.
    model
        Name of the input with the model; empty: there is none.
    columns
        Columns that ``predict`` receives; None: all.
    keys
        Columns of the input that are copied to the output; None: all that are read.
    batch_size
        Rows of a batch; the last one of a part may have fewer.
    batch_format
        ``numpy``, ``arrow`` or ``pandas``.
    format
        Format of the input; None: see ``open_dataset``.
    part_size
        Bytes of the input in a part; 0: see ``parts.part_size``.
    """

    input: str
    output: str
    uri: str
    append_run: bool = False
    stream: bool = False
    model: str = ""
    columns: Sequence[str] | None = None
    keys: Sequence[str] | None = None
    batch_size: int = 1024
    batch_format: str = "numpy"
    format: str | None = None
    part_size: int = 0


def run(namespace: Mapping[str, Any], **settings: Any) -> dict[str, Any]:
    """Process the parts of this worker.

    Parameters
    ----------
    namespace
        Global variables of the program, with the function ``predict``.
    settings
        See ``Settings``.

    Returns
    -------
    dict
        In worker 0 ``rows``, ``parts``, ``bytes``, ``digest`` and ``metrics`` of all workers, in
        others of their own parts.

    Raises
    ------
    DataError
        If the input cannot be read, or a function fails: the sentence names part, file and row
        group.
    """
    return _Worker(namespace, Settings(**settings)).run()


class _Worker:
    def __init__(self, namespace: Mapping[str, Any], settings: Settings) -> None:
        variables = os.environ
        self._settings = settings
        self._rank = int(variables["SUBMARINE_INDEX"])
        self._world = int(variables["SUBMARINE_TASK_COUNT"])
        self._folder = variables[f"SUBMARINE_OUTPUT_{settings.output}"]
        self._place = self._published_place(variables["SUBMARINE_JOB_ID"])
        with open(variables[f"SUBMARINE_PUBLISHED_{settings.output}"], encoding="utf-8") as file:
            self._published = set(file.read().split("\n"))
        model = variables[f"SUBMARINE_INPUT_{settings.model}"] if settings.model else ""
        self._functions = Functions(namespace, settings.batch_format, settings.columns, model)

    def run(self) -> dict[str, Any]:
        if summary_name(self._rank) in self._published:
            own = self._summary(self._rank)
        else:
            own = self._own_parts()
            self._write(summary_name(self._rank), summary_bytes(own))
        if self._rank:
            return _returned(manifest_of(own))
        parts = list(own)
        for rank in range(1, self._world):
            parts += self._awaited(rank)
        manifest = manifest_of(parts)
        if MANIFEST not in self._published:
            self._write(MANIFEST, json.dumps(manifest, indent=1).encode())
        means = [f"{name}: {value!r}" for name, value in manifest["metrics"].items()]
        # In the form of a step of Keras, whose names need not be known to be a measure's.
        print(" - ".join(["1/1", f"rows: {manifest['rows']}", *means]), flush=True)
        return _returned(manifest)

    def _own_parts(self) -> list[PartResult]:
        settings = self._settings
        dataset = self._opened()
        size = part_size(sum(file.size for file in dataset.files), settings.part_size)
        parts = cut(dataset.units(size), size)
        share = sharding.share([part.weight for part in parts], self._rank, self._world)
        own = [parts[number] for number in share]
        done: list[PartResult] = []
        for count, part in enumerate(own, 1):
            if part.name in self._published:
                found = self._stored(part)
            else:
                found = self._processed(dataset, part)
            done.append(found)
            check_same_columns([done[0], found])
            print(
                f"report:progress:{count / len(own):.4f} ({part.name}: {found.rows} rows)",
                flush=True,
            )
        return done

    def _opened(self) -> Dataset:
        settings = self._settings
        columns = settings.columns
        if columns is not None:
            columns = list(dict.fromkeys([*columns, *(settings.keys or ())]))
        return open_dataset(
            os.environ[f"SUBMARINE_INPUT_{settings.input}"],
            format=settings.format,
            columns=columns,
            batch_size=settings.batch_size,
            rank=0,
            world=1,
        )

    def _processed(self, dataset: Dataset, part: Part) -> PartResult:
        """Apply the functions to a part and write its file."""
        writer = PartWriter(self._folder, part.name, self._settings.keys)
        items = dataset.items_of(part.splits)
        try:
            for item in items:
                self._functions.load()
                split, record, _skip = item.before

                def where(split: int = split, record: int = record) -> str:
                    return f"{part.name} ({dataset.place(part.splits[split], record)})"

                columns, metrics = self._functions.apply(item.batch, where)
                writer.add(item.batch, columns, metrics, where)
            return writer.close()
        except BaseException as exc:
            writer.discard()
            if isinstance(exc, DataError) and not isinstance(exc, PredictionError):
                raise PredictionError(
                    _("{part} cannot be made: {reason}").format(part=part.name, reason=exc)
                ) from exc
            raise
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()

    def _stored(self, part: Part) -> PartResult:
        """Return what a part of an earlier attempt contains."""
        uri = self._uri(part.name, self._rank)
        with file_system_of(uri).open(uri) as file:
            return read_part(part.name, file)

    def _summary(self, rank: int) -> list[PartResult]:
        uri = self._uri(summary_name(rank), rank)
        with file_system_of(uri).open(uri) as file:
            return read_summary(file)

    def _awaited(self, rank: int) -> list[PartResult]:
        """Return the parts of another worker; wait until its summary is stored."""
        pause, told = _SHORTEST_PAUSE, False
        while True:
            try:
                return self._summary(rank)
            except DataError as exc:
                if not is_missing(exc):
                    raise
            if not told and pause >= _LONGEST_PAUSE / 2:
                print(_("Waiting for the parts of {role}:{rank}.").format(role=_ROLE, rank=rank))
                told = True
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE, 1.5 * pause)

    def _published_place(self, job: str) -> str:
        """Return the URI of the directory in which the agents store parts."""
        settings = self._settings
        target = settings.uri.rstrip("/") + (f"/{job}" if settings.append_run else "")
        return target if settings.stream else staging_path(target, job)

    def _uri(self, name: str, rank: int) -> str:
        several = self._settings.stream and self._world > 1
        return f"{self._place}/{part_path(name, f'{_ROLE}:{rank}', several)}"

    def _write(self, name: str, content: bytes) -> None:
        replace_file(os.path.join(self._folder, name), content)


def _returned(manifest: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: manifest[name] for name in ("rows", "bytes", "digest", "schema", "metrics")}
    return {**shown, "parts": len(manifest["parts"])}
