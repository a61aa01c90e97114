"""The rank of this process among those that share the data, from the environment of the job."""

from __future__ import annotations

import json
import os
from typing import Mapping, NamedTuple

from submarine_data.errors import DataError
from submarine_runtime.translation import _

#: Variables of rank and number of processes, in the order in which they count.
_PAIRS = (
    ("RANK", "WORLD_SIZE"),
    ("HOROVOD_RANK", "HOROVOD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
)
#: Roles of TensorFlow that train, in the order of their ranks.
_TRAINING = ("chief", "master", "worker")


class Place(NamedTuple):
    """The processes that share the data.

    Parameters
    ----------
    rank
        Number of this process, from 0 to ``world`` - 1.
    world
        Number of processes.
    """

    rank: int
    world: int


def place_of_process(environment: Mapping[str, str] | None = None) -> Place:
    """Return rank and number of the processes that share the data.

    The first that is set counts: ``RANK`` and ``WORLD_SIZE``; ``HOROVOD_RANK`` and
    ``HOROVOD_SIZE``; ``OMPI_COMM_WORLD_RANK`` and ``OMPI_COMM_WORLD_SIZE``; chief and workers of
    ``TF_CONFIG`` (any other task of it, such as an evaluator, reads everything);
    ``SUBMARINE_INDEX`` and ``SUBMARINE_TASK_COUNT``, the tasks of the role. Without any of them
    the process reads everything.

    Parameters
    ----------
    environment
        Variables by name [those of this process].

    Raises
    ------
    DataError
        If a variable is no number, or a rank is not below the number of processes.
    """
    variables = os.environ if environment is None else environment
    for rank, world in _PAIRS:
        if variables.get(rank) and variables.get(world):
            return _checked(variables, rank, world)
    if variables.get("TF_CONFIG"):
        found = _of_tf_config(variables["TF_CONFIG"])
        if found:
            return found
    if variables.get("SUBMARINE_INDEX") and variables.get("SUBMARINE_TASK_COUNT"):
        return _checked(variables, "SUBMARINE_INDEX", "SUBMARINE_TASK_COUNT")
    return Place(0, 1)


def check_place(place: Place) -> Place:
    """Return the place if its rank is from 0 to the number of processes - 1.

    Raises
    ------
    DataError
        If it is not.
    """
    if not 0 <= place.rank < place.world:
        raise DataError(
            _("Rank {rank} of {world} does not exist: ranks are 0 to world - 1.").format(
                rank=place.rank, world=place.world
            )
        )
    return place


def _checked(variables: Mapping[str, str], rank: str, world: str) -> Place:
    try:
        place = Place(int(variables[rank]), int(variables[world]))
    except ValueError:
        raise DataError(
            _("{rank}={rank_value} and {world}={world_value} are not numbers.").format(
                rank=rank, rank_value=variables[rank], world=world, world_value=variables[world]
            )
        ) from None
    return check_place(place)


def _of_tf_config(text: str) -> Place | None:
    try:
        config = json.loads(text)
        task = config["task"]
        cluster = config["cluster"]
        counts = [(role, len(cluster[role])) for role in _TRAINING if cluster.get(role)]
        role, index = task["type"], int(task["index"])
    except (ValueError, KeyError, TypeError):
        return None  # TensorFlow itself reports it.
    before = 0
    for name, count in counts:
        if name == role:
            return Place(before + index, sum(number for _role, number in counts))
        before += count
    return Place(0, 1)
