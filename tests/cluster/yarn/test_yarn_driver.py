"""The driver without use, and as a process that stays small asks it: from other processes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from submarine_jobs.backends import Stage
from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.driver import stop_driver
from submarine_jobs.concurrency import use_subprocesses
from submarine_jobs.errors import NotSubmittedError, RefusedError
from submarine_jobs.model import Profile
from tests.cluster.yarn_jobs import application_ids, make_submission
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]


@pytest.fixture
def own(yarn_profile: Profile, tmp_path: Path) -> Iterator[Profile]:
    """A profile with a driver of its own."""
    yield replace(yarn_profile, state_dir=tmp_path)
    stop_driver(Profile(state_dir=tmp_path))


@pytest.fixture
def small() -> Iterator[None]:
    use_subprocesses()
    yield
    use_subprocesses(False)


def pid_of(backend: YarnBackend) -> int:
    running = backend.driver.running()
    assert running is not None
    return running.pid


def test_it_ends_without_use_and_is_started_again(own: Profile) -> None:
    driver = YarnBackend(replace(own, settings={"driver_idle_minutes": "2"})).driver
    driver.channel()
    first = driver.running()
    long_ago = time.time() - 600
    os.utime(driver.directory / "last-use", (long_ago, long_ago))
    until(lambda: driver.running() is None)  # it looks once a minute
    driver.channel()
    second = driver.running()
    assert first is not None
    assert second is not None
    assert second.pid != first.pid


@pytest.mark.usefixtures("small")
def test_a_small_process_submits_and_kills(own: Profile) -> None:
    backend = YarnBackend(own)
    made = [make_submission(backend, "import time; time.sleep(600)") for _ in range(2)]
    handles = [backend.submit(made[0])]
    before = pid_of(backend)
    os.kill(before, signal.SIGKILL)
    until(lambda: backend.driver.running() is None)
    handles.append(backend.submit(made[1]))
    assert pid_of(backend) != before
    for handle, submission in zip(handles, made, strict=True):
        assert application_ids(backend, submission) == [handle["application_id"]]
        # Like a ResourceManager that forbids kills over REST.
        identity = str(handle["application_id"])
        backend.driver.call(lambda channel, identity=identity: channel.kill(identity, 60.0))  # type: ignore[misc]
        until(lambda one=handle: backend.observe({"x": one})["x"].stage is Stage.ENDED)  # type: ignore[misc]


@pytest.mark.usefixtures("small")
def test_a_small_process_gets_the_reason(own: Profile, tmp_path: Path) -> None:
    backend = YarnBackend(own)
    refused = make_submission(backend, "pass")
    nowhere = replace(refused, spec=replace(refused.spec, queue="no-such-queue"))
    with pytest.raises(RefusedError, match="no-such-queue"):
        backend.submit(nowhere)
    # Another job's: YARN may list what it refused, and a job is submitted once.
    submission = make_submission(backend, "pass")
    wrong = YarnBackend(replace(own, settings={"driver_java_options": "-XX:+NoSuchOption"}))
    stop_driver(own)
    with pytest.raises(NotSubmittedError, match="its Java options are not understood"):
        wrong.submit(submission)
    idle = YarnBackend(replace(own, settings={"driver_idle_minutes": "soon"}))
    with pytest.raises(NotSubmittedError, match=r"driver_idle_minutes is 'soon'.*2 or more"):
        idle.submit(submission)
    assert not application_ids(backend, submission)
