"""Against a real server: what a paragraph of the simplest interpreter shows, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

from tests.zeppelin.page import Page
from tests.zeppelin.server import Note, Zeppelin, output_of


def runs(path: Path) -> int:
    """How often a paragraph with ``count`` was really run."""
    return len(path.read_text().splitlines()) if path.exists() else 0


def saved(server: Zeppelin, note: Note, paragraph: str) -> str:
    """What a restarted server would show: the output in the note's file."""
    files = [one for one in (server.home / "notebook").glob("*.zpln") if note.id in one.name]
    found = json.loads(files[0].read_text())["paragraphs"]
    return output_of(next(one for one in found if one["id"] == paragraph))


def test_results_are_shown_and_their_kinds_kept(zeppelin: Zeppelin) -> None:
    note = zeppelin.note(
        "results",
        ("", "%echo\nsay hello <b>\nsay again"),
        ("", "%echo\nfail it was not to be"),
        ("", "%echo\nraise a secret thing"),
    )
    now = note.run(note.paragraphs[0])
    assert (now["status"], output_of(now)) == ("FINISHED", "hello <b>\nagain")
    assert [one["type"] for one in now["results"]["msg"]] == ["TEXT", "TEXT"]
    now = note.run(note.paragraphs[1])
    assert (now["status"], output_of(now)) == ("ERROR", "it was not to be")
    # Zeppelin may set the status before the output.
    note.begin(note.paragraphs[2])
    now = note.awaited(note.paragraphs[2], lambda now: now["status"] == "ERROR" and output_of(now))
    # One sentence, no stack and none of the error's own text.
    assert output_of(now).strip() == (
        "Internal error in Submarine (RuntimeError). See the interpreter's log."
    )


def test_what_is_shown_while_it_runs_is_saved_and_goes_on_after_the_end(
    zeppelin: Zeppelin, tmp_path: Path
) -> None:
    over = tmp_path / "over"
    note = zeppelin.note("later", ("", f"%echo\nhtml <i>begins</i>\nlater {over}"))
    (paragraph,) = note.paragraphs
    with Page(zeppelin, note) as page:
        note.run(paragraph)
        page.await_(
            lambda one: one["op"] == "PARAGRAPH_UPDATE_OUTPUT" and "number 3" in str(one["data"])
        )
        assert note.get(paragraph)["status"] == "FINISHED"
        over.touch()
        page.await_(
            lambda one: (
                one["op"] == "PARAGRAPH_UPDATE_OUTPUT" and one["data"]["data"] == "<b>over</b>"
            )
        )
    now = note.awaited(paragraph, lambda now: output_of(now) == "<b>over</b>")
    assert now["results"]["msg"][0]["type"] == "HTML"
    assert saved(zeppelin, note, paragraph) == "<b>over</b>"


def test_ten_thousand_lines_stay_within_the_limit_and_come_in_few_messages(
    zeppelin: Zeppelin,
) -> None:
    note = zeppelin.note("lines", ("", "%echo\nlines 10000"), ("", "%echo\nsay quick"))
    with Page(zeppelin, note) as page:
        now = note.run(note.paragraphs[0])
        assert output_of(note.run(note.paragraphs[1])) == "quick"
        heard = page.of("PARAGRAPH_APPEND_OUTPUT") + page.of("PARAGRAPH_UPDATE_OUTPUT")
    text = output_of(now)
    assert len(text) <= 102_400
    assert text.endswith("\nline 9999 of an output\n")
    assert "characters were cut" in text.splitlines()[0]
    assert len(heard) < 200


def test_stop_aborts_and_keeps_what_was_shown(zeppelin: Zeppelin, tmp_path: Path) -> None:
    never = tmp_path / "never"
    note = zeppelin.note(
        "stop",
        ("", f"%echo\noncancel {tmp_path}/told\nlines 3\nawait {never}"),
        ("", f"%echo\ncount {tmp_path}/second"),
    )
    first, second = note.paragraphs
    note.begin(first)
    note.awaited(first, lambda now: now["status"] == "RUNNING" and "line 2" in output_of(now))
    note.begin(second)  # waits for the first in their lane
    note.cancel(second)
    note.cancel(first)
    now = note.ended(first)
    assert now["status"] == "ABORT"
    assert output_of(now).startswith("line 0 of an output\nline 1 of")
    assert note.ended(second)["status"] == "ABORT"
    assert runs(tmp_path / "second") == 0
    assert (tmp_path / "told").exists()


def test_a_run_is_not_repeated_while_what_it_began_is_active(
    zeppelin: Zeppelin, tmp_path: Path
) -> None:
    count, over, go = tmp_path / "count", tmp_path / "over", tmp_path / "go"
    text = f"%echo\ncount {count}\nhtml <p>job</p>\nactive {over}\nawait {go}"
    note = zeppelin.note("once", ("", text))
    (paragraph,) = note.paragraphs
    note.begin(paragraph)
    note.awaited(paragraph, lambda now: now["status"] == "RUNNING" and runs(count) == 1)
    note.begin(paragraph)
    note.begin(paragraph)
    go.touch()
    zeppelin.call("POST", f"notebook/run/{note.id}/{paragraph}")
    now = note.ended(paragraph)
    assert (now["status"], output_of(now), runs(count)) == ("FINISHED", "<p>job</p>", 1)
    over.touch()
    assert note.run(paragraph)["status"] == "FINISHED"
    assert runs(count) == 2


def test_a_page_sees_progress_completion_and_the_jobs_link(
    zeppelin: Zeppelin, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    text = f"%echo\npercent 42\nlink http://127.0.0.1/proxy/app\nawait {go}"
    note = zeppelin.note("page", ("", text))
    (paragraph,) = note.paragraphs
    with Page(zeppelin, note) as page:
        page.run(paragraph, text)
        page.await_(lambda one: one["op"] == "PROGRESS" and one["data"]["progress"] == 42)
        page.await_(lambda one: one["op"] == "PARAS_INFO" and "proxy/app" in json.dumps(one))
        go.touch()
        note.ended(paragraph)
        page.say("COMPLETION", id=paragraph, buf="%echo\nsa", cursor=8)
        told = page.await_(lambda one: one["op"] == "COMPLETION_LIST")["data"]["completions"]
    assert [(one["value"], one["meta"]) for one in told] == [("value", "meta")]


def test_an_interpreter_reads_its_note_as_it_is_now(zeppelin: Zeppelin) -> None:
    note = zeppelin.note(
        "reads",
        ("model.py", "%submarine.python\ndef f():\n  pass"),
        ("", "%md\n# <b>"),
        ("", "%echo\nlist"),
    )
    now = note.run(note.paragraphs[2])
    lines = output_of(now).splitlines()
    assert lines[0] == r"model.py|'%submarine.python\ndef f():\n  pass'"
    assert lines[1] == r"|'%md\n# <b>'"
    assert len(lines) == 3


def test_a_deleted_paragraph_is_written_to_no_more(zeppelin: Zeppelin, tmp_path: Path) -> None:
    over, gone = tmp_path / "over", tmp_path / "gone"
    note = zeppelin.note("deleted", ("", f"%echo\nlater {over} {gone}"), ("", "%echo\nsay still"))
    note.run(note.paragraphs[0])
    note.delete(note.paragraphs[0])
    zeppelin.await_(gone.exists)
    assert output_of(note.run(note.paragraphs[1])) == "still"
