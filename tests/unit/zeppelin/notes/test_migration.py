"""``zeppelin migrate --check`` reads settings and notes in Zeppelin's formats."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.commands import execute
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend
from submarine_zeppelin.migration import (
    CHANGES,
    FAILS,
    IGNORED,
    RUNS,
    MigrationReport,
    check_migration,
)

DOCS = Path(__file__).parents[4] / "docs"


def paragraph(text: str, title: str | None = None) -> dict[str, Any]:
    """A paragraph as Zeppelin saves it, with the fields that it has in each version."""
    return {
        "text": text,
        **({"title": title} if title is not None else {}),
        "user": "anonymous",
        "dateUpdated": "2019-09-10 12:48:44.000",
        "config": {"colWidth": 12.0, "enabled": True, "results": {}, "editorSetting": {}},
        "settings": {"params": {}, "forms": {}},
        "results": {"code": "SUCCESS", "msg": [{"type": "ANGULAR", "data": "<div></div>"}]},
        "apps": [],
        "jobName": "paragraph_1531364124300_1240812",
        "id": "20180813-101622_868934",
        "status": "FINISHED",
    }


def write_note(path: Path, *paragraphs: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    note = {
        "paragraphs": list(paragraphs),
        "name": "mnist",
        "id": "2DYD6WJ7C",
        "noteParams": {},
        "noteForms": {},
        "angularObjects": {},
        "config": {"isZeppelinNotebookCronEnable": False},
        "info": {},
    }
    path.write_text(json.dumps(note))


def write_settings(path: Path, properties: dict[str, Any], group: str = "submarine") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    setting = {"id": group, "name": group, "group": group, "properties": properties}
    path.write_text(json.dumps({"interpreterSettings": {group: setting}}))


def saved(name: str, value: Any) -> dict[str, Any]:
    return {name: {"name": name, "value": value, "type": "string"}}


def effects(report: MigrationReport) -> list[tuple[str, str]]:
    return [(one.effect, one.place.rpartition(", paragraph ")[2]) for one in report.findings]


@pytest.mark.parametrize(
    "name", ["notebook/tutorial/mnist_2DYD6WJ7C.zpln", "notebook/2D/note.json"]
)
def test_paragraphs_of_a_note(tmp_path: Path, name: str) -> None:
    write_note(
        tmp_path / name,
        paragraph("%md\n# Submarine", "Introduction"),
        paragraph("%submarine.python\nimport tensorflow as tf\n", "mnist.py"),
        paragraph("%submarine.python\nz.show(frame)\nz.angular('x')\n", "main.py"),
        paragraph("%submarine.python\nz = {}\nz.get(1)\n"),
        paragraph("%submarine.python\nprint(1)\n", "The model"),
        paragraph("%submarine.python\nprint('${steps=10}')\n", "main.py"),
        paragraph("%submarine.python\n1\n", "../evil.py"),
        paragraph("%submarine.sh\nls\n", "prepare.sh"),
        paragraph("%submarine\ndashboard"),
        paragraph("%submarine\nJOB_RUN"),
        paragraph(
            "%submarine\nyarn jar submarine.jar job run --name a --num_workers 1 "
            "--worker_launch_cmd 'python main.py' --wait"
        ),
        paragraph("%submarine\njob run --name a --worker_launch_cmd 'python main.py'"),
        paragraph("%submarine\njob run --unheard-of 1"),
        paragraph("%submarine\nfly away"),
        paragraph("%spark\nz.show(1)"),
    )
    report = check_migration(tmp_path)
    assert effects(report) == [
        (CHANGES, "1"),
        (RUNS, "2"),
        (FAILS, "3"),
        (RUNS, "4"),
        (CHANGES, "5"),
        (CHANGES, "6"),
        (FAILS, "7"),
        (RUNS, "8"),
        (RUNS, "9"),
        (RUNS, "10"),
        (RUNS, "11"),
        (CHANGES, "12"),
        (FAILS, "13"),
        (FAILS, "14"),
    ]
    texts = {one.place.rpartition(" ")[2]: one.text for one in report.findings}
    assert texts["3"].startswith("It uses z.angular, which")
    assert texts["6"].startswith("The text ${steps=10} is a form now")
    assert "--unheard-of" in texts["13"]
    assert texts["14"].startswith("fly away: There is no command fly.")
    assert (report.notes, report.other_notes, report.unreadable) == (1, 0, [])


def test_settings_of_the_group(tmp_path: Path) -> None:
    properties = {
        **saved("submarine.yarn.queue", "ml"),
        **saved("tf.worker.services.num", "two"),
        **saved("yarn.webapp.http.address", "http://rm:8088"),
        **saved("docker.container.network", ""),
        **saved("of.somebody.else", "x"),
        "machinelearing.distributed.enable": "true",
    }
    write_settings(tmp_path / "conf" / "interpreter.json", properties)
    report = check_migration(tmp_path)
    found = {one.place.rpartition(": ")[2]: one.effect for one in report.findings}
    assert found == {
        "submarine.yarn.queue": RUNS,
        "tf.worker.services.num": FAILS,
        "yarn.webapp.http.address": CHANGES,
        "of.somebody.else": CHANGES,
        "docker.container.network": RUNS,
        "machinelearing.distributed.enable": RUNS,
    }


def test_settings_of_the_server(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "zeppelin-site.xml").write_text(
        "<configuration>"
        "<property><name>zeppelin.run.mode</name><value>k8s</value></property>"
        "<property><name>zeppelin.interpreter.exclude</name><value>a, submarine</value></property>"
        "<property><name>zeppelin.server.port</name><value>8080</value></property>"
        "</configuration>"
    )
    (conf / "zeppelin-env.sh").write_text(
        "#!/bin/bash\n# export ZEPPELIN_RUN_MODE=docker\nexport ZEPPELIN_RUN_MODE=local\n"
        "export HADOOP_YARN_SUBMARINE_JAR=/opt/submarine.jar   # of 0.3\n"
        'export ZEPPELIN_SERVER_KERBEROS_KEYTAB="/etc/z.keytab"\n'
    )
    (tmp_path / "interpreter" / "submarine").mkdir(parents=True)
    (tmp_path / "interpreter" / "submarine" / "zeppelin-submarine-0.10.1.jar").touch()
    report = check_migration(tmp_path)
    assert [(one.effect, one.place.rpartition(": ")[2]) for one in report.findings] == [
        (FAILS, "zeppelin.run.mode"),
        (FAILS, "zeppelin.interpreter.exclude"),
        (CHANGES, "HADOOP_YARN_SUBMARINE_JAR"),
        (CHANGES, "zeppelin.server.kerberos.keytab"),
        (CHANGES, "interpreter/submarine/zeppelin-submarine-0.10.1.jar"),
    ]


def test_malformed_files_are_named_and_skipped(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "interpreter.json").write_text('{"interpreterSettings": []}')
    (conf / "zeppelin-site.xml").write_text(
        '<!DOCTYPE a [<!ENTITY b "c">]><configuration>&b;</configuration>'
    )
    (tmp_path / "notebook").mkdir()
    for name, data in {"a": "{", "b": "[]", "c": '{"paragraphs": 1}', "d": "\x00"}.items():
        (tmp_path / "notebook" / f"{name}.zpln").write_text(data)
    write_note(tmp_path / "notebook" / "good.zpln", paragraph("%submarine\nhelp"))
    write_note(tmp_path / "notebook" / "other.zpln", paragraph("%md\nhello"))
    outcome = execute(["zeppelin", "migrate", "--check", str(tmp_path)], Frontend())
    assert outcome.exit_code == 1
    assert [one["file"] for one in outcome.value["unreadable"]] == [
        "interpreter.json",
        "zeppelin-site.xml",
        *(f"notebook/{name}.zpln" for name in "abcd"),
    ]
    assert (outcome.value["notes"], outcome.value["other_notes"]) == (1, 1)
    assert "notebook/a.zpln is skipped" in outcome.text
    for path in [*conf.iterdir(), *(tmp_path / "notebook").glob("[a-d].zpln")]:
        path.unlink()
    outcome = execute(["zeppelin", "migrate", "--check", str(tmp_path)], Frontend())
    assert (outcome.exit_code, outcome.value["counts"]) == (0, {RUNS: 1, CHANGES: 0, FAILS: 0})


def test_wrong_directories_and_a_missing_check(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither settings of Zeppelin nor notes"):
        check_migration(tmp_path)
    with pytest.raises(UsageError, match="There is no directory"):
        check_migration(tmp_path / "x")
    with pytest.raises(UsageError, match="needs --check"):
        execute(["zeppelin", "migrate", str(tmp_path)], Frontend())


def test_the_page_lists_the_ignored_properties() -> None:
    page = (DOCS / "zeppelin-migration.md").read_text(encoding="utf-8")
    ignored = re.search(r"Ignored, because no longer needed: (.*)", page, re.DOTALL)
    assert ignored is not None
    named = set(re.findall(r"`([\w.]+)`", ignored[1].split("Keytab and principal")[0]))
    assert named - {"KRB5_CONFIG"} == IGNORED
