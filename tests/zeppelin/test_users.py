"""Several users of one interpreter process: each one's jobs are theirs on the cluster."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.driver import read_running
from submarine_jobs.concurrency import use_subprocesses
from submarine_jobs.errors import StorageError
from submarine_jobs.storage import Storage
from submarine_minicluster.cluster import Minicluster
from submarine_zeppelin.interface import Code
from tests.local.zeppelin.zeppelin_note import Note as NoteOfNobody
from tests.waiting import until
from tests.zeppelin.conftest import session_as
from tests.zeppelin.server import Note, Zeppelin
from tests.zeppelin.test_notes import _JOB_ID, JOB, jobs_in, text_of

pytestmark = pytest.mark.cluster
#: What an interpreter may hold, with the jobs of two users.
MEMORY = 80 << 20
PROGRAM = "%submarine.python\nimport time\nprint('words of', {user!r}, flush=True)\n{then}"


def check_owners(cluster: Minicluster, jobs: dict[str, str], tmp_path: Path) -> None:
    """The application, the directory and its files belong to each job's user only.

    Parameters
    ----------
    jobs
        User -> job.
    """
    sessions = {user: session_as(cluster, user, tmp_path / f"of-{user}") for user in jobs}
    for user, job_id in jobs.items():
        job = sessions[user].job(job_id)
        assert job.record().user == user
        application = str((job.directory.read_json("application.json") or {})["application_id"])
        assert isinstance(job.backend, YarnBackend)
        assert job.backend.rm.get(f"/apps/{application}")["app"]["user"] == user
        for other, session in sessions.items():
            storage, _ = session.backend().job_root()
            if other == user:
                assert storage.list_directory(job.directory.path)
                continue
            check_closed(storage, job.directory.path)


def check_closed(storage: Storage, path: str) -> None:
    """Nothing of a directory can be seen, read or put there."""
    for work in (
        lambda: storage.list_directory(path),
        lambda: storage.read(f"{path}/spec.json"),
        lambda: storage.publish(f"{path}/cancel.json", b"{}"),
    ):
        with pytest.raises(StorageError, match="permission denied"):
            work()


def test_users_of_one_process_have_jobs_of_their_own(
    minicluster: Minicluster,
    users: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [key for key in os.environ if key.startswith(("SUBMARINE_", "HADOOP_"))]:
        if name != "SUBMARINE_TEST_MINICLUSTER":
            monkeypatch.delenv(name)
    for name, value in minicluster.environ().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    note, (ada, bob) = NoteOfNobody({"submarine.allow.service.user": "false"}), users
    use_subprocesses()  # as the process of a server does
    try:
        for user in users:
            note.write(f"run {user}", f"%submarine run of-{user} --memory 256M")
        note.write("program", PROGRAM.format(user="both", then="time.sleep(3600)"))
        # At the same time, so that neither one's name is used for the other.
        runs = {user: note.start(f"run {user}", user=user) for user in users}
        for run in runs.values():
            until(lambda run=run: not run.running, seconds=JOB)  # type: ignore[misc]
            assert run.end().code is Code.KEEP, {u: note.outputs[f"run {u}"].text for u in users}
        shown = {user: note.outputs[f"run {user}"] for user in users}
        jobs = {user: _JOB_ID.findall(shown[user].text)[0] for user in users}
        until(lambda: all("words of both" in shown[user].text for user in users), seconds=JOB)
        check_owners(minicluster, jobs, tmp_path)
        # By name, id, log or list, there is none but one's own.
        for verb in ("show", "logs", "cancel", "rerun"):
            note.write("foreign", f"%submarine {verb} {jobs[ada]}")
            assert note.run("foreign", user=bob).code is Code.ERROR
            assert f"There is no job '{jobs[ada]}'" in note.outputs["foreign"].text
        place = session_as(minicluster, ada, tmp_path / "place").job(jobs[ada]).directory.path
        waiting = f"%submarine workflow await hdfs://{place}/spec.json --timeout 1s"
        note.write("await", waiting)
        assert note.run("await", user=bob).code is Code.ERROR
        assert "permission denied" in note.outputs["await"].text
        assert note.run("await", user=ada).code is Code.KEEP, note.outputs["await"].text
        note.write("list", "%submarine list")
        note.run("list", user=bob)
        assert jobs[bob] in note.outputs["list"].text
        assert jobs[ada] not in note.outputs["list"].text
        for user in users:
            assert "RUNNING" in shown[user].text
            note.write("own", f"%submarine cancel {jobs[user]}")
            note.run("own", user=user)
            until(lambda text=shown[user]: "CANCELLED" in text.text, seconds=JOB)  # type: ignore[misc]
    finally:
        use_subprocesses(False)
        note.close()


@pytest.mark.full
def test_users_of_a_server_share_one_process_and_each_sees_their_own(
    minicluster: Minicluster, users: tuple[str, str], tmp_path: Path
) -> None:
    server, (ada, bob) = Zeppelin(tmp_path / "users", {**minicluster.environ()}), users
    server.install()
    server.admit(**{user: f"of-{user}" for user in users})
    notes: dict[str, Note] = {}
    shown: dict[str, set[str]] = {}
    try:
        server.start()
        for user in users:
            server.login(user, f"of-{user}")
            program = PROGRAM.format(user=user, then="time.sleep(3600)")
            notes[user] = server.note(
                f"of {user}", ("", program), ("", f"%submarine run of-{user} --memory 256M")
            )
            ran = notes[user].run(notes[user].paragraphs[1], JOB)
            assert ran["status"] == "FINISHED", text_of(ran)
            shown[user] = jobs_in(ran)
        # With both under way, each card goes on with what only its own user may read.
        for user in users:
            server.login(user, f"of-{user}")
            notes[user].awaited(
                notes[user].paragraphs[1], lambda now, u=user: f"words of {u}" in text_of(now), JOB
            )
        (process,) = server.interpreters("submarine")
        assert psutil.Process(process.pid).memory_info().rss < MEMORY
        check_owners(minicluster, {user: min(shown[user]) for user in users}, tmp_path)
        server.login(bob, f"of-{bob}")
        refused = notes[bob].run(notes[bob].add(f"%submarine cancel {min(shown[ada])}"), JOB)
        assert refused["status"] == "ERROR"
        assert "There is no job" in text_of(refused)
        listed = text_of(notes[bob].run(notes[bob].add("%submarine list"), JOB))
        assert min(shown[bob]) in listed
        assert min(shown[ada]) not in listed
        # In a new process everybody's paragraphs are right again, each as their user runs one.
        drivers = [read_running(place) for place in server.home.glob("state/users/*/driver/*")]
        assert len([one for one in drivers if one is not None]) == len(users)
        server.restart("submarine")
        server.await_(lambda: not any(psutil.pid_exists(one.pid) for one in drivers if one))
        for user in users:
            server.login(user, f"of-{user}")
            note, command = notes[user], notes[user].paragraphs[1]
            done = note.run(note.add(f"%submarine cancel {min(shown[user])}"), JOB)
            assert done["status"] == "FINISHED", text_of(done)
            note.awaited(command, lambda now: "CANCELLED" in text_of(now), JOB)
    finally:
        server.close()
