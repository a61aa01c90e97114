"""Encode pandas objects, datetimes and tensors as nodes of ``values.json``; see ``values``.

A column is a NumPy array if its dtype has one, else a list of plain values; nothing is pickled.
The writer converts the value with the program's pandas or tensor library. The reader builds it with
its own pandas.
"""

from __future__ import annotations

import datetime
import importlib
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from submarine_runtime.values.decoder import Decoder
    from submarine_runtime.values.encoder import Encoder

#: Kinds of NumPy dtypes that a ``.npy`` file can hold: numbers, datetimes, timedeltas.
_PLAIN_KINDS = "biufcMm"
#: Names of extension dtypes; no other text of a file is passed to pandas.
_DTYPE = re.compile(
    r"(?:U?Int(?:8|16|32|64)|Float(?:32|64)|boolean|str|string(?:\[(?:python|pyarrow)\])?"
    r"|[a-z0-9_]{1,20}\[pyarrow\])\Z"
)
#: Maximum number of rows that a file can request without data for each of them.
_MAX_BARE = 10_000_000
_ZONE = re.compile(r"(?!dateutil)[A-Za-z][A-Za-z0-9_+:/-]{0,63}\Z")
_FREQUENCY = re.compile(r"[A-Za-z0-9-]{1,32}\Z")


class ValuesError(ValueError):
    """A value cannot be encoded, or a file of values cannot be read; one sentence."""


def encode_more(encoder: Encoder, value: Any, depth: int) -> dict[str, Any] | None:
    """Return the node of a datetime, a pandas object or a tensor; None for anything else."""
    kind = type(value)
    if kind in (datetime.datetime, datetime.date, datetime.time, datetime.timedelta):
        return _datetime(value)
    if kind.__name__ in ("Timestamp", "Timedelta", "NaTType"):
        pandas = sys.modules.get("pandas")
        if pandas is not None and (value is pandas.NaT or isinstance(value, pandas.Timedelta)):
            return {"kind": kind.__name__, "value": None if value is pandas.NaT else value.value}
        if pandas is not None and isinstance(value, pandas.Timestamp):
            zone = str(value.tz) if value.tz is not None else ""
            return {"kind": "Timestamp", "value": value.value, "zone": zone}
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(value, (pandas.DataFrame, pandas.Series, pandas.Index)):
        return _Frames(encoder, depth).node(value)
    return None


def array_of(value: Any) -> Any:
    """Return a tensor as a NumPy array; None if ``value`` is not a tensor.

    Raises
    ------
    Exception
        Any exception of the tensor's library.
    """
    library = type(value).__module__.split(".")[0]
    if library == "torch" and hasattr(value, "detach"):
        value = value.detach().cpu()
        if not str(value.layout).endswith("strided"):
            value = value.to_dense()
        if str(value.dtype) == "torch.bfloat16" or "float8" in str(value.dtype):
            value = value.float()
        return value.resolve_conj().resolve_neg().numpy()
    for method in ("numpy", "asnumpy"):
        if callable(getattr(value, method, None)) and not isinstance(value, type):
            return _standard_floats(getattr(value, method)())
    if library in ("jax", "jaxlib") and hasattr(value, "__array__"):
        return _standard_floats(importlib.import_module("numpy").asarray(value))
    return None


def _standard_floats(array: Any) -> Any:
    """Convert small floats that need the library's NumPy extension to float32."""
    name = str(getattr(array, "dtype", ""))
    return array.astype("float32") if name.startswith(("bfloat16", "float8")) else array


def _datetime(value: Any) -> dict[str, Any]:
    kind = type(value).__name__
    if kind == "timedelta":
        return {"kind": kind, "value": [value.days, value.seconds, value.microseconds]}
    node = {"kind": kind, "value": value.isoformat()}
    zone = getattr(getattr(value, "tzinfo", None), "key", None)
    if zone is not None:
        node["zone"] = str(zone)
    return node


class _Frames:
    """Encode one pandas object."""

    def __init__(self, encoder: Encoder, depth: int) -> None:
        self._encoder, self._depth = encoder, depth + 1
        self._pandas: Any = sys.modules["pandas"]

    def node(self, value: Any) -> dict[str, Any]:
        pandas = self._pandas
        if isinstance(value, pandas.Index):
            return self._index(value)
        if isinstance(value, pandas.Series):
            name, index = self._plain(value.name), self._index(value.index)
            return {"kind": "series", "name": name, "index": index, "data": self._column(value)}
        node = {
            "kind": "frame",
            "index": self._index(value.index),
            "columns": self._index(value.columns),
        }
        dtypes = set(value.dtypes)
        only = next(iter(dtypes)) if len(dtypes) == 1 else None
        if _in_numpy(only):
            return {**node, "block": self._plain(value.to_numpy())}
        columns = range(value.shape[1])
        return {**node, "data": [self._column(value.iloc[:, number]) for number in columns]}

    def _index(self, index: Any) -> dict[str, Any]:
        pandas = self._pandas
        if isinstance(index, pandas.MultiIndex):
            levels = [self._index(index.get_level_values(n)) for n in range(index.nlevels)]
            return {"kind": "multiindex", "levels": levels}
        name = self._plain(index.name)
        if isinstance(index, pandas.RangeIndex):
            bounds = [index.start, index.stop, index.step]
            return {"kind": "rangeindex", "name": name, "value": bounds}
        made = {"kind": "index", "name": name, "data": self._column(index.to_series())}
        return {**made, "freq": str(getattr(index, "freqstr", None) or "")}

    def _column(self, series: Any) -> dict[str, Any]:
        dtype = series.dtype
        name = str(dtype)
        if isinstance(dtype, self._pandas.CategoricalDtype):
            return {
                "kind": "categories",
                "codes": self._plain(series.cat.codes.to_numpy()),
                "categories": self._column(series.cat.categories.to_series()),
                "ordered": bool(series.cat.ordered),
            }
        if isinstance(dtype, self._pandas.DatetimeTZDtype):
            moments = series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
            return {"kind": "zoned", "data": self._plain(moments), "zone": str(dtype.tz)}
        if _in_numpy(dtype):
            return self._plain(series.to_numpy())
        if name != "object" and not _DTYPE.match(name):
            raise ValuesError(
                f"{self._encoder.name} holds a column of {name[:60]}, which cannot be returned; "
                "convert it with .astype('str') or to numbers."
            )
        missing = series.isna().to_numpy()
        if name == "object":
            return self._plain([None if void else one for one, void in zip(series, missing)])
        number = getattr(dtype, "numpy_dtype", None)
        if getattr(number, "kind", "") in "biuf" and number is not None:
            void = False if number.kind == "b" else 0
            values = self._plain(series.to_numpy(dtype=number, na_value=void))
            return {"kind": "masked", "dtype": name, "data": values, "mask": self._plain(missing)}
        listed = self._plain([None if void else one for one, void in zip(series, missing)])
        return {"kind": "listed", "dtype": name, "data": listed}

    def _plain(self, value: Any) -> dict[str, Any]:
        return self._encoder.node(value, self._depth)


def _in_numpy(dtype: Any) -> bool:
    """Return whether a ``.npy`` file can hold a column of this dtype: a dtype of NumPy itself."""
    return getattr(dtype, "kind", "?") in _PLAIN_KINDS and not hasattr(dtype, "na_value")


def decode_more(decoder: Decoder, node: Any) -> Any:
    """Return the value of a node of ``encode_more``.

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
        return pandas.Series(data, index=index, name=name)
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
    if not data:
        _check_bare(len(index))
    frame = pandas.DataFrame(data, index=index)
    frame.columns = columns
    return frame


def _check_bare(length: int) -> None:
    if length > _MAX_BARE:
        raise ValueError("more rows than a table without data may have")


def _checked(data: Any) -> Any:
    """Check that the encoder writes arrays of this kind; pandas makes objects of others."""
    if data.dtype.kind not in _PLAIN_KINDS:
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
    index = pandas.Index(_column(pandas, decoder, node["data"], None), name=name)
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
        if not _DTYPE.match(str(node["dtype"])):
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
