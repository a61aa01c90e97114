"""A lock that another process holds, and that the system releases with its holder."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from submarine_jobs.concurrency import file_lock

HOLDER = """
import sys, time
from pathlib import Path
from submarine_jobs.concurrency import file_lock
with file_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_lock_is_free_again_when_its_holder_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            with pytest.raises(TimeoutError):
                file_lock(path).acquire(timeout=0.1)
        finally:
            holder.kill()
    with file_lock(path).acquire(timeout=10):
        assert path.exists()
    assert path.exists(), "a process that waits for it has opened this file"
