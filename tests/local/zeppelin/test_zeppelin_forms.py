"""Forms in the text of a note's paragraphs, without Zeppelin: what runs, what a job runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.client import Session
from submarine_jobs.config import load_config
from submarine_zeppelin.interface import Code
from tests.local.zeppelin.zeppelin_note import Note
from tests.submission import cancel_unfinished

pytestmark = pytest.mark.full
TEXT = "%submarine.python\nrate, on = ${rate=0.1}, '${checkbox:on=x|y,x|y|z}'.split(',')\n"


@pytest.fixture
def note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Note]:
    for name in [key for key in os.environ if key.startswith(("SUBMARINE_", "HADOOP_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SUBMARINE_BACKEND", "local")
    monkeypatch.chdir(tmp_path)
    # The values of a note's forms are kept for the whole process.
    made = Note({}, f"2J{tmp_path.name}")
    try:
        yield made
    finally:
        made.close()
        cancel_unfinished(Session(load_config().profile))


def test_a_job_runs_the_text_that_ran_here(note: Note) -> None:
    note.write("a", TEXT + "print(f'${rate}', on)")
    note.write("b", "%submarine run forms --memory ${memory=200M,200M|256M} --wait")
    refused = note.run("b")
    assert refused.code is Code.ERROR
    assert "Paragraph 1: the value of its form ${rate=0.1} is not known" in note.outputs["b"].text
    # The form stays, although the command failed.
    assert refused.forms is not None
    assert list(refused.forms["forms"]) == ["memory"]
    ran = note.run("a", params={"rate": "7", "on": ["z"]})
    assert note.outputs["a"].text == "$7 ['z']\n"
    assert ran.forms is not None
    assert ran.forms["params"] == {"rate": "7", "on": ["z"]}
    done = note.run("b", params={"memory": "256M"})
    assert done.code is Code.KEEP, note.outputs["b"].text
    assert "$7 ['z']" in note.outputs["b"].text
    session = Session(load_config().profile)
    (record,) = session.jobs()
    assert b"256" in session.job(record.job_id).directory.spec().to_bytes()


def test_paragraphs_that_are_only_collected(note: Note) -> None:
    note.write("a", TEXT.replace("python", "python(only)"), "model.py")
    note.write("b", "%submarine.python\nimport model\nprint(model.rate)")
    note.write("c", "%submarine script")
    assert note.run("b").code is Code.ERROR
    assert "ImportError: Paragraph 1: the value of its form" in note.outputs["b"].text
    shown = note.run("a", params={"rate": "8"})
    assert shown.forms is not None
    assert list(shown.forms["forms"]) == ["rate", "on"]
    assert note.run("b").code is Code.SUCCESS, note.outputs["b"].text
    assert note.outputs["b"].text == "8\n"
    note.run("c")
    assert "${" not in note.outputs["c"].text
