"""``submarine notebook start`` on a real YARN: the door, the page of the job, what is kept."""

from __future__ import annotations

from contextlib import suppress

import pytest

from submarine_jobs.commands import execute
from submarine_jobs.config import load_config
from submarine_jobs.errors import SubmarineError
from submarine_runtime.protocol.states import State
from tests.cluster.conftest import Shell
from tests.kernel.notebook_rig import Visitor, until

pytestmark = pytest.mark.cluster


def test_a_lab_in_a_container(shell: Shell) -> None:
    words = ["notebook", "start", "--memory", "1G", "--gpu", "1", "--idle", "10m"]
    value = execute(words, shell).value
    job = shell.session(load_config()).job(value["job_id"])
    try:
        page, token = value["page"], value["token"]
        stranger, guest = Visitor(job, page), Visitor(job, page, token)
        assert stranger.ask("GET", "/api/contents")[0] == 403
        assert guest.ask("GET", "/api/contents")[0] == 200
        guest.save("mine.ipynb", "saved on YARN")
        record = job.record()
        assert record.application_id
        # The page of the application has the link, and not what lets one in.
        assert record.links["JupyterLab"] == page
        assert token not in str(record.to_json())
        directory = job.directory

        def kept() -> bool:
            root = directory.file("snapshots")
            found = directory.storage.walk(root) if directory.storage.stat(root) else []
            packs = [f"{root}/{path}" for path, _ in found if path.endswith(".pack")]
            # One that is replaced by a newer one meanwhile is looked for again.
            with suppress(OSError, SubmarineError):
                return any(b"saved on YARN" in directory.storage.read(path) for path in packs)
            return False

        until(kept, "the notebook is on HDFS")
    finally:
        execute(["notebook", "stop", value["job_id"]], shell)
    record = job.wait(120)
    assert record.state is State.CANCELLED
    assert b"saved on YARN" in job.directory.storage.read(
        job.directory.file("checkpoints/mine.ipynb")
    )
