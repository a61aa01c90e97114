"""Attempts of a second Unix user on the minicluster, under a name of its own.

Hadoop's simple authentication believes names: with the owner's name a client is the owner, of which
``submarine minicluster start`` warns. Attempts without a cluster:
``tests/local/jobs/test_second_user``.
"""

from __future__ import annotations

import getpass
import json
import re
import stat
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.driver import read_running
from submarine_jobs.client import Job, Session
from submarine_minicluster import Minicluster
from tests.second_user import as_user, needs_root
from tests.waiting import until

pytestmark = [pytest.mark.cluster, needs_root]
PROGRAM = "import time\nprint('private', flush=True)\ntime.sleep(600)\n"


def test_a_second_user_of_the_machine_is_refused(
    minicluster: Minicluster, session: Session, submit: Callable[..., Job]
) -> None:
    """One table with one job: ``name: (code, what is observed)``."""
    job = submit(PROGRAM)
    until(lambda: b"private" in job.log("stdout").data, "the job runs")
    backend = session.backend()
    assert isinstance(backend, YarnBackend)
    driver = read_running(backend.driver.directory)
    assert driver is not None
    folder = urlsplit(job.directory.path).path
    rm, namenode = minicluster.url("resourcemanager"), minicluster.url("namenode")
    home = f"/user/{getpass.getuser()}"

    def ask(method: str, base: str, path: str, body: object = None) -> str:
        data = None if body is None else json.dumps(body)
        return f"""
            connection = http.client.HTTPConnection({urlsplit(base).netloc!r}, timeout=20)
            headers = {{"Content-Type": "application/json"}}
            connection.request({method!r}, {path!r}, {data!r}, headers)
            reply = connection.getresponse()
            return reply.status, reply.read()[:300]
            """

    def hdfs(method: str, path: str, query: str) -> str:
        return ask(method, namenode, f"/webhdfs/v1{path}?{query}")

    apps = "/ws/v1/cluster/apps"
    denied = r"^\(403, .*AccessControlException"
    attempts = {
        "list a job's directory": (hdfs("GET", folder, "op=LISTSTATUS&user.name=eve"), denied),
        "read a job's secret": (
            hdfs("GET", f"{folder}/secret.json", "op=OPEN&user.name=eve"),
            denied,
        ),
        "read a job's secret without a name": (
            hdfs("GET", f"{folder}/secret.json", "op=OPEN"),
            denied,
        ),
        "write to the owner's home": (
            hdfs("PUT", f"{home}/evil", "op=MKDIRS&user.name=eve"),
            denied,
        ),
        "open a job's directory": (
            hdfs("PUT", folder, "op=SETPERMISSION&permission=777&user.name=eve"),
            denied,
        ),
        "remove a job's directory": (
            hdfs("DELETE", folder, "op=DELETE&recursive=true&user.name=eve"),
            denied,
        ),
        "start an application by REST": (
            ask("POST", rm, f"{apps}/new-application?user.name=eve", {}),
            r"^\(403, .*App submission via REST is disabled",
        ),
        "speak to skein's driver without its certificate": (
            f"""
            context = ssl._create_unverified_context()
            context.set_alpn_protocols(["h2"])
            plain = socket.create_connection(("127.0.0.1", {driver.port}))
            secure = context.wrap_socket(plain)
            secure.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n")
            seen = b""
            while part := secure.recv(100):
                seen += part
            return seen or "closed"
            """,
            r"^(SSLError|ConnectionResetError|BrokenPipeError|closed)",
        ),
        "read the driver's environment": (
            f"return open('/proc/{driver.pid}/environ').read()",
            r"^PermissionError: \[Errno 13\] Permission denied",
        ),
    }
    seen = {name: as_user(code) for name, (code, _) in attempts.items()}
    for name, observed in seen.items():
        print(f"{name}: {observed[:250]}")
    passed = {
        name: seen[name]
        for name, (_, refusal) in attempts.items()
        if not re.search(refusal, seen[name])
    }
    assert not passed
    assert stat.S_IMODE(minicluster.layout.root.stat().st_mode) == 0o700
    assert not job.record().state.ended
