"""Calls in a process of their own: what comes back of them, and what becomes of that process."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from submarine_jobs.access import create_secret
from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.cluster import HadoopConf
from submarine_jobs.backends.yarn.driver import (
    Driver,
    DriverUnreachableError,
    NeverFitsError,
    SubprocessDriver,
)
from submarine_jobs.backends.yarn.driver.subprocess_driver import SubprocessChannel
from submarine_jobs.concurrency import (
    SubprocessCallError,
    call_in_subprocess,
    use_subprocesses,
    uses_subprocesses,
)
from submarine_jobs.errors import ConfigError, UsageError
from submarine_jobs.model import Profile
from submarine_runtime.protocol import EndReason
from tests.processes import is_gone
from tests.waiting import until

MODULE = """
import os, time
from pathlib import Path
from submarine_jobs.backends.yarn.driver.refusals import NeverFitsError
from submarine_jobs.errors import UsageError

def tell(*values):
    print("a library speaks")
    os.system("echo and another one")
    return {"values": values, "process": os.getpid()}

def refuse(kind, message, fix):
    raise {"usage": UsageError, "size": NeverFitsError}[kind](message, fix)

def end(code):
    os.write(2, b"first\\nthe last words\\n")
    os._exit(code)

def fail():
    return 1 // 0

def stay(told):
    Path(told).write_text(str(os.getpid()))
    time.sleep(600)
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module with calls, which other processes find too."""
    (tmp_path / "calls_of_apart.py").write_text(MODULE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("calls_of_apart")
    sys.modules.pop("calls_of_apart")


@pytest.fixture
def small() -> Iterator[None]:
    use_subprocesses()
    yield
    use_subprocesses(False)


def test_what_it_returns_comes_back_and_what_it_prints_does_not(calls: ModuleType) -> None:
    path = Path("/a/b")
    found = call_in_subprocess(calls.tell, "words", 3, {"a": [None]}, path, seconds=60)
    assert found["values"] == ["words", 3, {"a": [None]}, "/a/b"]
    assert found["process"] != os.getpid()
    assert is_gone(found["process"])


def test_its_error_is_raised_here_as_it_was_there(calls: ModuleType) -> None:
    with pytest.raises(UsageError) as usage:
        call_in_subprocess(calls.refuse, "usage", "A size is wrong.", "Say 4G.", seconds=60)
    assert (usage.value.message, usage.value.fix) == ("A size is wrong.", "Say 4G.")
    assert str(usage.value) == "A size is wrong. Say 4G."
    with pytest.raises(NeverFitsError) as size:
        call_in_subprocess(calls.refuse, "size", "No.", "Less.", seconds=60)
    assert size.value.reason is EndReason.NEVER_FITS


def test_one_that_ends_early_is_reported_with_its_last_output(calls: ModuleType) -> None:
    with pytest.raises(SubprocessCallError, match="ended early: the last words"):
        call_in_subprocess(calls.end, 3, seconds=60)
    with pytest.raises(SubprocessCallError, match="ended early: ZeroDivisionError"):
        call_in_subprocess(calls.fail, seconds=60)


def test_one_that_takes_too_long_is_ended(calls: ModuleType, tmp_path: Path) -> None:
    told = tmp_path / "pid"
    with pytest.raises(SubprocessCallError, match="took more than"):
        call_in_subprocess(calls.stay, told, seconds=1)
    # On a busy machine it may have ended before it printed its process id.
    assert not told.exists() or is_gone(int(told.read_text()))


def test_an_interrupt_ends_it(calls: ModuleType, tmp_path: Path) -> None:
    from submarine_zeppelin.submarine.interruption import Interruption

    told, stop, seen = tmp_path / "pid", Interruption(), []

    def work() -> None:
        try:
            stop.run(lambda: call_in_subprocess(calls.stay, told, seconds=600))
        except KeyboardInterrupt:
            seen.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    until(lambda: told.exists() and told.read_text())
    stop.request()
    thread.join(60)
    assert seen
    assert is_gone(int(told.read_text()))


def test_no_python_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(SubprocessCallError, match="/no/such/python cannot be started"):
        call_in_subprocess(time.time, seconds=60)


@pytest.mark.usefixtures("small")
def test_a_small_process_loads_no_cryptography_for_a_jobs_secret() -> None:
    assert uses_subprocesses()
    code = (
        "import sys\n"
        "from submarine_jobs.access import credentials\n"
        "from submarine_jobs.concurrency import use_subprocesses\n"
        "use_subprocesses()\n"
        "made = credentials.create_secret('a-job')\n"
        "assert credentials.JobSecret.from_bytes(made.to_bytes()) == made\n"
        "assert 'BEGIN CERTIFICATE' in made.certificate and 'PRIVATE KEY' in made.key\n"
        "print('cryptography' in sys.modules, len(made.token) > 40)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.split() == ["False", "True"], done.stderr
    assert create_secret("a-job") != create_secret("a-job")


@pytest.fixture
def conf(tmp_path: Path) -> HadoopConf:
    (tmp_path / "core-site.xml").write_text("<configuration/>")
    return HadoopConf(tmp_path)


def test_a_driver_that_is_not_there(conf: HadoopConf, tmp_path: Path) -> None:
    profile = Profile(state_dir=tmp_path / "state", settings={"am_cds": "off"})
    with pytest.raises(DriverUnreachableError, match="No YARN driver runs"):
        SubprocessDriver(profile, conf).channel(start=False)
    channel = SubprocessChannel(profile, conf)
    with pytest.raises(DriverUnreachableError, match="No YARN driver runs"):
        channel.ping(1.0)
    (tmp_path / "core-site.xml").unlink()
    with pytest.raises(ConfigError, match=r"holds no core-site\.xml"):
        channel.kill("application_1_1", "", 1.0)
    channel.close()


def test_a_call_without_an_answer_is_a_driver_without_one(
    conf: HadoopConf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    channel = SubprocessChannel(Profile(state_dir=tmp_path), conf)
    with pytest.raises(DriverUnreachableError, match="cannot be started"):
        channel.submit({}, 1.0)


def test_the_driver_follows_the_process(tmp_path: Path, conf: HadoopConf) -> None:
    profile = Profile(hadoop_conf_dir=conf.directory, state_dir=tmp_path)
    assert type(YarnBackend(profile).driver) is Driver
    use_subprocesses()
    try:
        assert type(YarnBackend(profile).driver) is SubprocessDriver
    finally:
        use_subprocesses(False)
