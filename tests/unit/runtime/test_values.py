"""Values without pickle: what goes in comes out, what cannot travel is refused, lies are found."""

from __future__ import annotations

import functools
import io
import json
import math
import subprocess
import sys
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import submarine_runtime
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.outputs import (
    parse_names,
    send_values,
    unpack_values as unpack_for_person,
)
from submarine_runtime.values import ValuesError, pack_values, unpack_values
from tests.random_examples import examples


def there_and_back(**values: Any) -> dict[str, Any]:
    buffer = io.BytesIO()
    assert pack_values(values, buffer) == {}
    buffer.seek(0)
    return unpack_values(buffer).values


KEYS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats()
    | st.text(max_size=9)
    | st.binary(max_size=9)
)
NESTED = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=20,
)


@given(NESTED)
def test_python_values_come_back_as_they_went(value: Any) -> None:
    back = there_and_back(x=value)["x"]
    assert repr(back) == repr(value)


ARRAYS = [
    np.arange(6.0).reshape(2, 3),
    np.arange(6).reshape(2, 3).T,
    np.zeros((0, 3), "int8"),
    np.array(3.5),
    np.array("text"),
    np.array([b"ab", b"c"]),
    np.array([True, False]),
    np.array(["2026-01-01"], dtype="datetime64[D]"),
    np.array([1 + 2j], "complex64"),
    np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    np.arange(10)[::-2],
    np.arange(4, dtype=">i2"),
    np.zeros(3, "U0"),
    np.array([np.nan, np.inf]),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_arrays_come_back_as_they_went(array: np.ndarray[Any, Any]) -> None:
    back = there_and_back(x=array, y={"deep": [array]})
    for found in (back["x"], back["y"]["deep"][0]):
        assert type(found) is np.ndarray
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(found, array)
        assert found.flags.writeable


@pytest.mark.parametrize(
    "number",
    [
        np.float32(0.1),
        np.float64(0.1),
        np.int64(-5),
        np.uint8(255),
        np.bool_(True),
        np.complex64(1 + 2j),
        np.float16(2.5),
        np.float32("nan"),
    ],
    ids=repr,
)
def test_numpy_numbers_keep_their_type(number: Any) -> None:
    back = there_and_back(x=number, y=[number])
    assert repr(back["x"]) == repr(number)
    assert type(back["y"][0]) is type(number)


def test_a_history_as_keras_gives_it() -> None:
    history = {"loss": [0.5, 0.25], "accuracy": [np.float32(0.9)]}
    assert there_and_back(history=history)["history"] == history


class History:
    history = {"loss": [1.0]}


class Tensor:
    def numpy(self) -> None:
        """Like TensorFlow's."""


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (object(), "x holds an object"),
        ({1, 2}, "use sorted"),
        (History(), "use its .history"),
        (Tensor(), r"use .numpy\(\)"),
        (np.array([object()]), "array of Python objects"),
        (np.zeros(2, dtype=[("a", "O")]), "array of Python objects"),
        (np.zeros(2, dtype=[("é", "i4")]), "cannot hold"),
        (np.array(["a"], dtype=np.dtypes.StringDType()), "cannot hold|Python objects"),
        (np.ma.array([1]), "filled"),
        (np.longdouble(1), "longdouble"),
        (len, "is code"),
        (json, "is code"),
        (History, "is code"),
        ({(1, 2): 3}, "as a key"),
        ([1, [object()]], "x holds an object"),
        (2**5000, "1,200 digits"),
    ],
)
def test_what_cannot_travel_is_refused_by_name(value: Any, words: str) -> None:
    with pytest.raises(ValuesError, match=words):
        pack_values({"x": value}, io.BytesIO())


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ValuesError, match="holds itself"):
        pack_values({"x": value}, io.BytesIO())


def test_one_bad_value_does_not_lose_the_others() -> None:
    buffer = io.BytesIO()
    values = {"a": np.arange(3), "bad": [np.arange(4), object()], "b": np.arange(5), "c": 1}
    refused = pack_values(values, buffer, strict=False)
    assert list(refused) == ["bad"]
    back = unpack_values(buffer)
    assert back.refused == refused
    assert [list(back.values["a"]), list(back.values["b"])] == [[0, 1, 2], [0, 1, 2, 3, 4]]
    with zipfile.ZipFile(buffer) as archive:
        assert sorted(archive.namelist()) == ["0.npy", "1.npy", "values.json"]


def test_size_is_bounded_before_anything_is_copied() -> None:
    big = np.broadcast_to(np.zeros(1), (1 << 40,))
    with pytest.raises(ValuesError, match="larger than 1024 MiB"):
        pack_values({"x": big}, io.BytesIO())
    with pytest.raises(ValuesError, match="larger than 1 MiB"):
        pack_values({"x": b"a" * (2 << 20)}, io.BytesIO(), limit=1 << 20)
    with pytest.raises(ValuesError, match="larger than 0 MiB"):
        pack_values({"x": list(range(1000))}, io.BytesIO(), limit=1000)


def test_the_same_values_give_the_same_bytes() -> None:
    first, second = io.BytesIO(), io.BytesIO()
    pack_values({"a": np.arange(3), "b": {"x": 1}}, first)
    pack_values({"a": np.arange(3), "b": {"x": 1}}, second)
    assert first.getvalue() == second.getvalue()


def archive(
    index: Any, members: dict[str, bytes] | None = None, how: int = zipfile.ZIP_STORED
) -> io.BytesIO:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", how) as target:
        if index is not None:
            text = index if isinstance(index, str) else json.dumps({"version": 1, "values": index})
            target.writestr("values.json", text)
        for name, content in (members or {}).items():
            target.writestr(name, content)
    return buffer


def npy(header: str, data: bytes = b"", version: bytes = b"\x01\x00") -> dict[str, bytes]:
    text = header.encode() + b"\n"
    return {"0.npy": b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text + data}


ARRAY = {"x": {"kind": "npy", "file": "0.npy"}}
HOSTILE = {
    "not a zip": io.BytesIO(b"PK nonsense"),
    "empty": io.BytesIO(b""),
    "no index": archive(None),
    "index is not JSON": archive("{"),
    "index is a list": archive("[]"),
    "other version": archive('{"version": 2, "values": {}}'),
    "no values": archive('{"version": 1}'),
    "unknown kind": archive({"x": {"kind": "pickle"}}),
    "no kind": archive({"x": 1}),
    "deep": archive('{"version": 1, "values": ' + '{"x":' * 50_000 + "1" + "}" * 50_001),
    "path": archive({}, {"../../evil.npy": b""}),
    "absolute": archive({}, {"/etc/x.npy": b""}),
    "surprise": archive({}, {"evil.py": b""}),
    "compressed": archive({}, {"0.npy": b"0" * 10_000}, zipfile.ZIP_DEFLATED),
    "member missing": archive({"x": {"kind": "npy", "file": "9.npy"}}),
    "index as array": archive({"x": {"kind": "npy", "file": "values.json"}}),
    "objects": archive(
        ARRAY, npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", b"." * 8)
    ),
    "huge": archive(ARRAY, npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1 << 40,)}")),
    "huge literal": archive(
        ARRAY, npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,)}")
    ),
    "negative": archive(
        ARRAY, npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1)}", b"." * 8)
    ),
    "code": archive(ARRAY, npy("__import__('os').abort()")),
    "too short": archive(ARRAY, npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}")),
    "future format": archive(ARRAY, npy("{}", version=b"\x09\x00")),
    "scalar of objects": archive(
        {"x": {"kind": "scalar", "dtype": "O", "value": {"kind": "json", "value": 1}}}
    ),
    "scalar too large": archive(
        {"x": {"kind": "scalar", "dtype": "int8", "value": {"kind": "json", "value": 10**30}}}
    ),
    "list as key": archive(
        {"x": {"kind": "dict", "items": [[{"kind": "list", "items": []}, {"kind": "json"}]]}}
    ),
}


@pytest.mark.parametrize("name", list(HOSTILE))
def test_hostile_files_are_refused(name: str) -> None:
    with pytest.raises(ValuesError):
        unpack_values(HOSTILE[name])
    with pytest.raises(SubmarineError, match="cannot be read"):
        unpack_for_person(HOSTILE[name].getvalue())


def test_a_file_above_the_limit_is_refused_before_it_is_read() -> None:
    source = archive({"x": {"kind": "npy", "file": "0.npy"}}, {"0.npy": b"0" * 100_000})
    with pytest.raises(ValuesError, match="larger than"):
        unpack_values(source, limit=50_000)


VALID = io.BytesIO()
pack_values({"a": np.arange(5), "b": [1, (2.5, b"x")], "c": np.float32(1)}, VALID)


@settings(max_examples=examples(300))
@given(st.integers(0, len(VALID.getvalue()) - 1), st.integers(0, 255))
def test_a_damaged_file_is_read_or_refused(position: int, byte: int) -> None:
    data = bytearray(VALID.getvalue())
    data[position] = byte
    with suppress(ValuesError):
        unpack_values(io.BytesIO(bytes(data)))


def test_numpy_is_not_imported_without_arrays() -> None:
    source = Path(submarine_runtime.__file__).parent.parent
    code = (
        f"import sys, io; sys.path.insert(0, {str(source)!r})\n"
        "from submarine_runtime.values.archive import pack_values, unpack_values\n"
        "f = io.BytesIO(); pack_values({'a': [1, (2,)]}, f)\n"
        "assert unpack_values(f).values == {'a': [1, (2,)]}\n"
        "assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-S", "-c", code], check=True, timeout=30)


def test_arrays_without_numpy_name_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = io.BytesIO()
    pack_values({"a": np.arange(3), "n": [1]}, packed)
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(ValuesError, match=r"no NumPy; type \S+ -m pip install numpy$"):
        unpack_values(packed)
    plain = io.BytesIO()
    pack_values({"n": [1]}, plain)
    assert unpack_values(plain).values == {"n": [1]}


def test_names_of_the_options() -> None:
    assert parse_names("x, y,x", "--with") == ("x", "y")
    for wrong in ("", " , ", "x-y", "a.b", "class", "__name__", "x;y"):
        with pytest.raises(UsageError, match="--with"):
            parse_names(wrong, "--with")


def test_sending_names_of_the_notebook() -> None:
    data = send_values(["x"], {"x": math.pi, "other": object()})
    assert unpack_for_person(data).values == {"x": math.pi}
    with pytest.raises(UsageError, match="Did you mean x_train"):
        send_values(["x_trian"], {"x_train": 1})
    with pytest.raises(UsageError, match="x holds an object"):
        send_values(["x"], {"x": object()})


# Tensors, by the program's own library


def tensor_of(library: str, **methods: Any) -> Any:
    """A stand-in for a tensor of ``library``."""
    return type("Tensor", (), {"__module__": f"{library}.core", **methods})()


def test_tensors_come_back_as_arrays() -> None:
    data = np.array([[1.0, 2.0]], "float32")

    class Cpu:
        layout, dtype = "torch.strided", "torch.float32"

        def resolve_conj(self) -> Any:
            return self

        resolve_neg = resolve_conj

        def numpy(self) -> Any:
            return data

    on_gpu = SimpleNamespace(cpu=Cpu)
    tensors = {
        "torch": tensor_of("torch", detach=lambda _: on_gpu),
        "tensorflow": tensor_of("tensorflow", numpy=lambda _: data),
        "jax": tensor_of("jaxlib", __array__=lambda _, dtype=None, copy=None: data),
        "mxnet": tensor_of("mxnet", asnumpy=lambda _: data),
    }
    back = there_and_back(**tensors, deep={"a": [tensors["torch"]]})
    for found in (*(back[name] for name in tensors), back["deep"]["a"][0]):
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, data)


def test_a_tensor_whose_library_fails_is_refused_with_its_error() -> None:
    def fail(_: Any) -> Any:
        raise RuntimeError("The data is on a device that is gone.")

    with pytest.raises(ValuesError, match=r"x holds a torch Tensor.*RuntimeError.*device that is"):
        pack_values({"x": tensor_of("torch", detach=fail)}, io.BytesIO())


# Pandas objects of a hostile file

INDEX: dict[str, Any] = {"kind": "rangeindex", "name": {"kind": "json", "value": None}}


def rows_of(*bounds: Any) -> dict[str, Any]:
    return {**INDEX, "value": list(bounds)}


def plain(value: Any) -> dict[str, Any]:
    return {"kind": "json", "value": value}


def column(kind: str, **more: Any) -> dict[str, Any]:
    index = rows_of(0, 1, 1)
    return {"kind": "series", "name": plain(None), "index": index, "data": {"kind": kind, **more}}


HOSTILE_FRAMES: dict[str, Any] = {
    "no kind": {},
    "a number": 5,
    "no index": {"kind": "frame"},
    "broadcast": {
        "kind": "frame",
        "index": rows_of(0, 10**9, 1),
        "columns": rows_of(0, 100, 1),
        "block": plain(1),
    },
    "many rows": {
        "kind": "frame",
        "index": rows_of(0, 10**12, 1),
        "columns": rows_of(0, 0, 1),
        "data": [],
    },
    "too many to count": {
        "kind": "frame",
        "index": rows_of(0, 10**30, 1),
        "columns": rows_of(0, 0, 1),
        "data": [],
    },
    "many levels": {"kind": "multiindex", "levels": [rows_of(0, 10**10, 1)] * 2},
    "no levels": {"kind": "multiindex", "levels": []},
    "text of no size": {"kind": "npy", "file": "1.npy"},
    "objects": column("npy", file="2.npy"),
    "one file twice": {"kind": "list", "items": [{"kind": "npy", "file": "0.npy"}] * 2},
    "a scalar": column("json", value=5),
    "an object as name": {**column("json", value=[1]), "name": plain([1])},
    "zone of a folder": column("zoned", data=plain([0]), zone="America"),
    "zone of a path": column("zoned", data=plain([0]), zone="../../etc/passwd"),
    "unknown zone": {"kind": "Timestamp", "value": 0, "zone": "Nowhere/At_All"},
    "dtype of pickle": column("listed", data=plain([1]), dtype="object"),
    "dtype that is none": column("listed", data=plain([1]), dtype="nothing[pyarrow]"),
    "mask of another size": column(
        "masked", data=plain([1]), mask=plain([True, False]), dtype="Int64"
    ),
    "codes of no category": column(
        "categories", codes=plain([5]), categories=plain(["a"]), ordered=False
    ),
    "a moment too late": {"kind": "Timestamp", "value": 10**30, "zone": ""},
    "a day that is none": {"kind": "date", "value": "2026-02-31"},
    "text for a number": {"kind": "timedelta", "value": ["x", 0, 0]},
    "a length too many": column("json", value=[1, 2]),
    "deep": functools.reduce(
        lambda inner, _: {"kind": "multiindex", "levels": [inner]}, range(5000), rows_of(0, 1, 1)
    ),
}


def array_file(array: np.ndarray[Any, Any]) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE_FRAMES)
def test_hostile_frames_are_refused_with_a_sentence(name: str) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("0.npy", array_file(np.zeros(1000)))
        empty = io.BytesIO()
        header = {"descr": "<U0", "fortran_order": False, "shape": (10**9,)}
        np.lib.format.write_array_header_1_0(empty, header)
        archive.writestr("1.npy", empty.getvalue())
        archive.writestr("2.npy", array_file(np.array(["a"])))
        archive.writestr("values.json", nested_json(HOSTILE_FRAMES[name]))
    tracemalloc.start()
    try:
        with pytest.raises(ValuesError) as caught:
            unpack_values(buffer)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    assert str(caught.value).endswith((".", ")."))
    assert "\n" not in str(caught.value)


def nested_json(node: Any) -> str:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(50_000)
    try:
        return json.dumps({"version": 1, "values": {"x": node}, "refused": {}})
    finally:
        sys.setrecursionlimit(limit)


def test_json_of_many_small_values_is_refused_before_it_is_parsed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("submarine_runtime.values.archive._PARTS_LIMIT", 1000)
    for text, refused in (("[" + "[]," * 2000 + "0]", True), (json.dumps("," * 5000), False)):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            value = f'{{"kind": "json", "value": {text}}}'
            archive.writestr("values.json", f'{{"version": 1, "values": {{"x": {value}}}}}')
        if refused:
            with pytest.raises(ValuesError, match=r"holds more than 1,000 values\."):
                unpack_values(buffer)
        else:
            assert unpack_values(buffer).values == {"x": "," * 5000}


def test_texts_as_objects_stay_objects() -> None:
    pandas = pytest.importorskip("pandas")
    texts = pandas.Series(["a", None, "b"], dtype=object, name="s")
    index = pandas.Index(["x", "x", "y"], dtype=object, name="i")
    frame = pandas.DataFrame({"s": texts.set_axis(index), "n": [1, 2, 3]}, index=index)
    buffer = io.BytesIO()
    pack_values({"frame": frame, "series": texts, "index": index}, buffer)
    back = unpack_values(buffer).values
    pandas.testing.assert_frame_equal(back["frame"], frame, check_index_type="exact")
    pandas.testing.assert_series_equal(back["series"], texts)
    assert back["index"].dtype == object
    assert back["series"][1] is None
