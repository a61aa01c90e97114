"""Checkpoints that the tasks of a gang write in parts, with the real libraries.

A process is killed at a random step. The gang restarts at a common step, every task finds the files
of all tasks with the library's own call, and the job ends with the loss of an undisturbed run.
"""

from __future__ import annotations

import os
import random
import signal
import time
from typing import Any

import pytest

from submarine_jobs.checks import checkpoint_links
from submarine_runtime.protocol import JobRecord, State
from tests.configurations import make_role
from tests.local.coordinator.gang_processes import GangProcesses
from tests.torch_tree import deepspeed_environment, torch_environment
from tests.waiting import until

#: Imports take minutes of a busy machine.
pytestmark = pytest.mark.timeout(1800)
#: Steps of a training. Each takes long enough that a snapshot is taken between two checkpoints.
STEPS, EVERY = 24, 4
#: Random kills of each library; fewer for a first look.
KILLS = int(os.environ.get("SUBMARINE_TEST_KILLS", "10"))
#: What all programs share: where the tasks say which step they have reached.
COMMON = """
import os, time
import torch
torch.set_num_threads(1)
place, barrier = os.environ["SUBMARINE_CHECKPOINT_DIR"], BARRIER
epoch, rank = int(os.environ["SUBMARINE_EPOCH"]), int(os.environ["RANK"])
world = int(os.environ["WORLD_SIZE"])
steps, every = STEPS, EVERY

def say(name, text=""):
    path = f"{barrier}/e{epoch}-{rank}-{name}"
    with open(path + ".tmp", "w") as file:
        file.write(str(text))
    os.rename(path + ".tmp", path)
"""
#: Rank 0 saves all of the state.
DDP = """
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
torch.manual_seed(1)
model = DistributedDataParallel(
    torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
)
optimizer = torch.optim.Adam(model.parameters(), 0.05)
step, saved = 0, place + "/state.pt"
if os.path.exists(saved):
    state = torch.load(saved)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    step = state["step"]
say("begin", step)
while step < steps:
    step += 1
    data = torch.Generator().manual_seed(1000 * step)
    batch = torch.rand(8, 8, generator=data)[rank :: world]
    optimizer.zero_grad()
    loss = (model(batch) - 1).square().mean()
    loss.backward()
    optimizer.step()
    dist.all_reduce(loss)
    time.sleep(PAUSE)
    say("step", step)
    if step % every == 0 and rank == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
        torch.save(state, saved + ".tmp")
        os.rename(saved + ".tmp", saved)
say("end", loss.item() / world)
dist.destroy_process_group()
"""
#: FSDP2 with a sharded checkpoint for each step, or one directory again and again.
FSDP = """
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
# The stand-in for streams in PyTorch 2.6 lacks these without a GPU.
torch.cpu.Stream.record_event = lambda self, event=None: torch.cpu.Event()
torch.cpu.Stream.wait_event = lambda self, event: None
dist.init_process_group("gloo")
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
fully_shard(model, mesh=init_device_mesh("cpu", (world,)))
optimizer = torch.optim.Adam(model.parameters(), 0.05)

def found():
    if KIND == "same":
        return [place + "/model"] if os.path.exists(place + "/model/.metadata") else []
    there = [name for name in os.listdir(place) if name.startswith("step_")]
    return [f"{place}/{name}" for name in sorted(there, key=lambda name: int(name[5:]))]

step = 0
if found():
    parts, state = get_state_dict(model, optimizer)
    whole = {"model": parts, "optimizer": state, "step": torch.zeros(())}
    dcp.load(whole, checkpoint_id=found()[-1])
    set_state_dict(model, optimizer, model_state_dict=parts, optim_state_dict=state)
    step = int(whole["step"])
say("begin", step)
while step < steps:
    step += 1
    data = torch.Generator().manual_seed(1000 * step)
    batch = torch.rand(8, 8, generator=data)[rank :: world]
    optimizer.zero_grad()
    loss = (model(batch) - 1).square().mean()
    loss.backward()
    optimizer.step()
    dist.all_reduce(loss)
    time.sleep(PAUSE)
    say("step", step)
    if step % every == 0:
        parts, state = get_state_dict(model, optimizer)
        whole = {"model": parts, "optimizer": state, "step": torch.tensor(float(step))}
        target = f"{place}/model" if KIND == "same" else f"{place}/step_{step}"
        dcp.save(whole, checkpoint_id=target)
        for old in found()[:-2] if rank == 0 and KIND != "same" else ():
            for name in os.listdir(old):
                os.unlink(f"{old}/{name}")
            os.rmdir(old)
say("end", loss.item() / world)
dist.destroy_process_group()
"""
#: transformers' Trainer writes to a relative directory. The dropout makes the losses depend on the
#: states of the random generators, which each rank saves.
HF = """
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.drop = torch.nn.Linear(8, 2), torch.nn.Dropout(0.3)

    def forward(self, x, labels=None):
        return {"loss": (self.net(self.drop(x)) - 1).square().mean()}

class Tell(TrainerCallback):
    def on_train_begin(self, args, state, control, **more):
        say("begin", state.global_step)

    def on_step_end(self, args, state, control, **more):
        time.sleep(PAUSE)
        say("step", state.global_step)

torch.manual_seed(1)
model = Model()
data = torch.rand(64, 8, generator=torch.Generator().manual_seed(2))
options = TrainingArguments(
    output_dir="out", max_steps=steps, save_steps=every, save_total_limit=2, use_cpu=True,
    per_device_train_batch_size=4, learning_rate=0.05, report_to=[], disable_tqdm=True, seed=1,
    ddp_backend="gloo",
)
trainer = Trainer(model, options, train_dataset=[{"x": row} for row in data], callbacks=[Tell()])
trainer.train(resume_from_checkpoint=get_last_checkpoint("out") is not None)
say("end", (model.net(data) - 1).square().mean().item())
"""
#: The default logger of Lightning, and ``ckpt_path="last"``. The data depend on the step: Lightning
#: 2.6 begins its loader again after a checkpoint in the middle of an epoch, and trains one batch
#: more after one at its end.
LIGHTNING = """
import lightning
from lightning.pytorch.callbacks import Callback, ModelCheckpoint

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(8, 2)

    def training_step(self, batch, number):
        return (self.net(data[2 * self.global_step + rank]) - 1).square().mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 0.05)

class Tell(Callback):
    def on_train_start(self, trainer, model):
        say("begin", trainer.global_step)

    def on_train_batch_end(self, trainer, *more):
        time.sleep(PAUSE)
        say("step", trainer.global_step)

lightning.seed_everything(1)
model = Model()
data = torch.rand(2 * steps, 8, generator=torch.Generator().manual_seed(2))
loader = torch.utils.data.DataLoader(data, batch_size=1)
keep = ModelCheckpoint(every_n_train_steps=every, save_last=True)
trainer = lightning.Trainer(
    max_steps=steps, accelerator="cpu", devices=1, num_nodes=world, strategy="ddp",
    callbacks=[keep, Tell()], enable_progress_bar=False, enable_model_summary=False,
)
trainer.fit(model, loader, ckpt_path="last")
say("end", (model.net(data) - 1).square().mean().item())
"""
#: Each process of Accelerate writes the state of its random generators, the first one the rest.
ACCELERATE = """
from accelerate import Accelerator, InitProcessGroupKwargs

torch.manual_seed(1)
# Without this it takes MPI where PyTorch has it, as in Debian.
accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(backend="gloo")])
model = torch.nn.Sequential(torch.nn.Dropout(0.3), torch.nn.Linear(8, 2))
model, optimizer = accelerator.prepare(model, torch.optim.Adam(model.parameters(), 0.05))
os.makedirs("out", exist_ok=True)
found = sorted((name for name in os.listdir("out")), key=lambda name: int(name[5:]))
step = 0
if found:
    accelerator.load_state(f"out/{found[-1]}")
    step = int(found[-1][5:])
say("begin", step)
while step < steps:
    step += 1
    optimizer.zero_grad()
    batch = torch.rand(8, 8, generator=torch.Generator().manual_seed(1000 * step))
    accelerator.backward((model(batch[rank :: world]) - 1).square().mean())
    optimizer.step()
    time.sleep(PAUSE)
    say("step", step)
    if step % every == 0:
        accelerator.save_state(f"out/step_{step}")
model.eval()
say("end", (model(batch) - 1).square().mean().item())
accelerator.end_training()
"""
#: ZeRO stage 1: each rank writes its part of the optimizer's state, the first one the rest.
DEEPSPEED = """
import deepspeed
import torch.distributed as dist
# gloo alone: it would compile an operator for shared memory.
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
deepspeed.init_distributed("gloo")
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
engine, *_ = deepspeed.initialize(
    model=model,
    optimizer=torch.optim.Adam(model.parameters(), 0.05),
    config={
        "train_micro_batch_size_per_gpu": 8 // world,
        "zero_optimization": {"stage": 1},
        "zero_allow_untested_optimizer": True,
    },
)
path, state = engine.load_checkpoint(place)
step = state["step"] if path else 0
say("begin", step)
while step < steps:
    step += 1
    data = torch.Generator().manual_seed(1000 * step)
    loss = (engine(torch.rand(8, 8, generator=data)[rank :: world]) - 1).square().mean()
    engine.backward(loss)
    engine.step()
    loss = loss.detach()
    dist.all_reduce(loss)
    time.sleep(PAUSE)
    say("step", step)
    if step % every == 0:
        engine.save_checkpoint(place, client_state={"step": step})
say("end", loss.item() / world)
dist.destroy_process_group()
"""
PROGRAMS = {
    "ddp": DDP,
    "steps": FSDP,
    "same": FSDP,
    "hf": HF,
    "lightning": LIGHTNING,
    "accelerate": ACCELERATE,
    "deepspeed": DEEPSPEED,
}
#: One task writes these; each task writes a part of the others.
ONE_WRITER = ("ddp", "lightning")


class Training:
    """A job of several workers; ``gang`` is stopped by its fixture."""

    def __init__(
        self, gang: GangProcesses, kind: str, steps: int = STEPS, pause: float = 0.25
    ) -> None:
        self.gang, self.steps = gang, steps
        self.barrier = gang.root / "barrier"
        self.barrier.mkdir()
        place = deepspeed_environment() if kind == "deepspeed" else torch_environment()
        source = COMMON + PROGRAMS[kind]
        for name, value in (("BARRIER", str(self.barrier)), ("KIND", kind), ("PAUSE", pause)):
            source = source.replace(name, repr(value))
        source = source.replace("STEPS, EVERY", f"{steps}, {EVERY}")
        agent = {
            "framework": "pytorch",
            "python": str(place / "bin/python3"),
            "env": {"USE_LIBUV": "0", "HF_HUB_OFFLINE": "1", "DS_ACCELERATOR": "cpu"},
            "checkpoint_links": checkpoint_links({"main.py": source.encode()}),
        }
        settings = {"max_restarts": 100, "sync_interval": 0.5, "framework": "pytorch"}
        gang.prepare(source, [make_role("worker", 2)], agent=agent, **settings)
        gang.start()

    def said(self, name: str, epoch: int, rank: int = 0) -> str | None:
        path = self.barrier / f"e{epoch}-{rank}-{name}"
        return path.read_text() if path.exists() else None

    def begun(self, epoch: int) -> int:
        """The step at which both workers began."""
        until(
            lambda: all(self.said("begin", epoch, rank) for rank in range(2)),
            self.gang.story,
            seconds=600,
        )
        (step,) = {self.said("begin", epoch, rank) for rank in range(2)}
        return int(str(step))

    def kill(self, dice: random.Random, epoch: int, least: int) -> int:
        """Kill the program of a worker at a random step after ``least``; return the newest."""
        step = dice.randint(least, min(least + 2 * EVERY, self.steps - 2))
        until(lambda: int(self.said("step", epoch) or 0) >= step, self.gang.story, seconds=600)
        time.sleep(dice.random() / 4)
        os.kill(self.gang.program(dice.choice(["worker:0", "worker:1"])), signal.SIGKILL)
        return int(self.said("step", epoch) or 0)

    def end(self) -> tuple[JobRecord, float]:
        """The record and the loss."""
        record = self.gang.wait(600)
        assert record.state is State.SUCCEEDED, self.gang.story()
        ends = sorted(self.barrier.glob("e*-0-end"))
        return record, float(ends[-1].read_text())


@pytest.fixture(name="undisturbed", scope="module")
def undisturbed_losses(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The loss of a training without a failure, by kind and steps; each is run once."""
    losses: dict[tuple[str, int], float] = {}

    def loss(kind: str, steps: int = STEPS) -> float:
        if (kind, steps) not in losses:
            gang = GangProcesses(tmp_path_factory.mktemp("undisturbed"))
            try:
                losses[kind, steps] = Training(gang, kind, steps, pause=0.0).end()[1]
            finally:
                gang.stop_all()
        return losses[kind, steps]

    return loss


def points(record: JobRecord) -> list[dict[str, Any]]:
    return [dict(event.data) for event in record.events if event.kind == "restore_point"]


def killed(
    gang: GangProcesses, kind: str, kills: int, seed: int, steps: int = STEPS
) -> tuple[JobRecord, float]:
    """Kill a worker ``kills`` times; the first time after a checkpoint, later at any step."""
    training, dice = Training(gang, kind, steps), random.Random(seed)
    begun, ended = [training.begun(1)], []
    for epoch in range(1, kills + 1):
        least = begun[-1] + (EVERY + 2 if epoch == 1 else 1)
        ended.append(training.kill(dice, epoch, least))
        begun.append(training.begun(epoch + 1))
    record, loss = training.end()
    # The figures of a long run, with `pytest -s`.
    print(f"{kind}: killed at steps {ended}, began at steps {begun}, loss {loss:.9g}")
    assert begun == sorted(begun)
    assert begun[-1] > 0, gang.story()
    assert all(before <= after + 1 for before, after in zip(begun[1:], ended, strict=True))
    rule = "chief" if kind in ONE_WRITER else "union"
    assert [point["rule"] for point in points(record)] == [rule] * kills
    assert record.warnings == []
    return record, loss


def test_a_sharded_checkpoint_is_resumed_by_all_tasks(
    gang: GangProcesses, undisturbed: Any
) -> None:
    record, loss = killed(gang, "steps", 1, 1)
    assert loss == pytest.approx(undisturbed("steps"), rel=1e-6)
    (point,) = [event for event in record.events if event.kind == "restore_point"]
    assert "the files of all tasks at step" in point.detail
    # Each task has uploaded its own parts only.
    saved = [path.relative_to(gang.job_dir) for path in gang.job_dir.rglob("*.distcp")]
    assert len(saved) == len({path.parts[-2:] for path in saved})


@pytest.mark.full
@pytest.mark.parametrize("kind", ["hf", "lightning"])
def test_a_library_resumes_from_its_default_directory(
    gang: GangProcesses, undisturbed: Any, kind: str
) -> None:
    record, loss = killed(gang, kind, 1, 2)
    assert loss == pytest.approx(undisturbed(kind), rel=1e-6)
    assert not [sentence for sentence in record.warnings if "was not saved" in sentence]
    top = "lightning_logs" if kind == "lightning" else "out"
    assert list((gang.job_dir / "checkpoints" / top).rglob("*"))


@pytest.mark.full
@pytest.mark.parametrize("kind", ["same", "accelerate"])
def test_other_ways_to_save(gang: GangProcesses, undisturbed: Any, kind: str) -> None:
    _record, loss = killed(gang, kind, 2, 3)
    assert loss == pytest.approx(undisturbed(kind), rel=1e-6)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["ddp", "steps", "lightning", "hf", "accelerate", "deepspeed"])
def test_ten_kills_do_not_change_the_loss(gang: GangProcesses, undisturbed: Any, kind: str) -> None:
    # Each restart may go forward by two checkpoints and a bit.
    steps = (KILLS + 2) * 2 * EVERY
    _record, loss = killed(gang, kind, KILLS, 4, steps)
    assert loss == pytest.approx(undisturbed(kind, steps), rel=1e-6)
