"""Records as JSON: bounded and of their types whatever a container wrote; rows, series, words."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.commands.run import parse_run
from submarine_jobs.errors import UsageError
from submarine_jobs.model import JobView, Profile, read_record
from submarine_jobs.options import command_of_spec, spec_from_options
from submarine_jobs.options.command_line import options_of
from submarine_jobs.outputs import Row
from submarine_jobs.tracking import IndexEntry, JobQuery, JobStore, Origin, cursor_of
from submarine_runtime.protocol import JobRecord, State, TaskRecord
from submarine_server.service.job_details import JobDetailsCache
from submarine_server.views import JobDetails, row_json, series_json, view_json

NONSENSE: Mapping[str, Any] = {
    "job_id": "a-20261120-7f3a",
    "name": "<script>" + "x" * 10_000 + "\x1b]0;",
    "state": "RUNNING",
    "created": float("nan"),
    "progress": 1e300,
    "detail": "\u202egnp.exe",
    "exit_code": 10**30,
    "reason": None,
    "resources": {"requested": {"worker": {"gpus": "many"}}, "deep": [[[[[["x"]]]]]]},
    "links": {"a": "javascript:alert(1)", "b": "https://ok.example/x", "c": ""},
    "logs": {"worker:0/e1-a1/stdout": 10**30, "x": 5},
    "outputs": [],
    "hints": ["1", "a\nb"],
    "tasks": [
        {"task": "worker:0", "role": "worker", "index": 0, "progress": -4, "log_url": "file:///x"}
    ],
}


def test_nonsense_becomes_json_that_a_browser_can_show() -> None:
    record = read_record(NONSENSE)
    view = view_json(JobView(record, pending="p\n" * 5000), JobDetails(command="submarine run"))
    text = json.dumps(view, allow_nan=False)
    assert len(text) < 20_000
    assert "\\u001b" not in text
    assert "\\u202e" not in text
    shown = view["record"]
    assert view["status"].startswith("The program is running. p p ")
    assert (shown["created"], shown["exit_code"], shown["hints"]) == (None, None, ["1", "a b"])
    assert shown["links"] == {"b": "https://ok.example/x"}
    assert shown["logs"] == {"x": 5}
    assert shown["tasks"][0]["log_url"] is None
    assert shown["tasks"][0]["progress"] == 0
    assert json.dumps(row_json(record, Origin("a.ipynb", "c")), allow_nan=False)


def test_of_very_many_tasks_a_view_holds_the_telling_ones() -> None:
    tasks = [TaskRecord(f"worker:{n}", "worker", n, state=State.RUNNING) for n in range(1000)]
    tasks[777].state = State.FAILED
    view = view_json(
        JobView(JobRecord("a-20261120-7f3a", "a", State.RUNNING, tasks=tasks)), JobDetails()
    )
    assert view["task_count"] == 1000
    assert len(view["record"]["tasks"]) <= 200
    assert "worker:777" in [task["task"] for task in view["record"]["tasks"]]


def test_a_row_counts_gpus_of_all_tasks() -> None:
    tasks = [TaskRecord(f"worker:{n}", "worker", n) for n in range(3)]
    asked = {"requested": {"worker": {"gpus": 2}, "ps": {"gpus": 1}}}
    record = JobRecord("a-20261120-7f3a", "a", State.RUNNING, tasks=tasks, resources=asked)
    assert row_json(record, Origin())["gpus"] == 7


def test_series_are_thinned_and_hold_no_nan() -> None:
    rows = [
        Row(1000.0 + n, "worker:0", 1, 1, n, None if n == 0 else 50.0, 10.0 * n, None, None, None,
            {"loss": math.nan if n > 900 else 1.0 / (1 + n // 10)})
        for n in range(1000)
    ]  # fmt: skip
    series = {one["name"]: one for one in series_json(rows, 100)}
    assert set(series) == {"cpu_percent", "memory", "loss"}
    assert all(len(one["t"]) == len(one["v"]) <= 100 for one in series.values())
    assert series["memory"]["v"][-1] == 9990, "a peak is not downsampled away"
    assert series["loss"]["kind"] == "scalar"
    assert series["loss"]["v"][-1] is None
    json.dumps(list(series.values()), allow_nan=False)


def _known(number: int, state: State, user: str = "ada") -> IndexEntry:
    job_id = f"job{number}-20261120-{number:04x}"
    record = JobRecord(job_id, f"Job {number}", state, user=user)
    return IndexEntry(
        job_id, record.name, "yarn", "default", "x", 1000.0 + number, state, None, record
    )


def test_the_index_pages_running_first(tmp_path: Path) -> None:
    store = JobStore(tmp_path / "jobs.sqlite")
    for number in range(30):
        store.put(_known(number, State.RUNNING if number % 10 == 0 else State.SUCCEEDED))
    store.put(_known(99, State.RUNNING, user="grace"))
    seen: list[int] = []
    after = ""
    while True:
        page = store.page(JobQuery(user="ada", limit=7, after=after))
        assert page.total == 30
        seen += [int(row.name.split()[1]) for row in page.rows]
        if not page.more:
            break
        last = page.rows[-1]
        after = cursor_of(last.state, last.created, last.job_id)
    running = [20, 10, 0]
    assert seen == running + [n for n in range(29, -1, -1) if n not in running]
    assert store.page(JobQuery(text="JOB 2")).total == 11
    assert store.page(JobQuery(states=(State.FAILED,))).total == 0
    for wrong in ("x", "0:1:../..", "0:nan:job1-20261120-0001", "2:1:job1-20261120-0001"):
        with pytest.raises(UsageError):
            store.page(JobQuery(after=wrong))


def test_a_notebook_has_the_path_of_the_file_browser(tmp_path: Path) -> None:
    details = JobDetailsCache(tmp_path)
    inside = str(tmp_path / "a" / "b.ipynb")
    assert details.visible_origin(Origin(inside, "c")) == Origin("a/b.ipynb", "c")
    for outside in ("", "b.ipynb", "/etc/passwd", f"{tmp_path}/../x.ipynb", f"{tmp_path}x/y.ipynb"):
        assert details.visible_origin(Origin(outside, "c")).notebook == ""
    assert JobDetailsCache(None).visible_origin(Origin(inside)).notebook == ""


@pytest.mark.parametrize(
    "line",
    [
        "--name digits --program train.py --memory 3G --gpu 1 --env A=b -- --epochs 3",
        "--name d --program train.py --worker 4 --ps 2 --memory 2G --max-restarts 3",
        "--name d --role 'reader=2,memory=1G,cmd=python read.py' --timeout 2h --queue gpu",
        "--name d --program train.py --worker 2 --tensorboard --param lr=0.5",
    ],
)
def test_the_words_of_a_spec_ask_for_the_same_spec(line: str) -> None:
    class Program:
        program, digest = "train.py", "x"
        files: Mapping[str, bytes] = {"train.py": b"print(1)"}

    profile = Profile(backend="yarn", queue=None)
    options = parse_run(shlex.split(line))
    needs = Program() if "--program" in line else None
    profile = replace(profile, queue=options.queue)
    spec = spec_from_options(options, profile, needs)
    words = shlex.split(command_of_spec(spec))
    assert words[:2] == ["submarine", "run"]
    again = spec_from_options(parse_run(words[2:]), profile, needs)
    assert again == spec
    assert options_of(again) == options_of(spec)
