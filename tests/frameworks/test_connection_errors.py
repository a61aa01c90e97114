"""A worker whose peer is killed fails with what the coordinator takes for a connection error."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from submarine_runtime.agent.program.failure import last_line, parse_stderr
from submarine_runtime.coordinator.machine import Outcome
from submarine_runtime.coordinator.machine.causes import is_abort, is_connection_error
from submarine_runtime.protocol import EndReason
from tests.frameworks.gang import HOROVOD, OURS, SYSTEM, gang
from tests.waiting import until

GLOO = """
import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
number = 0
while True:
    dist.all_reduce(torch.ones(1000))
    number += 1
    print("step", number, flush=True)
    time.sleep(0.05)
"""
MIRRORED = """
import os, time
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import numpy, tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    model.compile("sgd", "mse")
x = numpy.random.rand(64, 4)
data = tf.data.Dataset.from_tensor_slices((x, x.sum(1))).repeat().batch(16)

class Steps(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        print("step", batch, flush=True)
        time.sleep(0.05)

model.fit(data, epochs=1, steps_per_epoch=100000, verbose=0, callbacks=[Steps()])
"""
HOROVOD_LOOP = """
import time, torch, horovod.torch as hvd
hvd.init()
number = 0
while True:
    hvd.allreduce(torch.ones(1000), name="ones")
    number += 1
    print("step", number, flush=True)
    time.sleep(0.05)
"""


@pytest.mark.full
@pytest.mark.parametrize("killed", ["worker:0", "worker:1"])
@pytest.mark.parametrize(
    ("framework", "python", "module", "source"),
    [
        ("pytorch", SYSTEM, "torch", GLOO),
        ("tensorflow", OURS, "tf_keras", MIRRORED),
        ("horovod", HOROVOD, "horovod.torch", HOROVOD_LOOP),
    ],
    ids=["gloo", "grpc", "horovod"],
)
def test_a_killed_peer_is_a_connection_error(
    tmp_path: Path, framework: str, python: Path, module: str, source: str, killed: str
) -> None:
    command = [str(python), "-c", f"import {module}"]
    if not python.exists() or subprocess.run(command, check=False).returncode != 0:
        pytest.skip(f"{python} cannot import {module}: run scripts/setup.sh frameworks")
    (tmp_path / "train.py").write_text(source)
    with gang(tmp_path, framework, {"worker": 2}, python, "train.py") as made:
        tasks = {task.name: task for task in made.tasks}
        until(lambda: all(task.said("step") for task in made.tasks), "the first steps")
        peer = next(task for name, task in tasks.items() if name != killed)
        tasks[killed].process.kill()
        code = peer.process.wait(180)
    if code < 0:
        assert is_abort(Outcome(EndReason.KILLED_BY_SIGNAL, "", None, -code))
        return
    found = parse_stderr(str(peer.log))
    failure = None if found is None else {"type": found.type, "message": found.message}
    line = f"Exit code {code}: {last_line(str(peer.log))}"
    outcome = Outcome(EndReason.PROGRAM_ERROR, line, code, None, failure)
    assert is_connection_error(outcome), peer.text[-3000:]
