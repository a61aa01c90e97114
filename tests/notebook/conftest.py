"""A real kernel "Python + Submarine" on the local backend, used like a front end."""

from __future__ import annotations

import contextlib
import os
import queue
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

from submarine_jobs.display import MIME_TYPE
from submarine_kernel.kernelspecs import install_kernel
from submarine_minicluster.machine import free_port

TIMEOUT = 150.0


_given: set[int] = set()


def kernel_ports() -> dict[str, int]:
    """Reserve ports for the kernel; ports that Jupyter selects may be taken in the meantime.

    They are outside of the system's ephemeral range, and differ between processes of a test run.
    """
    mine = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 8
    found: list[int] = []
    while len(found) < 5:
        port = free_port()
        if port % 8 == mine and port not in _given:
            _given.add(port)
            found.append(port)
    names = ("shell_port", "iopub_port", "stdin_port", "hb_port", "control_port")
    return dict(zip(names, found, strict=True))


def _display_id(content: dict[str, Any]) -> str:
    """Return the display id of an output, or a unique id if it has none."""
    return str(content.get("transient", {}).get("display_id") or id(content))


@dataclass
class Ran:
    """One execution: its id, and its outputs as a front end shows them."""

    msg_id: str
    status: str = ""
    ename: str = ""
    evalue: str = ""
    traceback: str = ""
    stdout: str = ""
    stderr: str = ""
    displays: list[dict[str, Any]] = field(default_factory=list)
    updates: list[dict[str, Any]] = field(default_factory=list)
    result: dict[str, Any] | None = None

    @property
    def cards(self) -> list[dict[str, Any]]:
        """The job cards of this execution, as first shown; on YARN progress lines precede them.

        Updates of the displays of earlier executions are not included.
        """
        own = [_display_id(item) for item in self.displays]
        first: dict[str, dict[str, Any]] = {}
        for item in (*self.displays, *self.updates):
            if MIME_TYPE in item["data"] and _display_id(item) in own:
                first.setdefault(_display_id(item), item["data"][MIME_TYPE])
        return list(first.values())


class Notebook:
    """A kernel and its messages, sorted by execution."""

    def __init__(
        self,
        scratch: Path,
        kernels: Path,
        kernel: str = "submarine",
        environment: dict[str, str] | None = None,
    ) -> None:
        self.folder = scratch / "work"
        self.folder.mkdir()
        specs = KernelSpecManager(kernel_dirs=[str(kernels)])
        self.manager = KernelManager(
            kernel_name=kernel, kernel_spec_manager=specs, cache_ports=False, **kernel_ports()
        )
        # The log level hides a warning about the transport.
        self.manager.start_kernel(
            cwd=str(self.folder),
            env={**clean_environment(scratch), **(environment or {})},
            extra_arguments=["--log-level=40"],
        )
        self.ran: dict[str, Ran] = {}
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=TIMEOUT)

    def restart(self) -> None:
        """Restart the kernel like the menu item."""
        self.client.stop_channels()
        self.manager.restart_kernel(now=True)
        self._connect()

    def close(self) -> None:
        """Stop the kernel."""
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def send(
        self,
        code: str,
        *,
        cell_id: str | None = None,
        deleted: list[str] | None = None,
        tags: list[str] | None = None,
        attended: bool = True,
    ) -> Ran:
        """Start an execution and return at once.

        Without ``attended`` the request does not allow questions, like a headless executor.
        """
        content = {
            "code": code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": attended,
            "stop_on_error": False,
        }
        metadata: dict[str, Any] = {"deletedCells": deleted or []}
        if cell_id is not None:
            metadata["cellId"] = cell_id
        if tags is not None:
            # JupyterLab sends the cell's metadata with each execution.
            metadata["tags"] = tags
        message = self.client.session.msg("execute_request", content, metadata=metadata)
        self.client.shell_channel.send(message)
        ran = self.ran[message["header"]["msg_id"]] = Ran(message["header"]["msg_id"])
        return ran

    def run(self, code: str, **how: Any) -> Ran:
        """Execute, and wait for the end."""
        return self.wait(self.send(code, **how))

    def good(self, code: str, **how: Any) -> Ran:
        """Execute, and require success."""
        ran = self.run(code, **how)
        assert ran.status == "ok", ran.traceback or ran.stderr
        return ran

    def wait(self, ran: Ran, timeout: float = TIMEOUT) -> Ran:
        """Receive messages until ``ran`` is done."""
        self.until(lambda: ran.status.endswith("!"), timeout)
        ran.status = ran.status.rstrip("!")
        return ran

    def until(self, done: Any, timeout: float = TIMEOUT) -> None:
        """Receive messages until ``done()``."""
        deadline = time.monotonic() + timeout
        while not done():
            assert time.monotonic() < deadline, "the kernel did not get there in time"
            self._take()

    def listen(self, seconds: float) -> None:
        """Receive messages for some time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._take()

    def _take(self) -> None:
        try:
            message = self.client.get_iopub_msg(timeout=0.2)
        except queue.Empty:
            return
        ran = self.ran.get(message["parent_header"].get("msg_id", ""))
        if ran is not None:
            self._sort(ran, message["msg_type"], message["content"])

    def _sort(self, ran: Ran, kind: str, content: dict[str, Any]) -> None:
        if kind == "stream":
            setattr(ran, content["name"], getattr(ran, content["name"]) + content["text"])
        elif kind == "display_data":
            ran.displays.append(content)
        elif kind == "update_display_data":
            ran.updates.append(content)
        elif kind == "execute_result":
            ran.result = content["data"]
        elif kind == "error":
            ran.status = "error"
            ran.ename, ran.evalue = content["ename"], content["evalue"]
            ran.traceback = "\n".join(content["traceback"])
        elif kind == "status" and content["execution_state"] == "idle":
            ran.status = (ran.status or self._reply(ran)) + "!"

    def _reply(self, ran: Ran) -> str:
        """Set the status from the reply: a usage error sends no error message."""
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            reply = self.client.get_shell_msg(timeout=TIMEOUT)
            if reply["parent_header"].get("msg_id") == ran.msg_id:
                ran.ename = reply["content"].get("ename", "")
                ran.evalue = reply["content"].get("evalue", "")
                return str(reply["content"]["status"])
        raise AssertionError("no reply")

    def complete(self, code: str) -> list[str]:
        """Return the matches at the end of ``code``."""
        reply = self.client.complete(code, reply=True, timeout=TIMEOUT)
        return list(reply["content"]["matches"])


def clean_environment(folder: Path) -> dict[str, str]:
    """Return the kernel's environment: without user settings, with local jobs."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SUBMARINE_", "HADOOP_", "JPY_"))
    }
    return {
        **kept,
        "IPYTHONDIR": str(folder / "ipython"),
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "SUBMARINE_BACKEND": "local",
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prefix that contains the kernelspec."""
    prefix = tmp_path_factory.mktemp("prefix")
    install_kernel(prefix=str(prefix))
    return prefix / "share" / "jupyter" / "kernels"


@pytest.fixture
def notebook(tmp_path: Path, kernels: Path) -> Iterator[Notebook]:
    """A new kernel."""
    with contextlib.closing(Notebook(tmp_path, kernels)) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared_notebook(tmp_path_factory: pytest.TempPathFactory, kernels: Path) -> Iterator[Notebook]:
    """One kernel for tests without side effects."""
    with contextlib.closing(Notebook(tmp_path_factory.mktemp("shared"), kernels)) as opened:
        yield opened
