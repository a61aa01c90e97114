"""The log of a job of several tasks, however its connections break and its tasks restart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.access import LogChunk
from submarine_jobs.commands.log_output.lines import PrefixedLines
from submarine_jobs.errors import ClusterError, NoAccessError, NoAnswerError, UsageError
from submarine_jobs.logs import delivery, following, source
from submarine_jobs.model import Role, format_task_ranges, select_tasks
from submarine_jobs.storage import LocalStorage
from tests.unit.jobs.access.fake_port import FollowedJob, Port, log_line, skip_line

ROLES = (Role("worker", 3), Role("ps", 1, kind="untracked"))


@pytest.fixture
def ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    made: list[Port] = []
    monkeypatch.setattr(source, "MIN_PAUSE", 0.01)
    monkeypatch.setattr(delivery, "RETRY", 0.01)

    def make(*scripts: list[Any]) -> FollowedJob:
        made.append(Port(tmp_path, scripts))
        return FollowedJob(tmp_path / "job", made[-1], ROLES)

    yield make
    for port in made:
        port.close()


def texts(chunks: list[LogChunk]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for chunk in chunks:
        key = f"{chunk.task}/{chunk.attempt}"
        assert chunk.note or chunk.offset == len(found.get(key, b"")), (key, chunk.offset)
        found[key] = found.get(key, b"") + chunk.data
    return found


def test_no_byte_is_lost_or_doubled_when_connections_break(ports: Any) -> None:
    job = ports(
        [
            log_line("worker:0", "e1-a1", 0, b"abc"),
            log_line("worker:1", "e1-a1", 0, b"123"),
        ],
        # The other side begins too early for one task and too late for the other.
        [log_line("worker:0", "e1-a1", 1, b"bcdef"), log_line("worker:1", "e1-a1", 5, b"6")],
        [log_line("worker:1", "e1-a1", 6, b"7")],
    )
    job.port.logs["worker:1/e1-a1/stdout"] = b"1234567"
    chunks = list(job.follow(tasks=("worker:0", "worker:1")))
    assert texts(chunks) == {"worker:0/e1-a1": b"abcdef", "worker:1/e1-a1": b"1234567"}
    assert [query["tasks"] for query in job.port.asked] == ["worker:0,worker:1"] * 3
    assert job.port.asked[0].get("at") is None
    at = dict(item.split("=") for item in job.port.asked[1]["at"].split(","))
    assert at == {"worker:0/e1-a1/stdout": "3", "worker:1/e1-a1/stdout": "3"}


def test_a_restarted_task_goes_on_after_one_note_and_the_rest_of_its_last_attempt(
    ports: Any,
) -> None:
    job = ports(
        [
            log_line("worker:1", "e1-a1", 0, b"one\n"),
            log_line("worker:1", "e1-a2", 0, b"two\n"),
            log_line("worker:1", "e1-a2", 4, b"more\n"),
        ],
        [log_line("worker:1", "e2-a1", 0, b"three\n")],
    )
    job.ship("worker:1", (1, 1), b"one\nlast words\n")
    chunks = list(job.follow(tasks=("worker:1",)))
    assert texts(chunks) == {
        "worker:1/e1-a1": b"one\nlast words\n",
        "worker:1/e1-a2": b"two\nmore\n",
        "worker:1/e2-a1": b"three\n",
    }
    assert [chunk.note for chunk in chunks if chunk.note] == [
        "worker:1 was started again; its log goes on with attempt e1-a2",
        "worker:1 was started again; its log goes on with attempt e2-a1",
    ]


def test_what_was_skipped_is_fetched_and_what_is_gone_is_said(ports: Any) -> None:
    job = ports(
        [
            log_line("worker:0", "e1-a1", 0, b"ab"),
            skip_line("worker:0", "e1-a1", 2, 6),
            log_line("worker:0", "e1-a1", 6, b"gh"),
            log_line("ps:0", "e1-a1", 0, b"x"),
            skip_line("ps:0", "e1-a1", 1, 100),
            log_line("ps:0", "e1-a1", 100, b"y"),
        ],
    )
    job.port.logs["worker:0/e1-a1/stdout"] = b"abcdefgh"
    chunks = list(job.follow(tasks="*"))
    assert b"".join(c.data for c in chunks if c.task == "worker:0") == b"abcdefgh"
    served = {c.offset: c.data for c in chunks if c.task == "ps:0" and not c.note}
    assert served.pop(100) == b"y"
    # "x" is lost too if it was not read before the gap.
    assert served in ({}, {0: b"x"})
    lost = 100 - len(served)
    assert [c.note for c in chunks if c.note] == [
        f"{lost} bytes of stdout of ps:0 are not available now"
    ]


def test_without_anybody_to_ask_the_shipped_logs_serve(ports: Any) -> None:
    job = ports([])
    job.port.close()
    job.port.scripts.clear()
    job.ship("worker:0", (1, 1), b"old attempt\n")
    job.ship("worker:0", (1, 2), b"new ")
    job.ship("worker:0", (1, 2), b"attempt\n", 4)
    job.ship("ps:0", (1, 1), b"served\n")
    chunks = list(job.follow(tasks="*"))
    assert texts(chunks) == {"worker:0/e1-a2": b"new attempt\n", "ps:0/e1-a1": b"served\n"}
    assert job.log(task="worker:0", attempt="e1-a1").data == b"old attempt\n"


def test_a_log_is_read_by_offset_live_and_shipped(ports: Any) -> None:
    """The uploaded bytes are read from the directory, the rest from the port."""
    job = ports([])
    job.ship("worker:0", (1, 1), b"shipped ")
    job.port.logs["worker:0/e1-a1/stdout"] = b"shipped and live"
    assert b"".join(c.data for c in job.read_log(task="worker:0")) == b"shipped and live"
    assert job.log(offset=-4, task="worker:0").data == b"live"
    job.port.close()
    assert b"".join(c.data for c in job.read_log(task="worker:0")) == b"shipped "
    large = bytes(3 << 20)
    job.ship("worker:1", (1, 1), large)
    assert job.log(limit=len(large), task="worker:1").data == large


class Silence:
    """Lets some calls of the file system fail, as a NameNode that does not answer."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        self.fail: Callable[[int], bool] = lambda call: False
        for name in ("list_directory", "read"):
            patch.setattr(LocalStorage, name, self._of(getattr(LocalStorage, name)))

    def _of(self, real: Any) -> Any:
        def call(storage: LocalStorage, path: str, *words: Any) -> Any:
            if "/logs" in path:
                self.calls += 1
                if self.fail(self.calls):
                    raise NoAnswerError("HDFS did not answer in time.")
            return real(storage, path, *words)

        return call


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1, 9))
def test_outage_of_the_file_system_loses_no_line_and_is_reported_once(
    ports: Any, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """The outage begins at any call, and the job has ended when it begins."""
    job = ports([])
    job.port.close()
    job.port.scripts.clear()
    job.ship("worker:0", (1, 1), b"old attempt\n")
    job.ship("worker:0", (1, 2), b"new ")
    job.ship("worker:0", (1, 2), b"attempt\n", 4)
    job.ship("ps:0", (1, 1), b"served\n")
    silence = Silence(monkeypatch)
    silence.fail = lambda call: first <= call < first + 4
    chunks = list(job.follow(tasks="*"))
    assert texts([c for c in chunks if not c.note]) == {
        "worker:0/e1-a2": b"new attempt\n",
        "ps:0/e1-a1": b"served\n",
    }
    notes = [chunk.note for chunk in chunks if chunk.note]
    assert len(notes) == (1 if silence.calls >= first else 0)
    assert all("could not be read (HDFS did not answer in time); it" in note for note in notes)


@pytest.mark.slow
def test_long_outage_is_reported_before_it_is_over(
    ports: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "GAP_NOTE_AFTER", -1.0)
    job = ports([])
    job.port.close()
    job.port.scripts.clear()
    job.ship("worker:0", (1, 1), b"text\n")
    silence = Silence(monkeypatch)
    silence.fail = lambda call: call <= 5
    notes = [chunk.note for chunk in job.follow() if chunk.note]
    assert len(notes) == 2
    assert "no new output since" in notes[0]
    assert "following continues: HDFS did not answer in time." in notes[0]


def test_log_that_may_not_be_read_ends_following(
    ports: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise NoAccessError("Permission denied.")

    job = ports([])
    job.port.close()
    monkeypatch.setattr(LocalStorage, "list_directory", refuse)
    with pytest.raises(NoAccessError):
        list(job.follow())


def test_cluster_that_does_not_answer_is_asked_again(
    ports: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = ports(
        [log_line("worker:0", "e1-a1", 0, b"abc")], [log_line("worker:0", "e1-a1", 3, b"d")]
    )
    record, calls = job.record, []

    def now_and_then() -> Any:
        calls.append(1)
        if len(calls) % 2:
            raise ClusterError("The ResourceManager does not answer.")
        return record()

    monkeypatch.setattr(job, "record", now_and_then)
    assert texts([c for c in job.follow() if not c.note]) == {"worker:0/e1-a1": b"abcd"}


def test_an_agent_of_the_first_release_names_no_attempt(ports: Any) -> None:
    old = {k: v for k, v in log_line("worker:0", "", 0, b"hello").items() if k != "attempt"}
    again = {**old, "offset": 5}
    job = ports([old], [again])
    assert texts(list(job.follow())) == {"worker:0/e1-a1": b"hellohello"}
    assert job.port.asked[1]["stdout"] == "5"


def test_other_tasks_are_not_taken_for_those_that_are_followed(ports: Any) -> None:
    job = ports([log_line("ps:0", "e1-a1", 0, b"no"), log_line("worker:2", "e1-a1", 0, b"yes")])
    assert texts(list(job.follow(tasks=("worker:2",)))) == {"worker:2/e1-a1": b"yes"}


def test_tasks_are_chosen_by_name_and_by_role() -> None:
    names = ["chief:0", "worker:0", "worker:1", "worker:2", "ps:0"]
    assert select_tasks(names, ["worker:1"], "j") == ["worker:1"]
    assert select_tasks(names, ["ps", "worker", "ps:0"], "j") == [
        "ps:0",
        "worker:0",
        "worker:1",
        "worker:2",
    ]
    assert format_task_ranges(names) == "chief:0, worker:0 to worker:2, ps:0"
    with pytest.raises(UsageError, match="no task 'worker:7'") as error:
        select_tasks(names, ["worker:7"], "j")
    assert "worker:0 to worker:2" in error.value.fix


def test_lines_of_several_tasks_stay_whole_and_have_names() -> None:
    lines = PrefixedLines(["worker:0", "ps:0"], coloured=False)
    shown = lines.feed(LogChunk("stdout", 0, b"one\ntw", "worker:0"))
    shown += lines.feed(LogChunk("stdout", 0, b"serving\n", "ps:0"))
    shown += lines.feed(LogChunk("stderr", 0, b"oops\n", "worker:0"))
    shown += lines.feed(LogChunk("stdout", 6, b"o\nthree", "worker:0"))
    shown += b"".join(line for _, line in lines.rest())
    assert shown.decode().splitlines() == [
        "worker:0 | one",
        "ps:0     | serving",
        "worker:0 | oops",
        "worker:0 | two",
        "worker:0 | three",
    ]


def test_a_terminal_gets_colours_and_nothing_that_acts() -> None:
    lines = PrefixedLines(["worker:0", "ps:0"], coloured=True)
    shown = lines.feed(LogChunk("stdout", 0, b" 1%\r 2%\x1b]52;c;x\x07 \x1b[31mred\n", "worker:0"))
    shown += lines.feed(LogChunk("stdout", 0, b"\x1b]0;never ends\n", "ps:0"))
    shown += lines.feed(LogChunk("stdout", 0, b"fine\n", "worker:0"))
    text = shown.decode()
    assert "\x1b[36mworker:0 |\x1b[0m  2% \x1b[31mred\x1b[0m\n" in text
    assert "\x1b]" not in text
    assert "\r" not in text
    assert text.endswith("fine\n")


def test_an_endless_line_is_cut() -> None:
    lines = PrefixedLines(["worker:0"], coloured=False)
    shown = lines.feed(LogChunk("stdout", 0, b"x" * 200_000, "worker:0"))
    assert shown.count(b"\n") == 3
