"""Names of everything that the agent keeps on the node's own disk; makes the directories."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Mapping

from submarine_runtime.protocol import layout
from submarine_runtime.protocol.agent_config import AgentConfig
from submarine_runtime.storage.local import make_directories


@dataclass(frozen=True)
class Scratch:
    """The directory with ``agent.json`` in it, and where the logs go."""

    root: str
    logs: str
    task_name: str

    @classmethod
    def of(cls, root: str, config: AgentConfig, environ: Mapping[str, str]) -> Scratch:
        """Logs go where YARN aggregates them from, else beside everything else."""
        logs = (environ.get("LOG_DIRS") or root).split(",")[0]
        return cls(root, logs, f"{config.role}-{config.index}")

    def path(self, *parts: str) -> str:
        """A path below the root."""
        return os.path.join(self.root, *parts)

    def log(self, stream: str, mark: str = "") -> str:
        """The file that the program's ``stdout`` or ``stderr`` is; ``mark`` is of its attempt."""
        return os.path.join(self.logs, f"{self.task_name}{mark}.{stream}.log")

    @property
    def program(self) -> str:
        """Where the bundle is unzipped: the program's working directory."""
        return self.path("program")

    @property
    def launch(self) -> str:
        """Where the launcher lies."""
        return self.path("launch")

    @property
    def outputs(self) -> dict[str, str]:
        """Directory in the job directory -> directory here."""
        names = (layout.CHECKPOINTS, layout.MODEL, layout.TENSORBOARD)
        return {name: self.path("output", name) for name in names}

    def mark_start(self) -> None:
        """Note that the first program of this container starts now; later calls change nothing."""
        with open(self.path("launch", "began"), "ab"):
            pass

    @property
    def began(self) -> float | None:
        """When that was, by the clock of the file system; None if no program was started."""
        try:
            return os.stat(self.path("launch", "began")).st_ctime
        except OSError:
            return None

    def make(self) -> None:
        """Make the directories that the program finds."""
        for path in (self.program, self.launch, *self.outputs.values()):
            make_directories(path)
