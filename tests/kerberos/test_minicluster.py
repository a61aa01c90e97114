"""A minicluster with Kerberos and HTTPS: users, tickets, proxy users, repair and stop."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from submarine_minicluster import Minicluster, MiniclusterError, Settings
from submarine_minicluster.hadoop import (
    MARK,
    Access,
    RestError,
    SecureWebHdfs,
    get_json,
    http_request,
)
from submarine_minicluster.machine import find_marked
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

INTERFACES = {
    "namenode": "/webhdfs/v1/user/alice?op=LISTSTATUS&doas={doas}",
    "resourcemanager": "/ws/v1/cluster/info?doAs={doas}",
    "nodemanager": "/ws/v1/node/info?doAs={doas}",
    "historyserver": "/ws/v1/history/info?doAs={doas}",
}
LIST = """\
import sys, hdfs_native
print([entry.path for entry in hdfs_native.Client(sys.argv[1]).list_status("/user/alice")])
"""


@pytest.fixture
def cluster(kerberos_minicluster: Minicluster) -> Minicluster:
    """The shared cluster; a test that stops a part of it starts it again."""
    return kerberos_minicluster


def url(cluster: Minicluster, name: str, doas: str = "") -> str:
    path = INTERFACES[name].format(doas=doas)
    return cluster.url(name) + (path if doas else path.rpartition("do")[0].rstrip("?&"))


def home(cluster: Minicluster, user: str, doas: str = "") -> SecureWebHdfs:
    return SecureWebHdfs(cluster.url("namenode"), cluster.access(user), doas)


def client(cluster: Minicluster, user: str, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, **cluster.environ(user)}
    return subprocess.run(words, env=environ, capture_output=True, text=True, timeout=120)


def kill(cluster: Minicluster, access: Access, application: str) -> int:
    rm = cluster.url("resourcemanager")
    address = f"{rm}/ws/v1/cluster/apps/{application}/state"
    return http_request("PUT", address, body=b'{"state": "KILLED"}', access=access)[0]


@pytest.mark.parametrize("name", INTERFACES)
def test_each_interface_requires_a_ticket(cluster, name):
    assert cluster.url(name).startswith("https://localhost:")
    alice = cluster.access("alice")
    # `signed`: without the header, as a client without a ticket.
    assert http_request("GET", url(cluster, name), access=alice, signed=True)[0] == 401
    assert http_request("GET", url(cluster, name), access=alice)[0] == 200


@pytest.mark.parametrize("name", INTERFACES)
def test_the_hub_acts_for_its_users_only(cluster, name):
    hub = cluster.access("hub")
    assert http_request("GET", url(cluster, name, "alice"), access=hub)[0] == 200
    status, body, _ = http_request("GET", url(cluster, name, "carol"), access=hub)
    assert status == 403
    # The ResourceManager names the principal with its realm.
    assert re.search(rb"User: hub(@\S+)? is not allowed to impersonate carol", body)


def test_homes_are_private(cluster):
    home(cluster, "hub", doas="alice").write("/user/alice/by-hub", b"x")
    status = home(cluster, "alice").call("GET", "/user/alice/by-hub", "GETFILESTATUS")
    assert status["FileStatus"]["owner"] == "alice"
    with pytest.raises(RestError, match="Permission denied: user=bob"):
        home(cluster, "bob").call("GET", "/user/alice", "LISTSTATUS")


def test_the_clients_use_the_ticket_of_env(cluster):
    home(cluster, "alice").write("/user/alice/seen", b"x")
    words = (sys.executable, "-c", LIST, cluster.default_fs)
    listed = client(cluster, "alice", *words)
    assert "/user/alice/seen" in listed.stdout, listed.stderr
    assert "Permission denied: user=bob" in client(cluster, "bob", *words).stderr
    shown = client(cluster, "alice", "hdfs", "dfs", "-cat", "/user/alice/seen")
    assert (shown.stdout, shown.stderr) == ("x", "")
    applications = client(cluster, "alice", "yarn", "application", "-list")
    assert "Total number of applications" in applications.stdout, applications.stderr
    with pytest.raises(MiniclusterError, match=r"no Kerberos user 'eve'. Use one of .*alice"):
        cluster.env("eve")


def test_a_container_runs_and_its_log_is_for_its_user(cluster):
    script = """\
import os, skein, time
conf = "-Djava.security.krb5.conf=" + os.environ["KRB5_CONFIG"]
script = "echo from-container $JAVA_TOOL_OPTIONS; sleep 600"
master = skein.Master(resources=skein.Resources(memory="512 MiB", vcores=1), script=script)
security = skein.Security.new_credentials()
with skein.Client(java_options=[conf], security=security, log_level="ERROR") as client:
    app = client.submit(skein.ApplicationSpec(name="test", master=master))
    while client.application_report(app).state not in ("running", "finished", "failed"):
        time.sleep(0.2)
    print(app)
"""
    submitted = client(cluster, "alice", sys.executable, "-c", script)
    assert submitted.returncode == 0, submitted.stderr
    application = submitted.stdout.split()[-1]
    alice, rm = cluster.access("alice"), cluster.url("resourcemanager")
    attempts = get_json(f"{rm}/ws/v1/cluster/apps/{application}/appattempts", alice)
    container = attempts["appAttempts"]["appAttempt"][0]["containerId"]
    name = "application.driver.log"
    live = f"{cluster.url('nodemanager')}/ws/v1/node/containers/{container}/logs/{name}"
    aggregated = f"{cluster.url('historyserver')}/ws/v1/history/containerlogs/{container}/{name}"

    def log(address: str, user: str = "alice") -> str:
        access = cluster.access(user)
        status, body, _ = http_request("GET", address, access=access, accept="text/plain")
        return body.decode() if status == 200 else ""

    until(lambda: "from-container" in log(live), "the live log", 60)
    assert not log(live, "bob")
    assert kill(cluster, cluster.access("bob"), application) == 403
    until(lambda: kill(cluster, alice, application) == 200, "alice's application was killed", 60)
    until(lambda: "from-container" in log(aggregated), "the aggregated log", 90)
    assert f"-Djava.security.krb5.conf={cluster.layout.krb5_conf}" in log(aggregated)


def test_a_user_can_be_added_while_the_cluster_runs(cluster):
    cluster.add_user("ada")
    home(cluster, "ada").write("/user/ada/mine", b"x")
    assert cluster.env("ada")["KRB5CCNAME"] == f"FILE:{cluster.layout.tickets('ada')}"


def test_tickets_survive_the_end_of_the_kdc(cluster):
    ticket = cluster.env("alice")["KRB5CCNAME"]
    cluster.kill("kdc")
    assert cluster.status().state == "degraded"
    with pytest.raises(MiniclusterError, match="Kerberos gave no ticket"):
        cluster.env("alice")
    cluster.start()
    assert cluster.status().state == "running"
    environ = {**os.environ, **cluster.environ(), "KRB5CCNAME": ticket}
    words = ("hdfs", "dfs", "-ls", "/user/alice")
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_passwords_and_files_survive_stop_and_start(cluster):
    home(cluster, "alice").write("/user/alice/kept", b"x")
    password, ca = cluster.password("alice"), cluster.ca.read_bytes()
    keytab = cluster.keytab("alice").stat().st_mode & 0o777
    assert cluster.stop()
    assert not find_marked(MARK, str(cluster.layout.root))
    assert cluster.status().state == "stopped"
    with pytest.raises(MiniclusterError, match="was created with Kerberos"):
        cluster.start(Settings())
    cluster.start()
    assert (cluster.password("alice"), cluster.ca.read_bytes(), keytab) == (password, ca, 0o600)
    assert home(cluster, "alice").exists("/user/alice/kept")
