r"""Lines of text: divided at ranges of bytes.

Format: lines that end with ``\n`` or ``\r\n``. A line belongs to the range in which it starts, as
in Hadoop's TextInputFormat.
"""

from __future__ import annotations

import zlib
from typing import BinaryIO, Iterator, Sequence

from submarine_data.batches import Batch
from submarine_data.errors import DataError
from submarine_data.file_systems import FileEntry
from submarine_data.formats.base import (
    CHUNK,
    Format,
    Reading,
    Split,
    damaged,
    is_compressed,
    open_decompressed,
)
from submarine_data.sharding import ranges
from submarine_runtime.translation import _

#: What a damaged compressed file raises; an error of its store is a DataError, which may be an
#: OSError too.
DECOMPRESSION_ERRORS = (EOFError, OSError, zlib.error)


class TextFormat(Format):
    r"""Files of lines; the column is ``text``, without the end of the line.

    Files with the suffix ``.gz`` or ``.bz2`` are decompressed, and not divided.

    Parameters
    ----------
    files, reading
        See ``Format``.
    encoding
        Encoding of the text; one in which ``\n`` is one byte of its own.
    """

    name = "text"

    def __init__(
        self, files: Sequence[FileEntry], reading: Reading, *, encoding: str = "utf-8"
    ) -> None:
        super().__init__(files, reading)
        self._encoding = encoding

    def splits(self, file: FileEntry, unit: int) -> list[Split]:
        """Divide a file at ranges of bytes, unless it is compressed."""
        return byte_ranges(file, unit)

    def read(self, split: Split) -> Iterator[Batch]:
        """Yield the lines that start in a range of bytes."""
        for offset, lines in line_blocks(split):
            yield Batch({"text": decoded(split.file, offset, lines, self._encoding)})


def byte_ranges(file: FileEntry, unit: int) -> list[Split]:
    """Divide a file at ranges of bytes, unless it is compressed as a whole."""
    if is_compressed(file):
        return [Split(file, 0, None, file.size)]
    return [Split(file, start, end, end - start) for start, end in ranges(file.size, unit)]


def line_blocks(split: Split) -> Iterator[tuple[int, list[bytes]]]:
    """Yield offsets and lines, with their ends, that start in a range: about 1 MiB at a time."""
    with open_decompressed(split.file) as source:
        position = split.start
        try:
            position = _first_line(source, position)
            while split.end is None or position < split.end:
                lines = _lines(source, None if split.end is None else split.end - position)
                if not lines:
                    _check_end(split, position)
                    return
                yield position, lines
                position += sum(map(len, lines))
        except DataError:
            raise
        except DECOMPRESSION_ERRORS as exc:
            raise damaged(split.file, f"byte {position}", exc) from exc


def _first_line(source: BinaryIO, start: int) -> int:
    """Go to the first line that starts at an offset or after it; return its offset."""
    if start == 0:
        return 0
    source.seek(start - 1)
    return start - 1 + len(source.readline())


def raw_lines(split: Split, size: int) -> Iterator[tuple[memoryview, int]]:
    """Yield lines that start in a range as they are, about ``size`` bytes, and their number.

    The last line of a file gets a line feed if it has none. A view is valid until the next one.
    """
    with open_decompressed(split.file) as source:
        position = split.start
        try:
            position = _first_line(source, position)
            buffer, filled = bytearray(max(CHUNK, 2 * size)), 0
            while True:
                room = len(buffer) - filled
                left = room if split.end is None else min(room, split.end - position)
                count = _read_into(source, memoryview(buffer)[filled : filled + left])
                position, filled = position + count, filled + count
                if count <= 0:
                    _check_end(split, position)
                    rest = bytes(buffer[:filled])
                    if rest and not rest.endswith(b"\n"):
                        rest += source.readline()
                    if rest:
                        rest = rest if rest.endswith(b"\n") else rest + b"\n"
                        yield memoryview(rest), rest.count(b"\n")
                    return
                start = 0
                while True:
                    end = buffer.rfind(b"\n", start, min(start + size, filled)) + 1
                    if not end:
                        end = buffer.find(b"\n", start, filled) + 1
                    if not end:
                        break
                    yield memoryview(buffer)[start:end], buffer.count(b"\n", start, end)
                    start = end
                if not start and filled == len(buffer):
                    buffer = bytearray(buffer) + bytes(len(buffer))  # A long line.
                elif start:
                    buffer[: filled - start] = buffer[start:filled]
                    filled -= start
        except DECOMPRESSION_ERRORS as exc:
            raise damaged(split.file, f"byte {position}", exc) from exc


def _check_end(split: Split, position: int) -> None:
    """Raise DataError if a file ends before a range does: it became shorter."""
    whole = 0 if is_compressed(split.file) else split.file.size
    if position < (whole if split.end is None else split.end):
        reason = _("it ends there, and had {size} bytes when it was listed")
        raise damaged(split.file, f"byte {position}", reason.format(size=split.file.size))


def _read_into(source: BinaryIO, view: memoryview) -> int:
    if len(view) == 0:
        return 0
    count: int = source.readinto(view)  # type: ignore[attr-defined]
    return count


def _lines(source: BinaryIO, left: int | None) -> list[bytes]:
    """Return lines that start in the next ``left`` bytes."""
    if left == 1:
        line = source.readline()
        return [line] if line else []
    # `readlines` ends with the line that exceeds the number.
    return source.readlines(CHUNK if left is None else min(CHUNK, left - 1))


def decoded(file: FileEntry, offset: int, lines: list[bytes], encoding: str) -> list[str]:
    """Return lines as text without their ends; ``offset`` is that of the first."""
    found = []
    try:
        for line in lines:
            text = line.decode(encoding)
            found.append(text[:-2] if text.endswith("\r\n") else text.rstrip("\n"))
            offset += len(line)
    except UnicodeDecodeError as exc:
        raise damaged(file, f"byte {offset + exc.start}", exc.reason) from exc
    return found
