"""Batches as arrays and tensors, and DataLoader workers."""

from __future__ import annotations

from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest

from submarine_data import DataError, Dataset, open_dataset
from tests.unit.data.writers import package


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Parquet with columns of several types, 100 records in row groups of 10, in two files."""
    arrow, parquet = package("pyarrow"), package("pyarrow.parquet")
    folder = tmp_path_factory.mktemp("table")
    for number in range(2):
        ids = range(50 * number, 50 * number + 50)
        columns = {
            "id": arrow.array(ids, arrow.int64()),
            "x": arrow.array([i / 2 if i % 10 else None for i in ids], arrow.float32()),
            "s": [f"é{i}" for i in ids],
            "v": arrow.array([[i, i + 1, i + 2] for i in ids], arrow.list_(arrow.float32())),
            "flag": [i % 2 == 0 for i in ids],
            "small": arrow.array([i % 200 for i in ids], arrow.uint16()),
        }
        parquet.write_table(arrow.table(columns), folder / f"{number}.parquet", row_group_size=10)
    return folder


def dataset(table: Path, **options: Any) -> Dataset:
    return open_dataset(str(table), **{"batch_size": 8, "rank": 0, "world": 1, **options})


def test_numpy(table: Path) -> None:
    numpy = package("numpy")
    batches = list(dataset(table).to_numpy())
    first = batches[0]
    assert sum(len(batch["id"]) for batch in batches) == 100
    kinds = {name: (str(array.dtype), array.shape) for name, array in first.items()}
    assert kinds == {
        "id": ("int64", (8,)),
        "x": ("float32", (8,)),
        "s": ("object", (8,)),
        "v": ("float32", (8, 3)),
        "flag": ("bool", (8,)),
        "small": ("uint16", (8,)),
    }
    assert numpy.isnan(first["x"][0])
    assert first["v"][1].tolist() == [1, 2, 3]


def test_numpy_of_lists(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,c\n1,0.5,x\n2,,y\n")
    (batch,) = open_dataset(str(tmp_path)).to_numpy()
    assert (str(batch["a"].dtype), str(batch["b"].dtype)) == ("int64", "float64")
    assert batch["c"].tolist() == ["x", "y"]


def test_arrow(table: Path) -> None:
    batch = next(iter(dataset(table, columns=["s", "id"]).to_arrow()))
    assert batch.schema.names == ["s", "id"]
    assert batch.num_rows == 8


def test_converted_batches_advance_the_state(table: Path) -> None:
    first, second = dataset(table, shuffle=30), dataset(table, shuffle=30)
    found = [batch["id"].tolist() for batch in islice(first.to_numpy(), 5)]
    second.restore(first.state())
    found += [batch["id"].tolist() for batch in second.to_numpy()]
    whole = [batch["id"].tolist() for batch in dataset(table, shuffle=30).to_numpy()]
    assert found == whole


@pytest.mark.full
def test_jax(table: Path) -> None:
    jax = package("jax")
    batch = next(iter(dataset(table).to_jax()))
    assert isinstance(batch["v"], jax.Array)
    assert batch["v"].shape == (8, 3)
    assert batch["s"][1] == "é1"


@pytest.mark.full
def test_tf_data(table: Path) -> None:
    package("tensorflow")
    found = dataset(table, columns=["id", "s", "v"])
    data = found.to_tf().prefetch(3)
    whole = [int(i) for batch in data for i in batch["id"]]
    assert whole == list(range(100))
    first = next(iter(data))
    assert first["s"].numpy()[1].decode() == "é1"
    assert first["v"].shape == (8, 3)
    again = dataset(table, columns=["id"])
    iterator = iter(again.to_tf().prefetch(3))
    trained = [int(i) for batch in islice(iterator, 4) for i in batch["id"]]
    restored = dataset(table, columns=["id"])
    restored.restore(again.state(batches=4))
    trained += [int(i) for batch in restored.to_tf() for i in batch["id"]]
    assert trained == list(range(100))


@pytest.mark.full
def test_columns_that_are_no_tensors(tmp_path: Path) -> None:
    package("tensorflow")
    arrow = package("pyarrow")
    values = arrow.table({"v": [[1], [1, 2]]})
    package("pyarrow.parquet").write_table(values, tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"column v \(ndarray|list\) is no tensor: select columns"):
        open_dataset(str(tmp_path)).to_tf()


@pytest.mark.full
def test_tensors(table: Path) -> None:
    torch = package("torch")
    batch = next(iter(dataset(table).to_torch()))
    assert batch["id"].dtype == torch.int64
    assert batch["small"].dtype == torch.int32
    assert tuple(batch["v"].shape) == (8, 3)
    assert batch["s"][1] == "é1"


@pytest.mark.full
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_workers_divide_the_share(table: Path, workers: int) -> None:
    data = package("torch").utils.data
    found = []
    for rank in range(2):
        share = dataset(table, rank=rank, world=2, shuffle=16).to_torch()
        share.set_epoch(1)
        for batch in data.DataLoader(share, batch_size=None, num_workers=workers):
            found += batch["id"].tolist()
    assert sorted(found) == list(range(100))


@pytest.mark.full
@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("batches", [0, 1, 4, 11, 15, 18])
def test_a_loader_continues_exactly(table: Path, workers: int, batches: int) -> None:
    package("torch")

    def ids(loader: Any) -> list[list[int]]:
        return [batch["id"].tolist() for batch in loader]

    options = {"shuffle": 16, "seed": 3}
    undisturbed = ids(dataset(table, **options).to_torch().loader(workers).epochs(2))
    first = dataset(table, **options)
    found = ids(islice(first.to_torch().loader(workers).epochs(2), batches))
    second = dataset(table, **options)
    second.restore(first.state())
    found += ids(second.to_torch().loader(workers).epochs(2))
    assert found == undisturbed
    assert sorted(chain.from_iterable(found)) == sorted([*range(100), *range(100)])


@pytest.mark.full
def test_another_number_of_workers_is_refused(table: Path) -> None:
    package("torch")
    first, second = dataset(table), dataset(table)
    next(iter(first.to_torch().loader(2)))
    second.restore(first.state())
    with pytest.raises(DataError, match="2 streams within epoch 0, and there are 3"):
        next(iter(second.to_torch().loader(3)))
