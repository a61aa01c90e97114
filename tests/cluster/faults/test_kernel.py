"""A kernel on a node with a label, as the ones with GPUs have, until that node is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.client import Session
from submarine_minicluster import Minicluster
from tests.kernel.remote_kernels import PATIENCE, Remote, execute, kernels_of
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]


@pytest.fixture
def remote(
    three: Minicluster, own: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Remote]:
    for key, value in three.environ().items():
        monkeypatch.setenv(key, value)
    with kernels_of(own, tmp_path, monkeypatch, "yarn") as made:
        yield made


def test_a_kernel_with_a_node_label_is_on_its_node_and_lost_with_it(
    three: Minicluster, remote: Remote
) -> None:
    remote.install(node_label="fast")
    manager, client = remote.start()
    job = remote.job_of(manager)
    ended, place = execute(client, "import os; print(os.getcwd()); a = 1")
    assert ended == "ok"
    assert "nodemanager-2" in Path(place.strip()).parts
    manager.restart_kernel()
    client.wait_for_ready(timeout=PATIENCE)
    assert execute(client, "a")[0] == "NameError"
    assert remote.job_of(manager).id == job.id

    client.execute("import time\nprint('in it', flush=True)\ntime.sleep(1000)")
    until(lambda: "in it" in str(client.get_iopub_msg(timeout=PATIENCE)["content"].get("text")))
    three.fail_node("nodemanager-2")
    try:
        until(lambda: not manager.is_alive(), seconds=240)
        content = client.get_shell_msg(timeout=PATIENCE)["content"]
        assert content["ename"] == "KernelLostError"
        assert "node" in content["evalue"], content
        assert job.record().state.ended
    finally:
        three.start()
