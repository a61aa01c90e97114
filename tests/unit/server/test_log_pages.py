"""Pages of several logs in order of time: each byte once, from any position, in both directions."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from submarine_jobs.access import JobDirectory
from submarine_jobs.client import Job
from submarine_jobs.errors import UsageError
from submarine_jobs.logs import LogReader
from submarine_jobs.storage import LocalStorage
from submarine_runtime.protocol import JobRecord, LogKey, State, layout
from submarine_server.logs import Page, PageRequest, pages, read_page

Line = tuple[float, str]


class Logs:
    """The shipped logs of an ended job: lines with the second in which each was written."""

    def __init__(
        self, root: Path, lines: Mapping[str, Sequence[Line]], *, index: bool = True
    ) -> None:
        self.lines = lines
        lengths = {}
        for name, of_log in lines.items():
            task, attempt, stream = name.split("/")
            epoch, number = layout.parse_attempt(attempt) or (1, 1)
            place = root / layout.log_directory(task, epoch, number)
            place.mkdir(parents=True, exist_ok=True)
            data = "".join(line for _, line in of_log).encode()
            (place / layout.segment_name(stream, 0)).write_bytes(data)
            if index:
                (place / layout.index_name(stream)).write_text(marks(of_log))
            lengths[name] = len(data)
        self.lengths = lengths
        record = JobRecord("job", "job", State.SUCCEEDED, logs=lengths)
        directory = JobDirectory(LocalStorage(), str(root))
        entry = SimpleNamespace(final=True, record=record)
        job = SimpleNamespace(directory=directory, index_entry=lambda: entry)
        self.reader = LogReader(cast(Job, job))

    def page(self, at: dict[str, int], **words: Any) -> Page:
        return read_page(self.reader, PageRequest.of({"at": at, **words}))

    def whole(self) -> str:
        """All lines in order of time, and of logs for the same second."""
        numbered = [
            (second, log, place, line)
            for log, of_log in enumerate(self.lines.values())
            for place, (second, line) in enumerate(of_log)
        ]
        return "".join(line for *_, line in sorted(numbered))


def marks(lines: Sequence[Line]) -> str:
    found: dict[float, int] = {}
    end = 0
    for second, line in lines:
        end += len(line.encode())
        found[second] = end
    return "".join(f"{offset} {second}\n" for second, offset in found.items())


def text(page: Page) -> str:
    """The bytes of a page in its order."""
    at = [log.begin for log in page.logs]
    data = b""
    for number, begin, end, _time in page.blocks:
        assert begin == at[number]
        log = page.logs[number]
        data += log.data[begin - log.begin : end - log.begin]
        at[number] = end
    assert at == [log.end for log in page.logs]
    return data.decode()


def made_up(seed: int, tasks: int = 5) -> dict[str, list[Line]]:
    chance = random.Random(seed)
    names = [f"worker:{task}/e1-a1/{s}" for task in range(tasks) for s in ("stdout", "stderr")]
    lines: dict[str, list[Line]] = {name: [] for name in names}
    for second in range(1, 60):
        for name in chance.sample(names, chance.randint(0, 3)):
            for _number in range(chance.choice([1, 1, 2, 40])):
                length = chance.choice([0, 5, 60, 500])
                lines[name].append((second, f"{second} {name} {'x' * length}\n"))
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("limit", [500, 3000, 1 << 20])
def test_pages_in_both_directions_are_the_whole_in_order(
    tmp_path: Path, seed: int, limit: int
) -> None:
    logs = Logs(tmp_path, made_up(seed))
    at = dict.fromkeys(logs.lines, 0)
    parts = []
    while any(at[name] < length for name, length in logs.lengths.items()):
        page = logs.page(at, limit=limit)
        parts.append(text(page))
        assert 0 < len(parts[-1]) <= limit
        assert [log.begin for log in page.logs] == list(at.values())
        at = {str(log.key): log.end for log in page.logs}
    assert "".join(parts) == logs.whole()
    parts, page = [], logs.page(at, end=True, limit=limit)
    assert {str(log.key): log.end for log in page.logs} == logs.lengths
    parts.append(text(page))
    while any(log.begin for log in page.logs):
        at = {str(log.key): log.begin for log in page.logs}
        page = logs.page(at, backward=True, limit=limit)
        assert [log.end for log in page.logs] == list(at.values())
        parts.append(text(page))
    assert "".join(parts[::-1]) == logs.whole()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_page_around_an_offset_has_what_was_written_before_and_after(
    tmp_path: Path, seed: int
) -> None:
    logs = Logs(tmp_path, made_up(seed))
    whole = logs.whole()
    chance = random.Random(seed)
    for _number in range(20):
        name = chance.choice([name for name, length in logs.lengths.items() if length])
        at = {**logs.lengths, name: chance.randrange(logs.lengths[name])}
        page = logs.page(at, around=name, limit=4000)
        shown = text(page)
        begin = whole.index(shown)
        # It begins and ends within the same second as in the whole.
        assert whole[begin : begin + len(shown)] == shown
        log = next(log for log in page.logs if str(log.key) == name)
        assert log.begin <= at[name] < log.end
        before = sum(
            block.end - block.begin if str(page.logs[block.log].key) != name else 0
            for block in page.blocks
        )
        assert before + len(log.data) == len(shown)


def test_the_last_line_of_64_tasks_is_the_last_one_that_was_written(tmp_path: Path) -> None:
    """And not that of the last task."""
    lines = {
        f"worker:{task}/e1-a1/{stream}": [
            (60 * second - task, f"{task} {stream} {second}\n") for second in range(1, 9)
        ]
        for task in range(64)
        for stream in ("stdout", "stderr")
    }
    logs = Logs(tmp_path, lines)
    page = logs.page(dict.fromkeys(lines, 0), end=True, limit=4096)
    assert text(page) == logs.whole()[-4096:]
    assert text(page).splitlines()[-2:] == ["0 stdout 8", "0 stderr 8"]


def test_without_times_the_logs_follow_each_other(tmp_path: Path) -> None:
    lines = {"worker:0/e1-a1/stdout": [(5, "a\n")], "worker:1/e1-a1/stdout": [(1, "b\n")]}
    logs = Logs(tmp_path, lines, index=False)
    for name in ("worker-0", "worker-1"):
        segment = tmp_path / f"logs/{name}/e1-a1/stdout.000000000000"
        assert segment.exists()
    page = logs.page(dict.fromkeys(lines, 0))
    assert sorted(text(page).splitlines()) == ["a", "b"]
    assert page.logs[0].index.exact is False


def test_a_page_ends_where_bytes_are_missing(tmp_path: Path) -> None:
    lines = {
        "worker:0/e1-a1/stdout": [(1, "a\n"), (3, "c\n")],
        "worker:1/e1-a1/stdout": [(2, "b\n")],
    }
    logs = Logs(tmp_path, lines)
    (tmp_path / "logs/worker-0/e1-a1/stdout.000000000000").write_bytes(b"a\n")
    page = logs.page(dict.fromkeys(lines, 0))
    assert text(page) == "a\nb\n"
    page = logs.page(dict.fromkeys(lines, 0), end=True)
    assert text(page) == "b\n"
    assert page.logs[0].begin == page.logs[0].end == 4


OUT = "worker:0/e1-a1/stdout"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"at": {}},
        {"at": []},
        {"at": {"../secret": 0}},
        {"at": {OUT: -1}},
        {"at": {OUT: "0"}},
        {"at": {OUT: True}},
        {"at": {OUT + "\n": 0}},
        {"at": {OUT: 1 << 60}},
        {"at": {OUT: 0}, "around": "worker:1/e1-a1/stdout"},
        {"at": {OUT: 0}, "around": 7},
        {"at": {OUT: 0}, "backward": 1},
        {"at": {OUT: 0}, "end": "yes"},
        {"at": {OUT: 0}, "limit": 0},
        {"at": {OUT: 0}, "limit": pages.MAX_PAGE + 1},
        {"at": {f"worker:{n}/e1-a1/stdout": 0 for n in range(pages.MAX_LOGS + 1)}},
    ],
)
def test_a_request_that_makes_no_sense_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        PageRequest.of(body)


def test_the_indexes_of_a_job_take_bounded_memory(tmp_path: Path) -> None:
    lines = {OUT: [(second, "x\n") for second in range(1, 4000)]}
    logs = Logs(tmp_path, lines)
    index = logs.reader.index(LogKey("worker:0", "e1-a1", "stdout"))
    assert index.offsets.itemsize * len(index.offsets) <= 32 << 10
