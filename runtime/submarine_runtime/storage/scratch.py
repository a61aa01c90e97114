"""Paths of the agent's files on the node's own disk."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Mapping

from submarine_runtime.protocol import MODEL_OUTPUT, AgentConfig, layout
from submarine_runtime.storage.local import make_directories


@dataclass
class Scratch:
    """The directory that holds ``agent.json``, and the directory of the logs.

    Attributes
    ----------
    began
        Start of this container's first program, in seconds by the clock of the file system; None
        if no program was started.
    """

    root: str
    logs: str
    task_name: str
    began: float | None = field(default=None, init=False)

    @classmethod
    def of(cls, root: str, config: AgentConfig, environ: Mapping[str, str]) -> Scratch:
        """Return the scratch directory; logs are in YARN's log directory, else in ``root``."""
        logs = (environ.get("LOG_DIRS") or root).split(",")[0]
        return cls(root, logs, f"{config.role}-{config.index}")

    def path(self, *parts: str) -> str:
        """Return a path below the root."""
        return os.path.join(self.root, *parts)

    def log(self, stream: str, mark: str = "") -> str:
        """Return the file of a stream of the task's log; ``mark`` names the attempt."""
        return os.path.join(self.logs, f"{self.task_name}{mark}.{stream}.log")

    @property
    def program(self) -> str:
        """Directory of the unpacked bundle: the program's working directory."""
        return self.path("program")

    @property
    def launch(self) -> str:
        """Directory of the launcher."""
        return self.path("launch")

    @property
    def outputs(self) -> dict[str, str]:
        """Name in the job directory -> local directory."""
        names = (layout.CHECKPOINTS, layout.MODEL, layout.TENSORBOARD)
        return {name: self.path("output", name) for name in names}

    def saved_output(self, name: str = "") -> str:
        """Return the directory of an output of ``--save-output``; empty: SUBMARINE_OUTPUT_DIR."""
        if name == MODEL_OUTPUT:
            return self.outputs[layout.MODEL]
        return self.path("output", "saved", name) if name else self.path("output", "own")

    def published_list(self, name: str) -> str:
        """Return the file with the names of the parts of a stream that are published."""
        return self.path("output", f"{name}.published")

    def mark_start(self) -> None:
        """Record the start of this container's first program; later calls change nothing."""
        if self.began is None:
            # cost: a new file takes 0.8 ms of CPU time, which all tasks of a gang wait for.
            os.utime(self.launch)
            self.began = os.stat(self.launch).st_ctime

    def make(self) -> None:
        """Create the directories for the program."""
        for path in (self.program, self.launch, *self.outputs.values()):
            make_directories(path)
