"""Pytest plugin: add the contract test suite to each module with a fixture ``backend_under_test``.

Load it with ``pytest_plugins = ["submarine_jobs.testing.pytest_plugin"]`` in the test module, or
with ``-p``. It is no entry point of the group ``pytest11``: every run of pytest in an environment
with this project would load it, and would rewrite the assertions of all its modules.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import pytest

pytest.register_assert_rewrite("submarine_jobs.testing.backend_contract")

from submarine_jobs.client import Session  # noqa: E402
from submarine_jobs.testing.backend_contract import BackendContract, JobStarter  # noqa: E402
from submarine_jobs.testing.backend_under_test import BackendUnderTest  # noqa: E402

_FIXTURE = "backend_under_test"


def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> pytest.Class | None:
    """Add the tests of ``BackendContract`` in place of the fixture."""
    if name != _FIXTURE or not isinstance(collector, pytest.Module):
        return None
    tests: pytest.Class = pytest.Class.from_parent(collector, name=BackendContract.__name__)
    tests.obj = BackendContract  # The module has no class of that name.
    return tests


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how long the tests took, without their fixtures, which may start a system."""
    reports = chain.from_iterable(terminalreporter.stats.values())
    calls = [
        report
        for report in reports
        if isinstance(report, pytest.TestReport)
        and report.when == "call"
        and f"::{BackendContract.__name__}::" in report.nodeid
    ]
    if calls:
        seconds = sum(report.duration for report in calls)
        terminalreporter.write_line(
            f"contract test suite: {len(calls)} tests in {seconds:.1f} s, fixtures not counted"
        )


@pytest.fixture
def contract_session(backend_under_test: BackendUnderTest) -> Session:
    """A session with the profile of the backend; fails if its class is incomplete."""
    session = Session(backend_under_test.profile)
    session.backend()
    return session


@pytest.fixture
def contract_jobs(
    backend_under_test: BackendUnderTest, contract_session: Session
) -> Iterator[JobStarter]:
    """Starts jobs; those that still run at the end of the test are stopped."""
    starter = JobStarter(backend_under_test, contract_session)
    yield starter
    starter.stop_all()
