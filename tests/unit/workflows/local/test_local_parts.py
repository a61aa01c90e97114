"""The parts of a local run that need no process: parameters, journal, folders, missed runs."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from submarine_jobs.errors import UsageError
from submarine_workflows.formats import read_properties, read_workflow
from submarine_workflows.local import parameter_filler
from submarine_workflows.local.execution import unpack
from submarine_workflows.local.parameters import as_properties, flow_parameters
from submarine_workflows.local.preparation import read_outputs
from submarine_workflows.model import file_name, from_json
from submarine_workflows.model.serialization import to_json
from submarine_workflows.notebook import find_run
from submarine_workflows.runs import (
    Journal,
    Lock,
    RunNotFoundError,
    Runs,
    Status,
    find_missed_runs,
    is_held,
    view_of,
)
from submarine_workflows.runs.journal import read_journal
from tests.local.workflows.workflow_runs import FullDisk

BERLIN = ZoneInfo("Europe/Berlin")


def test_parameters_stand_in_each_other():
    fill = parameter_filler({"date": "${year}-11", "year": "2026", "odd": "$ {x} ${a-b}"})
    assert fill("/data/${date}/${year}") == "/data/2026-11/2026"
    assert fill("${odd}") == "$ {x} ${a-b}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("${none}", "has no value"),
        ("${a}", "refers to itself: a -> b"),
        ("$(new)", "JEXL"),
        ("${long}", "too long"),
    ],
)
def test_parameters_that_make_no_sense(text, sentence):
    values = {"a": "${b}", "b": "${a}", "long": "${l1}" * 900, "l1": "${l2}" * 900, "l2": "x"}
    with pytest.raises(UsageError, match=sentence):
        parameter_filler(values)(text)


def test_parameters_that_name_each_other_without_end_cost_no_time():
    values = {f"p{n}": f"${{p{n + 1}}}" * 2 for n in range(40)} | {"p40": ""}
    assert parameter_filler(values)("${p0}") == ""


def test_azkabans_own_parameters():
    moment = datetime(2026, 3, 1, 2, 5, 9, 42_000, BERLIN)
    found = flow_parameters("nightly", 17, moment, "ann")
    assert found["azkaban.flow.start.timestamp"] == "2026-03-01T02:05:09.042+01:00"
    assert found["azkaban.flow.execid"] == "17"
    assert found["azkaban.flow.start.timezone"] == "Europe/Berlin"
    parts = ("year", "month", "day", "hour", "minute", "second", "milliseconds")
    assert [found[f"azkaban.flow.start.{part}"] for part in parts] == [
        "2026", "03", "01", "02", "05", "09", "042",
    ]  # fmt: skip
    utc = flow_parameters("nightly", 17, moment.astimezone(UTC), "ann")
    assert utc["azkaban.flow.start.timestamp"] == "2026-03-01T01:05:09.042Z"


_TEXT = st.text(max_size=30).filter(
    lambda text: not set(text) & set("\x85\u2028\u2029\x1c\x1d\x1e\x0b")
)


@given(st.dictionaries(_TEXT.filter(bool), _TEXT, max_size=5))
def test_a_nodes_properties_are_read_again_as_java_does(values):
    read = read_properties(as_properties(values))
    whole = {
        key: value.encode("utf-16", "surrogatepass").decode("utf-16")
        for key, (value, _) in read.items()
    }
    keys = {
        key.encode("utf-16", "surrogatepass").decode("utf-16"): value
        for key, value in whole.items()
    }
    assert keys == values


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 0.95, "b": "x", "c": true, "d": null, "e": [1, "2"]}',
         {"a": "0.95", "b": "x", "c": "true", "e": '[1,"2"]'}),
        ("", {}), ("[1]", {}), ("{", {}), ("\xff", {}), ("[" * 100_000, {}),
    ],
)  # fmt: skip
def test_outputs_are_text_and_nonsense_is_none(tmp_path, text, found):
    path = tmp_path / "out.json"
    path.write_text(text, "latin-1")
    assert read_outputs(path) == found
    assert read_outputs(tmp_path / "none") == {}


def test_a_journal_outlives_a_line_that_was_cut(tmp_path):
    path = tmp_path / "journal.jsonl"
    said: list[str] = []
    first = Journal(path, said.append)
    first.add("begin", run="x")
    first.close()
    with path.open("ab") as file:
        file.write(b'{"time": 1, "event": "no')
    second = Journal(path, said.append)
    second.add("end", status="FAILED")
    second.close()
    assert [event["event"] for event in read_journal(path)] == ["begin", "end"]
    assert said == []


def test_a_journal_that_cannot_be_written_is_said_once_and_caught_up_later(tmp_path, monkeypatch):
    path = tmp_path / "journal.jsonl"
    said: list[str] = []
    journal = Journal(path, said.append)
    with monkeypatch.context() as patched:
        patched.setattr("submarine_workflows.runs.journal.os", FullDisk())
        journal.add("begin")
        journal.add("node")
    journal.add("end")
    journal.close()
    assert [event["event"] for event in read_journal(path)] == ["begin", "node", "end"]
    assert len(said) == 1
    assert "No space left" in said[0]


def test_a_lock_is_held_until_it_is_let_go(tmp_path):
    path = tmp_path / "lock"
    assert not is_held(path)
    lock = Lock(path)
    assert lock.acquire(0)
    assert is_held(path)
    assert not Lock(path).acquire(0)
    lock.release()
    assert not is_held(path)
    assert Lock(path).acquire(0)


def test_runs_are_named_by_id_beginning_workflow_and_last(tmp_path):
    runs = Runs(tmp_path / "runs")
    with pytest.raises(RunNotFoundError, match="No workflow has been run"):
        runs.find("last")
    made = [runs.new(name) for name in ("nightly", "nightly", "../weekly")]
    assert runs.all() == [], "a run without a journal has not begun"
    for run in made:
        run.journal.touch()
    first, second, other = made
    assert other.path.is_relative_to(tmp_path / "runs")
    assert [run.run for run in runs.of("nightly")] == [second.run, first.run]
    assert runs.find("nightly") == second
    assert runs.find(first.run) == first
    assert runs.find(other.run[:-1]) == other
    with pytest.raises(RunNotFoundError, match="is the beginning of 2 runs"):
        runs.find("night")
    with pytest.raises(RunNotFoundError, match="No run, and no workflow"):
        runs.find("..")


def test_a_run_in_another_folder_is_found_by_its_id_alone(tmp_path):
    state = tmp_path / "state"
    home, other = Runs(state / "workflows"), Runs(tmp_path / "other", state / "workflows")
    run, gone = other.new("nightly"), other.new("nightly")
    for one in (run, gone):
        one.journal.touch()
    assert home.find(run.run) == run == other.find(run.run)
    assert find_run(run.run, "", state).name == run.run
    assert (home.all(), home.of("nightly")) == ([], [])
    shutil.rmtree(gone.path)
    for name in (gone.run, f"../other/nightly/{run.run}", str(run.path), "..", ""):
        with pytest.raises(RunNotFoundError):
            home.find(name)
        with pytest.raises(RunNotFoundError):
            find_run(name, "", state)
    other.new("nightly")
    assert len(list((home.folder / ".elsewhere").iterdir())) == 2, "the link to nothing went"


@given(st.lists(st.text(), min_size=2, max_size=2, unique=True))
def test_two_names_never_become_one_file(names):
    first, second = (file_name(name) for name in names)
    assert first != second
    for fit in (first, second):
        assert re.fullmatch(r"[\w+~-][\w.+~-]{0,150}", fit, re.ASCII)


def test_names_of_nodes_stay_readable():
    assert file_name("inner:train the.model_1") == "inner+train~the.model_1"
    assert file_name("a+b") != file_name("a:b")


def test_a_view_makes_sense_of_a_journal_with_lines_of_another_release(tmp_path):
    workflow = read_workflow("nodes: [{name: a, type: noop}, {name: b, type: noop}]", "w")
    run = Runs(tmp_path).new("w")
    run.workflow.write_text(json.dumps(to_json(workflow)))
    journal = Journal(run.journal, pytest.fail)
    journal.add("begin", start=5.0, execid=5, pid=1)
    journal.add("node", node="a", status="RUNNING", attempt=0, log="../../etc/passwd")
    journal.add("node", node="a", status="DREAMING")
    journal.add("node", node="nobody", status="RUNNING")
    journal.add("node")
    journal.add("thought", of="me")
    journal.close()
    view = view_of(run)
    assert view.status is Status.EXECUTION_STOPPED
    assert [(n.path, n.status.value) for n in view.nodes] == [("a", "KILLED"), ("b", "READY")]
    run.workflow.write_text("{}")
    with pytest.raises(UsageError, match="cannot be read"):
        view_of(run)


def test_a_workflow_is_kept_whole():
    text = """
config: {date: x}
schedule: 0 30 2 ? * *
nodes:
  - {name: f, type: flow, nodes: [{name: a, notebook: a.ipynb, params: {n: 1}, needs: /x}]}
  - {name: b, type: spark, dependsOn: [f], condition: all_done, config: {k: v}}
"""
    workflow = read_workflow(text, "w", "w.flow")
    assert from_json(json.loads(json.dumps(to_json(workflow)))) == workflow
    with pytest.raises(ValueError, match="not a workflow"):
        from_json({"name": "w"})


def at(text: str, zone: tzinfo = BERLIN, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold).timestamp()


NIGHTLY = "0 30 2 ? * *"


def test_missed_runs_are_reported():
    found = find_missed_runs(NIGHTLY, BERLIN, [at("2026-11-10T02:30:01")], at("2026-11-13T12:00"))
    assert [moment.isoformat() for moment in found.times] == [
        "2026-11-11T02:30:00+01:00", "2026-11-12T02:30:00+01:00", "2026-11-13T02:30:00+01:00",
    ]  # fmt: skip


def test_a_run_that_was_made_up_for_is_not_missed():
    starts = [at("2026-11-10T02:30:01"), at("2026-11-11T14:00"), at("2026-11-12T02:30:02")]
    assert not find_missed_runs(NIGHTLY, BERLIN, starts, at("2026-11-12T20:00")).times


def test_a_run_that_is_due_just_now_is_not_missed_yet():
    starts = [at("2026-11-10T02:30:01")]
    assert not find_missed_runs(NIGHTLY, BERLIN, starts, at("2026-11-11T02:30:30")).times
    assert len(find_missed_runs(NIGHTLY, BERLIN, starts, at("2026-11-11T02:31:30")).times) == 1


@pytest.mark.parametrize("start", ["2026-03-29T03:00:02", "2026-03-29T03:05"])
def test_where_the_clock_jumps_over_the_hour_the_run_comes_after_it(start):
    starts = [at("2026-03-28T02:30:01"), at(start), at("2026-03-30T02:30:01")]
    assert not find_missed_runs(NIGHTLY, BERLIN, starts, at("2026-03-30T12:00")).times
    assert (
        len(
            find_missed_runs(NIGHTLY, BERLIN, starts[:1] + starts[2:], at("2026-03-30T12:00")).times
        )
        == 1
    )


@pytest.mark.parametrize("fold", [0, 1])
def test_where_an_hour_comes_twice_one_run_is_due(fold):
    starts = [at("2026-10-24T02:30:01"), at("2026-10-26T02:30:01")]
    now = at("2026-10-26T12:00")
    assert len(find_missed_runs(NIGHTLY, BERLIN, starts, now).times) == 1
    once = find_missed_runs(NIGHTLY, BERLIN, [*starts, at("2026-10-25T02:30:01", fold=0)], now)
    assert not once.times
    looked = find_missed_runs(NIGHTLY, BERLIN, starts[:1], at("2026-10-25T02:45", fold=fold))
    assert len(looked.times) == 1, "seen in the first hour and in its repetition"


def test_of_a_schedule_of_minutes_none_is_missed_in_an_hour_that_comes_twice():
    began = at("2026-10-25T01:50")
    starts = [began + 600 * n for n in range(20)]
    assert not find_missed_runs("0 0/10 * ? * *", BERLIN, starts, starts[-1] + 100).times
    assert (
        len(find_missed_runs("0 0/10 * ? * *", BERLIN, starts[:9] + starts[10:], starts[-1]).times)
        == 1
    )


def test_a_schedule_of_minutes_is_looked_at_from_the_last_run():
    starts = [at("2026-01-01T00:00"), at("2026-11-13T11:55")]
    found = find_missed_runs("* * * * *", BERLIN, starts, at("2026-11-13T12:00:30"))
    assert found.more
    assert len(found.times) == 4


def test_nothing_is_missed_where_nothing_is_scheduled_or_was_ever_run():
    assert not find_missed_runs("", BERLIN, [1.0], 1e9).times
    assert not find_missed_runs(NIGHTLY, BERLIN, [], 1e9).times


def test_a_project_is_unpacked_within_its_folder(tmp_path):
    archive = tmp_path / "p.zip"
    with zipfile.ZipFile(archive, "w") as made:
        script = zipfile.ZipInfo("bin/go.sh")
        script.external_attr = 0o755 << 16
        made.writestr(script, "#!/bin/sh\n")
        made.writestr("a.flow", "nodes: []")
    folder = unpack(archive, tmp_path / "to")
    assert (folder / "bin/go.sh").stat().st_mode & 0o777 == 0o700
    for number, name in enumerate(("../evil", "/etc/evil", "a\\b", "x/../../y")):
        with zipfile.ZipFile(archive, "w") as made:
            made.writestr(zipfile.ZipInfo(name), "x")
        with pytest.raises(UsageError, match="outside"):
            unpack(archive, tmp_path / f"to-{number}")
    archive.write_text("no zip")
    with pytest.raises(UsageError, match="cannot be unpacked"):
        unpack(archive, tmp_path / "none")


def test_a_zip_that_grows_without_end_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr("submarine_workflows.local.execution.MAX_ARCHIVE_BYTES", 1000)
    with zipfile.ZipFile(tmp_path / "p.zip", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("big", b"0" * 5000)
    with pytest.raises(UsageError, match="more than"):
        unpack(tmp_path / "p.zip", tmp_path / "to")
