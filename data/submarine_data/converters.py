"""Batches in the types of PyTorch, TensorFlow and JAX."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Iterator

from submarine_data.batches import Batch
from submarine_data.epochs import Epochs, EpochSource
from submarine_data.errors import DataError, require
from submarine_data.state import Start
from submarine_data.streams import Position
from submarine_runtime.translation import _

#: Types of NumPy that PyTorch lacks, or lacked for long, and those that hold their values.
_FOR_TORCH = {"uint16": "int32", "uint32": "int64"}


def to_jax_arrays(batch: Batch) -> dict[str, Any]:
    """Return a batch as JAX arrays; columns that are no numbers stay NumPy arrays."""
    jax = require("jax.numpy", "to_jax()")
    return {
        name: jax.asarray(array) if array.dtype.kind in "biufc" else array
        for name, array in batch.to_numpy().items()
    }


def to_tensors(batch: Batch) -> dict[str, Any]:
    """Return a batch as PyTorch tensors; columns that are no numbers are lists."""
    torch = require("torch", "to_torch()")
    found: dict[str, Any] = {}
    for name, array in batch.to_numpy().items():
        if array.dtype.kind not in "biufc":
            found[name] = array.tolist()
            continue
        array = array.astype(_FOR_TORCH.get(array.dtype.name, array.dtype), copy=False)
        # Arrow's memory is read-only, and torch warns about it.
        found[name] = torch.from_numpy(array if array.flags.writeable else array.copy())
    return found


def to_torch_dataset(dataset: EpochSource) -> Any:
    """Return an IterableDataset; see ``Dataset.to_torch``."""
    return _torch_class(TorchBatches)(dataset)


class TorchBatches:
    """The batches of a dataset as tensors: with ``torch.utils.data.IterableDataset``, its base."""

    def __init__(self, dataset: EpochSource) -> None:
        self._dataset = dataset

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterate the next epoch: in a DataLoader worker its part of the share.

        Each iteration creates new workers from this process, where they do not count the epochs:
        call ``set_epoch`` before, or use ``loader``.
        """
        info = require("torch", "to_torch()").utils.data.get_worker_info()
        if info is None:
            return map(to_tensors, iter(self._dataset))
        start = self._dataset.begin(self._dataset.next_epoch)
        position = start.positions(info.num_workers)[info.id]
        items = self._dataset.items(start.epoch, position, info.id, info.num_workers)
        return (to_tensors(item.batch) for item in items)

    def __reduce__(self) -> tuple[Any, ...]:
        return to_torch_dataset, (self._dataset,)

    def set_epoch(self, number: int) -> None:
        """Choose the epoch of the next iteration, for a DataLoader with workers."""
        if self._dataset.next_epoch != number:
            self._dataset.begin(number - 1)

    def loader(self, num_workers: int = 0, **options: Any) -> Any:
        """Return the batches through a DataLoader whose progress is the state of the dataset.

        Parameters
        ----------
        num_workers
            Processes that divide the share; 0 reads in this process.
        options
            Options of ``torch.utils.data.DataLoader``, for example ``prefetch_factor`` and
            ``pin_memory``; not those about batches.

        Returns
        -------
        Epochs
            ``for`` iterates the next epoch; ``epoch`` and ``epochs`` as for the dataset. The state
            counts the batches that were returned, not those that workers have read ahead.
        """

        def start(begin: Start) -> Iterator[dict[str, Any]]:
            return _loaded(self._dataset, begin, num_workers, options)

        return Epochs(self._dataset, start)


class _PositionedBatches:
    """What the DataLoader of ``loader`` iterates: stream, position after it, and tensors."""

    def __init__(self, dataset: EpochSource, start: Start, streams: int) -> None:
        self._dataset, self._start, self._streams = dataset, start, streams

    def __iter__(self) -> Iterator[tuple[int, tuple[int, ...], dict[str, Any]]]:
        info = require("torch", "to_torch()").utils.data.get_worker_info()
        # The DataLoader begins with its first worker: that one has the stream whose turn it is.
        number = ((info.id if info else 0) + self._start.next) % self._streams
        position = self._start.positions(self._streams)[number]
        items = self._dataset.items(self._start.epoch, position, number, self._streams)
        return ((number, tuple(item.after), to_tensors(item.batch)) for item in items)

    def __reduce__(self) -> tuple[Any, ...]:
        return _positioned, (self._dataset, self._start, self._streams)


def _positioned(dataset: EpochSource, start: Start, streams: int) -> Any:
    return _torch_class(_PositionedBatches)(dataset, start, streams)


def _loaded(
    dataset: EpochSource, start: Start, workers: int, options: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    data = require("torch.utils.data", "to_torch()")
    streams = max(1, workers)
    progress = dataset.follow(start, streams)
    loader = data.DataLoader(
        _positioned(dataset, start, streams),
        batch_size=None,
        num_workers=workers,
        collate_fn=_same,
        **options,
    )
    for number, position, tensors in loader:
        progress.advance(number, Position(*position))
        yield tensors


def _same(value: Any) -> Any:
    return value


@lru_cache(maxsize=None)
def _torch_class(mixin: type) -> Any:
    """Return a class with the base of PyTorch, which is imported only now."""
    base = require("torch.utils.data", "to_torch()").IterableDataset
    return type(mixin.__name__, (mixin, base), {"__doc__": mixin.__doc__})


def to_tf_dataset(dataset: EpochSource) -> Any:
    """Return a ``tf.data.Dataset``; see ``Dataset.to_tf``."""
    tensorflow = require("tensorflow", "to_tf()")
    sample = dataset.sample()
    if sample is None:
        raise DataError(_("to_tf() needs a record to know the columns, and there are none."))
    signature = {}
    for name, array in sample.to_numpy().items():
        if array.dtype.kind in "biufc":
            kind = array.dtype
        elif array.dtype.kind in "OUS" and all(isinstance(v, (str, bytes)) for v in array):
            kind = tensorflow.string
        else:
            raise DataError(
                _("The column {name} ({type}) is no tensor: select columns=[...].").format(
                    name=name, type=type(array[0]).__name__
                )
            )
        signature[name] = tensorflow.TensorSpec((None, *array.shape[1:]), kind)
    arrays = dataset.to_numpy()
    return tensorflow.data.Dataset.from_generator(lambda: iter(arrays), output_signature=signature)
