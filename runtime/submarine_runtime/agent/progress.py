"""Finds how far the program is in what it prints; reads only what is new, and not much of it.

Knows XLearning's ``report:progress:0.42`` and Keras' ``Epoch 2/5`` with its step counter. Guesses
nothing from any other text.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress

MAX_READ = 1 << 16
_OVERLAP = 64
_REPORT = re.compile(rb"report(?:er)?[: ]progress:\s*([0-9]{0,3}(?:\.[0-9]{1,9})?)(%?)")
_EPOCH = re.compile(rb"(?:^|[\r\n])Epoch (\d{1,7})/(\d{1,7})\b")
_STEP = re.compile(rb"[\r\n\x08m] {0,9}(\d{1,9})/(\d{1,9})(?:\x1b\[0m)? ")


class Progress:
    """Progress of one program from 0 to 1, None until it has said something."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        self._position = dict.fromkeys(paths, 0)
        self._epoch: tuple[int, int] | None = None
        self.value: float | None = None

    def look(self) -> float | None:
        """Read what is new; the newest word counts."""
        for path, position in self._position.items():
            with suppress(OSError):
                size = os.stat(path).st_size
                if size > position:
                    self._position[path] = size
                    with open(path, "rb") as file:
                        file.seek(max(0, position - _OVERLAP, size - MAX_READ))
                        self._read(file.read(MAX_READ + _OVERLAP))
        return self.value

    def _read(self, text: bytes) -> None:
        reported = None
        for reported in _REPORT.finditer(text):  # noqa: B007 - the last one is wanted
            pass
        if reported is not None and reported.group(1) not in (b"", b"."):
            share = float(reported.group(1)) / (100.0 if reported.group(2) else 1.0)
            self.value = min(1.0, share)
            return
        after = 0
        for match in _EPOCH.finditer(text):
            self._epoch, after = (int(match.group(1)), int(match.group(2))), match.end()
        if self._epoch is None or not self._epoch[1]:
            return
        epoch, epochs = self._epoch
        step = 0.0
        for match in _STEP.finditer(text, after):
            if int(match.group(2)):
                step = min(1.0, int(match.group(1)) / int(match.group(2)))
        value = min(1.0, (max(0, epoch - 1) + step) / epochs)
        self.value = value if after or self.value is None else max(self.value, value)
