"""A port in use: the error of each framework is the one that its module looks for."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from submarine_jobs.submit import write_runtime_zip
from submarine_runtime import frameworks
from submarine_runtime.network import Reservation
from tests.frameworks.gang import EXAMPLES, FRAMEWORKS, MXNET, OURS, SYSTEM, Gang

TWO = {"worker": 2}
CASES = [
    ("pytorch", TWO, SYSTEM, "torch_ddp.py", "worker:0"),
    ("tensorflow", TWO, OURS, "tf_mirrored.py", "worker:1"),
    ("lightgbm", TWO, FRAMEWORKS, "lightgbm_train.py", "worker:0"),
    ("jax", TWO, FRAMEWORKS, "jax_train.py", "worker:0"),
    ("mxnet", {**TWO, "ps": 1, "scheduler": 1}, MXNET, "mxnet_train.py", "scheduler:0"),
]


@pytest.mark.full
@pytest.mark.parametrize(("framework", "roles", "python", "program", "task"), CASES)
def test_a_taken_port_is_recognised(
    work: Path, framework: str, roles: dict[str, int], python: Path, program: str, task: str
) -> None:
    shutil.copy(EXAMPLES / program, work)
    made = Gang(work, framework, python, [program])
    members = made.members(roles, 1)
    port = made.reservations[task].ports[0]
    made.reservations[task].release()
    with socket.socket() as other:
        other.bind(("", port))
        other.listen()
        try:
            made.start(members)
            victim = next(one for one in made.tasks if one.name == task)
            victim.process.wait(120)
            words = frameworks.setting_of(framework, "ADDRESS_IN_USE")
            assert any(word in victim.text for word in words), victim.text[-2000:]
        finally:
            made.end()


@pytest.mark.parametrize(
    ("python", "verb", "more"),
    [(FRAMEWORKS, "tracker", ["--workers", "2"]), (OURS, "rendezvous", ["--sizes", "global=2"])],
)
def test_a_helper_says_that_its_port_is_taken(
    tmp_path: Path, python: Path, verb: str, more: list[str]
) -> None:
    runtime = str(write_runtime_zip(tmp_path))
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        place = ["--address", "127.0.0.1", "--port", str(other.getsockname()[1])]
        command = [str(python), runtime, verb, *place, *more]
        done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Address already in use" in done.stderr.splitlines()[-1]
    assert len(done.stderr.splitlines()) == 1


def test_a_tracker_serves_again_at_the_same_port(tmp_path: Path) -> None:
    """As after a gang's restart in the same containers: connections of the last one linger."""
    runtime = str(write_runtime_zip(tmp_path))
    ports = Reservation(1)
    ports.release()
    place = ["--address", "127.0.0.1", "--port", str(ports.ports[0]), "--workers", "2"]
    command = [str(FRAMEWORKS), runtime, "tracker", *place]
    for _ in range(2):
        tracker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            assert tracker.stdout is not None
            assert tracker.stdout.readline() == b"tracker ready\n", tracker.communicate()[1]
            with socket.create_connection(("127.0.0.1", ports.ports[0])):
                time.sleep(0.2)
                tracker.kill()
                tracker.wait()
        finally:
            tracker.kill()
            tracker.communicate()
