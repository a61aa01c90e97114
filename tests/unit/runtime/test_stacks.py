"""Stacks of a job: parsed, folded, and the process that the others wait for."""

from __future__ import annotations

from typing import Any

import pytest

from submarine_runtime.stacks import parse_dump, report

COMM = "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py"
LOADER = "/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py"
DUMP = """Thread 0x00007f2a (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 331 in wait
  File "/usr/lib/python3.11/threading.py", line 1002 in _bootstrap

Current thread 0x00007f2b (most recent call first):
  File "/x/main.py", line 4 in hang
  File "/x/main.py", line ??? in <module>
"""


def frame(file: str, line: int, function: str, **more: Any) -> dict[str, Any]:
    return {"file": file, "line": line, "function": function, **more}


def own(line: int, code: str, cell: str = "") -> dict[str, Any]:
    found = frame("main.py", line, "train", own=True, code=code)
    return {**found, "cell": cell} if cell else found


def entry(rank: int | None, *frames: dict[str, Any], quiet: float = 0.0, **more: Any) -> Any:
    name = f"worker:{rank}" if rank is not None else "ps:0"
    return {"task": name, "rank": rank, "process": 0, "quiet": quiet, "frames": frames, **more}


def reducing(rank: int, quiet: float = 0.0) -> Any:
    frames = [
        frame(COMM, 2501, "all_reduce"),
        frame("/x/torch/distributed/c10d_logger.py", 83, "wrapper"),
    ]
    return entry(rank, *frames, own(9, "dist.all_reduce(t)", "cell 7 line 15"), quiet=quiet)


def loading(rank: int, quiet: float = 0.0) -> Any:
    frames = [frame(LOADER, 1200, "_next_data"), frame(LOADER, 700, "__next__")]
    return entry(rank, *frames, own(8, "for x in loader:", "cell 7 line 12"), quiet=quiet)


def test_the_threads_of_a_dump_and_the_main_one_last() -> None:
    threads = parse_dump(DUMP)
    assert [len(frames) for frames in threads] == [2, 2]
    assert threads[-1][0] == ("/x/main.py", 4, "hang")
    assert threads[-1][1] == ("/x/main.py", 0, "<module>")
    # Python 3.14 names the threads.
    named = DUMP.replace("0x00007f2b (", "0x00007f2b [main] (")
    assert parse_dump(named) == threads
    # Of more than a hundred threads the oldest ones are missing.
    cut = DUMP.replace("Current thread", "Thread").replace("Thread", "Current thread", 1) + "...\n"
    assert parse_dump(cut)[-1][0][2] == "wait"
    assert parse_dump("") == []
    assert parse_dump('no dump\n  File "x", line 1 in y\n') == []


def test_equal_stacks_are_folded_and_the_awaited_rank_is_named() -> None:
    found = report([*map(reducing, range(3)), loading(3, 700.0)], 600.0)
    assert found.stalled
    assert found.sentence == (
        "No log, progress, CPU or GPU use of rank 3 (worker:3) for 12 min. "
        "rank 3: DataLoader.__next__, cell 7 line 12; "
        "ranks 0-2: all_reduce, cell 7 line 15. The others wait for rank 3 (worker:3)."
    )
    assert (found.tasks, found.waits_for) == (["worker:3"], "rank 3")
    assert [group["who"] for group in found.groups] == ["rank 3", "ranks 0-2"]
    assert found.groups[1]["tasks"] == ["worker:0", "worker:1", "worker:2"]


def test_ranks_that_wait_for_one_that_computes_do_not_hang() -> None:
    waiting = [reducing(rank, 900.0) for rank in range(3)]
    computing = entry(3, own(20, "evaluate()"), quiet=2.0)
    found = report([*waiting, computing], 600.0)
    assert not found.stalled
    assert found.again == 598.0
    assert report([*waiting, {**computing, "quiet": 601.0}], 600.0).stalled


def test_of_several_awaited_ranks_the_quiet_one_is_named() -> None:
    ranks = [reducing(0), loading(1, 3.0), loading(2, 650.0)]
    assert report(ranks, 600.0).tasks == ["worker:2"]


def test_the_minority_is_awaited_where_no_library_is_known() -> None:
    others = [entry(rank, own(4, "sock.recv(4)"), quiet=700.0) for rank in (0, 1, 3)]
    found = report([*others, entry(2, own(9, "lock.acquire()"), quiet=700.0)], 600.0)
    assert found.waits_for == "rank 2"
    assert "ranks 0-1, 3: sock.recv(4), main.py line 4" in found.sentence


def test_of_two_ranks_the_one_without_a_connection_is_awaited() -> None:
    first = entry(0, own(4, "sock.recv(4)"), quiet=700.0, connected=True)
    second = entry(1, own(9, "time.sleep(600)"), quiet=700.0, connected=False)
    assert report([first, second], 600.0).waits_for == "rank 1"
    neither = report([{**first, "connected": False}, second], 600.0)
    assert (neither.stalled, neither.waits_for) == (True, "")
    assert "ranks 0-1 (worker:0, worker:1)" in neither.sentence


@pytest.mark.parametrize("more", [{"ended": True}, {"state": "T"}, {"state": "D"}])
def test_a_process_that_cannot_answer_is_awaited(more: dict[str, Any]) -> None:
    gone = entry(1, quiet=700.0, note="no stack of process 7: it is stopped", **more)
    found = report([reducing(0, 700.0), gone], 600.0)
    assert (found.stalled, found.waits_for) == (True, "rank 1")


def test_all_in_one_collective_call_are_not_blamed() -> None:
    found = report([reducing(rank, 700.0) for rank in range(4)], 600.0)
    assert (found.stalled, found.waits_for) == (True, "")
    assert len(found.groups) == 1


def test_a_server_is_shown_and_never_awaited() -> None:
    server = entry(None, own(30, "server.join()"), quiet=9000.0)
    found = report([reducing(0), reducing(1), server], 600.0)
    assert not found.stalled
    assert "ps:0: server.join(), main.py line 30" in found.sentence


def test_a_single_process_is_quiet_by_itself() -> None:
    one = {**entry(None, own(4, "time.sleep(600)"), quiet=700.0), "task": "worker:0"}
    found = report([one], 600.0)
    assert found.stalled
    assert found.sentence.startswith("No log, progress, CPU or GPU use of worker:0 for 12 min. ")
    assert not found.waits_for
    assert not report([one]).stalled


def test_a_large_gang_has_a_short_sentence() -> None:
    ranks = [entry(n, own(n, f"call_{n}()"), quiet=700.0) for n in range(1000)]
    found = report(ranks, 600.0)
    assert len(found.sentence) <= 1900
    assert len(found.groups) == 64
    assert "+994" in found.sentence
    assert len(found.summary()["groups"]) == 8


def test_an_event_has_the_innermost_frames_only() -> None:
    one = entry(0, *[frame("deep.py", line, "call") for line in range(40)], threads=[[], []])
    [group] = report([one]).summary()["groups"]
    assert [found["line"] for found in group["frames"]] == list(range(12))
    assert "threads" not in group
