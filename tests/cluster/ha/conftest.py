"""Clusters with high availability, without and with Kerberos, that lose their active daemons."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.model import Profile
from submarine_minicluster import Minicluster, Settings
from submarine_minicluster.pytest_plugin import running
from tests.cluster.own_cluster import own_profile
from tests.submission import Submit, submitting

_SETTINGS = {
    "simple": Settings(ha=True),
    "kerberos": Settings(ha=True, kerberos=True, https=True),
}
#: Of Kerberos, on a cluster that verifies users.
_USER = "alice"


@pytest.fixture(scope="package", params=_SETTINGS)
def ha(request: pytest.FixtureRequest) -> Iterator[Minicluster]:
    """The cluster; `SUBMARINE_TEST_HA_SIMPLE` and `..._KERBEROS` name existing ones."""
    with running(f"SUBMARINE_TEST_HA_{request.param.upper()}", _SETTINGS[request.param]) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def ha_profile(ha: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Profile]:
    """A profile of the cluster, with a state directory and so a driver of its own."""
    environ = ha.environ(_USER if ha.saved.settings.kerberos else None)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environ.items():
            patch.setenv(name, value)
        patch.delenv("JAVA_TOOL_OPTIONS", raising=False)
        with own_profile(environ, tmp_path_factory.mktemp("state")) as profile:
            yield profile


@pytest.fixture
def both(ha: Minicluster, ha_profile: Profile) -> Minicluster:
    """The cluster with both daemons of each kind."""
    ha.start()
    return ha


@pytest.fixture
def submit(both: Minicluster, ha_profile: Profile) -> Iterator[Submit]:
    """Submit programs to the cluster; what still runs at the end is cancelled there."""
    with submitting(Session(ha_profile), backend="yarn") as made:
        yield made
        both.start()


@pytest.fixture
def measure(record_property: Callable[[str, object], None]) -> Callable[..., Any]:
    """Call a function, print and record how long it took, and return its result."""

    def call(what: str, work: Callable[[], Any]) -> Any:
        began = time.monotonic()
        result = work()
        seconds = round(time.monotonic() - began, 1)
        record_property(what, seconds)
        print(f"{what}: {seconds} s")
        return result

    return call


@pytest.fixture
def go(tmp_path: Path) -> Path:
    """The file without which no program ends."""
    return tmp_path / "go"


def application_ids(job: Job) -> list[str]:
    """The ids of all applications of a job."""
    from submarine_jobs.backends.yarn.cluster import tag_of

    answer = job.backend.rm.get("/apps", applicationTags=tag_of(job.id))  # type: ignore[attr-defined]
    return [str(app["id"]) for app in ((answer or {}).get("apps") or {}).get("app") or []]
