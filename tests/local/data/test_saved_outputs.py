"""Whole jobs on the local backend that publish outputs: ``--save-output``, SUBMARINE_OUTPUT_DIR."""

from __future__ import annotations

import json
import os
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs import display
from submarine_jobs.client import Job, Session
from submarine_jobs.errors import UsageError
from submarine_jobs.model import NamedInput, NamedOutput, Profile
from submarine_runtime.protocol import EndReason, State
from tests.local.data.data_files import contents
from tests.submission import Submit, submitting
from tests.waiting import PATIENCE, until


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(Profile(backend="local", state_dir=tmp_path / "state"))


@pytest.fixture
def submit(session: Session) -> Iterator[Submit]:
    with submitting(session) as made:
        yield made


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def data(folder: Path) -> dict[str, bytes]:
    """The files that Hive and Spark read."""
    return {
        path: content
        for path, content in contents(folder).items()
        if not any(part.startswith(("_", ".")) for part in path.split("/"))
    }


WRITES = """
import os, pathlib
out, own = (pathlib.Path(os.environ["SUBMARINE_OUTPUT_" + name]) for name in ("pred", "DIR"))
assert not list(out.iterdir()) and not list(own.iterdir())
for n in range(1000):
    (out / f"part-{n:04d}.csv").write_text(f"{n}")
(out / "day=1").mkdir()
(out / "day=1" / "größe 1.csv").write_text("x")
(out / "secret").symlink_to("SECRET")
(out / "folder").symlink_to("/etc")
(own / "a b").mkdir()
(own / "a b" / "é.txt").write_text("own")
(own / "passwd").symlink_to("/etc/passwd")
"""


@pytest.mark.full
def test_a_task_publishes_its_files_and_follows_no_link(submit: Submit, tmp_path: Path) -> None:
    secret, place = tmp_path / "secret.txt", tmp_path / "shared"
    secret.write_text("not published")
    place.mkdir(mode=0o750)
    uri = (place / "new" / "pred").as_uri()
    job = submit(WRITES.replace("SECRET", str(secret)), outputs=(NamedOutput("pred", uri),))
    record = job.wait_success(PATIENCE)
    target = place / "new" / "pred"
    expected = {f"part-{n:04d}.csv": str(n).encode() for n in range(1000)}
    assert data(target) == {**expected, "day=1/größe 1.csv": b"x"}
    assert json.loads((target / "_SUCCESS").read_text())["job"] == job.id
    assert not hidden(target.parent)
    assert [vars(one) for one in record.saved_outputs] == [
        {"name": "pred", "uri": uri, "files": 1001, "bytes": sum(map(len, data(target).values()))}
    ]
    modes = {
        stat.S_IMODE(path.stat().st_mode) for path in (target.parent, target, target / "day=1")
    }
    assert modes == {0o750}
    assert stat.S_IMODE((target / "part-0000.csv").stat().st_mode) == 0o640
    own = Path(job.directory.path, "outputs", "worker-0")
    assert contents(own) == {"a b/é.txt": b"own"}
    assert ("outputs/worker-0/a b/é.txt", 3) in job.outputs()
    assert "outputs/worker-0/a b/é.txt" in [one.path for one in record.outputs]
    left_out = " ".join(record.missing)
    for name in ("pred/secret", "pred/folder", "outputs/worker-0/passwd"):
        assert f"'{name}' was not saved: it is not a plain file." in left_out


ONE = """
import os
with open(os.path.join(os.environ["SUBMARINE_OUTPUT_pred"], "VALUE.csv"), "w") as file:
    file.write("VALUE")
"""


def test_an_occupied_uri_is_refused_replaced_or_extended(submit: Submit, tmp_path: Path) -> None:
    target = tmp_path / "pred"
    target.mkdir()
    (target / "old.csv").write_text("old")
    uri = str(target)
    with pytest.raises(UsageError, match="exists and is not empty"):
        submit(ONE, outputs=(NamedOutput("pred", uri),))
    seen: set[tuple[str, ...]] = set()
    stopped = threading.Event()

    def read() -> None:
        while not stopped.is_set():
            try:
                seen.add(tuple(sorted(os.listdir(target))))
            except FileNotFoundError:
                seen.add(("absent",))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        job = submit(ONE.replace("VALUE", "new"), outputs=(NamedOutput("pred", uri, "overwrite"),))
        job.wait_success(PATIENCE)
        until(lambda: ("_SUCCESS", "new.csv") in seen)
    finally:
        stopped.set()
        reader.join()
    assert seen - {("absent",)} == {("old.csv",), ("_SUCCESS", "new.csv")}
    more = submit(ONE.replace("VALUE", "more"), outputs=(NamedOutput("pred", uri, "append-run"),))
    record = more.wait_success(PATIENCE)
    assert contents(target / more.id).keys() == {"_SUCCESS", "more.csv"}
    assert record.saved_outputs[0].uri == f"{uri}/{more.id}"
    assert (target / "new.csv").exists()
    assert not hidden(tmp_path)


WAITS = """
import os, time
with open(os.path.join(os.environ["SUBMARINE_OUTPUT_pred"], "a.csv"), "w") as file:
    file.write("a")
print("written", flush=True)
while not os.path.exists(FLAG):
    time.sleep(0.05)
"""


def log_of(job: Job) -> str:
    return b"".join(chunk.data for chunk in job.read_log()).decode()


def test_a_uri_that_was_filled_meanwhile_fails_the_job_and_keeps_its_files(
    submit: Submit, tmp_path: Path
) -> None:
    target, flag = tmp_path / "pred", tmp_path / "flag"
    job = submit(
        WAITS.replace("FLAG", repr(str(flag))), outputs=(NamedOutput("pred", str(target)),)
    )
    until(lambda: "written" in log_of(job))
    target.mkdir()
    (target / "foreign.csv").write_text("f")
    flag.touch()
    record = job.wait(PATIENCE)
    staging = target.parent / f".pred.{job.id}.new"
    assert (record.state, record.reason) == (State.FAILED, EndReason.OUTPUT_NOT_SAVED)
    assert record.detail == (
        f"--save-output pred: {target} was filled while the job ran; the files of the job are in "
        f"{staging}."
    )
    assert contents(target) == {"foreign.csv": b"f"}
    assert data(staging) == {"a.csv": b"a"}
    assert not record.saved_outputs


FAILS = """
import os, sys
for name in ("pred", "DIR"):
    open(os.path.join(os.environ["SUBMARINE_OUTPUT_" + name], "a.csv"), "w").close()
sys.exit(3)
"""


@pytest.mark.parametrize("instances", [1, pytest.param(2, marks=pytest.mark.full)])
@pytest.mark.parametrize("on_failure", [False, True])
def test_a_failed_job_publishes_nothing_and_saves_its_own_files_on_request(
    submit: Submit, tmp_path: Path, on_failure: bool, instances: int
) -> None:
    outputs = (NamedOutput("pred", str(tmp_path / "pred")),)
    job = submit(FAILS, outputs=outputs, save_on_failure=on_failure, instances=instances)
    record = job.wait(PATIENCE)
    assert record.reason is EndReason.PROGRAM_ERROR
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state"]
    saved = contents(Path(job.directory.path, "outputs"))
    assert bool(saved) == on_failure
    assert "pred: files were not published" in " ".join(record.missing)


BAD = {
    "newline": ("'a\\n.csv'", "control characters in its name"),
    "bytes": ("b'\\xff.csv'", "its name is not UTF-8"),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_name_that_no_reader_could_use_fails_the_job(
    submit: Submit, tmp_path: Path, bad: str
) -> None:
    name, sentence = BAD[bad]
    source = f"import os\nos.chdir(os.environ['SUBMARINE_OUTPUT_pred'])\nopen({name}, 'w').close()"
    job = submit(source, outputs=(NamedOutput("pred", str(tmp_path / "pred")),))
    record = job.wait(PATIENCE)
    assert record.reason is EndReason.OUTPUT_NOT_SAVED
    assert sentence in record.detail
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state"]


def test_an_empty_output_is_published_with_a_warning(submit: Submit, tmp_path: Path) -> None:
    job = submit("pass", outputs=(NamedOutput("pred", str(tmp_path / "pred")),))
    record = job.wait_success(PATIENCE)
    assert contents(tmp_path / "pred").keys() == {"_SUCCESS"}
    assert "the program wrote no file" in " ".join(record.warnings)


#: The first attempt of worker 1 leaves a file that its second attempt does not write.
PARTS = """
import os, pathlib, time
out = pathlib.Path(os.environ["SUBMARINE_OUTPUT_pred"])
again = os.environ["SUBMARINE_EPOCH"] != "1"
(out / "part.csv").write_text(os.environ["SUBMARINE_INDEX"] + os.environ["SUBMARINE_EPOCH"])
(out / "_meta").write_text("m")
(pathlib.Path(os.environ["SUBMARINE_OUTPUT_DIR"]) / "own").write_text("o")
if not again:
    (out / "only-first.csv").write_text("x")
    print("written", flush=True)
    time.sleep(600)
"""


def test_a_gang_publishes_the_parts_of_its_last_attempts_only(
    submit: Submit, tmp_path: Path
) -> None:
    target = tmp_path / "pred"
    job = submit(PARTS, instances=2, max_restarts=2, outputs=(NamedOutput("pred", str(target)),))
    until(lambda: sum(task.state is State.RUNNING for task in job.record().tasks) == 2)
    until(lambda: "written" in log_of(job))
    pid = next(task.pid for task in job.record().tasks if task.task == "worker:1")
    assert pid
    os.kill(pid, signal.SIGKILL)
    record = job.wait_success(PATIENCE)
    assert record.epoch == 2
    assert data(target) == {"worker-0-part.csv": b"02", "worker-1-part.csv": b"12"}
    assert {"_worker-0-meta", "_worker-1-meta", "_SUCCESS"} <= contents(target).keys()
    assert (record.saved_outputs[0].files, record.saved_outputs[0].bytes) == (4, 6)
    assert contents(Path(job.directory.path, "outputs")) == {
        "worker-0/own": b"o",
        "worker-1/own": b"o",
    }
    assert not hidden(tmp_path)


MANY = """
import os
os.chdir(os.environ["SUBMARINE_OUTPUT_pred"])
for n in range(4000):
    with open(f"{n}.csv", "w") as file:
        file.write("x")
"""


@pytest.mark.full
def test_an_agent_that_is_killed_during_the_upload_publishes_nothing(
    submit: Submit, tmp_path: Path
) -> None:
    target = tmp_path / "pred"
    job = submit(MANY, outputs=(NamedOutput("pred", str(target)),))
    staging = tmp_path / f".pred.{job.id}.new"
    until(lambda: staging.exists() and len(os.listdir(staging)) > 10)
    os.kill(int(json.loads(Path(job.directory.path, "claim.json").read_text())["pid"]), 9)
    record = job.wait(PATIENCE)
    assert record.reason is EndReason.AGENT_LOST
    assert not target.exists()
    assert not hidden(tmp_path)
    assert not record.saved_outputs


@pytest.mark.full
def test_a_coordinator_that_is_killed_during_the_end_publishes_once(
    submit: Submit, tmp_path: Path
) -> None:
    target = tmp_path / "pred"
    target.mkdir()
    (target / "old.csv").write_text("old")
    outputs = (NamedOutput("pred", str(target), "overwrite"),)
    job = submit(MANY.replace("4000", "400"), instances=2, outputs=outputs)
    staging = tmp_path / f".pred.{job.id}.new"
    until(lambda: staging.exists() and len(os.listdir(staging)) > 10)
    os.kill(int(json.loads(Path(job.directory.path, "live.json").read_text())["pid"]), 9)
    record = job.wait_success(PATIENCE)
    assert len(data(target)) == record.saved_outputs[0].files == 800
    assert not hidden(tmp_path)


#: Writes parts 0 to 5; waits after the third until the file FLAG is there. It continues where the
#: list of published parts ends, and would write other content for a part that it repeats.
STREAM = """
import os, pathlib, time
out = pathlib.Path(os.environ["SUBMARINE_OUTPUT_s"])
done = set(pathlib.Path(os.environ["SUBMARINE_PUBLISHED_s"]).read_text().split())
run = os.environ["SUBMARINE_EPOCH"] + os.environ["SUBMARINE_ATTEMPT"]
print("published", *sorted(done), flush=True)
for n in range(6):
    name = f"p{n}.csv"
    if name in done:
        continue
    if n == 3 and not done:
        (out / name).write_text("half")  # Complete by its looks: the program is killed.
        file = open(out / "open.csv", "w")
        file.write("never closed")
        file.flush()
        (out / "p3.csv").unlink()
        time.sleep(600)
    (out / name).write_text(run)
"""


@pytest.mark.parametrize("instances", [1, pytest.param(2, marks=pytest.mark.full)])
def test_a_stream_neither_repeats_nor_loses_a_part_after_a_restart(
    submit: Submit, tmp_path: Path, instances: int
) -> None:
    target = tmp_path / "s"
    output = NamedOutput("s", str(target), stream=True)
    job = submit(STREAM, instances=instances, max_restarts=2, outputs=(output,))
    until(lambda: len(data(target)) == 3 * instances if target.exists() else False)
    first = data(target)
    assert not (target / "_SUCCESS").exists()
    name = f"worker:{instances - 1}"
    pid = next(task.pid for task in job.record().tasks if task.task == name)
    assert pid
    os.kill(pid, signal.SIGKILL)
    record = job.wait_success(PATIENCE)
    assert "published p0.csv p1.csv p2.csv" in log_of(job)
    found = data(target)
    assert found.items() >= first.items()
    prefixes = [""] if instances == 1 else ["worker-0-", "worker-1-"]
    assert found.keys() == {f"{prefix}p{n}.csv" for prefix in prefixes for n in range(6)}
    assert {found[f"{prefix}p0.csv"] for prefix in prefixes} == {b"11"}
    listed = {
        json.loads(content)["path"]: json.loads(content)
        for path, content in contents(target / "_manifest").items()
        if path != "_job.json"
    }
    assert listed.keys() == found.keys()
    assert all(one["bytes"] == len(found[path]) for path, one in listed.items())
    assert (target / "_SUCCESS").exists()
    assert record.saved_outputs[0].files == len(found)


STORED = """
import os, pathlib, time
out = pathlib.Path(os.environ["SUBMARINE_OUTPUT_s"])
done = set(pathlib.Path(os.environ["SUBMARINE_PUBLISHED_s"]).read_text().split())
task = os.environ["SUBMARINE_INDEX"]
for n in range(4):
    name = f"p{n}-{task}.csv"
    if name not in done:
        if n == 3 and not done:
            time.sleep(600)
        (out / name).write_text(os.environ["SUBMARINE_EPOCH"] + os.environ["SUBMARINE_ATTEMPT"])
"""


@pytest.mark.full
def test_parts_are_stored_early_and_appear_together(submit: Submit, tmp_path: Path) -> None:
    target = tmp_path / "s"
    target.mkdir()
    (target / "old.csv").touch()
    output = NamedOutput("s", str(target), "overwrite", parts=True)
    job = submit(STORED, instances=2, max_restarts=9, outputs=(output,))
    staged = tmp_path / f".s.{job.id}.new"
    until(lambda: len(data(staged)) == 6 if staged.exists() else False)
    assert os.listdir(target) == ["old.csv"]
    for task in job.record().tasks:
        assert task.pid
        os.kill(task.pid, signal.SIGKILL)
    record = job.wait_success(PATIENCE)
    expected = data(target)
    assert expected.keys() == {f"p{n}-{task}.csv" for n in range(4) for task in range(2)}
    later = {name for name, content in expected.items() if content != b"11"}
    assert later == {"p3-0.csv", "p3-1.csv"}  # The others were not written again.
    assert contents(target).keys() - expected.keys() == {"_SUCCESS"}
    assert record.saved_outputs[0].files == 8
    assert not hidden(tmp_path)


@pytest.mark.full
def test_parts_of_two_tasks_with_one_name_fail_the_job(submit: Submit, tmp_path: Path) -> None:
    program = """
import os, pathlib, time
index = int(os.environ["SUBMARINE_INDEX"])
path = pathlib.Path(os.environ["SUBMARINE_OUTPUT_s"], "same.csv")
path.write_text("x" * (index + 1))
if index:
    path.rename(path.with_name(".hidden"))
    time.sleep(8)
    path.with_name(".hidden").rename(path)
"""
    output = NamedOutput("s", str(tmp_path / "s"), parts=True)
    record = submit(program, instances=2, outputs=(output,)).wait(PATIENCE)
    assert record.reason is EndReason.OUTPUT_NOT_SAVED
    assert "several tasks have written same.csv" in record.detail
    assert not list(tmp_path.glob("*s"))


@pytest.mark.full
def test_a_target_without_space_fails_the_job(submit: Submit, tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    if os.system(f"mount -t tmpfs -o size=64k none '{place}' 2>/dev/null"):
        pytest.skip("a file system of 64 kB needs the permission to mount it")
    try:
        job = submit(MANY, outputs=(NamedOutput("pred", str(place / "pred")),))
        record = job.wait(PATIENCE)
        assert record.reason is EndReason.OUTPUT_NOT_SAVED
        assert "--save-output pred was not saved: cannot" in record.detail
        assert "No space left on device" in record.detail
        assert not list(place.iterdir())
    finally:
        os.system(f"umount '{place}'")


REFUSED = {
    "s3a://bucket/pred": "is not in the file system of the job directory",
    "hdfs://other/pred": "is not in the file system of the job directory",
    "ROOT/x": "overlaps with the job root",
    "TMP/in/pred": "overlaps with --input data",
    "TMP/one/deeper": "overlaps with --save-output one",
    "TMP/file": "is a file",
    "TMP/file/below": "it is a file",
    "TMP/a/../b": "is not a directory for data",
    "/": "is not a directory for data",
}


@pytest.mark.parametrize("uri", REFUSED)
def test_a_uri_that_the_job_could_not_publish_is_refused(
    submit: Submit, session: Session, tmp_path: Path, uri: str
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "file").touch()
    root = session.backend("local").job_root()[1]
    uri = uri.replace("ROOT", root).replace("TMP", str(tmp_path))
    sentence = REFUSED[next(key for key in REFUSED if uri.endswith(key[4:]))]
    before = sorted(tmp_path.iterdir())
    outputs = (NamedOutput("one", str(tmp_path / "one")), NamedOutput("two", uri))
    with pytest.raises(UsageError, match=sentence):
        submit("pass", inputs=(NamedInput("data", str(tmp_path / "in")),), outputs=outputs)
    assert sorted(tmp_path.iterdir()) == before


TRACKS = """
import os
for name, value in sorted(os.environ.items()):
    if name.startswith(("MLFLOW", "WANDB_")):
        print(f"{name}={value}")
os.makedirs(os.environ["MLFLOW_TRACKING_URI"])
with open(os.environ["MLFLOW_TRACKING_URI"] + "/meta.yaml", "w") as file:
    file.write("run")
"""


def test_runs_of_mlflow_and_wandb_are_saved_unless_the_user_chose(
    submit: Submit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith(("MLFLOW", "WANDB_"))]:
        monkeypatch.delenv(name)
    job = submit(TRACKS, name="digits")
    job.wait_success(PATIENCE)
    seen = dict(line.split("=", 1) for line in log_of(job).splitlines())
    place = seen.pop("WANDB_DIR")
    run = f"{job.id}-worker-0"
    assert seen == {
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "MLFLOW_EXPERIMENT_NAME": "digits",
        "MLFLOW_RUN_CONTEXT": json.dumps({"mlflow.runName": run}),
        "MLFLOW_TRACKING_URI": f"{place}/mlruns",
        "WANDB_MODE": "offline",
        "WANDB_NAME": run,
        "WANDB_PROJECT": "digits",
        "WANDB_RUN_GROUP": job.id,
        "WANDB_SYMLINK": "false",
    }
    assert ("outputs/worker-0/mlruns/meta.yaml", 3) in job.outputs()
    assert f"{job.directory.url}/outputs: worker-0/mlruns/meta.yaml (3 B)" in display.text(
        job.view()
    )
    chosen = {
        "MLFLOW_TRACKING_URI": str(tmp_path / "own"),
        "MLFLOW_EXPERIMENT_ID": "7",
        "WANDB_API_KEY": "k",
        "WANDB_PROJECT": "mine",
    }
    job = submit(TRACKS, env=chosen)
    job.wait_success(PATIENCE)
    seen = dict(line.split("=", 1) for line in log_of(job).splitlines())
    assert seen.items() >= chosen.items()
    absent = {"MLFLOW_ALLOW_FILE_STORE", "MLFLOW_EXPERIMENT_NAME", "WANDB_MODE"}
    assert not absent & seen.keys()
    assert job.outputs() == []
