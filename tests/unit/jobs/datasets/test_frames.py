"""Frames as Parquet: what a program reads, what stays in values.zip, samples that are bounded."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.datasets import (
    DatasetStore,
    is_exact_candidate,
    put_value,
    stage_exact_frame,
    staging,
    verification,
)
from submarine_jobs.errors import UsageError
from submarine_jobs.storage import LocalStorage
from submarine_runtime.values import read_frame

np = pytest.importorskip("numpy")
pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

EXACT = {
    "numbers": lambda: pd.DataFrame(
        {"a": np.arange(3, dtype="int16"), "b": np.ones(3, "float32"), "c": [True, False, True]}
    ),
    "ordered categories with an unused one": lambda: pd.DataFrame(
        {"c": pd.Categorical(["b", "a"], categories=["z", "b", "a"], ordered=True)}
    ),
    "times with a zone over the change of its offset": lambda: pd.DataFrame(
        {"t": pd.date_range("2026-03-29", periods=5, freq="h", tz="Europe/Berlin")}
    ),
    "nullable": lambda: pd.DataFrame(
        {
            "i": pd.array([1, None, 3], dtype="Int64"),
            "b": pd.array([True, None, False], dtype="boolean"),
            "s": pd.array(["a", None, "c"], dtype="string"),
        }
    ),
    "index of texts": lambda: pd.DataFrame({"x": [1, 2]}, index=pd.Index(["r", "s"], name="key")),
    "index of two levels": lambda: pd.DataFrame(
        {"x": [1, 2]}, index=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["k", "n"])
    ),
    "range": lambda: pd.DataFrame({"x": [1, 2]}, index=pd.RangeIndex(5, 9, 2, name="q")),
    "columns of numbers": lambda: pd.DataFrame(np.zeros((2, 3))),
    "dates": lambda: pd.DataFrame({"d": [datetime.date(2026, 1, 1), None]}),
    "no rows": lambda: pd.DataFrame({"a": pd.Series([], dtype="int64")}),
}
#: Frames that Parquet changes; they stay in values.zip.
CHANGED = {
    "texts as objects": lambda: pd.DataFrame({"s": pd.Series(["a", None], dtype=object)}),
    "mixed objects": lambda: pd.DataFrame({"s": pd.Series(["a", 1], dtype=object)}),
    "categories of numbers": lambda: pd.DataFrame({"c": pd.Categorical([3, 1], [9, 3, 1])}),
    "index with a frequency": lambda: pd.DataFrame(
        {"x": [1, 2]}, index=pd.date_range("2026-01-01", periods=2, freq="D")
    ),
    "the same column twice": lambda: pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"]),
    "complex": lambda: pd.DataFrame({"z": np.array([1j, 2])}),
}


@pytest.mark.parametrize("name", EXACT)
def test_a_program_reads_the_same_frame(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = EXACT[name]()
    monkeypatch.setattr(staging, "PART_BYTES", 1)  # a file for each row
    staged = stage_exact_frame(frame, tmp_path)
    assert staged is not None
    assert len(staged.files) == max(1, len(frame))
    pd.testing.assert_frame_equal(
        read_frame(str(tmp_path), "pandas"), frame, check_freq=False, check_index_type="exact"
    )


@pytest.mark.parametrize("name", CHANGED)
def test_a_frame_that_parquet_changes_is_not_stored(name: str, tmp_path: Path) -> None:
    assert stage_exact_frame(CHANGED[name](), tmp_path) is None


def test_an_arrow_table_keeps_its_schema(tmp_path: Path) -> None:
    table = pa.table(
        {"l": [[1], [], None], "s": pa.array(["a", "b", "a"]).dictionary_encode()},
        metadata={"k": "v"},
    )
    staged = stage_exact_frame(table, tmp_path)
    assert staged is not None
    assert staged.source == "arrow"
    restored = read_frame(str(tmp_path), "arrow")
    assert restored.schema.metadata == {b"k": b"v"}
    assert restored.equals(table)


def test_large_pandas_frames_and_all_arrow_tables_are_candidates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = pd.DataFrame({"x": np.zeros(1000)})
    assert not is_exact_candidate(frame)
    monkeypatch.setattr(verification, "THRESHOLD", 8000)
    assert is_exact_candidate(frame)
    assert is_exact_candidate(pa.table({"x": [1]}))
    assert not is_exact_candidate(np.zeros(10_000))
    assert not is_exact_candidate(frame["x"])


def test_the_same_frame_has_the_same_digest(tmp_path: Path) -> None:
    store = DatasetStore(LocalStorage(), str(tmp_path / "root"), "ada")
    first = put_value(store, "a", EXACT["nullable"]())
    assert first.dataset.rows == 3
    assert put_value(store, "b", EXACT["nullable"]()).uploaded == 0
    series = put_value(store, "s", pd.Series([1, 2], name="n")).dataset
    assert series.schema[0] == ("n", "int64")


def test_schema_and_sample_are_bounded(tmp_path: Path) -> None:
    store = DatasetStore(LocalStorage(), str(tmp_path / "root"), "ada")
    evil = "\x1b]0;x\x07<script>" + "x" * 10_000
    frame = pd.DataFrame({evil: [evil] * 50, **{f"c{n}": np.arange(50) for n in range(100)}})
    put_value(store, "wide", frame)
    dataset = store.find("wide")
    sample = dataset.sample
    assert (len(sample.rows), len(sample.columns), sample.columns_left_out) == (10, 20, 81)
    assert max(len(cell) for row in sample.rows for cell in row) == 80
    assert len(dataset.schema) == 101
    assert dataset.schema[1] == ("c0", "int64")


def test_a_column_without_a_type_in_parquet_is_named(tmp_path: Path) -> None:
    store = DatasetStore(LocalStorage(), str(tmp_path / "root"), "ada")
    with pytest.raises(UsageError, match=r"column s with type object"):
        put_value(store, "a", CHANGED["mixed objects"]())


def test_frames_of_other_libraries_give_their_arrow_data(tmp_path: Path) -> None:
    class Stream:
        """A frame with the PyCapsule interface of Arrow, as polars has it."""

        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return pa.table({"x": [1, 2]}).__arrow_c_stream__(requested_schema)

    store = DatasetStore(LocalStorage(), str(tmp_path / "root"), "ada")
    dataset = put_value(store, "a", Stream()).dataset
    assert (dataset.source, dataset.rows) == ("arrow", 2)
