"""The fsspec file system over WebHDFS, and its registration."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import fsspec
import pytest

from submarine_data import filesystem, open_file
from submarine_data.remote import CONFIGURATION_VARIABLE, RemoteError
from submarine_runtime.backoff import Backoff
from submarine_runtime.protocol import to_json
from tests.unit.data.remote.webhdfs_server import WebHdfs, serving


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebHdfs]:
    monkeypatch.setattr(Backoff, "pause", lambda self: 0.001)
    with serving() as state:
        path = tmp_path / "configuration.json"
        hdfs = to_json(state.configuration.hdfs)
        path.write_text(json.dumps({"hdfs": hdfs, "user": "not-this-process"}))
        monkeypatch.setenv(CONFIGURATION_VARIABLE, str(path))
        state.files = {"/d/a.txt": b"a\nb\n", "/d/in/b.txt": b"12345"}
        yield state


@pytest.fixture
def system(server: WebHdfs) -> Any:
    fsspec.filesystem("file")
    made = filesystem()
    type(made).clear_instance_cache()
    return filesystem()


def test_queries(system: Any) -> None:
    assert system.ls("/d", detail=False) == ["/d/a.txt", "/d/in"]
    assert system.ls("/d/a.txt", detail=False) == ["/d/a.txt"]
    assert system.info("hdfs:///d/a.txt")["size"] == 4
    assert system.info("hdfs://fake:8020/d/a.txt")["name"] == "hdfs://fake:8020/d/a.txt"
    assert system.isdir("/d/in")
    assert system.exists("/d/a.txt")
    assert not system.exists("/d/b.txt")
    assert system.find("/d") == ["/d/a.txt", "/d/in/b.txt"]
    assert system.glob("/d/**/*.txt") == ["/d/a.txt", "/d/in/b.txt"]
    assert system.glob("hdfs://fake:8020/d/*.txt") == ["hdfs://fake:8020/d/a.txt"]
    assert system.cat_file("/d/in/b.txt", 1, 3) == b"23"
    assert system.modified("/d/a.txt").timestamp() == 5.0
    with pytest.raises(FileNotFoundError, match=r"There is no file hdfs:///d/b\.txt"):
        system.open("/d/b.txt")
    with pytest.raises(FileNotFoundError):
        system.ls("/nowhere")


def test_changes(system: Any, server: WebHdfs, tmp_path: Path) -> None:
    with system.open("/d/new.txt", "wb") as file:
        file.write(b"whole")
        assert "/d/new.txt" not in server.files
    assert server.files["/d/new.txt"] == b"whole"
    system.mv("/d/new.txt", "/d/moved.txt")
    system.cp("/d/moved.txt", "/d/copy.txt")
    assert (server.files["/d/moved.txt"], server.files["/d/copy.txt"]) == (b"whole", b"whole")
    with pytest.raises(FileExistsError):
        system.mv("/d/copy.txt", "/d/in")
    (tmp_path / "x").write_bytes(b"local")
    system.put_file(str(tmp_path / "x"), "/d/put.txt")
    system.get_file("/d/put.txt", str(tmp_path / "y"))
    assert (tmp_path / "y").read_bytes() == b"local"
    system.rm("/d/*.txt")
    system.rm("/d/in", recursive=True)
    assert server.files == {}
    with pytest.raises(FileNotFoundError):
        system.rm("/d/a.txt")


def test_a_failed_writer_writes_nothing(system: Any, server: WebHdfs) -> None:
    before = dict(server.files)
    for file in (system.open("/d/a.txt", "wb"), open_file("hdfs:///d/a.txt", "wb")):
        with suppress(KeyError), file:
            file.write(b"half")
            raise KeyError
        assert file.closed
    abandoned = open_file("hdfs:///d/c.txt", "wb")
    abandoned.write(b"x")
    del abandoned
    assert server.files == before


def test_a_write_outlasts_an_outage(server: WebHdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("submarine_data.remote.writer.MEMORY_BYTES", 1 << 20)
    with open_file("hdfs:///d/large.bin", "wb") as file:
        for _number in range(3):
            file.write(b"x" * (1 << 20))
        server.away = 3
    assert server.files["/d/large.bin"] == b"x" * (3 << 20)


def test_other_modes_are_refused(system: Any, server: WebHdfs) -> None:
    with pytest.raises(ValueError, match="mode ab"):
        system.open("/d/a.txt", "ab")
    with pytest.raises(RemoteError, match="mode ab"):
        open_file("hdfs:///d/a.txt", "ab")
    with pytest.raises(RemoteError, match="hdfs:///d is a directory"):
        open_file("hdfs:///d", "wb")
