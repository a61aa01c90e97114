"""Workflows run on this machine for real: branches, retries, conditions, logs, two runs at once."""

from __future__ import annotations

import json
import shlex
import sys
import threading
import time
import zipfile
from functools import partial
from pathlib import Path

import pytest

from submarine_jobs.errors import RefusedError, UsageError
from submarine_workflows.local import runner
from submarine_workflows.local.log_limit import LogLimit
from submarine_workflows.model import WorkflowError
from submarine_workflows.runs import view_of
from tests.local.workflows.workflow_runs import FullDisk, Workflows
from tests.processes import is_gone
from tests.waiting import until


@pytest.fixture
def flows(tmp_path, monkeypatch):
    # Where links to runs in other folders are kept.
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    found = Workflows(tmp_path)
    yield found
    found.close()


def test_branches_run_at_the_same_time(flows):
    # Each waits for the other: one after the other neither would ever end.
    flows.script("meet.sh", "touch $1; until test -e $2; do sleep 0.05; done")
    flows.write("""
        nodes:
          - {name: a, type: command, config: {command: ./meet.sh x y}}
          - {name: b, type: command, config: {command: ./meet.sh y x}}
          - {name: c, type: noop, dependsOn: [a, b]}
    """)
    outcome = flows.run("--timeout", "80s")
    assert (outcome.exit_code, set(flows.statuses().values())) == (0, {"SUCCEEDED"})


def test_no_more_run_at_a_time_than_may(flows):
    flows.script("alone.sh", "mkdir lock && sleep 0.1 && rmdir lock")
    nodes = ", ".join(
        f"{{name: n{n}, type: command, config: {{command: ./alone.sh}}}}" for n in range(4)
    )
    flows.write(f"nodes: [{nodes}]")
    assert flows.run("--max-parallel", "1").exit_code == 0


def test_a_node_gets_what_azkaban_gives_it(flows):
    flows.script("show.sh", "env > env.$JOB_NAME; cp $JOB_PROP_FILE props; pwd > where; cat")
    flows.write("""
        config: {date: "2026-11-22", deep: "${date}/x", env.WHAT: "at ${deep}"}
        nodes:
          - {name: a, type: command, config: {command: ./show.sh, command.1: "touch 'b ${date}'"}}
    """)
    assert flows.run("-p", "date", "2027-01-01").exit_code == 0
    env = dict(line.partition("=")[::2] for line in flows.file("env.a").read_text().splitlines())
    view = flows.view()
    assert env["WHAT"] == "at 2027-01-01/x"
    assert (env["SUBMARINE_WORKFLOW"], env["SUBMARINE_WORKFLOW_RUN"]) == ("w", view.run)
    assert env["SUBMARINE_WORKFLOW_NODE"] == "a"
    assert flows.file("b 2027-01-01").exists()
    assert flows.file("where").read_text().strip() == str(flows.folder)
    assert f"azkaban.flow.execid={view.execution}" in flows.file("props").read_text()


def test_a_node_is_tried_again_and_its_outputs_decide_what_follows(flows):
    flows.script(
        "train.sh",
        """
        echo "try $1"
        test -e tried || { touch tried; exit 3; }
        echo '{"accuracy": 0.95}' > $JOB_OUTPUT_PROP_FILE
        """,
    )
    flows.write("""
        nodes:
          - name: train
            type: command
            config: {command: "./train.sh ${azkaban.job.attempt}", retries: 2, retry.backoff: 100}
          - {name: good, type: command, config: {command: "touch good-${accuracy}"},
             dependsOn: [train], condition: "${train:accuracy} > 0.9"}
          - {name: bad, type: noop, dependsOn: [train], condition: "${train:accuracy} < 0.9"}
          - {name: last, type: noop, dependsOn: [good, bad], condition: one_success_all_done}
    """)
    outcome = flows.run()
    assert outcome.exit_code == 0
    assert flows.file("good-0.95").exists(), "an output is a parameter of what follows"
    node = flows.view().node("train")
    assert (node.attempt, dict(node.outputs)) == (1, {"accuracy": "0.95"})
    assert flows.statuses()["bad"] == "CANCELLED"
    assert "try 1" in flows.do("logs", "w", "train").text
    assert "try 0" in flows.do("logs", "w", "train", "--attempt", "1").text
    with pytest.raises(UsageError, match="no attempt 7"):
        flows.do("logs", "w", "train", "--attempt", "7")
    assert any("attempt 1 failed. Its command ended with code 3." in s for s in flows.frontend.said)


def test_a_failed_notebook_names_its_cell_in_the_last_words_of_the_run(flows):
    last = "out/a.ipynb    failed after 2s: Cell [3] failed: ValueError: no such column"
    flows.script("notebook.sh", f"echo '{last}'; exit 1")
    flows.write("""
        nodes:
          - {name: a, type: command, config: {command: ./notebook.sh run a.ipynb}}
    """)
    text = flows.run().text
    why = "`a`: Its command ended with code 1. Cell [3] failed: ValueError: no such column"
    assert why in text.splitlines()[0]


def test_a_failed_run_says_why_and_goes_on_where_it_failed(flows):
    flows.write("""
        nodes:
          - {name: first, type: command, config: {command: "mkdir once"}}
          - {name: second, type: command, dependsOn: [first],
             config: {command: "test -e repaired", command.1: "touch from-${azkaban.flow.execid}"}}
          - {name: third, type: noop, dependsOn: [second]}
    """)
    outcome = flows.run("-p", "x", "1")
    assert outcome.exit_code == 1
    assert "`second`: Command 1 of 2 ended with code 1." in outcome.text
    assert flows.statuses() == {
        "": "FAILED", "first": "SUCCEEDED", "second": "FAILED", "third": "CANCELLED",
    }  # fmt: skip
    before = flows.view()
    flows.file("repaired").touch()
    assert flows.do("run", "--resume", before.run).exit_code == 0
    after = flows.view()
    assert (after.run, after.starts, after.execution) == (before.run, 2, before.execution)
    assert flows.file(f"from-{before.execution}").exists()
    assert set(flows.statuses().values()) == {"SUCCEEDED"}
    with pytest.raises(RefusedError, match="nothing to resume"):
        flows.run("--resume")


def test_resume_takes_the_workflow_as_it_is_now(flows):
    text = "nodes: [{name: a, type: command, config: {command: %s}}]"
    flows.write(text % "'false'")
    assert flows.run().exit_code == 1
    flows.write(text % "'true'")
    assert flows.do("run", "--resume", "w").exit_code == 1, "as it was"
    assert flows.run("--resume").exit_code == 0, "as it is"


def test_only_the_named_nodes_run(flows):
    flows.write("""
        nodes:
          - {name: a, type: command, config: {command: touch a}}
          - {name: f, type: flow, dependsOn: [a], nodes: [
              {name: b, type: command, config: {command: touch b}},
              {name: c, type: command, config: {command: touch c}}]}
    """)
    assert flows.run("f:b").exit_code == 0
    assert [flows.file(name).exists() for name in "abc"] == [False, True, False]
    assert flows.statuses()["a"] == "SKIPPED"
    assert flows.do("logs", "w", "f").text.startswith("==> f:b <==\n$ touch b\n")
    assert flows.do("logs", "w", "a").text == ""
    assert flows.frontend.said[-1].endswith("has no log: it is SKIPPED.")
    assert flows.run("--disable", "f").exit_code == 0
    assert flows.statuses()["f:b"] == "SKIPPED"
    with pytest.raises(UsageError, match="no node f:d"):
        flows.run("f:d")


@pytest.mark.parametrize(
    ("command", "code", "sentence"),
    [
        ("no-such-program-here", 127, "Its command was not found."),
        ("./plain.txt", 126, "code 126"),
        ("bash -c 'kill -SEGV $$'", 139, "was ended by SIGSEGV"),
        ("${missing.output}", 2, "${missing.output} has no value. Give it with `-p"),
        ("echo $(date)", 2, "for $() of a shell, use a script"),
    ],
)
def test_why_a_command_failed(flows, command, code, sentence):
    flows.file("plain.txt").write_text("not an executable program")
    # What a command puts out is not known before: a parameter may be missing in the run only.
    flows.write(f"""
        nodes:
          - {{name: before, type: command, config: {{command: "true"}}}}
          - name: a
            type: command
            dependsOn: [before]
            config: {{command: {json.dumps(command)}}}
    """)
    outcome = flows.run()
    assert outcome.exit_code == 1
    node = flows.view().node("a")
    assert node.code == code
    assert sentence in node.reason


def test_what_a_command_leaves_behind_is_ended(flows):
    flows.script("leave.sh", "sleep 600 & echo $! > pid")
    flows.write("nodes: [{name: a, type: command, config: {command: ./leave.sh}}]")
    assert flows.run().exit_code == 0
    until(lambda: is_gone(int(flows.file("pid").read_text())), "it was left")


def test_a_workflow_that_this_machine_cannot_run_is_refused_before_it_starts(flows):
    flows.write("""
        nodes:
          - {name: a, notebook: none.ipynb}
          - {name: b, type: spark, config: {k: v}}
          - {name: c, cells: [x]}
    """)
    with pytest.raises(WorkflowError) as refused:
        flows.run()
    assert [problem.line for problem in refused.value.problems] == [3, 4, 5]
    assert "none.ipynb, which does not exist in" in str(refused.value)
    assert not flows.runs.folder.exists()


def test_dry_run_shows_commands_and_runs_nothing(flows):
    flows.write("nodes: [{name: a, type: command, needs: /x, config: {command: touch a}}]")
    outcome = flows.run("--dry-run")
    assert "submarine workflow await --timeout 21600s -- /x\n  touch a" in outcome.text
    assert not flows.file("a").exists()
    assert not flows.runs.folder.exists()


def test_a_projects_zip_is_unpacked_for_its_run(flows):
    flow = flows.write(
        "nodes: [{name: a, type: command, config: {command: ./go.sh}}]", "inner.flow"
    )
    flows.script("go.sh", "echo went > gone")
    with zipfile.ZipFile(flows.file("p.zip"), "w") as archive:
        archive.write(flow, "inner.flow")
        archive.write(flows.file("go.sh"), "go.sh")
    flows.file("go.sh").unlink()
    assert flows.do("run", str(flows.file("p.zip"))).exit_code == 0
    run = flows.runs.find("inner")
    assert (run.path / "project" / "gone").read_text() == "went\n"


def test_data_that_comes_late_is_waited_for(flows):
    flows.write("""
        config: {date: "2026-11-22"}
        nodes:
          - {name: a, type: command, needs: "data/{date}/_SUCCESS", config: {command: touch done}}
    """)
    done: list[int] = []
    thread = threading.Thread(target=lambda: done.append(flows.run("--timeout", "80s").exit_code))
    thread.start()
    until(lambda: "Waiting for data/2026-11-22/_SUCCESS" in _log(flows, "a"), "it does not wait")
    assert not flows.file("done").exists()
    flows.file("data/2026-11-22").mkdir(parents=True)
    flows.file("data/2026-11-22/_SUCCESS").touch()
    thread.join(80)
    assert done == [0]
    assert flows.file("done").exists()


def test_data_that_does_not_come_in_time_is_the_reason_of_the_end(flows):
    flows.write("""
        nodes:
          - {name: a, type: noop, needs: {path: data/_SUCCESS, timeout: 1s}}
    """)
    assert flows.run().exit_code == 1
    assert flows.view().node("a").reason == "data/_SUCCESS did not appear in time."


def _log(flows: Workflows, node: str) -> str:
    found = list(flows.runs.folder.glob(f"*/*/logs/{node}.0.log"))
    return found[0].read_text() if found else ""


BLOCKED = """
nodes:
  - {name: a, type: command, config: {command: ./a.sh}}
  - {name: b, type: command, dependsOn: [a], config: {command: ./b.sh}}
"""
WAIT = "until test -e $1; do sleep 0.05; done\n"


def test_while_it_runs_another_run_is_skipped_followed_or_beside_it(flows):
    flows.write(BLOCKED)
    flows.script("a.sh", 'echo "$SUBMARINE_WORKFLOW_RUN" >> a\n')
    flows.script(
        "b.sh", 'echo "$SUBMARINE_WORKFLOW_RUN" >> b\nuntil test -e go; do sleep 0.05; done'
    )
    first = flows.spawn("w.flow")
    flows.wait_for("b")
    with pytest.raises(RefusedError, match="is already running"):
        flows.run()
    second = flows.spawn("w.flow", "--concurrent", "pipeline")
    until(lambda: len(flows.wait_for("a").split()) == 2, "a is not held up: the first has done it")
    third = flows.spawn("w.flow", "--concurrent", "ignore")
    until(lambda: len(flows.wait_for("b").split()) == 2, "the third runs beside it")
    begun = flows.wait_for("b").split()
    runs = {run.run: run for run in flows.runs.of("w")}
    assert len(runs) == 3
    [follower] = runs.keys() - set(begun)
    # Its own a has ended, and the first's b still runs.
    until(lambda: view_of(runs[follower]).node("b").status.value == "QUEUED", "b is not due")
    assert len(flows.wait_for("b").split()) == 2
    flows.file("go").touch()
    for process in (first, second, third):
        assert process.wait(90) == 0
    assert set(flows.wait_for("b").split()) == set(runs)


def test_logs_are_followed_until_the_run_has_ended(flows):
    flows.write(BLOCKED)
    flows.script("a.sh", "echo one; until test -e go; do sleep 0.05; done; echo two")
    flows.script("b.sh", "echo three")
    process = flows.spawn("w.flow")
    until(lambda: "one" in _log(flows, "a"), "it has not begun")
    thread = threading.Thread(target=flows.do, args=("logs", "w", "-f"))
    thread.start()
    until(lambda: b"one" in flows.frontend.written, "it does not follow")
    flows.file("go").touch()
    thread.join(80)
    assert not thread.is_alive()
    assert process.wait(80) == 0
    words = [w for w in flows.frontend.written.decode().split("\n") if w and w[0] not in "$("]
    assert words == ["==> a <==", "one", "two", "==> b <==", "three"]
    assert flows.do("logs", "w", "a", "--tail", "2").text.startswith("two\n(code 0")


def test_the_log_of_a_node_stays_below_its_size(flows, monkeypatch):
    monkeypatch.setattr(runner, "LogLimit", partial(LogLimit, limit=10_000, head=100, tail=1000))
    # One goes on until its log was shortened while it ran; the other is over at once.
    waits = "until grep -q 'bytes omitted' runs/w/*/logs/slow*; do sleep 0.05; done"
    flows.script("long.sh", f"seq 4000; {waits}")
    flows.write("""
        nodes:
          - {name: slow, type: command, config: {command: ./long.sh}}
          - {name: quick, type: command, config: {command: seq 4000}}
    """)
    assert flows.run("--timeout", "80s").exit_code == 0
    for node in ("slow", "quick"):
        text = flows.newest().log(node, 0).read_text()
        assert len(text) < 10_000
        assert "omitted" in text
        assert "\n4000\n" in text


def test_a_notification_is_sent_for_a_failed_run_only(flows):
    code = "import sys; open('told', 'a').write(sys.stdin.read())"
    notify = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"
    flows.script("a.sh", "echo connecting with token=hunter22; exit ${1:-0}")
    flows.write("nodes: [{name: a, type: command, config: {command: './a.sh ${code}'}}]")
    told = Path("told")
    try:
        assert flows.run("-p", "code", "0", "--notify", notify).exit_code == 0
        assert not told.exists()
        assert flows.run("-p", "code", "5", "--notify", notify).exit_code == 1
        notice = json.loads(told.read_text())
    finally:
        told.unlink(missing_ok=True)
    assert (notice["state"], notice["workflow"], notice["node"]) == ("FAILED", "w", "a")
    assert "code 5" in notice["reason"]
    assert "token=***" in notice["log"]
    assert "hunter22" not in json.dumps(notice)


def test_history_tells_runs_and_what_was_find_missed_runs(flows):
    flows.write("schedule: 0 30 2 ? * *\nnodes: [{name: a, type: noop}]")
    assert flows.run("--scheduled").exit_code == 0
    assert flows.do("history", "w").value["missed"] == {}
    old = flows.newest()
    moved = old.path.with_name("w-20200101-023000-0000")
    old.path.rename(moved)
    events = (moved / "journal.jsonl").read_text().splitlines()
    begin = json.loads(events[0]) | {"start": time.time() - 3.5 * 86400}
    (moved / "journal.jsonl").write_text("\n".join([json.dumps(begin), *events[1:]]) + "\n")
    outcome = flows.do("history", "w")
    assert 3 <= len(outcome.value["missed"]["w"]) <= 4
    assert "scheduled runs were missed" in outcome.text
    flows.frontend.said.clear()
    assert flows.run("--scheduled").exit_code == 0
    assert "scheduled runs were missed" in flows.frontend.said[0]
    assert len(flows.do("history", "--limit", "1").value["runs"]) == 1


def test_a_run_whose_journal_cannot_be_written_goes_on_and_says_so(flows, monkeypatch):
    flows.write("nodes: [{name: a, type: command, config: {command: touch a}}]")
    monkeypatch.setattr("submarine_workflows.runs.journal.os", FullDisk())
    outcome = flows.run()
    assert flows.file("a").exists()
    assert sum("No space left" in said for said in flows.frontend.said) == 1
    assert (outcome.exit_code, "SUCCEEDED" in outcome.text) == (0, True)
