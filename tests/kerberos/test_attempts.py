"""Attempts of another user, and of a process without credentials, against a running job of alice.

Each attempt is made for real, and must be refused with the status that ``docs/kerberos.md`` names.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from submarine_minicluster import Minicluster
from submarine_minicluster.hadoop import SecureWebHdfs, http_request
from tests.kerberos.helpers import User
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

SLEEPS = "import time\nprint('secret-line', flush=True)\ntime.sleep(600)\n"
PAGE = Path(__file__).parents[2] / "docs" / "kerberos.md"
#: Name -> method, path below the job directory or absolute, operation and query of WebHDFS.
HDFS = {
    "list the home directory": ("GET", "/user/alice", "op=LISTSTATUS"),
    "list the job directory": ("GET", "", "op=LISTSTATUS"),
    "read the job's token": ("GET", "secret.json", "op=OPEN"),
    "read the specification": ("GET", "spec.json", "op=OPEN"),
    "read the program": ("GET", "bundle.zip", "op=OPEN"),
    "read the address of the port": ("GET", "live.json", "op=OPEN"),
    "list the logs": ("GET", "logs", "op=LISTSTATUS"),
    "write a request to cancel": ("PUT", "cancel.json", "op=CREATE"),
    "write a record": ("PUT", "record.json", "op=CREATE"),
    "append to the specification": ("POST", "spec.json", "op=APPEND"),
    "delete the job directory": ("DELETE", "", "op=DELETE&recursive=true"),
    "rename the job directory": ("PUT", "", "op=RENAME&destination=/tmp/stolen"),
    "open the job directory to all": ("PUT", "", "op=SETPERMISSION&permission=777"),
    "take the job directory": ("PUT", "", "op=SETOWNER&owner=bob"),
    "give oneself an ACL": ("PUT", "", "op=MODIFYACLENTRIES&aclspec=user:bob:rwx"),
    "list skein's directory": ("GET", "/user/alice/.skein", "op=LISTSTATUS"),
    "act for alice": ("GET", "/user/alice", "op=LISTSTATUS&doas=alice"),
    "obtain a token for alice": ("GET", "/", "op=GETDELEGATIONTOKEN&doas=alice"),
}
#: Name -> method, path (``{app}``: of the application), body.
RESOURCEMANAGER = {
    "kill the application": ("PUT", "/ws/v1/cluster/apps/{app}/state", {"state": "KILLED"}),
    "raise its priority": ("PUT", "/ws/v1/cluster/apps/{app}/priority", {"priority": 9}),
    "move it to another queue": ("PUT", "/ws/v1/cluster/apps/{app}/queue", {"queue": "gpu"}),
    "kill it for alice": (
        "PUT",
        "/ws/v1/cluster/apps/{app}/state?doAs=alice",
        {"state": "KILLED"},
    ),
    "obtain a ResourceManager token for alice": (
        "POST",
        "/ws/v1/cluster/delegation-token?doAs=alice",
        {"renewer": "bob"},
    ),
    "open the job's page": ("GET", "/proxy/{app}/pages/job/?proxyapproved=true", None),
}
#: Name -> method, path of the job's port.
PORT = {
    "read the status": ("GET", "/v1/status"),
    "read the log": ("GET", "/v1/log?task=worker:0&stream=stdout"),
    "follow the log": ("GET", "/v1/stream"),
    "take the stacks": ("GET", "/v1/stacks"),
    "cancel": ("POST", "/v1/cancel"),
    "save the model": ("POST", "/v1/save"),
    "renew the lease": ("POST", "/v1/renew"),
    "send tokens": ("POST", "/v1/tokens"),
    "open a tunnel": ("GET", "/v1/tunnel?name=x"),
}


class Running(NamedTuple):
    """The running job: directory, application, container, and address of its port."""

    id: str
    directory: str
    application: str
    container: str
    host: str
    port: int


class Attempts:
    """Makes requests of a user of the cluster, or without credentials."""

    def __init__(self, cluster: Minicluster) -> None:
        self._cluster = cluster
        self._tls = ssl.create_default_context(cafile=str(cluster.ca))
        self.location = ""

    def status(self, who: str, method: str, url: str, body: bytes | None = None) -> int:
        headers = {"Content-Type": "application/json"}
        if who != "nobody":
            headers["Authorization"] = self._cluster.access(who).authorization(url)
        return self._open(urllib.request.Request(url, body, headers, method=method), self._tls)

    def port(self, method: str, url: str, token: str) -> int:
        """A request to the job's port by a client that accepts each certificate."""
        context = ssl._create_unverified_context()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        body = b"{}" if method == "POST" else None
        request = urllib.request.Request(url, body, headers, method=method)
        return self._open(request, context)

    def send(self, method: str, url: str, body: bytes) -> int:
        """The second request of an upload; the URL has a token of the user."""
        headers = {"Content-Type": "application/octet-stream"}
        return self._open(urllib.request.Request(url, body, headers, method=method), self._tls)

    def _open(self, request: urllib.request.Request, context: ssl.SSLContext) -> int:
        class Stay(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, *_: object) -> None:
                return None

        opener = urllib.request.build_opener(
            Stay, urllib.request.HTTPSHandler(context=context), urllib.request.ProxyHandler({})
        )
        try:
            with opener.open(request, timeout=30) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            self.location = error.headers.get("Location") or ""
            return error.code


@pytest.fixture(scope="module")
def alice(kerberos_minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> User:
    return User(kerberos_minicluster, "alice", tmp_path_factory.mktemp("alice"))


@pytest.fixture(scope="module")
def bob(kerberos_minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> User:
    return User(kerberos_minicluster, "bob", tmp_path_factory.mktemp("bob"))


@pytest.fixture(scope="module")
def job(alice: User, kerberos_minicluster: Minicluster) -> Iterator[Running]:
    started = alice.json("run", alice.file("sleeps.py", SLEEPS), "--memory", "256M")
    name = started["job_id"]

    def running() -> Any:
        """The job, when its agent has published the task."""
        seen = alice.json("show", name)
        return seen if seen["state"] == "RUNNING" and seen["tasks"] else None

    shown = until(running, "a running job", 180)
    directory = "/" + shown["job_dir"].split("/", 3)[3]
    hdfs = SecureWebHdfs(kerberos_minicluster.url("namenode"), kerberos_minicluster.access("alice"))
    until(lambda: hdfs.exists(f"{directory}/live.json"), "the address of the port", 60)
    live = json.loads(hdfs.read(f"{directory}/live.json"))
    container = shown["tasks"][0]["container_id"]
    application = shown["application_id"]
    yield Running(name, directory, application, container, live["host"], live["port"])
    alice.run("cancel", name)


@pytest.fixture(scope="module")
def attempts(kerberos_minicluster: Minicluster) -> Attempts:
    return Attempts(kerberos_minicluster)


@pytest.fixture(scope="module")
def alone(job: Running, alice: User) -> Iterator[None]:
    """The job still runs unchanged after all attempts."""
    yield
    shown = alice.json("show", job.id)
    assert shown["state"] == "RUNNING"
    assert shown["queue"] == "default"


WHO = ("bob", "nobody")


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("name", HDFS)
def test_files(
    name: str, who: str, job: Running, attempts: Attempts, kerberos_minicluster: Minicluster
) -> None:
    method, path, query = HDFS[name]
    full = path if path.startswith("/") else f"{job.directory}/{path}".rstrip("/")
    url = f"{kerberos_minicluster.url('namenode')}/webhdfs/v1{full}?{query}"
    status = attempts.status(who, method, url)
    if status == 307:  # The NameNode names a DataNode, which checks the permission.
        status = attempts.send(method, attempts.location, b"x")
    assert status == (403 if who == "bob" else 401)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("name", RESOURCEMANAGER)
def test_the_application(
    name: str, who: str, job: Running, attempts: Attempts, kerberos_minicluster: Minicluster
) -> None:
    method, path, body = RESOURCEMANAGER[name]
    url = kerberos_minicluster.url("resourcemanager") + path.format(app=job.application)
    data = json.dumps(body).encode() if body is not None else None
    assert attempts.status(who, method, url, data) in ((403,) if who == "bob" else (401, 403))


@pytest.mark.usefixtures("alone")
def test_the_owner_opens_the_page(
    job: Running, attempts: Attempts, kerberos_minicluster: Minicluster
) -> None:
    url = kerberos_minicluster.url("resourcemanager") + f"/proxy/{job.application}/"
    assert attempts.status("alice", "GET", url) in (200, 302)
    alice = kerberos_minicluster.access("alice")
    status, body, _kind = http_request("GET", f"{url}pages/job/", accept="text/html", access=alice)
    assert status == 200
    assert job.id.encode() in body
    assert b'<td data-name="State" class="long"><span class="state RUNNING">' in body


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("place", ["nodemanager", "nodemanager page", "historyserver page"])
def test_logs_of_yarn(
    place: str, who: str, job: Running, attempts: Attempts, kerberos_minicluster: Minicluster
) -> None:
    server = place.partition(" ")[0]
    path = {
        "nodemanager": f"/ws/v1/node/containers/{job.container}/logs/worker-0.stdout.log",
        "nodemanager page": f"/node/containerlogs/{job.container}/alice/worker-0.stdout.log",
        "historyserver page": f"/jobhistory/logs/localhost:1/{job.container}/x/alice",
    }[place]
    url = kerberos_minicluster.url(server) + path
    context = ssl.create_default_context(cafile=str(kerberos_minicluster.ca))
    status = attempts.status(who, "GET", url)
    if who == "nobody":
        assert status == 401
        return
    assert status in (200, 403, 404, 500)  # A page reports the refusal in its text.
    headers = {"Authorization": kerberos_minicluster.access("bob").authorization(url)}
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30, context=context) as response:
            shown = response.read()
    except urllib.error.HTTPError as error:
        shown = error.read()
    assert b"secret-line" not in shown


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("token", ["", "guessed"])
@pytest.mark.parametrize("name", PORT)
def test_the_port_of_the_job(name: str, token: str, job: Running, attempts: Attempts) -> None:
    method, path = PORT[name]
    assert attempts.port(method, f"https://{job.host}:{job.port}{path}", token) == 401


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("verb", ["show", "logs", "cancel", "rerun", "save", "models", "stack"])
def test_commands(verb: str, job: Running, bob: User) -> None:
    done = bob.run(verb, f"alice/{job.id}")
    assert done.returncode != 0
    assert "is not shared with you" in done.stderr, done.stderr
    assert "secret-line" not in done.stdout + done.stderr


@pytest.mark.usefixtures("alone")
def test_processes_show_no_token(job: Running) -> None:
    """No command line on this machine, which is the node, has a part of a token."""
    listed = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True).stdout
    assert "submarine" in listed
    assert "delegation=" not in listed
    assert "HDTS" not in listed
