"""The summary of a job in text and card: reason, purpose, duration, end."""

from __future__ import annotations

import json

import pytest

from submarine_jobs import display
from submarine_jobs.model import InvalidRecordError, JobView, read_record
from submarine_jobs.text import formatting as durations
from submarine_runtime.protocol import (
    EndReason,
    Failure,
    JobRecord,
    Output,
    Phase,
    State,
    TracebackFrame,
)
from tests.unit.jobs.display.display_records import EVIL, NOW, check_html, record


@pytest.mark.parametrize("state", list(State))
def test_every_state_says_why(state: State) -> None:
    reason = EndReason.CLUSTER_LOST if state is State.LOST else EndReason.CANCELLED
    view = JobView(record(state, reason=reason if state.ended else None))
    words = display.text(view, now=NOW).split("\n")
    assert state.value in words[0]
    assert words[1].strip().endswith(".")
    assert ("Cancel it with: submarine cancel digits" in words[-1]) is not state.ended


def test_a_detail_that_repeats_the_reason_is_shown_once() -> None:
    words = "The application master died."
    failed = record(State.FAILED, reason=EndReason.MASTER_LOST, detail=words)
    assert display.text(JobView(failed), now=NOW).split("\n")[1].count(words) == 1


def test_waiting_says_what_for() -> None:
    view = JobView(record(State.PENDING), pending="The queue gpu has no free GPU.")
    assert "The queue gpu has no free GPU." in display.text(view, now=NOW)
    assert "The queue gpu has no free GPU." in check_html(display.html(view, now=NOW))


@pytest.mark.parametrize(
    "state", [State.PENDING, State.STARTING, State.RUNNING, State.RESTARTING, State.FINISHING]
)
def test_a_wait_for_hdfs_is_shown_in_every_state(state: State) -> None:
    view = JobView(record(state, pending="waiting for HDFS (540 s left): it is away"))
    sentence = "The job is waiting for HDFS (540 s left): it is away"
    assert sentence in display.text(view, now=NOW)
    assert sentence in check_html(display.html(view, now=NOW))


@pytest.mark.parametrize(
    ("view", "sentence"),
    [
        (record(State.SUBMITTING), "The files are being uploaded and the job is being submitted."),
        (record(State.PENDING), "The job is waiting for free resources on the cluster."),
        (record(State.STARTING), "The container is being set up on node1."),
        (record(), "The program is running on node1."),
        (record(tasks=[]), "The program is running."),
        (
            record(State.RESTARTING, detail="It lost its node."),
            "The program is being restarted on node1. It lost its node.",
        ),
        (record(State.FINISHING), "The program has ended; its output is being saved."),
        (
            record(State.STARTING, pending="localizing on nm7 for 40 s: Python environment"),
            "Localizing on nm7 for 40 s: Python environment.",
        ),
        (
            record(State.FAILED, reason=EndReason.PROGRAM_ERROR, detail="It took 9 GiB"),
            f"{EndReason.PROGRAM_ERROR.meaning.sentence} It took 9 GiB.",
        ),
        (record(State.LOST, exit_code=137), "The job ended: no reason is known. Exit code 137."),
    ],
)
def test_all_front_ends_show_the_same_sentence(view: JobRecord, sentence: str) -> None:
    """Text, HTML card, and the field that JupyterLab shows."""
    bundle = display.mimebundle(JobView(view), now=NOW)
    assert bundle[display.MIME_TYPE]["status"] == sentence
    assert f"\n  {sentence}\n" in bundle["text/plain"]
    assert f">{sentence}<" in bundle["text/html"].replace(" <span", "<span")


def test_running_shows_progress_log_and_phases() -> None:
    view = JobView(record(progress=0.62, phases=[Phase("run", NOW - 5, None)]), tail="a\rb\nc")
    words = display.text(view, now=NOW)
    assert "62%" in words
    assert "run 5.0 s so far" in words
    assert "  | b\n  | c" in words
    shown = display.html(view, now=NOW)
    assert "width:62.0%" in shown
    assert "b\nc</pre>" in shown


def test_failure_names_cell_and_line() -> None:
    frames = [TracebackFrame("model.py", 14, "build", "1 / 0", cell="[3]", cell_line=4)]
    failed = record(
        State.FAILED,
        reason=EndReason.PROGRAM_ERROR,
        failure=Failure("ZeroDivisionError", "division by zero", frames),
        finished=NOW,
    )
    for words in (
        display.text(JobView(failed)),
        check_html(display.html(JobView(failed))),
    ):
        assert 'Cell [3] "model.py", line 4, in build\n' in words
        assert "ZeroDivisionError: division by zero" in words
        assert "Fix the error and run the job again." in words


def test_long_traceback_is_cut_in_the_middle() -> None:
    frames = [TracebackFrame("main.py", n, f"f{n}") for n in range(1000)]
    failed = record(State.FAILED, failure=Failure("RecursionError", "deep", frames))
    words = display.text(JobView(failed), now=NOW)
    assert "980 more frames" in words
    assert "in f0" in words
    assert "in f999" in words


def test_succeeded_shows_model_and_result() -> None:
    view = JobView(
        record(State.SUCCEEDED, reason=EndReason.SUCCEEDED, outputs=[Output("model/m.keras", 1200)])
    )
    words = display.text(view, now=NOW, result={"acc": "0.97"})
    assert "digits-20261120-7f3a/model: m.keras (1.2 kB)" in words
    assert "Returned acc: 0.97" in words


def test_an_unknown_reason_of_a_newer_agent_is_shown_as_it_stands() -> None:
    newer = {**record(State.FAILED).to_json(), "reason": "eaten_by_whale"}
    assert "eaten_by_whale" in display.text(JobView(read_record(newer)), now=NOW)
    with pytest.raises(InvalidRecordError):
        read_record({**newer, "reason": "eaten by <whale>"})


def test_mime_bundle_has_what_others_rely_on() -> None:
    bundle = display.mimebundle(JobView(record()), now=NOW)
    assert set(bundle) == {display.MIME_TYPE, "text/html", "text/plain"}
    data = bundle[display.MIME_TYPE]
    assert data["job_id"] == "digits-20261120-7f3a"
    assert data["job_dir"].startswith("hdfs://")
    assert data["state"] == "RUNNING"
    assert data["time"] == NOW
    assert data["advice"] == ""
    assert data["status"] == "The program is running on node1."
    assert data["record"]["events"] == []
    assert read_record(data["record"]).queue == "gpu"


def test_mime_bundle_says_why_it_ended_and_what_it_returned() -> None:
    ended = record(State.FAILED, reason=EndReason.OUT_OF_MEMORY)
    result = {f"name{n}": EVIL * 100 for n in range(100)}
    data = display.mimebundle(JobView(ended), now=NOW, result=result)[display.MIME_TYPE]
    assert "memory" in data["status"]
    assert data["advice"]
    assert len(data["result"]) == 20
    assert all(len(value) <= 200 for value in data["result"].values())


def test_mime_bundle_is_bounded() -> None:
    big = record(
        State.FAILED,
        detail="x" * 10**6,
        outputs=[Output("model/" + "y" * 5000, 1)] * 10_000,
        links={f"l{n}": "http://h/" + "z" * 10**4 for n in range(1000)},
        failure=Failure("E", "m" * 10**6, [TracebackFrame("f" * 10**5, 1)] * 500, "t" * 10**6),
    )
    bundle = display.mimebundle(JobView(big, tail="l" * 16384), now=NOW)
    assert sum(len(json.dumps(part)) for part in bundle.values()) < 1_000_000


def test_table_states_the_overflow() -> None:
    listed = display.table([record()] * 1003, now=NOW)
    assert "… and 3 more" in listed.text
    assert "… and 3 more" in listed.html
    assert display.table([]).text == "No jobs."


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.44, "0.4 s"),
        (12, "12 s"),
        (185, "3 min 05 s"),
        (7620, "2 h 07 min"),
        (273600, "3 d 04 h"),
        (None, "-"),
        (float("nan"), "-"),
        (59.7, "1 min 00 s"),
        (-3, "0.0 s"),
    ],
)
def test_durations(seconds: float | None, words: str) -> None:
    assert durations.duration(seconds) == words


def test_sizes() -> None:
    assert [durations.size(n) for n in (0, 999, 1000, 1_203_330, 10**15)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "1.2 MB",
        "1000.0 TB",
    ]


def test_the_resources_of_a_spark_job_are_those_of_driver_and_executors() -> None:
    size = {"memory": 1024, "vcores": 1}
    asked = {"worker": size, "executor": {**size, "instances": 2}}
    found = record(resources={"requested": asked, "type": "spark"}, tasks=[])
    words = "driver: 1 GiB, 1 vcore; executor: 2 of 1 GiB, 1 vcore"
    assert words in display.text(JobView(found), now=NOW)
