"""``submarine workflow submit|status|logs|cancel|history|unschedule`` at an Azkaban."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from submarine_jobs.commands import execute
from submarine_jobs.display import MIME_TYPE
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend, Outcome
from submarine_workflows.azkaban import project_name
from submarine_workflows.azkaban.api import AzkabanError
from submarine_workflows.azkaban.server_zone import to_server_zone
from submarine_workflows.headless.managed_run import JobReporter
from tests.azkaban import server as servers
from tests.azkaban.configured import configured
from tests.frontends import RecordingFrontend
from tests.waiting import until

FLOW = """\
schedule: 0 30 2 ? * *
config: {date: "2026-11-22"}
nodes:
  - {name: one, type: command, config: {command: "sh one.sh"}}
  - {name: two, type: command, dependsOn: [one], config: {command: "echo two"}}
"""


@pytest.fixture
def azkaban(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[servers.Azkaban]:
    with configured(tmp_path, monkeypatch) as running:
        yield running


@pytest.fixture
def nightly(tmp_path: Path) -> Path:
    (tmp_path / "one.sh").write_text("echo one; echo word >&2\n")
    file = tmp_path / "nightly.flow"
    file.write_text(FLOW)
    return file


def do(*words: str) -> Outcome:
    return execute(["workflow", *words], Frontend())


@pytest.mark.slow
def test_submit_says_what_it_did_with_ids_and_addresses(
    azkaban: servers.Azkaban, nightly: Path
) -> None:
    done = do("submit", "nightly.flow", "--to", "azkaban", "--schedule", "--run")
    value = done.value
    number = value["run"].removeprefix("azkaban:")
    assert done.text.splitlines() == [
        "Created the project and uploaded nightly as version 1 of nightly: "
        f"{azkaban.url}/manager?project=nightly",
        f"Scheduled as {value['schedule_id']}: `0 30 2 ? * *` in the server's time zone, "
        "next at 2026-11-23 02:30:00.",
        f"Running as azkaban:{number}: {azkaban.url}/executor?execid={number}",
        f"Azkaban's message: Execution queued successfully with exec id {number}.",
        f"Show it with `submarine workflow status azkaban:{number}`.",
    ]
    assert [one.cron for one in azkaban.schedules.values()] == ["0 30 2 ? * *"]
    frontend = RecordingFrontend()
    execute(["workflow", "logs", value["run"], "-f"], frontend)
    text = frontend.written.decode()
    assert re.search(r"==> one <==\n.*\none\nword\n.*==> two <==\n.*\ntwo\n", text, re.DOTALL)
    seen = do("status", value["run"])
    assert [line.split()[:2] for line in seen.text.splitlines()[2:]] == [
        ["one", "SUCCEEDED"],
        ["two", "SUCCEEDED"],
    ]
    assert do("logs", value["run"], "two", "--tail", "1").text == "two"
    again = do("submit", "nightly.flow")
    assert again.value["version"] == "2"
    assert again.value["digest"] == value["digest"]
    assert "Nothing was started or scheduled" in again.text
    listed = do("history", "azkaban:nightly")
    assert listed.text.startswith(f"azkaban:{number} ")
    assert listed.value[0]["status"] == "SUCCEEDED"
    assert do("history", "azkaban:nightly/nightly").value == listed.value
    assert do("unschedule", "nightly.flow").text == (
        f"Removed schedule {value['schedule_id']} (`0 30 2 ? * *`) of nightly. "
        "Azkaban's message: flow nightly removed from Schedules."
    )
    assert azkaban.schedules == {}
    assert do("unschedule", "nightly").text == "nightly of nightly has no schedule."


@pytest.mark.slow
def test_a_node_that_hears_no_term_is_killed(
    azkaban: servers.Azkaban, nightly: Path, tmp_path: Path
) -> None:
    (tmp_path / "one.sh").write_text(
        "trap '' TERM\necho $$ > \"$PIDFILE\"\nwhile :; do sleep 0.1; done\n"
    )
    pid = tmp_path / "pid"
    nightly.write_text(FLOW.replace('"sh one.sh"', f'"sh one.sh", env.PIDFILE: {pid}'))
    run = do("submit", "nightly.flow", "--run").value["run"]
    until(lambda: pid.exists() and pid.read_text().endswith("\n"))
    assert f"Azkaban kills {run}: {azkaban.url}" in do("cancel", run).text
    until(lambda: do("status", run).value["status"] == "KILLED")
    assert not psutil.pid_exists(int(pid.read_text()))
    nodes = {one["path"]: one["status"] for one in do("status", run).value["nodes"]}
    assert nodes == {"one": "KILLED", "two": "CANCELLED"}
    with pytest.raises(AzkabanError, match="isn't running"):
        do("cancel", run)


@pytest.mark.slow
def test_parameters_and_options_of_a_run_and_of_a_schedule(
    azkaban: servers.Azkaban, nightly: Path, tmp_path: Path
) -> None:
    (tmp_path / "one.sh").write_text("exit 1\n")
    nightly.write_text(
        FLOW.replace("echo two", "echo of ${date}").replace("[one]", "[one], condition: all_done")
    )
    text = nightly.read_text().replace(
        "config: {", "config: {failure.action: cancelImmediately, ", 1
    )
    nightly.write_text(text)
    options = ("-p", "date", "a day", "--failure-action", "finishPossible")
    done = do("submit", "nightly.flow", "--run", "--schedule", "--concurrent", "ignore", *options)
    run = done.value["run"]
    until(lambda: do("status", run).value["ended"] is not None)
    assert "\nof a day" in do("logs", run, "two").text
    (schedule,) = azkaban.schedules.values()
    assert schedule.fields["flowOverride[date]"] == "a day"
    assert schedule.fields["concurrentOption"] == "ignore"
    assert schedule.fields["failureActionOverride"] == "true"


@pytest.mark.slow
def test_no_flow_is_lost_by_an_upload(azkaban: servers.Azkaban, nightly: Path) -> None:
    do("submit", "nightly.flow", "--schedule", "--project", "all")
    other = nightly.with_name("weekly.flow")
    other.write_text(FLOW)
    with pytest.raises(UsageError) as refused:
        do("submit", "weekly.flow", "--project", "all")
    assert "and their schedules: nightly." in str(refused.value)
    assert "POST /manager upload" not in azkaban.requests[-1]
    assert len(azkaban.schedules) == 1
    do("submit", "weekly.flow", "--project", "all", "--replace")
    assert azkaban.schedules == {}
    with pytest.raises(UsageError, match="Give its project with --project"):
        do("unschedule", "monthly")


def test_what_is_refused_before_anything_is_sent(azkaban: servers.Azkaban, nightly: Path) -> None:
    for text, words, sentence in (
        (FLOW.replace("schedule: 0 30 2 ? * *\n", ""), ["--schedule"], "has no schedule"),
        ("timezone: Asia/Tokyo\n" + FLOW, ["--schedule"], "which is not configured"),
        (FLOW, ["--project", "my project"], "is not a valid project name"),
        ("trigger: {schedule: {type: cron, value: 0 0 2 * * ?}}\n" + FLOW,
         ["--schedule"], "has a `trigger:`"),
        (FLOW.replace("echo two", "curl --token 8f3a http://x"), [], "a secret after `token`"),
    ):  # fmt: skip
        nightly.write_text(text)
        with pytest.raises(UsageError) as refused:
            do("submit", "nightly.flow", *words)
        assert sentence in str(refused.value)
    nightly.write_text(FLOW)
    with pytest.raises(UsageError, match="api_token looks like a secret by its name"):
        do("submit", "nightly.flow", "--run", "-p", "api_token", "8f3a")
    with pytest.raises(UsageError, match="azkaban:x is not the id of an Azkaban run"):
        do("status", "azkaban:x")
    assert azkaban.requests == []


@pytest.mark.slow
def test_a_project_that_cannot_be_listed_is_not_made_anew(
    azkaban: servers.Azkaban, nightly: Path
) -> None:
    do("submit", "nightly.flow")
    azkaban.projects["nightly"].readable = False
    with pytest.raises(AzkabanError, match="Need READ access"):
        do("submit", "nightly.flow")


@pytest.mark.slow
def test_flow_1_goes_there_as_it_is(azkaban: servers.Azkaban, tmp_path: Path) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "first.job").write_text("type=command\ncommand=echo first\n")
    (folder / "end.job").write_text("type=command\ncommand=echo end\ndependencies=first\n")
    done = do("submit", "old", "--run")
    assert (done.value["project"], done.value["flow"]) == ("old", "end")
    run = done.value["run"]
    until(lambda: do("status", run).value["ended"] is not None)
    assert do("status", run).value["status"] == "SUCCEEDED"


def test_the_zip_without_an_azkaban(nightly: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(nightly.parent)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(nightly.parent / "none"))
    done = do("export", "nightly.flow", "--to", "azkaban", "-o", "x.zip", "--program", "/opt/s")
    assert json.dumps(done.value)
    first = Path("x.zip").read_bytes()
    do("export", "nightly.flow", "--to", "azkaban", "--program", "/opt/s")
    assert Path("nightly.zip").read_bytes() == first


@pytest.mark.parametrize(
    ("cron", "wanted", "servers", "moved"),
    [
        ("0 30 2 ? * *", "", "", "0 30 2 ? * *"),
        ("30 2 * * *", "", "Europe/Berlin", "0 30 2 * * ?"),
        ("0 30 2 ? * *", "Europe/Berlin", "Europe/Berlin", "0 30 2 ? * *"),
        ("0 0/15 * ? * MON-FRI", "Europe/Paris", "Europe/Berlin", "0 0/15 * ? * MON-FRI"),
        ("0 30 2 ? * *", "Asia/Shanghai", "UTC", "0 30 18 ? * *"),
        ("0 30 22 ? * MON", "Asia/Shanghai", "UTC", "0 30 14 ? * MON"),
        ("15 30 23 * * ?", "UTC", "Asia/Kolkata", "15 0 5 * * ?"),
    ],
)
def test_a_schedule_in_the_servers_time_zone(
    cron: str, wanted: str, servers: str, moved: str
) -> None:
    assert to_server_zone(cron, wanted, servers) == moved


@pytest.mark.parametrize(
    ("cron", "wanted", "servers", "sentence"),
    [
        ("0 30 2 ? * *", "Europe/Berlin", "", "that of its server, which is not configured"),
        (
            "0 30 2 ? * *",
            "Europe/Berlin",
            "America/New_York",
            "change their clocks on different days",
        ),
        ("0 30 2 ? * *", "Europe/Berlin", "UTC", "change their clocks on different days"),
        ("0 30 2 ? * MON", "Asia/Shanghai", "UTC", "on different days there"),
        ("0 0/15 2 ? * *", "Asia/Shanghai", "UTC", "on different days there"),
    ],
)
def test_a_schedule_that_cannot_be_said_there(
    cron: str, wanted: str, servers: str, sentence: str
) -> None:
    with pytest.raises(UsageError) as refused:
        to_server_zone(cron, wanted, servers)
    assert sentence in str(refused.value)


def test_names_of_projects() -> None:
    assert project_name("", "my flow.2") == "my-flow-2"
    assert project_name("", "2nd") == "flow-2nd"
    assert project_name("a-B_3", "x") == "a-B_3"


def test_applications_of_a_notebook_are_words_of_the_log() -> None:
    said: list[str] = []
    record = {"application_id": "application_1795334188115_0021"}
    card = {"job_id": "fit-20261122-1f0a", "state": "RUNNING", "record": record}
    JobReporter(said.append).report({MIME_TYPE: card})
    # As ``HadoopJobUtils.findApplicationIdFromLog`` looks for them.
    words = re.split(r"\s", "\n".join(said))
    found = [match[1] for word in words if (match := re.match(r"^(application_\d+_\d+).*", word))]
    assert found == ["application_1795334188115_0021"]
