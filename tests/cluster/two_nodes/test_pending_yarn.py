"""Why a job waits, said by list, by the coordinator and by doctor, while another holds the GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from submarine_jobs.client import Job
from submarine_jobs.commands import execute
from submarine_minicluster import Minicluster
from submarine_runtime.protocol import State
from tests.cluster.conftest import Shell
from tests.waiting import until

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture
def shell(two: Minicluster, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    for key, value in two.environ().items():
        monkeypatch.setenv(key, value)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(state))
    monkeypatch.delenv("SUBMARINE_BACKEND", raising=False)
    monkeypatch.chdir(tmp_path)
    # Its class archive costs more than the few masters of these tests would save.
    (tmp_path / "submarine.toml").write_text('[settings]\nam_cds = "off"\n')
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
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda job: job.cancel("the test is over"), started))
    for job in started:
        job.wait(timeout=120)


def until_text(found: Callable[[], str], *parts: str, seconds: float = 240.0) -> str:
    """Wait for a text that contains all of ``parts``."""

    def complete() -> str | None:
        text = found()
        return text if all(part in text for part in parts) else None

    return until(complete, lambda: f"{parts!r} are not in {found()!r}", seconds)


@pytest.mark.full
def test_the_job_that_holds_the_gpus_is_named(shell: Shell, start: Callable[..., Job]) -> None:
    session = shell.session(shell.config({}))
    nodes = session.backend().rm.get("/nodes")["nodes"]["node"]  # type: ignore[attr-defined]
    count = len([node for node in nodes if node["state"] == "RUNNING"])
    holder = start("holder", "--worker", str(count), "--gpu", "3")
    until_text(lambda: f"{holder.state} {holder.view().pending}", State.RUNNING.value)
    held = f"job {holder.id} holds {3 * count}"

    # A gang that has some of its containers: the coordinator knows, and so does the cluster.
    gang = start("gang", "--worker", str(count + 1), "--gpu", "1", "--gang-timeout", "never")
    has = f"{count} of {count + 1} containers"
    free = f"queue default has 0 of {4 * count} GPUs free"
    until_text(lambda: gang.view().record.pending, f"{has}, waiting", f"with 1 GPU: {free}", held)
    waits = f"{gang.id} waits: {has}: queue default has 0 of"
    until_text(lambda: execute(["list"], shell).text, waits, held)

    # A job whose master is not there yet: only the cluster knows.
    single = start("single", "--gpu", "1")
    said = until_text(lambda: single.view().pending, free, held)
    assert said.startswith(free)

    checks = {check["name"]: check for check in _doctor(shell, "--gpu", "1")}
    assert checks["capacity"]["status"] == "warning"
    assert held in checks["capacity"]["sentence"]
    checks = {check["name"]: check for check in _doctor(shell, "--gpu", "9")}
    assert checks["capacity"]["status"] == "error"


def _doctor(shell: Shell, *words: str) -> list[dict[str, str]]:
    value = execute(["doctor", *words], shell).value
    assert isinstance(value, dict)
    found: list[dict[str, str]] = value["checks"]
    return found


def gpus_of(shell: Shell) -> int:
    """How many GPUs the whole cluster has."""
    session = shell.session(shell.config({}))
    total = 0
    for node in session.backend().rm.get("/nodes")["nodes"]["node"]:  # type: ignore[attr-defined]
        sizes = node["totalResource"]["resourceInformations"]["resourceInformation"]
        total += sum(size["value"] for size in sizes if size["name"] == "yarn.io/gpu")
    return total


@pytest.mark.full
def test_two_gangs_that_each_hold_a_part_of_what_both_need_both_finish(
    shell: Shell, start: Callable[..., Job]
) -> None:
    total = gpus_of(shell)
    # The scheduler decides: sometimes one of them gets everything.
    assert any(both_held_a_part(start, total) for _ in range(8))


def both_held_a_part(start: Callable[..., Job], total: int) -> bool:
    """Whether two gangs that need every GPU each held some of them; both succeed in the end.

    A third job holds all GPUs but one until both wait for it. One of them holds that one, and YARN
    may keep one more on each node for it. The rest is shared out between their queues, of which the
    one that uses less comes first. So each holds what the other needs, until a time-out.
    """
    wall = start("wall", "--worker", str(total - 1), "--gpu", "1", "--queue", "narrow")
    until_text(lambda: f"{wall.state} {wall.view().pending}", State.RUNNING.value)
    # They start side by side, so that neither's time is nearly up when the other is there.
    patience = ("--gang-timeout", "30s", "--gang-retries", "50")

    def gang(queue: str) -> Job:
        words = ("--worker", str(total), "--gpu", "1", "--queue", queue, *patience)
        return start(f"gang-{queue}", *words, "--worker_launch_cmd", "sleep 2")

    gangs = [gang("default"), gang("gpu")]
    for job in gangs:
        until_text(partial(lambda job: job.view().record.pending, job), f" of {total} containers")
    wall.cancel("both wait")

    def held() -> str:
        records = [job.view().record for job in gangs]
        said = [record.pending.partition(f" of {total} containers")[0] for record in records]
        if any(record.state.ended for record in records):
            return "settled: one has ended"
        return "settled: both" if all(word.isdigit() and int(word) for word in said) else str(said)

    seen = until_text(held, "settled")
    for job in gangs:
        assert job.wait(timeout=300).state is State.SUCCEEDED
    details = [event.detail for job in gangs for event in job.record().events]
    given_back = any("All containers are released" in detail for detail in details)
    assert given_back or not seen.endswith("both")
    return seen.endswith("both")
