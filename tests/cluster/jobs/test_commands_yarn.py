"""The grammar on a real YARN: the cluster's refusals as documented, the doctor, Tab."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import subprocess
import time
import urllib.request
from itertools import pairwise
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.commands import complete, execute
from submarine_jobs.config import SITE_FILE, SITE_VARIABLE
from submarine_jobs.errors import SubmarineError
from submarine_minicluster import Minicluster
from submarine_minicluster.hadoop import SUPERUSER
from tests.cluster.conftest import Shell
from tests.unit.jobs.commands.test_refusals import check_dry_run

pytestmark = pytest.mark.cluster
PAGE = Path(__file__).parents[3] / "docs" / "refusals.md"


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
    words = shlex.split(typed)[1:]
    with pytest.raises(SubmarineError) as caught:
        execute(words, shell)
    check_dry_run(words, shell, caught.value)
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


@pytest.mark.skipif(SITE_FILE.exists(), reason="no test replaces the site file of this machine")
def test_the_site_file_limits_queue_image_and_gpus(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job without --queue is compared by the queue that YARN would use."""
    site = tmp_path / "site.toml"
    site.write_text(
        '[locked]\nqueues = ["narrow"]\nimages = ["registry.example/*"]\nmax_gpus_per_job = 1\n'
    )
    site.chmod(0o644)
    monkeypatch.setenv(SITE_VARIABLE, str(site))
    run = ["run", "train.py", "--memory", "256M"]
    for words, sentence in (
        (run, f"The queue default is not allowed: {site}:2 allows only narrow."),
        ([*run, "--queue", "narrow", "--docker_image", "evil/tf"], "The image evil/tf is not"),
        ([*run, "--queue", "narrow", "--worker", "2", "--gpu", "1"], "The job asks for 2 GPUs"),
    ):
        with pytest.raises(SubmarineError, match=re.escape(sentence)) as caught:
            execute(words, shell)
        check_dry_run(words, shell, caught.value)
    # The name with the root is that of the same queue; the job is accepted and runs.
    outcome = execute([*run, "--queue", "root.narrow", "--wait"], shell)
    assert outcome.exit_code == 0


def set_quota(cluster: Minicluster, path: str, **quota: int) -> None:
    base = f"{cluster.url('namenode')}/webhdfs/v1{path}?user.name={SUPERUSER}&op="
    words = "&".join(f"{name}={value}" for name, value in quota.items())
    for request in ("MKDIRS&permission=777", f"SETQUOTA&{words}"):
        put = urllib.request.Request(base + request, method="PUT")
        urllib.request.urlopen(put, timeout=20).close()


def test_the_dry_run_finds_what_hdfs_would_refuse(
    shell: Shell, minicluster: Minicluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Quotas, a missing permission and safe mode, each through submit and dry run."""
    top = f"/tmp/refusing-{secrets.token_hex(4)}"
    set_quota(minicluster, f"{top}/names", namespacequota=4, storagespacequota=1 << 40)
    set_quota(minicluster, f"{top}/space", namespacequota=1000, storagespacequota=1000)
    environ = {**os.environ, **minicluster.environ(), "HADOOP_USER_NAME": SUPERUSER}
    hdfs = str(Path(minicluster.environ()["HADOOP_CONF_DIR"]).parent.parent / "bin" / "hdfs")

    def safe_mode(word: str) -> None:
        command = [hdfs, "dfsadmin", "-safemode", word]
        subprocess.run(command, env=environ, check=True, capture_output=True, timeout=60)

    def refusal(*more: str) -> tuple[int, str]:
        """Exit code and sentence, without the path that could not be written."""
        code, said = 0, ""
        try:
            outcome = execute(["run", "train.py", *more], shell)
            code, said = outcome.exit_code, outcome.value["refusals"][0]
            assert outcome.value["refused"]
        except SubmarineError as error:
            code, said = error.exit_code, str(error)
        return code, re.sub(r"^Cannot \w+ \S+:", "Cannot:", said)

    for root, words in (
        (f"{top}/names", "quota of 4 files and directories is used up"),
        (f"{top}/space/jobs", "quota of 1000 B (with all replicas) is used up"),
        ("/not/mine", "permission denied"),
        ("", "safe mode"),
    ):
        monkeypatch.setenv("SUBMARINE_JOB_ROOT", root or f"{top}/safe")
        if not root:
            safe_mode("enter")
        try:
            dry = refusal("--dry-run")
            submitted = refusal()
        finally:
            if not root:
                safe_mode("leave")
        assert dry == submitted
        assert words in dry[1]
        assert dry[0] == 3
    storage, _ = shell.session(shell.config({})).backend().job_root()
    assert [path for path, _ in storage.walk(top) if "dry-run" in path] == []


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


class Watched(Shell):
    """A front end that takes down the steps that it is shown, with their times."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[tuple[float, str]] = []

    def show_progress(self, text: str) -> bool:
        self.steps.append((time.monotonic(), text))
        return True


def test_each_step_of_a_submit_is_shown_at_once_and_the_phases_divide_the_job(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(["doctor", "--stop-driver"], shell)
    watched = Watched()
    began = time.monotonic()
    outcome = execute(shlex.split("run train.py --worker 2 --memory 256M --wait --json"), watched)
    assert outcome.exit_code == 0, outcome.text
    first, shown = watched.steps[0][0], [text for _, text in watched.steps if text]
    assert first - began < 2.0, watched.steps
    assert re.fullmatch(r"Uploading 3 files \(\d+(\.\d)? k?B\) \.\.\.", shown.pop(1)), shown
    assert shown == [
        "Asking the cluster for its queues and nodes ...",
        "Starting the connection to YARN ...",
        "Submitting the application to YARN ...",
        "Submitted, waiting for the application master ...",
    ]
    record = outcome.value["record"]
    phases = [phase for phase in record["phases"] if phase["name"] != "first_line"]
    names = ["upload", "queue", "master_start", "containers", "localizing", "start", "run", "save"]
    assert [phase["name"] for phase in phases] == names
    for phase, after in pairwise(phases):
        assert phase["start"] <= phase["end"] == after["start"], record["phases"]
    times = {phase["name"]: phase["end"] - phase["start"] for phase in phases}
    # A JVM and a Python are started; the queue is free.
    assert times["master_start"] > 0.5, times


def test_the_driver_can_be_ended_and_comes_back(shell: Shell) -> None:
    words = shlex.split("run train.py --memory 256M --wait --json")
    backend = shell.session(shell.config({})).backend()
    assert isinstance(backend, YarnBackend)
    backend.driver.channel()
    assert execute(["doctor", "--stop-driver"], shell).value["stopped"] == 1
    assert execute(["doctor", "--stop-driver"], shell).value["stopped"] == 0
    assert execute(words, shell).exit_code == 0
