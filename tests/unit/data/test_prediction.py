"""Parts, functions and manifests of ``submarine_data.prediction``."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy
import pandas  # type: ignore[import-untyped]
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings, strategies as st

from submarine_data import FileEntry
from submarine_data.batches import ArrowBatch
from submarine_data.formats import Split, format_names
from submarine_data.prediction import BATCH_FORMATS, Functions, PredictionError, cut, part_size
from submarine_data.prediction.functions import result_columns
from submarine_data.prediction.part_files import PartResult, PartWriter, read_part
from submarine_data.prediction.summary import (
    check_same_columns,
    manifest_of,
    read_summary,
    summary_bytes,
)
from submarine_jobs.commands.predict import command
from tests.unit.pages import ROOT, blocks


def units(weights: list[int]) -> list[Split]:
    """Row groups of one file, and a file for each of every third weight."""
    return [
        Split(FileEntry(f"f{number // 3}", 0, 0.0), number % 3, number % 3 + 1, weight)
        for number, weight in enumerate(weights)
    ]


@settings(max_examples=30)
@given(st.lists(st.integers(0, 50), max_size=40), st.integers(1, 60))
def test_parts_are_all_units_in_order_and_bounded(weights: list[int], size: int) -> None:
    given_units = units(weights)
    parts = cut(given_units, size)
    ranges = [
        (split.file.uri, group)
        for part in parts
        for split in part.splits
        for group in range(split.start, split.end or 0)
    ]
    assert ranges == [(unit.file.uri, unit.start) for unit in given_units]
    assert [part.number for part in parts] == list(range(len(parts)))
    assert all(part.weight <= size or part.weight in weights for part in parts)
    # So the number of files is bounded.
    assert len(parts) <= 2 * sum(weights) / size + 1


def test_the_size_of_parts_is_bounded() -> None:
    assert part_size(1000) == 1 << 20
    assert part_size(100 << 20) == 1 << 20
    assert part_size(1 << 40) == (1 << 40) // 9_000
    assert part_size(64 << 30) == 64 << 20
    assert part_size(1000, 7) == 7
    assert part_size(1 << 40, 7) == (1 << 40) // 9_000


def where() -> str:
    return "part-00003.parquet (f, row group 1)"


class Tensor:
    """What ``predict`` needs of a tensor of PyTorch."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Any:
        return numpy.asarray(self._values)


RESULTS: list[tuple[Any, dict[str, Any]]] = [
    ([1, 2], {"prediction": [1, 2]}),
    (numpy.array([1.5, 2.5]), {"prediction": [1.5, 2.5]}),
    (numpy.arange(8).reshape(2, 2, 2), {"prediction": [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]}),
    (Tensor([[1], [2]]), {"prediction": [[1], [2]]}),
    ({"a": ["x", None], "b": numpy.array([True, False])}, {"a": ["x", None], "b": [True, False]}),
    ({"a": [numpy.array([1, 2]), numpy.array([3, 4])]}, {"a": [[1, 2], [3, 4]]}),
    (numpy.array(["a", None], dtype=object), {"prediction": ["a", None]}),
    (pandas.DataFrame({"a": [1, 2]}, index=[5, 6]), {"a": [1, 2]}),
    (pandas.Series([1, 2], name="s"), {"s": [1, 2]}),
    (pyarrow.table({"a": [[1], []]}), {"a": [[1], []]}),
    (pyarrow.record_batch({"a": [1, 2]}), {"a": [1, 2]}),
    ({"a": pyarrow.chunked_array([[1], [2]])}, {"a": [1, 2]}),
]


@pytest.mark.parametrize(("result", "expected"), RESULTS)
def test_results_of_each_form_become_columns(result: Any, expected: dict[str, Any]) -> None:
    columns = result_columns(result, 2, where)
    assert {name: column.to_pylist() for name, column in columns.items()} == expected


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (None, "predict returned None for part-00003"),
        ([1], "predict returned 1 values of prediction for 2 rows of part-00003"),
        (7, "prediction, which predict returned for part-00003.*: it is a single value"),
        ({"a": [1, "x"]}, "Arrow cannot store a, which predict returned for part-00003"),
        ({"a": [object(), 1]}, "Arrow cannot store a"),
    ],
)
def test_a_result_that_does_not_fit_is_one_sentence(result: Any, sentence: str) -> None:
    with pytest.raises(PredictionError, match=sentence):
        result_columns(result, 2, where)


BATCH = ArrowBatch(pyarrow.record_batch({"id": [1, 2], "x": [0.5, 1.5]}))


def program(source: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "__main__", "__file__": "/job/program/predict.py"}
    exec(source, namespace)
    return namespace


@pytest.mark.parametrize("batch_format", BATCH_FORMATS)
def test_predict_gets_the_columns_and_evaluate_all(batch_format: str) -> None:
    source = """\
seen = []
def load_model(path): return path + "!"
def predict(batch, model):
    seen.append((model, type(batch), set(getattr(batch, "columns", batch))))
    return [1, 3]
def evaluate(batch, result): return {"mean": sum(result) / 2, "rows_hit": batch["id"]}
"""
    if batch_format == "arrow":
        source = source.replace('getattr(batch, "columns", batch)', "batch.schema.names")
        source = source.replace('"rows_hit": batch["id"]', '"rows_hit": batch["id"].to_pylist()')
    namespace = program(source)
    functions = Functions(namespace, batch_format, ["x"], "/model")
    functions.load()
    functions.load()
    columns, metrics = functions.apply(BATCH, where)
    assert columns["prediction"].to_pylist() == [1, 3]
    assert metrics == {"mean": 4.0, "rows_hit": 3.0}
    kinds = {"numpy": dict, "arrow": pyarrow.RecordBatch, "pandas": pandas.DataFrame}
    assert namespace["seen"] == [("/model!", kinds[batch_format], {"x"})]


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    source = next(blocks(ROOT / "docs" / "predict.md", "python")).partition("\n")[2]
    numpy.save(tmp_path / "weights.npy", numpy.eye(3))
    functions = Functions(program(source), model=str(tmp_path))
    functions.load()
    batch = pyarrow.record_batch({"pixels": [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], "label": [1, 2]})
    columns, metrics = functions.apply(ArrowBatch(batch), where)
    assert columns["digit"].to_pylist() == [1, 0]
    assert columns["scores"].to_pylist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    assert metrics == {"accuracy": 1.0}


def test_functions_of_libraries_are_not_those_of_the_program() -> None:
    namespace = program("from shutil import copy as evaluate\ndef predict(batch): return [0, 0]")
    assert Functions(namespace).apply(BATCH, where)[1] == {}


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("x = 1", r"defines no function predict\(batch\)"),
        ("def predict(batch, model): pass", r"needs a function load_model\(path\)"),
    ],
)
def test_a_missing_function_is_one_sentence(source: str, sentence: str) -> None:
    with pytest.raises(PredictionError, match=sentence):
        Functions(program(source))


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("3", "evaluate returned int for part-00003"),
        ("{'a b': 1}", "the metric 'a b': use letters"),
        ("{'a': 'x'}", "no number for the metric a of part-00003"),
        ("{'a': [1]}", "no number for the metric a of part-00003.*it has 1 values"),
        ("1 / 0", "evaluate raised ZeroDivisionError for part-00003.*division by zero"),
    ],
)
def test_a_fault_of_evaluate_is_one_sentence(value: str, sentence: str) -> None:
    source = f"def predict(batch): return [0, 0]\ndef evaluate(batch, result): return {value}"
    with pytest.raises(PredictionError, match=sentence):
        Functions(program(source)).apply(BATCH, where)


def test_an_error_keeps_its_traceback_and_some_their_type() -> None:
    with pytest.raises(PredictionError, match=r"predict raised KeyError for part-00003") as caught:
        Functions(program("def predict(batch): return batch['y']")).apply(BATCH, where)
    assert caught.traceback[-1].frame.code.name == "predict"
    for kind in ("MemoryError", "ImportError"):
        with pytest.raises((MemoryError, ImportError)):
            Functions(program(f"def predict(batch): raise {kind}")).apply(BATCH, where)


def write(folder: Path, batches: list[dict[str, Any]]) -> PartResult:
    writer = PartWriter(str(folder), "part-00000.parquet", ["id"])
    for columns in batches:
        arrays = {name: pyarrow.array(values) for name, values in columns.items()}
        writer.add(BATCH, arrays, {"m": 0.1}, where)
    return writer.close()


def test_a_part_tells_what_it_contains(tmp_path: Path) -> None:
    written = write(tmp_path, [{"y": [1.5, None]}, {"y": [1, 2]}])
    assert [path.name for path in tmp_path.iterdir()] == ["part-00000.parquet"]
    path = tmp_path / "part-00000.parquet"
    with path.open("rb") as file:
        assert read_part("part-00000.parquet", file) == written
    assert (written.rows, written.metrics) == (4, {"m": 0.2})
    assert written.schema == "id: int64, y: double"
    assert pyarrow.parquet.read_table(path).to_pydict() == {
        "id": [1, 2, 1, 2],
        "y": [1.5, None, 1.0, 2.0],
    }
    second = tmp_path / "second"
    second.mkdir()
    assert write(second, [{"y": [1.5, None]}, {"y": [1, 2]}]) == written
    assert PartWriter(str(tmp_path), "empty", None).close() == PartResult("empty")


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"z": [1, 2]}, "predict returned the columns id, z for part-00003.*, and id, y before"),
        ({"y": ["a", "b"]}, "y is string for part-00003.*, and int64 before"),
        ({"id": [1, 2]}, "predict returned a column id, which the input has too"),
    ],
)
def test_other_columns_are_one_sentence(
    tmp_path: Path, columns: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(PredictionError, match=sentence):
        write(tmp_path, [{"y": [1, 2]}, columns])


def test_the_manifest_is_independent_of_the_division_of_the_parts() -> None:
    parts = [
        PartResult(f"part-{n:05d}.parquet", n, 10, f"{n:064x}", "a: int64", {"m": 0.1 * n})
        for n in range(1, 6)
    ]
    parts.insert(2, PartResult("part-00009.parquet"))
    divided = [
        part
        for rank in (parts[:2], parts[2:])
        for part in read_summary(io.BytesIO(summary_bytes(rank)))
    ]
    assert manifest_of(divided) == manifest_of(parts)
    found = manifest_of(parts)
    assert (found["rows"], found["bytes"], len(found["parts"])) == (15, 50, 5)
    assert found["metrics"] == {"m": pytest.approx(0.1)}
    with pytest.raises(PredictionError, match=r"part-00002\.parquet has the columns b: int64"):
        check_same_columns([parts[0], parts[1]._replace(schema="b: int64")])
    with pytest.raises(PredictionError, match=r"other metrics for part-00002\.parquet"):
        manifest_of([parts[0], parts[1]._replace(metrics={})])


def test_the_command_offers_what_the_library_reads() -> None:
    assert sorted(command.FORMATS) == sorted(format_names())
    assert command.BATCH_FORMATS == BATCH_FORMATS
