"""The YARN page of a job: escaped, script-free, with all that the record has of its tasks."""

from __future__ import annotations

import re
from typing import Any

import pytest

from submarine_runtime.protocol import JobRecord, Output, SavedOutput, State, TaskRecord
from submarine_runtime.yarn import page_html, render_page

NASTY = "\"'><script>alert(1)</script>"


def record(**fields: Any) -> dict[str, Any]:
    """A record of a running gang."""
    tasks = [
        TaskRecord("ps:0", "ps", 0, state=State.RUNNING),
        TaskRecord(
            *("worker:0", "worker", 0),
            state=State.RUNNING,
            container_id="container_e01_1764_0001_01_000002",
            host="node7",
            started=1795929200.0,
            progress=0.5,
            memory_now=700.4,
            memory_peak=812.0,
            cpu_seconds=31.9,
            gpu_percent=87.2,
            gpu_memory=9000.0,
            restarts=2,
            log_url="http://node7:8042/log",
        ),
    ]
    sizes = {
        "ps": {"memory": 256, "vcores": 1, "gpus": 0},
        "worker": {"memory": 1024, "vcores": 2, "gpus": 1},
    }
    made = JobRecord(
        *("digits-20261123-1a2b", "digits", State.RUNNING),
        tasks=tasks,
        resources={"requested": sizes},
        job_dir="hdfs://nn:9820/user/ada/.submarine/202611/digits-20261123-1a2b",
        created=1795929100.0,
    ).to_json()
    return {**made, **fields}


def cells(page: str, name: str) -> list[str]:
    return re.findall(rf'<td data-name="{re.escape(name)}"[^>]*>(.*?)</td>', page)


def test_a_row_of_the_table_has_all_facts_of_a_task() -> None:
    page = render_page({**record(), "images": {"worker": "lab/torch:2"}}).decode()
    assert cells(page, "Task") == ["ps:0", "worker:0"]
    assert cells(page, "Role") == ["ps", "worker"]
    assert cells(page, "State")[1] == '<span class="state RUNNING">RUNNING</span>'
    assert cells(page, "Node") == ["&ndash;", "node7"]
    assert "container_<wbr>e01_<wbr>1764_<wbr>0001_<wbr>01_<wbr>000002" in page
    assert cells(page, "Image") == ["&ndash;", "lab/torch:2"]
    assert cells(page, "CPU") == ["1 vcore", "2 vcores<br>32 s used"]
    assert cells(page, "Memory")[1] == "1024 MiB<br>700 MiB used<br>812 MiB peak"
    assert cells(page, "GPUs") == ["&ndash;", "1 GPU<br>87 % used<br>9000 MiB"]
    assert cells(page, "Started (UTC)")[1] == "05:13:20"
    assert cells(page, "Restarts")[1] == "2"
    assert '<progress max="1" value="0.500"></progress> 50 %' in cells(page, "Progress")[1]
    assert 'href="http://node7:8042/log">log</a>' in cells(page, "Log")[1]
    # Nothing has finished: the column is left out.
    assert "Finished" not in page


def test_the_page_is_loaded_again_until_the_job_has_ended() -> None:
    assert b'http-equiv="refresh" content="5"' in render_page(record())
    assert b"refresh" not in render_page(record(state="FAILED"))


def test_saved_models_are_linked_through_the_file_browser_of_hdfs() -> None:
    outputs = [vars(Output("model/net.pt", 7))]
    saved = [
        vars(SavedOutput("saved-model", "hdfs://nn:9820/models/a b", 1, 7)),
        vars(SavedOutput("other", "s3a://bucket/x", 1, 7)),
    ]
    browser = "http://nn:9870/explorer.html#"
    job = record(outputs=outputs, saved_outputs=saved)
    page = render_page({**job, "file_browser": browser}).decode()
    assert f'saved-model: <a rel="noreferrer" href="{browser}/models/a%20b">' in page
    assert f'href="{browser}/user/ada/.submarine/202611/digits-20261123-1a2b/model"' in page
    assert "<li>other: s3a://bucket/x</li>" in page
    assert "explorer.html" not in render_page(job).decode()


def test_a_failed_job_shows_its_error() -> None:
    failure = {"type": "ValueError", "message": "<no>", "text": "Traceback <x>\nValueError: <no>"}
    page = render_page(record(state="FAILED", reason="program_error", failure=failure)).decode()
    assert "<pre>Traceback &lt;x&gt;\nValueError: &lt;no&gt;</pre>" in page
    assert "program_error" in page


def nasty(value: Any) -> Any:
    """The same form with the text in each place of a text."""
    if isinstance(value, dict):
        return {key: nasty(one) for key, one in value.items()} | {NASTY: NASTY}
    if isinstance(value, list):
        return [nasty(one) for one in value]
    return NASTY


def test_everything_is_escaped_and_only_http_is_a_link() -> None:
    job = record(warnings=["x"], links={}, failure={"text": "x"}, outputs=[], saved_outputs=[{}])
    links = {NASTY: "javascript:alert(1)", "board": "https://x/?a=1&b=2", "data": "data:text/html,"}
    for odd in (nasty(job), {**nasty(job), "tasks": nasty(job["tasks"]), "links": links}):
        page = render_page({**odd, "images": {NASTY: NASTY}, "file_browser": NASTY}).decode()
        assert "<script" not in page
        assert 'href="javascript' not in page
        assert 'href="data' not in page
        # No attribute is ended early.
        assert not re.search(r"""=["'][^"'>]*["']><?script""", page)
        assert "&lt;script&gt;" in page
    assert 'href="https://x/?a=1&amp;b=2"' in page


@pytest.mark.parametrize(
    "job",
    [
        {},
        {"progress": "x"},
        {"progress": 7},
        {"progress": float("nan")},
        {"links": ["a"], "tasks": "x", "resources": 3, "failure": []},
        {"tasks": [3, {"started": "x", "finished": 1e300, "memory_now": True}], "created": 1e30},
        {"name": "x" * 9999, "detail": "y" * 99999},
    ],
)
def test_malformed_values_do_not_break_the_page(job: dict[str, Any]) -> None:
    page = render_page(job)
    assert b"not reported" in page
    assert len(page) < 12000


def test_a_page_of_ten_thousand_tasks_is_bounded_and_shows_those_that_failed() -> None:
    tasks = [{"task": f"worker:{n}", "state": "SUCCEEDED"} for n in range(10_000)]
    tasks[7777]["state"] = "FAILED"
    page = render_page({"tasks": tasks}).decode()
    assert cells(page, "Task")[0] == "worker:7777"
    assert len(cells(page, "Task")) == page_html.MAX_TASKS
    assert "200 of 10000 tasks are shown." in page
    assert len(page) < 200_000
