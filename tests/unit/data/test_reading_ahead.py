"""Reading ahead in pieces: the same bytes, few requests, and one thread that ends."""

from __future__ import annotations

import gc
import io
import random
import time
from typing import Any

import pytest

from submarine_data import ReadAheadFile
from submarine_data.reading_ahead import Range
from tests.unit.data.test_dataset import threads, wait_for_no_threads

DATA = random.Random(1).randbytes(10_000)


class Remote(io.BytesIO):
    """A file that notes the ranges of its requests."""

    def __init__(self, data: bytes = DATA) -> None:
        super().__init__(data)
        self.requests: list[tuple[int, int]] = []

    def readinto(self, buffer: Any) -> int:
        self.requests.append((self.tell(), len(buffer)))
        return super().readinto(buffer)


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

        def readinto(self, buffer: Any) -> int:
            if self.tell() >= 5000 and self.failures:
                self.failures -= 1
                raise OSError("the network is down")
            return super().readinto(buffer)

    with opened(Broken()) as file:
        file.seek(5000)
        with pytest.raises(OSError, match="the network is down"):
            file.read(10)
        assert file.read(10) == DATA[5000:5010]


def test_a_file_that_became_shorter_ends() -> None:
    with io.BufferedReader(opened(Remote(DATA[:1500]))) as file:
        assert file.read() == DATA[:1500]


def wait_for_requests(remote: Remote, count: int) -> list[int]:
    """Wait until there are some requests, and none more; return where they start."""
    end = time.monotonic() + 10
    while len(remote.requests) < count and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.05)
    return [start for start, _ in remote.requests]


#: Two columns in turns; bytes 4000 to 5000 are of none.
PLAN = [Range(0, 1000), Range(5000, 6000), Range(1000, 4000), Range(6000, 9000)]


def test_a_plan_is_read_in_its_order_as_far_as_there_is_memory() -> None:
    remote = Remote()
    with opened(remote) as file:
        file.expect(PLAN, 2000)
        assert wait_for_requests(remote, 2) == [0, 5000]
        assert file.read(1000) == DATA[:1000]
        # One part is used: but the next is larger than what that left.
        assert wait_for_requests(remote, 2) == [0, 5000]
        file.seek(5000)
        assert file.read(1000) == DATA[5000:6000]
        assert wait_for_requests(remote, 3) == [0, 5000, 1000]
        for start, end in ((1000, 4000), (6000, 9000)):
            file.seek(start)
            assert file.read(end - start) == DATA[start:end]
    assert remote.requests == [(start, end - start) for start, end in PLAN]


def test_the_next_plan_keeps_its_own_parts_and_frees_others() -> None:
    remote = Remote()
    with opened(remote) as file:
        file.expect(PLAN, 2000)
        assert wait_for_requests(remote, 2) == [0, 5000]
        file.expect([Range(5000, 6000), Range(7000, 8000)], 2000)
        assert wait_for_requests(remote, 3) == [0, 5000, 7000]
        file.seek(5000)
        assert file.read(1000) == DATA[5000:6000]
        file.seek(0)
        assert file.read(1000) == DATA[:1000]


def test_bytes_beside_and_before_the_plan_can_be_read() -> None:
    remote = Remote()
    with opened(remote) as file:
        file.expect(PLAN, 1000)
        numbers = random.Random(3)
        for _ in range(300):
            start, count = numbers.randrange(11_000), numbers.randrange(3000)
            file.seek(start)
            assert file.read(count) == DATA[start : start + count]
    ranges = {(start, end - start) for start, end in PLAN}
    assert {one for one in remote.requests if one[0] < 4000} <= ranges
    assert (4000, 1000) in remote.requests


def test_two_connections_do_not_wait_for_each_other() -> None:
    numbers = random.Random(5)
    for kept in (400, 1000, 3000):
        ranges = [Range(start, start + 100) for start in range(0, 10_000, 100)]
        numbers.shuffle(ranges)
        with ReadAheadFile(Remote(), len(DATA), 1000, kept, Remote) as file:
            file.expect(ranges, kept, numbers.sample(ranges, 50))
            numbers.shuffle(ranges)
            for start, end in ranges:
                file.seek(start)
                assert file.read(end - start) == DATA[start:end]


def test_an_urgent_part_is_read_when_the_memory_is_full() -> None:
    remote = Remote()
    with opened(remote) as file:
        file.expect(PLAN, 1000)
        assert wait_for_requests(remote, 1) == [0]
        file.seek(6500)
        assert file.read(10) == DATA[6500:6510]
        assert wait_for_requests(remote, 2) == [0, 6000]


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
