"""A session of the core on the shared minicluster, and programs to run with it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.backends.yarn.driver import stop_driver
from submarine_jobs.client import Job, Session
from submarine_jobs.frontends import Frontend
from submarine_jobs.model import JobSpec, Profile, Resources, Role
from submarine_jobs.program import Cell, build_bundle
from submarine_minicluster.cluster import Minicluster

Submit = Callable[..., Job]


class Shell(Frontend):
    """The command line, without a terminal."""

    kind = "cli"


@pytest.fixture
def shell(
    minicluster_env: Minicluster,
    yarn_state: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Shell:
    """Somebody at a command line of the shared cluster, in an empty directory."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(yarn_state))
    monkeypatch.delenv("SUBMARINE_BACKEND", raising=False)
    monkeypatch.chdir(tmp_path)
    return Shell()


@pytest.fixture(scope="session")
def yarn_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One state directory, and so one driver, for all tests of the run; it is stopped then."""
    state = tmp_path_factory.mktemp("state")
    yield state
    stop_driver(Profile(state_dir=state))


@pytest.fixture(scope="session")
def yarn_profile(minicluster: Minicluster, yarn_state: Path) -> Profile:
    """The profile of the shared cluster."""
    environ = minicluster.environ()
    return Profile(
        backend="yarn",
        hadoop_conf_dir=Path(environ["HADOOP_CONF_DIR"]),
        java_home=Path(environ["JAVA_HOME"]) if "JAVA_HOME" in environ else None,
        state_dir=yarn_state,
    )


@pytest.fixture(scope="session")
def session(yarn_profile: Profile) -> Session:
    """A session that all tests share, as one kernel would."""
    return Session(yarn_profile)


def make_spec(source: str, name: str = "test", **changes: Any) -> tuple[JobSpec, Any]:
    """A spec and a bundle for a program of one cell; one worker unless ``roles`` are given."""
    memory, gpus = changes.pop("memory", 256), changes.pop("gpus", 0)
    cell = Cell(
        cell_id="c1", source=source, label="[3]", execution_count=3, first_line=2, only=False
    )
    bundle = build_bundle([cell])
    role = Role(resources=Resources(memory=memory, gpus=gpus), command=changes.pop("command", None))
    spec = JobSpec(
        name,
        "yarn",
        roles=changes.pop("roles", (role,)),
        program=bundle.program,
        python=changes.pop("python", sys.executable),
        bundle_digest=bundle.digest,
        **changes,
    )
    return spec, bundle


@pytest.fixture
def submit(session: Session) -> Iterator[Submit]:
    """Submit a program; whatever still runs when the test ends is cancelled."""
    started: list[Job] = []

    def run(source: str, name: str = "test", **changes: Any) -> Job:
        spec, bundle = make_spec(source, name, **changes)
        job = session.submit(spec, bundle)
        started.append(job)
        return job

    yield run
    for job in started:
        if not job.record().state.ended:
            job.cancel("the test is over")
