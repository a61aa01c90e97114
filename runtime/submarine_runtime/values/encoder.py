"""Encode Python values as nodes of ``values.json``; see ``archive`` for the format.

A value of a type that is not supported is rejected with a sentence that names an alternative. This
module writes no file; it returns the functions that write them.

A pandas column is a NumPy array if its dtype has one, else a list of plain values. A value is
converted by the program's own pandas or tensor library.
"""

from __future__ import annotations

import datetime
import importlib
import math
import re
import sys
from typing import IO, Any, Callable

from submarine_runtime.translation import _

__all__ = ["Encoder", "ValuesError"]

FILES_LIMIT = 10_000
_DEPTH_LIMIT = 64
NODES_LIMIT = 2_000_000
_INTEGER_BITS = 4096
_TEXT_LIMIT = 200 << 20
_NODE_BYTES = 64
SCALAR_KINDS = "biufc"
#: Kinds of NumPy dtypes that a ``.npy`` file can hold: numbers, datetimes, timedeltas.
PLAIN_KINDS = "biufcMm"
#: Names of extension dtypes; no other text of a file is passed to pandas.
EXTENSION_DTYPE = re.compile(
    r"(?:U?Int(?:8|16|32|64)|Float(?:32|64)|boolean|str|string(?:\[(?:python|pyarrow)\])?"
    r"|[a-z0-9_]{1,20}\[pyarrow\])\Z"
)


class Encoder:
    """Encode values; ``files`` maps the file name of each array to the function that writes it.

    Parameters
    ----------
    limit
        Maximum number of bytes of all values (arrays by their size, the rest by an estimate).
    """

    def __init__(self, limit: int) -> None:
        self.files: dict[str, Callable[[IO[bytes]], object]] = {}
        self._limit = limit
        self._size = 0
        self._text = 0
        self._nodes = 0
        self.name = ""

    def encode(self, name: str, value: object) -> dict[str, Any]:
        """Return the node of ``value``; ``name`` is used in the message of a rejection.

        Raises
        ------
        ValuesError
            If the value, or a part of it, is not supported; the encoder can encode other values.
        """
        if not name.isidentifier():
            raise ValuesError(_("{name!r} is not a name.").format(name=name[:80]))
        before = (self._size, self._text, self._nodes, dict(self.files))
        self.name = name
        try:
            return self.node(value, 0)
        except Exception:
            self._size, self._text, self._nodes, self.files = before
            raise

    def node(self, value: Any, depth: int) -> dict[str, Any]:
        """Return the node of a value ``depth`` levels below the value that has a name."""
        self._count(depth)
        kind = type(value)
        if value is None or kind is bool:
            return {"kind": "json", "value": value}
        if kind is int:
            if value.bit_length() > _INTEGER_BITS:
                raise ValuesError(
                    _("{name} holds an integer of more than 1,200 digits.").format(name=self.name)
                )
            self._grow_text(value.bit_length() // 3)
            return {"kind": "json", "value": value}
        if kind is float:
            if math.isfinite(value):
                return {"kind": "json", "value": value}
            return {"kind": "float", "value": str(value)}
        if kind is str:
            self._grow_text(len(value) if value.isascii() else 6 * len(value))
            return {"kind": "json", "value": value}
        if kind is bytes:
            self._grow(len(value))
            return {"kind": "bytes", "file": self._file("bin", lambda s: s.write(value))}
        if kind in (list, tuple):
            return self._sequence(value, depth)
        if kind is dict:
            return self._mapping(value, depth)
        return self._from_numpy(value, depth)

    def _sequence(self, value: Any, depth: int) -> dict[str, Any]:
        nodes = [self.node(item, depth + 1) for item in value]
        if type(value) is list and all(node["kind"] == "json" for node in nodes):
            return {"kind": "json", "value": [node["value"] for node in nodes]}
        return {"kind": "tuple" if type(value) is tuple else "list", "items": nodes}

    def _mapping(self, value: Any, depth: int) -> dict[str, Any]:
        for key in value:
            if type(key) not in (str, int, bool, float, type(None)):
                raise ValuesError(
                    _(
                        "{name} holds a dict that has {key} as a key; keys must be strings or "
                        "numbers."
                    ).format(name=self.name, key=_type_name(key))
                )
        items = [[self.node(k, depth + 1), self.node(v, depth + 1)] for k, v in value.items()]
        plain = all(type(key) is str for key in value)
        if plain and all(node["kind"] == "json" for _, node in items):
            return {"kind": "json", "value": {k["value"]: v["value"] for k, v in items}}
        return {"kind": "dict", "items": items}

    def _from_numpy(self, value: Any, depth: int) -> dict[str, Any]:
        numpy = sys.modules.get("numpy")  # A value of a module exists only after its import.
        if numpy is not None and type(value) in (numpy.ndarray, numpy.memmap):
            return self._array(numpy, value)
        if numpy is not None and isinstance(value, numpy.str_):
            return self.node(str(value), 0)
        if numpy is not None and isinstance(value, numpy.generic):
            kind, itemsize = value.dtype.kind, value.dtype.itemsize
            if kind in SCALAR_KINDS and itemsize <= (16 if kind == "c" else 8):
                number = value.item()
                if kind == "c":
                    number = (number.real, number.imag)
                node = self.node(number, 0)
                return {"kind": "scalar", "dtype": value.dtype.name, "value": node}
            if kind in "Mm":
                return {"kind": "item", "value": self._array(numpy, numpy.asarray(value))}
        made = self._library_object(value, depth)
        if made is None:
            raise ValuesError(
                _("{name} holds {value}, {value_advice}.").format(
                    name=self.name, value=_type_name(value), value_advice=_advice(value)
                )
            )
        return made

    def _library_object(self, value: Any, depth: int) -> dict[str, Any] | None:
        """Return the node of a datetime, a pandas object or a tensor; None for anything else."""
        try:
            node = _object_node(self, value, depth)
            array = _tensor_array(value) if node is None else None
        except ValuesError:
            raise
        except Exception as error:
            message = " ".join(str(error).split())[:200]
            raise ValuesError(
                _(
                    "{name} holds {value}, which could not be converted ({name_2}: {message})."
                ).format(
                    name=self.name,
                    value=_type_name(value),
                    name_2=type(error).__name__,
                    message=message,
                )
            ) from None
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(array, numpy.ndarray):
            return self._array(numpy, numpy.asarray(array))
        return node

    def _array(self, numpy: Any, value: Any) -> dict[str, Any]:
        if value.dtype.hasobject:
            raise ValuesError(
                _(
                    "{name} holds an array of Python objects; convert it with "
                    "{name}.astype(float) or to another dtype of numbers or text."
                ).format(name=self.name)
            )
        if not _is_preserved(numpy, value.dtype):
            raise ValuesError(
                _(
                    "{name} holds an array of {dtype}, which a .npy file cannot hold; convert "
                    "it, for example with {name}.astype('float32')."
                ).format(name=self.name, dtype=str(value.dtype)[:60])
            )
        self._grow(value.nbytes)

        def write(stream: IO[bytes]) -> None:
            numpy.lib.format.write_array(stream, numpy.asarray(value), allow_pickle=False)

        return {"kind": "npy", "file": self._file("npy", write)}

    def _file(self, suffix: str, write: Callable[[IO[bytes]], object]) -> str:
        file = f"{len(self.files)}.{suffix}"
        if len(self.files) >= FILES_LIMIT:
            raise ValuesError(
                _("{name} holds more than {files_limit:,} arrays; stack them into one.").format(
                    name=self.name, files_limit=FILES_LIMIT
                )
            )
        self.files[file] = write
        return file

    def _count(self, depth: int) -> None:
        self._nodes += 1
        self._grow_text(_NODE_BYTES)
        if depth > _DEPTH_LIMIT:
            raise ValuesError(
                _("{name} is nested more than {depth_limit} levels deep, or holds itself.").format(
                    name=self.name, depth_limit=_DEPTH_LIMIT
                )
            )
        if self._nodes > NODES_LIMIT:
            raise ValuesError(
                _(
                    "{name} holds more than {nodes_limit:,} single values; make it a NumPy array."
                ).format(name=self.name, nodes_limit=NODES_LIMIT)
            )

    def _grow_text(self, count: int) -> None:
        """Count ``count`` bytes of ``values.json``, which is in memory as a whole."""
        self._text += count
        if self._text > _TEXT_LIMIT:
            raise ValuesError(
                _(
                    "With {name} numbers and text outside arrays take more than {text_limit} "
                    "MiB; make them NumPy arrays."
                ).format(name=self.name, text_limit=_TEXT_LIMIT >> 20)
            )
        self._grow(count)

    def _grow(self, count: int) -> None:
        self._size += count
        if self._size > self._limit:
            raise ValuesError(
                _(
                    "With {name} the values are larger than {limit} MiB together; put large "
                    "data where the job can read it and name it with --input_path."
                ).format(name=self.name, limit=self._limit >> 20)
            )


def _is_preserved(numpy: Any, dtype: Any) -> bool:
    """Return whether a .npy file preserves ``dtype``; bfloat16, for example, becomes raw bytes."""
    try:
        descr = numpy.lib.format.dtype_to_descr(dtype)
        return str(descr).isascii() and bool(numpy.lib.format.descr_to_dtype(descr) == dtype)
    except (TypeError, ValueError):
        return False


def _type_name(value: object) -> str:
    """Return a description of the type: ``a set``, ``an object``, ``a keras History``."""
    kind = type(value)
    name = kind.__qualname__
    if kind.__module__ != "builtins":
        name = f"{kind.__module__.split('.')[0]} {name}"
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name[:80]}"


def _advice(value: object) -> str:
    """Return what to send instead of ``value``."""
    kind = type(value)
    if kind.__name__ == "History" and hasattr(value, "history"):
        return _("which cannot be sent: use its .history, a dict of lists")
    if kind.__name__ in ("DataFrame", "Series", "LazyFrame", "Table"):
        return _("which cannot be sent: convert it to a pandas DataFrame with .to_pandas()")
    if callable(getattr(value, "numpy", None)):
        return _("which cannot be sent: use .numpy()")
    if kind in (set, frozenset):
        return _("which cannot be sent: use sorted(...), a list")
    if kind.__name__ == "MaskedArray":
        return _("which cannot be sent: use .filled()")
    if callable(value) or kind.__name__ == "module":
        return _("which is code: collect the cell that defines or imports it with %%submarine")
    return _(
        "which cannot be sent: JSON values, bytes, datetimes, NumPy arrays and numbers, "
        "tensors and pandas objects can"
    )


class ValuesError(ValueError):
    """A value cannot be encoded, or a file of values cannot be read; one sentence."""


def _object_node(encoder: Encoder, value: Any, depth: int) -> dict[str, Any] | None:
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


def _tensor_array(value: Any) -> Any:
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
        column = index.to_series().astype(index.dtype)  # pandas 3 makes texts of objects
        made = {"kind": "index", "name": name, "data": self._column(column)}
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
        if name != "object" and not EXTENSION_DTYPE.match(name):
            raise ValuesError(
                _(
                    "{encoder} holds a column of {name}, which cannot be returned; convert it "
                    "with .astype('str') or to numbers."
                ).format(encoder=self._encoder.name, name=name[:60])
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
    return getattr(dtype, "kind", "?") in PLAIN_KINDS and not hasattr(dtype, "na_value")
