from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import given, strategies as st

from submarine_jobs.access import JobDirectory
from submarine_jobs.logs import ShippedLog, shipped_lengths
from submarine_jobs.storage import LocalStorage
from submarine_runtime.protocol import layout

PIECES = st.lists(st.binary(min_size=1, max_size=40), max_size=12)


def shipped(root: str, pieces: list[bytes], attempt: tuple[int, int] = (1, 1)) -> JobDirectory:
    directory = JobDirectory(LocalStorage(), root)
    offset = 0
    for piece in pieces:
        name = layout.segment_name("stdout", offset)
        place = layout.log_directory("worker:0", *attempt)
        directory.storage.publish(directory.file(f"{place}/{name}"), piece)
        offset += len(piece)
    return directory


@pytest.mark.slow
@given(pieces=PIECES, offset=st.integers(-100, 500), limit=st.integers(0, 500))
def test_any_segmentation_reads_as_the_whole(pieces: list[bytes], offset: int, limit: int) -> None:
    whole = b"".join(pieces)
    with tempfile.TemporaryDirectory() as root:
        log = ShippedLog(shipped(root, pieces))
        log.refresh()
        assert log.length("stdout") == len(whole)
        start = max(0, len(whole) + offset) if offset < 0 else offset
        chunk = log.read("stdout", offset, limit)
        assert chunk.data == whole[start : start + limit]
        assert chunk.offset == start
        through = list(log.read_through("stdout", start))
        assert b"".join(piece.data for piece in through) == whole[start:]
        position = start
        for piece in through:
            assert piece.offset == position
            position = piece.end


def test_newest_attempt_is_read_and_foreign_names_are_ignored(tmp_path: object) -> None:
    root = str(tmp_path)
    shipped(root, [b"old"], (1, 1))
    shipped(root, [b"older than ten"], (1, 9))
    directory = shipped(root, [b"new"], (1, 10))
    place = layout.log_directory("worker:0", 1, 10)
    for name in ("stdout.index", "stdout.1", "evil", "stdin.000000000000"):
        directory.storage.publish(directory.file(f"{place}/{name}"), b"x")
    log = ShippedLog(directory)
    log.refresh()
    assert log.read("stdout", 0, 100).data == b"new"


def test_a_segment_that_was_never_finished_counts(tmp_path: object) -> None:
    directory = shipped(str(tmp_path), [b"one", b"two"])
    place = layout.log_directory("worker:0", 1, 1)

    def grow(offset: int, data: bytes) -> None:
        name = layout.growing_name("stdout", offset)
        directory.storage.publish(directory.file(f"{place}/{name}"), data)

    grow(3, b"tw")  # left over: its segment was published whole
    grow(6, b"three")
    log = ShippedLog(directory)
    log.refresh()
    assert log.read("stdout", 1, 100).data == b"netwothree"
    assert shipped_lengths(directory) == {"worker:0/e1-a1/stdout": 11}
    # It is finished between the listing and the reading.
    root = directory.file(place)
    os.rename(
        f"{root}/{layout.growing_name('stdout', 6)}", f"{root}/{layout.segment_name('stdout', 6)}"
    )
    assert b"".join(piece.data for piece in log.read_through("stdout", 0)) == b"onetwothree"


def test_a_job_without_a_log_has_an_empty_one(tmp_path: object) -> None:
    log = ShippedLog(JobDirectory(LocalStorage(), str(tmp_path)))
    log.refresh()
    assert log.read("stderr", -10, 10).data == b""
    assert list(log.read_through("stdout")) == []
