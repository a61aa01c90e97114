"""Set the machines of the job for a LightGBM training that names none.

This file is copied beside the launcher, which calls ``activate`` after the program has imported
``lightgbm``. A training with its own settings (``machines``, ``num_machines``, ``tree_learner:
serial``) is not changed.
"""

from __future__ import annotations

import functools
import os

TYPE_CHECKING = False  # Importing typing would delay the program's start by some milliseconds.
if TYPE_CHECKING:
    from typing import Any

_PLACES = (
    "machines",
    "workers",
    "nodes",
    "machine_list_filename",
    "machine_list_file",
    "machine_list",
    "mlist",
    "num_machines",
    "num_machine",
)
_LEARNERS = ("tree_learner", "tree", "tree_type", "tree_learner_type")
_PORTS = ("local_listen_port", "local_port", "port")
_PARTITIONS = ("pre_partition", "is_pre_partition")


def activate(module: Any) -> None:
    """Set the parameters of every ``Booster`` that is to be trained."""
    plain = module.Booster.__init__

    @functools.wraps(plain)
    def begin(
        self: Any, params: Any = None, train_set: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        if train_set is not None:
            params = _filled(params)
        plain(self, params, train_set, *args, **kwargs)

    module.Booster.__init__ = begin


def _filled(params: Any) -> Any:
    machines = os.environ.get("LIGHTGBM_MACHINES")
    given = dict(params or {})
    learner = [str(given[name]) for name in _LEARNERS if name in given]
    if not machines or any(name in given for name in _PLACES) or learner == ["serial"]:
        return params
    given["machines"] = machines
    given["num_machines"] = len(machines.split(","))
    if not any(name in given for name in _PORTS):
        given["local_listen_port"] = int(os.environ["LIGHTGBM_LOCAL_LISTEN_PORT"])
    if not learner:
        given["tree_learner"] = "data"
    if not any(name in given for name in _PARTITIONS):
        # Each task reads its own part. If it reads all rows, they are only repeated.
        given["pre_partition"] = True
    return given
