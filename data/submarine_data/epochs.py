"""Iterate the epochs of a dataset, in any form of its batches."""

from __future__ import annotations

from typing import Any, Callable, Generic, Iterator, TypeVar

from submarine_data.batches import Batch
from submarine_data.state import Progress, Start
from submarine_data.streams import Item, Position

T = TypeVar("T")
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object


class EpochSource(Protocol):
    """What iterators and converters use of a dataset; ``Dataset`` describes the methods."""

    @property
    def next_epoch(self) -> int:
        """The epoch that is iterated next."""

    def begin(self, epoch: int) -> Start:
        """Return where an epoch starts."""

    def follow(self, start: Start, streams: int) -> Progress:
        """Begin to note the progress of an iteration."""

    def items(self, epoch: int, position: Position, worker: int, workers: int) -> Iterator[Item]:
        """Iterate a stream."""

    def sample(self) -> Batch | None:
        """Return the first records of the files."""

    def __iter__(self) -> Iterator[Batch]: ...

    def to_numpy(self) -> Epochs[dict[str, Any]]:
        """Return batches as NumPy arrays."""


class Epochs(Generic[T]):
    """The batches of a dataset in some form: ``for`` iterates the next epoch.

    A restored state is where the first epoch starts. An iteration that is left early is not
    continued: the next one is that of the next epoch.

    Parameters
    ----------
    dataset
        The dataset whose state follows the iteration.
    start
        Function that iterates one epoch from a start.
    """

    def __init__(self, dataset: EpochSource, start: Callable[[Start], Iterator[T]]) -> None:
        self._dataset, self._start = dataset, start

    def __iter__(self) -> Iterator[T]:
        """Iterate the next epoch: the first, or the one of the restored state."""
        return self.epoch(self._dataset.next_epoch)

    def epoch(self, number: int) -> Iterator[T]:
        """Iterate an epoch.

        Parameters
        ----------
        number
            From 0. With the epoch of a restored state the iteration starts where that was made.

        Raises
        ------
        DataError
            While reading: if a file is damaged, its store does not answer, a package for its format
            is missing, or its columns differ from those of the first.
        """
        return self._start(self._dataset.begin(number))

    def epochs(self, count: int) -> Iterator[T]:
        """Iterate the epochs up to ``count`` in total, from the next one on.

        Parameters
        ----------
        count
            Number of epochs, those included that were iterated before or are before a restored
            state.

        Raises
        ------
        DataError
            While reading: see ``epoch``.
        """
        while self._dataset.next_epoch < count:
            yield from self
