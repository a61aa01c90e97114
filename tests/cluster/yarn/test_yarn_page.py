"""Jobs on the real minicluster, seen at their tracking URLs through YARN's proxy."""

from __future__ import annotations

import html
import http.client
import re
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.model import Resources, Role
from submarine_runtime.protocol import State
from tests.submission import Submit
from tests.waiting import until

pytestmark = pytest.mark.cluster

PROGRAM = """\
import os, time
print("report:progress:0.37", flush=True)
while not os.path.exists({go!r}):
    time.sleep(0.1)
"""
LIMIT = 180.0
#: A Python of the node that has no skein.
BARE_PYTHON = "/usr/bin/python3"
_REFRESH = re.compile(r'<meta http-equiv="refresh" content="0; url=([^"]*)"')


def fetch(url: str) -> str:
    """The page; empty while it is not served."""
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:
            text: str = reply.read().decode()
    except (OSError, http.client.HTTPException):
        return ""
    return text


def tracked_page(session: Session, job: Job) -> str:
    """What a browser shows at the tracking URL: it follows the refresh of the first page."""
    backend: Any = session.backend()
    handle = backend.find(job.id)
    app = backend.rm.get(f"/apps/{handle['application_id']}")["app"]
    if app["state"] != "RUNNING":
        return ""
    url = app["trackingUrl"].rstrip("/") + "/"
    first = _REFRESH.search(fetch(url))
    return fetch(urljoin(url, html.unescape(first[1]))) if first else ""


def page_with(session: Session, job: Job, condition: Callable[[str], bool]) -> str:
    """The page when a condition holds."""
    pages: list[str] = []

    def shown() -> bool:
        assert not job.record().state.ended, job.record().detail
        pages.append(tracked_page(session, job))
        return condition(pages[-1])

    until(shown, "the page at the tracking URL", LIMIT)
    return pages[-1]


def kept_text(session: Session, job: Job) -> str:
    """What the tracking URL of an ended application shows: a text in the logs of its master."""
    backend: Any = session.backend()
    handle = backend.find(job.id)
    path = f"/apps/{handle['application_id']}"
    found: list[str] = []

    def kept() -> bool:
        app = backend.rm.get(path)["app"]
        page = fetch(app["trackingUrl"]) if app["state"] == "FINISHED" else ""
        found.append(page)
        return f"job_id: {job.id}" in page

    until(kept, "the text in the logs of the container", LIMIT)
    return found[-1]


def cells(page: str, name: str) -> list[str]:
    """The texts of a column of the table of tasks."""
    found = re.findall(rf'<td data-name="{re.escape(name)}"[^>]*>(.*?)</td>', page)
    plain = [re.sub("<[^>]*>", " ", text.replace("<wbr>", "")) for text in found]
    return [html.unescape(text).strip() for text in plain]


@pytest.mark.parametrize("python", [sys.executable, BARE_PYTHON], ids=["host", "path"])
def test_the_tracking_url_shows_a_job_of_one_task(
    session: Session, submit: Submit, tmp_path: Path, python: str
) -> None:
    go = tmp_path / "go"
    job = submit(
        PROGRAM.format(go=str(go)),
        "paged <b>&amp;",
        python=python,
        python_env=f"path:{Path(python).parent.parent}",
        quicklinks={"My <board>": "http://board.example/?a=1&b=2", "bad": "javascript:alert(1)"},
    )
    page = page_with(session, job, lambda page: "37 %" in page)
    assert cells(page, "State") == ["RUNNING"]
    assert cells(page, "Task") == ["worker:0"]
    assert cells(page, "Memory")[0].startswith("256 MiB")
    assert cells(page, "Container")[0].startswith("container_")
    assert "paged &lt;b&gt;&amp;amp;" in page
    assert 'href="http://board.example/?a=1&amp;b=2">My &lt;board&gt;</a>' in page
    assert "javascript:alert(1)" in page
    assert 'href="javascript' not in page
    log = re.search(r'href="([^"]*/node/containerlogs/[^"]*)"', page)
    assert log
    assert fetch(html.unescape(log[1]))
    assert f'/explorer.html#{job.directory.path}"' in page
    go.touch()
    record = job.wait(timeout=LIMIT)
    assert record.state is State.SUCCEEDED
    assert "state: SUCCEEDED" in kept_text(session, job)
    (event,) = [event for event in record.events if event.kind == "yarn_page"]
    assert event.detail == "The job is on its YARN page."


def test_the_tracking_url_shows_the_tasks_of_a_gang(
    session: Session, submit: Submit, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    command = f"while ! test -e '{go}'; do sleep 0.1; done"
    roles = (
        Role("ps", 1, Resources(256), command=command, kind="untracked"),
        Role("worker", 2, Resources(300, 2, gpus=1), command=command),
    )
    job = submit("pass", "paged-gang", roles=roles, framework="any", policy="all")
    page = page_with(session, job, lambda page: cells(page, "State") == ["RUNNING"] * 3)
    assert cells(page, "Task") == ["ps:0", "worker:0", "worker:1"]
    assert cells(page, "Role") == ["ps", "worker", "worker"]
    assert cells(page, "GPUs") == ["\u2013", "1 GPU", "1 GPU"]
    assert [text.partition(" MiB")[0] for text in cells(page, "Memory")] == ["256", "300", "300"]
    assert [text.partition(" vcore")[0] for text in cells(page, "CPU")] == ["1", "2", "2"]
    assert len(set(cells(page, "Container"))) == 3
    assert all(cells(page, "Node"))
    assert all(cells(page, "Started (UTC)"))
    assert page.count("/node/containerlogs/") == 3
    go.touch()
    assert job.wait(timeout=LIMIT).state is State.SUCCEEDED
    text = kept_text(session, job)
    assert text.count("state: SUCCEEDED") == 4
    assert text.count("memory=300") == 2
