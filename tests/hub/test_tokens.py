"""A hub with a service principal: tokens for each user, and no user has the hub's keytab."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from submarine_minicluster import Minicluster
from submarine_minicluster.hadoop import REALM
from submarine_runtime.kerberos import HDFS_TOKEN, RM_TOKEN, parse_tokens
from tests.browser.calls import API
from tests.hub.conftest import USERS, require_hub
from tests.hub.hub import Hub
from tests.second_user import as_user
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

CONFIGURATION = """
import os
os.environ["KRB5_CONFIG"] = {krb5!r}
from submarine_server.hub import provide_tokens
provide_tokens(c, keytab={keytab!r}, principal={principal!r}, hadoop_conf_dir={conf!r},
               directory={directory!r}, interval={interval!r})
"""
#: Seconds between two pairs of tokens; a job and its submission take less.
INTERVAL = 90.0
#: The tokens of a job of several tasks are also those of its coordinator.
PROGRAMS = {"alice": ("--memory", "256M"), "bob": ("--num-workers", "2", "--memory", "256M")}


@pytest.fixture(scope="module")
def hub(kerberos_minicluster: Minicluster) -> Iterator[Hub]:
    """A hub on the cluster, with the servers of both users and no browser."""
    require_hub()
    cluster, layout = kerberos_minicluster, kerberos_minicluster.layout
    classpath = subprocess.run(
        [layout.bin / "yarn", "classpath"], capture_output=True, text=True, check=True
    ).stdout
    keytab = cluster.keytab("hub")
    scratch = Path(tempfile.mkdtemp(prefix="submarine-hub-"))
    environment = {
        "SUBMARINE_BACKEND": "yarn",
        "HADOOP_CONF_DIR": str(layout.client_conf),
        "KRB5_CONFIG": str(layout.krb5_conf),
        # No test user has a ticket, whatever the machine's default cache is.
        "KRB5CCNAME": str(scratch / "no-ticket"),
        "PATH": f"{layout.bin}{os.pathsep}{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}",
        **{k: v for k, v in cluster.environ("alice").items() if k == "JAVA_HOME"},
    }
    configuration = CONFIGURATION.format(
        krb5=str(layout.krb5_conf),
        keytab=str(keytab),
        principal=f"hub@{REALM}",
        conf=str(layout.client_conf),
        directory=str(scratch / "tokens"),
        interval=INTERVAL,
    )
    needed = [
        *(layout.client_conf, layout.bin, layout.krb5_conf, layout.truststore, keytab),
        Path(classpath.partition(os.pathsep)[0]).parent,
    ]
    made = Hub(scratch, USERS, environment, configuration, needed)
    try:
        if problem := made.namespace.problem():
            pytest.skip(f"no mount namespaces here: {problem}")
        made.start()
        for name in USERS:
            made.start_server(name)
        yield made
    finally:
        made.close()
        shutil.rmtree(scratch, ignore_errors=True)


def token_file(hub: Hub, user: str) -> Path:
    return Path(hub.server(user).environ()["HADOOP_TOKEN_FILE_LOCATION"])


def jobs_of(hub: Hub, user: str) -> dict[str, Any]:
    headers = {"Authorization": f"token {hub.token(user)}"}
    answer = hub.ask(f"/user/{user}/{API}jobs", headers=headers)
    assert answer.status == 200, answer
    return {job["job_id"]: job for job in answer.json["jobs"]}


def run(hub: Hub, user: str, *options: str) -> str:
    """Run a job in a terminal of the user's server; its id. A cluster may have earlier ones."""
    program = hub.accounts[user].home / "hello.py"
    program.write_text(f"print('hello from {user}')\n")
    earlier = jobs_of(hub, user).keys()
    command = (f"{sys.prefix}/bin/submarine", "run", str(program), "--wait", *options)
    ended = hub.run_as(user, *command)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    (job,) = jobs_of(hub, user).keys() - earlier
    return job


@pytest.mark.parametrize("name", USERS)
def test_a_server_has_tokens_of_its_user_only(hub: Hub, name: str) -> None:
    file = token_file(hub, name)
    status = file.stat()
    assert (status.st_uid, status.st_mode & 0o777) == (hub.accounts[name].uid, 0o600)
    assert file.parent.stat().st_mode & 0o777 == 0o711
    assert file.parent.stat().st_uid == 0
    tokens = parse_tokens(file.read_bytes())
    assert {token.kind for token in tokens} == {HDFS_TOKEN, RM_TOKEN}
    other = next(user for user in USERS if user != name)
    for token in tokens:
        assert name.encode() in token.identifier
        assert other.encode() not in token.identifier
        assert b"yarn" not in token.identifier  # no renewer


def test_a_user_reads_neither_the_keytab_nor_the_tokens_of_another(
    hub: Hub, kerberos_minicluster: Minicluster
) -> None:
    keytab, tokens = kerberos_minicluster.keytab("hub"), token_file(hub, "alice")
    for path in (keytab, tokens, hub.scratch / "hub" / "jupyterhub_config.py"):
        assert path.is_file()
        read = hub.run_as("bob", "cat", str(path))
        assert (read.stdout, "Permission denied" in read.stderr) == ("", True), read
    assert hub.run_as("bob", "head", "-c4", str(token_file(hub, "bob"))).stdout == "HDTS"
    listed = hub.run_as("bob", "ls", str(tokens.parent))
    assert (listed.stdout, "Permission denied" in listed.stderr) == ("", True)
    replaced = hub.run_as("bob", "rm", "-f", str(token_file(hub, "bob")))
    assert "Permission denied" in replaced.stderr
    for user in USERS:
        assert not any("keytab" in value for value in hub.server(user).environ().values())


@pytest.mark.parametrize("name", USERS)
def test_doctor_names_the_tokens(hub: Hub, name: str) -> None:
    report = hub.run_as(name, f"{sys.prefix}/bin/submarine", "doctor").stdout
    file = token_file(hub, name)
    assert f"{name} uses the delegation tokens in {file}." in " ".join(report.split()), report


@pytest.fixture(scope="module")
def jobs(hub: Hub) -> dict[str, str]:
    """A job of each user on the cluster."""
    return {user: run(hub, user, *options) for user, options in PROGRAMS.items()}


@pytest.mark.parametrize("name", USERS)
def test_jobs_and_files_belong_to_their_users(
    hub: Hub, jobs: dict[str, str], kerberos_minicluster: Minicluster, name: str
) -> None:
    job = jobs[name]
    found = jobs_of(hub, name)
    other = next(user for user in USERS if user != name)
    assert found[job]["state"] == "SUCCEEDED"
    assert {it["user"] for it in found.values()} == {name}
    assert jobs[other] not in found
    headers = {"Authorization": f"token {hub.token(other)}"}
    refused = hub.ask(f"/user/{other}/{API}jobs/{job}", headers=headers)
    assert refused.status in (403, 404), refused
    directory = f"/user/{name}/submarine"
    listing = f"import hdfs_native; print(hdfs_native.Client({kerberos_minicluster.default_fs!r})"
    code = f"{listing}.get_file_info({directory!r}).owner)"
    assert hub.run_as(name, sys.executable, "-c", code).stdout == f"{name}\n"
    assert "Permission denied" in hub.run_as(other, sys.executable, "-c", code).stderr


def test_each_user_has_a_driver_and_state_of_their_own(hub: Hub, jobs: dict[str, str]) -> None:
    drivers = {}
    for name in jobs:
        account = hub.accounts[name]
        state = account.home / ".local/state/jupyter-submarine"
        (file,) = state.glob("driver/*/driver.json")
        drivers[name] = running = json.loads(file.read_text())
        status = Path(f"/proc/{running['pid']}").stat()
        assert status.st_uid == account.uid
        for path in (state, state / "driver", file.parent):
            status = path.stat()
            assert (status.st_uid, status.st_mode & 0o777) == (account.uid, 0o700), path
    assert len({it["pid"] for it in drivers.values()}) == len(USERS)
    # The environment of the driver has skein's key pair.
    code = f"return open('/proc/{drivers['alice']['pid']}/environ').read()"
    assert as_user(code, hub.accounts["bob"].uid).startswith("PermissionError")


def test_tokens_are_replaced_while_the_server_runs(hub: Hub, jobs: dict[str, str]) -> None:
    file = token_file(hub, "alice")
    (driver,) = (hub.accounts["alice"].home / ".local/state").glob("*/driver/*/driver.json")
    first, before = json.loads(driver.read_text())["pid"], parse_tokens(file.read_bytes())
    old = max(it.stat().st_mtime_ns for it in (file, driver))
    until(lambda: file.stat().st_mtime_ns > old, "fresh tokens", 2 * INTERVAL)
    after = parse_tokens(file.read_bytes())
    assert not {it.identifier for it in before} & {it.identifier for it in after}
    run(hub, "alice", "--memory", "256M")
    # Java reads the tokens at its start.
    assert json.loads(driver.read_text())["pid"] != first


def test_the_tokens_of_a_stopped_server_are_removed(hub: Hub) -> None:
    """The last test: the server of bob is gone then."""
    file = token_file(hub, "bob")
    hub.admin("users/bob/server", "DELETE")
    until(lambda: not file.exists(), hub.said)
    assert token_file(hub, "alice").exists()
