"""Jobs of alice that she shares with bob, on a cluster that checks identities and ACLs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.backends.yarn.driver import stop_directory
from submarine_minicluster import Minicluster
from submarine_minicluster.hadoop import RestError, SecureWebHdfs, get_json, http_request
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

PROGRAM = """\
import os, pathlib, time
pathlib.Path(os.environ["SUBMARINE_MODEL_DIR"], "weights.txt").write_text("the weights")
print("a line of", os.environ["WHAT"], flush=True)
time.sleep(0 if os.environ["WHAT"] == "private" else 900)
"""
CONTAINERS = "/ws/v1/node/containers/"
SECRET = "a-value-that-only-the-program-has"

Submarine = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def submarine(
    kerberos_minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Submarine]:
    """Run a command as a user, each with an index of jobs of its own."""
    command = str(Path(sys.executable).with_name("submarine"))
    states = {user: tmp_path_factory.mktemp(user) for user in ("alice", "bob")}

    def run(user: str, *words: str) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, **kerberos_minicluster.environ(user), "SUBMARINE_BACKEND": "yarn"}
        environ.pop("JAVA_TOOL_OPTIONS", None)
        environ |= {"XDG_STATE_HOME": str(states[user]), "A_TOKEN": SECRET}
        return subprocess.run(
            (command, *words), env=environ, capture_output=True, text=True, timeout=300,
            cwd=states[user],
        )  # fmt: skip

    yield run
    for folder in states.values():
        for driver in folder.glob("jupyter-submarine/driver/*"):
            stop_directory(driver)


def done(ran: subprocess.CompletedProcess[str]) -> str:
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def jobs(
    submarine: Submarine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """The ids of three jobs of alice: ended, and running and shared in two ways."""
    program = tmp_path_factory.mktemp("program") / "train.py"
    program.write_text(PROGRAM)
    ids: dict[str, str] = {}
    share = {
        "private": (),
        "viewed": ("--share", "view:bob", "--secret", "A_TOKEN"),
        "changed": ("--share", "view:@bob", "--share", "modify:bob"),
    }
    try:
        for what, words in share.items():
            ran = submarine(
                "alice", "run", str(program), "--name", what, "--memory", "256M", "--json",
                "--env", f"WHAT={what}", *words,
            )  # fmt: skip
            ids[what] = json.loads(done(ran))["job_id"]
        done(submarine("alice", "wait", ids["private"]))
        for what in ("viewed", "changed"):
            until(partial(is_running, submarine, ids[what]), "the job runs", 240)
        yield ids
    finally:
        for job in ids.values():
            submarine("alice", "cancel", job, "--yes")


def is_running(submarine: Submarine, job: str) -> bool:
    return state(submarine, job) == "RUNNING"


def state(submarine: Submarine, job: str, user: str = "alice") -> str:
    return str(record(submarine, job, user)["state"])


def record(submarine: Submarine, job: str, user: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done(submarine(user, "show", job, "--json")))
    return found


def home(cluster: Minicluster, user: str) -> SecureWebHdfs:
    return SecureWebHdfs(cluster.url("namenode"), cluster.access(user))


def directory(job: str) -> str:
    return f"/user/alice/submarine/{job.rsplit('-', 2)[1][:6]}/{job}"


def readable(cluster: Minicluster, user: str, path: str) -> bool:
    try:
        home(cluster, user).call("GET", path, "CHECKACCESS", fsaction="r--")
    except RestError as error:
        if "Permission denied" not in str(error):
            raise
        return False
    return True


def files(cluster: Minicluster, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """All files below a directory, as alice sees them."""
    listed = home(cluster, "alice").call("GET", path, "LISTSTATUS")["FileStatuses"]["FileStatus"]
    for entry in listed:
        if entry["type"] == "DIRECTORY":
            yield from files(cluster, f"{path}/{entry['pathSuffix']}")
        else:
            yield f"{path}/{entry['pathSuffix']}", entry


def test_a_private_job_is_closed_to_others(
    kerberos_minicluster: Minicluster, submarine: Submarine, jobs: dict[str, str]
) -> None:
    shown = submarine("bob", "show", f"alice/{jobs['private']}")
    assert shown.returncode != 0
    assert "is not shared with you" in shown.stderr
    assert "--share view:bob" in shown.stderr
    for path, _entry in files(kerberos_minicluster, directory(jobs["private"])):
        assert not readable(kerberos_minicluster, "bob", path)
    with pytest.raises(RestError, match="Permission denied: user=bob"):
        home(kerberos_minicluster, "bob").call("GET", "/user/alice/submarine", "LISTSTATUS")


def test_a_viewer_sees_the_job_and_no_secret(
    kerberos_minicluster: Minicluster, submarine: Submarine, jobs: dict[str, str]
) -> None:
    job = jobs["viewed"]
    shown = submarine("bob", "show", f"alice/{job}")
    assert f"{job} is a job of alice." in shown.stderr
    assert "RUNNING" in done(shown)
    assert "Shared with bob (view)." in record(submarine, job, "alice")["notes"]
    until(
        lambda: "a line of viewed" in done(submarine("bob", "logs", job)),
        "the uploaded log is readable",
        60,
    )
    listed = json.loads(done(submarine("bob", "list", "--user", "alice", "--json")))
    assert {jobs["viewed"], jobs["changed"]} <= {row["job_id"] for row in listed}
    assert jobs["private"] not in {row["job_id"] for row in listed}
    modes = {path.rpartition("/")[2]: entry["permission"] for path, entry in
             files(kerberos_minicluster, directory(job))}  # fmt: skip
    assert modes["spec.json"] == "640"
    for path, entry in files(kerberos_minicluster, directory(job)):
        secret = path.rpartition("/")[2] in ("secret.json", "secret-env.json")
        assert (entry["permission"] == "600") is secret, path
        assert readable(kerberos_minicluster, "bob", path) is not secret, path
    assert "secret-env.json" in modes
    # The port of the job is for its owner: bob has no token.
    assert record(submarine, job, "bob")["behind"] is not None


def test_a_viewer_may_not_cancel_or_rerun(submarine: Submarine, jobs: dict[str, str]) -> None:
    job = jobs["viewed"]
    done(submarine("bob", "show", f"alice/{job}"))
    refused = submarine("bob", "cancel", job, "--yes")
    assert refused.returncode == 2
    assert "bob may not end application_" in refused.stderr
    assert "requires the modify ACL of the job" in refused.stderr
    refused = submarine("bob", "rerun", job, "--yes")
    assert refused.returncode == 2
    assert f"bob may not run {job} of alice again: that requires the modify ACL" in refused.stderr
    assert state(submarine, job) == "RUNNING"


def test_the_view_acl_opens_the_pages_of_yarn(
    kerberos_minicluster: Minicluster, submarine: Submarine, jobs: dict[str, str]
) -> None:
    def log_address(what: str, user: str) -> str:
        application = record(submarine, jobs[what], "alice")["application_id"]
        rm = kerberos_minicluster.url("resourcemanager")
        address = f"{rm}/ws/v1/cluster/apps/{application}"
        app = get_json(address, kerberos_minicluster.access(user))["app"]
        return str(app.get("amContainerLogs", ""))

    for what in ("viewed", "changed"):
        assert log_address(what, "bob") == log_address(what, "alice")
    assert log_address("private", "alice")
    assert not log_address("private", "bob")
    listing = log_address("viewed", "alice").replace("/node/containerlogs/", CONTAINERS)
    listing = f"{listing.rpartition('/')[0]}/logs"
    bob = kerberos_minicluster.access("bob")
    assert http_request("GET", listing, access=bob, accept="application/json")[0] == 200


def test_with_the_modify_acl_another_user_reruns_and_cancels(
    submarine: Submarine, jobs: dict[str, str]
) -> None:
    job = jobs["changed"]
    done(submarine("bob", "show", f"alice/{job}"))
    again = json.loads(done(submarine("bob", "rerun", job, "--yes", "--json")))["job_id"]
    try:
        rerun = record(submarine, again, "bob")
        assert rerun["user"] == "bob"
        assert not any("Shared" in note for note in rerun["notes"])
    finally:
        done(submarine("bob", "cancel", again, "--yes"))
    cancelled = done(submarine("bob", "cancel", job, "--yes"))
    assert "has ended" in cancelled
    ended = record(submarine, job, "alice")
    assert ended["state"] in ("CANCELLED", "FAILED")
    assert "bob" in json.dumps(ended)


def test_the_record_and_the_model_of_an_ended_job_are_shared(
    kerberos_minicluster: Minicluster, submarine: Submarine, jobs: dict[str, str]
) -> None:
    job = jobs["viewed"]
    done(submarine("alice", "cancel", job, "--yes"))
    ended = record(submarine, job, "bob")
    assert ended["state"] == "CANCELLED"
    assert "weights.txt" in json.dumps(ended["outputs"])
    listed = dict(files(kerberos_minicluster, directory(job)))
    names = {path[len(directory(job)) + 1 :] for path in listed}
    assert {"record.json", "model/weights.txt"} <= names
    assert not any(name.endswith("secret-env.json") for name in names)
    for name in names - {"secret.json"}:
        assert readable(kerberos_minicluster, "bob", f"{directory(job)}/{name}"), name
    assert not readable(kerberos_minicluster, "bob", f"{directory(job)}/secret.json")
