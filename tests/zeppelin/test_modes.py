"""Our group on a real server in Zeppelin's modes: what notes and users share, and what not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn.driver import stop_driver
from submarine_jobs.model import Profile
from submarine_minicluster.cluster import Minicluster
from tests.zeppelin.conftest import session_as
from tests.zeppelin.server import Note, Zeppelin
from tests.zeppelin.test_life import RECOVERY
from tests.zeppelin.test_notes import JOB, jobs_in, text_of

pytestmark = [pytest.mark.cluster, pytest.mark.full]
PROGRAM = "import time\nprint('words of a job', flush=True)\ntime.sleep(3600)"
Users = tuple[str, str]


@pytest.fixture
def server(minicluster: Minicluster, users: Users, tmp_path: Path) -> Iterator[Zeppelin]:
    """A server that lets in two users and goes on with its interpreters after a restart."""
    made = Zeppelin(
        tmp_path / "modes",
        {**minicluster.environ()},
        zeppelin_recovery_storage_class=RECOVERY,
        zeppelin_recovery_dir=str(tmp_path / "recovery"),
    )
    made.install()
    made.admit(**{user: f"of-{user}" for user in users})
    try:
        start(made, 1)
        yield made
    finally:
        made.close()
        for folder in tmp_path.glob("**/users/*"):
            stop_driver(Profile(state_dir=folder))


def start(server: Zeppelin, number: int) -> None:
    """Start it for the n-th time, and wait until it has looked through its notes.

    A server that recovers does so in a thread after its start, which puts aside notes that somebody
    uses already: the end of a paragraph which runs meanwhile is never seen.
    """
    server.start()
    log = server.home / "logs" / "server.log"
    server.await_(lambda: log.read_text().count("Start paragraph recovering thread") == number)
    assert server.process is not None
    tasks = Path(f"/proc/{server.process.pid}/task")
    server.await_(lambda: not any(name.startswith("Recovering") for name in names_of(tasks)))


def names_of(tasks: Path) -> list[str]:
    """Names of a process's threads; one may end meanwhile."""
    found = []
    for task in tasks.iterdir():
        with contextlib.suppress(OSError):
            found.append((task / "comm").read_text())
    return found


def enter(server: Zeppelin, user: str) -> None:
    server.login(user, f"of-{user}")


def note_of(server: Zeppelin, name: str) -> Note:
    """A note whose second paragraph runs its first as a job."""
    return server.note(
        name,
        ("", f"%submarine.python(only)\n{PROGRAM}"),
        ("", f"%submarine run {name} --memory 256M"),
    )


def python(note: Note, code: str) -> str:
    """What a new paragraph of the note's Python session says, without its last line break."""
    return text_of(note.run(note.add(f"%submarine.python(local)\n{code}"), JOB)).strip()


def job_of(note: Note) -> str:
    """Run the note's job, and wait for what it says."""
    command = note.paragraphs[1]
    ran = note.run(command, JOB)
    assert ran["status"] == "FINISHED", text_of(ran)
    (job_id,) = jobs_in(note.awaited(command, lambda now: "words of a job" in text_of(now), JOB))
    return job_id


def cancel(note: Note, job_id: str) -> None:
    """Cancel the job, and wait for the word of it in the paragraph that shows it."""
    done = note.run(note.add(f"%submarine cancel {job_id}"), JOB)
    assert done["status"] == "FINISHED", text_of(done)
    ended = note.awaited(note.paragraphs[1], lambda now: "CANCELLED" in text_of(now), JOB)
    assert jobs_in(ended) == {job_id}


@pytest.mark.parametrize(("mode", "processes"), [("shared", 1), ("scoped", 1), ("isolated", 2)])
def test_modes_of_notes(server: Zeppelin, users: Users, mode: str, processes: int) -> None:
    enter(server, users[0])
    server.configure("submarine", option={"perNote": mode, "perUser": ""})
    first, second = (note_of(server, f"{mode}-{number}") for number in (1, 2))
    notes = {first: "", second: ""}
    for note in notes:
        notes[note] = python(note, f"import os\nmine = {note.id!r}\nprint(os.getpid())")
    assert notes[first] != notes[second], "a note has a Python session of its own in each mode"
    assert len(server.interpreters("submarine")) == processes
    jobs = {note: job_of(note) for note in notes}
    before = server.interpreters("submarine")
    server.restart("submarine", first)
    # The session of one note ends, and in shared mode with it that of all.
    gone = python(first, "print(mine)")
    assert "NameError" in gone
    stays = python(second, "import os\nprint(mine, os.getpid())")
    if mode == "shared":
        assert "NameError" in stays
        assert not set(before) & set(server.interpreters("submarine"))
    else:
        assert stays == f"{second.id} {notes[second]}"
        assert set(before) & set(server.interpreters("submarine"))
    # The jobs of both go on, and so do their cards.
    listed = text_of(first.run(first.add("%submarine list"), JOB))
    assert all(job_id in listed for job_id in jobs.values())
    again = first.run(first.paragraphs[1], JOB)
    assert "no job was submitted" in text_of(again)
    assert jobs_in(again) == {jobs[first]}
    if mode == "shared":
        second.run(second.add("%submarine help"), JOB)
    for note, job_id in jobs.items():
        cancel(note, job_id)


@pytest.mark.parametrize(("mode", "processes"), [("scoped", 1), ("isolated", 2)])
def test_modes_of_users(
    server: Zeppelin,
    minicluster: Minicluster,
    users: Users,
    tmp_path: Path,
    mode: str,
    processes: int,
) -> None:
    ada, bob = users
    enter(server, ada)
    server.configure("submarine", option={"perNote": "", "perUser": mode})
    common = note_of(server, f"common-{mode}")
    pids, jobs = {}, {}
    for user in users:
        enter(server, user)
        pids[user] = python(common, f"import os\nmine = {user!r}\nprint(os.getpid())")
    assert len(set(pids.values())) == 2, "in one note each user has a Python session of their own"
    enter(server, ada)
    jobs[ada] = job_of(common)
    enter(server, bob)
    jobs[bob] = job_of(common)
    assert jobs[ada] != jobs[bob]
    assert len(server.interpreters("submarine")) == processes
    # Of two users' jobs of one paragraph it shows the last one's, whatever becomes of the other.
    enter(server, ada)
    done = common.run(common.add(f"%submarine cancel {jobs[ada]}"), JOB)
    assert done["status"] == "FINISHED", text_of(done)
    waited = common.run(common.add(f"%submarine wait {jobs[ada]}"), JOB)
    assert "CANCELLED" in text_of(waited)
    assert jobs_in(common.get(common.paragraphs[1])) == {jobs[bob]}
    # The restart of one user's session does not affect other users.
    enter(server, bob)
    server.restart("submarine", common)
    assert "NameError" in python(common, "print(mine)")
    enter(server, ada)
    assert python(common, "import os\nprint(mine, os.getpid())") == f"{ada} {pids[ada]}"
    # A server that is killed finds them all again, and their sessions.
    before = server.interpreters("submarine")
    server.kill()
    start(server, 2)
    assert set(server.interpreters("submarine")) == set(before)
    enter(server, ada)
    assert python(common, "print(mine)") == ada
    enter(server, bob)
    again = common.run(common.paragraphs[1], JOB)
    assert "no job was submitted" in text_of(again)
    # Jobs live on, whatever has ended here.
    server.close()
    server.await_(lambda: not server.processes())
    record = session_as(minicluster, bob, tmp_path / "outside").job(jobs[bob]).record()
    assert not record.state.ended
