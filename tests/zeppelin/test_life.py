"""Against a real server: processes and sessions of interpreters, from their start to their end."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from submarine_minicluster.machine import Identity
from tests.zeppelin.server import Note, Zeppelin, output_of
from tests.zeppelin.test_server import runs

SHARED = {"perNote": "shared", "perUser": "shared"}
RECOVERY = "org.apache.zeppelin.interpreter.recovery.LocalRecoveryStorage"
Make = Callable[..., Zeppelin]


@pytest.fixture
def echo(zeppelin: Zeppelin) -> Iterator[Zeppelin]:
    """The shared server, its group ``echo`` as it was afterwards."""
    yield zeppelin
    zeppelin.configure("echo", option=SHARED)


def whos(note: Note) -> str:
    return output_of(note.run(note.add("%echo\nwho")))


def child_of(note: Note, path: Path) -> Identity:
    """A process that a paragraph has started and left behind."""
    note.run(note.add(f"%echo\nchild {path}"))
    child = Identity.of(int(path.read_text()))
    assert child is not None
    return child


@pytest.mark.parametrize(
    ("mode", "processes", "sessions"), [("shared", 1, 1), ("scoped", 1, 2), ("isolated", 2, 1)]
)
def test_modes(echo: Zeppelin, mode: str, processes: int, sessions: int) -> None:
    echo.configure("echo", option={"perNote": mode, "perUser": ""})
    said = [whos(echo.note(f"{mode} {number}")) for number in range(2)]
    assert all(one.startswith("anonymous ") for one in said)
    assert len({one.split()[1] for one in said}) == sessions
    assert len(echo.interpreters("echo")) == processes


def test_a_restart_ends_the_process_and_its_children(echo: Zeppelin, tmp_path: Path) -> None:
    note = echo.note("restart")
    child = child_of(note, tmp_path / "child")
    (process,) = echo.interpreters("echo")
    # The server cancels what runs before it restarts an interpreter: not a cancel of the job.
    cancelled = tmp_path / "cancelled"
    waiting = note.add(f"%echo\noncancel {cancelled}\nlines 1\nawait {tmp_path}/never")
    note.begin(waiting)
    note.awaited(waiting, lambda now: "line 0" in output_of(now))
    echo.restart("echo")
    echo.await_(lambda: not process.alive and not child.alive)
    assert note.ended(waiting)["status"] == "ABORT"
    assert not cancelled.exists()
    assert whos(note)
    assert echo.interpreters("echo") != [process]


def test_a_killed_process_is_reported_and_started_again(echo: Zeppelin, tmp_path: Path) -> None:
    note = echo.note("killed", ("", f"%echo\nlines 2\nawait {tmp_path}/never"))
    note.begin(note.paragraphs[0])
    note.awaited(note.paragraphs[0], lambda now: "line 1" in output_of(now))
    (process,) = echo.interpreters("echo")
    process.signal(signal.SIGKILL)
    assert note.ended(note.paragraphs[0])["status"] == "ERROR"
    echo.restart("echo")
    assert whos(note)


def test_a_server_that_is_killed_leaves_no_process(own_zeppelin: Make, tmp_path: Path) -> None:
    server = own_zeppelin()
    note = server.note("killed")
    child = child_of(note, tmp_path / "child")
    note.begin(note.add(f"%echo\ndeaf {tmp_path}/never"))
    server.kill()
    server.await_(lambda: not server.processes() and not child.alive)


@pytest.mark.full
def test_a_run_survives_its_server(own_zeppelin: Make, tmp_path: Path) -> None:
    server = own_zeppelin(
        zeppelin_recovery_storage_class=RECOVERY,
        zeppelin_recovery_dir=str(tmp_path / "recovery"),
    )
    count, go = tmp_path / "count", tmp_path / "go"
    note = server.note("survives", ("", f"%echo\ncount {count}\nlines 3\nawait {go}\nhtml <p>x"))
    (paragraph,) = note.paragraphs
    note.begin(paragraph)
    note.awaited(paragraph, lambda now: "line 2" in output_of(now))
    # The output is shown before the note is saved, and only a saved run is recovered.
    server.await_(lambda: note.saved_status(paragraph) == "RUNNING")
    (process,) = server.interpreters("echo")
    server.kill()
    assert process.alive
    server.start()
    assert server.interpreters("echo") == [process]
    note.awaited(paragraph, lambda now: now["status"] == "RUNNING")
    go.touch()
    now = note.ended(paragraph)
    assert (now["status"], output_of(now), runs(count)) == ("FINISHED", "<p>x", 1)
    # And it goes with the one that it has now.
    server.restart("echo")
    server.await_(lambda: not process.alive)


@pytest.mark.full
def test_users_have_processes_of_their_own_and_their_names_arrive(tmp_path: Path) -> None:
    server = Zeppelin(tmp_path / "users")
    server.install_echo()
    server.admit(ada="of-ada-3", bob="of-bob-4")
    try:
        server.start()
        server.login("ada", "of-ada-3")
        server.configure("echo", option={"perNote": "", "perUser": "isolated"})
        assert whos(server.note("of ada")).split()[0] == "ada"
        server.login("bob", "of-bob-4")
        assert whos(server.note("of bob")).split()[0] == "bob"
        assert len(server.interpreters("echo-ada")) == 1
        assert len(server.interpreters("echo-bob")) == 1
    finally:
        server.close()


def test_no_secret_reaches_a_log_and_a_server_that_ends_leaves_no_process(
    own_zeppelin: Make, tmp_path: Path
) -> None:
    secrets = {"keystore": "of-the-keystore-7431", "own": "of-the-setting-2291"}
    server = own_zeppelin(
        zeppelin_ssl_keystore_password=secrets["keystore"],
        echo={"my__password": secrets["own"]},
    )
    note = server.note("secrets", ("", "%echo\nraise_property my.password"))
    now = note.run(note.paragraphs[0])
    assert now["status"] == "ERROR"
    logs = [one for one in (server.home / "logs").iterdir() if one.name.startswith("zeppelin-int")]
    assert len(logs) == 1
    said = logs[0].read_text()
    assert "RuntimeError: property is ******" in said
    for secret in secrets.values():
        assert secret not in said + output_of(now)
    assert logs[0].stat().st_mode & 0o077 == 0
    child = child_of(note, tmp_path / "child")
    assert len(server.interpreters("echo")) == 1
    server.stop()
    server.await_(lambda: not server.processes() and not child.alive)
