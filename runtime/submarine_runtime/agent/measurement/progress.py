"""Detect the progress and the training scalars of a program at low cost.

Reads new output and new TensorBoard files, within limits. Progress comes from XLearning's
``report:progress:0.42``, Keras' ``Epoch 2/5`` with its step counter, tqdm's bars and a TensorBoard
scalar named ``progress``; ``training_scalars`` finds scalars. Other text is ignored.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.agent.measurement.training_scalars import TrainingScalars

MAX_READ = 1 << 16
#: Bytes that are read again, for words that were incomplete.
_OVERLAP = 64
MAX_BARS = 16
_REPORT = re.compile(rb"report(?:er)?[: ]progress:\s*([0-9]{0,3}(?:\.[0-9]{1,9})?)(%?)")
_EPOCH = re.compile(rb"(?:^|[\r\n])Epoch (\d{1,7})/(\d{1,7})\b")
_STEP = re.compile(rb"[\r\n\x08m] {0,9}(\d{1,9})/(\d{1,9})(?:\x1b\[0m)? ")
_BAR = re.compile(rb"([^\r\n|%]{0,60}?) {0,3}\d{1,3}%\|[^|\r\n]{0,300}\| *(\d{1,12})/(\d{1,12}) \[")
#: Rank of the process that wrote a line, in a container with several.
_LABEL = re.compile(rb"(^|[\r\n])\[\d{1,6}\] ")


class Progress:
    """Progress of one program from 0 to 1; None before the first report.

    Parameters
    ----------
    paths
        The program's logs.
    tensorboard
        Directory of event files; empty: none.
    folders
        Further directories in which libraries write event files or tables of scalars.

    Attributes
    ----------
    value
        The progress.
    """

    def __init__(
        self, paths: tuple[str, ...], tensorboard: str = "", folders: tuple[str, ...] = ()
    ) -> None:
        self._position = dict.fromkeys(paths, 0)
        #: Where the first line begins that was incomplete.
        self._line = dict.fromkeys(paths, 0)
        self._epoch: tuple[int, int] | None = None
        self._reported = False
        self._bars = _Bars()
        self._places = (tensorboard, folders)
        self._looked = False
        self._scalars: TrainingScalars | None = None
        self.value: float | None = None

    @property
    def scalars(self) -> dict[str, float]:
        """The newest value of each training scalar that was found."""
        return {} if self._scalars is None else self._scalars.values

    def no_number(self, seconds: float, *, last: bool) -> str:
        """Return the name of a loss that is no finite number; see ``TrainingScalars``."""
        return "" if self._scalars is None else self._scalars.no_number(seconds, last=last)

    def update(self, *, last: bool = False) -> float | None:
        """Read what is new; the newest report counts.

        Parameters
        ----------
        last
            The program has ended: a line without an end is complete.
        """
        for path in self._position:
            with suppress(OSError):
                self._read_log(path, last)
        if self._scalars is not None or self._looked or last:
            self._read_files(last)
        self._looked = True
        return self.value

    def _read_log(self, path: str, last: bool) -> None:
        size = os.stat(path).st_size
        position, line = self._position[path], self._line[path]
        if size <= (line if last else position):
            return
        self._position[path] = size
        begin = max(0, min(position - _OVERLAP, line), size - MAX_READ)
        with open(path, "rb") as file:
            file.seek(begin)
            text = file.read(size - begin)
        lines = text[max(0, line - begin) :]
        self._training_scalars().read_log(lines, cut=begin > line, growing=not last)
        ended = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
        self._line[path] = max(line, begin + ended if ended else 0)
        if size > position:
            self._read(_LABEL.sub(rb"\1", text[max(0, position - _OVERLAP - begin) :]))

    def _training_scalars(self) -> TrainingScalars:
        if self._scalars is None:
            # cost: a dozen regular expressions, which the program's start is not to wait for.
            from submarine_runtime.agent.measurement.training_scalars import TrainingScalars

            self._scalars = TrainingScalars(*self._places)
        return self._scalars

    def _read_files(self, last: bool) -> None:
        for name, value in self._training_scalars().read_files(last=last).items():
            if name.rpartition("/")[2] == "progress" and 0.0 <= value <= 1.0:
                self.value, self._reported = value, True

    def _read(self, text: bytes) -> None:
        reported = None
        for reported in _REPORT.finditer(text):  # noqa: B007 - the last one is wanted
            pass
        if reported is not None and reported.group(1) not in (b"", b"."):
            share = float(reported.group(1)) / (100.0 if reported.group(2) else 1.0)
            self.value, self._reported = min(1.0, share), True
        if not self._reported and not self._read_epochs(text):
            bars = self._bars.read(text)
            if self._epoch is None and self._bars.seen:
                self.value = bars

    def _read_epochs(self, text: bytes) -> bool:
        """Read Keras' epochs; return False if the program has none."""
        after = 0
        for match in _EPOCH.finditer(text):
            self._epoch, after = (int(match.group(1)), int(match.group(2))), match.end()
        if self._epoch is None or not self._epoch[1]:
            return False
        epoch, epochs = self._epoch
        step = 0.0
        for done, steps in (*_STEP.findall(text, after), *_bars_in(text, after)):
            if int(steps):
                step = min(1.0, int(done) / int(steps))
        value = min(1.0, (max(0, epoch - 1) + step) / epochs)
        self.value = value if after or self.value is None else max(self.value, value)
        return True


def _bars_in(text: bytes, after: int) -> list[tuple[bytes, bytes]]:
    if b"%|" not in text:
        return []
    return [(done, steps) for _, done, steps in _BAR.findall(text, after)]


class _Bars:
    """tqdm's bars: the first unfinished bar gives the progress of the program.

    A bar that starts again belongs to one of several epochs and is ignored.
    """

    def __init__(self) -> None:
        self._bars: dict[tuple[bytes, int], int] = {}
        self._repeated: set[tuple[bytes, int]] = set()

    @property
    def seen(self) -> bool:
        return bool(self._bars)

    def read(self, text: bytes) -> float | None:
        if b"%|" in text:
            for name, done, steps in _BAR.findall(text):
                self._note((name.strip(b"\x1b[A\r\n "), int(steps)), int(done))
        value = None
        for key, done in self._bars.items():
            if key in self._repeated or not key[1]:
                continue
            value = min(1.0, done / key[1])
            if value < 1.0:
                return value
        return value

    def _note(self, key: tuple[bytes, int], done: int) -> None:
        if key not in self._bars and len(self._bars) >= MAX_BARS:
            return
        if done * 2 < self._bars.get(key, 0):  # By much, because some text is read twice.
            self._repeated.add(key)
        self._bars[key] = done
