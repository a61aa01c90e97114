"""A notebook server in a container with Kerberos: its notebooks are kept and restored."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.config import load_config
from submarine_minicluster import Minicluster
from submarine_runtime.protocol import State
from tests.kerberos.helpers import User
from tests.kernel.notebook_client import HttpClient

pytestmark = [pytest.mark.cluster, pytest.mark.full, pytest.mark.timeout(600)]

#: Runs in a kernel of the server, as its terminals do: lists by tokens, and submits nothing.
COMMANDS = """\
import subprocess, sys
for words in (["list"], ["run", "x.py", "--memory", "256M"]):
    open("x.py", "w").write("print(1)")
    done = subprocess.run([sys.executable, "-m", "submarine_jobs.cli", *words],
                          capture_output=True, text=True)
    print(done.returncode, done.stdout, done.stderr)
"""


@pytest.fixture
def alice(
    kerberos_minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[User]:
    """A user with the environment of this process, whose jobs are cancelled at the end."""
    user = User(kerberos_minicluster, "alice", tmp_path_factory.mktemp("server") / "alice")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in user.environ.items():
            patch.setenv(name, value)
        yield user
        for row in Session(load_config().profile).store.unfinished():
            user.run("cancel", row.job_id)


def start(user: User, *words: str) -> tuple[dict[str, Any], HttpClient, Job]:
    """Start a server whose kernels find the code under test."""
    size = ("--memory", "1G", "--idle", "10m")
    path = f"PYTHONPATH={os.environ.get('PYTHONPATH', '')}"
    done = user.run("notebook", "start", "--json", *size, "--env", path, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    job = Session(load_config().profile).job(found["job_id"])
    return found, HttpClient(job, found["page"], found["token"]), job


def test_notebooks_are_kept_and_restored(alice: User) -> None:
    found, client, job = start(alice)
    client.save("mine.ipynb", "kept with Kerberos")
    printed = asyncio.run(client.run(COMMANDS))
    assert "0 ID" in printed
    assert job.id in printed
    assert "you can watch jobs, but not submit one" in printed
    assert alice.run("notebook", "stop", job.id).returncode == 0
    assert job.wait(120).state is State.CANCELLED
    storage = job.directory.storage
    assert b"kept with Kerberos" in storage.read(job.directory.file("checkpoints/mine.ipynb"))
    assert found["token"].encode() not in storage.read(job.directory.file("record.json"))

    _found, client, job = start(alice, "--from", job.id)
    status, _headers, body = client.ask("GET", "/api/contents/mine.ipynb")
    assert (status, b"kept with Kerberos" in body) == (200, True)
