"""Detect the progress and the training scalars of a program at low cost.

Reads new output and new TensorBoard files, within limits. Supports XLearning's
``report:progress:0.42``, Keras' ``Epoch 2/5`` with its step counter, tqdm's bars and a TensorBoard
scalar named ``progress``. Other text is ignored.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.agent.measurement.event_files import EventFiles

MAX_READ = 1 << 16
#: Bytes that are read again, for words that were incomplete; and for whole lines of scalars, since
#: the rest of a line could be taken for a line with another name.
_OVERLAP = 64
_LINE = 512
MAX_BARS = 16
_REPORT = re.compile(rb"report(?:er)?[: ]progress:\s*([0-9]{0,3}(?:\.[0-9]{1,9})?)(%?)")
_EPOCH = re.compile(rb"(?:^|[\r\n])Epoch (\d{1,7})/(\d{1,7})\b")
_STEP = re.compile(rb"[\r\n\x08m] {0,9}(\d{1,9})/(\d{1,9})(?:\x1b\[0m)? ")
_BAR = re.compile(rb"([^\r\n|%]{0,60}?) {0,3}\d{1,3}%\|[^|\r\n]{0,300}\| *(\d{1,12})/(\d{1,12}) \[")
#: Number of bytes at the end of the text, and of lines in them, that are parsed.
MAX_TEXT = 1 << 13
MAX_LINES = 64
_NUMBER = rb"[-+]?(?:\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})(?:[eE][-+]?\d{1,3})?|nan|inf|-inf"
#: Rank of the process that wrote a line, in a container with several.
_LABEL = re.compile(rb"(^|[\r\n])\[\d{1,6}\] ")
_COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
_END = re.compile(rb"[\r\n\x08]+")
_SCALAR_STEP = re.compile(rb"\s{0,9}\d{1,9}/\d{1,9}\s")
_PAIR = re.compile(rb"(?:^|- )\s{0,3}([A-Za-z_][\w./]{0,47}): (" + _NUMBER + rb")(?=\s*(?:-|$))")
_PAIRS_ONLY = re.compile(
    rb"\s*[A-Za-z_][\w./]{0,47}: (?:"
    + _NUMBER
    + rb")(?:\s+-\s+[A-Za-z_][\w./]{0,47}: (?:"
    + _NUMBER
    + rb")){0,15}\s*"
)
_SCALAR_BAR = re.compile(
    rb"\d{1,3}%\|[^|]{0,300}\| *[\d.]+[kMG]?/[\d.]+[kMG]? \[[^\]]{0,80}?, ?[^\]]{0,200}\]"
)
_POSTFIX = re.compile(rb", ([A-Za-z_]\w{0,47})=(" + _NUMBER + rb")(?=[,\]])")
#: Words in such lines that are not scalars.
_NONE_OF_THEM = frozenset({"ETA"})


def _unlabelled(text: bytes) -> bytes:
    return _LABEL.sub(rb"\1", text)


class Progress:
    """Progress of one program from 0 to 1; None before the first report.

    Parameters
    ----------
    paths
        The program's logs.
    tensorboard
        Directory of event files; empty: none.

    Attributes
    ----------
    value
        The progress.
    scalars
        The newest value of each training scalar that was found.
    """

    def __init__(self, paths: tuple[str, ...], tensorboard: str = "") -> None:
        self._position = dict.fromkeys(paths, 0)
        self._epoch: tuple[int, int] | None = None
        self._reported = False
        self._bars = _Bars()
        self._tensorboard = tensorboard
        self._events: EventFiles | None = None
        self.value: float | None = None
        self.scalars: dict[str, float] = {}

    def update(self) -> float | None:
        """Read what is new; the newest report counts."""
        for path, position in self._position.items():
            with suppress(OSError):
                size = os.stat(path).st_size
                if size > position:
                    self._position[path] = size
                    begin = max(0, position - _LINE, size - MAX_READ)
                    with open(path, "rb") as file:
                        file.seek(begin)
                        text = file.read(MAX_READ + _LINE)
                    self.scalars.update(printed_scalars(_unlabelled(text), cut=begin > 0))
                    self._read(_unlabelled(text[max(0, position - _OVERLAP - begin) :]))
        self._read_events()
        return self.value

    def _read_events(self) -> None:
        if not self._tensorboard:
            return
        if self._events is None:
            # cost: the reader of event files, which most programs do not write.
            from submarine_runtime.agent.measurement.event_files import EventFiles

            self._events = EventFiles(self._tensorboard)
        for name, value in self._events.update().items():
            self.scalars[name] = value
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


def printed_scalars(text: bytes, *, cut: bool = False) -> dict[str, float]:
    """Return name -> newest value in the end of ``text``.

    Parameters
    ----------
    cut
        ``text`` may begin within a line; the rest of that line could be taken for another name.
    """
    lines = _END.split(_COLOUR.sub(b"", text[-MAX_TEXT:]))
    if cut or len(text) > MAX_TEXT:
        del lines[0]
    found: dict[str, float] = {}
    for line in reversed(lines[-MAX_LINES:]):
        for name, value in _of_line(line):
            key = name.decode("ascii", "replace")
            if key not in _NONE_OF_THEM:
                found.setdefault(key, float(value))
    return found


def _of_line(line: bytes) -> list[tuple[bytes, bytes]]:
    if b": " in line and (_SCALAR_STEP.match(line) or _PAIRS_ONLY.fullmatch(line)):
        return _PAIR.findall(line)
    if b"%|" in line and _SCALAR_BAR.search(line):
        return _POSTFIX.findall(line)
    return []
