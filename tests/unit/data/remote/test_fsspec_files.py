"""Other schemes by fsspec: here its memory file system."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from submarine_data import DataError, remote_file_system


@pytest.fixture
def memory() -> Iterator[Any]:
    system = fsspec.filesystem("memory")
    for path in ("/set/a.txt", "/set/b.txt", "/set/in/c.txt"):
        system.pipe_file(path, path.encode())
    yield system
    system.rm("/set", recursive=True)


def test_find_and_open(memory: Any) -> None:
    system = remote_file_system("memory://set")
    uris = [f"memory://set/{name}" for name in ("a.txt", "b.txt", "in/c.txt")]
    assert [entry.uri for entry in system.find("memory://set")] == uris
    assert [entry.uri for entry in system.find("memory://set/?.txt")] == uris[:2]
    assert [entry.size for entry in system.find(uris[0])] == [len("/set/a.txt")]
    assert system.open(uris[2]).read() == b"/set/in/c.txt"
    for missing in ("memory://set/x", "memory://set/*.csv"):
        with pytest.raises(DataError, match="There is no file"):
            system.find(missing)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(DataError, match="lacks a package for s3://: install s3fs"):
        remote_file_system("s3://bucket").find("s3://bucket/key")
    with pytest.raises(DataError, match="scheme nosuch, which fsspec does not know"):
        remote_file_system("nosuch://bucket").open("nosuch://bucket/key")
