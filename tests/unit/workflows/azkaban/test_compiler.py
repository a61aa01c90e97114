"""A workflow as Azkaban's project: what it takes, what is carried, what is refused."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest

from submarine_jobs.errors import UsageError
from submarine_workflows.azkaban.project import has_trigger, project_of, secret_kind
from submarine_workflows.azkaban.project.secrets import secret_in_command
from submarine_workflows.formats import read_properties
from submarine_workflows.model import ExecutionSettings, WorkflowError, split_command
from tests.azkaban.project import BadProjectError, load_project, unzip

NIGHTLY = """\
schedule: 0 30 2 ? * *
notebook: all/report.ipynb
config:
  date: "2026-11-22"
  failure.emails: ops@example.org
nodes:
  - name: features
    notebook: features.ipynb
    needs: hdfs:///data/{date}/_SUCCESS
    config: {retries: 2, retry.backoff: 60000, env.TZ: Europe/Berlin}
  - name: train
    notebook: train.ipynb
    params: {date: "${azkaban.flow.start.timestamp}", title: It's "new"}
    job: {worker: 2, gpu: 1}
    dependsOn: [features]
  - name: etl
    type: command
    config: {command: bash etl.sh 'a b', command.1: "echo grüße"}
    needs: {path: "hdfs:///x", timeout: 5m}
  - {name: gate, type: noop, needs: /data/y}
  - name: inner
    type: flow
    dependsOn: [train]
    condition: all_success && ${train:accuracy} >= 0.9
    nodes:
      - {name: report, cells: [summary, plot]}
      - {name: jvm, type: java, config: {job.class: a.B}, dependsOn: [report]}
"""


def notebook(*sources: str) -> str:
    cells = [
        {"cell_type": "code", "source": source, "outputs": [{"text": "hunter2"}], "metadata": {},
         "execution_count": 3}
        for source in sources
    ]  # fmt: skip
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture
def nightly(tmp_path: Path) -> Path:
    (tmp_path / "all").mkdir()
    (tmp_path / "helper.py").write_text("import deep.part as part\n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "part.py").write_text("from . import other\n")
    (tmp_path / "deep" / "other.py").write_text("import os, unknown\n")
    (tmp_path / "etl.sh").write_text("#!/bin/sh\necho done\n")
    (tmp_path / "plot.sh").write_text("echo plot\n")
    (tmp_path / "data.csv").write_text("1,2\n")
    (tmp_path / "features.ipynb").write_text(notebook("%pylab\nimport helper, json\n!sh plot.sh"))
    (tmp_path / "train.ipynb").write_text(notebook("x = 1"))
    (tmp_path / "all" / "report.ipynb").write_text(notebook("summary = 1"))
    file = tmp_path / "nightly.flow"
    file.write_text(NIGHTLY)
    return file


def test_the_whole_project(nightly: Path) -> None:
    workflow, project = project_of(nightly, ExecutionSettings(outputs="executed"))
    packed = project.to_zip()
    files = unzip(packed)
    assert sorted(files) == [
        "all/report.ipynb", "deep/other.py", "deep/part.py", "etl.sh", "executed/ABOUT",
        "features.ipynb",
        "helper.py", "nightly.flow", "nightly.project", "plot.sh", "train.ipynb",
    ]  # fmt: skip
    assert files["nightly.project"] == b"azkaban-flow-version: 2.0\n"
    assert b"hunter2" not in files["features.ipynb"]
    assert project.flows == (workflow.name,) == ("nightly",)

    flow = load_project(packed)["nightly"]
    nodes = dict(flow.walk())
    assert flow.config == {
        "env.SUBMARINE_WORKFLOW": "nightly",
        "env.SUBMARINE_WORKFLOW_RUN": "azkaban:${azkaban.flow.execid}",
        "env.SUBMARINE_YARN_TAGS": "azkaban.flow.execid:${azkaban.flow.execid},"
        "azkaban.flow.flowid:${azkaban.flow.flowid},"
        "azkaban.flow.projectname:${azkaban.flow.projectname}",
        "date": "2026-11-22",
        "failure.emails": "ops@example.org",
    }
    features = nodes["features"].config
    assert features["command"] == (
        "submarine workflow with-values workflow await --timeout 21600s -- @SUBMARINE_VALUE_1"
    )
    assert features["env.SUBMARINE_VALUE_1"] == "hdfs:///data/${date}/_SUCCESS"
    assert split_command(features["command.1"])[:7] == [
        "submarine", "workflow", "with-values", "run", "features.ipynb", "-o",
        "executed/features.ipynb",
    ]  # fmt: skip
    assert features["env.SUBMARINE_VALUE_2"] == "nightly/${azkaban.flow.execid}/features"
    assert (features["retries"], features["retry.backoff"]) == ("2", "60000")
    assert features["env.TZ"] == "Europe/Berlin"
    train = split_command(nodes["train"].config["command"])
    assert train[train.index("title") + 1] == 'It\'s "new"'
    assert train[-2:] == ["--return", "accuracy"]
    assert nodes["etl"].config["command.1"] == "bash etl.sh 'a b'"
    assert nodes["etl"].config["command.2"] == "echo grüße"
    assert (nodes["gate"].type, nodes["inner:jvm"].type) == ("command", "java")
    assert nodes["inner:jvm"].config["job.class"] == "a.B"
    assert nodes["inner:report"].config["env.SUBMARINE_WORKFLOW_NODE"] == "inner:report"
    assert "all/report.ipynb" in nodes["inner:report"].config["command"]


def test_the_same_bytes_each_time(nightly: Path) -> None:
    first = project_of(nightly)[1].to_zip()
    run_again = json.loads((nightly.parent / "train.ipynb").read_text())
    run_again["cells"][0]["outputs"] = [{"text": "another run"}]
    run_again["cells"][0]["execution_count"] = 9
    (nightly.parent / "train.ipynb").write_text(json.dumps(run_again))
    assert project_of(nightly)[1].to_zip() == first
    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert archive.getinfo("etl.sh").external_attr >> 16 == 0o100755


def test_further_files_are_carried_when_asked_for(nightly: Path) -> None:
    assert "data.csv" in project_of(nightly, extra=("*.csv",))[1].files
    with pytest.raises(UsageError, match=r"No file in .* matches"):
        project_of(nightly, extra=("*.tsv",))


@pytest.mark.parametrize(
    ("changed", "other", "sentence"),
    [
        ("features.ipynb\n", "../features.ipynb\n", "The notebook ../features.ipynb is outside"),
        ("features.ipynb\n", "/x/y.ipynb\n", "The notebook /x/y.ipynb has an absolute path"),
        ("features.ipynb\n", "gone.ipynb\n", "The notebook gone.ipynb is not in"),
        ("features.ipynb\n", "${date}.ipynb\n", "is unknown before the node runs"),
        ("features.ipynb\n", "etl.sh\n", "etl.sh is not a notebook"),
        ("features.ipynb\n", "broken.ipynb\n", "broken.ipynb is not a notebook"),
        ("bash etl.sh", "prod.key", "prod.key looks like a credential"),
    ],
)
def test_what_cannot_be_carried(nightly: Path, changed: str, other: str, sentence: str) -> None:
    (nightly.parent / "prod.key").write_text("key")
    (nightly.parent / "broken.ipynb").write_text("[1")
    nightly.write_text(NIGHTLY.replace(changed, other))
    with pytest.raises(UsageError) as refused:
        project_of(nightly)
    assert sentence in str(refused.value)


def test_a_notebook_elsewhere_is_read_by_the_executor(nightly: Path) -> None:
    nightly.write_text(NIGHTLY.replace("notebook: train.ipynb", "notebook: hdfs:///nb/train.ipynb"))
    _, project = project_of(nightly)
    assert "train.ipynb" not in project.files
    assert b"run hdfs:///nb/train.ipynb" in project.files["nightly.flow"]


@pytest.mark.parametrize(
    ("changed", "other", "sentence"),
    [
        ("env.TZ: Europe/Berlin", "env.DB_PASSWORD: hunter2", "`env.DB_PASSWORD` of `features`"),
        ("date: \"2026", "apiToken: 8f3a\n  date: \"2026", "`apiToken` of the workflow looks like"),
        ("echo grüße", "curl --token 8f3a http://x", "a secret after `token`"),
        ("hdfs:///x", "ftp://me:pw@host/x", "a password in a URL"),
        ("worker: 2", "env: AWS=AKIAABCDEFGHIJKLMNOP", "an access key of AWS"),
        ("type: noop, needs: /data/y", "type: noop, config: {command: ls}", "not a command node"),
        ("summary, plot", "summary, \"\"", "list of names"),
        (">= 0.9", ">= 'a<b'", "Azkaban does not accept"),
        ("params: {date:", "params: {x: $(1 + 1), date:", "`train` contains `$(`, which starts"),
        ('date: "2026-11-22"', 'title: $(2)\n  date: "2026-11-22"', "its value contains `$(`"),
        ("schedule:", "name: ../x\nschedule:", "'../x' is not a valid flow name"),
        ("schedule:", "name: ~x\nschedule:", "`~x` is not a valid flow name"),
        ("schedule:", "name: \"a\\n* * * * * id\"\nschedule:", "' is not a valid flow name"),
        ("{job.class: a.B}", "{job.class: a.B}, needs: /z", "`java`, which cannot wait for data"),
    ],
)  # fmt: skip
def test_what_azkaban_should_never_see(
    nightly: Path, changed: str, other: str, sentence: str
) -> None:
    text = NIGHTLY.replace(changed, other, 1)
    if "title:" in other:
        text = text.replace('title: It\'s "new"', 'title: "${title}"')
    nightly.write_text(text)
    with pytest.raises(WorkflowError) as refused:
        project_of(nightly)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value", "harmless"),
    [
        ("env.PASSWORD", "x1", False), ("db.password", "${db.pw}", False),
        ("accessKeyId", "abc", False), ("env.TOKEN_FILE", "/run/token", True),
        ("env.PASSWORD", "/run/secret", True), ("env.PASSWORD", "", True),
        ("passenger.count", "3", True), ("tokenizer", "bert", True), ("use.token", "true", True),
        ("x", "https://user:pw@host/", False), ("x", "https://host/a@b", True),
        ("x", "-----BEGIN RSA PRIVATE KEY-----", False),
    ],
)  # fmt: skip
def test_what_looks_like_a_secret(name: str, value: str, harmless: bool) -> None:
    assert (secret_kind(name, value) == "") is harmless


def test_secrets_in_command_lines() -> None:
    assert secret_in_command("mysql -u me --password=hunter2")
    assert secret_in_command("env PGPASSWORD=hunter2 psql") == ""  # no word of its own: not known
    assert secret_in_command("env PG_PASSWORD=hunter2 psql")
    assert secret_in_command("x --password-file /run/pw --token-ttl 3600") == ""


def test_azkabans_own_flow_passes_through_byte_for_byte(tmp_path: Path) -> None:
    text = """\
# a comment of theirs
trigger: {maxWaitMins: 10, schedule: {type: cron, value: 0 0 2 * * ?}}
config: {failure.emails: a@b}
nodes:
  - {name: one, type: pig, config: {pig.script: a.pig}}
  - {name: two, type: command, dependsOn: [one], config: {command: sh a.sh}}
"""
    (tmp_path / "a.sh").write_text("echo\n")
    file = tmp_path / "theirs.flow"
    file.write_text(text)
    _, project = project_of(file)
    assert project.files["theirs.flow"] == text.encode()
    assert sorted(project.files) == ["a.sh", "theirs.flow", "theirs.project"]
    assert has_trigger(file)
    file.write_text(text.replace("sh a.sh", "bin/submarine run fit.py --wait"))
    called = project_of(file)[1].files["theirs.flow"]
    assert b"env.SUBMARINE_YARN_TAGS" in called
    assert b"maxWaitMins: 10" in called
    (tmp_path / "n.ipynb").write_text(notebook("x"))
    mixed = tmp_path / "mixed.flow"
    mixed.write_text(text + "  - {name: three, notebook: n.ipynb}\n")
    packed = project_of(mixed)[1].to_zip()
    assert [node.type for node in load_project(packed)["mixed"].nodes] == ["pig", *2 * ["command"]]
    assert b"maxWaitMins: 10\n" in unzip(packed)["mixed.flow"]


def test_flow_1_passes_through_as_folder_and_as_zip(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    (folder / "lib").mkdir(parents=True)
    (folder / "a.job").write_text("type=command\ncommand=echo a\n")
    (folder / "b.job").write_text("type=hive\nhive.script=b.q\ndependencies=a\n")
    (folder / "lib" / "udf.jar").write_bytes(b"\0jar")
    (folder / ".hidden").write_text("x")
    _, project = project_of(folder)
    assert (project.name, project.flows) == ("old", ("b",))
    packed = project.to_zip()
    assert sorted(unzip(packed)) == ["a.job", "b.job", "lib/udf.jar"]
    assert list(load_project(packed)) == ["b"]
    zipped = tmp_path / "old.zip"
    zipped.write_bytes(packed + b"")
    assert project_of(zipped)[1].to_zip() == packed
    (folder / "a.job").write_text("type=command\ncommand=echo a\nenv.TOKEN=8f3a\n")
    with pytest.raises(WorkflowError, match=r"`env\.TOKEN` of `a` looks like a secret"):
        project_of(folder)


def test_job_files_of_flow_1_that_call_us_tag_their_applications(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "a.job").write_text("type=command\ncommand=echo a\n")
    (folder / "b.job").write_text("type=command\ncommand=submarine list\ndependencies=a\n")
    (folder / "own.properties").write_text("env.SUBMARINE_WORKFLOW=mine\n")
    packed = unzip(project_of(folder)[1].to_zip())
    given = read_properties(packed["00-submarine.properties"].decode())
    assert {key: value for key, (value, _) in given.items()} == {
        "env.SUBMARINE_WORKFLOW": "${azkaban.flow.flowid}",
        "env.SUBMARINE_WORKFLOW_RUN": "azkaban:${azkaban.flow.execid}",
        "env.SUBMARINE_WORKFLOW_NODE": "${azkaban.job.id}",
        "env.SUBMARINE_YARN_TAGS": (
            "azkaban.flow.execid:${azkaban.flow.execid},azkaban.flow.flowid:${azkaban.flow.flowid},"
            "azkaban.flow.projectname:${azkaban.flow.projectname}"
        ),
    }
    # Azkaban reads them by name, and the last one counts: the folder's own go over ours.
    assert min(packed) == "00-submarine.properties"


def test_the_reader_of_these_tests_is_as_strict_as_azkabans() -> None:
    def packed(**files: str) -> bytes:
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w") as archive:
            for name, text in files.items():
                archive.writestr(name.replace("_", "."), text)
        return target.getvalue()

    good = "nodes: [{name: a, type: noop}]"
    version = "azkaban-flow-version: 2.0"
    assert list(load_project(packed(x_project=version, x_flow=good))) == ["x"]
    for files in (
        {"x_project": 'azkaban-flow-version: "2.0"', "x_flow": good},
        {"x_project": "azkaban-flow-version: 2", "x_flow": good},
        {"x_project": version, "y_project": version, "x_flow": good},
        {"x_project": version, "x_flow": "schedule: x\n" + good},
        {"x_project": version, "x_flow": "config: {retries: 2}\n" + good},
        {"x_project": version, "x_flow": "nodes: [{name: ROOT, type: noop}]"},
        {
            "x_project": version,
            "x_flow": "nodes: [{name: a, type: noop, condition: '${a:x} >= 1'}]",
        },
    ):
        with pytest.raises(BadProjectError):
            load_project(packed(**files))
