"""A real jupyter-server that owns a kernel in a container: kill, restart, and culling."""

from __future__ import annotations

import os
import signal
import time
import urllib.error
from functools import partial
from pathlib import Path

import pytest

from submarine_kernel.kernelspecs import install_kernel, provisioning
from submarine_kernel.kernelspecs.container import PROVISIONER
from submarine_runtime.protocol import State
from tests.kernel.kernel_server import Page, ask, server
from tests.kernel.remote_kernels import PATIENCE, local_session
from tests.waiting import until

NOTEBOOK = {"path": "deep/a.ipynb", "name": "a.ipynb", "type": "notebook"}


@pytest.mark.full
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
        # The server removes it shortly after the end of the job.
        until(lambda: ask(port, "GET", "kernels") == [])


def test_a_server_ends_after_a_failed_start(tmp_path: Path) -> None:
    """jupyter-server does not stop while it has a pending kernel start."""
    (tmp_path / "work").mkdir()
    wrong = {"run": {"backend": "local", "worker": 3}}
    stanza = {"provisioner_name": PROVISIONER, "config": wrong}
    install_kernel(name="wrong", prefix=str(tmp_path), container=stanza)
    with server(tmp_path) as port:
        with pytest.raises(urllib.error.HTTPError) as failed:
            ask(port, "POST", "kernels", {"name": "wrong"})
        assert failed.value.code == 500
        failed.value.close()
        assert "has no option 'worker'" in (tmp_path / "server.log").read_text()
        ask(port, "POST", "shutdown")
        until(lambda: ask(port, "GET", "status") is None)


def test_a_loss_is_reported_without_a_poll_of_the_server(tmp_path: Path) -> None:
    """The server polls every 1,000 s here; a second kernel is lost without a running cell."""
    stanza = provisioning("far", {"backend": "local", "memory": "400M"})
    install_kernel(name="far", prefix=str(tmp_path), container=stanza)
    (tmp_path / "work").mkdir()
    session = local_session(tmp_path)
    with server(tmp_path, "--KernelRestarter.time_to_dead=1000") as port:
        for running in (True, False):
            page = Page(port, "far")
            job = session.job(session.store.newest()[0].job_id)
            page.until_idle(page.execute("a = 1"))
            asked = page.execute("print('in it', flush=True)\nimport time\ntime.sleep(1000)")
            page.until_printed("in it")
            if not running:
                ask(port, "POST", f"kernels/{page.kernel}/interrupt")
                page.until_idle(asked)
            assert job.handle is not None
            os.kill(int(job.handle["pid"]), signal.SIGKILL)
            page.until_dead()
            request = asked if running else ""
            # On a busy machine the client reconnects after the server has reported the death.
            until(partial(page.was_told, "The container of the kernel is gone. The agent", request))
            assert page.count_dead() == 1
            page.close()
            assert page.kernel not in [kernel["id"] for kernel in ask(port, "GET", "kernels")]
