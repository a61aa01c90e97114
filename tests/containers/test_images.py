"""Images that cannot run: each ends the job at once, with one sentence."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.containers.conftest import Containers, Outcome
from tests.containers.hadoop import FOREIGN, IMAGE, WITHOUT_BASH, WITHOUT_PYTHON

_SOURCE = "print('never', 'printed')"
#: Jobs at once, with two workers each, and processes beside them that use all of a core.
_JOBS, _BUSY = 2, 2


def _assert_refused(containers: Containers, done: Outcome, sentence: str) -> None:
    assert done.status
    assert sentence in done.output
    assert "restart" not in done.output
    assert "agent died" not in done.output
    assert "never printed" not in done.output
    record = containers.show(done)
    assert record["reason"] == "launch_failed"
    assert not any(task["restarts"] for task in record["tasks"])


@pytest.mark.parametrize(
    ("image", "sentence"),
    [
        ("local/missing:1", "The image local/missing:1 does not exist, or the node cannot pull it"),
        (FOREIGN, f"The image {FOREIGN} is of a registry that the node does not trust"),
        (WITHOUT_BASH, f"The image {WITHOUT_BASH} has no bash"),
        (WITHOUT_PYTHON, f"The image {WITHOUT_PYTHON} has no python3"),
    ],
)
def test_image_that_cannot_run_ends_the_job(
    containers: Containers, image: str, sentence: str
) -> None:
    done = containers.run(_SOURCE, "--docker_image", image, "--worker", "2", check=False)
    _assert_refused(containers, done, sentence)


def test_reason_is_known_in_every_run_on_a_busy_machine(containers: Containers) -> None:
    """The text on a container goes through YARN's own answer, so it cannot come too late."""
    options = ("--docker_image", "local/missing:1", "--worker", "2")
    with ExitStack() as load, ThreadPoolExecutor(_JOBS) as threads:
        for _ in range(_BUSY):
            load.enter_context(containers.cell.background(["sh", "-c", "while :; do :; done"]))
        runs = [
            threads.submit(
                containers.run, _SOURCE, *options, "--name", f"busy-{number}", check=False
            )
            for number in range(_JOBS)
        ]
        for run in runs:
            _assert_refused(containers, run.result(), "The image local/missing:1 does not exist")


def test_node_without_docker_ends_the_job(containers: Containers) -> None:
    with containers.nodes("node1"):
        options = ("--docker_image", IMAGE, "--node", "node1")
        done = containers.run(_SOURCE, *options, check=False)
        _assert_refused(containers, done, "The node runs no Docker containers")
