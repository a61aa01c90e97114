"""The published schema of the job record, and the front end's types, match its declaration."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from submarine_jobs.model import JobView
from submarine_jobs.tracking import Origin
from submarine_runtime.protocol import Event, JobRecord, State, TaskRecord
from submarine_server.views import JobDetails, event_json, row_json, task_json, view_json

ROOT = Path(__file__).parents[3]


def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_generated_files_are_current() -> None:
    generated = _load(ROOT / "scripts" / "record_schema.py").files()
    stale = [
        str(path.relative_to(ROOT))
        for path, content in generated.items()
        if path.read_text(encoding="utf-8") != content
    ]
    assert not stale, "run `python scripts/record_schema.py`"


def test_the_server_sends_the_rows_that_the_front_end_expects() -> None:
    text = (ROOT / "labextension" / "src" / "api" / "types.ts").read_text(encoding="utf-8")
    declared = re.search(r"interface IJobRow extends Pick<\s*IJobRecord,([^>]*)>([^}]*)}", text)
    assert declared is not None
    names = re.findall(r"'(\w+)'", declared[1]) + re.findall(r"^  (\w+):", declared[2], re.M)
    record = JobRecord("a-20261120-7f3a", "a", State.RUNNING)
    assert {*row_json(record, Origin())} == {*names}


def test_the_server_sends_the_fields_that_the_front_end_expects() -> None:
    text = (ROOT / "labextension" / "src" / "api" / "record.ts").read_text(encoding="utf-8")
    omitted = {
        name: set(re.findall(r"'(\w+)'", names))
        for name, names in re.findall(r"Omit<\s*schema\.I(\w+),([^>]*)>", text)
    }
    task = TaskRecord("worker:0", "worker", 0)
    record = JobRecord("a-20261120-7f3a", "a", State.RUNNING)
    sent = {
        "JobRecord": (JobRecord, {*view_json(JobView(record), JobDetails())["record"]} - {"tasks"}),
        "TaskRecord": (TaskRecord, {*task_json(task)}),
        "Event": (Event, {*event_json(Event(0, 1.0, "state", "agent"))}),
    }
    assert omitted.keys() == sent.keys()
    for name, (declared, names) in sent.items():
        assert names == {field.name for field in fields(declared)} - omitted[name], name
