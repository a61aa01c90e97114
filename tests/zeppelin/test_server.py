"""Against a real server: paragraphs of the simplest interpreter, its output, its stop."""

from __future__ import annotations

from tests.zeppelin.server import Zeppelin, output_of


def test_a_paragraph_runs_and_its_result_is_saved(zeppelin: Zeppelin) -> None:
    note = zeppelin.note("says", ("", "%echo\nsay hello <b>"))
    now = note.run(note.paragraphs[0])
    assert now["status"] == "FINISHED"
    assert output_of(now) == "hello <b>"
    assert now["results"]["msg"][0]["type"] == "TEXT"
