"""A real jupyter-server that owns a kernel in a container: it is killed, comes back, and culls."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from submarine_kernel.install import install_kernel
from submarine_kernel.remote.kernelspec import PROVISIONER, provisioning
from submarine_minicluster.ports import free_port
from submarine_runtime.protocol.states import State
from tests.kernel.remote_rig import PATIENCE, local_session, until
from tests.notebook.conftest import clean_environment

TOKEN = "of-the-test"
NOTEBOOK = {"path": "deep/a.ipynb", "name": "a.ipynb", "type": "notebook"}


def ask(port: int, method: str, path: str, body: Any = None) -> Any:
    """What the server answers; None: nothing, since it is not there yet, or just goes away."""
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
    """Nothing of this machine's user."""
    own = {"SUBMARINE_STATE_DIR": "state", "JUPYTER_PATH": "share/jupyter"}
    own |= {f"JUPYTER_{name}_DIR": name.lower() for name in ("CONFIG", "DATA", "RUNTIME")}
    places = {name: str(root / folder) for name, folder in own.items()}
    return {**clean_environment(root), **places, "JUPYTER_TOKEN": TOKEN}


@contextmanager
def server(root: Path, *words: str) -> Iterator[int]:
    """A server that answers at the port, until it is killed."""
    port = free_port()
    command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--ip=127.0.0.1"]
    command += [f"--port={port}", "--ServerApp.port_retries=0", "--allow-root"]
    command += [f"--ServerApp.root_dir={root / 'work'}", *words]
    with (root / "server.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            env=environment(root),
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


def test_a_notebook_finds_its_kernel_after_a_restart_and_an_idle_one_is_culled(
    tmp_path: Path,
) -> None:
    stanza = provisioning("far", {"backend": "local", "memory": "400M"})
    install_kernel(name="far", prefix=str(tmp_path), container=stanza)
    (tmp_path / "work" / "deep").mkdir(parents=True)
    asked = {**NOTEBOOK, "kernel": {"name": "far"}}
    session = local_session(tmp_path)
    with server(tmp_path) as port:
        ask(port, "POST", "sessions", asked)
        (first,) = session.store.ids()
    job = session.job(first)
    assert job.record().state is State.RUNNING
    cull = [f"--MappingKernelManager.cull_{what}" for what in ("idle_timeout=3", "interval=1")]
    with server(tmp_path, *cull) as port:
        ask(port, "POST", "sessions", asked)
        assert session.store.ids() == {first}, "a second kernel was started"
        assert "had lost its server and is taken over" in (tmp_path / "server.log").read_text()
        began = time.monotonic()
        record = job.wait(PATIENCE)
        assert record.state is State.SUCCEEDED, (record, time.monotonic() - began)
        assert b"its owner has ended the kernel" in job.log("stderr").data
        # The server forgets it a moment after the job has ended.
        until(lambda: ask(port, "GET", "kernels") == [])


def test_a_server_ends_also_after_a_start_that_failed(tmp_path: Path) -> None:
    """jupyter-server fails to stop while it believes that a kernel is being started."""
    (tmp_path / "work").mkdir()
    wrong = {"run": {"backend": "local", "worker": 3}}
    stanza = {"provisioner_name": PROVISIONER, "config": wrong}
    install_kernel(name="wrong", prefix=str(tmp_path), container=stanza)
    with server(tmp_path) as port:
        with pytest.raises(urllib.error.HTTPError) as failed:
            ask(port, "POST", "kernels", {"name": "wrong"})
        assert failed.value.code == 500
        failed.value.close()
        assert "takes no option 'worker'" in (tmp_path / "server.log").read_text()
        ask(port, "POST", "shutdown")
        until(lambda: ask(port, "GET", "status") is None)
