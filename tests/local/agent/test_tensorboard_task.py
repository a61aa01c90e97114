"""TensorBoard as a task of a job (``--tensorboard``), with the real TensorBoard of this Python."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.model import JobSpec, Profile, Resources, Role
from submarine_runtime.protocol import State
from tests.submission import cancel_unfinished
from tests.waiting import until

#: A configuration of the projector that names a file of the machine.
PROJECTOR = 'embeddings { tensor_name: "x" metadata_path: "/etc" "/passwd" }\n'
WORKER = f"""
printf '%s' '{PROJECTOR}' > $SUBMARINE_TENSORBOARD_DIR/projector_config.pbtxt
echo x > $SUBMARINE_TENSORBOARD_DIR/events.out.tfevents.1.here.1
while ! [ -e FLAG ]; do sleep 0.1; done
"""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    made = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    yield made
    cancel_unfinished(made)


def get(url: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(url, timeout=20) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as exc:
        return exc.code, exc.read()
    except OSError:
        return 0, b""


def address(job: Job) -> str:
    return job.view().record.links.get("TensorBoard", "")


def test_tensorboard_has_no_projector_and_ends_with_the_job(
    session: Session, tmp_path: Path
) -> None:
    flag = tmp_path / "enough"
    worker = Role("worker", 1, Resources(200), command=WORKER.replace("FLAG", str(flag)))
    board = Role("tensorboard", 1, Resources(1024), command="submarine:tensorboard", kind="sidecar")
    job = session.submit(
        JobSpec(
            "board", "local", roles=(worker, board), program=None, python=sys.executable,
            framework="any", quicklinks={"TensorBoard": "http://tensorboard-0:0/"},
        ),
        None,
    )  # fmt: skip
    url = until(lambda: address(job))
    until(lambda: get(url)[0] == 200)
    view = session.profile.state_dir.absolute() / "local" / job.id
    until(lambda: list(view.rglob("tensorboard-view/worker-0/events.out.tfevents*")))
    for page in ("runs", "info?run=worker-0", "metadata?run=worker-0&name=x", "index.js"):
        assert get(f"{url}data/plugin/projector/{page}")[0] == 404
    assert b"projector" not in get(f"{url}data/plugins_listing")[1]
    flag.touch()
    record = job.wait(60)
    assert (record.state, record.detail) == (State.SUCCEEDED, "")
    assert [event.detail for event in record.events if event.kind == "warning"] == []
