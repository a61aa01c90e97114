"""Whole jobs on the local backend: inputs, versions of the model, going on from a checkpoint."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.commands.execute import execute
from submarine_jobs.commands.mouth import Mouth
from submarine_jobs.errors import UsageError
from submarine_jobs.job import Job
from submarine_jobs.profile import Profile
from submarine_jobs.session import Session
from submarine_jobs.spec import NamedInput
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.protocol.states import State
from tests.local.data_rig import contents, wait_until, write
from tests.local.submitting import Submit, submitting


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(Profile(backend="local", state_dir=tmp_path / "state"))


@pytest.fixture
def submit(session: Session) -> Iterator[Submit]:
    yield from submitting(session)


class Here(Mouth):
    """A mouth whose session is the test's."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session

    def session(self, config: object) -> Session:
        return self._session


def log_of(job: Job) -> str:
    return b"".join(chunk.data for chunk in job.read_log()).decode()


SAVED = """
import os, time
model, flag = os.environ["SUBMARINE_MODEL_DIR"], FLAG
for step in (1, 2):
    with open(os.path.join(model, "model.bin"), "wb") as file:
        file.write(b"step %d" % step)
    print("step", step, flush=True)
    while not os.path.exists(f"{flag}-{step}"):
        time.sleep(0.05)
"""


def test_versions_of_a_model_while_it_is_trained_and_after(
    submit: Submit, session: Session, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    job = submit(SAVED.replace("FLAG", repr(str(flag))))
    wait_until(lambda: "step 1" in log_of(job), 90)
    first = job.save_model()
    assert (first.name, first.size, first.count) == ("v1", 6, 1)
    with pytest.raises(UsageError, match="no name"):
        job.save_model("../evil")
    Path(f"{flag}-1").touch()
    wait_until(lambda: "step 2" in log_of(job), 90)
    second = job.save_model("best")
    assert second.digest != first.digest
    with pytest.raises(Exception, match="already"):
        job.save_model("best")
    assert job.record().state is State.RUNNING
    Path(f"{flag}-2").touch()
    job.wait_success(90)
    last = job.save_model()
    assert (last.name, last.digest) == ("v2", second.digest)
    assert [version.name for version in job.models()] == ["v1", "best", "v2"]

    mouth = Here(session)
    listed = execute(["models", job.id], mouth)
    assert [line.split()[0] for line in listed.text.splitlines()] == ["VERSION", "v1", "best", "v2"]
    assert first.digest in listed.text
    assert first.digest in str(listed.html)
    target = tmp_path / "copy"
    copied = execute(["models", job.id, "--download", "best", "--to", str(target), "--json"], mouth)
    assert (copied.value["version"], contents(target)) == ("best", {"model.bin": b"step 2"})
    saved = execute(["save", "last", "--name", "again", "--json"], mouth)
    assert saved.value["digest"] == second.digest
    for words, sentence in (
        (["models", "last", "--download", "v9"], "no version 'v9'; there are: v1, best, v2, again"),
        (["models", "last", "--download", "v1", "--to", str(target)], "is there already"),
        (["models", "last", "--to", "x"], "--to says where to"),
        (["save", "last", "--name", "a/b"], "is no name for a version"),
        (["save", "last", "--name", "v1"], "a version v1 already"),
    ):
        with pytest.raises(UsageError, match=sentence):
            execute(words, mouth)
    # A copy that was damaged on the way, or in the job directory, is not taken for the model.
    Path(job.directory.path, "models/v1/model/model.bin").write_bytes(b"stepX1")
    with pytest.raises(UsageError, match="not what was saved"):
        execute(["models", "last", "--download", "v1", "--to", str(tmp_path / "c2")], mouth)


def test_a_cancelled_job_goes_on_from_its_newest_checkpoint(submit: Submit) -> None:
    source = """
import os, time
folder = os.environ["SUBMARINE_CHECKPOINT_DIR"]
path = os.path.join(folder, "step.txt")
step = int(open(path).read()) if os.path.exists(path) else 0
print("from", step, flush=True)
while step < 1000:
    step += 1
    with open(path + ".tmp", "w") as file:
        file.write(str(step))
    os.rename(path + ".tmp", path)
    print("at", step, flush=True)
    if os.environ.get("SUBMARINE_PARAM_LAST"):
        break
    time.sleep(0.1)
"""
    job = submit(source)
    wait_until(lambda: "at 5\n" in log_of(job), 90)
    job.cancel()
    reached = int(contents(Path(job.directory.path))["checkpoints/step.txt"])
    again = job.rerun(resume=True)
    try:
        wait_until(lambda: "at " in log_of(again), 90)
        assert log_of(again).startswith(f"from {reached}\n")
    finally:
        again.cancel()


def test_inputs_are_there_or_the_job_says_which_is_not(submit: Submit, tmp_path: Path) -> None:
    write(tmp_path / "set é +%", {"a b.csv": b"1,2", "sub/c.csv": b"3"})
    source = """
import os
root = os.environ["SUBMARINE_INPUT_TRAIN"]
for folder, _, names in sorted(os.walk(root)):
    for name in sorted(names):
        print(name, open(os.path.join(folder, name)).read())
"""
    uri = (tmp_path / "set é +%").as_uri()
    job = submit(source, inputs=(NamedInput("TRAIN", uri),))
    job.wait_success(90)
    assert log_of(job) == "a b.csv 1,2\nc.csv 3\n"
    with pytest.raises(UsageError, match="there is no"):
        submit(source, inputs=(NamedInput("TRAIN", f"{uri}-not"),))
    record = job.record()
    assert record.reason is EndReason.SUCCEEDED


def test_a_killed_worker_goes_on_from_its_snapshot_with_its_share_of_the_input(
    submit: Submit, tmp_path: Path
) -> None:
    write(tmp_path / "set", {f"p{number}": b"x" * (number + 1) for number in range(4)})
    flag = tmp_path / "flag"
    source = f"""
import os, time
path = os.path.join(os.environ["SUBMARINE_CHECKPOINT_DIR"], "step")
step = int(open(path).read()) if os.path.exists(path) else 0
print("from", step, *sorted(os.listdir(os.environ["SUBMARINE_INPUT_T"])), flush=True)
while not os.path.exists({str(flag)!r}):
    step += 1
    with open(path + ".tmp", "w") as file:
        file.write(str(step))
    os.rename(path + ".tmp", path)
    time.sleep(0.4)
"""
    inputs = (NamedInput("T", (tmp_path / "set").as_uri(), shard=True),)
    job = submit(source, instances=2, inputs=inputs, max_restarts=2)
    wait_until(lambda: sum(e.kind == "snapshot" for e in job.record().events) >= 2, 90)
    pid = next(task.pid for task in job.record().tasks if task.task == "worker:1")
    assert pid
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: sum(e.kind == "restored" for e in job.record().events) >= 2, 90)
    flag.touch()
    record = job.wait_success(60)
    assert record.epoch == 2
    shares = []
    for task in ("worker:0", "worker:1"):
        place = f"logs/{task.replace(':', '-')}/e2-a1/stdout.000000000000"
        words = Path(job.directory.path, place).read_text().split()
        assert int(words[1]) > 0
        shares.append(words[2:])
    assert shares == [["p0", "p3"], ["p1", "p2"]]
    assert not Path(job.directory.path, "snapshots").exists()
