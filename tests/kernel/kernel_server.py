"""A real jupyter-server with kernels in containers, and websockets of pages."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import websocket

from submarine_jobs.client import Job, Session
from submarine_minicluster.machine import free_port
from tests.kernel.remote_kernels import PATIENCE
from tests.notebook.conftest import clean_environment
from tests.waiting import until

TOKEN = "of-the-test"

#: How the container of a kernel is lost -> pattern of the reported reason.
LOSSES = {
    "agent": r"The agent died",
    "container": r"The application master died|The agent died",
    "master": r"The application master died|SIGTERM came from outside",
    "application": r"killed the application|The job was cancelled",
    "memory": r"used more memory",
}
_ALLOCATE = "x = b'x' * (900 << 20)"
_RUNNING = "print('in it', flush=True)\nimport time\ntime.sleep(1000)"
_LATER = f"import threading\nthreading.Timer(1.0, lambda: exec({_ALLOCATE!r}, {{}})).start()"


def ask(port: int, method: str, path: str, body: Any = None) -> Any:
    """Return the server's answer; None if the server does not run yet, or is ending."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/{path}",
        json.dumps(body).encode() if body is not None else None,
        {"Authorization": f"token {TOKEN}", "Content-Type": "application/json"},
        method=method,
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read() or b"{}")
    except ConnectionError:
        return None
    except urllib.error.URLError as error:
        if isinstance(error.reason, ConnectionError):
            return None
        raise


def environment(root: Path) -> dict[str, str]:
    """Return an environment without the settings of this machine's user."""
    own = {"SUBMARINE_STATE_DIR": "state", "JUPYTER_PATH": "share/jupyter"}
    own |= {f"JUPYTER_{name}_DIR": name.lower() for name in ("CONFIG", "DATA", "RUNTIME")}
    places = {name: str(root / folder) for name, folder in own.items()}
    return {**clean_environment(root), **places, "JUPYTER_TOKEN": TOKEN}


@contextmanager
def server(root: Path, *words: str, env: Mapping[str, str] | None = None) -> Iterator[int]:
    """Run a server at the port, until it is killed."""
    port = free_port()
    command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--ip=127.0.0.1"]
    command += [f"--port={port}", "--ServerApp.port_retries=0", "--allow-root"]
    command += [f"--ServerApp.root_dir={root / 'work'}", *words]
    with (root / "server.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            env={**environment(root), **(env or {})},
            cwd=root,
            stdout=log,
            stderr=log,
        )
    try:
        until(lambda: ask(port, "GET", "status"))
        yield port
    finally:
        process.kill()
        process.wait()


@dataclass
class Loss:
    """One loss of a container, with the seconds until it was reported.

    Attributes
    ----------
    reason
        The text that was reported.
    told
        Seconds until the reason was reported.
    dead
        Seconds until the server reported that the kernel is dead.
    """

    kind: str
    running: bool
    reason: str = ""
    told: float = math.inf
    dead: float = math.inf

    @property
    def seconds(self) -> float:
        """Seconds until both were reported."""
        return max(self.told, self.dead)

    @property
    def named(self) -> bool:
        """Whether the reported reason matches the loss."""
        return re.search(LOSSES[self.kind], self.reason) is not None


class Page:
    """A page with a kernel of the server."""

    def __init__(self, port: int, kernel: str) -> None:
        self.port = port
        self.kernel = ask(port, "POST", "kernels", {"name": kernel})["id"]
        self.heard: list[tuple[float, dict[str, Any]]] = []
        self._socket = websocket.create_connection(
            f"ws://127.0.0.1:{port}/api/kernels/{self.kernel}/channels",
            header=[f"Authorization: token {TOKEN}"],
            timeout=PATIENCE,
        )
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        with contextlib.suppress(websocket.WebSocketException, OSError, ValueError):
            while True:
                message = json.loads(self._socket.recv())
                self.heard.append((time.monotonic(), message))

    def execute(self, code: str) -> str:
        """Send code; return the id of the request."""
        content = {"code": code, "silent": False, "store_history": False, "user_expressions": {}}
        asked = uuid.uuid4().hex
        header = {"msg_id": asked, "msg_type": "execute_request", "session": "page"}
        header |= {"username": "", "date": "2026-01-01T00:00:00Z", "version": "5.3"}
        message = {"channel": "shell", "header": header, "parent_header": {}, "metadata": {}}
        self._socket.send(json.dumps({**message, "content": content}))
        return asked

    def until_idle(self, asked: str) -> None:
        """Wait until the kernel has executed a request."""
        until(lambda: any(_state(m) == "idle" and _parent(m) == asked for _, m in self.heard))

    def until_printed(self, text: str) -> None:
        """Wait until the kernel has printed a text."""
        until(lambda: any(text in str(m["content"].get("text", "")) for _, m in self.heard))

    def reported(self, asked: str) -> tuple[float, str]:
        """Return when a loss was reported, for a request or without one, and its reason.

        Infinity and an empty text if it was not reported.
        """
        for when, message in list(self.heard):
            content = message["content"]
            text = str(content.get("evalue") or content.get("text") or "")
            if _parent(message) == asked and "container of the kernel" in text:
                return when, text
        return math.inf, ""

    def was_told(self, reason: str, asked: str) -> bool:
        """Whether a loss was reported with a text in its reason; see ``reported``."""
        return reason in self.reported(asked)[1]

    def until_dead(self) -> None:
        """Wait until the server has reported that the kernel is dead."""
        until(self.count_dead)

    def count_dead(self) -> int:
        """Return how often the server has reported that the kernel is dead."""
        return sum(_state(message) == "dead" for _, message in self.heard)

    def close(self) -> None:
        """Shut the kernel down, if it exists."""
        self._socket.close()
        with contextlib.suppress(urllib.error.HTTPError):
            ask(self.port, "DELETE", f"kernels/{self.kernel}")


def _state(message: Mapping[str, Any]) -> str:
    return str(message["content"].get("execution_state", ""))


def _parent(message: Mapping[str, Any]) -> str:
    return str(message["parent_header"].get("msg_id", ""))


def container_of(pid: int) -> list[psutil.Process]:
    """Return all processes of the container that contains a process."""
    container = psutil.Process(pid).environ()["CONTAINER_ID"]
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("CONTAINER_ID") == container:
                found.append(process)
    return found


def losses(port: int, kernel: str, session: Session, count: int = 10) -> Iterator[Loss]:
    """Lose the container of ``count`` kernels without a running cell, and of as many with one."""
    kinds = list(LOSSES)
    for number in range(2 * count):
        page = Page(port, kernel)
        job = session.job(session.store.newest()[0].job_id)
        kind = kinds[number // 2 % len(kinds)]
        yield lose(page, session, job, kind, running=number % 2 == 0)
        page.close()


def lose(page: Page, session: Session, job: Job, kind: str, *, running: bool) -> Loss:
    """Lose the container of a kernel on this machine's YARN, and measure the report to the page.

    Parameters
    ----------
    kind
        A key of ``LOSSES``.
    running
        Whether a cell runs at the same time.
    """
    loss = Loss(kind, running)
    page.until_idle(page.execute("a = 1"))
    agent = int(job.directory.read_json("claim.json")["pid"])
    processes = container_of(agent)
    asked = ""
    if running:
        asked = page.execute(_RUNNING if kind != "memory" else f"{_LATER}\n{_RUNNING}")
        page.until_printed("in it")
        time.sleep(0.5)  # The owner reads the running requests every 0.2 s.
    elif kind == "memory":
        page.until_idle(page.execute(_LATER))
    began = time.monotonic()
    if kind == "agent":
        os.kill(agent, signal.SIGKILL)
    elif kind == "application":
        assert job.handle is not None
        session.backend("yarn").stop(job.handle)
        began = time.monotonic()
    elif kind == "memory":
        until(lambda: not all(process.is_running() for process in processes))
        began = time.monotonic()
    else:
        for process in processes:
            with contextlib.suppress(psutil.Error):
                if kind == "container" or process.name() == "java":
                    process.kill()

    with contextlib.suppress(AssertionError):
        until(page.count_dead, seconds=40.0)
        until(lambda: page.reported(asked)[1], seconds=5.0)
    when, loss.reason = page.reported(asked)
    loss.told = when - began
    loss.dead = next((t for t, said in page.heard if _state(said) == "dead"), math.inf) - began
    return loss
