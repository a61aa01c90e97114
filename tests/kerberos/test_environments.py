"""An environment that is built from a file, and its delta, on a cluster that requires Kerberos."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from submarine_minicluster import Minicluster
from tests.kerberos.helpers import User
from tests.python_projects import project, without_network

pytestmark = pytest.mark.cluster

PROGRAM = """
import os, sys
try:
    import mine
except ImportError:
    mine = None
print(getattr(mine, "VALUE", None), os.path.realpath(sys.prefix))
"""


def environments(user: User) -> list[dict[str, Any]]:
    done = user.run("env", "list", "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_an_environment_and_its_delta(kerberos_minicluster: Minicluster, tmp_path: Path) -> None:
    alice = User(kerberos_minicluster, "alice", tmp_path / "alice")
    project(alice.directory / "mine", "mine")
    program = alice.file("program.py", PROGRAM)
    listing = Path(alice.file("requirements.txt", "# nothing yet\n"))
    env = without_network(tmp_path / "uv-cache")
    words = ("run", program, "--memory", "256M", "--wait", "--python-env")
    found = []
    for value in ("None", "1.0"):
        job = alice.json(*words, "requirements:requirements.txt", env=env)
        shown = alice.json("show", job["job_id"])
        assert shown["state"] == "SUCCEEDED", shown
        line = alice.run("logs", job["job_id"]).stdout.split()
        assert line[0] == value
        assert "usercache/alice/" in line[1]
        found.append(line[1])
        listing.write_text("./mine\n")
    assert found[0] != found[1]
    rows = environments(alice)
    assert sorted(bool(row["base"]) for row in rows) == [False, True]
    (delta,) = (row for row in rows if row["base"])
    assert delta["size"] < 100_000
    done = alice.run("env", "rm", delta["digest"])
    assert done.returncode == 0, done.stderr
    assert len(environments(alice)) == 1


def test_yarn_keeps_a_published_environment_for_all_users(
    kerberos_minicluster: Minicluster, tmp_path: Path
) -> None:
    users = [User(kerberos_minicluster, name, tmp_path / name) for name in ("alice", "bob")]
    alice, bob = users
    project(alice.directory / "mine", "mine")
    alice.file("requirements.txt", "./mine\n")
    env = without_network(tmp_path / "uv-cache")
    uri = f"{kerberos_minicluster.default_fs}/tmp/{uuid.uuid4().hex}/mine.tar.gz"
    words = ("env", "publish", "requirements:requirements.txt")
    done = alice.run(*words, uri, env=env)
    assert done.returncode == 0, done.stderr
    assert f"--python-env shared:{uri}" in done.stdout
    private = f"{kerberos_minicluster.default_fs}/user/alice/private/mine.tar.gz"
    refused = alice.run(*words, private, env=env)
    assert refused.returncode == 2
    assert "not all users may search the directory /user/alice" in refused.stderr
    places = []
    for user in users:
        program = user.file("program.py", PROGRAM)
        job = user.json(
            *("run", program, "--memory", "256M", "--wait"), "--python-env", f"shared:{uri}"
        )
        assert user.json("show", job["job_id"])["state"] == "SUCCEEDED", job
        value, place = user.run("logs", job["job_id"]).stdout.split()
        assert value == "1.0"
        places.append(place)
    assert places[0] == places[1]
    assert "/filecache/" in places[0]
    assert "usercache" not in places[0]
    again = bob.run("env", "publish", "auto", uri)
    assert again.returncode == 2
    assert "exists already" in again.stderr
