"""What ``submarine doctor`` reports of the rights on a Kerberised cluster, for both outcomes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn.cluster import read_properties, write_properties
from submarine_minicluster import Minicluster, Settings
from submarine_minicluster.hadoop import (
    RestError,
    SecureWebHdfs,
    get_json,
    http_request,
    make_ticket_cache,
)
from submarine_minicluster.pytest_plugin import running
from tests.kerberos.helpers import User
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

SUBMIT = "acl_submit_applications"


@pytest.fixture
def alice(kerberos_minicluster: Minicluster, tmp_path: Path) -> User:
    return User(kerberos_minicluster, "alice", tmp_path / "alice")


@pytest.fixture
def hub(kerberos_minicluster: Minicluster, tmp_path: Path) -> User:
    """A service with a keytab and without a ticket cache."""
    user = User(kerberos_minicluster, "hub", tmp_path / "hub", ticket=False)
    keytab = str(kerberos_minicluster.keytab("hub"))
    user.environ |= {"SUBMARINE_KEYTAB": keytab, "SUBMARINE_PRINCIPAL": "hub@MINICLUSTER.TEST"}
    return user


def findings(user: User, **env: str) -> dict[str, dict[str, str]]:
    """The findings of ``doctor --json`` by name."""
    done = user.run("doctor", "--json", env=env)
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


def test_the_rights_of_a_user(alice: User) -> None:
    found = findings(alice)
    assert {name: found[name]["status"] for name in found if found[name]["status"] == "error"} == {}
    expected = {
        "proxy user": ("skipped", "No proxy_user is set"),
        "yarn acls": ("ok", "YARN checks access control lists (yarn.acl.enable)."),
        "hdfs acls": ("ok", "HDFS keeps access control lists, which --share sets."),
        "queue access": ("ok", "The access list of queue default does not exclude alice"),
        "token renewal": ("ok", "After 7d a job needs fresh tokens"),
    }
    for name, (status, sentence) in expected.items():
        assert found[name]["status"] == status, found[name]
        assert found[name]["sentence"].startswith(sentence), found[name]


@pytest.fixture(scope="module")
def open_cluster() -> Iterator[Minicluster]:
    """A cluster with Kerberos that has access control lists neither in YARN nor in HDFS."""
    off = ("yarn.acl.enable=false", "dfs.namenode.acls.enabled=false")
    settings = Settings(kerberos=True, https=True, properties=off)
    with running("SUBMARINE_TEST_OPEN_MINICLUSTER", settings) as found:
        yield found


def test_a_cluster_without_access_control_lists(open_cluster: Minicluster, tmp_path: Path) -> None:
    """The warnings of doctor and of ``--share``; what they state is so."""
    alice = User(open_cluster, "alice", tmp_path / "alice")
    found = findings(alice)
    expected = {
        "yarn acls": (
            "warning",
            "YARN checks no access control lists (yarn.acl.enable is false): each user can view "
            "and end the jobs of others.",
        ),
        "hdfs acls": (
            "warning",
            "HDFS keeps no ACLs (dfs.namenode.acls.enabled is false), so --share does not let "
            "others read a job directory.",
        ),
        "queue access": ("skipped", "YARN checks no access control lists."),
    }
    for name, (status, sentence) in expected.items():
        assert (found[name]["status"], found[name]["sentence"]) == (status, sentence)
    for name, setting in (
        ("yarn acls", "yarn.acl.enable"),
        ("hdfs acls", "dfs.namenode.acls.enabled"),
    ):
        assert found[name]["fix"].startswith(f"Operators: set {setting} to true in the ")
    assert [name for name in found if found[name]["status"] == "error"] == []

    program = alice.file("waits.py", "import time; time.sleep(900)")
    ran = alice.run("run", program, "--memory", "256M", "--share", "view:bob", "--json")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for sentence in (
        "YARN checks no ACLs on this cluster (yarn.acl.enable is false)",
        "HDFS keeps no ACLs (dfs.namenode.acls.enabled is false): --share does not let others",
    ):
        assert sentence in ran.stderr, ran.stderr
    job = alice.json("show", json.loads(ran.stdout)["job_id"])
    try:
        home = SecureWebHdfs(open_cluster.url("namenode"), open_cluster.access("bob"))
        with pytest.raises(RestError, match="Permission denied: user=bob"):
            home.call("GET", "/user/alice/submarine", "LISTSTATUS")
        rm = open_cluster.url("resourcemanager")
        url, access = f"{rm}/ws/v1/cluster/apps/{job['application_id']}", open_cluster.access("bob")
        assert get_json(url, access)["app"]["user"] == "alice"
        assert get_json(url, access)["app"]["amContainerLogs"]
        ended = json.dumps({"state": "KILLED"}).encode()
        answer, said, _place = http_request("PUT", f"{url}/state", body=ended, access=access)
        assert answer in (200, 202), said
        until(lambda: get_json(url, access)["app"]["finalStatus"] == "KILLED", "bob ends the job")
    finally:
        alice.run("cancel", job["job_id"], "--yes")
        alice.run("doctor", "--stop-driver")


def test_a_service_may_act_for_the_users_of_its_rule(hub: User) -> None:
    found = findings(hub, HADOOP_PROXY_USER="alice")
    assert found["proxy user"]["status"] == "ok"
    assert found["proxy user"]["sentence"] == (
        "NameNode and ResourceManager let hub act for alice."
    )
    assert found["hdfs"]["status"] == "ok"
    refused = findings(hub, HADOOP_PROXY_USER="carol")
    assert refused["proxy user"]["status"] == "error"
    for part in (
        "hub may not act for carol: ",
        "NameNode: User: hub is not allowed to impersonate carol",
        "ResourceManager: The cluster does not allow hub to act for carol",
    ):
        assert part in refused["proxy user"]["sentence"]
    assert (
        "set hadoop.proxyuser.hub.hosts and hadoop.proxyuser.hub.users"
        in (refused["proxy user"]["fix"])
    )
    # One fault is one finding.
    assert [name for name in refused if refused[name]["status"] == "error"] == ["proxy user"]
    assert refused["hdfs"]["unchecked"]


def test_a_queue_that_excludes_the_user(
    alice: User, kerberos_minicluster: Minicluster, tmp_path: Path
) -> None:
    lists = {"root": " ", "root.default": "*", "root.gpu": "alice", "root.narrow": "bob"}
    with queue_lists(kerberos_minicluster, tmp_path, lists):
        default = findings(alice)["queue access"]
        own = findings(alice, SUBMARINE_QUEUE="gpu")["queue access"]
        others = findings(alice, SUBMARINE_QUEUE="narrow")
    assert (default["status"], own["status"]) == ("ok", "ok")
    assert own["sentence"] == "alice may submit to queue gpu."
    assert others["queue access"]["status"] == "error"
    assert others["queue access"]["sentence"] == "alice may not submit to queue narrow."
    assert others["queue access"]["fix"].startswith("Choose one of default, gpu ")
    assert others["capacity"]["unchecked"]


@contextmanager
def queue_lists(cluster: Minicluster, directory: Path, lists: Mapping[str, str]) -> Iterator[None]:
    """Give queues of the running ResourceManager other lists of users that may submit."""
    path = cluster.layout.conf("resourcemanager") / "capacity-scheduler.xml"
    original = path.read_bytes()
    changed = {f"yarn.scheduler.capacity.{queue}.{SUBMIT}": text for queue, text in lists.items()}
    try:
        path.write_bytes(write_properties({**read_properties(path), **changed}))
        refresh_queues(cluster, directory)
        yield
    finally:
        path.write_bytes(original)
        refresh_queues(cluster, directory)


def refresh_queues(cluster: Minicluster, directory: Path) -> None:
    cache = directory / "administrator"
    make_ticket_cache(
        "yarn/localhost@MINICLUSTER.TEST",
        cluster.layout.keytab("yarn"),
        cache,
        krb5_conf=cluster.layout.krb5_conf,
        lifetime=3600,
        renewable=3600,
    )
    environ = {**os.environ, **cluster.environ(), "KRB5CCNAME": f"FILE:{cache}"}
    environ.pop("JAVA_TOOL_OPTIONS", None)
    done = subprocess.run(
        [str(cluster.layout.bin / "yarn"), "rmadmin", "-refreshQueues"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_certificates(alice: User, kerberos_minicluster: Minicluster, tmp_path: Path) -> None:
    """Those of the cluster are accepted by ssl-client.xml or ``ca_file``; not by another CA."""
    accepted = findings(alice)["certificates"]
    assert accepted["status"] == "ok"
    for daemon in ("resourcemanager", "namenode"):
        assert kerberos_minicluster.url(daemon) in accepted["sentence"]
    config = tmp_path / "submarine.toml"
    named = {"SUBMARINE_CONFIG": str(config)}
    config.write_text(f'[settings]\nca_file = "{kerberos_minicluster.ca}"\n')
    assert findings(alice, **named)["certificates"]["status"] == "ok"
    import certifi  # Any certificate that has not signed those of the cluster.

    before, middle, _ = Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----")
    other = tmp_path / "other.pem"
    other.write_text(before[before.index("-----BEGIN") :] + middle + "\n")
    config.write_text(f'[settings]\nca_file = "{other}"\n')
    rejected = findings(alice, **named)["certificates"]
    assert rejected["status"] == "error"
    assert rejected["sentence"].startswith("The certificate of localhost:")
    assert "is not accepted: " in rejected["sentence"]
    assert rejected["fix"].startswith("Set ca_file to the certificates (PEM)")


def test_nodes_are_probed_with_the_job_of_a_user(alice: User) -> None:
    """The clock is read without a ticket, over HTTPS with the certificates of the cluster."""
    done = alice.run("doctor", "--nodes", "--json")
    assert done.returncode == 0, done.stderr
    [row] = json.loads(done.stdout)["nodes"]
    report = row["report"]
    assert abs(report["clock"]["ahead"]) < 5, row
    assert report["ports"]["closed"] == {}
    assert report["names"]["address"] == "127.0.0.1"
    done = alice.run("doctor", "--node-list", "nowhere")
    assert done.returncode == 2
    assert "There is no running node nowhere." in done.stderr


def test_a_script_starts_a_stopped_queue(
    alice: User, kerberos_minicluster: Minicluster, tmp_path: Path
) -> None:
    """``--fix`` reads the queues with the ticket, and changes nothing by itself."""
    cluster, queue = kerberos_minicluster, {"SUBMARINE_QUEUE": "narrow"}
    conf = cluster.layout.conf("resourcemanager")
    path, key = conf / "capacity-scheduler.xml", "yarn.scheduler.capacity.root.narrow.state"
    original = path.read_bytes()
    try:
        path.write_bytes(write_properties({**read_properties(path), key: "STOPPED"}))
        refresh_queues(cluster, tmp_path)
        assert findings(alice, **queue)["queues"]["status"] == "error"
        done = alice.run("doctor", "--fix", "--items", "all", "--json", env=queue)
        found = json.loads(done.stdout)
        assert "queues" in {one["name"] for one in found["fixes"]}, done.stdout + done.stderr
        script = alice.directory / found["script"]
        assert read_properties(path)[key] == "STOPPED"

        def run(mode: str) -> None:
            command = ["sh", str(script), mode, "resourcemanager"]
            environ = {**os.environ, "HADOOP_CONF_DIR": str(conf)}
            subprocess.run(command, env=environ, check=True, timeout=60)

        run("dry-run")
        assert read_properties(path)[key] == "STOPPED"
        run("apply")
        assert read_properties(path)[key] == "RUNNING"
        refresh_queues(cluster, tmp_path)
        assert findings(alice, **queue)["queues"]["status"] == "ok"
        run("undo")
        assert read_properties(path)[key] == "STOPPED"
    finally:
        path.write_bytes(original)
        refresh_queues(cluster, tmp_path)
