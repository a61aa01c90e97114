"""Reading ahead in pieces: the same bytes, few requests, and one thread that ends."""

from __future__ import annotations

import gc
import io
import random
import time
from typing import Any

import pytest

from submarine_data import ReadAheadFile
from tests.unit.data.test_dataset import threads, wait_for_no_threads

DATA = random.Random(1).randbytes(10_000)


class Remote(io.BytesIO):
    """A file that notes the ranges of its requests."""

    def __init__(self, data: bytes = DATA) -> None:
        super().__init__(data)
        self.requests: list[tuple[int, int]] = []

    def read(self, size: int | None = -1) -> bytes:
        self.requests.append((self.tell(), size or 0))
        return super().read(size)


def opened(remote: io.BytesIO, size: int = len(DATA)) -> ReadAheadFile:
    return ReadAheadFile(remote, size, piece=1000, kept=4000)


def test_the_bytes_are_those_of_the_file() -> None:
    with opened(Remote()) as file:
        numbers = random.Random(2)
        for _ in range(300):
            start, count = numbers.randrange(11_000), numbers.randrange(3000)
            file.seek(start)
            assert file.read(count) == DATA[start : start + count]
        assert file.seek(-10, io.SEEK_END) == 9990
        assert file.read() == DATA[-10:]


def test_sequential_reading_requests_each_piece_once() -> None:
    remote = Remote()
    with io.BufferedReader(opened(remote), 100) as file:
        while file.read(37):
            pass
    assert sorted(remote.requests) == [(i * 1000, 1000) for i in range(10)]


def test_the_next_pieces_are_read_before_they_are_needed() -> None:
    remote = Remote()
    with opened(remote) as file:
        file.read(10)
        end = time.monotonic() + 10
        while len(remote.requests) < 3 and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.05)
        assert [start for start, _ in remote.requests] == [0, 1000, 2000]


def test_a_jump_reads_nothing_ahead() -> None:
    remote = Remote()
    with opened(remote) as file:
        file.seek(8500)
        file.read(10)
        time.sleep(0.05)
        assert [start for start, _ in remote.requests] == [8000]


def test_an_error_is_raised_where_it_is_read_and_tried_again() -> None:
    class Broken(Remote):
        failures = 1

        def read(self, size: int | None = -1) -> bytes:
            if self.tell() >= 5000 and self.failures:
                self.failures -= 1
                raise OSError("the network is down")
            return super().read(size)

    with opened(Broken()) as file:
        file.seek(5000)
        with pytest.raises(OSError, match="the network is down"):
            file.read(10)
        assert file.read(10) == DATA[5000:5010]


def test_a_file_that_became_shorter_ends() -> None:
    with io.BufferedReader(opened(Remote(DATA[:1500]))) as file:
        assert file.read() == DATA[:1500]


@pytest.mark.parametrize("close", [True, False])
def test_the_thread_ends_and_the_source_is_closed(close: bool) -> None:
    remote = Remote()
    file: Any = opened(remote)
    file.read(10)
    assert threads() == ["submarine-read-ahead"]
    if close:
        file.close()
    del file
    gc.collect()
    wait_for_no_threads()
    assert remote.closed
