"""Users of a Zeppelin whose service principal acts for them on a cluster with Kerberos."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.driver import read_running, stop_driver
from submarine_jobs.client import Job, Session
from submarine_jobs.errors import StorageError, SubmarineError
from submarine_jobs.model import Profile
from submarine_kernel.kernelspecs import install_kernel, provisioning
from submarine_minicluster import Minicluster
from submarine_zeppelin.interface import SESSION_KERNEL
from tests.waiting import until
from tests.zeppelin.server import Note, Zeppelin
from tests.zeppelin.test_notes import JOB, jobs_in, text_of

pytestmark = [pytest.mark.cluster, pytest.mark.full]

USERS = ("alice", "bob")
PROGRAM = """\
%submarine.python
import os, time
print('words of', {user!r}, [name for name in os.environ if 'KEYTAB' in name], flush=True)
{then}
"""
REFUSAL = (
    "The cluster does not allow hub to act for carol. Its operator allows it with "
    "hadoop.proxyuser.NAME.hosts and .users (or .groups) in the core-site.xml of the NameNode and "
    "the ResourceManager."
)
LOOKS = """\
import os
x = 41
keys = [name for name in os.environ if "KEYTAB" in name]
print(os.environ["SUBMARINE_JOB_ID"], keys)
"""
APPLICATION = {
    "user": "carol",
    "master": {"script": "true", "resources": {"memory": "512 MiB", "vcores": 1}},
}
WORKFLOW = """\
%submarine workflow nightly
nodes:
  - name: only
    cells: [main]
"""


@pytest.fixture(scope="module")
def server(
    kerberos_minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Zeppelin]:
    """A Zeppelin with logins and the keytab of `hub`, which may act for alice and bob."""
    cluster, home = kerberos_minicluster, tmp_path_factory.mktemp("zeppelin")
    stanza = provisioning("box", {"memory": "400M"})
    install_kernel(name="box", prefix=str(home), container=stanza)
    found = {"JUPYTER_PATH": str(home / "share" / "jupyter")}
    made = Zeppelin(home, {**environment(cluster), **found})
    made.install(
        **{
            "SUBMARINE_HADOOP_KEYTAB": str(cluster.keytab("hub")),
            "SUBMARINE_HADOOP_PRINCIPAL": cluster.access("hub").principal,
            "zeppelin.submarine.auth.type": "kerberos",
        }
    )
    made.admit(**{user: f"of-{user}" for user in (*USERS, "carol")})
    try:
        made.start()
        yield made
    finally:
        made.close()


def environment(cluster: Minicluster) -> dict[str, str]:
    """A client of the cluster without a ticket cache."""
    return {**cluster.environ(), "KRB5CCNAME": "FILE:/nonexistent/tickets"}


@pytest.fixture
def client(kerberos_minicluster: Minicluster, monkeypatch: pytest.MonkeyPatch) -> Minicluster:
    """The cluster, with this process as its client: it acts by keytabs."""
    for name, value in environment(kerberos_minicluster).items():
        monkeypatch.setenv(name, value)
    return kerberos_minicluster


def session_of(cluster: Minicluster, service: str, state: Path, user: str | None = None) -> Session:
    """The cluster as a user with a keytab sees it, who may act for another."""
    profile = Profile(
        backend="yarn",
        hadoop_conf_dir=cluster.layout.client_conf,
        keytab=cluster.keytab(service),
        principal=cluster.access(service).principal,
        proxy_user=user,
        state_dir=state,
    )
    return Session(profile)


class User:
    """A user's note on the server."""

    def __init__(self, server: Zeppelin, name: str) -> None:
        self.server, self.name = server, name
        self.login()
        program = PROGRAM.format(user=name, then="time.sleep(3600)")
        texts = (("main", program), ("", f"%submarine run of-{name} --memory 256M"))
        self.note: Note = server.note(f"of {name}", *texts)
        self.command = self.note.paragraphs[1]

    def login(self) -> None:
        self.server.login(self.name, f"of-{self.name}")

    def run(self, text: str) -> dict[str, Any]:
        self.login()
        return self.note.run(self.note.add(text), JOB)

    def start(self) -> dict[str, Any]:
        self.login()
        return self.note.run(self.command, JOB)

    def start_job(self) -> str:
        ran = self.start()
        assert ran["status"] == "FINISHED", text_of(ran) + self.server.log()
        return min(jobs_in(ran))


def test_jobs_and_files_belong_to_each_user(
    client: Minicluster, server: Zeppelin, tmp_path: Path
) -> None:
    users = {name: User(server, name) for name in USERS}
    alice, bob = users.values()
    jobs: dict[str, Job] = {}
    try:
        for name, user in users.items():
            own = session_of(client, name, tmp_path / f"of-{name}")
            jobs[name] = own.job(user.start_job())
        for name, user in users.items():
            user.login()
            user.note.awaited(
                user.command, lambda now, name=name: f"words of {name} []" in text_of(now), JOB
            )
        check_owners(jobs)
        # One process acts for both users; each has an own driver and state directory.
        (process,) = server.interpreters("submarine")
        drivers = {
            folder.relative_to(server.home).parts[2]: read_running(folder)
            for folder in server.home.glob("state/users/*/driver/*")
        }
        assert drivers.keys() == set(USERS)
        assert all(one is not None and psutil.pid_exists(one.pid) for one in drivers.values())
        # Each user finds and cancels the own job only.
        listed = text_of(bob.run("%submarine list"))
        assert jobs["bob"].id in listed
        assert jobs["alice"].id not in listed
        for verb in ("show", "logs", "cancel"):
            refused = bob.run(f"%submarine {verb} {jobs['alice'].id}")
            assert refused["status"] == "ERROR"
            assert "There is no job" in text_of(refused)
        for name, user in users.items():
            done = user.run(f"%submarine cancel {jobs[name].id}")
            assert done["status"] == "FINISHED", text_of(done)
            user.note.awaited(user.command, lambda now: "CANCELLED" in text_of(now), JOB)
            assert jobs[name].record().state.ended
        check_programs_have_no_keytab(alice, process.pid)
    finally:
        for job in jobs.values():
            if not job.record().state.ended:
                job.cancel("the test is over")


def check_owners(jobs: dict[str, Job]) -> None:
    """YARN and HDFS name each job's user as its owner, and hide its files from the other."""
    for name, job in jobs.items():
        assert job.record().user == name
        assert isinstance(job.backend, YarnBackend)
        application = (job.directory.read_json("application.json") or {})["application_id"]
        assert job.backend.rm.get(f"/apps/{application}")["app"]["user"] == name
        storage, root = job.backend.job_root()
        entries = [*storage.list_directory(root), *storage.list_directory(job.directory.path)]
        assert {entry.owner for entry in entries} == {name}
    storage, _ = jobs["bob"].backend.job_root()
    with pytest.raises(StorageError, match="permission denied"):
        storage.list_directory(jobs["alice"].directory.path)


def check_programs_have_no_keytab(alice: User, interpreter: int) -> None:
    """Shells, kernels and programs of workflows do not inherit keytab and principal."""
    shown = text_of(alice.run("%submarine.sh\nenv"))
    assert "HADOOP_CONF_DIR" in shown
    for word in ("KEYTAB", "PRINCIPAL", ".keytab"):
        assert word not in shown
    code = "import os\nprint(sorted(name for name in os.environ if 'SUBMARINE_HADOOP' in name))"
    assert "[]" in text_of(alice.run(f"%submarine.python(local)\n{code}"))
    for child in psutil.Process(interpreter).children(recursive=True):
        assert "java" in child.name() or "KEYTAB" not in "".join(child.environ())
    alice.run(WORKFLOW)
    refused = alice.run("%submarine workflow run nightly")
    assert refused["status"] == "ERROR"
    assert "do not receive Zeppelin's keytab" in text_of(refused)
    refused = alice.run("%submarine login")
    assert refused["status"] == "ERROR"
    assert "A paragraph cannot ask for a password" in text_of(refused)


def test_sessions_in_containers_are_the_users(
    client: Minicluster, server: Zeppelin, tmp_path: Path
) -> None:
    """The container belongs to the user, whom Zeppelin's principal acts for, and has no keytab."""
    alice = User(server, "alice")
    server.configure("submarine", properties={SESSION_KERNEL: "box"})
    try:
        shown = text_of(alice.run(f"%submarine.python(local)\n{LOOKS}"))
        job_id, _, keys = shown.strip().partition(" ")
        assert keys == "[]", shown + server.log()
        job = session_of(client, "alice", tmp_path).job(job_id)
        assert job.record().user == "alice"
        assert running_as(job) == ("alice", "RUNNING")
        counted = text_of(alice.run("%submarine.python(local)\nx + 1"))
        assert counted.strip() == "42"
        refused = User(server, "carol").run("%submarine.python(local)\nprint(1)")
        assert refused["status"] == "ERROR"
        assert text_of(refused).strip() == REFUSAL
    finally:
        alice.login()
        server.configure("submarine", properties={SESSION_KERNEL: ""})
    # The changed setting restarts the interpreter, which ends its sessions.
    until(lambda: running_as(job) == ("alice", "FINISHED"), seconds=JOB)


def running_as(job: Job) -> tuple[str, str]:
    """The user and the state of a job's application."""
    assert isinstance(job.backend, YarnBackend)
    application = (job.directory.read_json("application.json") or {})["application_id"]
    app = job.backend.rm.get(f"/apps/{application}")["app"]
    return app["user"], app["state"]


def test_a_user_is_refused_with_one_sentence(server: Zeppelin) -> None:
    refused = User(server, "carol").start()
    assert refused["status"] == "ERROR"
    assert text_of(refused).strip() == REFUSAL


def test_all_interfaces_refuse_a_user_with_the_same_sentence(
    client: Minicluster, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    backend = session_of(client, "hub", tmp_path, "carol").backend()
    assert isinstance(backend, YarnBackend)
    request.addfinalizer(lambda: stop_driver(backend.profile))
    storage, root = backend.job_root()
    for call in (
        lambda: backend.rm.get("/info"),
        lambda: storage.list_directory(root),
        lambda: storage.make_directory(root),
        lambda: backend.driver.call(lambda channel: channel.submit(APPLICATION, 60.0)),
    ):
        with pytest.raises(SubmarineError) as refused:
            call()
        assert str(refused.value) == REFUSAL
