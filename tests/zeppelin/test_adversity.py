"""Our group on a real server, two users at once, when things go wrong: one job each, no leak."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn.driver import stop_driver
from submarine_jobs.model import Profile
from submarine_minicluster.cluster import Minicluster
from tests.zeppelin.conftest import session_as
from tests.zeppelin.server import Note, Zeppelin
from tests.zeppelin.test_notes import JOB, jobs_in, text_of

pytestmark = [pytest.mark.cluster, pytest.mark.full]
KEYSTORE, SETTING = "of-the-keystore-7431", "of-the-setting-2291"
PROGRAM = "import time\nprint('words of a job', flush=True)\ntime.sleep(3600)"


def holding(folder: Path, *words: str) -> set[str]:
    """The files below a folder in which one of the words stands."""
    found = set()
    for path in folder.rglob("*"):
        if path.is_file() and any(word.encode() in path.read_bytes() for word in words):
            found.add(str(path.relative_to(folder)))
    return found


def test_one_job_a_run_and_no_secret_whatever_happens(
    minicluster: Minicluster, users: tuple[str, str], tmp_path: Path
) -> None:
    server = Zeppelin(
        tmp_path / "zeppelin", {**minicluster.environ()}, zeppelin_ssl_keystore_password=KEYSTORE
    )
    server.install()
    server.admit(**{user: f"of-{user}" for user in users})
    notes: dict[str, Note] = {}
    try:
        server.start()
        server.login(users[0], f"of-{users[0]}")
        server.configure("submarine", properties={"my.access.token": SETTING})
        for user in users:
            server.login(user, f"of-{user}")
            notes[user] = server.note(
                f"of {user}",
                ("", f"%submarine.python(only)\n{PROGRAM}"),
                ("", f"%submarine run of-{user} --memory 256M --wait"),
            )
        # Everybody runs theirs again and again while it is submitted.
        for _ in range(3):
            for user in users:
                server.login(user, f"of-{user}")
                server.call("POST", f"notebook/job/{notes[user].id}/{notes[user].paragraphs[1]}")
        shown = {}
        for user in users:
            server.login(user, f"of-{user}")
            note = notes[user]
            now = note.awaited(
                note.paragraphs[1], lambda now: "words of a job" in text_of(now), JOB
            )
            (shown[user],) = jobs_in(now)
        (process,) = server.interpreters("submarine")
        process.signal(signal.SIGKILL)
        for user in users:
            server.login(user, f"of-{user}")
            assert notes[user].ended(notes[user].paragraphs[1], JOB)["status"] == "ERROR"
        server.await_(lambda: not server.interpreters("submarine"))
        server.restart("submarine")
        for user in users:
            server.login(user, f"of-{user}")
            note = notes[user]
            for _ in range(2):
                server.call("POST", f"notebook/job/{note.id}/{note.paragraphs[1]}")
            note.awaited(
                note.paragraphs[1], lambda now: "no job was submitted" in text_of(now), JOB
            )
        for user in users:
            mine = session_as(minicluster, user, tmp_path / f"of-{user}")
            assert [record.job_id for record in mine.jobs()] == [shown[user]]
            assert not mine.job(shown[user]).record().state.ended
            mine.job(shown[user]).cancel("enough")
            server.login(user, f"of-{user}")
            ended = notes[user].ended(notes[user].paragraphs[1], JOB)
            assert "CANCELLED" in text_of(ended)
        # Nowhere but where the server itself keeps its settings.
        assert not holding(server.home, KEYSTORE)
        kept = holding(server.home, SETTING)
        assert kept
        assert all(path.startswith("conf/") for path in kept), kept
    finally:
        server.close()
        for folder in tmp_path.glob("**/users/*"):
            stop_driver(Profile(state_dir=folder))
