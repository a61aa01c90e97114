"""Jobs, plans and pending reasons on a cluster with the FairScheduler."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from submarine_jobs.client import Job
from submarine_jobs.commands import complete, execute
from submarine_jobs.errors import SubmarineError
from submarine_minicluster import Minicluster, Settings
from submarine_minicluster.hadoop import get_json
from submarine_runtime.protocol import State
from tests.cluster.conftest import Shell
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

_SCHEDULER = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FairScheduler"
#: The queue `ml` may hold one small job at a time; `research` has a queue below it.
_QUEUES = """\
<allocations>
  <queue name="ml"><maxResources>1536 mb, 4 vcores</maxResources></queue>
  <queue name="research"><queue name="vision"><weight>2.0</weight></queue></queue>
  <queueMaxAMShareDefault>0.9</queueMaxAMShareDefault>
  <defaultQueueSchedulingPolicy>drf</defaultQueueSchedulingPolicy>
  <queuePlacementPolicy><rule name="specified" create="false"/><rule name="reject"/></queuePlacementPolicy>
</allocations>
"""  # noqa: E501 - Hadoop's own format


@pytest.fixture(scope="module")
def fair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minicluster]:
    allocations = tmp_path_factory.mktemp("fair") / "fair-scheduler.xml"
    allocations.write_text(_QUEUES, encoding="utf-8")
    parent = Path(tempfile.mkdtemp(prefix="submarine-test-"))
    cluster = Minicluster("fair", parent=parent)
    properties = (
        f"yarn.resourcemanager.scheduler.class={_SCHEDULER}",
        f"yarn.scheduler.fair.allocation.file={allocations}",
        "yarn.scheduler.increment-allocation-mb=64",
    )
    try:
        cluster.start(Settings(properties=properties), print)
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(parent, ignore_errors=True)


@pytest.fixture
def shell(
    fair: Minicluster, yarn_state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Shell:
    for key, value in fair.environ().items():
        monkeypatch.setenv(key, value)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(yarn_state))
    monkeypatch.delenv("SUBMARINE_BACKEND", raising=False)
    monkeypatch.chdir(tmp_path)
    return Shell()


@pytest.fixture
def start(shell: Shell) -> Iterator[Callable[..., Job]]:
    started: list[Job] = []

    def run(name: str, command: str, *words: str) -> Job:
        line = ["run", name, "--memory", "256M", "--worker_launch_cmd", command, *words]
        job = execute(line, shell).job
        assert job is not None
        started.append(job)
        return job

    yield run
    for job in started:
        if not job.state.ended:
            job.cancel("the test is over")
    for job in started:
        job.wait(timeout=120)


def test_tasks_and_gangs_run_in_queues(
    fair: Minicluster, shell: Shell, start: Callable[..., Job]
) -> None:
    scheduler = get_json(f"{fair.url('resourcemanager')}/ws/v1/cluster/scheduler")["scheduler"]
    assert scheduler["schedulerInfo"]["type"] == "fairScheduler"
    one = start("one", "echo one", "--queue", "research.vision")
    gang = start("gang", "echo gang", "--queue", "ml", "--worker", "2", "--memory", "128M")
    for job in (one, gang):
        record = job.wait(timeout=180)
        assert record.state is State.SUCCEEDED, record.detail
    queues = complete(["run", "a.py", "--queue", ""], shell)
    assert {"ml", "research.vision"} <= set(queues)


def test_a_dry_run_plans_in_the_queue(shell: Shell) -> None:
    Path("train.py").write_text("print(1)\n", encoding="utf-8")
    words = ["run", "train.py", "--dry-run", "--queue"]
    outcome = execute([*words, "ml", "--memory", "256M"], shell)
    assert outcome.exit_code == 0
    assert "ml" in outcome.text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--queue", "vision"], "There is no queue vision; this cluster has "),
        (["--queue", "research"], "choose one below it: research.vision"),
        (["--queue", "ml", "--memory", "2G"], "queue ml may ever hold 1536 MiB"),
    ],
)
def test_impossible_requests_are_refused_before_the_submission(
    shell: Shell, words: list[str], sentence: str
) -> None:
    Path("train.py").write_text("print(1)\n", encoding="utf-8")
    with pytest.raises(SubmarineError) as error:
        execute(["run", "train.py", *words], shell)
    assert error.value.exit_code == 2
    assert sentence in error.value.message
    assert "Exception" not in str(error.value)


def test_the_reason_of_a_pending_job_names_the_queue(
    shell: Shell, start: Callable[..., Job]
) -> None:
    holder = start("holder", "sleep 600", "--queue", "ml", "--memory", "600M")
    until(lambda: holder.state is State.RUNNING, "the first job runs")
    waiting = start("waiting", "sleep 600", "--queue", "ml", "--memory", "600M")
    told = until(
        lambda: waiting.view().pending if "queue ml" in waiting.view().pending else None,
        lambda: f"a reason with the queue: {waiting.view().pending!r}",
        120,
    )
    assert "Exception" not in told
