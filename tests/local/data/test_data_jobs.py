"""Whole jobs on the local backend: inputs, versions of the model, going on from a checkpoint."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs import display
from submarine_jobs.client import Job, Session
from submarine_jobs.commands.grammar import execute
from submarine_jobs.errors import UsageError
from submarine_jobs.model import NamedInput, Profile, Resources, Role, default_kind
from submarine_jobs.options import format_input, parse_input
from submarine_runtime.protocol import EndReason, State
from tests.frontends import RecordingFrontend
from tests.local.data.data_files import contents, write
from tests.submission import Submit, submitting
from tests.waiting import until


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(Profile(backend="local", state_dir=tmp_path / "state"))


@pytest.fixture
def submit(session: Session) -> Iterator[Submit]:
    with submitting(session) as made:
        yield made


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
    until(lambda: "step 1" in log_of(job), seconds=90)
    first = job.save_model()
    assert (first.name, first.size, first.count) == ("v1", 6, 1)
    with pytest.raises(UsageError, match="not a valid name"):
        job.save_model("../evil")
    Path(f"{flag}-1").touch()
    until(lambda: "step 2" in log_of(job), seconds=90)
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

    frontend = RecordingFrontend(session=session)
    listed = execute(["models", job.id], frontend)
    assert [line.split()[0] for line in listed.text.splitlines()] == ["VERSION", "v1", "best", "v2"]
    assert first.digest in listed.text
    assert first.digest in str(listed.html)
    target = tmp_path / "copy"
    copied = execute(
        ["models", job.id, "--download", "best", "--to", str(target), "--json"], frontend
    )
    assert (copied.value["version"], contents(target)) == ("best", {"model.bin": b"step 2"})
    saved = execute(["save", "last", "--name", "again", "--json"], frontend)
    assert saved.value["digest"] == second.digest
    for words, sentence in (
        (["models", "last", "--download", "v9"], "no version 'v9'; there are: v1, best, v2, again"),
        (["models", "last", "--download", "v1", "--to", str(target)], "exists already"),
        (["models", "last", "--to", "x"], "--to says where to"),
        (["save", "last", "--name", "a/b"], "is not a valid name for a version"),
        (["save", "last", "--name", "v1"], "v1 exists already"),
    ):
        with pytest.raises(UsageError, match=sentence):
            execute(words, frontend)
    # A copy that was damaged on the way, or in the job directory, is not taken for the model.
    Path(job.directory.path, "models/v1/model/model.bin").write_bytes(b"stepX1")
    with pytest.raises(UsageError, match="not what was saved"):
        execute(["models", "last", "--download", "v1", "--to", str(tmp_path / "c2")], frontend)


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
    until(lambda: "at 5\n" in log_of(job), seconds=90)
    job.cancel()
    reached = int(contents(Path(job.directory.path))["checkpoints/step.txt"])
    again = job.rerun(resume=True)
    try:
        until(lambda: "at " in log_of(again), seconds=90)
        assert log_of(again).startswith(f"from {reached}\n")
    finally:
        again.cancel()


#: Writes its only checkpoint again when FLAG exists, on a disk that is full then.
CUT = """
import io, os, time, zipfile
path = os.path.join(os.environ["SUBMARINE_CHECKPOINT_DIR"], "state.pt")
if os.path.exists(path):
    print("from", zipfile.ZipFile(path).read("step").decode())
    raise SystemExit
state = io.BytesIO()
with zipfile.ZipFile(state, "w") as archive:
    archive.writestr("step", "1")
with open(path, "wb") as file:
    file.write(state.getvalue())
while not os.path.exists(FLAG):
    time.sleep(0.05)
with open(path, "wb") as file:
    file.write(state.getvalue()[:60])
# A checkpoint that Orbax has begun.
orbax = os.path.join(os.environ["SUBMARINE_CHECKPOINT_DIR"], "8")
os.mkdir(orbax)
for name, text in (("_CHECKPOINT_METADATA", '{"commit_timestamp_nsecs": null}'), ("part", "8")):
    with open(os.path.join(orbax, name), "w") as file:
        file.write(text)
raise OSError(28, "No space left on device")
"""


@pytest.mark.full
def test_the_snapshot_before_a_checkpoint_that_was_cut_off_is_resumed(
    submit: Submit, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    job = submit(CUT.replace("FLAG", repr(str(flag))))
    snapshots = Path(job.directory.path, "snapshots")
    until(lambda: any(snapshots.rglob("checkpoints-*.json")))
    flag.touch()
    record = job.wait(90)
    assert record.reason is EndReason.DISK_FULL
    assert record.missing == [
        f"'checkpoints/{name}' was not saved: it is incomplete."
        for name in ("state.pt", "8/_CHECKPOINT_METADATA", "8/part")
    ]
    again = job.rerun(resume=True)
    again.wait_success(90)
    assert log_of(again) == "from 1\n"


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


def test_a_path_elsewhere_is_passed_to_the_program_or_refused(
    session: Session, submit: Submit
) -> None:
    kept, model = "s3a://me:secret@bucket/kept", "s3a://bucket/model"
    spec = {"checkpoint_path": kept, "saved_model_path": model}
    source = "import os, sys; print(sys.argv[1], os.environ['OUT'])"
    with pytest.raises(UsageError, match=r"--checkpoint_path s3a.*nothing would be written there"):
        submit(source, checkpoint_path=kept)
    with pytest.raises(UsageError, match=r"--saved_model_path s3a.*not in the file system"):
        submit(source, saved_model_path=model)
    with pytest.raises(UsageError, match="--saved_model_path"):  # the other one is used
        submit(source, args=("%checkpoint_path%",), **spec)
    assert not any(session.profile.state_dir.glob("jobs/2*/*"))
    env = {"OUT": "%saved_model_path%"}
    job = submit(source, args=("--dir=%checkpoint_path%",), env=env, **spec)
    record = job.wait_success(60)
    assert log_of(job) == f"--dir={kept} {model}\n"
    assert record.notes == [
        "s3a://bucket/kept (--checkpoint_path) is written by the program.",
        "s3a://bucket/model (--saved_model_path) is written by the program.",
    ]
    shown = execute(["show", job.id], RecordingFrontend(session=session))
    for note in record.notes:
        assert note in shown.text
        assert note in display.html(job.view())
    # A rerun passes the same paths on; on several tasks the coordinator writes the record.
    again = job.rerun()
    assert again.wait_success(60).notes == record.notes
    gang = submit(source, args=("%checkpoint_path%",), env=env, instances=2, **spec)
    assert gang.wait_success(60).notes == record.notes


LISTS = """
import os, time
for name in ("T", "C", "ALL"):
    folder = os.environ["SUBMARINE_INPUT_" + name]
    print(name, *sorted(os.listdir(folder)), flush=True)
if os.environ["SUBMARINE_ROLE"] in ("ps", "evaluator"):
    time.sleep(600)
"""


def test_shared_inputs_go_to_the_tasks_that_train(
    session: Session, submit: Submit, tmp_path: Path
) -> None:
    """In a TensorFlow job with ps the chief only directs; ``:shard=ROLE`` overrides."""
    write(tmp_path / "set", {f"p{number}": b"x" * (number + 1) for number in range(4)})
    uri = (tmp_path / "set").as_uri()
    inputs = tuple(parse_input(f"{name}={uri}{how}") for name, how in
                   (("T", ":shard"), ("C", ":shard=chief,worker"), ("ALL", "")))  # fmt: skip
    names = (("chief", 1), ("worker", 2), ("ps", 1), ("evaluator", 1))
    roles = tuple(
        Role(name, count, Resources(128), kind=default_kind(name)) for name, count in names
    )
    job = submit(LISTS, roles=roles, framework="tensorflow", inputs=inputs)
    record = job.wait_success(90)
    found: dict[str, dict[str, list[str]]] = {}
    for task in record.tasks:
        place = f"logs/{task.task.replace(':', '-')}/e1-a1/stdout.000000000000"
        lines = Path(job.directory.path, place).read_text().splitlines()
        found[task.task] = {line.split()[0]: line.split()[1:] for line in lines}
    every = ["p0", "p1", "p2", "p3"]
    assert {task: (had["T"], had["C"]) for task, had in found.items()} == {
        "chief:0": ([], ["p3"]),
        "worker:0": (["p0", "p3"], ["p2"]),
        "worker:1": (["p1", "p2"], ["p0", "p1"]),
        "ps:0": ([], []),
        "evaluator:0": (every, every),
    }
    assert all(had["ALL"] == every for had in found.values())
    # The dry run announces what the tasks then fetch.
    (tmp_path / "train.py").write_text(LISTS)
    words = [f"--input={format_input(item)}" for item in inputs]
    words += [f"--role={role.name}={role.instances},memory=128M" for role in roles]
    dry = execute(
        [
            "run",
            str(tmp_path / "train.py"),
            "--framework=tensorflow",
            *words,
            "--backend=local",
            "--dry-run",
        ],
        RecordingFrontend(session=session),
    )
    sizes = {name: number + 1 for number, name in enumerate(every)}
    assert {(item["task"], item["name"]): (item["files"], item["size"]) for item in
            dry.value["inputs"]} == {
        (task, name): (len(files), sum(sizes[file] for file in files))
        for task, had in found.items()
        for name, files in had.items()
    }  # fmt: skip
    assert re.search(r"T +worker:0 +shard +2 +5 B", dry.text), dry.text


def test_a_killed_worker_goes_on_from_its_snapshot_with_its_share_of_the_input(
    submit: Submit, session: Session, tmp_path: Path
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
    if os.environ["SUBMARINE_INDEX"] == "0":
        with open(path + ".tmp", "w") as file:
            file.write(str(step))
        os.rename(path + ".tmp", path)
    time.sleep(0.4)
"""
    inputs = (NamedInput("T", (tmp_path / "set").as_uri(), shard=True),)
    job = submit(source, instances=2, inputs=inputs, max_restarts=2, restore="own")
    until(lambda: any(e.kind == "snapshot" for e in job.record().events), seconds=90)
    pid = next(task.pid for task in job.record().tasks if task.task == "worker:1")
    assert pid
    os.kill(pid, signal.SIGKILL)
    until(lambda: sum(e.kind == "restored" for e in job.record().events) >= 2, seconds=90)
    rule = "Each task restores its own files (rule own)."
    warning = "worker:1 has no checkpoints of its own and the files of worker:0 are restored there."

    def check_shown() -> None:
        shown = execute(["show", job.id], RecordingFrontend(session=session)).text
        assert re.search(rf"^ *Warning: .*{re.escape(warning)}$", shown, re.MULTILINE), shown
        assert re.search(rf"^ *Note: {re.escape(rule)}$", shown, re.MULTILINE), shown
        card = re.sub(r"<[^>]+>", "", display.html(job.view()))
        assert warning in card
        assert re.search(rf"Warning\W+[^<]*{re.escape(warning)}", card), card
        assert re.search(rf"Note\W+{re.escape(rule)}", card), card

    check_shown()
    flag.touch()
    record = job.wait_success(60)
    check_shown()
    assert [e.detail for e in record.events if e.kind == "warning"] == record.warnings
    assert record.epoch == 2
    shares = []
    for task in ("worker:0", "worker:1"):
        place = f"logs/{task.replace(':', '-')}/e2-a1/stdout.000000000000"
        words = Path(job.directory.path, place).read_text().split()
        assert int(words[1]) > 0
        shares.append(words[2:])
    assert shares == [["p0", "p3"], ["p1", "p2"]]
    assert not Path(job.directory.path, "snapshots").exists()


#: Keeps its newest file only. The first worker goes on when the file FLAG lies there.
APART = """
import os, time
place, rank = os.environ["SUBMARINE_CHECKPOINT_DIR"], int(os.environ["SUBMARINE_INDEX"])
saved = os.listdir(place)
step = int(saved[0].rpartition("_")[2]) if saved else 0
print("from", step, flush=True)
def save(step):
    for name in os.listdir(place):
        os.unlink(os.path.join(place, name))
    open(os.path.join(place, f"rank{rank}_step_{step}"), "w").close()
if not saved:
    save(8)
    while rank or not os.path.exists(FLAG):
        time.sleep(0.05)
    save(16)
time.sleep(600)
"""


@pytest.mark.full
def test_a_gang_resumes_from_the_common_point_of_a_job_whose_final_checkpoints_disagree(
    submit: Submit, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    job = submit(APART.replace("FLAG", repr(str(flag))), instances=2)
    root = Path(job.directory.path)

    def saved(rank: int, step: int) -> bool:
        found = root.glob(f"snapshots/worker-{rank}/e1-a1/checkpoints-*.json")
        return any(f"rank{rank}_step_{step}" in path.read_text() for path in found)

    until(lambda: saved(0, 8) and saved(1, 8), seconds=120)
    flag.touch()
    until(lambda: saved(0, 16), seconds=120)
    job.cancel()
    job.wait(60)
    final = {name.rpartition("/")[2] for name in contents(root) if name.count("_step_")}
    assert final == {"rank0_step_16", "rank1_step_8"}
    assert saved(0, 8)  # that of the other worker is among its final checkpoints
    again = job.rerun(resume=True)
    logs = [Path(again.directory.path, f"logs/worker-{rank}/e1-a1") for rank in (0, 1)]
    try:
        until(lambda: all("from" in text_of(log) for log in logs), seconds=120)
        assert [text_of(log) for log in logs] == ["from 8\n", "from 8\n"]
        assert "Each task restores its own files at step 8 (rule own)." in again.record().notes
    finally:
        again.cancel()


def text_of(log: Path) -> str:
    return "".join(path.read_text() for path in sorted(log.glob("stdout.*")))
