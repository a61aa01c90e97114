"""Unchanged programs of PyTorch, Lightning and transformers on this machine's CPU."""

from __future__ import annotations

import json

import pytest

from submarine_runtime.protocol import State
from tests.gpu.collective import PROGRAM
from tests.local.frameworks.conftest import RunTorch, values_of

#: What torchrun sets, by its documentation.
TORCHRUN = [
    *("LOCAL_RANK", "RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_NAME", "LOCAL_WORLD_SIZE"),
    *("WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
    *("TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RUN_ID"),
    *("TORCHELASTIC_USE_AGENT_STORE", "TORCH_NCCL_ASYNC_ERROR_HANDLING"),
    *("TORCHELASTIC_ERROR_FILE", "OMP_NUM_THREADS"),
]
DDP = """
import json, os, torch, torch.distributed as dist
print("variables", json.dumps({name: os.environ.get(name) for name in NAMES}))
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
for step in range(3):
    model(torch.full((2, 4), rank + 1.0)).sum().backward()
grad = model.module.weight.grad[0, 0].item()
# The processes of torchrun share the log and write each argument of print by itself.
os.write(1, f"grad {grad} of {size} {dist.is_torchelastic_launched()}\\n".encode())
dist.destroy_process_group()
"""
LIGHTNING = """
import hashlib, torch
import lightning as L
from torch.utils.data import DataLoader, TensorDataset

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        x, y = batch
        return torch.nn.functional.mse_loss(self.layer(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

x = torch.rand(64, 4)
model = Model()
trainer = L.Trainer(max_epochs=1, logger=False, enable_checkpointing=False, ARGUMENTS)
trainer.fit(model, DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8))
print("rank", trainer.global_rank, "of", trainer.world_size)
print("digest", hashlib.sha256(model.layer.weight.detach().numpy().tobytes()).hexdigest())
"""
# Debian's PyTorch has MPI, which Accelerate prefers on CPUs.
TRANSFORMERS = """
import hashlib, torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

sizes = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
config = BertConfig(vocab_size=32, max_position_embeddings=16, **sizes)
model = BertForSequenceClassification(config)
data = [
    {"input_ids": torch.randint(0, 32, (8,)), "labels": torch.tensor(i % 2)} for i in range(64)
]
arguments = TrainingArguments(
    "out", max_steps=3, per_device_train_batch_size=4, report_to=[], save_strategy="no",
    use_cpu=True, ddp_backend="gloo", disable_tqdm=True,
)
Trainer(model, arguments, train_dataset=data).train()
print("rank", arguments.process_index, "of", arguments.world_size)
weights = b"".join(one.detach().numpy().tobytes() for one in model.parameters())
print("digest", hashlib.sha256(weights).hexdigest())
"""
#: Stand-ins for four GPUs, before the library looks for them.
FOUR_DEVICES = """
import torch

torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: 4
torch.cuda.set_device = lambda device: None
from transformers import TrainingArguments

arguments = TrainingArguments("out", report_to=[])
print("devices", arguments.n_gpu, "of", arguments.world_size)
"""


def ddp() -> str:
    return DDP.replace("NAMES", repr(TORCHRUN))


def test_ddp_with_torchruns_variables(run_torch: RunTorch) -> None:
    job = run_torch(ddp(), worker=2, processes=2)
    assert job.record().state is State.SUCCEEDED
    ranks = {}
    for text in values_of(job, "variables", 2):
        found = json.loads(text)
        assert all(found.values()), found
        ranks[found["RANK"]] = found
    assert sorted(ranks) == ["0", "1", "2", "3"]
    assert len({found["TORCHELASTIC_ERROR_FILE"] for found in ranks.values()}) == 4
    assert {found["TORCHELASTIC_RUN_ID"] for found in ranks.values()} == {job.id}
    assert (ranks["3"]["ROLE_RANK"], ranks["3"]["LOCAL_RANK"]) == ("3", "1")
    # The mean over ranks of a gradient of 2 x 3 x (rank + 1).
    assert set(values_of(job, "grad", 2)) == {"15.0 of 4 True"}


def test_the_default_trainer_of_lightning_trains_one_model(run_torch: RunTorch) -> None:
    job = run_torch(LIGHTNING.replace("ARGUMENTS", ""), worker=2)
    assert job.record().state is State.SUCCEEDED
    assert sorted(values_of(job, "rank", 2)) == ["0 of 2", "1 of 2"]
    assert len(set(values_of(job, "digest", 2))) == 1
    assert not job.record().warnings


def test_the_trainer_of_transformers_trains_one_model(run_torch: RunTorch) -> None:
    job = run_torch(TRANSFORMERS, worker=2)
    assert job.record().state is State.SUCCEEDED
    assert sorted(values_of(job, "rank", 2)) == ["0 of 2", "1 of 2"]
    assert len(set(values_of(job, "digest", 2))) == 1


@pytest.mark.full
@pytest.mark.parametrize("processes", [1, 3])
def test_the_program_of_the_gpu_tests_without_gpus(run_torch: RunTorch, processes: int) -> None:
    """``tests/gpu`` runs it with NCCL, and with several processes on one device."""
    job = run_torch(PROGRAM, processes=processes)
    assert job.record().state is State.SUCCEEDED
    assert values_of(job, "backend") == [f"gloo cpu {processes}"] * processes
    assert len(set(values_of(job, "digest"))) == 1


@pytest.mark.full
def test_ddp_with_one_worker(run_torch: RunTorch) -> None:
    job = run_torch(ddp())
    assert values_of(job, "grad") == ["6.0 of 1 False"]


@pytest.mark.full
@pytest.mark.parametrize("strategy", ["auto", "ddp"])
def test_lightning_starts_two_processes_of_one_task(run_torch: RunTorch, strategy: str) -> None:
    arguments = f"accelerator='cpu', devices=2, strategy={strategy!r}"
    job = run_torch(LIGHTNING.replace("ARGUMENTS", arguments))
    assert job.record().state is State.SUCCEEDED
    assert sorted(values_of(job, "rank")) == ["0 of 2", "1 of 2"]
    assert len(set(values_of(job, "digest"))) == 1


@pytest.mark.full
def test_two_tasks_with_two_processes_train_one_model(run_torch: RunTorch) -> None:
    for source in (LIGHTNING.replace("ARGUMENTS", ""), TRANSFORMERS):
        job = run_torch(source, worker=2, processes=2)
        assert job.record().state is State.SUCCEEDED
        assert sorted(values_of(job, "rank", 2)) == [f"{rank} of 4" for rank in range(4)]
        assert len(set(values_of(job, "digest", 2))) == 1


@pytest.mark.full
def test_transformers_uses_four_visible_devices_of_one_task(run_torch: RunTorch) -> None:
    job = run_torch(FOUR_DEVICES)
    assert values_of(job, "devices") == ["4 of 1"]


@pytest.mark.full
def test_torchrun_as_the_command(run_torch: RunTorch) -> None:
    source = ddp().replace('"variables"', '"#"')
    command = "torchrun --standalone --nproc-per-node 2 train.py"
    job = run_torch(source, worker_launch_cmd=command)
    assert job.record().state is State.SUCCEEDED
    assert values_of(job, "grad") == ["9.0 of 2 True"] * 2
