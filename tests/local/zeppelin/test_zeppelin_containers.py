"""`%submarine.python` in containers, without Zeppelin: their jobs are processes of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_kernel.kernelspecs import install_kernel, provisioning
from submarine_runtime.protocol import State
from submarine_zeppelin.interface import SESSION_KERNEL, Code, Kind
from tests.kernel.remote_kernels import local_session
from tests.local.zeppelin.zeppelin_note import Note
from tests.waiting import until

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]
NAME = "box"


@pytest.fixture
def note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Note]:
    stanza = provisioning(NAME, {"memory": "400M", "backend": "local"})
    install_kernel(name=NAME, prefix=str(tmp_path), container=stanza)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    made = Note({SESSION_KERNEL: NAME, "zeppelin.python.maxResult": "3"})
    yield made
    made.close()
    session = local_session(tmp_path)
    until(lambda: all(record.state.ended for record in session.jobs()))


def test_paragraphs_share_a_session_per_user(note: Note, tmp_path: Path) -> None:
    note.write("a", "%submarine.python\nimport os\nx = 20\nprint(os.environ['SUBMARINE_JOB_ID'])")
    note.write("b", "%submarine.python\nprint(os.environ['SUBMARINE_JOB_ID'])\nx + 1")
    note.write("model", "%submarine.python\ndef fit():\n    return 7", "model.py")
    note.write("c", "%submarine.python\nfrom model import fit\nfit()")
    assert note.run("a").code is Code.SUCCESS, note.outputs["a"].text
    (record,) = local_session(tmp_path).jobs()
    assert note.outputs["a"].text == f"{record.job_id}\n"
    assert note.run("b").code is Code.SUCCESS
    assert note.outputs["b"].text == f"{record.job_id}\n21\n"
    note.run("c")
    assert note.outputs["c"].text == "7\n"
    note.write("model", "%submarine.python\ndef fit():\n    return 8", "model.py")
    note.run("c")
    assert note.outputs["c"].text == "8\n"
    # Another user does not get into this container.
    assert note.run("b", user="ada").code is Code.ERROR
    assert "NameError" in note.outputs["b"].text
    assert len(local_session(tmp_path).jobs()) == 2
    note.write("end", "%submarine.python\nexit()")
    note.run("end", user="ada")
    assert "has exited as requested" in note.outputs["end"].text
    until(lambda: State.SUCCEEDED in [one.state for one in local_session(tmp_path).jobs()])


def test_z_tables_and_values_pass_in_messages(note: Note, tmp_path: Path) -> None:
    note.write(
        "a",
        "%submarine.python(local)\nimport pandas\nrate = z.input('rate', '0.1')\n"
        "z.put('rate', float(rate) * 2)\nprint(z.get('rate'))\n"
        "frame = pandas.DataFrame({'a': [1, 2], 'b': ['x', 'ü']})\nframe",
    )
    result = note.run("a", params={"rate": "0.25"})
    assert result.code is Code.SUCCESS, note.outputs["a"].text
    assert [one.kind for one in result.messages] == [Kind.TEXT, Kind.TABLE]
    assert result.messages[0].data == "0.5\n"
    assert result.messages[1].data == "a\tb\n1\tx\n2\tü"
    assert result.forms is not None
    assert result.forms["params"] == {"rate": "0.25"}
    note.write("b", "%submarine.python(local)\ninput('name')")
    assert note.run("b").code is Code.ERROR
    assert "does not support input requests" in note.outputs["b"].text
    note.write("main", "%submarine.python(only)\nprint(sum(frame.a), rate)")
    note.write("c", "%submarine\nrun --backend local --with frame,rate --wait --name sum")
    assert note.run("c").code is Code.KEEP, note.outputs["c"].text
    assert "3 0.25" in note.outputs["c"].text
    note.write("main", "%submarine.python(only)\nprint(1)")
    note.write("d", "%submarine\nrun --backend local --with fram --name sum")
    assert note.run("d").code is Code.ERROR
    assert "Did you mean frame?" in note.outputs["d"].text
    note.write("large", "%submarine.python(local)\nlarge = b'x' * (65 << 20)")
    note.run("large")
    note.write("d", "%submarine\nrun --backend local --with large --name sum")
    assert note.run("d").code is Code.ERROR
    assert "larger than 64 MiB" in note.outputs["d"].text


def test_interrupt_loss_and_end_of_the_kernel(note: Note, tmp_path: Path) -> None:
    note.write(
        "loop", "%submarine.python\nimport time\nprint('in it', flush=True)\ntime.sleep(600)"
    )
    note.write("x", "%submarine.python\nx = 1\nprint('x is', x)")
    note.write("y", "%submarine.python\nprint('y', x)")
    running = note.start("loop")
    until(lambda: "loop" in note.outputs and "in it" in note.outputs["loop"].text)
    running.stop()
    assert "KeyboardInterrupt" in note.outputs["loop"].text
    note.run("x")
    # The kernel ends, and not its container.
    note.write("crash", "%submarine.python\nos = __import__('os')\nos._exit(3)")
    assert note.run("crash").code is Code.ERROR
    assert "has ended. The variables of this note are lost" in note.outputs["crash"].text
    assert note.run("x").code is Code.SUCCESS, note.outputs["x"].text
    (record,) = local_session(tmp_path).jobs()
    # The container is lost while the session is idle.
    local_session(tmp_path).job(record.job_id).cancel("a test")
    assert note.run("y").code is Code.ERROR
    assert "The container of the kernel is gone." in note.outputs["y"].text
    assert "The variables of this note are lost." in note.outputs["y"].text
    assert note.run("x").code is Code.SUCCESS, note.outputs["x"].text
    assert note.outputs["x"].text == "x is 1\n"
    # While it runs.
    running = note.start("loop")
    until(lambda: "in it" in note.outputs["loop"].text)
    (second,) = (one for one in local_session(tmp_path).jobs() if not one.state.ended)
    local_session(tmp_path).job(second.job_id).cancel("a test")
    assert running.end().code is Code.ERROR
    assert "The container of the kernel is gone." in note.outputs["loop"].text


def test_other_kernels_are_refused(note: Note, tmp_path: Path) -> None:
    note.write("a", "%submarine.python\n1")
    note.properties[SESSION_KERNEL] = "none"
    assert note.run("a").code is Code.ERROR
    expected = 'There is no kernel "none". Kernels in a container are box.'
    assert note.outputs["a"].text.strip() == expected
    note.close()
    install_kernel(name="plain", prefix=str(tmp_path))
    note.properties[SESSION_KERNEL] = "plain"
    assert note.run("a").code is Code.ERROR
    expected = 'The kernel "plain" does not run in a container. Kernels in a container are box.'
    assert note.outputs["a"].text.strip() == expected


def test_a_user_without_permission_is_refused(note: Note) -> None:
    note.properties["submarine.allow.service.user"] = "false"
    note.write("a", "%submarine.python\n1")
    assert note.run("a", user="ada").code is Code.ERROR
    assert "would run as Zeppelin's account" in note.outputs["a"].text
