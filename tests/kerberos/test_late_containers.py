"""What still works after the maximum lifetime of a job's first tokens, by the cluster's setting.

A waiting command delivers tokens to the jobs. The NodeManager and a restarted application master
use those of the submission, or those that the ResourceManager obtains with
``yarn.resourcemanager.proxy-user-privileges.enabled``.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from submarine_minicluster import Minicluster, Settings
from tests.kerberos.helpers import User
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

RENEW, LIFETIME = 60, 150
#: Continues from its checkpoint.
COUNTS = """\
import os, pathlib, sys, time
folder = pathlib.Path(os.environ["SUBMARINE_CHECKPOINT_DIR"])
folder.mkdir(parents=True, exist_ok=True)
state = folder / "number.txt"
number = int(state.read_text()) if state.exists() else 0
print("begins at", number, flush=True)
while number < int(sys.argv[1]):
    number += 1
    state.write_text(str(number))
    time.sleep(2)
print("ends at", number, flush=True)
"""


@pytest.fixture(params=[True, False], ids=["privileges", "no privileges"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Minicluster]:
    parent = Path(tempfile.mkdtemp(prefix="submarine-test-"))
    found = Minicluster("late-containers", parent=parent)
    settings = Settings(
        kerberos=True,
        https=True,
        token_renew_interval=RENEW,
        token_max_lifetime=LIFETIME,
        proxy_user_privileges=request.param,
        memory_mb=16384,  # Two application masters at once.
    )
    try:
        found.start(settings)
        yield found
    finally:
        found.stop()
        shutil.rmtree(parent, ignore_errors=True)


def processes(application: str, number: int, word: str = "") -> list[psutil.Process]:
    """Processes of a container; only those with ``word`` in their command, if it is given."""
    name = re.compile(rf"{application.replace('application', 'container')}_\d\d_{number:06d}$")
    found = []
    for process in psutil.process_iter():
        try:
            if name.match(process.environ().get("CONTAINER_ID", "")) and (
                not word or word in process.cmdline()
            ):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def kill(application: str, number: int, word: str = "") -> None:
    """Kill processes of a container, as the operating system does without memory."""
    found = processes(application, number, word)
    assert found
    for process in found:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


@pytest.mark.timeout(900)
def test_after_the_lifetime_of_the_tokens(cluster: Minicluster, tmp_path: Path) -> None:
    privileges = cluster.saved.settings.proxy_user_privileges
    alice = User(cluster, "alice", tmp_path / "alice")
    checks = alice.run("doctor").stdout
    assert ("obtains new tokens to start containers" in checks) is privileges, checks
    assert ("YARN starts no further containers of it" in checks) is not privileges
    program = alice.file("counts.py", COUNTS)
    words = ("run", program, "--memory", "256M", "--num_workers", "2", "--name")
    waiting = alice.start(*words, "task", "--wait", "--", "140")
    assert alice.run(*words, "master", "--", "140").returncode == 0
    for name in ("task", "master"):
        until(lambda: state(alice, name) == "RUNNING", f"{name} runs", 240)  # noqa: B023
    time.sleep(LIFETIME + 20)
    task, master = (alice.json("show", name)["application_id"] for name in ("task", "master"))
    kill(task, 1, "coordinator")
    until(lambda: processes(task, 1, "coordinator"), "another coordinator", 60)
    until(lambda: state(alice, "task") == "RUNNING", "the job runs again", 60)
    kill(task, 3)
    kill(master, 1)
    # A new container of a node that has the files of the application: the job continues.
    output, errors = waiting.communicate(timeout=400)
    assert waiting.returncode == 0, output + errors
    shown = alice.json("show", "task")
    assert sorted(one["restarts"] for one in shown["tasks"]) == [0, 1]
    (restarted,) = [one["task"] for one in shown["tasks"] if one["restarts"]]
    log = alice.run("logs", "task", "--task", restarted).stdout
    begin = re.search(r"begins at (\d+)", log)
    assert begin is not None
    assert int(begin[1]) > 30
    assert "ends at 140" in log
    # Another application master reads HDFS with the tokens of the submission, in both clusters.
    until(lambda: state(alice, "master") == "FAILED", "the end of the other job", 120)
    shown = alice.json("show", "master")
    assert shown["reason"] == "master_lost"
    assert "the delegation tokens of the application have expired" in shown["detail"]
    # YARN collects the logs of the containers only with the tokens of the ResourceManager.
    collected = [str(cluster.layout.bin / "yarn"), "logs", "-applicationId", task]

    def collects() -> bool:
        done = subprocess.run(
            collected, env=alice.environ, capture_output=True, text=True, timeout=120
        )
        return "LogType:application.master.log" in done.stdout

    if privileges:
        until(collects, "the logs are collected", 120)
    else:
        time.sleep(10)
        assert not collects()


def state(user: User, job: str) -> str:
    return str(user.json("show", job)["state"])
