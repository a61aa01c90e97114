"""The grammar on a real YARN: the cluster's refusals as documented, the doctor, Tab."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn.backend import YarnBackend
from submarine_jobs.commands import complete, execute
from submarine_jobs.errors import SubmarineError
from tests.cluster.conftest import Shell

pytestmark = pytest.mark.cluster
PAGE = Path(__file__).parents[2] / "docs" / "refusals.md"


def rows() -> list[tuple[str, int, str]]:
    text = PAGE.read_text(encoding="utf-8").partition("\n## On a cluster")[2]
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 4 and cells[2].isdigit():
            found.append((cells[1].strip("`"), int(cells[2]), cells[3]))
    return found


@pytest.fixture
def shell(shell: Shell) -> Shell:
    """There is a program, too."""
    Path("train.py").write_text("print('hello')\n", encoding="utf-8")
    return shell


def test_there_are_rows() -> None:
    assert len(rows()) >= 8


@pytest.mark.parametrize(("typed", "exit_code", "sentence"), rows())
def test_each_refusal_of_the_cluster(
    typed: str, exit_code: int, sentence: str, shell: Shell
) -> None:
    with pytest.raises(SubmarineError) as caught:
        execute(shlex.split(typed)[1:], shell)
    pattern = ".*".join(re.escape(part) for part in sentence.replace("\\|", "|").split("…"))
    assert re.fullmatch(pattern, str(caught.value), re.DOTALL), str(caught.value)
    assert caught.value.exit_code == exit_code


def test_the_dry_run_finds_a_refusal_too(shell: Shell) -> None:
    outcome = execute(["run", "train.py", "--gpu", "99", "--force", "--dry-run"], shell)
    assert outcome.exit_code == 2
    assert outcome.value["refused"] is True
    assert outcome.value["plan"]["containers"]
    good = execute(["run", "train.py", "--memory", "512M", "--gpu", "1", "--dry-run"], shell)
    assert good.exit_code == 0
    assert sum(item["gpus"] for item in good.value["plan"]["containers"]) == 1


def test_the_doctor_finds_the_minicluster_healthy(shell: Shell) -> None:
    outcome = execute(["doctor"], shell)
    found = {check["name"]: check["status"] for check in outcome.value["checks"]}
    assert outcome.exit_code == 0, outcome.text
    for name in ("java", "hadoop client", "resource manager", "queues", "hdfs", "webhdfs", "ports"):
        assert found[name] == "ok", outcome.text
    on_node = execute(["doctor", "--node"], shell)
    assert on_node.exit_code == 0, on_node.text


def test_queues_are_completed_after_they_were_seen(shell: Shell) -> None:
    execute(["run", "train.py", "--dry-run"], shell)
    assert complete(["run", "--queue", "n"], shell) == ["narrow"]


def test_a_job_from_words_to_log(shell: Shell) -> None:
    words = "run train.py --memory 256M --wait --json"
    outcome = execute(shlex.split(words), shell)
    assert outcome.exit_code == 0, outcome.text
    record = outcome.value["record"]
    assert record["state"] == "SUCCEEDED"
    assert record["application_id"].startswith("application_")
    logs = execute(["logs", record["job_id"], "--stream", "stdout", "--json"], shell)
    assert logs.value["stdout"]["text"] == "hello\n"


def test_the_driver_can_be_ended_and_comes_back(shell: Shell) -> None:
    words = shlex.split("run train.py --memory 256M --wait --json")
    backend = shell.session(shell.config({})).backend()
    assert isinstance(backend, YarnBackend)
    backend.driver.channel()
    assert execute(["doctor", "--stop-driver"], shell).value["stopped"] == 1
    assert execute(["doctor", "--stop-driver"], shell).value["stopped"] == 0
    assert execute(words, shell).exit_code == 0
