"""Let ``ckpt_path="last"`` of Lightning find the checkpoint of an earlier attempt.

Lightning's loggers begin a new ``version_N`` in each process, and ``last`` looks only there. This
file is copied beside the launcher, which calls ``activate`` after the program has imported
``lightning`` or ``pytorch_lightning``. A ``ModelCheckpoint`` with ``dirpath`` is not changed.
"""

from __future__ import annotations

import functools
import os
from importlib import import_module

TYPE_CHECKING = False  # Importing typing would delay the program's start by some milliseconds.
if TYPE_CHECKING:
    from typing import Any


def activate(module: Any) -> None:
    """Let ``ModelCheckpoint`` look in earlier versions too."""
    package = module.__name__ + (".pytorch" if module.__name__ == "lightning" else "")
    checkpoint: Any = import_module(package + ".callbacks.model_checkpoint").ModelCheckpoint
    plain = checkpoint._find_last_checkpoints

    @functools.wraps(plain)
    def find(self: Any, trainer: Any) -> Any:
        found = plain(self, trainer)
        if found or self.dirpath is not None or not trainer.loggers:
            return found
        logger = trainer.loggers[0]
        root = os.path.join(str(logger.save_dir or trainer.default_root_dir), str(logger.name))
        return _of_newest_version(root, self.CHECKPOINT_NAME_LAST)

    checkpoint._find_last_checkpoints = find


def _of_newest_version(root: str, prefix: str) -> set[str]:
    names = [name for name in os.listdir(root) if name.startswith("version_")] if root else []
    numbers = sorted((int(name[8:]) for name in names if name[8:].isdigit()), reverse=True)
    for number in numbers:
        place = os.path.join(root, f"version_{number}", "checkpoints")
        if os.path.isdir(place):
            last = [name for name in os.listdir(place) if name.startswith(prefix)]
            if last:
                return {os.path.join(place, name) for name in last}
    return set()
