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
    """Add the tracker to the arguments of ``init`` and ``CommunicatorContext``, or need none."""
    collective: Any = import_module(module.__name__ + ".collective")
    plain = collective.init

    @functools.wraps(plain)
    def init(**args: Any) -> Any:
        return plain(**_filled(args))

    collective.init = init
    if os.environ.get("DMLC_TRACKER_URI"):
        return
    context = collective.CommunicatorContext
    plain_enter = context.__enter__

    @functools.wraps(plain_enter)
    def enter(self: Any) -> Any:
        if _is_chosen(self.args):
            return plain_enter(self)
        # A single task has no tracker: it is rank 0 of 1, and the context asserts that it has one.
        collective.init(**self.args)
        return self.args

    context.__enter__ = enter


def _is_chosen(args: dict[str, Any]) -> bool:
    """Return whether the program names a tracker, or another communicator."""
    chosen = any(name.lower().startswith(("dmlc_tracker", "federated")) for name in args)
    return chosen or args.get("dmlc_communicator", "rabit") != "rabit"


def _filled(args: dict[str, Any]) -> dict[str, Any]:
    if _is_chosen(args):
        return args
    given = {name.lower() for name in args}
    filled = dict(args)
    for name in _NAMES:
        value = os.environ.get(name.upper())
        if value and name not in given:
            filled[name] = int(value) if name.endswith("port") else value
    return filled
