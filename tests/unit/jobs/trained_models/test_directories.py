"""Publications to a local directory that are interrupted at each step, without other processes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from submarine_jobs.trained_models.directories import (
    ModelDraft,
    PublicationError,
    directories_of,
    published_manifest,
)
from submarine_runtime.storage import LocalStore
from tests.local.models.interrupted_store import check_each_interruption, publish, word_of


@pytest.mark.parametrize("replaced", [False, True], ids=["new", "replaced"])
def test_a_reader_sees_one_version_at_each_step(tmp_path: Path, replaced: bool) -> None:
    steps = check_each_interruption(lambda: LocalStore(""), str(tmp_path), replaced=replaced)
    assert steps >= (10 if replaced else 8)


def test_the_old_version_is_found_between_the_renames(tmp_path: Path) -> None:
    store, target = LocalStore(""), str(tmp_path / "digits/7")
    publish(store, target, "old", replace=False)
    os.rename(target, directories_of(target)[1])
    assert word_of(store, target) == "old"
    # It exists for a publication that replaces nothing.
    with pytest.raises(PublicationError, match="exists already"):
        publish(store, target, "new", replace=False)
    publish(store, target, "new", replace=True)
    assert word_of(store, target) == "new"


def test_an_invalid_manifest_is_one_sentence(tmp_path: Path) -> None:
    for text in ("{", "[]", '{"format": 2}', '{"format": 1, "files": [{"path": "a"}]}'):
        (tmp_path / "7").mkdir(exist_ok=True)
        (tmp_path / "7/submarine-model.json").write_text(text)
        with pytest.raises(PublicationError, match="is not a manifest of a model"):
            published_manifest(LocalStore(""), str(tmp_path / "7"))


def test_drafts_of_ended_processes_and_old_ones_are_removed(tmp_path: Path) -> None:
    store, target = LocalStore(""), str(tmp_path / "7")
    mine = ModelDraft(store, target)
    mine.add("file", 1, lambda: [b"x"])
    own = next(tmp_path.iterdir())
    ended = subprocess.Popen(["true"])
    ended.wait()
    dead = own.with_name(own.name.replace(f"-{os.getpid()}-", f"-{ended.pid}-"))
    other = own.with_name(".submarine-new-7-another-host-1-00")
    aged = own.with_name(".submarine-new-7-another-host-2-00")
    for folder in (dead, other, aged):
        folder.mkdir()
    os.utime(aged, (0, 0))
    ModelDraft(store, target).tidy()
    assert {item.name for item in tmp_path.iterdir()} == {own.name, other.name}
