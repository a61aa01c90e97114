"""A job of several tasks as a person sees it: the table, the fold, whose failure, what happened."""

from __future__ import annotations

import json

import pytest

from submarine_jobs import display
from submarine_jobs.display import EventLines, task_rows, task_table, timeline
from submarine_jobs.model import JobView, failed_task, most_relevant_task
from submarine_runtime.protocol import (
    EndReason,
    Event,
    Failure,
    JobRecord,
    State,
    TaskRecord,
    TracebackFrame,
)
from tests.unit.jobs.display.display_records import NOW, check_html, record


def task(role: str, index: int, state: State = State.RUNNING, **more: object) -> TaskRecord:
    values: dict[str, object] = {
        "container_id": f"container_1795220000000_0042_01_{index + 2:06d}",
        "host": f"node{index % 3}",
        "started": NOW - 100,
        "cpu_seconds": 90.0,
        "memory_now": 812.0,
        "memory_peak": 1230.0,
        **more,
    }
    return TaskRecord(f"{role}:{index}", role, index, state=state, **values)  # type: ignore[arg-type]


def both(view: JobView) -> tuple[str, str]:
    bundle = display.mimebundle(view, now=NOW)
    return bundle["text/plain"], check_html(bundle["text/html"])


def failed_job() -> JobRecord:
    """worker:1 failed by itself; the others were ended for it, one of them by losing its peer."""
    return record(
        State.FAILED,
        tasks=[
            task(
                "worker", 0, State.FAILED, finished=NOW - 1, exit_code=1, detail="Connection reset"
            ),
            task(
                "worker",
                1,
                State.FAILED,
                finished=NOW - 2,
                exit_code=1,
                reason=EndReason.IMPORT_ERROR,
                detail="No module named 'kers'",
            ),
            task("ps", 0, State.CANCELLED, finished=NOW, reason=EndReason.CANCELLED),
        ],
        reason=EndReason.IMPORT_ERROR,
        finished=NOW,
        failure=Failure("ImportError", "No module named 'kers'", [TracebackFrame("main.py", 3)]),
    )


def test_the_table_says_what_each_task_does() -> None:
    tasks = [
        task("ps", 0, memory_peak=None),
        task("worker", 1, State.RESTARTING, attempt=2, restarts=1, detail="killed by signal 9"),
        task("worker", 0, gpus=["0", "GPU-8f3a-99"], gpu_percent=87.0, progress=0.42),
    ]
    text, html = both(JobView(record(tasks=tasks), task="worker:0", tail="hello"))
    assert "2 of 3 tasks are running on 2 nodes; worker:1 is RESTARTING." in text
    for words in (text, html):
        assert words.index("worker:0") < words.index("ps:0", words.index("CPU"))
        assert "e1-a2" in words
        assert "87 %" in words
        assert "812 MiB, peak 1.2 GiB" in words
        assert "started again once; killed by signal 9" in words
        assert "0.9 cores" in words
        assert "42%" in words
        assert "000003" in words
        assert "Log of worker:0" in words


def test_gpus_are_counted_and_their_devices_are_a_tooltip() -> None:
    """One device with the number 0 is one GPU."""
    job = record(tasks=[task("worker", 0, gpus=["0"]), task("worker", 1, gpus=["1", "<GPU>"])])
    html = task_table.html(job, NOW)
    check_html(html)
    head, *rows = task_table.text_lines(job, NOW)
    place = slice(head.index("GPUS"), head.index("GPUS") + 4)
    assert [row[place].strip() for row in rows] == ["1", "2"]
    assert '<span title="0">1</span>' in html
    assert '<span title="1\n&lt;GPU&gt;">2</span>' in html


def test_columns_without_a_word_are_left_out() -> None:
    lines = task_table.text_lines(record(tasks=[task("worker", 0), task("worker", 1)]), NOW)
    assert "GPU" not in lines[0]
    assert "NOTE" not in lines[0]
    assert "MEMORY" in lines[0]


def test_one_task_has_no_table() -> None:
    text, _ = both(JobView(record()))
    assert "TASK" not in text


def test_many_tasks_are_folded_to_roles_and_the_telling_ones() -> None:
    tasks = [task("worker", n, progress=0.3 + n / 1000) for n in range(200)]
    tasks[117] = task("worker", 117, State.FAILED, exit_code=1)
    tasks[9] = task("worker", 9, State.RESTARTING, restarts=1)
    tasks += [task("ps", n) for n in range(4)]
    job = record(tasks=tasks)
    text, html = both(JobView(job))
    for words in (text, html):
        assert "198 RUNNING, 1 RESTARTING, 1 FAILED" in words
        assert "worker:117" in words
        assert "worker:9" in words
        assert "worker:0" in words
        assert "worker:55" not in words
        assert "show --tasks" in words
    assert len(text.splitlines()) < 40
    bundle = display.mimebundle(JobView(job), now=NOW)
    assert len(bundle["text/html"]) < 30_000
    data = bundle[display.MIME_TYPE]
    assert data["roles"]["worker"] == {"RUNNING": 198, "RESTARTING": 1, "FAILED": 1}
    assert "worker:117" in [item["task"] for item in data["record"]["tasks"]]
    whole = task_table.text_lines(job, NOW, every=True)
    assert len(whole) == 205
    check_html(task_table.html(job, NOW, every=True))


@pytest.mark.slow
def test_the_biggest_job_stays_below_a_megabyte() -> None:
    tasks = [task("worker", n, State.FAILED, detail="x" * 5000) for n in range(4096)]
    bundle = display.mimebundle(JobView(record(tasks=tasks)), now=NOW)
    assert sum(len(json.dumps(part)) for part in bundle.values()) < 1_000_000


def test_the_failing_task_is_the_one_that_is_shown() -> None:
    job = failed_job()
    found = failed_task(job)
    assert found is not None
    assert found.task == "worker:1"
    assert most_relevant_task(job) == "worker:1"
    text, html = both(JobView(job, tail="bad import", task=most_relevant_task(job)))
    assert "In worker:1:\n  Traceback" in text
    assert "Traceback of worker:1 (most recent call last)" in html
    assert "Log of worker:1" in html


def test_a_lost_node_is_shown_before_those_that_it_took_along() -> None:
    job = record(
        State.FAILED,
        reason=EndReason.TASK_LOST,
        tasks=[
            task("worker", 0, State.FAILED, finished=NOW - 9, exit_code=1),
            task("worker", 1, State.LOST, finished=NOW, reason=EndReason.TASK_LOST),
        ],
    )
    assert most_relevant_task(job) == "worker:1"


def test_a_job_of_one_task_tells_warnings_and_that_they_are_over() -> None:
    told = [
        ("snapshot", "The first snapshot of checkpoints is complete."),
        ("warning", "Checkpoints are not synced for now: HDFS is away."),
        ("synced", "Checkpoints are synced again."),
    ]
    events = [Event(n, NOW + n, kind, "agent", detail=text) for n, (kind, text) in enumerate(told)]
    job = record(State.RUNNING, created=NOW - 30, events=events)
    view = JobView(job, source="live")
    text, html = display.text(view), display.html(view)
    assert "+31 s warning: Checkpoints are not synced for now: HDFS is away." in text
    assert "+32 s synced: Checkpoints are synced again." in text
    assert "snapshot" not in text + html
    assert "HDFS is away" in html
    assert EventLines().new_lines(job) == [
        "warning: Checkpoints are not synced for now: HDFS is away.",
        "synced: Checkpoints are synced again.",
    ]


def test_the_timeline_leaves_out_what_went_as_it_should() -> None:
    events = [
        Event(0, NOW - 60, "gang", "c", detail="4 tasks start.", data={"epoch": 1}),
        Event(1, NOW - 59, "state", "c", State.RUNNING, detail="running"),
        Event(2, NOW - 30, "task", "c", detail="RUNNING", task="worker:1"),
        Event(3, NOW - 20, "restart", "c", detail="The node was lost.", task="worker:1"),
    ]
    job = record(events=events, created=NOW - 65, tasks=[task("worker", n) for n in range(2)])
    moments, older = timeline.timeline(job)
    assert older == 0
    assert timeline.lines(moments, 0) == ["+45 s restart: worker:1: The node was lost."]
    text, html = both(JobView(job))
    assert "+45 s restart: worker:1: The node was lost." in text
    assert "worker:1: The node was lost." in html
    assert "4 tasks start" not in text


def test_a_long_history_is_counted() -> None:
    events = [Event(n, NOW, "restart", "c", detail=f"number {n}") for n in range(500)]
    job = record(events=events, tasks=[task("worker", n) for n in range(2)])
    moments, older = timeline.timeline(job)
    assert (len(moments), older) == (timeline.NEWEST, 500 - timeline.NEWEST)
    assert moments[-1].sentence == "number 499"


def test_network_epoch_hints_and_pending_are_shown() -> None:
    tasks = [task("worker", n, network=f"eth1 10.0.0.{n}") for n in range(2)]
    job = record(State.RUNNING, tasks=tasks, epoch=3, hints=["Ask for 1 GiB."])
    text, html = both(JobView(job))
    for words in (text, html):
        assert "eth1: worker:0 10.0.0.0, worker:1 10.0.0.1" in words
        assert "all tasks were started again twice" in words
        assert "Hint: Ask for 1 GiB." in words
    waiting = record(State.PENDING, tasks=tasks, pending="1 of 2 containers, waiting 40 s.")
    assert "1 of 2 containers, waiting 40 s." in both(JobView(waiting))[1]


def test_the_chief_comes_first_and_short_names_are_harmless() -> None:
    job = record(tasks=[task("worker", 10), task("worker", 2), task("chief", 0)])
    assert [t.task for t in task_rows.ordered(job)] == ["chief:0", "worker:2", "worker:10"]
    assert task_rows.short_container("container_e17_1795220000000_0042_01_000012") == "000012"
    assert task_rows.short_container("worker-1.2") == "worker-1.2"
