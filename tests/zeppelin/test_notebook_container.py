"""``submarine notebook start --app zeppelin``: a real Zeppelin server as a job of this machine."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import urlencode

import pytest

from submarine_jobs.commands import execute
from submarine_jobs.config import load_config
from submarine_jobs.frontends import Frontend
from submarine_runtime.protocol import State
from tests.kernel.notebook_client import HttpClient
from tests.kernel.zeppelin_home import zeppelin_at
from tests.notebook.conftest import clean_environment

pytestmark = pytest.mark.cluster  # it needs a JDK and Maven


@pytest.fixture
def zeppelin_home(tmp_path: Path) -> Path:
    """An installation."""
    return zeppelin_at(tmp_path / "zeppelin")


def test_a_zeppelin_with_a_password(
    zeppelin_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith(("SUBMARINE_", "HADOOP_"))]:
        monkeypatch.delenv(name)
    for name, value in clean_environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    frontend = Frontend()
    frontend.kind = "cli"
    words = ["notebook", "start", "--app", "zeppelin", "--zeppelin-home", str(zeppelin_home)]
    outcome = execute([*words, "--memory", "2G", "--idle", "never"], frontend)
    job = frontend.session(load_config()).job(outcome.value["job_id"])
    try:
        token = outcome.value["token"]
        assert f"Log in as submarine with {token}" in outcome.text
        assert token not in outcome.value["url"]
        guest = HttpClient(job, outcome.value["page"])
        assert guest.ask("GET", "/api/notebook")[0] in (302, 401, 403)
        wrong = urlencode({"userName": "submarine", "password": "wrong"})
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        assert guest.post("/api/login", wrong, form)[0] == 403
        right = urlencode({"userName": "submarine", "password": token})
        status, headers, body = guest.post("/api/login", right, form)
        assert status == 200, body
        # Each request gets a session, and each login another one: the last is used.
        given = [cookie.split(";")[0] for cookie in headers.get_all("Set-Cookie") or []]
        sessions = [cookie for cookie in given if cookie.startswith("JSESSIONID=")]
        note = json.dumps({"name": "mine", "notePath": "/mine"})
        status, _, body = guest.post("/api/notebook", note, {"Cookie": sessions[-1]})
        assert status == 200, body
    finally:
        execute(["notebook", "stop", outcome.value["job_id"]], frontend)
    record = job.wait(180)
    assert record.state is State.CANCELLED
    kept = [output.path for output in record.outputs]
    assert any(path.startswith("checkpoints/mine_") for path in kept), kept
