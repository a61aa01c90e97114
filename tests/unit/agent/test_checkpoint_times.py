"""When a program began to write the checkpoint in a snapshot: streams continue there."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from submarine_runtime.agent.program import InputStreams
from submarine_runtime.snapshots import FileReader, FileState, SnapshotWriter, scan_directory
from submarine_runtime.storage import LocalStore


class Directory:
    """A checkpoint directory with its snapshots."""

    def __init__(self, root: Path) -> None:
        self.root = root / "checkpoints"
        self.root.mkdir()
        (root / "job").mkdir()
        store = LocalStore(str(root / "job"))
        reader = FileReader(lambda path: os.path.join(self.root, path), lambda: None)
        self.writer = SnapshotWriter(store, "snapshots/worker-0/e1-a1", "checkpoints", reader)
        self.published: dict[str, FileState] = {}
        self.quiet = time.time()

    def write(self, name: str, data: bytes, *, rename: bool = False) -> float:
        """Write a file slowly; return when that began."""
        began = time.time()
        path = self.root / (f".{name}" if rename else name)
        with open(path, "wb") as file:
            file.write(data[:1])
            file.flush()
            time.sleep(0.03)
            file.write(data[1:])
        os.rename(path, self.root / name)
        return began

    def began(self) -> float:
        """Take a snapshot; return the time with which its checkpoint was begun, or 0."""
        files = scan_directory(str(self.root))
        found = InputStreams.checkpoint_began(
            files, self.published, self.quiet, lambda path: str(self.root / path), self.writer
        )
        self.writer.publish(files)
        self.published = files
        return found and found + 1.0


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    return Directory(tmp_path)


@pytest.mark.parametrize("rename", [False, True])
def test_a_new_file_began_when_it_was_created(directory: Directory, rename: bool) -> None:
    for number in range(3):
        began = directory.write(f"ckpt-{number}", b"x" * 1000, rename=rename)
        directory.write(f"ckpt-{number}.json", b"small")
        directory.quiet = time.time()
        # File times have the resolution of the kernel's clock.
        assert began - 0.02 <= directory.began() < began + 0.02


def test_a_file_that_is_written_in_place_began_after_the_last_look(directory: Directory) -> None:
    directory.write("ckpt", b"x" * 1000)
    assert directory.began()
    directory.quiet = time.time()
    directory.write("ckpt", b"y" * 1001)
    assert directory.began() == pytest.approx(directory.quiet)


def test_logs_and_small_files_are_no_checkpoint(directory: Directory) -> None:
    directory.write("ckpt", b"x" * 1000)
    directory.write("train.log", b"step 1\n" * 200)
    assert directory.began()
    with open(directory.root / "train.log", "ab") as file:
        file.write(b"step 2\n" * 1000)
    assert directory.began() == 0
    directory.write("metrics.json", b"x" * 499)
    assert directory.began() == 0
    os.unlink(directory.root / "train.log")
    assert directory.began() == 0
