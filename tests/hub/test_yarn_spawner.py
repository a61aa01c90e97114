"""A hub whose servers run in YARN containers (YarnSpawner): the server of alice, with Kerberos.

The configuration of the spawner is that of the documentation.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import websocket

from submarine_minicluster import Minicluster
from submarine_minicluster.hadoop import HUB, REALM, SecureWebHdfs, get_json, http_request
from submarine_minicluster.machine import find_marked
from tests.browser.calls import API, Answer
from tests.browser.lab import MARK, ROOT
from tests.hub.conftest import require_hub
from tests.hub.hub import Hub
from tests.kerberos.helpers import User
from tests.waiting import PATIENCE, until

pytestmark = [pytest.mark.cluster, pytest.mark.full, pytest.mark.timeout(900)]

ENDED = ("FINISHED", "FAILED", "KILLED")
#: Seconds for a server: its application master, and JupyterLab, on a busy machine.
START = 600.0
TITLE = "## Servers in YARN containers"
#: What the hub's own process needs on this machine, and loopback as the address of the servers.
MACHINE = """
import os
os.environ.update({environ!r})
c.YarnSpawner.ip = "127.0.0.1"
c.YarnSpawner.start_timeout = {seconds:.0f}
c.Spawner.args += ["--allow-root"]
"""
#: Prints what of the container could authenticate it.
LOOKS = """\
import os
from submarine_runtime.kerberos import GssError, TokenFile, credential_state
try:
    ticket = credential_state().principal
except GssError:
    ticket = ""
kinds = sorted({token.kind for token in TokenFile().tokens()})
directory = os.path.dirname(os.environ["HADOOP_TOKEN_FILE_LOCATION"])
keys = [name for _, _, names in os.walk(directory) for name in names
        if name.startswith("krb5cc") or name.endswith(".keytab")]
print([directory, kinds, ticket, keys])
"""
#: Runs commands as a terminal of the server does.
TERMINAL = """\
import subprocess, sys
done = subprocess.run([sys.executable, "-m", "submarine_jobs.cli", *{words!r}],
                      capture_output=True, text=True)
print(done.returncode, done.stdout, done.stderr)
"""
WAITS = "import time\nprint('the job waits', flush=True)\ntime.sleep(900)\n"


@pytest.fixture(scope="module")
def alice(
    kerberos_minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[User]:
    """Alice on another machine than her server: with a ticket."""
    user = User(kerberos_minicluster, "alice", tmp_path_factory.mktemp("users") / "alice")
    yield user
    user.run("doctor", "--stop-driver")


def documented(hub_keytab: Path) -> str:
    """Return the configuration in the documentation, with the names of the minicluster."""
    text = (ROOT / "docs/jupyterhub.md").read_text(encoding="utf-8")
    found = re.search(r"^```python\n(.*?)^```$", text[text.index(TITLE) :], re.M | re.S)
    assert found is not None
    code = found[1]
    for name, value in (
        ("/etc/security/keytabs/jupyterhub.keytab", str(hub_keytab)),
        ("jupyterhub/hub.example.org@EXAMPLE.ORG", f"{HUB}@{REALM}"),
        ('HUB = "jupyterhub"', f'HUB = "{HUB}"'),
    ):
        assert name in code
        code = code.replace(name, value)
    return code


@pytest.fixture(scope="module")
def hub(kerberos_minicluster: Minicluster, alice: User) -> Iterator[Hub]:
    """A hub on the cluster; no server runs yet. All applications of alice are ended with it."""
    require_hub()
    if importlib.util.find_spec("yarnspawner") is None:
        pytest.fail("no YarnSpawner here: scripts/setup.sh jupyterhub")
    cluster, layout = kerberos_minicluster, kerberos_minicluster.layout
    scratch = Path(tempfile.mkdtemp(prefix="submarine-hub-"))
    krb5 = str(layout.krb5_conf)
    machine = {
        "HADOOP_CONF_DIR": str(layout.client_conf),
        "KRB5_CONFIG": krb5,
        "JAVA_HOME": cluster.environ()["JAVA_HOME"],
        "PATH": f"{layout.bin}{os.pathsep}{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}",
    }
    configuration = "\n".join(
        (
            MACHINE.format(
                seconds=START,
                environ={
                    **machine,
                    # Java reads KRB5_CONFIG not; on other machines the file is /etc/krb5.conf.
                    "SKEIN_DRIVER_JAVA_OPTIONS": f"-Djava.security.krb5.conf={krb5}",
                },
            ),
            documented(cluster.keytab(HUB)),
        )
    )
    classpath = subprocess.run(
        [layout.bin / "yarn", "classpath"], capture_output=True, text=True, check=True
    ).stdout
    needed = [
        *(layout.client_conf, layout.bin, layout.krb5_conf, layout.truststore),
        *(cluster.keytab(HUB), Path(classpath.partition(os.pathsep)[0]).parent),
        # Packages of the code under test that are not installed.
        *map(Path, filter(os.path.isdir, os.environ.get("PYTHONPATH", "").split(os.pathsep))),
    ]
    # The code under test need not be that of the interpreter's site-packages.
    variables = {"SUBMARINE_BACKEND": "yarn", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    made = Hub(scratch, ("alice",), {**variables, **machine}, configuration, needed)
    try:
        if problem := made.namespace.problem():
            pytest.skip(f"no mount namespaces here: {problem}")
        made.start()
        yield made
    finally:
        with contextlib.suppress(AssertionError):
            made.admin("users/alice/server", "DELETE")
        made.close()
        shutil.rmtree(scratch, ignore_errors=True)
        for app in servers(cluster):
            if app["state"] not in ENDED:
                url = f"{cluster.url('resourcemanager')}/ws/v1/cluster/apps/{app['id']}/state"
                body = json.dumps({"state": "KILLED"}).encode()
                http_request("PUT", url, body=body, access=cluster.access("alice"))


def servers(cluster: Minicluster) -> list[dict[str, Any]]:
    """The applications of the spawner, as alice sees them, in the order of their start."""
    url = f"{cluster.url('resourcemanager')}/ws/v1/cluster/apps?user=alice"
    found = (get_json(url, cluster.access("alice"))["apps"] or {}).get("app", [])
    return sorted((app for app in found if app["name"] == "jupyterhub"), key=lambda app: app["id"])


class Kernel:
    """A kernel of the server of a user, by the hub's proxy."""

    def __init__(self, hub: Hub, user: str) -> None:
        self._hub, self._path = hub, f"/user/{user}/api/kernels"
        self._headers = {"Authorization": f"token {hub.token(user)}"}
        started = self.ask("POST", "", {"name": "submarine"})
        assert started.status == 201, started
        self._path += f"/{started.json['id']}"

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        """Send a request to the REST interface of the server."""
        return self._hub.ask(
            self._path + path, method, headers=self._headers, body=body, timeout=PATIENCE
        )

    def run(self, code: str, word: str = "") -> tuple[str, str]:
        """Execute code, and answer its question with a word; its status and all its texts."""
        url = f"ws{self._hub.origin.removeprefix('http')}{self._path}/channels"
        # One connection for each: the server closes one that answers no pings.
        with contextlib.closing(
            websocket.create_connection(url, header=self._headers, timeout=PATIENCE)
        ) as socket:
            content = {"code": code, "silent": False, "allow_stdin": True}
            asked = _send(socket, "shell", "execute_request", content)
            status, texts = "ok", []
            while True:
                message = json.loads(socket.recv())
                kind, content = message["msg_type"], message["content"]
                if message["parent_header"].get("msg_id") != asked:
                    continue
                if kind == "input_request":
                    assert content["password"], content
                    _send(socket, "stdin", "input_reply", {"value": word}, message["header"])
                elif kind == "stream":
                    texts.append(content["text"])
                elif kind in ("display_data", "update_display_data"):
                    texts.append(str(content["data"].get("text/plain")))
                elif kind == "error":
                    status = "error"
                    texts.append(content["evalue"])
                elif kind == "status" and content["execution_state"] == "idle":
                    return status, "\n".join(texts)

    def good(self, code: str, word: str = "") -> str:
        """Execute code that succeeds, and return its texts."""
        status, text = self.run(code, word)
        assert status == "ok", text
        return text


def _send(
    socket: websocket.WebSocket,
    channel: str,
    kind: str,
    content: dict[str, Any],
    parent: dict[str, Any] | None = None,
) -> str:
    """Send a message to the kernel, and return its id."""
    header = {"msg_id": uuid.uuid4().hex, "msg_type": kind, "session": "test"}
    header |= {"username": "", "date": "2026-01-01T00:00:00Z", "version": "5.3"}
    message = {"channel": channel, "header": header, "parent_header": parent or {}}
    socket.send(json.dumps({**message, "metadata": {}, "content": content}))
    return header["msg_id"]


def start_server(hub: Hub) -> None:
    """Start the server of alice, and wait until it is ready."""
    hub.admin("users/alice/server", "POST")

    def ready() -> bool:
        server = hub.admin("users/alice")["servers"].get("", {})
        return bool(server.get("ready"))

    until(ready, hub.said, START)


@pytest.fixture(scope="module")
def kernel(hub: Hub) -> Kernel:
    """A kernel of alice's server."""
    start_server(hub)
    return Kernel(hub, "alice")


@pytest.fixture(scope="module")
def job(alice: User) -> Iterator[str]:
    """A running job that alice has submitted elsewhere."""
    words = ("--memory", "256M", "--json")
    ran = alice.run("run", alice.file("waits.py", WAITS), *words)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    name = str(json.loads(ran.stdout)["job_id"])
    try:
        until(lambda: alice.json("show", name)["state"] == "RUNNING", "the job runs")
        yield name
    finally:
        alice.run("cancel", name, "--yes")


def job_directories(cluster: Minicluster) -> set[str]:
    """The names below the job root of alice."""
    home = SecureWebHdfs(cluster.url("namenode"), cluster.access("alice"))

    def names(path: str) -> list[str]:
        listed = home.call("GET", path, "LISTSTATUS")["FileStatuses"]["FileStatus"]
        return [str(one["pathSuffix"]) for one in listed]

    root = "/user/alice/submarine"
    return {f"{month}/{name}" for month in names(root) for name in names(f"{root}/{month}")}


def test_the_server_runs_in_a_container_of_its_user(
    hub: Hub, kernel: Kernel, kerberos_minicluster: Minicluster
) -> None:
    app = servers(kerberos_minicluster)[-1]
    assert (app["state"], app["user"]) == ("RUNNING", "alice")
    printed = kernel.good("import os\nprint(os.environ['CONTAINER_ID'])")
    assert app["id"].removeprefix("application") in printed
    directory, kinds, ticket, keys = ast.literal_eval(kernel.good(LOOKS))
    assert {"HDFS_DELEGATION_TOKEN", "RM_DELEGATION_TOKEN"} <= set(kinds)
    assert (ticket, keys) == ("", [])
    environ = kernel.good("print(dict(os.environ))")
    assert "keytab" not in environ
    assert Path(directory).name in printed


def test_it_watches_by_the_tokens_of_the_container(
    hub: Hub, kernel: Kernel, job: str, alice: User
) -> None:
    assert job in kernel.good("%submarine list")
    assert "RUNNING" in kernel.good(f"%submarine show {job}")
    until(lambda: "the job waits" in kernel.good(f"%submarine logs {job}"), "the log of the job")
    printed = kernel.good(TERMINAL.format(words=("show", job)))
    assert printed.startswith("0 "), printed
    assert "RUNNING" in printed
    # The panel of the page: the extension of the server.
    headers = {"Authorization": f"token {hub.token('alice')}"}

    def listed() -> bool:
        answer = hub.ask(f"/user/alice/{API}jobs", headers=headers)
        assert answer.status == 200, answer
        return job in {one["job_id"] for one in answer.json["jobs"]}

    until(listed, "the jobs panel lists the job")


def test_without_a_ticket_nothing_is_uploaded(
    kernel: Kernel, job: str, kerberos_minicluster: Minicluster
) -> None:
    before = job_directories(kerberos_minicluster)
    assert any(name.endswith(f"/{job}") for name in before)
    status, text = kernel.run("%%submarine run refused --memory 256M\nprint('never')")
    assert status == "error", text
    assert "you can watch jobs, but not submit one" in text
    assert "Get a ticket with `%submarine login`" in text
    printed = kernel.good(TERMINAL.format(words=("run", __file__, "--memory", "256M")))
    assert "you can watch jobs, but not submit one" in printed
    assert job_directories(kerberos_minicluster) == before


def test_a_job_is_cancelled_by_the_tokens(kernel: Kernel, job: str, alice: User) -> None:
    kernel.good(f"%submarine cancel {job}")
    until(lambda: alice.json("show", job)["state"] == "CANCELLED", "the job is cancelled")


def test_a_login_in_the_container(
    kernel: Kernel, alice: User, kerberos_minicluster: Minicluster
) -> None:
    password = kerberos_minicluster.password("alice")
    status, text = kernel.run("%submarine login", "wrong")
    assert status == "error"
    assert "There is no ticket" in text
    text = kernel.good("%submarine login", password)
    assert f"alice@{REALM} has a ticket for" in text
    assert password not in text
    directory, _kinds, ticket, keys = ast.literal_eval(kernel.good(LOOKS))
    assert (ticket, keys) == (f"alice@{REALM}", ["krb5cc"])
    assert Path(directory, "krb5cc").stat().st_mode & 0o777 == 0o600

    text = kernel.good("%%submarine run inside --memory 256M --wait\nprint('hello', 'from it')")
    assert "hello from it" in text, text
    newest = alice.json("list")[0]
    assert (newest["name"], newest["state"], newest["user"]) == ("inside", "SUCCEEDED", "alice")
    # A terminal of the same server has the ticket too.
    program = alice.file("hello.py", "print('hello', 'from a terminal')")
    printed = kernel.good(TERMINAL.format(words=("run", program, "--memory", "256M", "--wait")))
    assert printed.startswith("0 "), printed
    assert "hello from a terminal" in printed


def test_the_hub_ends_the_container_with_the_ticket(
    hub: Hub, kernel: Kernel, kerberos_minicluster: Minicluster
) -> None:
    directory = Path(ast.literal_eval(kernel.good(LOOKS))[0])
    assert (directory / "krb5cc").exists()
    hub.admin("users/alice/server", "DELETE")
    until(lambda: servers(kerberos_minicluster)[-1]["finalStatus"] == "KILLED", hub.said)
    until(lambda: not directory.exists(), "the container is removed")

    def remaining() -> list[str]:
        found = []
        for one in marked(hub):
            with contextlib.suppress(psutil.NoSuchProcess):  # It has ended meanwhile.
                if one.environ().get("CONTAINER_ID") == directory.name:
                    found.append(" ".join(one.cmdline()))
        return found

    until(lambda: not remaining(), remaining)


def test_the_server_starts_again(hub: Hub, kerberos_minicluster: Minicluster) -> None:
    """At another port, in another container, without the ticket of the former."""
    start_server(hub)
    kernel = Kernel(hub, "alice")
    _directory, _kinds, ticket, keys = ast.literal_eval(kernel.good(LOOKS))
    assert (ticket, keys) == ("", [])
    hub.admin("users/alice/server", "DELETE")
    until(lambda: servers(kerberos_minicluster)[-1]["finalStatus"] == "KILLED", hub.said)


def marked(hub: Hub) -> Iterator[psutil.Process]:
    """The processes of the hub and its servers."""
    for identity in find_marked(MARK, str(hub.scratch)):
        with contextlib.suppress(psutil.Error):
            yield psutil.Process(identity.pid)
