"""A job of the real core on the real minicluster, seen on its own YARN page."""

from __future__ import annotations

import http.client
import io
import sys
import time
import urllib.request
import zipfile
from pathlib import Path

import pytest

from submarine_jobs.client import Session
from submarine_jobs.model import JobSpec, Resources, Role
from submarine_jobs.submit import submit
from submarine_runtime.protocol import State

pytestmark = pytest.mark.cluster

PROGRAM = """\
import os, time
print("report:progress:0.37", flush=True)
while not os.path.exists({go!r}):
    time.sleep(0.1)
"""


def fetch(url: str) -> str:
    """The page; empty while it is not served."""
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:
            text: str = reply.read().decode()
    except (OSError, http.client.HTTPException):
        return ""
    return text


def test_progress_and_links_are_on_the_applications_page(session: Session, tmp_path: Path) -> None:
    go = tmp_path / "go"
    bundle = io.BytesIO()
    with zipfile.ZipFile(bundle, "w") as archive:
        archive.writestr("main.py", PROGRAM.format(go=str(go)))
    spec = JobSpec(
        name="paged",
        backend="yarn",
        roles=(Role(resources=Resources(200)),),
        python=sys.executable,
        quicklinks={"My <board>": "http://board.example/?a=1&b=2"},
    )
    job = submit(session, spec, bundle.getvalue())
    try:
        backend = session.backend()
        handle = backend.find(job.id)
        assert handle is not None
        deadline = time.monotonic() + 120
        page = overview = ""
        while "37 %" not in page:
            assert time.monotonic() < deadline, (overview, page)
            time.sleep(0.5)
            app = backend.rm.get(f"/apps/{handle['application_id']}")["app"]  # type: ignore[attr-defined]
            if app["state"] != "RUNNING":
                continue
            base = app["trackingUrl"].rstrip("/")
            overview = fetch(f"{base}/overview")
            if "Submarine job" in overview:
                page = fetch(f"{base}/pages/job/")
        assert "RUNNING" in page
        assert "My &lt;board&gt;" in page
        assert "/node/containerlogs/" in page
        go.touch()
        record = job.wait(timeout=120)
        assert record.state is State.SUCCEEDED
        assert any(event.kind == "yarn_page" for event in record.events)
    finally:
        if not job.record().state.ended:
            job.cancel("the test is over")
