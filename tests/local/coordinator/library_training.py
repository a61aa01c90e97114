"""Trainings with the real libraries, and what their tasks report to a test.

``Training`` runs one as a job of two workers. The programs write checkpoints in the libraries' own
ways and continue from the newest one that they find.
"""

from __future__ import annotations

import functools
import json
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from submarine_jobs.checks import checkpoint_links
from submarine_runtime.protocol import JobRecord, State
from tests.configurations import make_role
from tests.local.coordinator.gang_processes import GangProcesses
from tests.torch_tree import deepspeed_environment, torch_environment
from tests.waiting import until

#: Steps of a training. Each takes long enough that a snapshot is taken between two checkpoints.
STEPS, EVERY = 24, 4
#: What all programs share: where the tasks say which step they have reached, what they found at
#: their start, and what they have saved.
COMMON = """
import json, os, re, time, zlib
# PyTorch of Debian has no libuv.
os.environ.update(USE_LIBUV="0", HF_HUB_OFFLINE="1", DS_ACCELERATOR="cpu")
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

def digests():
    # Step -> name -> CRC-32 of the files of checkpoints that have a step.
    found = {}
    for above, _, names in os.walk(place):
        step = re.search(r"(?:step_|checkpoint-)(\\d+)$", above)
        for name in names if step else ():
            with open(f"{above}/{name}", "rb") as file:
                digest = zlib.crc32(file.read())
            found.setdefault(step[1], {})[os.path.relpath(f"{above}/{name}", place)] = digest
    return json.dumps(found)

def before_save(step):
    say(f"saving-{step}")

say("found", digests())
"""
#: A step of DDP and FSDP2.
TRAIN = """
import torch.distributed as dist

def train(step):
    data = torch.Generator().manual_seed(1000 * step)
    batch = torch.rand(8, 8, generator=data)[rank :: world]
    optimizer.zero_grad()
    loss = (model(batch) - 1).square().mean()
    loss.backward()
    optimizer.step()
    dist.all_reduce(loss)
    time.sleep(PAUSE)
    say("step", step)
    return loss
"""
#: Rank 0 saves all of the state.
DDP = """
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
    loss = train(step)
    if step % every == 0 and rank == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
        torch.save(state, saved + ".tmp")
        os.rename(saved + ".tmp", saved)
say("end", loss.item() / world)
dist.destroy_process_group()
"""
#: FSDP2 with a sharded checkpoint for each step, or one directory again and again.
FSDP = """
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
    loss = train(step)
    if step % every == 0:
        parts, state = get_state_dict(model, optimizer)
        whole = {"model": parts, "optimizer": state, "step": torch.tensor(float(step))}
        target = f"{place}/model" if KIND == "same" else f"{place}/step_{step}"
        before_save(step)
        dcp.save(whole, checkpoint_id=target)
        say(f"saved-{step}", digests())
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
        if state.global_step % every == 0:
            before_save(state.global_step)

    def on_save(self, args, state, control, **more):
        say(f"saved-{state.global_step}", digests())

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
    "ddp": TRAIN + DDP,
    "steps": TRAIN + FSDP,
    "same": TRAIN + FSDP,
    "hf": HF,
    "lightning": LIGHTNING,
    "accelerate": ACCELERATE,
    "deepspeed": DEEPSPEED,
}


def source_of(
    kind: str, barrier: Path, steps: int = STEPS, pause: float = 0.25, fault: str = ""
) -> str:
    """The program; ``fault`` replaces ``before_save`` in it."""
    source = COMMON + fault + PROGRAMS[kind]
    for name, value in (("BARRIER", str(barrier)), ("KIND", kind), ("PAUSE", pause)):
        source = source.replace(name, repr(value))
    return source.replace("STEPS, EVERY", f"{steps}, {EVERY}")


class Reports:
    """What the two workers of a training report, in files below ``barrier``.

    Parameters
    ----------
    story
        Describes the job, for a test that failed.
    """

    def __init__(self, barrier: Path, story: Callable[[], object]) -> None:
        self.barrier, self._story = barrier, story
        barrier.mkdir()

    def said(self, name: str, epoch: int, rank: int = 0) -> str | None:
        path = self.barrier / f"e{epoch}-{rank}-{name}"
        return path.read_text() if path.exists() else None

    def wait_for(self, condition: Callable[[], Any]) -> Any:
        return until(condition, self._story, seconds=600)

    def begun(self, epoch: int) -> int:
        """The step at which both workers began."""
        self.wait_for(lambda: all(self.said("begin", epoch, rank) for rank in range(2)))
        (step,) = {self.said("begin", epoch, rank) for rank in range(2)}
        return int(str(step))

    def until_step(self, step: int, epoch: int = 1) -> None:
        self.wait_for(lambda: int(self.said("step", epoch) or 0) >= step)

    def losses(self) -> list[float]:
        """The losses at the end, of the newest epoch last."""
        return [float(path.read_text()) for path in sorted(self.barrier.glob("e*-0-end"))]

    def saved(self, step: str, before: int) -> list[dict[str, int]]:
        """The digests of a checkpoint that both workers have reported, in each earlier epoch."""
        found = []
        for epoch in range(1, before):
            parts = [self.said(f"saved-{step}", epoch, rank) for rank in range(2)]
            if all(parts):
                own = [json.loads(str(part))[step] for part in parts]
                found.append({**own[1], **own[0]})
        return found

    def check_found(self, epoch: int, earlier: Reports | None = None) -> None:
        """All that the workers found when they began are checkpoints that both had saved.

        Parameters
        ----------
        earlier
            Of the job whose checkpoints this one continues, if its own first epoch is meant.
        """
        for rank in range(2):
            found = json.loads(str(self.said("found", epoch, rank)))
            assert found
            for step, files in found.items():
                whole = earlier.saved(step, 2) if earlier else self.saved(step, epoch)
                assert files in whole, (step, sorted(files), whole)


class Training(Reports):
    """A job of two workers; the caller stops ``gang``.

    Parameters
    ----------
    settings
        Of the coordinator.
    """

    def __init__(
        self,
        gang: GangProcesses,
        kind: str,
        steps: int = STEPS,
        pause: float = 0.25,
        fault: str = "",
        **settings: Any,
    ) -> None:
        super().__init__(gang.root / "barrier", gang.story)
        self.gang, self.steps = gang, steps
        source = source_of(kind, self.barrier, steps, pause, fault)
        place = deepspeed_environment() if kind == "deepspeed" else torch_environment()
        agent = {
            "framework": "pytorch",
            "python": str(place / "bin/python3"),
            "checkpoint_links": checkpoint_links({"main.py": source.encode()}),
        }
        usual = {"max_restarts": 100, "sync_interval": 0.5, "framework": "pytorch"}
        gang.prepare(source, [make_role("worker", 2)], agent=agent, **{**usual, **settings})
        gang.start()

    def kill(self, dice: random.Random, epoch: int, least: int) -> int:
        """Kill the program of a worker at a random step after ``least``; return the newest."""
        self.until_step(dice.randint(least, min(least + 2 * EVERY, self.steps - 2)), epoch)
        time.sleep(dice.random() / 4)
        os.kill(self.gang.program(dice.choice(["worker:0", "worker:1"])), signal.SIGKILL)
        return int(self.said("step", epoch) or 0)

    def end(self) -> tuple[JobRecord, float]:
        """The record and the loss."""
        record = self.gang.wait(600)
        assert record.state is State.SUCCEEDED, self.gang.story()
        return record, self.losses()[-1]


@functools.cache
def undisturbed(kind: str, steps: int = STEPS) -> float:
    """The loss of a training without a failure; each is run once."""
    with tempfile.TemporaryDirectory(prefix="submarine-test-") as place:
        gang = GangProcesses(Path(place))
        try:
            return Training(gang, kind, steps, pause=0.0).end()[1]
        finally:
            gang.stop_all()


def points(record: JobRecord) -> list[dict[str, Any]]:
    return [dict(event.data) for event in record.events if event.kind == "restore_point"]
