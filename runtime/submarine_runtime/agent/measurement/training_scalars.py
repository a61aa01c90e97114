"""The training scalars of a program: the newest value of each, and whether a loss is no number."""

from __future__ import annotations

import math

from submarine_runtime.agent.measurement.log_scalars import is_loss, printed_scalars
from submarine_runtime.agent.measurement.scalar_files import ScalarFiles

#: Names that are kept: a program may invent new ones for ever.
MAX_NAMES = 256
#: Seconds after which a loss that never was a number is reported.
FIRST_NUMBER = 60.0


class TrainingScalars:
    """The scalars of one program, from its logs and files.

    Parameters
    ----------
    tensorboard
        Directory of event files; empty: no files are read.
    folders
        Further directories in which libraries write event files or tables of scalars.

    Attributes
    ----------
    values
        The newest value of each scalar.
    """

    def __init__(self, tensorboard: str, folders: tuple[str, ...]) -> None:
        self._files = ScalarFiles(tensorboard, folders) if tensorboard else None
        self._finite: set[str] = set()
        self.values: dict[str, float] = {}

    def read_log(self, text: bytes, *, cut: bool, growing: bool) -> None:
        """Find scalars in new text of a log; parameters as of ``printed_scalars``."""
        self._add(printed_scalars(text, cut=cut, growing=growing))

    def read_files(self, *, last: bool) -> dict[str, float]:
        """Read what is new in files; return its scalars."""
        found = self._files.update(last=last) if self._files is not None else {}
        self._add(found)
        return found

    def no_number(self, seconds: float, *, last: bool) -> str:
        """Return the name of a loss that is no finite number; empty: there is none.

        Parameters
        ----------
        seconds
            Age of the program.
        last
            Whether the program has ended.
        """
        for name, value in self.values.items():
            if math.isfinite(value):
                self._finite.add(name)
            # The first value may be no number before the first step.
            elif (last or name in self._finite or seconds > FIRST_NUMBER) and is_loss(name):
                return name
        # The Trainer of Hugging Face leaves such losses out of the mean that it prints.
        hidden = self.values.get("loss") == 0.0
        return "grad_norm" if hidden and math.isnan(self.values.get("grad_norm", 0.0)) else ""

    def _add(self, found: dict[str, float]) -> None:
        for name, value in found.items():
            if name in self.values or len(self.values) < MAX_NAMES:
                self.values[name] = value
