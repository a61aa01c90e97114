"""Jobs that run longer than the maximum lifetime of their first delegation tokens."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_minicluster import Minicluster, Settings
from submarine_minicluster.hadoop import SecureWebHdfs
from tests.kerberos.helpers import User
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

#: Seconds: the tokens must be renewed after the first, and expire after the second.
RENEW, LIFETIME = 60, 150
#: Reads HDFS by the token file at each step, and writes a checkpoint; fails once at a step.
TRAINS = """\
import json, os, pathlib, sys, time
from hdfs_native import Client
file_system, seconds, fails_at = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
rank = int(os.environ["SUBMARINE_INDEX"])
checkpoints = pathlib.Path(os.environ["SUBMARINE_CHECKPOINT_DIR"])
checkpoints.mkdir(parents=True, exist_ok=True)
state = checkpoints / f"state-{rank}.json"
step = json.loads(state.read_text()) if state.exists() else 0
print("rank", rank, "begins at", step, flush=True)
options = {"hadoop.security.authentication": "kerberos",
           "dfs.data.transfer.protection": "authentication"}
while step < seconds / 5:
    step += 1
    reader = Client(file_system, options).read("/user/alice/data.txt")
    print("rank", rank, "step", step, bytes(reader.read_range(0, len(reader))).decode(), flush=True)
    state.write_text(json.dumps(step))
    if rank == 1 and step == fails_at and not (checkpoints / "failed").exists():
        (checkpoints / "failed").touch()
        time.sleep(12)  # A snapshot contains both files.
        raise SystemExit(7)
    time.sleep(5)
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Minicluster]:
    """A cluster with short tokens."""
    parent = Path(tempfile.mkdtemp(prefix="submarine-test-"))
    found = Minicluster("short-tokens", parent=parent)
    settings = Settings(
        kerberos=True, https=True, token_renew_interval=RENEW, token_max_lifetime=LIFETIME
    )
    try:
        found.start(settings)
        SecureWebHdfs(found.url("namenode"), found.access("alice")).write(
            "/user/alice/data.txt", b"forty-two"
        )
        yield found
    finally:
        found.stop()
        shutil.rmtree(parent, ignore_errors=True)


@pytest.fixture
def alice(cluster: Minicluster, tmp_path: Path) -> User:
    return User(cluster, "alice", tmp_path / "alice")


def has_ended(user: User, job: str) -> bool:
    return user.json("show", job)["state"] in ("SUCCEEDED", "FAILED")


def steps(user: User, job: str, rank: int, *attempt: str) -> list[int]:
    """Numbers of the steps in the log of an attempt of a rank [the newest]."""
    words = (*("--task", f"worker:{rank}"), *(("--attempt", *attempt) if attempt else ()))
    text = user.run("logs", job, *words).stdout
    return [int(found) for found in re.findall(rf"rank {rank} step (\d+) forty-two", text)]


@pytest.mark.timeout(900)
def test_a_gang_loses_nothing_in_six_minutes(alice: User, cluster: Minicluster) -> None:
    """A waiting client delivers tokens; a worker restarts after the first ones have expired."""
    program = alice.file("train.py", TRAINS)
    words = ("run", program, "--memory", "256M", "--num_workers", "2", "--wait", "--name", "six")
    began = time.monotonic()
    done = alice.run(*words, "--", cluster.default_fs, "330", "40", seconds=840)
    assert done.returncode == 0, done.stdout + done.stderr
    assert time.monotonic() - began > 2 * LIFETIME
    shown = alice.json("show", "six")
    assert {task["task"]: task["restarts"] for task in shown["tasks"]} == {
        "worker:0": 0,
        "worker:1": 1,
    }
    assert steps(alice, "six", 0) == list(range(1, 67))
    assert steps(alice, "six", 1, "e1-a1") == list(range(1, 41))
    # The last snapshot of the first attempt contains its last step.
    assert steps(alice, "six", 1) == list(range(41, 67))
    assert not shown["warnings"]


@pytest.mark.timeout(900)
def test_a_keytab_supports_jobs_without_a_client(alice: User, cluster: Minicluster) -> None:
    program = alice.file("train.py", TRAINS)
    keytab = str(cluster.keytab("alice"))
    identity = ("--keytab", keytab, "--principal", "alice@MINICLUSTER.TEST")
    words = ("run", program, "--memory", "256M", *identity, "--distribute_keytab")
    seconds = str(LIFETIME + 2 * RENEW)
    for name, more in (("alone", ()), ("both", ("--num_workers", "2"))):
        done = alice.run(*words, "--name", name, *more, "--", cluster.default_fs, seconds, "0")
        assert done.returncode == 0, done.stderr
    for name in ("alone", "both"):
        until(lambda: has_ended(alice, name), f"the end of {name}", 600)  # noqa: B023
        shown = alice.json("show", name)
        assert shown["state"] == "SUCCEEDED", shown["detail"]
        assert steps(alice, name, 0) == list(range(1, int(float(seconds) / 5) + 1))
        directory = "/" + shown["job_dir"].split("/", 3)[3]
        hdfs = SecureWebHdfs(cluster.url("namenode"), cluster.access("alice"))
        assert not hdfs.exists(f"{directory}/user.keytab")
