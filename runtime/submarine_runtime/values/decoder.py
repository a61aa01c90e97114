"""Decode the nodes of ``values.json`` to Python values; see ``archive`` for the format.

The input is untrusted. Only data objects are created, and no more of them than the file holds.
"""

from __future__ import annotations

import datetime
import importlib
import math
import re
import shlex
import sys
import zipfile
from contextlib import suppress
from typing import IO, Any

from submarine_runtime.translation import _
from submarine_runtime.values.encoder import EXTENSION_DTYPE, PLAIN_KINDS, SCALAR_KINDS, ValuesError

_CHUNK = 1 << 20
#: Maximum number of elements of an array with elements of no bytes (empty strings).
_MAX_EMPTY = 1_000_000
#: Kinds of ``_decode_object``.
_OBJECT_KINDS = frozenset(
    {
        *("datetime", "date", "time", "timedelta", "Timestamp", "Timedelta", "NaTType"),
        *("frame", "series", "index", "rangeindex", "multiindex"),
    }
)
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
#: Maximum number of rows that a file can request without data for each of them.
_MAX_BARE = 10_000_000
_ZONE = re.compile(r"(?!dateutil)[A-Za-z][A-Za-z0-9_+:/-]{0,63}\Z")
_FREQUENCY = re.compile(r"[A-Za-z0-9-]{1,32}\Z")


def _numpy() -> Any:
    # Imported by name: this package uses NumPy if it is installed and does not depend on it.
    try:
        return importlib.import_module("numpy")
    except ImportError:
        raise ValuesError(
            _(
                "The values contain arrays, and this Python has no NumPy; type "
                "{python} -m pip install numpy"
            ).format(python=shlex.quote(sys.executable or "python3"))
        ) from None


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
        if kind not in _OBJECT_KINDS:
            raise ValueError(f"unknown kind {str(kind)[:40]!r}")
        return _decode_object(self, node)

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
                raise ValueError("an array with another size than its header states")
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


def _decode_object(decoder: Decoder, node: Any) -> Any:
    """Return the value of a node of a datetime, a pandas object or a tensor.

    Without pandas a DataFrame is a dict of its columns, a Series or Index an array or list.
    """
    kind = node["kind"]
    if kind == "timedelta":
        days, seconds, microseconds = map(int, node["value"])
        return datetime.timedelta(days, seconds, microseconds)
    if kind in ("datetime", "date", "time"):
        value = getattr(datetime, kind).fromisoformat(str(node["value"]))
        zone = _zone(node.get("zone"))
        return value.replace(tzinfo=zone) if zone is not None and kind != "date" else value
    try:
        pandas: Any = importlib.import_module("pandas")
    except ImportError:
        return _without_pandas(decoder, node)
    if kind == "NaTType":
        return pandas.NaT
    if kind == "Timedelta":
        return pandas.Timedelta(int(node["value"]), unit="ns")
    if kind == "Timestamp":
        moment = pandas.Timestamp(int(node["value"]), unit="ns")
        return moment.tz_localize("UTC").tz_convert(_name(node["zone"])) if node["zone"] else moment
    if kind == "series":
        index = _index(pandas, decoder, node["index"])
        data, name = (
            _column(pandas, decoder, node["data"], len(index)),
            decoder.decode(node["name"]),
        )
        return pandas.Series(data, index=index, name=name, dtype=_kept(data))
    if kind != "frame":
        return _index(pandas, decoder, node)
    index, columns = (_index(pandas, decoder, node[part]) for part in ("index", "columns"))
    if "block" in node:
        block = decoder.decode(node["block"])
        if getattr(block, "shape", None) != (len(index), len(columns)):
            raise ValueError("a table of another size than its index and columns")
        return pandas.DataFrame(_checked(block), index=index, columns=columns)
    if len(node["data"]) != len(columns):
        raise ValueError("a table with another number of columns than names")
    data = {
        number: _column(pandas, decoder, column, len(index))
        for number, column in enumerate(node["data"])
    }
    data = {
        number: pandas.Series(column, index=index, dtype=object) if _kept(column) else column
        for number, column in data.items()
    }
    if not data:
        _check_bare(len(index))
    frame = pandas.DataFrame(data, index=index)
    frame.columns = columns
    return frame


def _kept(data: Any) -> Any:
    """Return the dtype of objects, for which pandas 3 would infer ``str``; None for others."""
    return object if str(getattr(data, "dtype", "")) == "object" else None


def _check_bare(length: int) -> None:
    if length > _MAX_BARE:
        raise ValueError("more rows than a table without data may have")


def _checked(data: Any) -> Any:
    """Check that the encoder writes arrays of this kind; pandas makes objects of others."""
    if data.dtype.kind not in PLAIN_KINDS:
        raise ValueError(f"a column of {str(data.dtype)[:40]}")
    return data


def _index(pandas: Any, decoder: Decoder, node: Any) -> Any:
    kind = node["kind"]
    if kind == "multiindex":
        levels = [_index(pandas, decoder, level) for level in node["levels"]]
        if all(isinstance(level, pandas.RangeIndex) for level in levels):
            _check_bare(max(map(len, levels), default=0))
        return pandas.MultiIndex.from_arrays(levels, names=[level.name for level in levels])
    name = decoder.decode(node["name"])
    if kind == "rangeindex":
        start, stop, step = map(int, node["value"])
        return pandas.RangeIndex(start, stop, step, name=name)
    if kind != "index":
        raise ValueError(f"unknown kind {str(kind)[:40]!r}")
    data = _column(pandas, decoder, node["data"], None)
    index = pandas.Index(data, name=name, dtype=_kept(data))
    if _FREQUENCY.match(str(node.get("freq") or "")):
        with suppress(ValueError, TypeError, AttributeError):  # The name in another pandas version.
            index.freq = str(node["freq"])
    return index


def _column(pandas: Any, decoder: Decoder, node: Any, length: int | None) -> Any:
    kind = node["kind"]
    if kind == "categories":
        categories = pandas.Index(_column(pandas, decoder, node["categories"], None))
        codes = decoder.decode(node["codes"])
        data = pandas.Categorical.from_codes(codes, categories, ordered=bool(node["ordered"]))
    elif kind == "zoned":
        moments = pandas.DatetimeIndex(decoder.decode(node["data"])).tz_localize("UTC")
        data = moments.tz_convert(_name(node["zone"])).array
    elif kind in ("masked", "listed"):
        if not EXTENSION_DTYPE.match(str(node["dtype"])):
            raise ValueError(f"unknown dtype {str(node['dtype'])[:40]!r}")
        data = pandas.Series(decoder.decode(node["data"])).astype(str(node["dtype"]))
        if kind == "masked":
            data[decoder.decode(node["mask"])] = pandas.NA
        data = data.array
    else:
        data = decoder.decode(node)
        if isinstance(data, list):
            data = pandas.Series(data, dtype="object").array
        elif getattr(data, "ndim", 0) != 1:
            raise ValueError("a column that is no list and no array of one dimension")
        else:
            data = _checked(data)
    if length is not None and len(data) != length:
        raise ValueError("a column of another length than its index")
    return data


def _without_pandas(decoder: Decoder, node: Any) -> Any:
    kind = node["kind"]
    if kind == "frame":
        names = _without_pandas(decoder, node["columns"])
        if "block" in node:
            block = decoder.decode(node["block"])
            return {name: block[:, number] for number, name in enumerate(names)}
        columns = [_without_pandas(decoder, column) for column in node["data"]]
        return dict(zip(names, columns))
    if kind in ("series", "index", "zoned", "listed"):
        return _without_pandas(decoder, node["data"])
    if kind == "masked":
        pairs = zip(decoder.decode(node["data"]).tolist(), decoder.decode(node["mask"]).tolist())
        return [None if void else value for value, void in pairs]
    if kind == "categories":
        names = list(_without_pandas(decoder, node["categories"]))
        codes = decoder.decode(node["codes"]).tolist()
        return [names[code] if code >= 0 else None for code in codes]
    if kind == "rangeindex":
        numbers = range(*map(int, node["value"]))
        _check_bare(len(numbers))
        return numbers
    if kind == "multiindex":
        return list(zip(*(_without_pandas(decoder, level) for level in node["levels"])))
    if kind == "NaTType":
        return None
    if kind == "Timedelta":
        return datetime.timedelta(microseconds=int(node["value"]) // 1000)
    if kind == "Timestamp":
        utc = datetime.timezone.utc
        moment = datetime.datetime.fromtimestamp(int(node["value"]) / 1e9, utc)
        return moment if node["zone"] else moment.replace(tzinfo=None)
    return decoder.decode(node)


def _name(zone: Any) -> str:
    if not _ZONE.match(str(zone)):
        raise ValueError(f"unknown time zone {str(zone)[:40]!r}")
    return str(zone)


def _zone(name: Any) -> Any:
    """Return the time zone; None if it is not installed here: the offset is kept."""
    if name is None:
        return None
    try:
        return importlib.import_module("zoneinfo").ZoneInfo(_name(name))
    except (ImportError, KeyError, OSError):
        return None
