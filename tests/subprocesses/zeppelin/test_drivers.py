"""Drivers of Zeppelin users are stopped with the last process that uses them."""

from __future__ import annotations

import fcntl
import json
import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from submarine_jobs.model import Profile
from submarine_runtime.processes import ProcessIdentity
from submarine_zeppelin.accounts import drivers
from submarine_zeppelin.accounts.users import user_state_dir
from tests.waiting import until


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    made: list[subprocess.Popen[bytes]] = []
    yield made
    for process in made:
        process.kill()
        process.wait()


@pytest.fixture(autouse=True)
def no_drivers_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drivers, "_held", {})


def driver_in(state_dir: Path, started: list[subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """Start a process and record it as driver in a state directory."""
    process = subprocess.Popen(["sleep", "600"])
    started.append(process)
    directory = state_dir / "driver" / "0123abcd"
    directory.mkdir(parents=True)
    identity = ProcessIdentity.of(process.pid)
    assert identity is not None
    record = {**asdict(identity), "port": 1, "conf_dir": "/etc/hadoop"}
    (directory / "driver.json").write_text(json.dumps(record))
    return process


def test_the_last_process_of_a_user_stops_the_driver(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    ada = Profile(user="ada", state_dir=user_state_dir("ada", tmp_path))
    driver = driver_in(ada.state_dir, started)
    drivers.hold_driver(ada)
    drivers.hold_driver(ada)
    with (ada.state_dir / "in-use").open("w") as other:  # another process of the group
        fcntl.flock(other, fcntl.LOCK_SH)
        drivers.release_drivers()
        assert driver.poll() is None
    drivers.hold_driver(ada)
    drivers.release_drivers()
    until(lambda: driver.poll() is not None)
    assert not list(ada.state_dir.glob("driver/*/driver.json"))


def test_the_driver_of_zeppelins_account_is_not_stopped(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    driver = driver_in(tmp_path, started)
    for profile in (Profile(state_dir=tmp_path), Profile(user="ada", state_dir=tmp_path)):
        drivers.hold_driver(profile)
    drivers.release_drivers()
    assert driver.poll() is None
    assert not (tmp_path / "in-use").exists()
