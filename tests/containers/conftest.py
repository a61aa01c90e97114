"""The cell with its cluster, which all tests of this package share, and jobs in it."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from submarine_minicluster.machine import find_java
from tests.containers.cell import REPOSITORY, Cell, missing
from tests.containers.hadoop import LAYOUT

_START_SECONDS = 240
_JOB_SECONDS = 240
_FETCH = (
    "import sys, urllib.request\n"
    "print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode(), end='')"
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this package: they take minutes, and only `make test-full` runs them."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.full)
            item.add_marker(pytest.mark.timeout(_START_SECONDS + 2 * _JOB_SECONDS))


@dataclass
class Outcome:
    """What a call of `submarine run` left.

    Attributes
    ----------
    output
        Output of the command; with `--wait`, the log and the summary of the job.
    job_id
        Identifier of the job; empty if none was submitted.
    """

    status: int
    output: str
    job_id: str


class Containers:
    """The cluster of the cell and its users' command line.

    Attributes
    ----------
    cell
        Where everything runs.
    """

    def __init__(self, cell: Cell) -> None:
        self.cell = cell

    def hadoop(self, verb: str, *nodes: str) -> None:
        """Start the cluster, or add or stop nodes."""
        words = [sys.executable, "-m", "tests.containers.hadoop", verb, self.cell.group, *nodes]
        environment = {"PYTHONPATH": str(REPOSITORY)}
        self.cell.run(words, env=environment, timeout=_START_SECONDS)

    @property
    def _environment(self) -> dict[str, str]:
        path = (Path(sys.prefix, "bin"), LAYOUT.bin, "/usr/sbin:/usr/bin:/sbin:/bin")
        return {
            "PATH": ":".join(map(str, path)),
            "HADOOP_CONF_DIR": str(LAYOUT.client_conf),
            "JAVA_HOME": str(find_java().home),
        }

    def docker(self, *words: str, check: bool = True) -> str:
        """Call Docker's client in the cell, and return its output."""
        return self.cell.run(["/srv/bin/docker", *words], check=check).stdout

    def yarn(self, *words: str, user: str = "alice") -> str:
        """Call Hadoop's command `yarn`, and return its output whatever its status is."""
        command = [str(LAYOUT.bin / "yarn"), *words]
        return self.cell.run(command, user=user, env=self._environment, check=False).stdout

    def hdfs(self, *words: str, user: str = "alice") -> str:
        """Call Hadoop's command `hdfs`, and return its output."""
        return self.cell.run(
            [str(LAYOUT.bin / "hdfs"), *words], user=user, env=self._environment
        ).stdout

    def submarine(
        self, *words: str, user: str = "alice", check: bool = True, **variables: str
    ) -> tuple[int, str]:
        """Call the command line as a user; return its status and output."""
        environment = {**self._environment, **variables}
        command = [str(Path(sys.prefix, "bin", "submarine")), *words]
        done = self.cell.run(command, user=user, env=environment, timeout=_JOB_SECONDS, check=check)
        return done.returncode, done.stdout

    def fetch(self, url: str, user: str = "alice") -> str:
        """Return the page at an address as a user of the cell reads it; empty if there is none."""
        words = [sys.executable, "-c", _FETCH, url]
        done = self.cell.run(words, user=user, check=False)
        return "" if done.returncode else done.stdout

    def python(self, module: str, *words: str, user: str = "alice", **variables: str) -> str:
        """Run a module of the tests as a user, and return its output."""
        environment = {**self._environment, "PYTHONPATH": str(REPOSITORY), **variables}
        command = [sys.executable, "-m", module, *words]
        return self.cell.run(command, user=user, env=environment, timeout=_JOB_SECONDS).stdout

    def run(
        self, source: str, *options: str, user: str = "alice", check: bool = True, **variables: str
    ) -> Outcome:
        """Run a program as a job, and wait for its end."""
        program = self.cell.write(f"/home/{user}/program.py", textwrap.dedent(source), user)
        words = ["run", program, "--memory", "256M", "--wait", *options]
        status, output = self.submarine(*words, user=user, check=check, **variables)
        found = re.search(r"(\S+-\d{8}-[0-9a-f]{4}) is application_", output)
        return Outcome(status, output, found.group(1) if found else "")

    def log(self, outcome: Outcome, task: str, user: str = "alice") -> str:
        """Return the log of one task of a job."""
        return self.submarine("logs", outcome.job_id, "--task", task, user=user)[1]

    def show(self, outcome: Outcome, user: str = "alice") -> Any:
        """Return a job as JSON."""
        return json.loads(self.submarine("show", outcome.job_id, "--json", user=user)[1])

    @staticmethod
    def application(outcome: Outcome) -> str:
        """Return YARN's identifier of a job."""
        found = re.search(r"application_\d+_\d+", outcome.output)
        assert found is not None, outcome.output
        return found.group()

    @contextmanager
    def nodes(self, *names: str) -> Iterator[None]:
        """Have more nodes, without Docker, for a while."""
        self.hadoop("add", *names)
        try:
            yield
        finally:
            self.hadoop("stop", *names)


@pytest.fixture(scope="session")
def containers() -> Iterator[Containers]:
    """One cell for all tests of the package; its end leaves nothing."""
    if reason := missing():
        pytest.skip(reason)
    cell = Cell()
    try:
        made = Containers(cell)
        made.hadoop("start")
        yield made
    finally:
        cell.close()
