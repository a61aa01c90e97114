"""A session of the core on the shared minicluster, and programs to run with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn.driver import stop_driver
from submarine_jobs.client import Session
from submarine_jobs.frontends import Frontend
from submarine_jobs.model import Profile
from submarine_minicluster.cluster import Minicluster
from tests.submission import Submit, submitting


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
    """A command line of the shared cluster in an empty directory."""
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


@pytest.fixture
def submit(session: Session) -> Iterator[Submit]:
    """Submit programs to the cluster."""
    with submitting(session, backend="yarn") as made:
        yield made
