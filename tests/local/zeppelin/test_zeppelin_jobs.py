"""`%submarine` in a note without Zeppelin: real local jobs in paragraphs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from submarine_jobs.client import Session
from submarine_jobs.commands.grammar import verbs as grammar
from submarine_jobs.config import load_config
from submarine_zeppelin.interface import Code, Kind
from submarine_zeppelin.submarine import captured_output
from submarine_zeppelin.submarine.job_index import ParagraphJobIndex
from tests.local.zeppelin.zeppelin_note import Note
from tests.submission import cancel_unfinished
from tests.waiting import until

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"
Make = Callable[..., Note]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Makes sessions of notes on the local backend; every job has ended in the end."""
    for name in [key for key in os.environ if key.startswith(("SUBMARINE_", "HADOOP_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SUBMARINE_BACKEND", "local")
    monkeypatch.chdir(tmp_path)
    made: list[Note] = []

    def new(properties: dict[str, str] | None = None, note_id: str = "2JNOTE") -> Note:
        made.append(Note(properties or {}, note_id))
        return made[-1]

    yield new
    try:
        for note in made:
            note.close()
    finally:
        cancel_unfinished(Session(load_config().profile))


def test_the_card_lives_on_after_the_paragraph_has_ended(make: Make, tmp_path: Path) -> None:
    note, end = make(), tmp_path / "end"
    note.write("md", "%md\n# not part of the program")
    note.write("a", "%submarine.python\ndef words():\n    return 'all is well'\n", "model.py")
    waiting = f"while not os.path.exists({str(end)!r}): time.sleep(0.1)"
    note.write(
        "b",
        f"%submarine.python\nimport os, time\nfrom model import words\n{waiting}\nprint(words())",
    )
    note.write("c", "%submarine run one --memory 256M")
    assert note.run("c").code is Code.KEEP
    assert "SUCCEEDED" not in note.outputs["c"].text
    end.touch()
    until(lambda: "SUCCEEDED" in note.outputs["c"].text)
    assert "all is well" in note.outputs["c"].text
    submarine: Any = note.entry("Submarine")
    shown = [job for output in submarine._outputs.values() for job in output.jobs]
    assert [len(one.job.session._frontend.note) for one in shown] == [0], "cards hold the note"


def test_a_failed_job_fails_the_paragraph_that_waits_for_it(make: Make) -> None:
    note = make({"submarine.wait": "true"})
    note.write("a", "%submarine.python\n\ndef fit():\n    return {}['loss']\n", "model.py")
    note.write("b", "%submarine.python\nfrom model import fit\n\nfit()\n")
    note.write("c", "%submarine\nrun one --memory 256M\nlist")
    assert note.run("c").code is Code.ERROR
    assert 'Paragraph 2 "main.py", line 4, in <module>' in note.outputs["c"].text
    assert 'Paragraph 1 "model.py", line 4, in fit' in note.outputs["c"].text
    # The log has lines in a browser too.
    note.write("d", "%submarine logs one --stream stderr")
    assert note.run("d").code is Code.KEEP
    (log,) = note.outputs["d"].messages
    assert "<pre " in log.data
    assert "\nKeyError: " in log.data
    note.write("e", "%submarine logs one --stream stdout")
    note.run("e")
    assert note.outputs["e"].text == "This log is still empty.\n"


def test_values_of_the_notes_session_travel(make: Make) -> None:
    note = make()
    note.write("a", "%submarine.python(local)\nimport numpy\nx = numpy.arange(6.0)\nf = open")
    note.write("b", "%submarine.python(only)\nprint('sum', x.sum(), type(x).__name__)")
    note.write("c", "%submarine run one --memory 256M --with x --wait")
    assert note.run("c").code is Code.ERROR
    assert "session, which has not started. Run the %submarine.python" in note.outputs["c"].text
    note.run("a")
    for names, words in (
        ("xx", "xx, which the note's Python session does not"),
        ("f", "put into the program the paragraph"),
    ):
        note.write("d", f"%submarine run two --memory 256M --with x,{names}")
        assert note.run("d").code is Code.ERROR
        assert words in note.outputs["d"].text
    assert note.run("c").code is Code.KEEP
    assert "sum 15.0 ndarray" in note.outputs["c"].text
    # Nothing of ours is left in the user's session.
    ours = "[name for name in [*sys.modules, *sys.path] if 'submarine_' in name]"
    note.write("e", f"%submarine.python(local)\nimport sys\nprint({ours})")
    note.run("e")
    assert note.outputs["e"].text == "[]\n"


def test_scheduled_runs_wait(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERPRETER_GROUP_ID", "submarine-isolated-2JNOTE-1795000000000")
    note = make()
    note.write(
        "b", "%submarine.python\nprint('loss: 0.75 - acc: 0.5', flush=True)\nprint('by the clock')"
    )
    note.write("c", "%submarine run one --memory 256M")
    assert note.run("c").code is Code.KEEP
    assert "loss 0.75" in note.outputs["c"].text
    assert "SUCCEEDED" in note.outputs["c"].text
    assert "by the clock" in note.outputs["c"].text


@pytest.mark.parametrize(("mode", "state"), [("cancel", "CANCELLED"), ("detach", "RUNNING")])
def test_stop_does_to_the_job_what_is_set(make: Make, mode: str, state: str) -> None:
    note = make({"submarine.stop": mode})
    note.write("b", "%submarine.python\nimport time\nprint('on', flush=True)\ntime.sleep(3600)")
    note.write("c", "%submarine run one --memory 256M --wait")
    running = note.start("c")
    until(lambda: "c" in note.outputs and "RUNNING" in note.outputs["c"].text)
    note.entry("Submarine").cancel(note.context("c"))
    assert running.end().code is Code.ERROR
    job = Session(load_config().profile).job("one")
    assert job.record().state.value == state


def test_a_job_is_submitted_once_while_it_goes_on(make: Make) -> None:
    note = make()
    note.write("b", "%submarine.python\nimport time\ntime.sleep(3600)")
    note.write("c", "%submarine run one --memory 256M")
    note.run("c")
    assert note.entry("Submarine").active(note.context("c"))
    note.run("c")
    assert "no job was submitted" in note.outputs["c"].text
    # Another process, another paragraph, another program.
    other = make()
    other.write("b", "%submarine.python\nimport time\ntime.sleep(3600)")
    other.write("c", "%submarine run one --memory 256M")
    other.run("c")
    session = Session(load_config().profile)
    assert len(session.jobs()) == 1
    other.write("d", "%submarine run one --memory 256M")
    other.run("d")
    assert len(session.jobs()) == 2
    other.write("b", "%submarine.python\nimport time\ntime.sleep(3601)")
    other.run("c")
    assert len(session.jobs()) == 3
    # A copy of the note, whose paragraphs have the same ids; running it leaves the first alone.
    copy = make(note_id="2JCOPY")
    for paragraph in "bc":
        copy.write(paragraph, other.context(paragraph).text)
    copy.run("c")
    assert "no job was submitted" not in copy.outputs["c"].text
    assert len(session.jobs()) == 4
    assert {
        (row.note, row.paragraph) for row in ParagraphJobIndex.of(session.profile).unfinished()
    } == {
        ("2JNOTE", "c"),
        ("2JNOTE", "d"),
        ("2JCOPY", "c"),
    }


def test_jobs_come_back_into_their_paragraphs(make: Make, tmp_path: Path) -> None:
    first, end = make(), tmp_path / "end"
    waiting = f"while not os.path.exists({str(end)!r}): time.sleep(0.1)"
    program = f"%submarine.python\nimport os, time\n{waiting}\nprint('over now')"
    first.write("b", program)
    first.write("c", "%submarine run one --memory 256M")
    first.run("c")
    assert "this card is not updated" not in first.outputs["c"].text
    first.close()
    assert "this card is not updated" in first.outputs["c"].text
    end.touch()
    # Another viewer learns of the end first: the paragraph still shows that the job runs.
    Session(load_config().profile).job("one").wait(60)
    second = make()
    second.write("b", program)
    second.write("c", "%submarine run one --memory 256M")
    second.write("d", "%submarine help")
    second.run("d")
    until(lambda: "c" in second.outputs and "SUCCEEDED" in second.outputs["c"].text)
    assert "over now" in second.outputs["c"].text
    assert "this card is not updated" not in second.outputs["c"].text
    # Shown once, it is not looked for again.
    until(lambda: not ParagraphJobIndex(tmp_path / "state").unfinished())
    third = make()
    third.write("d", "%submarine list")
    third.run("d")
    assert "c" not in third.outputs


def test_every_paragraph_of_a_job_gets_its_last_word(make: Make) -> None:
    """Also where another paragraph, that of the cancel, was the first to show it."""
    note = make()
    note.write("b", "%submarine.python\nimport time\ntime.sleep(3600)")
    note.write("c", "%submarine run one --memory 256M")
    note.run("c")
    shows = ["d", "e", "f"]
    for name in shows:
        note.write(name, "%submarine show one")
        note.run(name)
    note.write("g", "%submarine cancel one")
    note.run("g")
    for name in ("c", *shows, "g"):
        until(lambda name=name: "CANCELLED" in note.outputs[name].text)  # type: ignore[misc]
    until(lambda: not ParagraphJobIndex.of(load_config().profile).unfinished())


def test_a_recovered_paragraph_starts_nothing(make: Make) -> None:
    note = make()
    note.write("b", "%submarine.python\nimport time\ntime.sleep(3600)")
    note.write("c", "%submarine run one --memory 256M")
    note.run("c")
    note.close()
    again = make()
    again.write("c", "%submarine run one --memory 256M")
    assert again.run("c", recovering=True).code is Code.KEEP
    assert "one-" in again.outputs["c"].text
    assert len(Session(load_config().profile).jobs()) == 1


def test_nothing_of_a_job_is_markup(make: Make) -> None:
    note = make()
    note.write("b", f"%submarine.python\nprint({EVIL!r})\nraise ValueError({EVIL!r})")
    note.write("c", f"%submarine run --name '{EVIL}' --memory 256M --wait")
    note.write("d", "%submarine\nlist\nlogs last\nshow last --json")
    note.run("c")
    note.run("d")
    for shown in (note.outputs["c"], note.outputs["d"]):
        assert EVIL in shown.text
        assert not any("<script" in m.data for m in shown.messages if m.kind is Kind.HTML)
        assert not any("<img" in m.data for m in shown.messages if m.kind is Kind.HTML)


def test_what_is_wrong_is_one_sentence_and_nothing_is_submitted(make: Make) -> None:
    note = make()
    note.write("x", "%python\nepochs = 3")
    note.write("a", "%submarine.python\nprint(epochs)")
    note.write("c", "%submarine run one")
    assert note.run("c").code is Code.ERROR
    said = note.outputs["c"].text
    assert "main.py uses epochs (paragraph 2, line 2)" in said
    assert "paragraph 1 does. Make paragraph 1 a %submarine.python paragraph of the" in said
    for line, words in [
        ("runn", "runn"),
        ("kernel install", "in a terminal"),
        ("minicluster stop", "in a terminal"),
        ("run 'one", "quotation mark"),
    ]:
        note.write("c", f"%submarine {line}")
        assert note.run("c").code is Code.ERROR
        assert words in note.outputs["c"].text
    assert Session(load_config().profile).jobs() == []


def test_verbs_of_plugins_and_clear_are_what_they_are_elsewhere(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @click.command("told")
    @click.argument("name")
    def told(name: str) -> int:
        click.echo(f"{name} begins")
        until(lambda: (tmp_path / "go").exists())
        print(f"{name} ends")
        return 3 if name == "third" else 0

    monkeypatch.setitem(grammar.plugins(), "told", Plugin(told))
    (tmp_path / "flow.flow").write_text("nodes: [{name: a, type: noop}, {name: b, type: flow}]")
    note = make()
    note.write("a", "%submarine clear")
    assert note.run("a").code is Code.KEEP
    assert "There is nothing to clear" in note.outputs["a"].text
    note.write("a", f"%submarine\nworkflow check {tmp_path}/flow.flow")
    assert note.run("a").code is Code.ERROR
    assert "flow.flow, line 1" in note.outputs["a"].text
    # What they print is in their own paragraphs, also where two of them run at the same time.
    for name in ("first", "second", "third"):
        note.write(name, f"%submarine told {name}")
    running = [note.start(name) for name in ("first", "second", "third")]
    until(lambda: len(note.outputs) == 4 and all(o.text for o in note.outputs.values()))
    (tmp_path / "go").touch()
    assert [one.end().code for one in running] == [Code.KEEP, Code.KEEP, Code.ERROR]
    for name in ("first", "second", "third"):
        assert note.outputs[name].text == f"{name} begins\n{name} ends\n"
    assert not isinstance(sys.stdout, captured_output._ThreadOutput)


class Plugin:
    """An entry point."""

    def __init__(self, command: click.Command) -> None:
        self.load = lambda: command


def test_an_unauthenticated_user_is_refused(make: Make) -> None:
    note = make({"submarine.allow.service.user": "false"})
    note.write("a", "%submarine.python\nprint(1)")
    note.write("c", "%submarine run one --memory 256M")
    assert note.run("c").code is Code.ERROR
    assert "has not authenticated you" in note.outputs["c"].text


def test_the_form_runs_its_job_once(make: Make) -> None:
    note = make({"tf.worker.services.memory": "256M", "tf.worker.services.cpu": "1"})
    note.write("a", "%submarine.python\nprint('from the form')")
    note.write("c", "%submarine dashboard")
    shown = note.run("c")
    assert shown.forms is not None
    assert set(shown.forms["forms"]) >= {"input_path", "worker_launch_cmd", "clean_checkpoint"}
    params = {**shown.forms["params"], "command": "JOB_RUN"}
    assert note.run("c", params=params).code is Code.ERROR
    assert "no worker launch command" in note.outputs["c"].text
    params["worker_launch_cmd"] = "python main.py"
    ran = note.run("c", params=params)
    assert ran.code is Code.KEEP
    assert ran.forms is not None
    assert ran.forms["params"]["command"] == "SHOW"
    assert ran.forms["params"]["worker_launch_cmd"] == "python main.py"
    until(lambda: "SUCCEEDED" in note.outputs["c"].text)
    note.run("c", params=ran.forms["params"])
    assert "from the form" in note.outputs["c"].text
    assert len(Session(load_config().profile).jobs()) == 1


def test_a_jobs_progress_is_the_paragraphs(make: Make, tmp_path: Path) -> None:
    note, end = make(), tmp_path / "end"
    waiting = f"while not os.path.exists({str(end)!r}): time.sleep(0.1)"
    note.write(
        "a",
        "%submarine.python\nimport os, time\nprint('report:progress:42%', flush=True)\n" + waiting,
    )
    note.write("b", "%submarine run progress --memory 256M --wait")
    interpreter, context = note.entry("Submarine"), note.context("b")
    assert interpreter.progress(context) == 0
    running = note.start("b")
    try:
        until(lambda: interpreter.progress(context) == 42)
        assert running.running
    finally:
        end.touch()
    assert running.end().code is Code.KEEP
