"""The logs of an ended job in order of time, for each reader the same."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.access import LogChunk
from submarine_jobs.logs import merged, merging
from submarine_jobs.model import Role
from submarine_runtime.protocol import LogKey, layout
from tests.unit.jobs.access.fake_port import FollowedJob, Port


@pytest.fixture
def job(tmp_path: Path) -> FollowedJob:
    port = Port(tmp_path, [])
    port.close()
    return FollowedJob(tmp_path / "job", port, (Role("worker", 64),))


def ship(
    job: FollowedJob, key: LogKey, lines: list[tuple[float, str]], *, index: bool = True
) -> None:
    """Write the log of a task: lines with the second in which each was written."""
    place = Path(job.directory.file(layout.log_directory(key.task, 1, int(key.attempt[-1]))))
    place.mkdir(parents=True, exist_ok=True)
    data, marks = b"", []
    for number, (second, line) in enumerate(lines):
        data += line.encode()
        if number + 1 == len(lines) or lines[number + 1][0] > second:
            marks.append(f"{len(data)} {second}\n")
    (place / layout.segment_name(key.stream, 0)).write_bytes(data)
    if index:
        (place / layout.index_name(key.stream)).write_text("".join(marks))


OUT, ERR = LogKey("worker:0", "e1-a1", "stdout"), LogKey("worker:0", "e1-a1", "stderr")


def text(chunks: Any) -> str:
    return b"".join(chunk.data for chunk in chunks).decode()


def test_two_streams_are_in_order_of_time(job: FollowedJob) -> None:
    ship(job, OUT, [(1, "a\n"), (3, "c\n"), (3, "d\n"), (6, "g\n")])
    ship(job, ERR, [(2, "b\n"), (4, "e\n"), (5, "f\n")])
    read = list(merged(job, [OUT, ERR], {}))
    followed = list(job.follow(tasks="*"))
    assert text(read) == text(followed) == "a\nb\nc\nd\ne\nf\ng\n"
    # Two reads of an ended job are the same.
    assert list(job.follow(tasks="*")) == followed
    assert text(merged(job, [OUT, ERR], {OUT: 2, ERR: 4})) == "c\nd\nf\ng\n"


def test_a_line_is_whole_and_has_the_time_of_its_last_byte(job: FollowedJob) -> None:
    ship(job, OUT, [(1, "a\n"), (1, "be"), (4, "gun\n"), (5, "last")])
    ship(job, ERR, [(2, "x\n"), (3, "y\n"), (9, "z\n")])
    assert text(merged(job, [OUT, ERR], {})) == "a\nx\ny\nbegun\nlastz\n"


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 64])
def test_tasks_are_merged_and_each_byte_is_read_once(
    job: FollowedJob, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 64 tasks each log is read in small pieces, which end within lines."""
    monkeypatch.setattr(merging, "LEAST_BYTES", 100)
    monkeypatch.setattr(merging, "MAX_BYTES", 0)
    chance = random.Random(count)
    lines: dict[LogKey, list[tuple[float, str]]] = {}
    for second in range(400):
        task = chance.randrange(count)
        stream = chance.choice(layout.STREAMS)
        key = LogKey(f"worker:{task}", "e1-a1", stream)
        lines.setdefault(key, []).append((second, f"{second:04d} of {key}\n"))
    for key, of_log in lines.items():
        ship(job, key, of_log)
    for chunks in (list(merged(job, list(lines), {})), list(job.follow(tasks="*"))):
        seconds = [int(line[:4]) for line in text(chunks).splitlines()]
        assert seconds == list(range(400))
        ends: dict[LogKey, int] = {}
        for chunk in chunks:
            assert chunk.offset == ends.get(key_of(chunk), 0)
            ends[key_of(chunk)] = chunk.end


def key_of(chunk: LogChunk) -> LogKey:
    return LogKey(chunk.task, chunk.attempt, chunk.stream)


def test_attempts_follow_each_other(job: FollowedJob) -> None:
    again = OUT._replace(attempt="e1-a2")
    ship(job, OUT, [(1, "first\n"), (7, "late\n")])
    ship(job, again, [(5, "second\n"), (8, "end\n")])
    ship(job, OUT._replace(task="worker:1"), [(6, "other\n")])
    keys = [OUT, again, OUT._replace(task="worker:1")]
    assert text(merged(job, keys, {})) == "first\nsecond\nother\nlate\nend\n"
    position_at_first = {"stdout": 3}
    chunks = list(job.follow(tasks=("worker:0",), **position_at_first))
    assert [chunk.note for chunk in chunks if chunk.note] == []
    assert text(chunks) == "ond\nend\n"


def test_without_an_index_the_times_of_the_segments_count(job: FollowedJob) -> None:
    ship(job, OUT, [(1, "a\n"), (3000, "z\n")])
    ship(job, ERR, [(1, "uploaded now\n")], index=False)
    # The times of files are later than those of the index.
    assert text(merged(job, [ERR, OUT], {})) == "a\nz\nuploaded now\n"
    assert text(job.follow(tasks="*")) == "a\nz\nuploaded now\n"


def test_a_very_long_line_does_not_wait_in_memory(
    job: FollowedJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "MAX_LINE", 10)
    monkeypatch.setattr(merging, "MAX_READ_AHEAD", 0)
    monkeypatch.setattr(merging, "LEAST_BYTES", 7)
    monkeypatch.setattr(merging, "MAX_BYTES", 0)
    ship(job, OUT, [(1, "x" * 500 + "\n")])
    ship(job, ERR, [(2, "b\n")])
    chunks = list(merged(job, [OUT, ERR], {}))
    assert text(chunks) == "x" * 500 + "\nb\n"
    assert max(len(chunk.data) for chunk in chunks) < 30
