"""A jupyter-server process with the extension on the local backend, and its HTTP client."""

from __future__ import annotations

import http.client
import http.cookies
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from submarine_minicluster.machine import free_port
from tests.rest_schema import answer_problems
from tests.waiting import PATIENCE

#: As JupyterHub gives it.
BASE = "/user/ada%40example.org/"
API = BASE + "submarine/api/v1/"
TOKEN = "a-token-of-the-test"


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    data: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.data)


class Server:
    """One server; everything that it reads or writes lies below ``scratch``."""

    #: Whether a signal can be sent to it and to all that it has started, as a terminal does.
    own_group = False
    #: The others that are installed would take a third of the CPU time of a start.
    extensions: Mapping[str, bool] = {
        "submarine_server": True,
        "jupyter_lsp": False,
        "jupyter_scheduler": False,
        "jupyter_server_terminals": False,
        "jupyterlab": False,
        "notebook": False,
        "notebook_shim": False,
    }

    def __init__(self, scratch: Path, **environment: str) -> None:
        self.scratch = scratch
        self.cwd, self.root = scratch, scratch / "notebooks"
        self.root.mkdir(parents=True)
        self.port = free_port()
        self.origin = f"http://127.0.0.1:{self.port}"
        self.log = scratch / "server.log"
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("SUBMARINE_", "HADOOP_"))},
            "HOME": str(scratch),
            "XDG_CONFIG_HOME": str(scratch / "config"),
            "JUPYTER_CONFIG_DIR": str(scratch / "jupyter"),
            "JUPYTER_DATA_DIR": str(scratch / "data"),
            "JUPYTER_RUNTIME_DIR": str(scratch / "runtime"),
            "SUBMARINE_STATE_DIR": str(scratch / "state"),
            **environment,
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *words: str) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"),
                    f"--ServerApp.port={self.port}",
                    "--ServerApp.port_retries=0",
                    f"--ServerApp.base_url={BASE}",
                    f"--ServerApp.root_dir={self.root}",
                    f"--ServerApp.jpserver_extensions={self.extensions}",
                    f"--IdentityProvider.token={TOKEN}",
                    *words,
                ],
                env=self.environment,
                cwd=self.cwd,
                stdout=log,
                stderr=log,
                start_new_session=self.own_group,
            )
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if self.call("GET", "health").status == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            if time.monotonic() > deadline or self.process.poll() is not None:
                self.stop()
                raise AssertionError(f"no server: {self.log.read_text()[-2000:]}")
            time.sleep(0.1)

    def stop(self) -> bool:
        """Terminate the server; return whether it ended without SIGKILL."""
        if self.process is None:
            return True
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False
        return True

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = TOKEN,
        timeout: float = 60,
        **headers: str,
    ) -> Answer:
        """One request; ``path`` below the API, or from the root where it begins with ``/``."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            sent["Authorization"] = f"token {token}"
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            target = path if path.startswith("/") else API + path
            connection.request(method, target, data if body is not None else None, sent)
            reply = connection.getresponse()
            headers = {k.lower(): v for k, v in reply.getheaders()}
            answer = Answer(reply.status, headers, reply.read())
        finally:
            connection.close()
        if target.startswith(API):
            kind = headers.get("content-type", "")
            part = target.removeprefix(API)
            problems = answer_problems(method, part, answer.status, kind, answer.data)
            assert not problems, "\n".join(problems)
        return answer

    def log_in(self) -> tuple[str, str]:
        """Log in like a browser: the Cookie header and the XSRF token."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        cookies: http.cookies.SimpleCookie = http.cookies.SimpleCookie()
        for path in (f"tree?token={TOKEN}", "login"):
            sent = "; ".join(f"{name}={item.value}" for name, item in cookies.items())
            connection.request("GET", BASE + path, headers={"Cookie": sent} if sent else {})
            reply = connection.getresponse()
            reply.read()
            for name, value in reply.getheaders():
                if name.lower() == "set-cookie":
                    cookies.load(value)
        connection.close()
        header = "; ".join(f"{name}={item.coded_value}" for name, item in cookies.items())
        return header, cookies["_xsrf"].value

    def until(self, path: str, fits: Any, timeout: float = PATIENCE) -> Any:
        """Wait until the answer of ``GET path`` fits; return it."""
        deadline = time.monotonic() + timeout
        while True:
            answer = self.call("GET", path)
            if answer.status == 200 and fits(answer.json):
                return answer.json
            if time.monotonic() > deadline:
                raise AssertionError(f"{path} stays {answer.status} {answer.data[:2000]!r}")
            time.sleep(0.2)


@contextmanager
def running(scratch: Path, *words: str, **environment: str) -> Iterator[Server]:
    """A server on the local backend. It must end by itself, and its log must have no traceback."""
    made = Server(scratch, SUBMARINE_BACKEND="local", **environment)
    made.start(*words)
    try:
        yield made
    finally:
        ended = made.stop()
    assert ended, "the server did not end"
    log = made.log.read_text()
    place = log.find("Traceback")
    assert place < 0, log[max(place - 500, 0) : place + 3000]
