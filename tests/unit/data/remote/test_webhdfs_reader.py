"""Reading ranges by WebHDFS: sizes of requests, faults of the connection, errors."""

from __future__ import annotations

import io
import os
import pickle
import time
from collections.abc import Iterator
from typing import Any

import pytest

from submarine_data import DataError
from submarine_data.remote import (
    MissingFileError,
    RangeReader,
    RefusedAccessError,
    RemoteError,
    WebHdfsFileSystem,
    waiting,
)
from submarine_runtime.backoff import Backoff
from submarine_runtime.storage import StoreError
from tests.unit.data.remote.webhdfs_server import WebHdfs, serving
from tests.waiting import until

DATA = os.urandom(1 << 20) * 12
URI = "hdfs:///data/file.bin"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebHdfs]:
    monkeypatch.setattr(Backoff, "pause", lambda self: 0.001)
    with serving() as state:
        state.files["/data/file.bin"] = DATA
        yield state


@pytest.fixture
def system(server: WebHdfs) -> WebHdfsFileSystem:
    return WebHdfsFileSystem(server.configuration, patience=60)


def test_a_whole_file_in_order(server: WebHdfs, system: WebHdfsFileSystem) -> None:
    with system.open(URI) as file:
        pieces = iter(lambda: file.read(100_000), b"")
        assert b"".join(pieces) == DATA
    assert all(query["user.name"] == "alice" for query in server.queries)
    # After the first range, those of a sequential reader have 4 MB or more.
    middle = [length for _offset, length in server.ranges[1:-1]]
    assert middle
    assert min(middle) >= 4 << 20
    assert sum(length for _offset, length in server.ranges) == len(DATA)


def test_positions(server: WebHdfs, system: WebHdfsFileSystem) -> None:
    with system.open(URI) as file:
        assert file.seek(-8, io.SEEK_END) == len(DATA) - 8
        assert file.read() == DATA[-8:]
        assert file.read() == b""
        file.seek(5 << 20)
        assert file.read(3) == DATA[5 << 20 :][:3]
        assert file.tell() == (5 << 20) + 3
        file.seek(1000, io.SEEK_CUR)
        assert file.read(2) == DATA[(5 << 20) + 1003 :][:2]
        file.seek(len(DATA) + 5)
        assert file.read(1) == b""
        with pytest.raises((OSError, ValueError)):
            file.seek(-1)
    with pytest.raises(ValueError, match="closed"):
        file.read(1)


def test_a_random_read_requests_what_it_needs(server: WebHdfs, system: WebHdfsFileSystem) -> None:
    with system.open(URI) as file:
        for offset in (9 << 20, 2 << 20, 6 << 20):
            file.seek(offset)
            assert file.read(1 << 20) == DATA[offset:][: 1 << 20]
    assert len(server.ranges) == 3
    assert all(length <= (1 << 20) + (1 << 19) for _offset, length in server.ranges)


def test_a_request_stays_in_a_block(server: WebHdfs, system: WebHdfsFileSystem) -> None:
    server.block = 3 << 20
    assert system.open(URI).read() == DATA
    assert all(
        offset // server.block == (offset + length - 1) // server.block
        for offset, length in server.ranges
    )


def test_a_cut_connection_continues_at_the_same_byte(
    server: WebHdfs, system: WebHdfsFileSystem
) -> None:
    def cut(number: int, body: bytes) -> tuple[int, int, bytes]:
        return 200, len(body), body[: 70_001 * (number + 1)] if number < 4 else body

    server.fault = cut
    assert system.open(URI).read() == DATA
    assert server.ranges[1][0] == 70_001


def test_a_short_or_long_body(server: WebHdfs, system: WebHdfsFileSystem) -> None:
    def wrong(number: int, body: bytes) -> tuple[int, int, bytes]:
        if number == 0:
            body = body[:-5]  # Announced as such: the range is shorter than requested.
        if number == 1:
            body += b"more"
        return 200, len(body), body

    server.fault = wrong
    assert system.open(URI).read() == DATA


def test_errors_of_datanodes_pass(server: WebHdfs, system: WebHdfsFileSystem) -> None:
    server.fault = lambda number, body: (
        (500, 2, b"{}") if number % 2 == 0 else (200, len(body), body)
    )
    assert system.open(URI).read() == DATA


def test_a_file_that_becomes_shorter(server: WebHdfs, system: WebHdfsFileSystem) -> None:
    file = system.open(URI)
    assert file.read(4) == DATA[:4]
    server.files["/data/file.bin"] = DATA[: 1 << 20]
    with pytest.raises(RemoteError, match=rf"{URI} has become shorter than {len(DATA)} bytes"):
        file.read()


def test_a_standby_is_waited_for(server: WebHdfs, system: WebHdfsFileSystem) -> None:
    server.away = 3
    file = system.open(URI)
    server.away = 3
    assert file.read() == DATA


def test_an_outage_ends_with_one_sentence(server: WebHdfs) -> None:
    server.away = 1 << 30
    with pytest.raises(RemoteError) as caught:
        WebHdfsFileSystem(server.configuration, patience=0.2).open(URI)
    assert str(caught.value).startswith(f"{URI} could not be accessed for 0 s: HDFS refused")
    assert isinstance(caught.value, OSError)


def test_a_reader_gives_up_after_its_patience() -> None:
    def open_range(offset: int, length: int) -> Any:
        raise StoreError("HDFS is away", transient=True)

    reader = RangeReader(URI, 10, open_range, patience=0.2)
    with pytest.raises(RemoteError, match="could not be accessed for 0 s: HDFS is away"):
        reader.read()


def test_a_wait_is_logged_at_its_beginning_and_its_end(
    server: WebHdfs,
    system: WebHdfsFileSystem,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    file = system.open(URI)
    server.away = 1
    file.read(4)
    assert caplog.messages == []  # Too short.
    monkeypatch.setattr(waiting, "_SILENT", 0.0)
    for _number in range(2):
        server.away = 3
        with system.open(URI) as other:
            assert other.read(4) == DATA[:4]
        begin, end = caplog.messages
        assert begin.startswith(f"{URI} is not available, waiting for up to 60 s: HDFS refused ")
        assert end == f"{URI} is available again after 0 s."
        caplog.clear()
    server.away = 1 << 30
    with pytest.raises(RemoteError):
        WebHdfsFileSystem(server.configuration, patience=0.05).open(URI)
    assert len(caplog.messages) == 1  # The error says the rest.


def test_a_call_without_an_answer_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(waiting, "_STALLED", 0.05)
    monkeypatch.setattr(waiting, "_LOOK", 0.01)
    with waiting.watched(URI):
        until(lambda: caplog.messages)
        with waiting.watched(f"{URI}.2"):
            time.sleep(0.1)  # The same outage.
    assert [message.partition(",")[0] for message in caplog.messages] == [
        f"{URI} is not available",
        f"{URI}.2 is available again after 0 s.",
    ]
    with waiting.watched(URI):
        pass
    assert len(caplog.messages) == 2


@pytest.mark.parametrize(
    ("status", "name", "expected"),
    [
        (401, "AuthenticationException", RemoteError),
        (403, "AccessControlException", RemoteError),
        (404, "FileNotFoundException", MissingFileError),
    ],
)
def test_final_errors_are_raised_at_once(
    server: WebHdfs, system: WebHdfsFileSystem, status: int, name: str, expected: type[Exception]
) -> None:
    server.refused = status, name
    with pytest.raises(expected):
        system.open(URI)
    assert len(server.queries) == 1


def test_a_401_of_a_datanode_is_final(server: WebHdfs, system: WebHdfsFileSystem) -> None:
    server.fault = lambda number, body: (401, 2, b"{}")
    with pytest.raises(DataError, match="cannot be accessed"):
        system.open(URI).read()
    assert len(server.ranges) == 1


def test_a_refused_user_is_a_permission_error() -> None:
    assert issubclass(RefusedAccessError, PermissionError)
    assert issubclass(MissingFileError, FileNotFoundError)


def test_find(server: WebHdfs, system: WebHdfsFileSystem) -> None:
    server.files = {
        path: path.encode()
        for path in (
            *("/d/a1.txt", "/d/a2.txt", "/d/b.csv", "/d/.hidden.txt", "/d/x[1].txt"),
            *("/d/in/a3.txt", "/d/in/deep/a4.txt", "/e/y=1/p.txt", "/e/y=2/p.txt"),
        )
    }

    def names(pattern: str) -> list[str]:
        found = system.find(f"hdfs://fake:8020{pattern}")
        assert all(entry.modified == 5.0 for entry in found)
        assert all(entry.size == len(entry.uri) - len("hdfs://fake:8020") for entry in found)
        return [entry.uri.removeprefix("hdfs://fake:8020") for entry in found]

    assert names("/d/b.csv") == ["/d/b.csv"]
    assert names("/d/in") == ["/d/in/a3.txt", "/d/in/deep/a4.txt"]
    assert names("/d/*.txt") == ["/d/a1.txt", "/d/a2.txt", "/d/x[1].txt"]
    assert names("/d/a[1-2].txt") == ["/d/a1.txt", "/d/a2.txt"]
    assert names("/d/a?.txt") == ["/d/a1.txt", "/d/a2.txt"]
    assert names("/d/x[1].txt") == ["/d/x[1].txt"]
    assert names("/d/**/a*.txt") == [
        *("/d/a1.txt", "/d/a2.txt", "/d/in/a3.txt", "/d/in/deep/a4.txt"),
    ]
    assert names("/e/y=*/") == ["/e/y=1/p.txt", "/e/y=2/p.txt"]
    assert names("/e/**") == ["/e/y=1/p.txt", "/e/y=2/p.txt"]
    for missing in ("/nowhere", "/d/*.orc"):
        with pytest.raises(DataError, match="There is no file"):
            names(missing)


def test_a_system_is_pickled_without_its_connections(
    server: WebHdfs, system: WebHdfsFileSystem
) -> None:
    system.open(URI)
    assert pickle.loads(pickle.dumps(system)).open(URI).read(3) == DATA[:3]
