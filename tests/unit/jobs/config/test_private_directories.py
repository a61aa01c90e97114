"""Directories of a user's own files: the missing ones above them are closed too."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.config import make_private

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def usual_umask() -> Iterator[None]:
    old = os.umask(0o022)
    yield
    os.umask(old)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("usual_umask")
def test_each_missing_directory_is_closed(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    make_private(shared / "a/b")
    make_private(shared / "a/b")
    assert [mode(shared / name) for name in ("", "a", "a/b")] == [0o755, 0o700, 0o700]
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"File exists|Not a directory"):
        make_private(tmp_path / "file/a")


def test_no_other_way_of_making_them_is_used() -> None:
    """``mkdir(mode=0o700, parents=True)`` leaves what is above open to all users."""
    wrong = re.compile(r"mkdir\([^)]*parents=True[^)]*0o700|mkdir\([^)]*0o700[^)]*parents=True")
    places = ("jobs", "kernel", "zeppelin", "workflows", "server_ext", "magics")
    found = {
        str(path.relative_to(ROOT))
        for place in places
        for path in (ROOT / place).rglob("*.py")
        if wrong.search(path.read_text(encoding="utf-8"))
    }
    assert found == set()
