"""An image that the cluster ignores is an error, not another Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from submarine_runtime.agent.preparation.preparation import WITHOUT_DOCKER, check_image
from submarine_runtime.protocol import EndReason

ASKED = {
    "YARN_CONTAINER_RUNTIME_TYPE": "docker",
    "YARN_CONTAINER_RUNTIME_DOCKER_IMAGE": "team/kernel:1",
}


def test_an_executor_that_ignores_the_image_is_said(tmp_path: Path) -> None:
    assert check_image(str(tmp_path), ASKED) is None
    (tmp_path / WITHOUT_DOCKER).touch()
    ending = check_image(str(tmp_path), ASKED)
    assert ending is not None
    assert ending.reason is EndReason.LAUNCH_FAILED
    assert "The cluster runs no Docker containers" in ending.detail
    assert "team/kernel:1" in ending.detail


@pytest.mark.parametrize("variables", [{}, {"YARN_CONTAINER_RUNTIME_TYPE": "default"}])
def test_a_task_without_an_image_is_not_checked(tmp_path: Path, variables: dict[str, str]) -> None:
    (tmp_path / WITHOUT_DOCKER).touch()
    assert check_image(str(tmp_path), variables) is None
