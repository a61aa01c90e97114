"""A training that needs nothing but Python, whose right result is known, and its processes.

Every task counts steps and folds each into a number; it saves a checkpoint every few steps and goes
on from the newest one that it finds. So the model at the end proves that no step was lost or done
twice, whatever happened on the way, and the log proves the same of the log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import psutil

from submarine_jobs.client import Job
from submarine_jobs.model import Resources, Role
from submarine_runtime.protocol import JobRecord, State, TaskRecord
from tests.waiting import until

#: Fits what one step does to the number.
FACTOR, MODULUS = 6364136223846793005, 2**61 - 1
PROGRAM = """\
import json, os, pathlib, sys, time
STEPS, PAUSE, EVERY = {steps}, {pause}, {every}
place = pathlib.Path(os.environ["SUBMARINE_CHECKPOINT_DIR"])
number = lambda path: int(path.stem.partition("-")[2])
newest = max(place.glob("step-*.json"), key=number, default=None)
state = json.loads(newest.read_text()) if newest else dict(step=0, value=1)
print("begin at", state["step"], flush=True)
while state["step"] < STEPS:
    step = state["step"] + 1
    while {hold!r} and step == STEPS and not os.path.exists({hold!r}):
        time.sleep(0.05)
    state = dict(step=step, value=(state["value"] * {factor} + step) % {modulus})
    time.sleep(PAUSE)
    print("step", step, flush=True)
    if step % EVERY == 0:
        text = json.dumps(state)
        (place / ".new").write_text(text)
        os.rename(place / ".new", place / f"step-{{step}}.json")
model = pathlib.Path(os.environ["SUBMARINE_MODEL_DIR"]) / "model.json"
model.write_text(json.dumps(state))
print("end with", state["value"], flush=True)
"""


def program(steps: int = 60, pause: float = 0.05, every: int = 5, hold: str = "") -> str:
    """Source of a training of ``steps`` steps of ``pause`` seconds, saved ``every`` so many.

    Parameters
    ----------
    hold
        A file without which no task does its last step: none ends before the test is done with it,
        on however slow a machine.
    """
    values = {"steps": steps, "pause": pause, "every": every, "hold": hold}
    return PROGRAM.format(**values, factor=FACTOR, modulus=MODULUS)


def right_value(steps: int = 60) -> int:
    """Return the number that each task must have at the end."""
    value = 1
    for step in range(1, steps + 1):
        value = (value * FACTOR + step) % MODULUS
    return value


def workers(count: int = 2, memory: int = 128, **fields: Any) -> tuple[Role, ...]:
    """The roles of a job of ``count`` workers."""
    return (Role("worker", count, Resources(memory=memory), **fields),)


def check_result(
    job: Job, steps: int = 60, count: int = 2, tasks: tuple[str, ...] = ()
) -> JobRecord:
    """The job has succeeded, its model is right, and each task's log has every step.

    ``tasks`` names those that were to train; otherwise it is ``count`` workers.
    """
    record = job.record()
    assert record.state is State.SUCCEEDED, (record.reason, record.detail, record.events[-12:])
    storage, directory = job.directory.storage, job.directory
    model = json.loads(storage.read(directory.file("model/model.json")))
    assert model == {"step": steps, "value": right_value(steps)}
    for task in tasks or [f"worker:{index}" for index in range(count)]:
        text = whole_log(job, task)
        assert f"end with {right_value(steps)}" in text
        seen = {int(number) for number in re.findall(r"^step (\d+)$", text, re.M)}
        absent = sorted(set(range(1, steps + 1)) - seen - taken_over(record, task, text))
        assert not absent or record.missing, (task, absent, text[-2000:])
    return record


def taken_over(record: JobRecord, task: str, text: str) -> set[int]:
    """The steps that a task never did: it went on from another task's checkpoint, as it said."""
    others = any(
        event.kind == "restored" and event.task == task and f" {task} " not in event.detail
        for event in record.events
    )
    if not others:
        return set()
    steps: set[int] = set()
    done = 0
    for word, number in re.findall(r"^(step|begin at) (\d+)$", text, re.M):
        if word == "begin at":
            steps.update(range(done + 1, int(number) + 1))
        done = int(number)
    return steps


def whole_log(job: Job, task: str, stream: str = "stdout") -> str:
    """The shipped log of all attempts of a task, one after the other; empty before the first."""
    role, _, index = task.partition(":")
    root = job.directory.file(f"logs/{role}-{index}")
    storage = job.directory.storage
    if storage.stat(root) is None:
        return ""
    pieces: list[tuple[tuple[int, ...], str]] = []
    for path, _ in storage.walk(root):
        match = re.fullmatch(rf"e(\d+)-a(\d+)/{stream}\.(\d{{12}})", path)
        if match:
            pieces.append((tuple(int(part) for part in match.groups()), path))
    return b"".join(storage.read(f"{root}/{path}") for _, path in sorted(pieces)).decode()


def task_of(job: Job, name: str) -> TaskRecord:
    """The task's record as it is now."""
    return next(task for task in job.record().tasks if task.task == name)


def until_step(job: Job, step: int, task: str = "worker:0") -> None:
    """Wait until a task has printed this step or a later one."""

    def there() -> bool:
        text = job.log("stdout", -400, 400, task=task).data.decode()
        return any(int(number) >= step for number in re.findall(r"step (\d+)\n", text))

    until(there, f"step {step} of {task}")


def processes(job: Job, kind: str, task: str | None = None) -> list[psutil.Process]:
    """Processes of a job's containers on this machine.

    Parameters
    ----------
    kind
        ``program``, ``agent``, ``coordinator``, ``supervisor`` or ``master`` (the JVM).
    task
        Only those of this task; for ``program`` and ``agent``.
    """
    application = str((job.handle or {}).get("application_id") or "")
    number = "_".join(application.split("_")[1:])
    found: dict[int, tuple[int, psutil.Process]] = {}
    for process, parent, environ, command in _all_processes():
        if f"_{number}_" not in environ.get("CONTAINER_ID", ""):
            continue
        if kind == _kind(environ, command) and (task is None or task == _task(environ)):
            found[process.pid] = (parent, process)
    # A child that has its parent's command line still is about to become something else.
    return [process for parent, process in found.values() if parent not in found]


def _all_processes() -> Iterator[tuple[psutil.Process, int, dict[str, str], list[str]]]:
    for process in psutil.process_iter():
        try:
            yield process, process.ppid(), process.environ(), process.cmdline()
        except psutil.Error:
            continue


def process_of(job: Job, kind: str, task: str | None = None) -> psutil.Process:
    """The one process of this kind, waited for."""
    what = f"one {kind} process of {task or 'the job'}"
    found = until(lambda: seen if len(seen := processes(job, kind, task)) == 1 else None, what)
    return found[0]


def gone(process: psutil.Process) -> bool:
    """Whether a process has ended; it may be a zombie."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _kind(environ: dict[str, str], command: list[str]) -> str:
    if any("skein.ApplicationMaster" in word for word in command) and "java" in command[0]:
        return "master"
    for word, kind in (
        ("agent", "agent"),
        ("coordinator", "coordinator"),
        ("supervise", "supervisor"),
    ):
        if word in command and any(part.endswith("runtime.zip") for part in command):
            return kind
    if "SUBMARINE_ROLE" in environ and any(part.endswith("launch.py") for part in command):
        return "program"
    return ""


def _task(environ: dict[str, str]) -> str:
    if "SUBMARINE_ROLE" in environ:
        return f"{environ['SUBMARINE_ROLE']}:{environ['SUBMARINE_INDEX']}"
    return environ.get("SUBMARINE_AGENT_TASK", "")


def kill(job: Job, kind: str, task: str | None = None) -> psutil.Process:
    """``kill -9`` the one process of this kind; it is dead when this returns."""
    process = process_of(job, kind, task)
    process.kill()
    until(lambda: gone(process), f"the end of a {kind}")
    return process
