"""Notes of %submarine on a real Zeppelin server and the real minicluster."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import uuid
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from submarine_minicluster.cluster import Minicluster
from tests.zeppelin.page import Page
from tests.zeppelin.server import Note, Zeppelin, output_of

pytestmark = pytest.mark.cluster
EXAMPLE = Path(__file__).parents[2] / "examples" / "zeppelin" / "digits.zpln"
#: A job on a busy machine.
JOB = 240.0
_JOB_ID = re.compile(r"\b[a-z0-9-]+-\d{8}-[0-9a-f]{4}\b")
_ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")
_EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def text_of(paragraph: dict[str, Any]) -> str:
    """What a reader sees of a paragraph."""
    return unescape(re.sub(r"<[^>]*>", "", output_of(paragraph)))


def jobs_in(paragraph: dict[str, Any]) -> set[str]:
    return set(_JOB_ID.findall(text_of(paragraph)))


@pytest.fixture
def submarine(zeppelin: Zeppelin) -> Iterator[Zeppelin]:
    """The server, with the account of Zeppelin for everybody's jobs; no job is left."""
    options = {"perNote": "shared", "perUser": "shared"}
    allow = {"submarine.allow.service.user": "true"}
    zeppelin.configure("submarine", properties=allow, option=options)
    yield zeppelin
    for listed in zeppelin.call("GET", "notebook")["body"]:
        note = Note(zeppelin, listed["id"])
        for paragraph in zeppelin.call("GET", f"notebook/{note.id}")["body"]["paragraphs"]:
            if not any(word in text_of(paragraph) for word in _ENDED):
                for job_id in jobs_in(paragraph):
                    note.run(note.add(f"%submarine cancel {job_id}"), JOB)
        zeppelin.call("DELETE", f"notebook/{note.id}")


def jobs_named(server: Zeppelin, name: str) -> int:
    """How many jobs of a name were submitted by this server's interpreters."""
    with contextlib.closing(sqlite3.connect(server.home / "state" / "jobs.sqlite")) as index:
        return int(index.execute("SELECT COUNT(*) FROM jobs WHERE name = ?", (name,)).fetchone()[0])


def test_the_example_trains_on_the_cluster(submarine: Zeppelin) -> None:
    answer = submarine.call("POST", "notebook/import", json.loads(EXAMPLE.read_text()))
    note = Note(submarine, answer["body"])
    listed = submarine.call("GET", f"notebook/{note.id}")["body"]["paragraphs"]
    model, data, train, command = [one["id"] for one in listed[:4]]
    assert note.run(model)["status"] == "FINISHED"
    assert "1347 images to train on" in text_of(note.run(data))
    assert "part of main.py and was not run here" in text_of(note.run(train))
    with Page(submarine, note) as page:
        ran = note.run(command)
        assert ran["status"] == "FINISHED", text_of(ran)
        assert len(jobs_in(ran)) == 1
        # It has returned, and goes on: in the browser and in what a reload shows.
        ended = note.awaited(command, lambda now: "SUCCEEDED" in text_of(now), JOB)
        page.await_(
            lambda one: one["op"] == "PARAGRAPH_UPDATE_OUTPUT" and "SUCCEEDED" in str(one["data"])
        )
    assert "test accuracy 0.9" in text_of(ended)
    assert jobs_in(ended) == jobs_in(ran)
    # What it printed of its training, beside the curves where it took long enough for some.
    assert re.search(r"loss 0\.\d", text_of(ended))
    assert ended["runtimeInfos"]["jobUrl"]["values"][0]["jobUrl"].startswith("http")


def test_a_failure_names_paragraph_and_line(submarine: Zeppelin) -> None:
    note = submarine.note(
        "failing",
        ("", "%md\n# Not part of it"),
        ("model.py", "%submarine.python\ndef fit():\n\n    return {}['loss']\n"),
        ("", "%submarine.python\nfrom model import fit\n\nfit()\n"),
        ("", "%submarine run failing --memory 256M --wait"),
    )
    ran = note.run(note.paragraphs[-1], JOB)
    assert ran["status"] == "ERROR"
    assert 'Paragraph 3 "main.py", line 4, in <module>' in text_of(ran)
    assert 'Paragraph 2 "model.py", line 4, in fit' in text_of(ran)
    assert "KeyError: 'loss'" in text_of(ran)


def test_stop_ends_the_job_and_text_of_a_job_stays_text(submarine: Zeppelin) -> None:
    program = (
        f"%submarine.python\nimport time\nprint({_EVIL!r})\nprint('%html {_EVIL}', flush=True)\n"
        "time.sleep(3600)\n"
    )
    note = submarine.note(
        "evil", ("", program), ("", f'%submarine run --name "{_EVIL}" --memory 256M --wait')
    )
    command = note.paragraphs[-1]
    note.begin(command)
    shown = note.awaited(command, lambda now: "%html" in text_of(now), JOB)
    assert "<script" not in output_of(shown)
    assert "<img" not in output_of(shown)
    assert text_of(shown).count(_EVIL) >= 3
    note.cancel(command)
    ended = note.ended(command, JOB)
    assert ended["status"] == "ABORT"
    note.awaited(command, lambda now: "CANCELLED" in text_of(now), JOB)


@pytest.mark.full
def test_a_job_is_one_job_however_often_it_is_asked_for(submarine: Zeppelin) -> None:
    name = f"once-{uuid.uuid4().hex[:8]}"
    program = "%submarine.python\nimport time\ntime.sleep(3600)\n"
    note = submarine.note("once", ("", program), ("", f"%submarine run {name} --memory 256M"))
    command = note.paragraphs[-1]
    for _ in range(3):
        note.begin(command)
    first = note.awaited(command, lambda now: now["status"] == "FINISHED" and jobs_in(now), JOB)
    note.run(command, JOB)
    assert jobs_named(submarine, name) == 1
    # A new process knows it as well, whatever was in the old one's memory.
    submarine.restart("submarine")
    again = note.run(command, JOB)
    assert jobs_in(first) == jobs_in(again)
    assert jobs_named(submarine, name) == 1
    (job_id,) = jobs_in(first)
    note.run(note.add(f"%submarine cancel {job_id}"), JOB)
    note.awaited(command, lambda now: "CANCELLED" in text_of(now), JOB)


def test_a_job_outlives_the_interpreter_and_comes_back_into_its_paragraph(
    submarine: Zeppelin, tmp_path: Path
) -> None:
    end = tmp_path / "end"
    program = (
        "%submarine.python\nimport os, time\n"
        f"while not os.path.exists({str(end)!r}): time.sleep(0.2)\nprint('over now')\n"
    )
    note = submarine.note(
        "back", ("", program), ("", "%submarine run back --memory 256M"), ("", "%submarine help")
    )
    command, other = note.paragraphs[-2:]
    note.run(command)
    submarine.restart("submarine")
    end.touch()
    # Any paragraph of the note starts the interpreter; the job's own is right again.
    note.run(other)
    shown = note.awaited(command, lambda now: "SUCCEEDED" in text_of(now), JOB)
    assert "over now" in text_of(shown)


@pytest.mark.full
def test_a_scheduled_run_waits_and_carries_the_result(submarine: Zeppelin) -> None:
    good = "%submarine.python\nprint('by the clock')\n"
    note = submarine.note("clock", ("", good), ("", "%submarine run clock --memory 256M"))
    note.run(note.paragraphs[0])
    command = note.paragraphs[-1]
    cron = {"cron": "*/10 * * * * ?", "releaseResource": True}
    assert submarine.call("POST", f"notebook/cron/{note.id}", cron)["status"] == "OK"
    try:
        ran = note.awaited(
            command,
            lambda now: now["status"] == "FINISHED" and "SUCCEEDED" in text_of(now),
            JOB,
        )
        assert "by the clock" in text_of(ran)
    finally:
        submarine.call("DELETE", f"notebook/cron/{note.id}")


@pytest.mark.full
def test_a_job_outlives_the_server_and_is_right_again_in_its_paragraph(
    zeppelin_home: Path, minicluster: Minicluster, tmp_path: Path
) -> None:
    server = Zeppelin(zeppelin_home / "killed", {**minicluster.environ()})
    server.install(**{"submarine.allow.service.user": "true"})
    end = tmp_path / "end"
    program = (
        "%submarine.python\nimport os, time\n"
        f"while not os.path.exists({str(end)!r}): time.sleep(0.2)\nprint('over now')\n"
    )
    try:
        server.start()
        note = server.note(
            "killed",
            ("", program),
            ("", "%submarine run back --memory 256M"),
            ("", "%submarine help"),
        )
        command, other = note.paragraphs[-2:]
        shown = note.run(command, JOB)
        server.kill()
        # The interpreter goes with its server; the job stays.
        server.await_(lambda: not server.interpreters("submarine"))
        end.touch()
        server.start()
        assert jobs_in(note.get(command)) == jobs_in(shown)
        note.run(other, JOB)
        ended = note.awaited(command, lambda now: "SUCCEEDED" in text_of(now), JOB)
        assert "over now" in text_of(ended)
    finally:
        end.touch()
        server.close()


@pytest.mark.full
def test_a_workflow_of_paragraphs_runs_from_its_note(submarine: Zeppelin) -> None:
    flow = (
        '%submarine workflow nightly --schedule "0 30 2 ? * *"\nnodes:\n'
        '  - name: features\n    cells: [Features]\n    params: {day: "2026-11-22"}\n'
        "  - name: train\n    cells: [model.py, Training]\n    job: {memory: 256M}\n"
        "    dependsOn: [features]\n"
    )
    note = submarine.note(
        "nights/nightly",
        ("parameters", "%submarine.python(local)\nday = 'none'"),
        ("Features", "%submarine.python(local)\nprint('of', day)"),
        ("model.py", "%submarine.python\ndef score(x):\n    return x / 10"),
        ("Training", "%submarine.python(only)\nfrom model import score\nprint('is', score(9))"),
        ("", flow),
        ("", "%submarine workflow run nightly"),
        ("", "%submarine workflow logs nightly"),
    )
    written, run, logs = note.paragraphs[-3:]
    shown = note.run(written)
    assert shown["status"] == "FINISHED", text_of(shown)
    assert "<svg" in output_of(shown)
    with Page(submarine, note) as page:
        assert note.run(run, JOB)["status"] == "FINISHED"
        ended = note.awaited(run, lambda now: "SUCCEEDED" in text_of(now), 2 * JOB)
        page.await_(
            lambda one: one["op"] == "PARAGRAPH_UPDATE_OUTPUT" and "SUCCEEDED" in str(one["data"])
        )
    assert "<script" not in output_of(ended)
    said = text_of(note.run(logs))
    assert "--cells model.py,Training" in said
