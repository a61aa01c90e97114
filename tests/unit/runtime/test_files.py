"""Atomic replacement of a file: content, mode, and no remains after an error."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

import pytest

from submarine_runtime.files import TEMPORARY_PREFIX, replace_file, temporary_name, write_temporary


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_reader_keeps_the_old_content_and_the_name_has_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        replace_file(path, b"new", sync=True)
        assert reader.read() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["state.json"]


def test_the_mode_is_exact_or_that_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        replace_file(tmp_path / "default", b"")
        replace_file(tmp_path / "public", b"", mode=0o644)
    finally:
        os.umask(before)
    replace_file(tmp_path / "private", b"", mode=0o600)
    assert [_mode(tmp_path / name) for name in ("default", "public", "private")] == [
        0o600,
        0o644,
        0o600,
    ]


def test_a_link_is_replaced_and_its_target_is_kept(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"kept")
    link.symlink_to(target)
    replace_file(link, b"new")
    assert (target.read_bytes(), link.read_bytes()) == (b"kept", b"new")
    assert not link.is_symlink()


def test_no_file_remains_when_the_content_or_the_rename_fails(tmp_path: Path) -> None:
    def fail(file: BinaryIO) -> None:
        file.write(b"half")
        raise ValueError("no more")

    path = tmp_path / "x"
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match="no more"):
        replace_file(path, fail)
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    with pytest.raises(OSError):
        replace_file(tmp_path / "folder", b"new")
    assert sorted(os.listdir(tmp_path)) == ["folder", "x"]
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("path", ["name", "a/name", "/name", "/a/b/" + "n" * 255])
def test_a_temporary_name_is_a_hidden_unique_sibling(path: str) -> None:
    first, second = temporary_name(path), temporary_name(path)
    assert first != second
    assert os.path.dirname(first) == os.path.dirname(path)
    assert os.path.basename(first).startswith(TEMPORARY_PREFIX)
    assert len(os.path.basename(first)) <= 255


def test_a_temporary_file_is_beside_the_path(tmp_path: Path) -> None:
    written = write_temporary(tmp_path / "x", lambda file: file.write(b"data"), mode=0o600)
    assert Path(written).read_bytes() == b"data"
    assert not (tmp_path / "x").exists()
