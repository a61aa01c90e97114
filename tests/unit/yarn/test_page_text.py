"""The job's page as text, beside the logs of its container."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from submarine_runtime.yarn import page_text


@pytest.mark.parametrize(("directory_mode", "mode"), [(0o2750, 0o640), (0o700, 0o600)])
def test_yarn_may_read_the_text_where_the_directory_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directory_mode: int, mode: int
) -> None:
    """LinuxContainerExecutor sets a umask of 077."""
    directory = tmp_path / "logs"
    directory.mkdir()
    directory.chmod(directory_mode)
    monkeypatch.setenv("LOG_DIRS", f"{directory},{tmp_path / 'other'}")
    umask = os.umask(0o077)
    try:
        page_text.write_text({"job_id": "a-1", "state": "SUCCEEDED"})
    finally:
        os.umask(umask)
    text = directory / page_text.FILE
    assert "job_id: a-1" in text.read_text()
    assert stat.S_IMODE(text.stat().st_mode) == mode
