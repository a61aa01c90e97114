"""Datasets: the files of URIs, shared by ranks, as epochs of batches."""

from __future__ import annotations

import os
from operator import methodcaller
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence, TypeVar

from submarine_data import sharding
from submarine_data.batches import Batch
from submarine_data.converters import to_jax_arrays, to_tf_dataset, to_torch_dataset
from submarine_data.epochs import Epochs
from submarine_data.errors import DataError
from submarine_data.file_systems import FileEntry
from submarine_data.formats import Format, Reading, Split, create_format
from submarine_data.predicates import Condition, Predicate, filtered, predicates
from submarine_data.ranks import Place, check_place, place_of_process
from submarine_data.reading_ahead import Prefetch
from submarine_data.sources import Source, find_sources, selected
from submarine_data.state import Progress, Start, fingerprint, start_of, state_of
from submarine_data.streams import Item, Position, batches, block_size, blocks, merged
from submarine_runtime.translation import _

T = TypeVar("T")


def open_dataset(
    uris: str | Sequence[str],
    *,
    format: str | None = None,
    columns: Sequence[str] | None = None,
    filter: Iterable[Condition] | None = None,
    batch_size: int = 1024,
    rank: int | None = None,
    world: int | None = None,
    shuffle: int = 0,
    seed: int = 0,
    prefetch: int = 16 << 20,
    partitions: bool = True,
    **options: Any,
) -> Dataset:
    """Open the share of this process of the files of URIs.

    The files are listed at once, and read when the dataset is iterated. All processes must list the
    same files: the share is a function of the files' sizes, the seed, the epoch, the rank and the
    number of processes.

    Parameters
    ----------
    uris
        A file, a directory (all files below it, without names that begin with ``_`` or ``.``), a
        glob, ``@URI`` of a text file with one URI in each line, or a list of these. A path or
        ``file:`` URI is local; others are those of ``submarine_data.remote``.
    format
        ``parquet``, ``orc``, ``csv``, ``text``, ``sequencefile``, ``tfrecord``, ``avro``, ``lmdb``
        or ``images`` [by the files' suffix, else their first bytes].
    columns
        Columns to read, in this order [all].
    filter
        Predicates ``(column, operator, value)`` that each record fulfils. Operators: ``== != < <=
        > >= in``, ``not in``. Files of other partitions and row groups whose statistics exclude
        the predicate are not read. A missing value fulfils none.
    batch_size
        Records of a batch; the last one of an epoch may have fewer.
    rank, world
        Number of this process from 0, and the number of processes [of the job; see
        ``place_of_process``]. Give both or none.
    shuffle
        Records that are shuffled together, in memory; the units of the files are also read in
        another order in each epoch. 0 keeps the order of the files.
    seed
        Of the order.
    prefetch
        Bytes of batches that a background thread reads ahead; 0 reads when a batch is requested.
    partitions
        Directories ``key=value`` in the path are columns, of int if all their values are, else
        str.
    options
        Options of the format.

    Raises
    ------
    DataError
        If there are no files, or an argument is invalid.
    """
    if (rank is None) != (world is None):
        raise DataError(_("Give both rank and world, or none of them."))
    place = place_of_process() if rank is None or world is None else Place(rank, world)
    if batch_size < 1 or shuffle < 0 or prefetch < 0:
        raise DataError(_("batch_size is at least 1, shuffle and prefetch are at least 0."))
    return Dataset(
        find_sources(uris, partitions),
        format=format,
        columns=columns,
        conditions=predicates(filter),
        batch_size=batch_size,
        place=check_place(place),
        shuffle=shuffle,
        seed=seed,
        prefetch=prefetch,
        options=options,
    )


class Dataset(Epochs[Batch]):
    """The share of a process of some files. ``open_dataset`` creates it.

    Iterating it yields ``Batch`` objects. The converters return the same batches in other forms,
    with the same methods ``epoch`` and ``epochs``, and advance the same state.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        format: str | None,
        columns: Sequence[str] | None,
        conditions: Sequence[Predicate],
        batch_size: int,
        place: Place,
        shuffle: int,
        seed: int,
        prefetch: int,
        options: Mapping[str, Any],
    ) -> None:
        super().__init__(self, self._batches)
        self._partitions = {source.file.uri: source.partitions for source in sources}
        keys = sources[0].partitions
        self._conditions = [c for c in conditions if c.column not in keys]
        self._sources = selected(sources, conditions)
        self._columns = None if columns is None else tuple(columns)
        self._batch_size, self._shuffle, self._seed = batch_size, shuffle, seed
        self._place, self._prefetch = place, prefetch
        wanted: tuple[str, ...] | None = None
        if self._columns is not None:
            more = (condition.column for condition in self._conditions)
            wanted = tuple(name for name in dict.fromkeys((*self._columns, *more)))
            # Only columns of the path: their number of records is that of any column.
            wanted = tuple(name for name in wanted if name not in keys) or None
        files = [source.file for source in self._sources]
        reading = Reading(wanted, tuple(self._conditions), batch_size)
        # A format compares each file with the first one, also if that is in no selected partition.
        every = files or [sources[0].file]
        self._format: Format = create_format(format, every, reading, options)
        self._data = fingerprint(
            [
                self._format.name,
                [(os.path.basename(file.uri), file.size) for file in files],
                [list(condition) for condition in conditions],
                shuffle,
                seed,
            ]
        )
        self._all_units: list[Split] | None = None
        self._restored: Start | None = None
        self._next = 0
        self._progress = Progress(Start(0))

    # Iteration

    @property
    def next_epoch(self) -> int:
        """The epoch that ``for`` iterates next, from 0."""
        return self._next if self._restored is None else self._restored.epoch

    def begin(self, epoch: int) -> Start:
        """Return where an epoch starts: at the restored state if that is in it, used once."""
        restored, self._restored = self._restored, None
        self._next = epoch + 1
        return restored if restored and restored.epoch == epoch else Start(epoch)

    def records(self) -> Epochs[dict[str, Any]]:
        """Return the single records: dicts of Python values by column. The state is exact.

        A missing value is None. The errors are those of ``epoch``.
        """
        return Epochs(self, self._single_records)

    def to_numpy(self) -> Epochs[dict[str, Any]]:
        """Return batches as NumPy arrays by column.

        An array has shape (records,) for numbers and truth values, and for strings and bytes with
        dtype object; (records, ...) where all values of the batch are lists or arrays of one shape;
        else (records,) with dtype object. A missing number is NaN. The last batch of an epoch may
        have fewer records than ``batch_size``.

        Raises
        ------
        DataError
            While reading: see ``epoch``, and if NumPy is not installed.
        """
        return self._converted(methodcaller("to_numpy"))

    def to_arrow(self) -> Epochs[Any]:
        """Return batches as ``pyarrow.RecordBatch`` of at most ``batch_size`` rows.

        Those of Parquet and ORC are views of larger parts: no value is copied.

        Raises
        ------
        DataError
            While reading: see ``epoch``, and if pyarrow is not installed.
        """
        return self._converted(methodcaller("to_arrow"))

    def to_jax(self) -> Epochs[dict[str, Any]]:
        """Return batches as JAX arrays by column, on the default device.

        Shapes are those of ``to_numpy``; a column of strings or lists of different lengths stays a
        NumPy array. JAX makes 32-bit numbers of 64-bit ones unless ``jax_enable_x64`` is set.

        Raises
        ------
        DataError
            While reading: see ``epoch``, and if JAX is not installed.
        """
        return self._converted(to_jax_arrays)

    def to_torch(self) -> Any:
        """Return a ``torch.utils.data.IterableDataset`` of batches as tensors by column.

        Shapes are those of ``to_numpy``; a column of strings, bytes or lists of different lengths
        is a list. In a ``DataLoader(..., batch_size=None, num_workers=n)`` the workers divide the
        share: no record is lost or returned twice. ``loader(num_workers)`` of the result is a
        DataLoader that also advances the state of this dataset.

        Raises
        ------
        DataError
            If PyTorch is not installed; while reading: see ``epoch``.
        """
        return to_torch_dataset(self)

    def to_tf(self) -> Any:
        """Return a ``tf.data.Dataset`` of one epoch of batches: dicts of tensors by column.

        Each iteration of it is the next epoch. Shapes are those of ``to_numpy``, with an open
        number of records; strings and bytes are ``tf.string``. The pipeline requests batches before
        the program does: save ``state(batches=n)`` with the number that was trained.

        Raises
        ------
        DataError
            If a column has lists of different lengths or missing strings, there are no records, or
            TensorFlow is not installed; while reading: see ``epoch``.
        """
        return to_tf_dataset(self)

    # State

    def state(self, batches: int | None = None) -> dict[str, Any]:
        """Return where the iteration is, to be stored with a checkpoint.

        Parameters
        ----------
        batches
            The state after this number of batches of the current iteration, for a program that has
            not used all batches that it was given [the last batch that was returned].

        Returns
        -------
        dict
            For JSON, of some hundred bytes: version, digest of the data, rank, world, epoch, and a
            position for each stream.

        Raises
        ------
        DataError
            If that state is no longer known.
        """
        start = self._restored or self._progress.after(batches)
        return state_of(start, self._place, self._data)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue where a state was made: the next iteration starts there.

        The records that follow are exactly those that the other process would have returned next,
        in the same order, with any batch size.

        Parameters
        ----------
        state
            What ``state()`` returned.

        Raises
        ------
        DataError
            If it belongs to other data, or within an epoch to another rank or number of processes.
        """
        self._restored = start_of(state, self._place, self._data)

    def describe(self) -> dict[str, Any]:
        """Return what is read, for a log.

        Returns
        -------
        dict
            For JSON: ``format``, ``files``, ``bytes`` (of all files), ``columns`` (None if there
            are no records), ``partitions``, ``units``, ``rank``, ``world``, ``share_bytes`` (of
            this rank, in the next epoch), ``shuffle``, ``seed``. Sizes are in bytes.

        Raises
        ------
        DataError
            If a file cannot be read or is damaged: the first records are read.
        """
        share = self._share(self.next_epoch)
        sample = self.sample()
        return {
            "format": self._format.name,
            "files": len(self._sources),
            "bytes": sum(source.file.size for source in self._sources),
            "columns": None if sample is None else sample.names,
            "partitions": list(self._sources[0].partitions) if self._sources else [],
            "units": len(self._units()),
            "rank": self._place.rank,
            "world": self._place.world,
            "share_bytes": sum(split.weight for split in share),
            "shuffle": self._shuffle,
            "seed": self._seed,
        }

    def sample(self) -> Batch | None:
        """Return the first records of the files, at most ``batch_size``; None if there are none.

        The state stays.

        Raises
        ------
        DataError
            If a file cannot be read or is damaged.
        """
        for split in self._units():
            for _number, batch in self._read([split]):
                if len(batch):
                    return batch.slice(0, self._batch_size)
        return None

    @property
    def format(self) -> str:
        """Name of the files' format."""
        return self._format.name

    # For converters

    def items(self, epoch: int, position: Position, worker: int, workers: int) -> Iterator[Item]:
        """Iterate a stream: the share of a DataLoader worker, from a position on."""
        key = (self._seed, epoch, *self._place, worker, workers)
        return self._items(self.splits(epoch, worker, workers), position, self._shuffle, key)

    def splits(self, epoch: int, worker: int = 0, workers: int = 1) -> list[Split]:
        """Return the parts that a stream reads in an epoch, in order."""
        share = self._share(epoch)
        mine = sharding.share([split.weight for split in share], worker, workers)
        return merged(share[mine.start : mine.stop])

    # For predictions

    def units(self, size: int) -> list[Split]:
        """Return all units of the files in order; larger files are divided to about ``size``."""
        return [
            split for source in self._sources for split in self._format.splits(source.file, size)
        ]

    def items_of(self, splits: Sequence[Split]) -> Iterator[Item]:
        """Iterate the batches of some units, in order; they do not change the state."""
        return self._items(splits, Position(), 0, ())

    def place(self, split: Split, record: int) -> str:
        """Return file and, if it has smaller units, the unit of a record of a part."""
        found = self._format.place(split, record)
        return f"{split.file.uri}, {found}" if found else split.file.uri

    @property
    def files(self) -> list[FileEntry]:
        """The files that are read."""
        return [source.file for source in self._sources]

    # Progress

    def follow(self, start: Start, streams: int) -> Progress:
        """Begin to note the progress of an iteration."""
        self._progress = Progress(start, streams)
        return self._progress

    def __getstate__(self) -> dict[str, Any]:
        """Return what a DataLoader worker needs."""
        return {**self.__dict__, "_start": None, "_dataset": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the dataset in a DataLoader worker."""
        self.__dict__.update(state, _start=self._batches, _dataset=self)

    # Details

    def _converted(self, convert: Callable[[Batch], T]) -> Epochs[T]:
        return Epochs(self, lambda start: map(convert, self._batches(start)))

    def _batches(self, start: Start) -> Iterator[Batch]:
        (position,) = start.positions(1)
        progress = self.follow(start, 1)
        items = self.items(start.epoch, position, 0, 1)
        return _Followed(items, progress)

    def _single_records(self, start: Start) -> Iterator[dict[str, Any]]:
        (position,) = start.positions(1)
        progress = self.follow(start, 1)
        for item in self.items(start.epoch, position, 0, 1):
            before, count = item.before, len(item.batch)
            for number, record in enumerate(item.batch.records(), 1):
                last = number == count
                progress.move(item.after if last else before._replace(skip=before.skip + number))
                yield record

    def _units(self) -> list[Split]:
        """Return all units, in the order of the files."""
        if self._all_units is None:
            total = sum(source.file.size for source in self._sources)
            self._all_units = self.units(sharding.unit_size(total, self._place.world))
        return self._all_units

    def _share(self, epoch: int) -> list[Split]:
        """Return the units of this rank in an epoch, in their order."""
        units = self._units()
        order = sharding.order(len(units), self._shuffle > 0, self._seed, epoch)
        mine = sharding.share([units[i].weight for i in order], *self._place)
        return [units[i] for i in order[mine.start : mine.stop]]

    def _items(
        self, splits: Sequence[Split], position: Position, window: int, key: tuple[object, ...]
    ) -> Iterator[Item]:
        """Iterate the batches of parts from a position on; see ``streams.blocks``."""
        found = blocks(self._read, splits, position, self._batch_size, window, key)
        if self._prefetch:
            found = Prefetch(found, block_size, self._prefetch)
        return batches(found, self._batch_size)

    def _read(self, splits: Sequence[Split]) -> Iterator[tuple[int, Batch]]:
        """Yield the records of parts: with partition columns, filtered, the wanted columns."""
        for number, batch in self._format.read_all(splits):
            split = splits[number]
            constants = self._partitions[split.file.uri]
            more = {key: constants[key] for key in constants if key not in batch.names}
            if self._columns is not None:
                more = {key: value for key, value in more.items() if key in self._columns}
            if more:
                batch = batch.with_constants(more)
            batch = filtered(batch, self._conditions)
            if self._columns is not None and tuple(batch.names) != self._columns:
                batch = batch.select(self._columns)
            yield number, batch


class _Followed(Iterator[Batch]):
    """Batches of a stream; the progress follows those that were returned."""

    def __init__(self, items: Iterator[Item], progress: Progress) -> None:
        self._items, self._progress = items, progress

    def __next__(self) -> Batch:
        item = next(self._items)
        self._progress.advance(0, item.after)
        return item.batch

    def close(self) -> None:
        """End the background thread; it also ends when nothing refers to the iterator."""
        close = getattr(self._items, "close", None)
        if close is not None:
            close()
