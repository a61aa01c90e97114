"""`%submarine.python` and `%submarine.sh` in a note without Zeppelin: real kernels, real shells."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_zeppelin.interface import Code, Kind
from tests.local.zeppelin.zeppelin_note import Note
from tests.processes import is_gone
from tests.waiting import until


@pytest.fixture
def note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Note]:
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    made = Note({"zeppelin.python.maxResult": "3"})
    yield made
    made.close()


def test_paragraphs_share_a_session_and_stream(note: Note, tmp_path: Path) -> None:
    go = tmp_path / "go"
    note.write("a", "%submarine.python\nimport os, time\nx = 20\nx + 1")
    note.write(
        "b",
        "%submarine.python\nprint('first', x, flush=True)\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.05)\nprint('last')",
    )
    assert note.run("a").code is Code.SUCCESS
    assert note.outputs["a"].text == "21\n"
    running = note.start("b")
    until(lambda: "b" in note.outputs and note.outputs["b"].text == "first 20\n")
    go.touch()
    assert running.end().code is Code.SUCCESS
    assert note.outputs["b"].text == "first 20\nlast\n"


def test_errors_have_paragraph_and_line(note: Note) -> None:
    note.write("a", "%submarine.python\n\ndef fit():\n    return 1 / 0", "model.py")
    note.write("b", "%submarine.python\nfrom model import fit as other\nfit()")
    note.write("c", "%submarine.python\n\nx = (1,\ny = 2")
    note.run("a")
    assert note.run("b").code is Code.ERROR
    assert "Paragraph 2, line 3" in note.outputs["b"].text
    assert 'Paragraph 1 "model.py", line 4, in fit()' in note.outputs["b"].text
    assert "ZeroDivisionError" in note.outputs["b"].text
    # A submit reports it, as in Jupyter, until the paragraph is corrected.
    note.write("d", "%submarine\nrun --name x --dry-run --backend local")
    warning = "Paragraph 2 raised ZeroDivisionError in line 3 when it ran, and is part of "
    warning += "the program."
    note.run("d")
    assert f"{warning} Correct the paragraph and run it again." in note.outputs["d"].text
    note.write("b", "%submarine.python\nfrom model import fit as other")
    note.run("d")
    assert "when it ran" not in note.outputs["d"].text
    assert note.run("c").code is Code.ERROR
    assert "Paragraph 3, line 3" in note.outputs["c"].text
    assert "SyntaxError" in note.outputs["c"].text


def test_modules_of_the_note_are_imported_as_they_are_now(note: Note) -> None:
    note.write("a", "%submarine.python\nWORD = 'old'", "pkg/words.py")
    note.write("b", "%submarine.python\nfrom pkg.words import WORD\nimport os, sys\nprint(WORD)")
    note.run("b")
    # Of the same size and within the same second: byte code of the old text would count as current.
    note.write("a", "%submarine.python(only)\nWORD = 'new'", "pkg/words.py")
    assert "part of pkg/words.py and was not run here" in (note.run("a").messages[0].data)
    note.run("b")
    assert note.outputs["b"].text == "new\n"
    note.write("a", "%submarine.python(only)\nWORD = 'own'", "pkg/words.py")
    note.write("c", "%submarine.python\nprint(os.sep, sys.byteorder)")
    note.run("a")
    note.run("c")
    assert note.outputs["c"].text == "/ little\n"  # names of the session are kept


def test_tables_pictures_pages_and_colours(note: Note) -> None:
    note.write(
        "a",
        "%submarine.python\nimport pandas\n"
        "pandas.DataFrame({'n': range(9), 'text': ['%html <b>\\t|'] * 9})",
    )
    note.run("a")
    table, more = note.outputs["a"].messages
    assert table.kind is Kind.TABLE
    assert table.data == "n\ttext\n" + "\n".join(f"{n}\t %html <b> |" for n in range(3))
    assert more.data == "The first 3 of 9 rows.\n"
    note.write(
        "b",
        "%submarine.python\nfrom IPython.display import HTML, Image, display\n"
        "display(HTML('<b>mine</b>'))\n"
        "display(Image(b'\\x89PNG\\r\\n\\x1a\\n' + b'0' * 30, format='png'))\n"
        "print('\\x1b[31mred <i>\\x1b[0m')",
    )
    note.run("b")
    page, picture, text = note.outputs["b"].messages
    assert (page.kind, page.data) == (Kind.HTML, "<b>mine</b>")
    assert picture.kind is Kind.IMG
    assert picture.data.startswith("iVBORw0KGgo")
    assert text.kind is Kind.HTML
    assert "red &lt;i&gt;" in text.data
    assert "\x1b" not in text.data


def test_a_plot_is_a_picture_and_a_series_a_table(note: Note) -> None:
    note.write(
        "a",
        "%submarine.python(local)\nimport pandas\nimport matplotlib.pyplot as plt\n"
        "plt.figure(figsize=(2, 1))\nplt.plot([1, 3, 2])\nplt.show()\nprint('between')\n"
        "pandas.Series([1, 2], name='n').plot(figsize=(3, 1))",
    )
    assert note.run("a").code is Code.SUCCESS
    first, text, second = note.outputs["a"].messages
    assert (first.kind, second.kind) == (Kind.IMG, Kind.IMG)
    widths = [_width(one.data) for one in (first, second)]
    assert widths[0] < widths[1]
    assert text.data.startswith("between\n")


def _width(picture: str) -> int:
    """Of a PNG."""
    data = base64.b64decode(picture)
    assert data.startswith(b"\x89PNG")
    return int.from_bytes(data[16:20], "big")


def test_stop_interrupts_and_the_session_goes_on(note: Note) -> None:
    note.write(
        "a", "%submarine.python\nimport time\nx = 1\nprint('on', flush=True)\ntime.sleep(3600)"
    )
    running = note.start("a")
    until(lambda: "a" in note.outputs and "on" in note.outputs["a"].text)
    note.entry("Python").cancel(note.context("a"))
    assert running.end().code is Code.ERROR
    assert "KeyboardInterrupt" in note.outputs["a"].text
    note.write("b", "%submarine.python\nprint(x)")
    note.run("b")
    assert note.outputs["b"].text == "1\n"


def test_stop_interrupts_again_a_program_that_has_lost_an_interrupt(
    note: Note, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("submarine_zeppelin.local.kernel._INTERRUPT_INTERVAL", 0.5)
    note.write(
        "a",
        "%submarine.python\nimport time\ntry:\n    print('on', flush=True)\n    time.sleep(3600)\n"
        "except BaseException:\n    print('lost', flush=True)\ntime.sleep(3600)",
    )
    running = note.start("a")
    until(lambda: "a" in note.outputs and "on" in note.outputs["a"].text)
    note.entry("Python").cancel(note.context("a"))
    assert running.end().code is Code.ERROR
    assert "lost" in note.outputs["a"].text
    assert "KeyboardInterrupt" in note.outputs["a"].text


def test_a_session_that_dies_says_so_and_starts_anew(note: Note) -> None:
    note.write("a", "%submarine.python\nimport os\nos._exit(3)")
    assert note.run("a").code is Code.ERROR
    assert "has ended, and its variables are lost" in note.outputs["a"].text
    note.write("b", "%submarine.python\nprint('anew')")
    assert note.run("b").code is Code.SUCCESS


def test_a_session_that_is_left_says_so_and_help_is_shown(note: Note) -> None:
    note.write("a", "%submarine.python\nprint?")
    assert note.run("a").code is Code.SUCCESS
    assert "Prints the values" in note.outputs["a"].text
    note.write("b", "%submarine.python\nx = 1\nexit()")
    assert note.run("b").code is Code.SUCCESS
    assert "as requested" in note.outputs["b"].text
    note.write("c", "%submarine.python\nprint('x' in globals())")
    assert note.run("c").code is Code.SUCCESS
    assert note.outputs["c"].text == "False\n"


def test_a_misspelt_word_in_brackets_runs_nothing(note: Note) -> None:
    note.write("a", "%submarine.python(onyl)\nprint('ran')")
    note.write("b", "%submarine.sh(other)\necho ran")
    for paragraph, said in (("a", "Did you mean (only)?"), ("b", "has no option (other)")):
        assert note.run(paragraph).code is Code.ERROR
        assert said in note.outputs[paragraph].text
        assert "ran" not in note.outputs[paragraph].text


def test_completion_is_the_kernels(note: Note) -> None:
    python = note.entry("Python")
    assert python.completion("pri", 3, note.context("a")) == []
    note.write("a", "%submarine.python\nimport collections")
    note.run("a")
    found = python.completion("collections.Ordered", 19, note.context("a"))
    # With a word on its kind the classic page would show nothing.
    assert [(one.value, one.meta) for one in found] == [("OrderedDict", "")]
    # One that asks beside it takes no reply away from the session.
    assert note.run("a").code is Code.SUCCESS


def test_nothing_is_left_of_a_session(note: Note) -> None:
    note.write(
        "a", "%submarine.python\nimport os, subprocess\nchild = subprocess.Popen(['sleep', '3600'])"
    )
    note.write("b", "%submarine.python\nprint(os.getpid(), child.pid)")
    note.run("a")
    note.run("b")
    pids = [int(word) for word in note.outputs["b"].text.split()]
    note.close()
    until(lambda: all(is_gone(pid) for pid in pids))


def test_ten_thousand_lines_stay_within_the_limit(note: Note) -> None:
    note.write("a", "%submarine.python\nfor n in range(10_000): print('line', n, 'x' * 20)")
    note.write("b", "%submarine.python\nfor n in range(10_000): print(f'\\x1b[3{n % 8}mline {n}')")
    for paragraph in "ab":
        assert note.run(paragraph).code is Code.SUCCESS
        shown = note.outputs[paragraph]
        assert shown.largest <= 102_400
        assert sum(len(one.data) for one in shown.messages) <= 102_400
        assert "line 9999" in shown.text
        assert "lines before these" in shown.text
        assert shown.shows < 200


def test_a_line_that_is_longer_than_the_limit_keeps_its_end(note: Note) -> None:
    note.write("a", "%submarine.python\nprint('first')\nprint('x' * 300_000 + 'end')")
    note.write("b", "%submarine.sh\nhead -c 300000 /dev/zero | tr '\\0' x; echo end")
    for paragraph in "ab":
        assert note.run(paragraph).code is Code.SUCCESS
        (shown,) = note.outputs[paragraph].messages
        assert shown.data.endswith("xxxend\n")
        assert "characters of a line before these\n" in shown.data[:100]
        assert 50_000 < len(shown.data) <= 102_400


def test_nothing_is_lost_of_what_is_printed_line_by_line(note: Note) -> None:
    note.write("a", "%submarine.python\nfor n in range(3000): print(n, flush=True)")
    assert note.run("a").code is Code.SUCCESS
    assert note.outputs["a"].text == "".join(f"{n}\n" for n in range(3000))


def test_a_shell_streams_and_fails_with_paragraph_and_line(note: Note) -> None:
    note.write("a", "%submarine.sh\necho first\nnot_a_command_at_all\nexit 3")
    assert note.run("a").code is Code.ERROR
    lines = note.outputs["a"].text.splitlines()
    assert lines[0] == "first"
    assert lines[1].startswith("Paragraph 1: line 3: not_a_command_at_all")
    assert lines[-1] == "Exit code 3."
    note.write("b", "%submarine.sh(only)\necho no", "prepare.sh")
    assert "the file prepare.sh of the program and was not run" in note.run("b").messages[0].data


def test_a_stopped_shell_takes_its_children_along(note: Note) -> None:
    note.write("a", "%submarine.sh\nsleep 3600 &\necho $!\ntrap '' TERM\nsleep 3600")
    running = note.start("a")
    until(lambda: "a" in note.outputs and note.outputs["a"].text.strip().isdecimal())
    child = int(note.outputs["a"].text)
    note.entry("Shell").cancel(note.context("a"))
    assert running.end().code is Code.ERROR
    assert "Stopped." in note.outputs["a"].text
    until(lambda: is_gone(child))


def test_a_shell_has_the_time_that_is_set(tmp_path: Path) -> None:
    note = Note({"shell.command.timeout.millisecs": "300"})
    note.write("a", "%submarine.sh\nsleep 3600")
    assert note.run("a").code is Code.ERROR
    assert "Ended after 0.3 s" in note.outputs["a"].text
    assert "sleep" not in os.listdir(tmp_path)
