"""Images that cannot run: each ends the job at once, with one sentence."""

from __future__ import annotations

import pytest

from tests.containers.conftest import Containers, Outcome
from tests.containers.hadoop import FOREIGN, IMAGE, WITHOUT_BASH, WITHOUT_PYTHON

_SOURCE = "print('never printed')"


def _assert_refused(containers: Containers, done: Outcome, sentence: str) -> None:
    assert done.status
    assert sentence in done.output
    assert "restart" not in done.output
    assert "agent died" not in done.output
    assert containers.show(done)["reason"] == "launch_failed"


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


def test_node_without_docker_ends_the_job(containers: Containers) -> None:
    with containers.nodes("node1"):
        options = ("--docker_image", IMAGE, "--node", "node1")
        done = containers.run(_SOURCE, *options, check=False)
        _assert_refused(containers, done, "The node runs no Docker containers")
