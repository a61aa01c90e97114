"""Why a job waits, said by list, by the coordinator and by doctor, while another holds the GPUs."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn.driver import stop_driver
from submarine_jobs.commands import execute
from submarine_jobs.job import Job
from submarine_jobs.profile import Profile
from submarine_minicluster import Minicluster, Settings
from submarine_runtime.protocol.states import State
from tests.cluster.conftest import Shell

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def two(state: Path) -> Iterator[Minicluster]:
    """A cluster of two nodes: who has one node has it all."""
    parent = Path(tempfile.mkdtemp(prefix="submarine-test-"))
    cluster = Minicluster("two", parent=parent)
    try:
        cluster.start(Settings(nodes=2))
        yield cluster
    finally:
        environ = cluster.environ()
        conf = Path(environ["HADOOP_CONF_DIR"])
        stop_driver(Profile(backend="yarn", hadoop_conf_dir=conf, state_dir=state))
        cluster.stop()
        shutil.rmtree(parent, ignore_errors=True)


@pytest.fixture
def shell(two: Minicluster, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    for key, value in two.environ().items():
        monkeypatch.setenv(key, value)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(state))
    monkeypatch.delenv("SUBMARINE_BACKEND", raising=False)
    monkeypatch.chdir(tmp_path)
    return Shell()


@pytest.fixture
def start(shell: Shell) -> Iterator[Callable[..., Job]]:
    started: list[Job] = []

    def run(name: str, *words: str) -> Job:
        line = ["run", name, "--memory", "128M", "--worker_launch_cmd", "sleep 600", *words]
        job = execute(line, shell).job
        assert job is not None
        started.append(job)
        return job

    yield run
    for job in reversed(started):
        job.cancel("the test is over")
    for job in started:
        job.wait(timeout=60)


def until(found: Callable[[], str], part: str, seconds: float = 60.0) -> str:
    deadline = time.monotonic() + seconds
    while part not in (said := found()):
        assert time.monotonic() < deadline, f"{part!r} is not in {said!r}"
        time.sleep(0.5)
    return said


def test_who_holds_the_gpus(shell: Shell, start: Callable[..., Job]) -> None:
    session = shell.session(shell.config({}))
    nodes = session.backend().rm.get("/nodes")["nodes"]["node"]  # type: ignore[attr-defined]
    count = len([node for node in nodes if node["state"] == "RUNNING"])
    holder = start("holder", "--worker", str(count), "--gpu", "3")
    until(lambda: str(holder.state), State.RUNNING.value)
    held = f"job {holder.id} holds {3 * count}"

    # A gang that has some of its containers: the coordinator knows, and so does the cluster.
    gang = start("gang", "--worker", str(count + 1), "--gpu", "1", "--gang-timeout", "never")
    said = until(lambda: gang.view().record.pending, held)
    assert f"{count} of {count + 1} containers, waiting" in said
    assert f"with 1 GPU: queue default has 0 of {4 * count} GPUs free" in said
    listed = until(lambda: execute(["list"], shell).text, held)
    assert f"{gang.id} waits: {count} of {count + 1} containers: queue default has 0 of" in listed

    # A job whose master is not there yet: only the cluster knows.
    single = start("single", "--gpu", "1")
    said = until(lambda: single.view().pending, held)
    assert said.startswith(f"queue default has 0 of {4 * count} GPUs free")

    checks = {check["name"]: check for check in _doctor(shell, "--gpu", "1")}
    assert checks["room"]["status"] == "warning"
    assert held in checks["room"]["sentence"]
    checks = {check["name"]: check for check in _doctor(shell, "--gpu", "9")}
    assert checks["room"]["status"] == "error"


def _doctor(shell: Shell, *words: str) -> list[dict[str, str]]:
    value = execute(["doctor", *words], shell).value
    assert isinstance(value, dict)
    found: list[dict[str, str]] = value["checks"]
    return found


def test_two_gangs_that_each_hold_a_part_of_what_both_need_both_finish(
    shell: Shell, start: Callable[..., Job]
) -> None:
    """Each needs every GPU. A third job holds all but one until both wait for it.

    The first gang holds that one, and YARN may keep one more on each node for it. Of the rest the
    second gang gets its share first, because its queue uses less. So each holds what the other
    needs, until a time-out.
    """
    session = shell.session(shell.config({}))
    total = 0
    for node in session.backend().rm.get("/nodes")["nodes"]["node"]:  # type: ignore[attr-defined]
        sizes = node["totalResource"]["resourceInformations"]["resourceInformation"]
        total += sum(size["value"] for size in sizes if size["name"] == "yarn.io/gpu")
    wall = start("wall", "--worker", str(total - 1), "--gpu", "1", "--queue", "narrow")
    until(lambda: str(wall.state), State.RUNNING.value)
    patience = ("--gang-timeout", "20s", "--gang-retries", "50")

    def gang(queue: str, has: int) -> Job:
        words = ("--worker", str(total), "--gpu", "1", "--queue", queue, *patience)
        job = start(f"gang-{queue}", *words, "--worker_launch_cmd", "sleep 2")
        until(lambda: job.view().record.pending, f"{has} of {total} containers")
        return job

    gangs = [gang("default", 1), gang("gpu", 0)]
    wall.cancel("both wait")

    def held() -> str:
        said = [job.view().record.pending.partition(f" of {total} containers")[0] for job in gangs]
        return "both" if all(word.isdigit() and int(word) for word in said) else str(said)

    until(held, "both", 15)
    for job in gangs:
        assert job.wait(timeout=180).state is State.SUCCEEDED
    details = [event.detail for job in gangs for event in job.record().events]
    assert any("All containers are given back" in detail for detail in details)
