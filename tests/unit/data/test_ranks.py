"""Rank and number of processes, from the environment of a job."""

from __future__ import annotations

import json

import pytest

from submarine_data import DataError, place_of_process

TASK = {"SUBMARINE_ROLE": "worker", "SUBMARINE_INDEX": "2", "SUBMARINE_TASK_COUNT": "4"}


def tf_config(role: str, index: int) -> dict[str, str]:
    cluster = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, (0, 1)),
        (TASK, (2, 4)),
        ({**TASK, "RANK": "5", "WORLD_SIZE": "8"}, (5, 8)),
        ({**TASK, "RANK": "5"}, (2, 4)),
        ({**TASK, "HOROVOD_RANK": "1", "HOROVOD_SIZE": "3"}, (1, 3)),
        ({**TASK, "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3"}, (1, 3)),
        ({**TASK, **tf_config("chief", 0)}, (0, 3)),
        ({**TASK, **tf_config("worker", 1)}, (2, 3)),
        ({**TASK, **tf_config("evaluator", 0)}, (0, 1)),
        ({**TASK, "TF_CONFIG": "{"}, (2, 4)),
    ],
)
def test_the_first_that_is_set_counts(variables: dict[str, str], expected: tuple[int, int]) -> None:
    assert place_of_process(variables) == expected


def test_wrong_variables() -> None:
    with pytest.raises(DataError, match="RANK=x and WORLD_SIZE=2 are not numbers"):
        place_of_process({"RANK": "x", "WORLD_SIZE": "2"})
    with pytest.raises(DataError, match="Rank 2 of 2 does not exist"):
        place_of_process({"RANK": "2", "WORLD_SIZE": "2"})
