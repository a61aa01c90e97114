"""Training scalars of jobs with the real libraries, none of whose programs knows of metrics."""

from __future__ import annotations

import math
import os
import subprocess
from pathlib import Path

import pytest

from submarine_jobs.client import Session
from submarine_jobs.model import JobSpec, Profile, Resources, Role
from submarine_jobs.outputs import Row, read_metrics
from submarine_runtime.protocol import JobRecord, State
from tests.frameworks.gang import FRAMEWORKS
from tests.torch_tree import torch_environment
from tests.waiting import PATIENCE

TREES = """\
import numpy
random = numpy.random.default_rng(0)
x = random.random((400, 8))
y = (x[:, 0] + x[:, 1] > 1).astype(int)
"""
XGBOOST = (
    TREES
    + """\
import xgboost
train, test = (xgboost.DMatrix(x[part], y[part]) for part in (slice(300), slice(300, 400)))
settings = {"objective": "binary:logistic", "eval_metric": ["logloss", "auc"], "nthread": 1}
xgboost.train(settings, train, 4, evals=[(train, "train"), (test, "eval")])
"""
)
LIGHTGBM = (
    TREES
    + """\
import lightgbm
train = lightgbm.Dataset(x[:300], y[:300])
test = lightgbm.Dataset(x[300:], y[300:], reference=train)
settings = {"objective": "binary", "metric": ["binary_logloss", "auc"], "num_threads": 1}
lightgbm.train(settings, train, 4, valid_sets=[test], callbacks=[lightgbm.log_evaluation(1)])
"""
)
KERAS = (
    TREES
    + """\
import os
os.environ["KERAS_BACKEND"] = "jax"
import keras
layers = [keras.layers.Dense(8, "relu"), keras.layers.Dense(1, "sigmoid")]
model = keras.Sequential(layers)
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(x[:300], y[:300], epochs=2, validation_data=(x[300:], y[300:]))
"""
)
TQDM = """\
import tqdm
bar = tqdm.trange(100)
for step in bar:
    bar.set_postfix({"loss": 1 / (step + 1), "top-1": step / 99})
bar = tqdm.trange(100)
for step in bar:
    bar.set_description(f"val_loss: {2 / (step + 1):.3f}")
"""
LIGHTNING = """\
import lightning, time, torch
from lightning.pytorch.callbacks import TQDMProgressBar
from torch.utils.data import DataLoader, TensorDataset

class Model(lightning.LightningModule):
    def __init__(self, rate):
        super().__init__()
        self.layer, self.rate = torch.nn.Linear(4, 1), rate

    def training_step(self, batch, number):
        loss = ((self.layer(batch[0]) - batch[1]) ** 2).mean()
        self.log("train_loss", loss, prog_bar=True)
        self.log("in_table", 3.5)
        return loss

    def validation_step(self, batch, number):
        self.log("val/loss", ((self.layer(batch[0]) - batch[1]) ** 2).mean(), prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), self.rate)

x = torch.randn(64, 4)
data = TensorDataset(x, x.sum(1, keepdim=True))
for rate in (0.01, 1e25):
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", log_every_n_steps=4, callbacks=[TQDMProgressBar()]
    )
    trainer.fit(Model(rate), DataLoader(data, 4), DataLoader(data, 8))
    time.sleep(12 if rate < 1 else 0)  # New files are searched every ten seconds.
"""
TRANSFORMERS = """\
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, number):
        return {"input_ids": torch.tensor([number] * 8), "labels": torch.tensor(number % 2)}

sizes = dict(num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
config = BertConfig(vocab_size=50, hidden_size=16, max_position_embeddings=16, **sizes)
arguments = TrainingArguments(
    "out", num_train_epochs=2, per_device_train_batch_size=4, logging_steps=4, use_cpu=True,
    eval_strategy="epoch", report_to="none", save_strategy="no",
)
model = BertForSequenceClassification(config)
Trainer(model, arguments, train_dataset=Data(), eval_dataset=Data()).train()
"""
ACCELERATE = """\
import json, os, sys, torch
from accelerate import Accelerator
from accelerate.utils import tqdm
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True)
x = torch.randn(40, 4)
model = torch.nn.Linear(4, 1)
model, optimizer, data = accelerator.prepare(
    model, torch.optim.SGD(model.parameters(), 0.01), DataLoader(TensorDataset(x), 4)
)
bar = tqdm(data)
for (batch,) in bar:
    loss = (model(batch) ** 2).mean()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    bar.set_postfix(step_loss=loss.item())
bar.close()
accelerator.print(f"epoch 0: val_loss={loss.item():.4f}")
accelerator.print(json.dumps({"epoch": 0, "accuracy": 0.5}))
for stream in (sys.stdout, sys.stderr):
    stream.flush()
os._exit(0)  # Debian's PyTorch sometimes crashes when an interpreter with UCX ends.
"""


def run_job(tmp_path: Path, python: Path, program: str) -> tuple[list[Row], JobRecord]:
    """Run ``program`` as a job with ``python``; return its samples and its record."""
    script = tmp_path / "train.py"
    script.write_text(program)
    session = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    role = Role("worker", 1, Resources(2000), command=f"{python} -u {script}")
    spec = JobSpec("metrics", "local", roles=(role,), program=None, framework="any")
    job = session.submit(spec, None)
    try:
        record = job.wait(PATIENCE)
    finally:
        job.cancel("the test is over")
    log = job.log("stderr").data.decode(errors="replace")
    assert record.state is State.SUCCEEDED, log[-4000:]
    return read_metrics(job.directory), record


def scalars(tmp_path: Path, python: Path, program: str) -> dict[str, float]:
    """Run ``program`` as a job with ``python``; return its last scalars."""
    return dict(run_job(tmp_path, python, program)[0][-1].scalars)


def has(module: str, **env: str) -> bool:
    command = [str(FRAMEWORKS), "-c", f"import {module}"]
    return subprocess.run(command, env={**os.environ, **env}, check=False).returncode == 0


def test_xgboost(tmp_path: Path) -> None:
    found = scalars(tmp_path, FRAMEWORKS, XGBOOST)
    assert set(found) == {"train-logloss", "train-auc", "eval-logloss", "eval-auc"}
    assert 0 < found["eval-logloss"] < 0.6
    assert 0.8 < found["eval-auc"] <= 1


@pytest.mark.full
def test_keras(tmp_path: Path) -> None:
    if not has("keras", KERAS_BACKEND="jax"):
        pytest.skip("scripts/setup.sh frameworks installs Keras and JAX")
    found = scalars(tmp_path, FRAMEWORKS, KERAS)
    assert set(found) == {"accuracy", "loss", "val_accuracy", "val_loss"}
    assert 0.2 < found["val_loss"] < 1.5


def test_tqdm(tmp_path: Path) -> None:
    found = scalars(tmp_path, torch_environment() / "bin/python3", TQDM)
    assert found == {"loss": 0.01, "top-1": 1.0, "val_loss": 0.02}


@pytest.mark.full
def test_lightgbm(tmp_path: Path) -> None:
    if not has("lightgbm"):
        pytest.skip("scripts/setup.sh frameworks installs LightGBM")
    found = scalars(tmp_path, FRAMEWORKS, LIGHTGBM)
    assert set(found) == {"valid_0-binary_logloss", "valid_0-auc"}
    assert 0.8 < found["valid_0-auc"] <= 1


def test_lightning(tmp_path: Path) -> None:
    """A training, and one that diverges."""
    rows, record = run_job(tmp_path, torch_environment() / "bin/python3", LIGHTNING)
    first = next(row.scalars for row in rows if "in_table" in row.scalars)
    # The bar has the first two, with three digits; the table of CSVLogger all, with all digits.
    assert set(first) == {"train_loss", "val/loss", "in_table"}
    assert first["in_table"] == 3.5
    assert round(first["val/loss"], 3) != first["val/loss"]
    assert not math.isfinite(rows[-1].scalars["train_loss"])
    [warning] = [event.detail for event in record.events if event.kind == "warning"]
    assert "loss was nan " in warning or "loss was inf " in warning
    assert record.hints[0] == warning


def test_transformers(tmp_path: Path) -> None:
    found = scalars(tmp_path, torch_environment() / "bin/python3", TRANSFORMERS)
    assert {"loss", "grad_norm", "learning_rate", "eval_loss", "train_loss"} <= set(found)
    assert 0.3 < found["eval_loss"] < 1.5


def test_accelerate(tmp_path: Path) -> None:
    found = scalars(tmp_path, torch_environment() / "bin/python3", ACCELERATE)
    assert set(found) == {"step_loss", "val_loss", "accuracy"}
    assert found["step_loss"] == pytest.approx(found["val_loss"], rel=0.01)
