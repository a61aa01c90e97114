"""A store that goes away while a file is read is no damage of the file, in any format."""

from __future__ import annotations

import io
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

    def find(self, uri: str) -> list[FileEntry]:
        return [FileEntry(self._uri, len(self._data), 0.0)]

    def open(self, uri: str) -> Any:
        store = self

        class Reader(io.BytesIO):
            def read(self, size: int | None = -1) -> bytes:
                if self.tell() + (size or 0) > store._limit:
                    store.failures += 1
                    raise RemoteError(SENTENCE)
                return super().read(size)

        return Reader(self._data)


class SmallPieces(ReadAheadFile):
    """Reads ahead in pieces that are smaller than the files of the tests."""

    def __init__(self, source: Any, size: int) -> None:
        super().__init__(source, size, piece=1000, kept=8000)


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
