"""``submarine notebook start`` on a real YARN: the door, the page of the job, what is kept."""

from __future__ import annotations

import html
import http.client
import re
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from submarine_jobs.commands import execute
from submarine_jobs.config import load_config
from submarine_jobs.errors import SubmarineError
from submarine_runtime.protocol import State
from tests.cluster.conftest import Shell
from tests.kernel.notebook_client import HttpClient
from tests.kernel.zeppelin_home import zeppelin_at
from tests.waiting import until

pytestmark = pytest.mark.cluster


def test_a_lab_in_a_container(shell: Shell) -> None:
    words = ["notebook", "start", "--memory", "1G", "--gpu", "1", "--idle", "10m"]
    value = execute(words, shell).value
    job = shell.session(load_config()).job(value["job_id"])
    try:
        page, token = value["page"], value["token"]
        anonymous, client = HttpClient(job, page), HttpClient(job, page, token)
        assert anonymous.ask("GET", "/api/contents")[0] == 403
        assert client.ask("GET", "/api/contents")[0] == 200
        client.save("mine.ipynb", "saved on YARN")
        record = job.record()
        application = record.application_id
        assert application
        assert token not in str(record.to_json())
        # From YARN's page, through its proxy, to the login page.
        linked = until(lambda: link_on_yarn(shell, application), "YARN has the link")
        assert linked == record.links["JupyterLab"] == page
        status, headers, _ = anonymous.ask("GET", urlsplit(linked).path)
        assert (status, "/login" in headers["Location"]) == (302, True)
        status, _, login = anonymous.ask("GET", headers["Location"])
        assert status == 200
        assert b'name="password"' in login
        assert token.encode() not in login
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


def link_on_yarn(shell: Shell, application: str) -> str:
    """The address that the application's page at the ResourceManager leads to."""
    backend: Any = shell.session(load_config()).backend()
    app = backend.rm.get(f"/apps/{application}")["app"]
    if app["state"] != "RUNNING":
        return ""
    base = app["trackingUrl"].rstrip("/")
    with (
        suppress(OSError, http.client.HTTPException),
        urllib.request.urlopen(f"{base}/pages/job/", timeout=30) as reply,
    ):
        found = re.search(r'href="([^"]*)"[^>]*>(?:JupyterLab|Zeppelin)<', reply.read().decode())
        return html.unescape(found[1]) if found else ""
    return ""


@pytest.mark.full
def test_an_unused_zeppelin_in_a_container_ends(shell: Shell, tmp_path: Path) -> None:
    words = ["notebook", "start", "--app", "zeppelin", "--memory", "1500M", "--idle", "5s"]
    home = zeppelin_at(tmp_path / "zeppelin")
    value = execute([*words, "--zeppelin-home", str(home)], shell).value
    job = shell.session(load_config()).job(value["job_id"])
    client = HttpClient(job, value["page"])
    status, _, body = client.ask("GET", "/api/version")
    assert status == 200, body
    assert client.ask("GET", "/api/notebook")[0] in (302, 401, 403)
    record = job.record()
    linked = until(lambda: link_on_yarn(shell, record.application_id or ""), "YARN has the link")
    assert linked == value["page"]
    record = job.wait(300)
    assert record.state is State.SUCCEEDED, record.detail
    assert b"Zeppelin was not used for 5 s" in job.log("stdout").data
