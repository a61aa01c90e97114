"""Kernels in containers, used like a front end.

On the local backend their job is a process of this machine, with the same agent, port and tunnels
as on a cluster.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

from submarine_jobs.access import tunnel_loop
from submarine_jobs.client import Job, Session
from submarine_jobs.model import Profile
from submarine_kernel.kernelspecs import install_kernel, provisioning
from tests.submission import cancel_unfinished

#: Time limit for operations that take a second on an idle machine.
PATIENCE = 120.0
NAME = "small"

#: A program that owns a kernel like a notebook server, until it is killed.
SERVER = """\
import json, sys, time
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
kernels, name, connection_file, session, code = sys.argv[1:]
specs = KernelSpecManager(kernel_dirs=[kernels])
manager = KernelManager(
    kernel_name=name, kernel_spec_manager=specs, connection_file=connection_file
)
import os
manager.start_kernel(env={**os.environ, "JPY_SESSION_NAME": session})
client = manager.client()
client.start_channels()
client.wait_for_ready(timeout=120)
client.execute_interactive(code, timeout=120)
import asyncio
info = asyncio.run(manager.provisioner.get_provisioner_info())
print(json.dumps({"job": info["job_id"], "info": info}), flush=True)
time.sleep(600)
"""


class Remote:
    """Kernelspecs of one test directory, and the kernels that were started with them."""

    def __init__(self, root: Path, session: Session, run: dict[str, Any]) -> None:
        self.root = root
        self.session = session
        self.run = run
        self.kernels = root / "share" / "jupyter" / "kernels"
        self.managers: list[KernelManager] = []
        self.clients: list[BlockingKernelClient] = []
        self.servers: list[subprocess.Popen[str]] = []

    def install(self, name: str = NAME, **more: Any) -> None:
        """Install a kernelspec like ``submarine kernel install``."""
        stanza = provisioning(name, {"memory": "400M", **self.run, **more})
        install_kernel(name=name, prefix=str(self.root), container=stanza)

    def manager(self, name: str = NAME) -> KernelManager:
        """Return a kernel manager without a kernel."""
        specs = KernelSpecManager(kernel_dirs=[str(self.kernels)])
        self.managers.append(KernelManager(kernel_name=name, kernel_spec_manager=specs))
        return self.managers[-1]

    def start(self, name: str = NAME, **env: str) -> tuple[KernelManager, BlockingKernelClient]:
        """Start a kernel and wait for its answer."""
        manager = self.manager(name)
        manager.start_kernel(env={**os.environ, **env})
        return manager, self.connect(manager)

    def connect(self, manager: KernelManager) -> BlockingKernelClient:
        """Connect a client and wait for the kernel's answer."""
        client = manager.client()
        self.clients.append(client)
        client.start_channels()
        client.wait_for_ready(timeout=PATIENCE)
        return client

    def serve(self, session: str = "", code: str = "x = 42") -> tuple[subprocess.Popen[str], Any]:
        """Start another process that owns a kernel; return the process and its report."""
        words = [str(self.kernels), NAME, str(self.root / "connection.json"), session, code]
        server = subprocess.Popen(
            [sys.executable, "-c", SERVER, *words], stdout=subprocess.PIPE, text=True
        )
        self.servers.append(server)
        assert server.stdout is not None
        return server, json.loads(server.stdout.readline())

    def job_of(self, manager: KernelManager) -> Job:
        """Return the job of the kernel."""
        assert manager.provisioner is not None
        asked = manager.provisioner.get_provisioner_info()
        told = asyncio.run_coroutine_threadsafe(asked, tunnel_loop()).result(PATIENCE)
        return self.session.job(told["job_id"])

    def close(self) -> None:
        """End all processes, clients and jobs."""
        for server in self.servers:
            server.kill()
            server.wait()
            if server.stdout is not None:
                server.stdout.close()
        for client in self.clients:
            client.stop_channels()
        for manager in self.managers:
            if manager.has_kernel:
                manager.shutdown_kernel(now=True)
            manager.context.destroy(linger=0)
        cancel_unfinished(self.session)


def execute(client: BlockingKernelClient, code: str) -> tuple[str, str]:
    """Return how the code ended (``ok`` or the exception's name), and what it printed."""
    printed: list[str] = []

    def hear(message: dict[str, Any]) -> None:
        if message["msg_type"] == "stream":
            printed.append(message["content"]["text"])

    # Otherwise an error aborts requests that arrive shortly after the reply.
    reply = client.execute_interactive(
        code, timeout=PATIENCE, output_hook=hear, allow_stdin=False, stop_on_error=False
    )
    content = reply["content"]
    return content.get("ename") or content["status"], "".join(printed)


def printed(client: BlockingKernelClient) -> str:
    """Return what the next message prints."""
    content = client.get_iopub_msg(timeout=PATIENCE)["content"]
    return str(content.get("text", ""))


@contextmanager
def kernels_of(
    session: Session, root: Path, patch: pytest.MonkeyPatch, backend: str
) -> Iterator[Remote]:
    """Kernels of a user in ``root`` with the session's state; ended afterwards."""
    patch.setenv("SUBMARINE_STATE_DIR", str(session.profile.state_dir))
    patch.setenv("XDG_CONFIG_HOME", str(root))
    patch.setenv("JUPYTER_RUNTIME_DIR", str(root / "runtime"))
    patch.setenv("IPYTHONDIR", str(root / "ipython"))
    patch.delenv("SUBMARINE_BACKEND", raising=False)
    patch.chdir(root)
    made = Remote(root, session, {"backend": backend})
    try:
        yield made
    finally:
        made.close()


def local_session(root: Path) -> Session:
    """Return a session of the local backend with its own state directory."""
    return Session(Profile(backend="local", state_dir=root / "state"))
