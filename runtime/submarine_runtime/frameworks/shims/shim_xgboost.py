"""Let ``xgboost.collective`` use ``DMLC_*`` variables for arguments that the program omits.

This file is copied beside the launcher, which calls ``activate`` after the program has imported
``xgboost``.
"""

from __future__ import annotations

import functools
import os
from importlib import import_module

TYPE_CHECKING = False  # Importing typing would delay the program's start by some milliseconds.
if TYPE_CHECKING:
    from typing import Any

_NAMES = ("dmlc_tracker_uri", "dmlc_tracker_port", "dmlc_task_id")


def activate(module: Any) -> None:
    """Add the tracker to the arguments of ``init`` and ``CommunicatorContext``."""
    collective: Any = import_module(module.__name__ + ".collective")
    plain = collective.init

    @functools.wraps(plain)
    def init(**args: Any) -> Any:
        return plain(**_filled(args))

    collective.init = init


def _filled(args: dict[str, Any]) -> dict[str, Any]:
    given = {name.lower() for name in args}
    chosen = any(name.startswith(("dmlc_tracker", "federated")) for name in given)
    if chosen or args.get("dmlc_communicator", "rabit") != "rabit":
        return args
    filled = dict(args)
    for name in _NAMES:
        value = os.environ.get(name.upper())
        if value and name not in given:
            filled[name] = int(value) if name.endswith("port") else value
    return filled
