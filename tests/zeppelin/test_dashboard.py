"""The former interpreter's form and words on a real Zeppelin server, HDFS and YARN."""

from __future__ import annotations

import http.client
import re
import time
import urllib.request
import uuid
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.model import Profile
from submarine_minicluster.cluster import Minicluster
from tests.zeppelin.page import Page
from tests.zeppelin.server import Zeppelin, output_of
from tests.zeppelin.test_notes import JOB, jobs_in, jobs_named, submarine, text_of

pytestmark = pytest.mark.cluster
__all__ = ["submarine"]
SIZES = {"tf.worker.services.memory": "256M", "tf.worker.services.cpu": "1"}


@pytest.fixture
def checkpoints(submarine: Zeppelin) -> Iterator[str]:
    """The path of the setting, with a user's name to be filled in."""
    path = f"/tmp/{uuid.uuid4().hex[:8]}/${{username}}/checkpoints"
    submarine.configure("submarine", properties={**SIZES, "tf.checkpoint.path": path})
    yield path
    submarine.configure("submarine", properties={"tf.checkpoint.path": ""})


def test_the_form_in_a_page_runs_a_job_over_a_cleaned_checkpoint(
    submarine: Zeppelin, minicluster: Minicluster, checkpoints: str, tmp_path: Path
) -> None:
    conf = Path(minicluster.environ()["HADOOP_CONF_DIR"])
    backend = YarnBackend(Profile(backend="yarn", hadoop_conf_dir=conf, state_dir=tmp_path))
    storage, _ = backend.job_root()
    text = "%submarine dashboard"
    program = "%submarine.python\nimport sys\nprint('it got', sys.argv[1:])\n"
    note = submarine.note("form", ("", program), ("", text))
    form, job = note.paragraphs[1], f"anonymous-{note.id.lower()}"
    path = f"{checkpoints.replace('${username}', 'anonymous')}/{note.id}"
    storage.make_directory(path)
    (tmp_path / "old").write_bytes(b"of an earlier run")
    storage.upload(tmp_path / "old", f"{path}/old")
    with Page(submarine, note) as page:
        page.run(form, text)
        first = note.ended(form)
        shown = page.await_(
            lambda one: (
                one["op"] == "PARAGRAPH"
                and "worker_launch_cmd" in one["data"]["paragraph"]["settings"]["forms"]
            )
        )["data"]["paragraph"]["settings"]
        assert first["status"] == "FINISHED"
        assert shown["params"]["checkpoint_path"] == path
        # Else a page would run the job as soon as it is chosen, before the fields are filled in.
        assert first["config"]["runOnSelectionChange"] is False
        assert jobs_named(submarine, job) == 0
        # What a page sends: every value of the form, those of ticked boxes as a list.
        wished = {
            **shown["params"],
            "command": "JOB_RUN",
            "input_path": "/data",
            "worker_launch_cmd": "python main.py %input_path% %checkpoint_path%",
            "clean_checkpoint": ["true"],
        }
        page.run(form, text, **wished)
        ran = note.awaited(form, lambda now: "SUCCEEDED" in text_of(now), JOB)
        assert f"Cleaned {path}." in text_of(ran)
        assert f"it got ['/data', '{path}']" in text_of(ran)
        assert storage.stat(f"{path}/old") is None
        # The list has gone back, the fields stay: running it again only looks.
        now = ran["settings"]["params"]
        assert (now["command"], now["input_path"], now["clean_checkpoint"]) == ("SHOW", "/data", [])
        page.run(form, text, **now)
        looked = note.awaited(form, lambda now: "Settings of the interpreter" in text_of(now))
        assert jobs_in(looked) == jobs_in(ran)
    assert jobs_named(submarine, job) == 1


@pytest.mark.full
def test_a_tensorboard_of_a_user_is_started_once_and_stopped(submarine: Zeppelin) -> None:
    note = submarine.note(
        "board",
        ("", "%submarine TENSORBOARD_RUN"),
        ("", "%submarine tensorboard_run"),
        ("", "%submarine TENSORBOARD_STOP"),
    )
    start, again, stop = note.paragraphs
    note.run(start)
    link = re.compile(r'href="([^"]*)"[^>]*>TensorBoard<')
    shown = note.awaited(start, lambda now: link.search(output_of(now)), JOB)
    found = link.search(output_of(shown))
    assert found is not None
    assert "TensorBoard" in _page(unescape(found[1]))
    assert jobs_in(note.run(again)) == jobs_in(shown)
    note.run(stop, JOB)
    note.awaited(start, lambda now: "CANCELLED" in text_of(now), JOB)
    said = text_of(note.run(stop))
    assert "No job anonymous-tb is running." in said


def _page(url: str) -> str:
    """A page as soon as its server, which was just started, has it."""
    deadline = time.monotonic() + JOB
    while True:
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return str(answer.read().decode())
        except (OSError, http.client.HTTPException):
            assert time.monotonic() < deadline, f"{url} does not answer"
            time.sleep(0.3)
