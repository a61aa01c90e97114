"""Data into a gang on a real YARN, its checkpoints and model out, through the command line."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.client import Job
from submarine_jobs.commands import execute
from submarine_jobs.frontends import Frontend
from submarine_jobs.storage import Storage
from submarine_minicluster.cluster import Minicluster
from submarine_runtime.protocol import State
from tests.cluster.jobs.training import kill, until_step, whole_log
from tests.waiting import until

pytestmark = pytest.mark.cluster
#: Goes on until the file ``GO`` lies beside the sources; one step every 0.3 s.
PROGRAM = """\
import json, os, pathlib, sys, time
environ = os.environ
part = sorted(os.listdir(environ["SUBMARINE_INPUT_T"]))
print("found", json.dumps(dict(
    part=part, whole=open(environ["SUBMARINE_INPUT_ONE"]).read(),
    file=open("words.txt").read(), archive=open("kit/inside.txt").read(),
    env=environ["COLOUR"], lr=json.loads(environ["SUBMARINE_PARAM_LR"]),
    argument=sys.argv[1], argument_text=open(sys.argv[1]).read(),
)), flush=True)
place = pathlib.Path(environ["SUBMARINE_CHECKPOINT_DIR"], "step")
step = int(place.read_text()) if place.exists() else 0
print("from", step, flush=True)
pathlib.Path(environ["SUBMARINE_TENSORBOARD_DIR"], "events.out.tfevents.1").write_bytes(b"1")
while not os.path.exists(GO):
    step += 1
    for path in (place, pathlib.Path(environ["SUBMARINE_MODEL_DIR"], "model.bin")):
        path.with_suffix(".tmp").write_text(str(step))
        os.rename(path.with_suffix(".tmp"), path)
    print(f"report:progress:{min(step, 100) / 100}", flush=True)
    print("step", step, flush=True)
    time.sleep(0.3 if step % 10 else 3)
print("end at", step, flush=True)
"""


class Shell(Frontend):
    kind = "cli"

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[Job] = []

    def run(self, *words: str) -> Job:
        job = execute(list(words), self).job
        assert job is not None
        self.jobs.append(job)
        return job


@pytest.fixture
def shell(
    minicluster_env: Minicluster,
    yarn_state: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Shell]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(yarn_state))
    monkeypatch.delenv("SUBMARINE_BACKEND", raising=False)
    monkeypatch.chdir(tmp_path)
    made = Shell()
    yield made
    for job in made.jobs:
        if not job.state.ended:
            job.cancel("the test is over")
            job.wait(timeout=120)


def snapshots(job: Job, task: str) -> bool:
    return any(e.kind == "snapshot" and e.task == task for e in job.record().events)


def words_of(job: Job, task: str) -> tuple[list[dict[str, object]], list[int]]:
    """What each start of a task found, and the steps that it began from."""
    text = whole_log(job, task)
    found = [json.loads(line) for line in re.findall(r"^found (.*)$", text, re.M)]
    return found, [int(step) for step in re.findall(r"^from (\d+)$", text, re.M)]


def prepare(storage: Storage, root: str, tmp_path: Path) -> str:
    place = f"{root}/gang-data"
    if storage.stat(place) is not None:
        storage.delete(place, recursive=True)
    storage.make_directory(f"{place}/set")
    for number in range(4):
        storage.publish(f"{place}/set/p{number}", b"x" * (number + 1))
    storage.publish(f"{place}/one é.txt", b"whole")
    (tmp_path / "words.txt").write_text("words")
    (tmp_path / "inside.txt").write_text("inside")
    with tarfile.open(tmp_path / "kit.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "inside.txt", "inside.txt")
    (tmp_path / "train.py").write_text(PROGRAM.replace("GO)", f"{str(tmp_path / 'go')!r})"))
    return place


@pytest.mark.full
def test_all_data_of_a_gang(shell: Shell, minicluster: Minicluster, tmp_path: Path) -> None:
    storage, root = shell.session(shell.config({})).backend().job_root()
    place = prepare(storage, root, tmp_path)
    # Other spellings of the cluster's file system.
    web = minicluster.url("namenode").replace("http:", "webhdfs:")
    go, kept = tmp_path / "go", storage.prefix.replace("//", "//me@") + f"{place}/kept/"
    words = (
        *("run", "train.py", "--worker", "2", "--memory", "200M", "--framework", "any"),
        *("--input", f"T={web}{place}/set:shard", "--input", f"ONE={place}/one é.txt"),
        *("--input_path", f"{place}/one é.txt", "--checkpoint_path", kept),
        *("--file", "words.txt", "--archive", "kit.tar.gz:kit", "--env", "COLOUR=blue"),
        *("--param", "lr=0.25", "--max-restarts", "3", "--", "%input_path%"),
    )
    job = shell.run(*words)
    tasks = ("worker:0", "worker:1")
    until(lambda: all(snapshots(job, task) for task in tasks), "snapshots")
    # A version while training goes on, through the coordinator and the chief's agent.
    saved = execute(["save", job.id, "--name", "early", "--json"], shell).value
    assert (saved["count"], saved["name"]) == (1, "early")
    execute(["models", job.id, "--download", "early", "--to", "copy"], shell)
    early = int(next((tmp_path / "copy").rglob("model.bin")).read_text())
    kill(job, "program", "worker:1")
    until(lambda: any(e.kind == "restored" for e in job.record().events), "restored")
    until_step(job, early + 2)
    until(lambda: job.record().progress, "progress")
    go.touch()
    record = job.wait(timeout=180)
    assert record.state is State.SUCCEEDED, record.detail
    expected = {"whole": "whole", "file": "words", "archive": "inside", "env": "blue", "lr": 0.25}
    expected["argument_text"] = "whole"
    shares = []
    for task in tasks:
        found, begun = words_of(job, task)
        assert all(f.items() >= expected.items() for f in found), found
        assert found[0]["part"] == found[-1]["part"]
        shares.append(found[0]["part"])
        assert begun[0] == 0
        if task == "worker:1":  # it alone was started again, with its own share and snapshot
            assert len(found) == len(begun) == 2
            assert begun[1] > 0
    assert shares == [["p0", "p3"], ["p1", "p2"]]
    last = int(re.findall(r"^end at (\d+)$", whole_log(job, "worker:0"), re.M)[0])
    read, directory = storage.read, job.directory
    for path in (directory.file("model/model.bin"), directory.file("checkpoints/step")):
        assert int(read(path)) == last
    assert int(read(f"{place}/kept/step")) == last
    assert read(directory.file("tensorboard/events.out.tfevents.1")) == b"1"
    left = {entry.name for entry in storage.list_directory(directory.path)}
    assert not left & {"snapshots", "growing"}
    assert 0 < early < last
    frame = job.metrics()
    assert {*frame["task"]} == set(tasks)
    assert frame["cpu_percent"].dropna().max() < 200
    # A new job with the same path, and one that resumes, go on where this one stopped.
    again, resumed = shell.run(*words), shell.run("rerun", job.id, "--resume")
    for other in (again, resumed):
        assert other.wait(timeout=180).state is State.SUCCEEDED, other.record().detail
        assert words_of(other, "worker:0")[1] == [last]
