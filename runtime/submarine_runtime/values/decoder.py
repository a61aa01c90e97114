"""Decode the nodes of ``values.json`` to Python values; see ``values`` for the form.

The input is untrusted. Only data objects are created, and no more of them than the file holds.
"""

from __future__ import annotations

import importlib
import math
import zipfile
from typing import IO, Any

from submarine_runtime.values.encoder import SCALAR_KINDS, ValuesError
from submarine_runtime.values.frames import decode_more

_CHUNK = 1 << 20
#: Maximum number of elements of an array whose elements have no bytes (empty texts).
_MAX_EMPTY = 1_000_000
#: Kinds of ``value_frames``.
MORE = frozenset(
    {
        *("datetime", "date", "time", "timedelta", "Timestamp", "Timedelta", "NaTType"),
        *("frame", "series", "index", "rangeindex", "multiindex"),
    }
)
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def _numpy() -> Any:
    # Imported by name: this package uses NumPy if it is installed and does not depend on it.
    try:
        return importlib.import_module("numpy")
    except ImportError:
        raise ValuesError("This Python has no NumPy, and the values hold arrays.") from None


class Decoder:
    """Decode nodes; arrays are read from ``archive``."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._used: set[str] = set()

    def decode(self, node: Any) -> Any:
        """Return the value of ``node``; raise ValueError, TypeError or KeyError if malformed."""
        kind = node["kind"]
        if kind == "json":
            return node["value"]
        if kind == "float":
            return _SPECIAL[node["value"]]
        if kind == "bytes":
            return self._archive.read(self._once(node["file"]))
        if kind == "npy":
            return self._array(node["file"])
        if kind == "scalar":
            return self._scalar(node)
        if kind == "list":
            return [self.decode(item) for item in node["items"]]
        if kind == "tuple":
            return tuple(self.decode(item) for item in node["items"])
        if kind == "dict":
            return {self.decode(key): self.decode(value) for key, value in node["items"]}
        if kind == "item":
            return self.decode(node["value"])[()]
        if kind not in MORE:
            raise ValueError(f"unknown kind {str(kind)[:40]!r}")
        return decode_more(self, node)

    def _once(self, file: Any) -> str:
        """Return ``file``; reject a second use, so that a small file cannot fill the memory."""
        name = str(file)
        if name in self._used:
            raise ValueError(f"two values in the file {name[:40]!r}")
        self._used.add(name)
        return name

    def _scalar(self, node: Any) -> Any:
        numpy = _numpy()
        dtype, value = numpy.dtype(str(node["dtype"])), self.decode(node["value"])
        if dtype.kind not in SCALAR_KINDS:
            raise ValueError("a scalar that is no number")
        return dtype.type(complex(*value) if dtype.kind == "c" else value)

    def _array(self, file: str) -> Any:
        """Read an array after checking that the size in its header is the size of the file."""
        numpy = _numpy()
        info = self._archive.getinfo(self._once(file))
        with self._archive.open(info) as stream:
            version = numpy.lib.format.read_magic(stream)
            readers = {
                (1, 0): numpy.lib.format.read_array_header_1_0,
                (2, 0): numpy.lib.format.read_array_header_2_0,
            }
            # Version 3.0 differs in the encoding of field names only. NumPy writes 1.0 or 2.0
            # where they suffice.
            if version not in readers:
                raise ValueError(f"format {version} of an array")
            shape, fortran, dtype = readers[version](stream)
            if dtype.hasobject:
                raise ValueError("an array of objects")
            count = 1
            for length in shape:
                count *= length
            left = info.file_size - stream.tell()
            if count * dtype.itemsize != left or any(length < 0 for length in shape):
                raise ValueError("an array whose size is not what its header says")
            if not dtype.itemsize and count > _MAX_EMPTY:
                raise ValueError("an array of elements without size")
            data = bytearray(left)
            _fill(data, stream)
        order = "F" if fortran else "C"
        return numpy.ndarray(shape, dtype=dtype, buffer=data, order=order)


def _fill(data: bytearray, stream: IO[bytes]) -> None:
    """Read into ``data`` in pieces, so that a large array is not in memory twice."""
    position = 0
    while position < len(data):
        piece = stream.read(min(_CHUNK, len(data) - position))
        if not piece:
            raise ValueError("an array that ends too early")
        data[position : position + len(piece)] = piece
        position += len(piece)
