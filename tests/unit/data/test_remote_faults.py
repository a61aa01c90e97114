"""A store that goes away while a file is read is no damage of the file, in any format."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import pytest

from submarine_data import DataError, FileEntry, ReadAheadFile, open_dataset
from submarine_data.formats import base
from submarine_data.remote import RemoteError
from tests.unit.data import writers

URI = "hdfs://cluster/data é/part 0."
SENTENCE = "hdfs://cluster/data could not be accessed for 180 s: connection refused."


class Store:
    """One file, of which the bytes from ``limit`` on cannot be read."""

    def __init__(self, uri: str, data: bytes, limit: int) -> None:
        self._uri, self._data, self._limit = uri, data, limit
        self.failures = 0

        self.slow_jumps = False
        self.requests: list[tuple[int, int]] = []
        self.connections: list[list[int]] = []

    def find(self, uri: str) -> list[FileEntry]:
        return [FileEntry(self._uri, len(self._data), 0.0)]

    def open(self, uri: str) -> Any:
        store = self
        starts: list[int] = []
        self.connections.append(starts)

        class Reader(io.BytesIO):
            def readinto(self, buffer: Any) -> int:
                store.requests.append((self.tell(), len(buffer)))
                starts.append(self.tell())
                if self.tell() + len(buffer) > store._limit:
                    store.failures += 1
                    raise RemoteError(SENTENCE)
                return super().readinto(buffer)

        return Reader(self._data)


class SmallPieces(ReadAheadFile):
    """Reads ahead in pieces that are smaller than the files of the tests."""

    def __init__(self, source: Any, size: int, again: Any) -> None:
        super().__init__(source, size, piece=1000, kept=8000, again=again)


def read(store: Store, uri: str, patch: pytest.MonkeyPatch) -> str:
    """The error of reading the file of a store."""
    patch.setattr("submarine_data.sources.file_system_of", lambda uri: store)
    patch.setattr(base, "file_system_of", lambda uri: store)
    patch.setattr(base, "ReadAheadFile", SmallPieces)
    with pytest.raises(DataError) as caught:
        list(open_dataset(uri))
    return str(caught.value)


REMOTE = [suffix for suffix in writers.WRITERS if suffix != "mdb"]


@pytest.mark.parametrize("suffix", [*REMOTE, "txt.gz", "tfrecord.gz"])
@pytest.mark.parametrize("share", [0.0, 0.4, 0.9], ids=["header", "middle", "end"])
def test_an_outage_is_reported_as_such(
    suffix: str, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"data.{suffix}"
    writers.WRITERS[suffix.partition(".")[0]](path, range(3000))
    data = path.read_bytes()
    store = Store(URI + suffix, data, int(len(data) * share))
    assert read(store, URI + suffix, monkeypatch) == SENTENCE
    # Each attempt takes the whole patience of the store.
    assert store.failures <= 3


@pytest.mark.parametrize("suffix", [suffix for suffix in REMOTE if suffix not in ("txt", "csv")])
def test_a_damaged_file_of_a_store_is_named(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"data.{suffix}"
    writers.WRITERS[suffix](path, range(3000))
    data = path.read_bytes()[:-3]
    store = Store(URI + suffix, data, len(data) * 2)
    sentence = read(store, URI + suffix, monkeypatch)
    assert sentence.startswith(f"{URI}{suffix} is damaged at ")
    assert "\n" not in sentence


@pytest.mark.parametrize("decoded", [1000, 20_000], ids=["a row group", "all"])
def test_halves_of_several_small_row_groups_are_read_at_the_same_time(
    decoded: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data.parquet"
    parquet = writers.package("pyarrow.parquet")
    values = list(range(20_000))
    table = writers.package("pyarrow").table({"a": values, "b": values})
    parquet.write_table(table, path, row_group_size=1000, compression="none", use_dictionary=False)
    uri = f"{URI}parquet"
    store = Store(uri, path.read_bytes(), path.stat().st_size)
    store.slow_jumps = True
    monkeypatch.setattr("submarine_data.sources.file_system_of", lambda uri: store)
    monkeypatch.setattr(base, "file_system_of", lambda uri: store)
    # A row group has 16 kB: five are read together.
    for name, value in (("_LARGE", 20_000), ("_READ_IN_ORDER", 85_000), ("_MOST_RECORDS", decoded)):
        monkeypatch.setattr(f"submarine_data.formats.parquet.{name}", value)
    found = [batch.column("b") for batch in open_dataset(uri, rank=0, world=1)]
    assert [value for column in found for value in column] == values
    first, second = store.connections[-2:]
    assert abs(len(first) - len(second)) < 3
    # All records of a column before those of the next one do not fit into the memory.
    assert (second == sorted(second)) == (decoded == 1000)
    assert second[0] > 40_000


@pytest.mark.parametrize("slow_jumps", [True, False])
@pytest.mark.parametrize("kept", [1 << 20, 30_000], ids=["fits", "in turns"])
@pytest.mark.parametrize("several", [False, True], ids=["one part", "several parts"])
def test_large_row_groups_are_read_once_with_bounded_memory(
    slow_jumps: bool, kept: int, several: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data.parquet"
    numbers = random.Random(1)
    columns = {f"c{i}": [numbers.random() for _ in range(6000)] for i in range(4)}
    parquet = writers.package("pyarrow.parquet")
    parquet.write_table(
        writers.package("pyarrow").table(columns),
        path,
        row_group_size=3000,
        data_page_size=2000,
        compression="none",
        use_dictionary=False,
    )
    uri = f"{URI}parquet"
    store = Store(uri, path.read_bytes(), path.stat().st_size)
    store.slow_jumps = slow_jumps
    monkeypatch.setattr("submarine_data.sources.file_system_of", lambda uri: store)
    monkeypatch.setattr(base, "file_system_of", lambda uri: store)
    for name, value in (("_LARGE", 10_000), ("_KEPT", kept), ("_READ_IN_ORDER", kept)):
        monkeypatch.setattr(f"submarine_data.formats.parquet.{name}", value)
    for name, value in (("_SMALL_PIECE", 4000), ("_BUFFER", 1000), ("_MOST_RECORDS", 500)):
        monkeypatch.setattr(f"submarine_data.formats.parquet.{name}", value)
    if several:
        monkeypatch.setattr("submarine_data.sharding.SMALLEST_UNIT", 1)
        monkeypatch.setattr("submarine_data.streams._LARGEST_PART", 1)
    dataset = open_dataset(uri, batch_size=100, columns=["c3", "c1"], rank=0, world=1)
    assert len(dataset.splits(0)) == (2 if several else 1)
    opens = len(store.requests)
    found = [batch.column("c3") for batch in dataset]
    assert [value for values in found for value in values] == columns["c3"]
    metadata = parquet.read_metadata(path)
    wanted = sorted(
        (chunk.data_page_offset, chunk.data_page_offset + chunk.total_compressed_size)
        for group in range(2)
        for chunk in (metadata.row_group(group).column(1), metadata.row_group(group).column(3))
    )
    # The file is opened once for all its parts: its footer is in the first request.
    parts = [(start, start + size) for start, size in store.requests[opens + 1 :]]
    fits = kept == 1 << 20
    if slow_jumps and fits:
        first, second = store.connections[-2:]
        # The first one also reads the footer. Each reads a half of both row groups.
        assert first[1:] == sorted(first[1:])
        assert second == sorted(second)
        assert abs(len(first) - 1 - len(second)) <= 2
    else:
        assert (parts == sorted(parts)) == fits
    largest = max(end - start for start, end in parts)
    assert (largest <= 4000) == (slow_jumps and fits)
    joined: list[tuple[int, int]] = []
    for start, end in sorted(parts):
        if joined and joined[-1][1] == start and (start, end) not in wanted:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    assert joined == wanted
