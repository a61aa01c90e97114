"""The client says the same to the contract server and to a real Azkaban, and hears the same.

The real one is asked where ``SUBMARINE_TEST_AZKABAN`` names it (``tests.azkaban.probing``); what
differs there is a fault of the contract server. Nodes are plain shell commands.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from submarine_workflows.azkaban.api import (
    Azkaban,
    AzkabanError,
    Execution,
    LogFollower,
    NoProjectError,
    UnreachableError,
    options_of,
)
from submarine_workflows.azkaban.project.compiler import compile_workflow
from submarine_workflows.formats import read_workflow
from tests.azkaban import probing
from tests.waiting import until

FLOW = """
config: {gate: "/nowhere", word: "given"}
nodes:
  - name: train
    type: command
    config:
      command: sh train.sh 'grüße & <b>' '${word}'
      retries: "1"
      retry.backoff: "10"
  - name: inner
    type: flow
    dependsOn: [train]
    condition: all_success && ${train:accuracy} >= 0.9
    nodes:
      - {name: report, type: command, config: {command: echo reported}}
  - name: never
    type: command
    dependsOn: [train]
    condition: ${train:accuracy} > 0.95
    config: {command: "false"}
  - {name: last, type: noop, dependsOn: [inner, never], condition: one_success}
"""
TRAIN = """\
echo "trained $1 with $2"
test -e tried || { touch tried; exit 3; }
echo '{"accuracy": "0.9"}' > "$JOB_OUTPUT_PROP_FILE"
"""
WAITING = """
nodes:
  - name: wait
    type: command
    config: {command: sh wait.sh}
"""
WAIT = """\
trap 'echo "told to end"; exit 1' TERM
echo waiting
while :; do sleep 0.1; done
"""


@pytest.fixture(params=["contract", "real"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[probing.Location]:
    if request.param == "real" and not os.environ.get(probing.VARIABLE):
        pytest.skip(f"no real Azkaban is named by {probing.VARIABLE}")
    with getattr(probing, request.param)(tmp_path) as made:
        yield made


def uploaded(client: Azkaban, project: str, folder: Path, flow: str, **scripts: str) -> int:
    """The project's number."""
    folder.mkdir(exist_ok=True)
    for name, text in scripts.items():
        (folder / f"{name}.sh").write_text(text)
    made = compile_workflow(read_workflow(flow, "nightly"), folder)
    return client.upload(project, made.to_zip(), "nightly.zip").project_id


def ended(client: Azkaban, execid: int) -> Execution:
    until(lambda: client.execution(execid).over, f"execution {execid} goes on", 240)
    return client.execution(execid)


def _is_empty(client: Azkaban, execid: int, attempt: int) -> bool:
    with suppress(UnreachableError):
        return not client.log(execid, "train", 0, attempt).length
    return False


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(AzkabanError) as caught:
        call()
    return str(caught.value)


def test_a_session_that_is_over_and_a_wrong_password(place: probing.Location) -> None:
    wrong = place.client("not this one")
    assert "Incorrect Login" in refused(lambda: wrong.flows("submarine-test-none"))
    project = place.project()
    for call in (
        lambda client: client.create(project, "grüße 日本"),
        lambda client: client.flows(project),
        lambda client: uploaded(client, project, place.folder / "work", WAITING, wait=WAIT),
    ):
        place.keep("nobody-knows-this-one")
        assert call(place.client())


def test_projects_and_uploads(place: probing.Location) -> None:
    client, project = place.client(), place.project()
    with pytest.raises(NoProjectError, match=rf"Project {project} doesn't exist"):
        client.flows(project)
    assert client.create(project, "first")
    assert not client.create(project, "second")
    assert not client.create(project.upper(), "its name in other letters")
    assert "must start with a letter" in refused(lambda: client.create("1st", "x"))
    assert client.flows(project).flows == ()
    gone = refused(lambda: client.upload("submarine-test-none", b"PK", "nightly.zip"))
    assert "'submarine-test-none doesn't exist" in gone
    assert "Error unzipping file" in refused(
        lambda: client.upload(project, b"not a zip", "nightly.zip")
    )
    number = uploaded(client, project, place.folder / "work", FLOW, train=TRAIN)
    listed = client.flows(project)
    assert (listed.project_id, listed.flows) == (number, ("nightly",))
    # Where the letters differ only in size, it is the same project.
    assert client.flows(project.upper()).project_id == number


def test_a_run_with_a_retry_conditions_and_a_flow_in_it(place: probing.Location) -> None:
    client, project = place.client(), place.project()
    client.create(project, "x")
    uploaded(client, project, place.folder / "work", FLOW, train=TRAIN)
    assert "cannot be found" in refused(lambda: client.execute(project, "other"))
    assert "doesn't exist" in refused(lambda: client.execute("submarine-test-none", "nightly"))
    started = client.execute(project, "nightly", {"word": "ünïcode & more"})
    assert "queued successfully" in started.message
    seen = ended(client, started.execid)
    assert {node.path: node.status for node in seen.walk()} == {
        "train": "SUCCEEDED", "inner": "SUCCEEDED", "inner:report": "SUCCEEDED",
        "never": "CANCELLED", "last": "SUCCEEDED",
    }  # fmt: skip
    assert (seen.status, seen.flow, seen.project) == ("SUCCEEDED", "nightly", project)
    train = next(node for node in seen.nodes if node.path == "train")
    assert (train.attempt, train.type, train.depends_on) == (1, "command", ())
    assert next(node for node in seen.nodes if node.path == "last").depends_on
    assert None not in (seen.submitted, seen.started, seen.ended, train.started, train.ended)

    log = "".join(LogFollower(client, started.execid, "train").read_current())
    assert "trained grüße & <b> with ünïcode & more" in log
    first = "".join(LogFollower(client, started.execid, "train").attempt(0))
    assert "completed unsuccessfully" in first
    assert "reported" in "".join(LogFollower(client, started.execid, "inner:report").read_current())
    # Nothing follows the end of a log, and an attempt that never was has none.
    assert not client.log(started.execid, "train", len(log.encode())).length
    # For some seconds the web server asks the executor, which knows of none, and fails.
    until(lambda: _is_empty(client, started.execid, attempt=7), "HTTP 500 without an end")
    assert "doesn't exist in" in refused(lambda: client.log(started.execid, "other", 0))
    (past,) = client.past(project, "nightly", 5)
    assert (past.execid, past.status) == (started.execid, "SUCCEEDED")
    assert client.past(project, "other", 5) == []
    assert "isn't running" in refused(lambda: client.cancel(started.execid))


def test_runs_beside_each_other_and_kill(place: probing.Location) -> None:
    client, project = place.client(), place.project()
    client.create(project, "x")
    uploaded(client, project, place.folder / "work", WAITING, wait=WAIT)
    first = client.execute(project, "nightly", None, **options_of("cancelImmediately", "")).execid
    until(lambda: "waiting" in "".join(LogFollower(client, first, "wait").read_current()), "no log")
    assert client.running(project, "nightly") == [first]
    assert "already running" in refused(lambda: client.execute(project, "nightly"))
    beside = client.execute(project, "nightly", None, **options_of("", "ignore"))
    assert "concurrently" in beside.message
    behind = client.execute(project, "nightly", None, **options_of("", "pipeline"))
    assert "Pipelining level 1" in behind.message
    asked = refused(lambda: client.execute(project, "nightly", concurrentOption="pipeline"))
    assert "Missing required parameter 'pipelineLevel'" in asked
    for execid in (first, beside.execid, behind.execid):
        client.cancel(execid)
    for execid in (first, beside.execid, behind.execid):
        assert ended(client, execid).status == "KILLED"
    assert "told to end" in "".join(LogFollower(client, first, "wait").read_current())
    assert client.running(project, "nightly") == []
    assert "Cannot find execution" in refused(lambda: client.execution(2_000_000_000))


def test_schedules(place: probing.Location) -> None:
    client, project = place.client(), place.project()
    client.create(project, "x")
    number = uploaded(client, project, place.folder / "work", WAITING, wait=WAIT)
    assert client.scheduled(number, "nightly") is None
    options = options_of("finishPossible", "pipeline")
    made = client.schedule(project, "nightly", "0 30 2 ? * *", **options)
    again = client.schedule(project, "nightly", "0 31 2 ? * MON-FRI")
    assert again == made
    found = client.scheduled(number, "nightly")
    assert found is not None
    assert (found.schedule_id, found.cron) == (made, "0 31 2 ? * MON-FRI")
    assert found.user == place.settings.user
    assert found.next_run.endswith(" 02:31:00")
    for wrong in ("0 30 2 * * *", "0 30 2 ? * * 2001", "30 2 * * *"):
        said = refused(partial(client.schedule, project, "nightly", wrong))
        assert "can not be parsed to quartz cron" in said
    assert "cannot be found" in refused(lambda: client.schedule(project, "other", "0 30 2 ? * *"))
    missing = refused(lambda: client.schedule("submarine-test-none", "nightly", "0 30 2 ? * *"))
    assert "does not exist" in missing
    assert "removed from Schedules" in client.unschedule(made)
    assert "does not exist" in refused(lambda: client.unschedule(made))
