"""Gangs that are killed at random: after each restart all tasks continue with equal weights."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from submarine_runtime.protocol import JobRecord, State
from tests.configurations import make_role
from tests.frameworks.gang import FRAMEWORKS, SYSTEM
from tests.local.coordinator.gang_processes import GangProcesses
from tests.waiting import until

WORKERS = [make_role("worker", 2)]
#: How the programs below meet. A worker that begins with other weights than its peer ends with 5.
MEETING = """
import hashlib, json, os, re, sys, time
place, barrier, kind = os.environ["SUBMARINE_CHECKPOINT_DIR"], BARRIER, KIND
epoch, rank = int(os.environ["SUBMARINE_EPOCH"]), int(os.environ["SUBMARINE_INDEX"])

def write(point, step, weights):
    name = f"{barrier}/e{epoch}-{point}-{rank}"
    with open(name + ".tmp", "w") as file:
        file.write(f"{step} {weights}")
    os.rename(name + ".tmp", name)

def begin(step, weights):
    print("begin", step, weights, flush=True)
    write("begin", step, weights)
    other = f"{barrier}/e{epoch}-begin-{1 - rank}"
    while not os.path.exists(other):
        time.sleep(0.01)
    theirs = open(other).read()
    if theirs != f"{step} {weights}":
        print("DIFFERENT at the start", step, weights, "and", theirs, flush=True)
        if kind != "rounds":
            sys.exit(5)
    return max(step, int(theirs.split()[0]))

def meet(step, weights):
    write(step, step, weights)
    other = f"{barrier}/e{epoch}-{step}-{1 - rank}"
    while not os.path.exists(other):
        time.sleep(0.01)
        if os.path.exists(f"{barrier}/e{epoch}-end-{1 - rank}"):
            return  # the other worker has read the stop file one step earlier
    theirs = open(other).read()
    if step != "end" and theirs != f"{step} {weights}":
        print("DIFFERENT", step, weights, "and", theirs, flush=True)

def stopped():
    return os.path.exists(f"{barrier}/stop-{epoch}")

def digest(arrays):
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()[:12]
"""
#: Trains in lockstep: a step ends when all workers have done it, and the weights depend on the
#: epoch, so that two runs of one step differ. With ``held`` it waits at step 24.
PROGRAM = """
def name(step):
    names = {"plain": "checkpoint.pt", "slow": "slow.bin", "rounds": f"rank{rank}.bin",
             "ranks": f"rank{rank}_step_{step}.bin"}
    return os.path.join(place, names.get(kind, f"ckpt-{step}.bin"))

def number(name):
    return int(([0, *re.findall(r"\\d+", name)])[-1])

def load():
    found = [n for n in os.listdir(place) if n.endswith((".bin", ".pt"))]
    if not found:
        return 0, "new"
    with open(os.path.join(place, max(found, key=number))) as file:
        return json.load(file)

def save(step, weights):
    if kind == "one" and rank:
        return
    if kind == "slow":  # in place, as Keras writes weights
        with open(name(step), "w") as file:
            file.write("[")
            file.flush()
            time.sleep(0.8)
            file.write(json.dumps([step, weights])[1:])
        return
    with open(name(step) + ".tmp", "w") as file:
        json.dump([step, weights], file)
    os.rename(name(step) + ".tmp", name(step))
    for other in sorted(os.listdir(place), key=number)[:-3]:
        os.unlink(os.path.join(place, other))

step, weights = load()
step = begin(step, weights)
while not stopped():
    time.sleep(0.15 + 0.05 * rank)
    if kind == "held" and step == 24:
        continue
    step += 1
    if kind != "rounds":
        weights = hashlib.sha256(f"{weights} {epoch} {step}".encode()).hexdigest()[:12]
        meet(step, weights)
    if step % 8 == 0:
        save(step, weights)
meet("end", weights) if kind != "rounds" else None
print("end", step, weights, flush=True)
"""
#: Keras' own callback writes and restores; each worker in the same files, or in a directory of its
#: own (``keras-own``).
KERAS = """
os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import numpy, keras
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4)])
model.compile("sgd", "mse")
dice = numpy.random.default_rng(epoch)
x, y = dice.random((32, 4)), dice.random((32, 4))

class Meeting(keras.callbacks.Callback):
    begun = False

    def on_epoch_begin(self, number, logs=None):
        if not self.begun:
            begin(number, digest(model.get_weights()))
        self.begun = True

    def on_epoch_end(self, number, logs=None):
        meet(number + 1, digest(model.get_weights()))
        model.stop_training = stopped()
        time.sleep(1.2)

own = os.path.join(place, f"worker{rank}") if kind == "keras-own" else place
backup = keras.callbacks.BackupAndRestore(own)
model.fit(x, y, shuffle=False, epochs=100000, verbose=0, callbacks=[backup, Meeting()])
write("end", "end", "")
"""
#: ``MultiWorkerMirroredStrategy``: the library writes checkpoints in the chief, and temporary
#: directories in the other workers.
MIRRORED = """
os.environ.update(TF_USE_LEGACY_KERAS="1", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import numpy, tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
tf.keras.utils.set_random_seed(1)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, input_shape=(4,))])
    model.compile("sgd", "mse")
dice = numpy.random.default_rng(epoch)
data = tf.data.Dataset.from_tensor_slices((dice.random((32, 4)), dice.random((32, 4))))
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
data = data.repeat().batch(8).with_options(options)

class Meeting(tf.keras.callbacks.Callback):
    begun = False

    def on_epoch_begin(self, number, logs=None):
        if not self.begun:
            begin(number, digest(model.get_weights()))
        self.begun = True

    def on_epoch_end(self, number, logs=None):
        meet(number + 1, digest(model.get_weights()))
        time.sleep(1.2)
        if rank == 0:  # both have to stop after the same epoch
            write("stop" if stopped() else f"go-{number}", number, "")
        while not os.path.exists(f"{barrier}/e{epoch}-go-{number}-0"):
            if os.path.exists(f"{barrier}/e{epoch}-stop-0"):
                model.stop_training = True
                break
            time.sleep(0.01)

backup = tf.keras.callbacks.BackupAndRestore(place)
model.fit(data, epochs=100000, steps_per_epoch=4, verbose=0, callbacks=[backup, Meeting()])
"""
#: The gradients of both workers are averaged by gloo; rank 0 writes ``checkpoint.pt``.
TORCH = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
torch.manual_seed(1)
model = torch.nn.Linear(4, 4)
checkpoint, step = os.path.join(place, "checkpoint.pt"), 0
if os.path.exists(checkpoint):
    state = torch.load(checkpoint)
    step = state["step"]
    model.load_state_dict(state["model"])

def weights():
    return digest(value.detach().numpy() for value in model.state_dict().values())

begin(step, weights())
ddp = DistributedDataParallel(model)
torch.manual_seed(100 * epoch + rank)
while True:
    stop = torch.tensor(float(stopped()))
    dist.all_reduce(stop)
    if stop:
        break
    step += 1
    model.zero_grad()
    ddp(torch.rand(8, 4)).square().mean().backward()
    with torch.no_grad():
        for value in model.parameters():
            value -= 0.1 * value.grad
    meet(step, weights())
    time.sleep(0.2)
    if rank == 0 and step % 8 == 0:
        torch.save({"step": step, "model": model.state_dict()}, checkpoint + ".tmp")
        os.rename(checkpoint + ".tmp", checkpoint)
"""
#: Orbax names directories by bare numbers. Each worker is a writer of its own.
ORBAX = """
import numpy
import orbax.checkpoint as ocp
options = ocp.CheckpointManagerOptions(max_to_keep=3, enable_async_checkpointing=False)
manager = ocp.CheckpointManager(place, options=options)
step, weights = manager.latest_step() or 0, numpy.zeros(4)
if step:
    weights = manager.restore(step, args=ocp.args.StandardRestore({"weights": weights}))["weights"]
begin(step, digest([weights]))
while not stopped():
    step += 1
    time.sleep(0.3)
    weights = weights + numpy.random.default_rng([epoch, step]).random(4)
    meet(step, digest([weights]))
    if step % 6 == 0:
        manager.save(step, args=ocp.args.StandardSave({"weights": weights}))
        manager.wait_until_finished()
meet("end", "")
"""
#: Orbax on local storage, as its documentation says: no process is the primary one, and each writes
#: what its devices hold. The array is divided among the workers.
ORBAX_LOCAL = """
import jax, numpy
import orbax.checkpoint as ocp
from jax.experimental.multihost_utils import process_allgather
from jax.sharding import Mesh, NamedSharding, PartitionSpec
jax.distributed.initialize()
divided = NamedSharding(Mesh(numpy.array(jax.devices()), "data"), PartitionSpec("data"))

def state(values):
    array = jax.make_array_from_callback(values.shape, divided, lambda index: values[index])
    return {"weights": array}

alone = ocp.options.MultiprocessingOptions(primary_host=None)
arrays = ocp.type_handlers.ArrayHandler(
    primary_host=None, replica_id=None, use_replica_parallel=False
)
handler = ocp.PyTreeCheckpointHandler(
    multiprocessing_options=alone,
    type_handler_registry=ocp.type_handlers.create_type_handler_registry((jax.Array, arrays)),
)
options = ocp.CheckpointManagerOptions(
    max_to_keep=3, enable_async_checkpointing=False, multiprocessing_options=alone
)
manager = ocp.CheckpointManager(place, options=options, item_handlers=handler)
step, weights = manager.latest_step() or 0, numpy.zeros(4, "float32")
if step:
    shapes = jax.tree.map(ocp.utils.to_shape_dtype_struct, state(weights))
    places = ocp.checkpoint_utils.construct_restore_args(shapes)
    found = manager.restore(step, args=ocp.args.PyTreeRestore(shapes, restore_args=places))
    weights = process_allgather(found["weights"], tiled=True)
begin(step, digest([weights]))
while not process_allgather(numpy.array(stopped())).any():
    step += 1
    time.sleep(0.3)
    weights = weights + numpy.random.default_rng([epoch, step]).random(4, "float32")
    meet(step, digest([weights]))
    if step % 6 == 0:
        manager.save(step, args=ocp.args.PyTreeSave(state(weights)))
        manager.wait_until_finished()
meet("end", "")
"""


def points(gang: GangProcesses) -> list[dict[str, Any]]:
    return [event for event in gang.events() if event["kind"] == "restore_point"]


#: Kind of program -> its source.
SOURCES = {
    "keras": KERAS,
    "keras-own": KERAS,
    "mirrored": MIRRORED,
    "torch": TORCH,
    "orbax": ORBAX,
    "orbax-local": ORBAX_LOCAL,
}
#: Kinds in which only the first worker writes; kinds in which the names of the workers differ
#: (those of Orbax contain random numbers).
ONE_WRITER = ("one", "torch", "mirrored")
OWN_NAMES = ("ranks", "keras-own", "orbax", "orbax-local")


class Run:
    """A job that is killed again and again, and that ends when the test creates a file."""

    def __init__(self, gang: GangProcesses, kind: str, seed: int, **config: Any) -> None:
        self.gang, self.dice = gang, random.Random(seed)
        self.barrier = gang.root / "barrier"
        self.barrier.mkdir()
        source = MEETING + SOURCES.get(kind, PROGRAM)
        source = source.replace("BARRIER", repr(str(self.barrier))).replace("KIND", repr(kind))
        config = {"max_restarts": 100, "sync_interval": 0.5, **config}
        gang.prepare(source, WORKERS, **config)
        gang.start()

    def begun(self, epoch: int) -> list[str]:
        """What both workers started with: ``STEP DIGEST`` each."""
        files = [self.barrier / f"e{epoch}-begin-{rank}" for rank in (0, 1)]
        try:
            until(lambda: all(file.exists() for file in files))
        except AssertionError:
            raise AssertionError(self.gang.story()) from None
        return [file.read_text() for file in files]

    def wait_for_snapshots(self, tasks: tuple[str, ...], more_than: int) -> None:
        """Until the journal has more than so many snapshots of each of these tasks."""
        until(lambda: all(self.reported(task) > more_than for task in tasks), self.gang.story)

    def reported(self, task: str) -> int:
        count = 0
        seat = task.replace(":", "-") + "."
        for line in (self.gang.scratch / "journal.jsonl").read_text().splitlines():
            with suppress(ValueError):
                entry = json.loads(line)
                own = str(entry.get("seat")).startswith(seat)
                count += entry.get("type") == "snapshot" and "number" in entry and own
        return count

    def kill(self, what: str = "") -> str:
        """Kill a program or an agent of one of the workers at a random moment."""
        time.sleep(self.dice.random() * 2)
        what = what or self.dice.choice(["program", "agent"])
        task = self.dice.choice(["worker:0", "worker:1"])
        pid = self.gang.program(task) if what == "program" else self.gang.agent(task).pid
        os.kill(pid, signal.SIGKILL)
        return f"{what} of {task}"

    def end(self, epoch: int) -> JobRecord:
        (self.barrier / f"stop-{epoch}").touch()
        return self.gang.wait()


def killed_again_and_again(
    gang: GangProcesses, kind: str, kills: int, seed: int, **config: Any
) -> JobRecord:
    run = Run(gang, kind, seed, **config)
    writers = ("worker:0",) if kind in ONE_WRITER else ("worker:0", "worker:1")
    steps = []
    for epoch in range(1, kills + 1):
        begun = run.begun(epoch)
        assert begun[0] == begun[1], f"epoch {epoch}: {begun}\n{gang.story()}"
        steps.append(int(begun[0].split()[0]))
        # The bare numbers of Orbax are steps once they differ between two snapshots.
        more = kind.startswith("orbax") and epoch == 1
        run.wait_for_snapshots(writers, max(run.reported(task) for task in writers) + more)
        run.kill()
    begun = run.begun(kills + 1)
    assert begun[0] == begun[1], f"{begun}\n{gang.story()}"
    steps.append(int(begun[0].split()[0]))
    record = run.end(kills + 1)
    assert record.state is State.SUCCEEDED, gang.story()
    assert steps == sorted(steps), steps
    assert steps[-1] > 0, steps
    assert not [e for e in record.events if e.kind == "warning" and "beginning" in e.detail], steps
    chosen = [event.data for event in record.events if event.kind == "restore_point"]
    sentence = [e.detail for e in record.events if e.kind == "restore_point"][-1]
    assert sentence in record.notes
    assert [event["rule"] for event in chosen] == ["own" if kind in OWN_NAMES else "chief"] * kills
    assert record.warnings == []
    for task in ("worker:0", "worker:1"):
        for epoch in range(1, kills + 2):
            assert "DIFFERENT" not in gang.log(task, f"e{epoch}-a1")
    assert not (gang.job_dir / "snapshots").exists()
    return record


def test_tasks_with_a_directory_each_continue_with_equal_weights(gang: GangProcesses) -> None:
    killed_again_and_again(gang, "steps", 1, 3)


@pytest.mark.full
def test_tasks_with_names_of_their_own_continue_at_a_common_step(gang: GangProcesses) -> None:
    record = killed_again_and_again(gang, "ranks", 2, 5)
    point = next(event for event in record.events if event.kind == "restore_point")
    assert re.match(r"Each task restores its own files at step \d+ \(rule own\)\.", point.detail)


@pytest.mark.full
def test_tasks_without_steps_continue_from_a_round_and_the_job_has_a_warning(
    gang: GangProcesses,
) -> None:
    run = Run(gang, "rounds", 7)
    run.begun(1)
    run.wait_for_snapshots(("worker:0", "worker:1"), 2)
    run.kill()
    steps = [int(words.split()[0]) for words in run.begun(2)]
    record = run.end(2)
    assert record.state is State.SUCCEEDED, gang.story()
    (point,) = [event for event in record.events if event.kind == "restore_point"]
    warnings = [event.detail for event in record.events if event.kind == "warning"]
    assert point.data["rule"] == "round"
    assert point.detail in record.notes
    assert all(steps)
    assert "carry no steps that can be compared" in warnings[0]
    assert warnings[0] in record.warnings


def newest_manifest(gang: GangProcesses, task: str, name: str) -> dict[str, Any] | None:
    """The newest snapshot of a task's first attempt, if it has a file of this name."""
    place = gang.job_dir / "snapshots" / task.replace(":", "-") / "e1-a1"
    for path in sorted(place.glob("checkpoints-*.json"))[-1:]:
        manifest: dict[str, Any] = json.loads(path.read_text())
        for file in manifest["files"]:
            if file["path"] == name:
                return {**file, "data": str(place / file["data"]), "number": manifest["number"]}
    return None


@pytest.mark.full
def test_a_damaged_snapshot_is_replaced_by_another_restore_point(gang: GangProcesses) -> None:
    run = Run(gang, "held", 17)
    run.begun(1)
    file = until(lambda: newest_manifest(gang, "worker:0", "ckpt-24.bin"))
    until(lambda: newest_manifest(gang, "worker:1", "ckpt-24.bin"))
    with open(file["data"], "r+b") as data:
        data.seek(file["offset"])
        data.write(b"?" * file["size"])
    run.kill("program")
    gang.wait_for_event("warning", f"Snapshot {file['number']} of worker:0 e1-a1 is damaged")
    places = [run.barrier / f"e{epoch}-begin-1" for epoch in range(2, 6)]
    epoch = int(until(lambda: [path.name for path in places if path.exists()])[0][1])
    begun = run.begun(epoch)
    assert begun[0] == begun[1], gang.story()
    assert int(begun[0].split()[0]) > 0
    record = run.end(epoch)
    assert record.state is State.SUCCEEDED, gang.story()
    assert len({event.detail for event in record.events if event.kind == "restore_point"}) == 2


@pytest.mark.full
def test_a_coordinator_that_is_killed_during_a_survey_makes_the_choice_again(
    gang: GangProcesses,
) -> None:
    run = Run(gang, "steps", 19)
    run.begun(1)
    run.wait_for_snapshots(("worker:0", "worker:1"), 1)
    # The survey waits for a writer of this pipe.
    pipe = gang.job_dir / "snapshots/point-000002.json"
    os.mkfifo(pipe)
    run.kill("program")

    def waits_for_pipe() -> psutil.Process | None:
        for process in gang.processes("coordinator"):
            threads = Path(f"/proc/{process.pid}/task").glob("*/wchan")
            with suppress(OSError):
                if any(path.read_text() == "wait_for_partner" for path in threads):
                    return process
        return None

    coordinator = until(waits_for_pipe)
    pipe.unlink()
    coordinator.kill()
    begun = run.begun(2)
    assert begun[0] == begun[1], gang.story()
    assert int(begun[0].split()[0]) > 0
    record = run.end(2)
    assert record.state is State.SUCCEEDED, gang.story()
    (point,) = [event for event in record.events if event.kind == "restore_point"]
    assert point.data["rule"] == "chief"
    assert point.detail in record.notes


#: Random kills of each kind; fewer for a first look.
KILLS = int(os.environ.get("SUBMARINE_TEST_KILLS", "20"))


@pytest.mark.full
@pytest.mark.parametrize("kind", ["steps", "one", "plain", "slow", "ranks"])
def test_twenty_random_kills(gang: GangProcesses, kind: str) -> None:
    killed_again_and_again(gang, kind, KILLS, 11)


#: Restarts with TensorFlow take 10 s each on an idle machine.
@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("kind", "framework", "modules", "kills"),
    [
        ("keras", "any", "keras, tensorflow", KILLS),
        ("keras-own", "any", "keras, tensorflow", min(5, KILLS)),
        ("mirrored", "tensorflow", "tf_keras, tensorflow", min(5, KILLS)),
        ("torch", "pytorch", "torch", KILLS),
        ("orbax", "any", "orbax.checkpoint", KILLS),
        ("orbax-local", "jax", "orbax.checkpoint", min(5, KILLS)),
    ],
)
def test_random_kills_of_a_library(
    gang: GangProcesses, kind: str, framework: str, modules: str, kills: int
) -> None:
    python = python_with(modules)
    if python is None:
        pytest.skip(f"no Python environment of the tests has {modules}")
    agent = {"framework": framework, "python": python}
    killed_again_and_again(gang, kind, kills, 13, framework=framework, agent=agent)


def python_with(modules: str) -> str | None:
    """The first Python of the tests' environments that can import these modules."""
    for python in (sys.executable, FRAMEWORKS, SYSTEM):
        with suppress(OSError, subprocess.TimeoutExpired):
            command = [python, "-c", f"import {modules}"]
            if subprocess.run(command, capture_output=True, timeout=120).returncode == 0:
                return str(python)
    return None
