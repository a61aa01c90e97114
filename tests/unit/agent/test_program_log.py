"""Modes of the log files of a program."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from submarine_runtime.agent.program.process import open_log


@pytest.mark.parametrize(
    ("directory_mode", "log_mode"),
    [(0o2750, 0o640), (0o700, 0o600), (0o750, 0o600), (0o2710, 0o600)],
)
def test_only_the_group_of_a_shared_log_directory_may_read(
    tmp_path: Path, directory_mode: int, log_mode: int
) -> None:
    directory = tmp_path / "logs"
    directory.mkdir()
    directory.chmod(directory_mode)
    log = directory / "worker-0.stdout.log"
    with open_log(str(log)) as file:
        file.write(b"line\n")
    assert stat.S_IMODE(log.stat().st_mode) == log_mode
