"""Jobs on a cluster that requires Kerberos and HTTPS: identities, tokens, other users."""

from __future__ import annotations

import os
import pty
import re
import sys
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from submarine_minicluster import Minicluster
from submarine_minicluster.hadoop import RestError, SecureWebHdfs
from tests.kerberos.helpers import User
from tests.waiting import until

pytestmark = pytest.mark.cluster

#: Reads HDFS with its own client: the token of its container, found by the name in the URL.
READS = """\
import os, sys
from hdfs_native import Client
options = {"hadoop.security.authentication": "kerberos",
           "dfs.data.transfer.protection": "authentication"}
reader = Client(sys.argv[1], options).read("/user/alice/data.txt")
print("read", bytes(reader.read_range(0, len(reader))).decode(), flush=True)
print("mode %o" % (os.stat(os.environ["HADOOP_TOKEN_FILE_LOCATION"]).st_mode & 0o777))
"""
#: Reads a mounted directory with the client configuration that the agent wrote.
MOUNTED = """\
import os
from hdfs_native import Client
client = Client(config_dir=os.environ["HADOOP_CONF_DIR"])
path = "/" + os.environ["SUBMARINE_INPUT_T"].partition("://")[2].partition("/")[2]
for status in client.list_status(path):
    reader = client.read(status.path)
    print("read", bytes(reader.read_range(0, len(reader))).decode(), flush=True)
"""
#: Rank 1 hangs, and rank 0 waits for a connection.
HANGS = """\
import os, socket, time
listener = socket.create_server(("127.0.0.1", 0))
print("ready", flush=True)
if os.environ["RANK"] == "1":
    time.sleep(900)
listener.accept()
"""
#: Fails once in the second task, after both have started.
FAILS_ONCE = """\
import os, pathlib, time
rank = os.environ["RANK"]
marker = pathlib.Path(os.environ["MARKER"])
print("rank", rank, "begins", flush=True)
time.sleep(2)
if rank == "1" and not marker.exists():
    marker.touch()
    raise SystemExit(7)
time.sleep(2)
print("rank", rank, "ends", flush=True)
"""
#: Parts of a token or key: its form in URLs and headers, and the magic bytes of its file.
SECRETS = (b"delegation=", b"X-Hadoop-Delegation-Token", b"HDTS", b"Negotiate ")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("users")


@pytest.fixture(scope="module")
def alice(kerberos_minicluster: Minicluster, directory: Path) -> User:
    return User(kerberos_minicluster, "alice", directory / "alice")


@pytest.fixture(scope="module")
def bob(kerberos_minicluster: Minicluster, directory: Path) -> User:
    return User(kerberos_minicluster, "bob", directory / "bob")


@pytest.fixture(scope="module")
def hub(kerberos_minicluster: Minicluster, directory: Path) -> User:
    """A service with a keytab and without a ticket cache."""
    user = User(kerberos_minicluster, "hub", directory / "hub", ticket=False)
    keytab = str(kerberos_minicluster.keytab("hub"))
    user.environ |= {"SUBMARINE_KEYTAB": keytab, "SUBMARINE_PRINCIPAL": "hub@MINICLUSTER.TEST"}
    return user


@pytest.fixture(scope="module")
def jobs(
    alice: User, bob: User, hub: User, kerberos_minicluster: Minicluster
) -> dict[str, dict[str, str]]:
    """A job of each kind, submitted at the same time: their starts take most of the time."""
    home(kerberos_minicluster, "alice").write("/user/alice/data.txt", b"forty-two")
    keytab = str(kerberos_minicluster.keytab("bob"))
    fs = kerberos_minicluster.default_fs
    size = ("--memory", "256M", "--wait")
    reads, fails = alice.file("reads.py", READS), alice.file("fails.py", FAILS_ONCE)
    marker = alice.directory / "failed-once"
    hello = alice.file("hello.py", "import getpass, os\nprint('hello', os.getcwd())\n")
    no_ticket = {"KRB5CCNAME": f"FILE:{bob.directory / 'none'}"}
    with ThreadPoolExecutor() as pool:
        started = {
            "one": pool.submit(alice.json, "run", reads, *size, "--", fs),
            "gang": pool.submit(
                alice.json, "run", fails, *size, "--num_workers", "2", "--env", f"MARKER={marker}"
            ),
            "keytab": pool.submit(
                bob.json,
                *("run", hello, *size, "--keytab", keytab),
                *("--principal", "bob@MINICLUSTER.TEST"),
                env=no_ticket,
            ),
            "proxy": pool.submit(hub.json, "run", hello, *size, env={"HADOOP_PROXY_USER": "alice"}),
        }
        return {name: future.result() for name, future in started.items()}


def home(cluster: Minicluster, user: str) -> SecureWebHdfs:
    return SecureWebHdfs(cluster.url("namenode"), cluster.access(user))


def logs(user: User, job: dict[str, str], *words: str) -> str:
    return user.run("logs", job["job_id"], *words).stdout


def test_a_task_reads_hdfs_with_its_token(alice: User, jobs: dict[str, dict[str, str]]) -> None:
    assert logs(alice, jobs["one"]).splitlines() == ["read forty-two", "mode 600"]
    shown = alice.json("show", jobs["one"]["job_id"])
    assert (shown["state"], shown["user"]) == ("SUCCEEDED", "alice")


def test_a_mounted_input_is_read_with_the_token_and_another_cluster_is_refused(
    alice: User, kerberos_minicluster: Minicluster
) -> None:
    home(kerberos_minicluster, "alice").write("/user/alice/mounted é/data.txt", b"forty-two")
    program = alice.file("mounted.py", MOUNTED)
    words = ("run", program, "--memory", "256M", "--wait")
    job = alice.json(*words, "--input", "T=/user/alice/mounted é:mount")
    assert "read forty-two" in logs(alice, job)
    refused = alice.run(*words, "--input", "T=hdfs://elsewhere:8020/data:mount")
    assert refused.returncode == 2
    assert "the delegation tokens of a job are for that one only" in refused.stderr


def test_a_gang_restarts(alice: User, jobs: dict[str, dict[str, str]]) -> None:
    shown = alice.json("show", jobs["gang"]["job_id"])
    assert shown["state"] == "SUCCEEDED"
    assert {task["task"]: task["restarts"] for task in shown["tasks"]}["worker:1"] == 1
    assert all(task["log_url"].startswith("https://localhost:") for task in shown["tasks"])
    assert "rank 1 ends" in logs(alice, jobs["gang"], "--all")


@pytest.mark.full
def test_a_hang_is_reported_with_the_stacks(alice: User) -> None:
    hangs = alice.file("hangs.py", HANGS)
    job = alice.json("run", hangs, "--memory", "256M", "--num_workers", "2", "--stall", "10s")
    name = job["job_id"]
    try:

        def stalls() -> list[dict[str, Any]]:
            events = alice.json("show", name)["events"]
            return [event for event in events if event["kind"] == "stall"]

        [event] = until(stalls, seconds=180)
        assert "The others wait for rank 1 (worker:1)." in event["detail"]
        assert "time.sleep(900), hangs.py line 5" in event["detail"]
        shown = alice.json("stack", name, "--task", "worker:1")
        assert [group["tasks"] for group in shown["groups"]] == [["worker:1"]]
    finally:
        alice.run("cancel", name, "--yes")


def test_a_keytab_needs_no_ticket(
    bob: User, jobs: dict[str, dict[str, str]], kerberos_minicluster: Minicluster
) -> None:
    job = jobs["keytab"]
    shown = bob.json("show", job["job_id"])
    assert (shown["state"], shown["user"]) == ("SUCCEEDED", "bob")
    assert not (bob.directory / "none").exists()
    keytab = kerberos_minicluster.keytab("bob").read_bytes()
    for path, data in files(kerberos_minicluster, "bob", job_path(shown)):
        assert keytab not in data, path
        assert b"bob.keytab" not in data, path


def test_a_service_acts_for_a_user(
    alice: User, hub: User, jobs: dict[str, dict[str, str]], kerberos_minicluster: Minicluster
) -> None:
    shown = alice.json("show", jobs["proxy"]["job_id"])
    assert (shown["state"], shown["user"]) == ("SUCCEEDED", "alice")
    assert "usercache/alice/" in logs(alice, jobs["proxy"])
    status = home(kerberos_minicluster, "alice").call("GET", job_path(shown), "GETFILESTATUS")
    assert status["FileStatus"]["owner"] == "alice"
    refused = hub.run("run", alice.file("x.py", "1"), env={"HADOOP_PROXY_USER": "carol"})
    assert refused.returncode != 0
    assert "The cluster does not allow hub to act for carol." in refused.stderr


def test_without_a_ticket_each_command_says_what_to_do(
    kerberos_minicluster: Minicluster, directory: Path
) -> None:
    user = User(kerberos_minicluster, "alice", directory / "without", ticket=False)
    program = user.file("x.py", "1")
    for words in (("run", program, "--memory", "256M"), ("run", program, "--dry-run")):
        done = user.run(*words)
        assert done.returncode == 3, done.stderr
        assert "The cluster requires a Kerberos ticket: No Kerberos credentials" in done.stderr
        assert "`submarine login`" in done.stderr
        assert "Traceback" not in done.stderr
    checks = user.run("doctor").stdout
    assert re.search(r"error +kerberos ticket +The cluster requires a Kerberos ticket", checks)


def test_login_asks_for_the_password(alice: User, kerberos_minicluster: Minicluster) -> None:
    cache = alice.directory / "by-password"
    env = {"KRB5CCNAME": f"FILE:{cache}"}
    shown = answer_password(alice, env, "wrong")
    assert "There is no ticket for alice@MINICLUSTER.TEST" in shown
    assert not cache.exists()
    password = kerberos_minicluster.password("alice")
    shown = answer_password(alice, env, password)
    assert "alice@MINICLUSTER.TEST has a ticket for" in shown
    assert password not in shown
    assert cache.stat().st_mode & 0o777 == 0o600
    assert "is alice on the cluster" in alice.run("doctor", env=env).stdout
    refused = alice.run("login", "alice@MINICLUSTER.TEST", env=env)
    assert "The password cannot be asked for here." in refused.stderr


def answer_password(user: User, env: dict[str, str], password: str) -> str:
    """Run ``submarine login`` on a terminal, and return what it shows."""
    words = [sys.executable, "-m", "submarine_jobs.cli", "login", "alice@MINICLUSTER.TEST"]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(words[0], words, {**user.environ, **env})
    shown = b""
    with os.fdopen(terminal, "r+b", buffering=0) as stream, suppress(OSError):
        while piece := stream.read(4096):
            shown += piece
            if shown.endswith(b": "):
                stream.write(password.encode() + b"\n")
    os.waitpid(pid, 0)
    return shown.decode()


def test_a_dry_run_lists_inputs_by_the_ticket(
    alice: User, kerberos_minicluster: Minicluster
) -> None:
    home(kerberos_minicluster, "alice").write("/user/alice/input.txt", b"forty-two")
    program = alice.file("input.py", "1")
    words = ("--memory", "256M", "--dry-run", "--input", "data=/user/alice/input.txt")
    done = alice.run("run", program, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"data +worker:0 +download +1 +9 B", done.stdout), done.stdout


def test_doctor(alice: User) -> None:
    done = alice.run("doctor")
    assert re.search(r"ok +kerberos ticket +alice@MINICLUSTER.TEST is alice", done.stdout)
    assert done.returncode == 0, done.stdout


def test_no_file_of_a_job_contains_a_token(
    alice: User, jobs: dict[str, dict[str, str]], kerberos_minicluster: Minicluster
) -> None:
    for name in ("one", "gang"):
        path = job_path(alice.json("show", jobs[name]["job_id"]))
        found = list(files(kerberos_minicluster, "alice", path))
        assert len(found) > 5
        for file, data in found:
            assert not [secret for secret in SECRETS if secret in data], file
    for local in alice.directory.rglob("*"):
        if local.is_file() and local.stat().st_size < 1 << 20:
            assert not [secret for secret in SECRETS if secret in local.read_bytes()], local


def test_another_user_reads_nothing(
    bob: User, alice: User, jobs: dict[str, dict[str, str]], kerberos_minicluster: Minicluster
) -> None:
    path = job_path(alice.json("show", jobs["one"]["job_id"]))
    with pytest.raises(RestError, match="Permission denied: user=bob"):
        home(kerberos_minicluster, "bob").call("GET", path, "LISTSTATUS")
    listed = bob.run("list").stdout
    assert jobs["one"]["job_id"] not in listed
    assert jobs["keytab"]["job_id"] in listed


def job_path(shown: dict[str, str]) -> str:
    return "/" + str(shown["job_dir"]).split("/", 3)[3]


def files(cluster: Minicluster, user: str, path: str) -> Iterator[tuple[str, bytes]]:
    """Path and content of each file below a directory on HDFS."""
    hdfs = home(cluster, user)
    for entry in hdfs.call("GET", path, "LISTSTATUS")["FileStatuses"]["FileStatus"]:
        name = f"{path}/{entry['pathSuffix']}"
        if entry["type"] == "DIRECTORY":
            yield from files(cluster, user, name)
        else:
            yield name, hdfs.read(name)


def test_agent_unpacks_the_environment_of_a_job(alice: User) -> None:
    """The archive has only a link to the interpreter of this machine."""
    archive = alice.directory / "env.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        link = tarfile.TarInfo("bin/python3")
        link.type, link.linkname = tarfile.SYMTYPE, sys.executable
        tar.addfile(link)
    program = alice.file("where.py", "import sys\nprint(sys.executable)\n")
    size = ("--memory", "256M", "--wait")
    job = alice.json("run", program, *size, "--python-env", f"archive:{archive}")
    assert alice.json("show", job["job_id"])["state"] == "SUCCEEDED"
    assert "/python-env/bin/python3" in logs(alice, job)
