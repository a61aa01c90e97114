"""A kernel in a container with Kerberos: it watches jobs by tokens, and submits by a ticket."""

from __future__ import annotations

import ast
import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.client.token_deliveries import deliver
from submarine_jobs.config import load_config
from submarine_kernel.kernelspecs import install_kernel, provisioning
from submarine_minicluster import Minicluster
from submarine_runtime.protocol import State
from tests.kerberos.helpers import User
from tests.notebook.conftest import Notebook, Ran
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full, pytest.mark.timeout(600)]

NAME = "inside"
#: Prints what of the container could authenticate it, by the container's own code.
LOOKS = """\
import os
from submarine_runtime.kerberos import GssError, TokenFile, credential_state
try:
    ticket = credential_state().principal
except GssError:
    ticket = ""
kinds = sorted({token.kind for token in TokenFile().tokens()})
directory = os.path.dirname(os.environ["HADOOP_TOKEN_FILE_LOCATION"])
keys = [name for _, _, names in os.walk(directory) for name in names
        if name.startswith("krb5cc") or name.endswith(".keytab")]
print([directory, kinds, ticket, keys])
"""
#: The tokens by which a session of this kernel signs in; the first call creates the session.
SESSION = """\
from submarine_jobs.client import Session
from submarine_jobs.client.token_deliveries import deliver
from submarine_jobs.config import load_config
session = Session(load_config().profile)
def present():
    tokens = session.backend().identity.tokens
    found = tokens.find("HDFS_DELEGATION_TOKEN") if tokens is not None else []
    return [token.identifier.hex() for token in found]
"""
#: Ends when its tokens are replaced.
WAITS = """\
%%submarine run waits --memory 256M
import os, time
from pathlib import Path
file = Path(os.environ["HADOOP_TOKEN_FILE_LOCATION"])
first = file.read_bytes()
print("begins", flush=True)
while file.read_bytes() == first:
    time.sleep(0.2)
print("has fresh tokens", flush=True)
"""


@pytest.fixture(scope="module")
def alice(kerberos_minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> User:
    return User(kerberos_minicluster, "alice", tmp_path_factory.mktemp("users") / "alice")


@pytest.fixture(scope="module")
def session(alice: User) -> Iterator[Session]:
    """The session of the Jupyter server that owns the kernel: this process, with a ticket."""
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() - alice.environ.keys():
            patch.delenv(name)
        for name, value in alice.environ.items():
            patch.setenv(name, value)
        patch.setenv("JUPYTER_RUNTIME_DIR", str(alice.directory / "runtime"))
        yield Session(load_config().profile)


@pytest.fixture(scope="module")
def notebook(alice: User, session: Session) -> Iterator[Notebook]:
    """A notebook whose kernel runs in a container."""
    stanza = provisioning(NAME, {"backend": "yarn", "memory": "1G"})
    install_kernel(name=NAME, prefix=str(alice.directory), container=stanza)
    kernels = alice.directory / "share" / "jupyter" / "kernels"
    file = kernels / NAME / "kernel.json"
    # The code under test need not be that of the interpreter's site-packages.
    variables = {"SUBMARINE_BACKEND": "yarn", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    file.write_text(json.dumps({**json.loads(file.read_text()), "env": variables}))
    opened = Notebook(alice.directory, kernels, NAME, environment=variables)
    with contextlib.closing(opened):
        yield opened


@pytest.fixture(scope="module")
def kernel_job(notebook: Notebook, session: Session) -> Job:
    """The job of the notebook's kernel."""
    return session.job(session.store.newest()[0].job_id)


def printed(notebook: Notebook, code: str) -> str:
    """Run a cell that succeeds, and return its output."""
    return notebook.good(code).stdout


def answer(notebook: Notebook, code: str, word: str) -> Ran:
    """Run a cell that asks a question."""
    ran = notebook.send(code)
    asked = notebook.client.get_stdin_msg(timeout=60)["content"]
    assert asked["password"], asked
    notebook.client.input(word)
    return notebook.wait(ran)


def shown(ran: Ran) -> str:
    """All texts of a cell."""
    cards = [str(item["data"].get("text/plain")) for item in (*ran.displays, *ran.updates)]
    return "\n".join([ran.stdout, ran.stderr, ran.evalue, *cards])


def test_the_container_has_tokens_only(notebook: Notebook) -> None:
    notebook.good("x = 42")
    _directory, kinds, ticket, keys = ast.literal_eval(printed(notebook, LOOKS))
    assert {"HDFS_DELEGATION_TOKEN", "RM_DELEGATION_TOKEN"} <= set(kinds)
    assert (ticket, keys) == ("", [])


def test_it_watches_by_tokens_and_loses_nothing(
    notebook: Notebook, alice: User, session: Session, kernel_job: Job
) -> None:
    hello = alice.file("hello.py", "print('hello from', 'a job')\n")
    job = alice.json("run", hello, "--memory", "256M", "--wait")["job_id"]
    assert job in shown(notebook.good("%submarine list"))
    assert "SUCCEEDED" in shown(notebook.good(f"%submarine show {job}"))
    assert "hello from a job" in shown(notebook.good(f"%submarine logs {job}"))
    # The owner of the kernel delivers fresh tokens, which an existing session uses at once.
    first = printed(notebook, f"{SESSION}print(present())")
    provisioner: Any = notebook.manager.provisioner
    assert kernel_job.id in provisioner._session.token_deliveries.receivers
    assert deliver(kernel_job, session.backend())
    until(lambda: printed(notebook, "print(present())") != first)
    listed = "print([record.job_id for record in session.jobs(9)])"
    assert job in printed(notebook, listed)
    assert printed(notebook, "print(x)") == "42\n"


def test_without_a_ticket_nothing_is_uploaded(notebook: Notebook, session: Session) -> None:
    before = {record.job_id for record in session.jobs(1000)}
    ran = notebook.run("%%submarine run refused --memory 256M\nprint('never')")
    assert ran.status == "error"
    assert "you can watch jobs, but not submit one. Get a ticket with `%submarine login`" in shown(
        ran
    )
    assert "Traceback" not in ran.traceback
    assert {record.job_id for record in session.jobs(1000)} == before
    ran = notebook.run(
        "deliver(session.jobs(1) and session.job(session.jobs(1)[0].job_id), session.backend())"
    )
    assert "this container has no ticket" in shown(ran)


def test_a_login_in_the_container(
    notebook: Notebook, alice: User, session: Session, kernel_job: Job
) -> None:
    """The ticket is private to the container; a job is watched live and gets fresh tokens."""
    password = alice.cluster.password("alice")
    assert "There is no ticket" in shown(answer(notebook, "%submarine login", "wrong"))
    ran = answer(notebook, "%submarine login", password)
    assert "alice@MINICLUSTER.TEST has a ticket for" in shown(ran)
    assert password not in shown(ran)
    directory, _kinds, ticket, keys = ast.literal_eval(printed(notebook, LOOKS))
    assert (ticket, keys) == ("alice@MINICLUSTER.TEST", ["krb5cc"])
    cache = Path(directory, "krb5cc")
    assert cache.stat().st_mode & 0o777 == 0o600

    started = notebook.good(WAITS)
    job = started.cards[0]["job_id"]
    until(lambda: notebook.listen(0.2) or "begins" in _last(started), "the log is live")
    assert "True" in printed(
        notebook, f"job = session.job({job!r})\nprint(deliver(job, session.backend()))"
    )
    waited = notebook.good(f"%submarine wait {job}")
    assert "has fresh tokens" in shown(waited) + shown(started)
    assert session.job(job).record().state is State.SUCCEEDED

    ticket_bytes = cache.read_bytes()
    for each in (kernel_job, session.job(job)):
        storage, root = each.directory.storage, each.directory.path
        for path, _status in storage.walk(root):
            assert b"krb5cc" not in storage.read(f"{root}/{path}")[:1000], path
            assert ticket_bytes[-200:] not in storage.read(f"{root}/{path}"), path
    # The tokens of the kernel's own application are still valid.
    hidden = "import os\nos.environ['KRB5CCNAME'] = 'FILE:/nowhere'\nprint(present() != [])"
    notebook.good(hidden)
    assert job in shown(notebook.good("%submarine list"))


def _last(ran: Ran) -> str:
    """The newest text of a card."""
    return "\n".join(str(item["data"].get("text/plain")) for item in ran.updates[-3:])


def test_the_end_removes_the_ticket(notebook: Notebook, kernel_job: Job) -> None:
    directory = Path(ast.literal_eval(printed(notebook, LOOKS))[0])
    assert (directory / "krb5cc").exists()
    notebook.close()
    assert kernel_job.wait(120).state is State.SUCCEEDED
    until(lambda: not directory.exists(), "the container is removed")
