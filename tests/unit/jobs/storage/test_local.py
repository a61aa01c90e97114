from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from submarine_jobs.errors import StorageError
from submarine_jobs.storage import LocalStorage


@pytest.fixture
def storage() -> LocalStorage:
    return LocalStorage()


def test_publish_makes_private_parents_and_leaves_no_temporary(
    storage: LocalStorage, tmp_path: Path
) -> None:
    path = f"{tmp_path}/a/b/file"
    storage.publish(path, b"one")
    storage.publish(path, b"two")
    assert storage.read(path) == b"two"
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.stat(tmp_path / "a").st_mode & 0o777 == 0o700
    assert os.listdir(tmp_path / "a" / "b") == ["file"]


def test_exclusive_is_first_come_and_repeatable(storage: LocalStorage, tmp_path: Path) -> None:
    path = f"{tmp_path}/claim"
    assert storage.publish_exclusive(path, b"mine")
    assert storage.publish_exclusive(path, b"mine"), "a repeat after a lost reply is a success"
    assert not storage.publish_exclusive(path, b"yours")
    assert storage.read(path) == b"mine"


def test_exclusive_has_one_winner_among_many(storage: LocalStorage, tmp_path: Path) -> None:
    path = f"{tmp_path}/claim"
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda n: storage.publish_exclusive(path, b"%d" % n), range(32)))
    assert sum(won) == 1
    assert storage.read(path) == b"%d" % won.index(True)


def test_read_by_offset(storage: LocalStorage, tmp_path: Path) -> None:
    path = f"{tmp_path}/log"
    storage.publish(path, bytes(range(100)))
    assert storage.read(path, 10, 5) == bytes(range(10, 15))
    assert storage.read(path, 98, 5) == bytes([98, 99])
    assert storage.read(path, 200, 5) == b""


def test_missing_files_and_other_errors(storage: LocalStorage, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        storage.read(f"{tmp_path}/none")
    assert storage.stat(f"{tmp_path}/none") is None
    storage.delete(f"{tmp_path}/none")
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="Cannot write"):
        storage.publish(f"{tmp_path}/file/below", b"")


def test_list_hides_temporary_names_and_walk_is_sorted(
    storage: LocalStorage, tmp_path: Path
) -> None:
    for name in ("b/two", "a/one", "c"):
        storage.publish(f"{tmp_path}/{name}", b"12")
    (tmp_path / ".tmp-half").write_text("x")
    assert [entry.name for entry in storage.list_directory(str(tmp_path))] == ["a", "b", "c"]
    assert storage.walk(str(tmp_path)) == [("a/one", 2), ("b/two", 2), ("c", 2)]
