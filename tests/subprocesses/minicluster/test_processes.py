"""Processes of the minicluster, and file locks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from submarine_minicluster import MiniclusterError
from submarine_minicluster.machine import Identity, file_lock, find_marked, launch, terminate
from tests.waiting import until


def start_sleeper(tmp_path: Path, **env: str) -> Identity:
    identity = launch(
        ["sleep", "60"], log=tmp_path / "log", env={"PATH": os.environ["PATH"], **env}, cwd=tmp_path
    )
    assert identity is not None
    return identity


def test_a_launched_process_is_detached_and_terminates(tmp_path):
    sleeper = start_sleeper(tmp_path)
    fields = Path(f"/proc/{sleeper.pid}/stat").read_text().rpartition(")")[2].split()
    assert int(fields[1]) != os.getpid()
    assert sleeper.alive
    terminate([sleeper], grace=5)
    assert not sleeper.alive


def test_a_process_that_ignores_sigterm_is_killed(tmp_path):
    stubborn = launch(
        [sys.executable, "-c", "import signal, time\nsignal.signal(15, signal.SIG_IGN)\n"
         "print('deaf', flush=True)\ntime.sleep(60)"],
        log=tmp_path / "log", env=dict(os.environ), cwd=tmp_path,
    )  # fmt: skip
    assert stubborn is not None
    while "deaf" not in (tmp_path / "log").read_text():
        time.sleep(0.02)
    terminate([stubborn], grace=0.2)
    assert not stubborn.alive


def test_a_reused_pid_is_not_signalled(tmp_path):
    sleeper = start_sleeper(tmp_path)
    other = Identity(sleeper.pid, sleeper.started - 1, sleeper.boot)
    rebooted = Identity(sleeper.pid, sleeper.started, "another boot")
    for stale in (other, rebooted):
        pidfile = tmp_path / "pid.json"
        stale.write(pidfile)
        assert Identity.read(pidfile) is None
        assert not stale.signal(signal.SIGKILL)
        terminate([stale], grace=0)
    assert sleeper.alive
    terminate([sleeper], grace=5)


def test_find_marked_finds_other_sessions_and_empty_environments(tmp_path):
    value = str(tmp_path / "cluster")
    root = launch(
        ["sh", "-c", "setsid sleep 61 & env -i sleep 62 & sleep 63"],
        log=tmp_path / "log", env={"PATH": os.environ["PATH"], "MARK_OF_TEST": value}, cwd=tmp_path,
    )  # fmt: skip
    assert root is not None
    until(lambda: len(find_marked("MARK_OF_TEST", value)) >= 4)
    found = find_marked("MARK_OF_TEST", value)
    assert find_marked("MARK_OF_TEST", str(tmp_path)) == []
    assert len(find_marked("MARK_OF_TEST", str(tmp_path), below=True)) == 4
    terminate(found, grace=5)
    assert find_marked("MARK_OF_TEST", value) == []


def test_find_marked_leaves_out_the_caller(tmp_path):
    code = (
        "from submarine_minicluster.machine.processes import find_marked\n"
        "print(len(find_marked('MARK_OF_TEST', 'me')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "MARK_OF_TEST": "me"}, capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert done.stdout == "0\n", done.stderr


def test_a_held_lock_is_waited_for_and_then_reported(tmp_path):
    path, waited = tmp_path / "lock", []
    with (
        file_lock(path, timeout=60),
        pytest.raises(MiniclusterError, match="has held"),
        file_lock(path, timeout=0.1, on_wait=lambda: waited.append(1)),
    ):
        pass
    assert waited == [1]
    order: list[str] = []

    def second() -> None:
        with file_lock(path, timeout=60):
            order.append("second")

    with file_lock(path, timeout=60):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.2)
        order.append("first")
    thread.join(60)
    assert order == ["first", "second"]
