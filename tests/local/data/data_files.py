"""Files, snapshots and stores for tests of inputs and checkpoints."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from submarine_runtime.protocol import AgentConfig
from submarine_runtime.snapshots import (
    FileReader,
    files_at_path,
    replace_directory,
    scan_directory,
    snapshots_of,
)
from submarine_runtime.storage import Fetcher, LocalStore, Scratch, Store, StoreError
from tests.configurations import make_agent_config

JOB_ID = "data-20261121-0a1b"


def make_config(**changes: Any) -> AgentConfig:
    values = {"job_id": JOB_ID, "sync_interval": 0.3, "save_grace": 20.0, **changes}
    return make_agent_config(**values)


def make_scratch(root: Path, config: AgentConfig) -> Scratch:
    root.mkdir(parents=True, exist_ok=True)
    scratch = Scratch.of(str(root), config, {})
    scratch.make()
    return scratch


def write(root: str | Path, files: dict[str, bytes]) -> None:
    for path, data in files.items():
        place = Path(root) / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)


def contents(root: str | Path) -> dict[str, bytes]:
    base = Path(root)
    return {
        str(path.relative_to(base)): path.read_bytes()
        for path in sorted(base.rglob("*"))
        if path.is_file()
    }


def reader(root: str | Path) -> FileReader:
    return FileReader(lambda path: os.path.join(root, path), lambda: None)


def seen(root: str | Path) -> dict[str, Any]:
    return scan_directory(str(root))


def newest(store: Store, target: Path, task: str = "worker:0") -> dict[str, bytes]:
    """The newest whole snapshot of a task, restored to ``target``; nothing while it changes."""
    try:
        found = snapshots_of(store, "", task, "checkpoints")
        replace_directory(Fetcher(store, 5.0), str(target), found[0].files if found else [])
    except StoreError:
        return {}
    return contents(target)


def at_path(store: Store, base: str, target: Path) -> dict[str, bytes]:
    """What a new job would restore from a checkpoint path."""
    found = files_at_path(store, base)
    replace_directory(Fetcher(store, 5.0), str(target), found[0].files if found else [])
    return contents(target)


def tree(root: str | Path) -> list[str]:
    return sorted(
        os.path.relpath(os.path.join(folder, name), root)
        for folder, _, names in os.walk(root)
        for name in names
    )


WRITES = ("publish", "put", "move", "delete", "make_directory", "upload")


class DyingStore(LocalStore):
    """A store that fails at one write operation, before or after it, and at all later ones."""

    def __init__(self, root: str, at: int, done: bool) -> None:
        super().__init__(root)
        self.left, self.done_first = at, done

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if name not in WRITES:
            return value

        def call(*args: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left < 0 or (self.left == 0 and not self.done_first):
                raise StoreError("the process died here", transient=True)
            result = value(*args, **options)
            if self.left == 0:
                raise StoreError("the process died there", transient=True)
            return result

        return call
