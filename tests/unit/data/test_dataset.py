"""Datasets: shares, epochs, shuffling, filters, sources, and exact resumption."""

from __future__ import annotations

import gc
import json
import os
import pickle
import threading
import time
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from submarine_data import DataError, Dataset, FileEntry, open_dataset, sharding
from submarine_data.formats.images import class_of
from submarine_data.sources import find_sources
from tests.random_examples import examples
from tests.unit.data import writers
from tests.unit.data.writers import records_of


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """500 numbered lines in files of different sizes, one of them empty."""
    folder = tmp_path_factory.mktemp("lines")
    bounds = [0, 7, 7, 250, 400, 500]
    for number, (first, last) in enumerate(pairwise(bounds)):
        writers.text(folder / f"{number}.txt", range(first, last))
    return folder


def ids(batches: Any) -> list[int]:
    return [int(value) for batch in batches for value in batch.column("text")]


def dataset(folder: Path, **options: Any) -> Dataset:
    return open_dataset(str(folder), **{"batch_size": 32, "rank": 0, "world": 1, **options})


# Epochs


def test_a_loop_iterates_the_next_epoch(lines: Path) -> None:
    found = dataset(lines, shuffle=100, seed=1)
    first, second = ids(found), ids(found)
    assert sorted(first) == sorted(second) == list(range(500))
    assert first != second
    assert found.next_epoch == 2
    assert ids(found.epoch(0)) == first
    assert ids(dataset(lines, shuffle=100, seed=1).epochs(2)) == first + second
    assert ids(dataset(lines, shuffle=100, seed=2)) != first
    assert ids(dataset(lines)) == list(range(500))


@settings(max_examples=examples(12))
@given(world=st.integers(1, 9), shuffle=st.sampled_from([0, 40]), epoch=st.integers(0, 3))
def test_each_world_divides_the_records(lines: Path, world: int, shuffle: int, epoch: int) -> None:
    found = []
    for rank in range(world):
        one = dataset(lines, rank=rank, world=world, shuffle=shuffle, prefetch=0)
        found += ids(one.epoch(epoch))
    assert sorted(found) == list(range(500))


def test_batches_have_the_wanted_number_of_records(lines: Path) -> None:
    assert [len(batch) for batch in dataset(lines, batch_size=120)] == [120] * 4 + [20]


# Resumption


@settings(max_examples=examples(25))
@given(
    shuffle=st.sampled_from([0, 30, 90, 1000]),
    prefetch=st.sampled_from([0, 1 << 20]),
    batches=st.integers(0, 17),
    batch_size=st.integers(1, 70),
)
def test_a_restored_dataset_continues_exactly(
    lines: Path, shuffle: int, prefetch: int, batches: int, batch_size: int
) -> None:
    options = {"shuffle": shuffle, "seed": 5, "prefetch": prefetch}
    undisturbed = ids(dataset(lines, **options).epochs(2))
    first = dataset(lines, **options)
    found = ids(islice(first.epochs(2), batches))
    state = json.loads(json.dumps(first.state()))
    second = dataset(lines, batch_size=batch_size, **options)
    second.restore(state)
    assert second.state() == state
    found += ids(second.epochs(2))
    assert found == undisturbed


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """500 records in row groups of different sizes."""
    folder = tmp_path_factory.mktemp("groups")
    for number, (first, last, group) in enumerate([(0, 130, 50), (130, 135, 5), (135, 500, 200)]):
        writers.parquet(folder / f"{number}.parquet", range(first, last), group)
    return folder


@settings(max_examples=examples(25))
@given(
    shuffle=st.sampled_from([0, 1, 70]),
    prefetch=st.sampled_from([0, 1, 1 << 20]),
    batches=st.integers(0, 60),
    sizes=st.tuples(st.integers(1, 90), st.integers(1, 90)),
    limits=st.tuples(st.sampled_from([7, 40, 8192]), st.sampled_from([100, 1000, 1 << 20])),
    least=st.sampled_from([0, 60]),
)
def test_batches_that_are_cut_from_larger_parts_continue_exactly(
    groups: Path,
    shuffle: int,
    prefetch: int,
    batches: int,
    sizes: tuple[int, int],
    limits: tuple[int, int],
    least: int,
) -> None:
    """``limits``: records that are decoded at once, bytes of what is handed over at once."""
    options: dict[str, Any] = {"shuffle": shuffle, "prefetch": prefetch, "rank": 0, "world": 1}
    options["filter"] = [("id", ">=", least)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("submarine_data.formats.parquet._MOST_RECORDS", limits[0])
        patch.setattr("submarine_data.streams._PART", limits[1])
        first = open_dataset(str(groups), batch_size=sizes[0], **options)
        head = list(islice(first, batches))
        state = first.state()
    assert all(len(batch) == sizes[0] for batch in head[:-1])
    second = open_dataset(str(groups), batch_size=sizes[1], **options)
    second.restore(state)
    found = [i for batch in [*head, *second.epoch(0)] for i in batch.column("id")]
    undisturbed = open_dataset(str(groups), **options)
    assert found == [i for batch in undisturbed for i in batch.column("id")]
    assert sorted(found) == list(range(least, 500))


def test_small_batches_are_views_of_decoded_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writers.parquet(tmp_path / "a.parquet", range(5000), 5000)
    parquet, sizes = writers.package("pyarrow.parquet"), []
    whole = parquet.ParquetFile.iter_batches

    def noted(self: Any, **given: Any) -> Any:
        sizes.append(given["batch_size"])
        return whole(self, **given)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", noted)
    found = list(open_dataset(str(tmp_path), batch_size=100).to_arrow())
    assert [len(batch) for batch in found] == [100] * 50
    assert sizes == [65500]
    buffers = {batch.column(0).buffers()[1].address for batch in found}
    assert len(buffers) == 1
    monkeypatch.setattr("submarine_data.formats.parquet._DECODED", 1000)
    list(open_dataset(str(tmp_path), batch_size=10))
    assert 10 < sizes[-1] < 200
    list(open_dataset(str(tmp_path), batch_size=5000))
    assert sizes[-1] == 5000


@pytest.mark.parametrize("shuffle", [0, 64])
@pytest.mark.parametrize("count", [1, 31, 32, 33, 499, 500, 501])
def test_single_records_continue_exactly(lines: Path, shuffle: int, count: int) -> None:
    undisturbed = list(dataset(lines, shuffle=shuffle).records().epochs(2))
    first = dataset(lines, shuffle=shuffle)
    found = list(islice(first.records().epochs(2), count))
    second = dataset(lines, shuffle=shuffle)
    second.restore(first.state())
    assert found + list(second.records().epochs(2)) == undisturbed


def test_the_state_of_an_earlier_batch(lines: Path) -> None:
    first = dataset(lines)
    batches = list(islice(first, 9))
    second = dataset(lines)
    second.restore(first.state(batches=4))
    assert ids(second) == ids(batches[4:]) + list(range(9 * 32, 500))
    with pytest.raises(DataError, match="no state after 10 batches: 9 were returned"):
        first.state(batches=10)


def test_a_state_of_other_data_is_refused(lines: Path, tmp_path: Path) -> None:
    first = dataset(lines, rank=0, world=2)
    next(iter(first))
    state = first.state()
    with pytest.raises(DataError, match="rank 0 of 2 within epoch 0, and this is rank 0 of 3"):
        dataset(lines, rank=0, world=3).restore(state)
    with pytest.raises(DataError, match="belongs to other data"):
        dataset(lines, rank=0, world=2, seed=9).restore(state)
    with pytest.raises(DataError, match="This is no state of a dataset: KeyError"):
        dataset(lines).restore({})
    # At the start of an epoch the number of processes may change.
    start = dataset(lines, rank=0, world=2).state()
    dataset(lines, rank=2, world=3).restore(start)


def test_files_may_lie_elsewhere(lines: Path, tmp_path: Path) -> None:
    first = dataset(lines)
    head = ids(islice(first, 3))
    for path in lines.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    second = dataset(tmp_path)
    second.restore(first.state())
    assert head + ids(second) == list(range(500))


# Filters and columns


def test_hive_partitions_are_columns(tmp_path: Path) -> None:
    for year in (2025, 2026):
        for name in ("a b", "ü"):
            folder = tmp_path / f"year={year}" / f"name={name.replace(' ', '%20')}"
            folder.mkdir(parents=True)
            writers.parquet(folder / "part-0.parquet", [year])
            (folder / "_SUCCESS").touch()
    found = list(open_dataset(str(tmp_path)).records())
    assert [(r["id"], r["year"], r["name"]) for r in found] == [
        (2025, 2025, "a b"), (2025, 2025, "ü"), (2026, 2026, "a b"), (2026, 2026, "ü"),
    ]  # fmt: skip
    conditions = [("year", ">", 2025), ("name", "in", ["ü", "x"])]
    some = open_dataset(str(tmp_path), filter=conditions, columns=["name", "id"])
    assert list(some.records()) == [{"name": "ü", "id": 2026}]
    assert some.describe()["files"] == 1
    only = open_dataset(str(tmp_path), columns=["year"], filter=[("year", "==", 2025)])
    assert list(only.records()) == [{"year": 2025}] * 2
    assert list(open_dataset(str(tmp_path), filter=[("year", "<", 0)])) == []
    assert "year" not in next(iter(open_dataset(str(tmp_path), partitions=False))).names
    (tmp_path / "other.parquet").write_bytes(b"")
    with pytest.raises(DataError, match=r"has the partitions none, \S+ has year, name: pass par"):
        open_dataset(str(tmp_path))


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [("==", "3", ["3"]), ("!=", "3", ["1", "2"]), ("<", "2", ["1"]), (">=", "2", ["2", "3"]),
     ("in", ["1", "9"], ["1"]), ("not in", ["1"], ["2", "3"])],
)  # fmt: skip
def test_operators(operator: str, value: Any, expected: list[str], tmp_path: Path) -> None:
    arrow = writers.package("pyarrow")
    (tmp_path / "a.txt").write_text("1\n2\n3\n")
    table = arrow.table({"text": ["1", "2", None, "3"]})
    writers.package("pyarrow.parquet").write_table(table, tmp_path / "a.parquet")
    for name in ("a.txt", "a.parquet"):
        found = open_dataset(str(tmp_path / name), filter=[("text", operator, value)])
        assert [record["text"] for record in found.records()] == expected


def test_invalid_filters(lines: Path) -> None:
    with pytest.raises(DataError, match=r"The operator ~ is unknown; the operators are == "):
        dataset(lines, filter=[("text", "~", 1)])
    with pytest.raises(DataError, match="is no predicate"):
        dataset(lines, filter=["text"])
    with pytest.raises(DataError, match=r"column text \(str\) cannot be compared with 1\."):
        list(dataset(lines, filter=[("text", "<", 1)]))
    with pytest.raises(DataError, match=r"There is no column x; the columns are text\."):
        list(dataset(lines, filter=[("x", "<", 1)]))


# Sources


def test_a_manifest_names_files(lines: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "list ü.txt"
    above = os.path.relpath(lines / "2.txt", tmp_path)
    assert above.startswith("..")
    text = f"{above}\r\n\n{(lines / '0.txt').as_uri()}\n{lines}/[34].txt\n{above}\n"
    manifest.write_text(text, encoding="utf-8")
    expected = [*range(7, 250), *range(7), *range(250, 500)]
    assert ids(dataset(Path(f"@{manifest}"))) == expected
    manifest.write_text("@other\n")
    with pytest.raises(DataError, match=r"Line 1 of \S+list ü\.txt names a manifest"):
        dataset(Path(f"@{manifest}"))
    manifest.write_bytes(b"a\n\xff")
    with pytest.raises(DataError, match="is no UTF-8 text at byte 2"):
        dataset(Path(f"@{manifest}"))
    manifest.write_text("\n")
    with pytest.raises(DataError, match="There are no files in @"):
        dataset(Path(f"@{manifest}"))


@pytest.mark.parametrize("store", ["hdfs://cluster:8020", "s3://bucket"])
def test_names_of_stores_contain_any_character(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of HDFS and object stores are not quoted in their URIs."""
    root = f"{store}/größe 1+%20 #?&"
    names = ("x=1/a #1.png", "x=2/b.png", "x=2/_SUCCESS", "_tmp?/x=3/c.png", "#/.hidden.png")
    entries = [FileEntry(f"{root}/{name}", 1, 0.0) for name in names]

    class Store:
        def find(self, uri: str) -> list[FileEntry]:
            return entries

    monkeypatch.setattr("submarine_data.sources.file_system_of", lambda uri: Store())
    found = find_sources(root)
    assert [(one.file.uri, one.partitions) for one in found] == [
        (f"{root}/x=1/a #1.png", {"x": 1}),
        (f"{root}/x=2/b.png", {"x": 2}),
    ]
    assert class_of(FileEntry(f"{root}/1.png", 1, 0.0)) == "größe 1+%20 #?&"
    assert class_of(FileEntry("https://host/a%20b/1.png", 1, 0.0)) == "a b"


def test_times_of_files_have_no_effect(tmp_path: Path) -> None:
    """The clock of the store may be wrong by years."""
    for number in range(3):
        writers.text(tmp_path / f"{number}.txt", range(number * 10, number * 10 + 10))
    first = dataset(tmp_path, batch_size=7, shuffle=5)
    whole = ids(dataset(tmp_path, batch_size=7, shuffle=5))
    head = ids(islice(first, 2))
    for number, seconds in enumerate((4_102_444_800, 0, 1_000_000_000)):
        os.utime(tmp_path / f"{number}.txt", (seconds, seconds))
    again = dataset(tmp_path, batch_size=7, shuffle=5)
    again.restore(first.state())
    assert head + ids(again) == whole


def test_lists_and_globs(lines: Path) -> None:
    found = open_dataset([str(lines / "4.txt"), str(lines / "[0-2].txt")], rank=0, world=1)
    assert list(records_of(found)) == [*range(400, 500), *range(250)]
    assert ids(dataset(lines / "**" / "0.txt")) == list(range(7))


def test_missing_and_empty_places(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no such\.txt does not exist\.$"):
        open_dataset(str(tmp_path / "no such.txt"))
    with pytest.raises(DataError, match="There are no files in"):
        open_dataset(str(tmp_path))
    (tmp_path / ".hidden.txt").touch()
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "_temporary" / "a.txt").touch()
    with pytest.raises(DataError, match="There are no files in"):
        open_dataset(str(tmp_path))
    with pytest.raises(DataError, match="nosuch://bucket/data"):
        open_dataset("nosuch://bucket/data.txt")


def test_links_are_followed_once(tmp_path: Path) -> None:
    data, other = tmp_path / "data", tmp_path / "other"
    (data / "a").mkdir(parents=True)
    other.mkdir()
    writers.text(data / "a" / "1.txt", [1])
    writers.text(other / "2.txt", [2])
    (data / "b.txt").symlink_to(other / "2.txt")
    (data / "a" / "loop").symlink_to(data)
    assert ids(dataset(data)) == [1, 2]


def test_names_with_special_characters(tmp_path: Path) -> None:
    folder = tmp_path / "a b [1] ü%20#?"
    folder.mkdir()
    writers.text(folder / "x [2].txt", [1])
    assert ids(dataset(folder)) == [1]
    assert ids(dataset(folder / "x [2].txt")) == [1]
    assert ids(open_dataset((folder / "x [2].txt").as_uri())) == [1]


def test_a_file_that_disappears_is_one_sentence(tmp_path: Path) -> None:
    writers.text(tmp_path / "a.txt", range(3))
    found = dataset(tmp_path)
    (tmp_path / "a.txt").unlink()
    with pytest.raises(DataError, match=r"a\.txt cannot be read: No such file or directory\.$"):
        list(found)


def test_invalid_arguments(lines: Path) -> None:
    with pytest.raises(DataError, match="Give both rank and world"):
        open_dataset(str(lines), rank=1)
    with pytest.raises(DataError, match="Rank 2 of 2 does not exist"):
        dataset(lines, rank=2, world=2)
    with pytest.raises(DataError, match="batch_size is at least 1"):
        dataset(lines, batch_size=0)


# The background thread


def threads() -> list[str]:
    """The threads of a reader; the one that looks at slow calls ends by itself."""
    names = [one.name for one in threading.enumerate()]
    return [one for one in names if one.startswith("submarine-") and one != "submarine-waits"]


def wait_for_no_threads() -> None:
    end = time.monotonic() + 10
    while threads() and time.monotonic() < end:
        time.sleep(0.01)
    assert threads() == []


def test_the_thread_ends_with_its_iterator(lines: Path) -> None:
    iterator = iter(dataset(lines, prefetch=100))
    next(iterator)
    assert threads() == ["submarine-prefetch"]
    del iterator
    gc.collect()
    wait_for_no_threads()
    assert len(ids(dataset(lines))) == 500
    wait_for_no_threads()


def test_what_is_read_ahead_is_bounded(lines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharding, "SMALLEST_UNIT", 64)
    found = dataset(lines, batch_size=10, prefetch=2000)
    read: list[int] = []
    whole = found._read

    def noted(splits: Any) -> Any:
        for number, batch in whole(splits):
            read.append(len(batch))
            yield number, batch

    monkeypatch.setattr(found, "_read", noted)
    monkeypatch.setattr("submarine_data.streams._LARGEST_PART", 64)
    iterator = iter(found)
    next(iterator)
    time.sleep(0.2)
    assert 10 < sum(read) < 100
    assert len(ids(iterator)) == 490
    assert sum(read) == 500


def test_a_dataset_can_be_sent_to_a_process(lines: Path) -> None:
    copy = pickle.loads(pickle.dumps(dataset(lines)))
    assert ids(copy) == list(range(500))


def test_describe(lines: Path) -> None:
    found = dataset(lines, rank=1, world=2).describe()
    assert json.loads(json.dumps(found)) == found
    size = sum(path.stat().st_size for path in lines.iterdir())
    assert (found["format"], found["files"], found["bytes"]) == ("text", 5, size)
    assert found["columns"] == ["text"]
    assert 0 < found["share_bytes"] < size
