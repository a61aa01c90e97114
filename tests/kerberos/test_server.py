"""A Jupyter server of a user with a ticket: jobs, logs, models, websocket and TensorBoard."""

from __future__ import annotations

import contextlib
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_minicluster import Minicluster
from tests.kerberos.helpers import User
from tests.local.server.channel_page import Page
from tests.local.server.jupyter_server import Server
from tests.local.server.test_server_channel import succeeded, wait_for_row
from tests.local.server.test_server_tensorboard import BOARD, WRITING, curve
from tests.waiting import until

#: Saves a model after the last step.
SAVES = """
with open(os.environ["SUBMARINE_MODEL_DIR"] + "/weights.bin", "wb") as file:
    file.write(b"weights")
"""

pytestmark = [pytest.mark.cluster, pytest.mark.full, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def alice(kerberos_minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> User:
    return User(kerberos_minicluster, "alice", tmp_path_factory.mktemp("users") / "alice")


@pytest.fixture(scope="module")
def server(alice: User) -> Iterator[Server]:
    """The server shares the list of jobs with alice's commands."""
    names = (*alice.cluster.environ("alice"), "SUBMARINE_BACKEND")
    environment = {name: alice.environ[name] for name in names if name in alice.environ}
    made = Server(alice.directory / "server", **environment)
    alice.environ["SUBMARINE_STATE_DIR"] = made.environment["SUBMARINE_STATE_DIR"]
    made.start()
    try:
        yield made
    finally:
        assert made.stop()
    assert "Traceback" not in made.log.read_text()


@pytest.fixture
def flag(tmp_path: Path) -> Path:
    """Ends the job when it exists."""
    return tmp_path / "enough"


def test_a_running_job_in_panel_and_tensorboard(server: Server, alice: User, flag: Path) -> None:
    source = WRITING.replace("FLAG", repr(str(flag)))
    program = alice.file("board.py", f"print('wri' + 'tes', flush=True)\n{source}{SAVES}")
    with contextlib.closing(Page(server)) as page:
        page.subscribe(1, "jobs")
        job = alice.json("run", program, "--memory", "512M")["job_id"]
        page.subscribe(2, "job", job=job)
        page.until(lambda m: m.get("id") == 2 and m.get("view", {}).get("source") == "live")
        # TensorBoard's process of the server reads the event files while the job writes them.
        assert b"<tb-webapp" in server.call("GET", f"{BOARD}{job}/").data
        before = until(lambda: curve(server, job, f"{job}/train"))
        until(lambda: len(curve(server, job, f"{job}/train")) > len(before))
        path = f"jobs/{job}/log?task=worker:0&attempt=e1-a1&stream=stdout"
        assert server.call("GET", path).data == b"writes\n"
        flag.touch()
        page.until(lambda m: m == {"id": 2, "type": "end"})
        wait_for_row(page, 1, job, succeeded)
    listed = server.call("GET", "jobs?text=board").json["jobs"]
    assert (job, "SUCCEEDED") in [(row["job_id"], row["state"]) for row in listed]
    assert server.call("GET", f"jobs/{job}/logs").json["logs"]
    assert server.call("GET", path).data == b"writes\n"
    # Saved by this side: the job has ended.
    saved = server.call("POST", f"jobs/{job}/models", {"name": "best"})
    assert saved.status == 201, saved.data
    assert server.call("GET", f"jobs/{job}/models").json["models"] == [saved.json]


def test_cancel(server: Server, alice: User) -> None:
    program = alice.file("long.py", "import time\ntime.sleep(600)\n")
    job = alice.json("run", program, "--memory", "256M")["job_id"]
    server.until(f"jobs/{job}", lambda view: view["record"]["state"] == "RUNNING")
    assert server.call("POST", f"jobs/{job}/cancel", {"why": "a test"}).status == 202
    view = server.until(f"jobs/{job}", lambda view: view["record"]["state"] == "CANCELLED")
    assert view["record"]["reason"] == "cancelled"


def test_tensorboard_in_a_container(alice: User, flag: Path) -> None:
    """The task of ``--tensorboard`` reads the workers' files by the tokens of its container."""
    program = alice.file("inside.py", WRITING.replace("FLAG", repr(str(flag))))
    board = ("--tensorboard", "--tensorboard_resources", "memory=1G,vcores=1")
    job = alice.json("run", program, "--num_workers", "1", "--memory", "512M", *board)["job_id"]
    url = until(lambda: alice.json("show", job)["links"].get("TensorBoard", ""))

    def runs() -> bytes:
        with contextlib.suppress(OSError, urllib.error.HTTPError):
            context = ssl._create_unverified_context() if url.startswith("https") else None
            with urllib.request.urlopen(f"{url}data/runs", timeout=20, context=context) as reply:
                return reply.read()
        return b""

    until(lambda: b"worker-0" in runs(), "TensorBoard shows the worker")
    flag.touch()
    until(lambda: alice.json("show", job)["state"] == "SUCCEEDED")
