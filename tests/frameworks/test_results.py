"""The examples with the real frameworks, in processes of this machine: all end with one result."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.frameworks.gang import (
    FRAMEWORKS,
    HOROVOD,
    MXNET,
    OURS,
    SYSTEM,
    gang,
    same_result,
)

CREW = ("worker", "chief")


def test_xgboost(work: Path) -> None:
    with gang(work, "xgboost", {"worker": 2}, FRAMEWORKS, "xgboost_train.py") as made:
        tasks = made.wait(CREW)
        same_result(tasks, 0.9)
        assert [task.said("rank") for task in tasks] == [["0 of 2"], ["1 of 2"]]
        assert made.setups["worker:0"].network == "lo 127.0.0.1"


@pytest.mark.full
def test_pytorch(work: Path) -> None:
    with gang(work, "pytorch", {"worker": 2}, SYSTEM, "torch_ddp.py", processes=2) as made:
        tasks = made.wait(CREW)
        same_result(tasks, 0.9)
        ranks = sorted(text for task in tasks for text in task.said("rank"))
        assert ranks == [f"{r} of 4, local rank {r % 2}" for r in range(4)]


@pytest.mark.full
def test_tensorflow_mirrored(work: Path) -> None:
    with gang(work, "tensorflow", {"worker": 2}, OURS, "tf_mirrored.py") as made:
        same_result(made.wait(CREW), 0.9)


@pytest.mark.full
def test_tensorflow_parameter_server(work: Path) -> None:
    roles = {"chief": 1, "worker": 2, "ps": 1, "evaluator": 1}
    shared = work / "shared"
    shared.mkdir()
    program = "tf_parameter_server.py"
    with gang(work, "tensorflow", roles, OURS, program, str(shared)) as made:
        same_result(made.wait(("chief", "evaluator")), 0.9)


@pytest.mark.full
def test_lightgbm(work: Path) -> None:
    with gang(work, "lightgbm", {"worker": 2}, FRAMEWORKS, "lightgbm_train.py") as made:
        same_result(made.wait(CREW), 0.9)


@pytest.mark.full
def test_jax(work: Path) -> None:
    roles = {"worker": 2}
    with gang(work, "jax", roles, FRAMEWORKS, "jax_train.py", processes=2) as made:
        tasks = made.wait(CREW)
        same_result(tasks, 0.9)
        first = sorted(text for task in tasks for text in task.said("process"))
        assert first == [f"{r} of 4, 4 devices" for r in range(4)]


@pytest.mark.full
def test_mxnet(work: Path) -> None:
    roles = {"worker": 2, "ps": 1, "scheduler": 1}
    with gang(work, "mxnet", roles, MXNET, "mxnet_train.py") as made:
        tasks = made.wait(CREW)
        same_result(tasks, 0.9)
        made.wait(("ps", "scheduler"), 30)


@pytest.mark.full
def test_horovod(work: Path) -> None:
    roles = {"worker": 2}
    with gang(work, "horovod", roles, HOROVOD, "horovod_torch.py", processes=2) as made:
        tasks = made.wait(CREW)
        same_result(tasks, 0.9)
        ranks = sorted(text for task in tasks for text in task.said("rank"))
        assert ranks == [f"{r} of 4, local rank {r % 2}" for r in range(4)]
