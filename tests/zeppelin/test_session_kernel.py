"""Notes whose Python sessions run in containers: ``submarine.session.kernel`` on a real cluster."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.driver import stop_driver
from submarine_jobs.client import Job
from submarine_jobs.model import Profile
from submarine_kernel.kernelspecs import install_kernel, provisioning
from submarine_minicluster.cluster import Minicluster
from submarine_zeppelin.interface import SESSION_KERNEL
from tests.waiting import until
from tests.zeppelin.conftest import session_as
from tests.zeppelin.server import Note, Zeppelin
from tests.zeppelin.test_notes import JOB, text_of

pytestmark = [pytest.mark.cluster, pytest.mark.full, pytest.mark.timeout(900)]

#: All GPUs of the cluster, so that a second session waits.
KERNEL = {"memory": "400M", "gpu": 4}
WHERE = """\
%submarine.python(local)
import os
x = 41
print(os.environ["CONTAINER_ID"], os.environ["USER"], os.environ["SUBMARINE_JOB_ID"])
"""
LIVE = """\
%submarine.python(local)
import os, time
print("begins", flush=True)
while True:
    time.sleep(0.1)
"""
FRAME = """\
%submarine.python(local)
import pandas
frame = pandas.DataFrame({"a": [1, 2], "b": ["x", "ü"]})
frame
"""


class Users:
    """A server with two users, whose sessions run in containers."""

    def __init__(self, server: Zeppelin, cluster: Minicluster, names: tuple[str, str]) -> None:
        self.server, self.cluster, self.names = server, cluster, names

    def login(self, user: str) -> None:
        self.server.login(user, f"of-{user}")

    def run(self, user: str, note: Note, text: str) -> dict[str, Any]:
        """Run a new paragraph as a user, to its end."""
        self.login(user)
        return note.run(note.add(text), JOB)

    def job(self, user: str, job_id: str) -> Job:
        """A job as its user sees it from another machine."""
        return session_as(self.cluster, user, self.server.home / f"of-{user}").job(job_id)


@pytest.fixture(scope="module")
def users(
    zeppelin_home: Path, minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Users]:
    names = f"ada-{secrets.token_hex(3)}", f"bob-{secrets.token_hex(3)}"
    for name in names:
        minicluster.add_user(name)
    prefix = tmp_path_factory.mktemp("jupyter")
    install_kernel(name="gpus", prefix=str(prefix), container=provisioning("gpus", KERNEL))
    install_kernel(name="plain", prefix=str(prefix))
    home = zeppelin_home / "containers"
    found = {"JUPYTER_PATH": str(prefix / "share" / "jupyter")}
    server = Zeppelin(home, {**minicluster.environ(), **found})
    server.install(**{SESSION_KERNEL: "gpus"})
    server.admit(**{name: f"of-{name}" for name in names})
    try:
        server.start()
        yield Users(server, minicluster, names)
    finally:
        server.close()
        for name in names:
            mine = session_as(minicluster, name, home / f"of-{name}")
            for record in mine.jobs():
                if not record.state.ended:
                    mine.job(record.job_id).cancel("the test is over")
        for folder in (*home.glob("**/users/*"), *home.glob("of-*")):
            stop_driver(Profile(state_dir=folder))


def application(job: Job) -> dict[str, Any]:
    """The application of a job, as the ResourceManager has it."""
    assert isinstance(job.backend, YarnBackend)
    found = str((job.directory.read_json("application.json") or {})["application_id"])
    return dict(job.backend.rm.get(f"/apps/{found}")["app"])


def test_a_session_runs_in_a_container_of_its_user(users: Users) -> None:
    server, (ada, bob) = users.server, users.names
    users.login(ada)
    note = server.note("containers")
    first = users.run(ada, note, WHERE)
    assert first["status"] == "FINISHED", text_of(first) + server.log()
    container, account, job_id = text_of(first).split()
    assert container.startswith("container_")
    assert account == ada
    job = users.job(ada, job_id)
    running = application(job)
    assert (running["user"], running["state"]) == (ada, "RUNNING")
    assert container.split("_")[-4] == running["id"].split("_")[1]
    # The variables are kept, tables are Zeppelin's, and `z` has forms.
    assert text_of(users.run(ada, note, "%submarine.python(local)\nx + 1")).strip() == "42"
    shown = users.run(ada, note, FRAME)
    assert [one["type"] for one in shown["results"]["msg"]] == ["TABLE"]
    assert text_of(shown).strip() == "a\tb\n1\tx\n2\tü"
    form = users.run(ada, note, '%submarine.python(local)\nprint(z.input("rate", "0.1"))')
    assert text_of(form).strip() == "0.1"
    assert list(form["settings"]["forms"]) == ["rate"]
    # Another user waits for a container of the own: ada's has all GPUs.
    users.login(bob)
    waiting = note.add(WHERE)
    note.begin(waiting)
    note.awaited(waiting, lambda now: "0 of 4 GPUs free" in text_of(now), JOB)
    (pending,) = (
        one
        for one in session_as(users.cluster, bob, server.home / f"of-{bob}").jobs()
        if not one.state.ended
    )
    note.cancel(waiting)
    assert note.ended(waiting, JOB)["status"] in ("ABORT", "ERROR")
    until(lambda: application(users.job(bob, pending.job_id))["state"] == "KILLED")
    # Output is live, and Stop interrupts the code.
    users.login(ada)
    loop = note.add(LIVE)
    note.begin(loop)
    note.awaited(loop, lambda now: "begins" in text_of(now), JOB)
    note.cancel(loop)
    stopped = note.ended(loop, JOB)
    assert stopped["status"] == "ABORT", stopped
    note.awaited(loop, lambda now: "KeyboardInterrupt" in text_of(now))
    assert text_of(users.run(ada, note, "%submarine.python(local)\nx + 2")).strip() == "43"
    # The end of the interpreter ends the application.
    server.restart("submarine")
    until(lambda: application(job)["state"] == "FINISHED")
    assert application(job)["finalStatus"] == "SUCCEEDED"


def test_a_lost_container_is_reported_and_replaced(users: Users) -> None:
    server, (ada, _bob) = users.server, users.names
    users.login(ada)
    note = server.note("lost")
    first = users.run(ada, note, WHERE)
    assert first["status"] == "FINISHED", text_of(first) + server.log()
    job = users.job(ada, text_of(first).split()[-1])
    assert isinstance(job.backend, YarnBackend)
    assert job.backend.rm.kill(application(job)["id"], "a test")
    until(lambda: application(job)["state"] == "KILLED")
    lost = users.run(ada, note, "%submarine.python(local)\nprint(x)")
    assert lost["status"] == "ERROR"
    assert "The container of the kernel is gone." in text_of(lost)
    assert "The variables of this note are lost. Run the paragraphs again" in text_of(lost)
    again = users.run(ada, note, "%submarine.python(local)\nprint('x' in globals())")
    assert text_of(again).strip() == "False", text_of(again)
    # An exit of the code frees the container.
    (second,) = (
        one
        for one in session_as(users.cluster, ada, server.home / f"of-{ada}").jobs()
        if not one.state.ended
    )
    users.run(ada, note, "%submarine.python(local)\nexit()")
    until(lambda: application(users.job(ada, second.job_id))["state"] == "FINISHED")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("none", 'There is no kernel "none". Kernels in a container are gpus.'),
        (
            "plain",
            'The kernel "plain" does not run in a container. Kernels in a container are gpus.',
        ),
    ],
)
def test_other_kernels_are_refused(users: Users, name: str, sentence: str) -> None:
    users.login(users.names[0])
    users.server.configure("submarine", properties={SESSION_KERNEL: name})
    try:
        note = users.server.note(f"refused {name}")
        refused = note.run(note.add("%submarine.python(local)\nprint(1)"), JOB)
    finally:
        users.server.configure("submarine", properties={SESSION_KERNEL: "gpus"})
    assert refused["status"] == "ERROR"
    assert text_of(refused).strip() == sentence
