"""The interpreter process with a minimal server: start, shutdown, log."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from submarine_jobs.client import started_jobs
from submarine_jobs.errors import SubmarineError
from submarine_zeppelin.installation import start_trial_process
from submarine_zeppelin.interface import ENTRIES
from submarine_zeppelin.service.arguments import parse
from submarine_zeppelin.service.lifecycle import RECOVERY_HOURS, ProcessShutdown
from submarine_zeppelin.service.log import MASK, SecretsMask, set_up_logging
from tests.processes import is_gone
from tests.waiting import until

RUNNER = [sys.executable, "-m", "submarine_zeppelin"]
COMMAND = ["-d", "/", "-c", "127.0.0.1", "-i", "group"]


def test_process_starts_without_large_libraries_and_shuts_down(tmp_path: Path) -> None:
    with start_trial_process(RUNNER, {**os.environ, "ZEPPELIN_LOG_DIR": str(tmp_path)}) as started:
        started.client.init({})
        for entry in ENTRIES:
            started.client.createInterpreter("g", "s", entry.class_name, {}, "anonymous")
        assert started.client.getFormType("s", ENTRIES[0].class_name) == "NATIVE"
        mapped = Path(f"/proc/{started.pid}/maps").read_text()
        for library in ("numpy", "hdfs_native", "grpc", "cryptography"):
            assert f"/{library}" not in mapped
        started.client.shutdown()
        until(lambda: is_gone(started.pid))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_process_ends_on_signals(number: signal.Signals) -> None:
    with start_trial_process(RUNNER) as started:
        os.kill(started.pid, number)
        until(lambda: is_gone(started.pid))


def test_process_ends_with_its_parent() -> None:
    """The parent is a shell that is killed."""
    command = " ".join(RUNNER)
    with start_trial_process(
        ["/bin/sh", "-c", f'{command} "$@" & echo $! >&2; wait', "sh"]
    ) as started:
        child = int(Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text())
        assert not is_gone(child)
        os.kill(started.pid, signal.SIGKILL)
        until(lambda: is_gone(child))


def test_process_with_recovery_survives_its_parent() -> None:
    """It runs while a server answers at the last address, and for the set time after that."""
    command = " ".join(RUNNER)
    with start_trial_process(["/bin/sh", "-c", f'{command} "$@" & wait', "sh"]) as started:
        storage = {"zeppelin.recovery.storage.class": "a.b.LocalRecoveryStorage"}
        started.client.init({**storage, RECOVERY_HOURS: "0.0001"})
        child = int(Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text())
        os.kill(started.pid, signal.SIGKILL)
        assert started.client.getStatus("s", "p") == "UNKNOWN"
        assert not is_gone(child)
        os.kill(child, signal.SIGTERM)
        until(lambda: is_gone(child))


def test_a_port_range_without_free_ports_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = [*RUNNER, *COMMAND, "-p", "1", "-r", f"{port}:{port}"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert f"ports: {port}:{port}" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_output_of_a_failed_start_is_reported() -> None:
    with (
        pytest.raises(SubmarineError, match=r"ended with code 2.*-c"),
        start_trial_process([*RUNNER, "-c"]),
    ):
        pass
    with (
        pytest.raises(SubmarineError, match="cannot be started"),
        start_trial_process(["/no/such"]),
    ):
        pass


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        (":", range(0)),
        ("30000:30002", range(30000, 30003)),
        ("65000:", range(65000, 65536)),
        (":1030", range(1024, 1031)),
    ],
)
def test_port_ranges(text: str, ports: range) -> None:
    found = parse(
        [*COMMAND, "-p", "5", "-r", text, "-u", "ada", "-l", "x", "-g", "y", "--new", "z"]
    )
    assert (found.host, found.port, found.ports, found.group) == ("127.0.0.1", 5, ports, "group")


@pytest.mark.parametrize("words", [["-r", "5"], ["-r", "9:8"], ["-r", "a:b"], ["-p", "0"], []])
def test_invalid_command_lines_exit_with_2(words: list[str], capsys: object) -> None:
    given = words if "-p" in words or not words else ["-p", "5", *words]
    with pytest.raises(SystemExit, match="2"):
        parse([*COMMAND, *given])


def test_secrets_are_masked_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZEPPELIN_LOG_DIR", str(tmp_path))
    root = logging.getLogger()
    before = root.handlers, root.level
    mask = SecretsMask()
    try:
        set_up_logging("submarine-isolated-2N/../x", mask)
        mask.add(
            {
                "zeppelin.ssl.keystore.password": "keystore-7431",
                "zeppelin.notebook.git.remote.access-token": "git-2291",
                "my.secret": "abc",  # too short for a secret
                "zeppelin.authentication": "simple",
                "empty.password": "",
            }
        )
        log = logging.getLogger("test")
        log.info("starts with %s", {"password": "keystore-7431"})
        try:
            raise ValueError("the token is git-2291")
        except ValueError:
            log.exception("failed")
        log.info("simple abc")
    finally:
        for handler in root.handlers:
            handler.close()
        root.handlers, root.level = before[0], before[1]
    (path,) = tmp_path.iterdir()
    text = path.read_text()
    assert path.name == "zeppelin-interpreter-submarine-isolated-2N_.._x.log"
    assert path.stat().st_mode & 0o077 == 0
    assert "keystore-7431" not in text
    assert "git-2291" not in text
    assert text.count(MASK) == 3
    assert "simple abc" in text


def test_shutdown_does_not_wait_for_a_slow_close(monkeypatch: pytest.MonkeyPatch) -> None:
    from submarine_zeppelin.service import lifecycle

    ended: list[int] = []
    monkeypatch.setattr(lifecycle, "CLOSE_TIMEOUT", 0.05)
    monkeypatch.setattr(lifecycle, "terminate_group", lambda: None)
    monkeypatch.setattr("submarine_zeppelin.service.lifecycle.logging.shutdown", lambda: None)
    monkeypatch.setattr("submarine_zeppelin.service.lifecycle.os._exit", ended.append)
    shutdown = ProcessShutdown(lambda: time.sleep(5))
    shutdown.run("test")
    shutdown.run("again")
    assert ended == [0]


def test_started_jobs_are_not_kept_with_a_limit_of_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(started_jobs, "_kept", {})
    monkeypatch.setattr(started_jobs, "_most", started_jobs.MAX_KEPT)
    job: Any = SimpleNamespace(id="digits-20261120-7f3a")
    started_jobs.job_started(job)
    assert started_jobs.any_started()
    started_jobs.limit_kept_jobs(0)
    job.id = "digits-20261120-7f3b"
    started_jobs.job_started(job)
    assert not started_jobs.any_started()
