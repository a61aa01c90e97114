"""Scalars in lines: what libraries print is found, other text is none, nothing costs much."""

from __future__ import annotations

import json
import math
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from submarine_runtime.agent.measurement.log_scalars import (
    is_loss,
    is_measure,
    printed_scalars,
)
from submarine_runtime.agent.measurement.progress import Progress
from submarine_runtime.agent.measurement.training_scalars import MAX_NAMES
from tests.unit.agent import recorded_lines

ROWS: dict[str, dict[str, float]] = {
    "XGBOOST": {
        "train-logloss": 0.27851,
        "train-auc": 0.99942,
        "eval-logloss": 0.2661,
        "eval-auc": 0.95713,
        "test-logloss": 0.3288,
    },
    "LIGHTGBM": {
        "train-binary_logloss": 0.45756,
        "train-auc": 0.987822,
        "valid-binary_logloss": 0.539353,
        "valid-auc": 0.954327,
        "valid_0-binary_logloss": 0.111123,
    },
    "TRANSFORMERS": {
        "loss": 0.6957,
        "grad_norm": 0.7725,
        "learning_rate": 3.125e-06,
        "eval_loss": 0.6933,
        "eval_accuracy": 0.5,
        "eval_samples_per_second": 2475.0,
        "eval_steps_per_second": 309.3,
        "train_samples_per_second": 95.302,
        "train_steps_per_second": 23.825,
        "train_loss": 0.6936590373516083,
    },
    "TRANSFORMERS_NAN": {"loss": 0.0, "grad_norm": math.nan, "learning_rate": 6.875e29},
    "LIGHTNING": {"train_loss": 1.68, "train/acc": 0.4, "val_loss": 0.965},
    "LIGHTNING_NAN": {"train_loss": math.nan, "train/acc": 0.4, "val_loss": math.nan},
    "LIGHTNING_RICH": {"train_loss": 1.676, "train/acc": 0.4, "val_loss": 0.965},
    "ACCELERATE": {"loss": 7.570980548858643},
    "ACCELERATE_LOG": {"lr": 0.01, "step_loss": 7.57, "accuracy": 0.5, "f1": 0.3},
    "TQDM": {"acc": 0.5, "lr": 0.0001, "n": 29, "val/loss": 2.5, "top-1": 0.9, "loss": math.nan},
    "TQDM_DESCRIPTION": {"loss": 0.571},
}


@pytest.mark.parametrize("library", ROWS)
def test_all_scalars_of_a_library_are_found_and_nothing_else(library: str) -> None:
    found = printed_scalars(getattr(recorded_lines, library))
    assert found == pytest.approx(ROWS[library], nan_ok=True)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("loss=0.3", {"loss": 0.3}),
        ("loss = .3, acc = 5e-1", {"loss": 0.3, "acc": 0.5}),
        ("epoch=1 loss=0.3 lr=1e-4 time=3.2s model=resnet", {"loss": 0.3, "lr": 1e-4}),
        ("Epoch 1/10 | train loss: 0.3 | val loss: 0.4", {"train_loss": 0.3, "val_loss": 0.4}),
        ("Epoch [1/10], Step [100/600], Loss: 0.3456", {"Loss": 0.3456}),
        ("Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.3", {"Loss": 2.3}),
        (" Accuracy: 71.4%, Avg loss: 0.78", {"Accuracy": 71.4, "Avg_loss": 0.78}),
        ("INFO:__main__:loss=0.3", {"loss": 0.3}),
        ("2026-11-29 08:48:02,489 - INFO - __main__ - loss: 0.3", {"loss": 0.3}),
        ("2026-11-29 08:48:02.4 | INFO     | __main__:train:33 - loss=0.3", {"loss": 0.3}),
        ("[2026-11-29 08:48:02] [INFO] loss: 0.3", {"loss": 0.3}),
        ("I1129 08:48:02.123456 140 train.py:33] loss=0.3", {"loss": 0.3}),
        ("[1] loss: 0.5", {"loss": 0.5}),
        ("[default1]:{'loss': 0.5}", {"loss": 0.5}),
        ('{"step": 3, "loss": 0.25, "tags": ["a", 1], "ok": true, "x": null}', {"loss": 0.25}),
        ('{"time": "2026-11-29 08:48", "loss": Infinity}', {"loss": math.inf}),
        (
            "{'acc': np.float64(0.5), 'loss': tensor(0.2, device='cuda:0')}",
            {"acc": 0.5, "loss": 0.2},
        ),
        ('{"<img src=x>": 1, "a\\"b": 2, "loss": 0.25}', {}),
        ('{"<img src=x>": 1, "loss": 0.25}', {"loss": 0.25}),
    ],
)
def test_lines_of_own_loops(line: str, found: dict[str, float]) -> None:
    assert printed_scalars(f"before\n{line}\nafter\n".encode()) == pytest.approx(found)


@pytest.mark.parametrize(
    "line",
    [
        "batch_size=32 lr=0.1",
        '{"dropout": 0.1, "label_smoothing": 0.1, "loss": "ce", "precision": 16, "lr": 0.1}',
        '{"loss_weight": 0.5, "target_accuracy": 0.9, "reward_scale": 2, "acc_steps": 4}',
        "{'train': {'loss': 0.3}}",
        '{"loss": 0.3, "acc":',
        '{"loss": 0.3 "acc": 0.4}',
        '{"loss": 0.3}}',
        '  "loss": 0.1,',
        "Namespace(batch=3, loss=0.1)",
        "the loss: 0.31 is fine",
        "error: 7",
        "precision: 16",
        "loss: 10.0.0.1",
        "loss: 2026-11-29",
        "3 packets transmitted, 3 received, 0% packet loss",
        "INFO - the loss: 0.31 is fine",
        "host=node7 port=8080",
        "Epoch: 3",
    ],
)
def test_configurations_and_prose_are_no_scalars(line: str) -> None:
    assert printed_scalars(f"{line}\n".encode()) == {}


def documented() -> list[tuple[str, list[str], str]]:
    """Return example, names and test of the rows of the table of the docs."""
    page = (Path(__file__).parents[3] / "docs/metrics.md").read_text()
    table = page.partition("| source | an example |")[2].partition("\n\n")[0].splitlines()[2:]
    cells = [re.split(r"(?<!\\)\|", row) for row in table]
    return [
        (
            row[2].strip(" `").replace("\\|", "|").replace("⇥", "\t"),
            re.findall("`(.*?)`", row[3]),
            row[4].strip(" `"),
        )
        for row in cells
    ]


@pytest.mark.parametrize(("example", "names", "test"), documented())
def test_the_table_of_the_docs(example: str, names: list[str], test: str) -> None:
    assert list(printed_scalars(f"{example}\n".encode())) == names
    tests = (Path(__file__).parents[2] / "frameworks/test_metrics.py").read_text()
    assert not test or f"def {test}(" in tests


def test_the_docs_have_a_row_for_each_library() -> None:
    assert len(documented()) == 11


def test_names() -> None:
    for name in ("loss", "val_loss", "MSELoss", "trainLoss", "mAP50", "top1_acc", "eval/f1", "wer"):
        assert is_measure(name), name
    for name in ("glossary", "loss_weight", "lossless", "lr", "map_size", "error", "", "7"):
        assert not is_measure(name), name
    assert is_measure("val_error")
    assert is_loss("val_loss")
    assert not is_loss("accuracy")
    assert not is_loss("best_loss")  # infinite before the first step


def test_a_line_of_eval_in_a_flood_of_steps_is_found() -> None:
    steps = [f"step {n} loss: {n / 7:.4f}" for n in range(500)]
    lines = [*steps, "eval_accuracy: 0.5", "top1_acc: 0.1", "top5_acc: 0.2", *steps]
    found = printed_scalars("\n".join([*lines, ""]).encode())
    last = round(499 / 7, 4)
    expected = {"loss": last, "eval_accuracy": 0.5, "top1_acc": 0.1, "top5_acc": 0.2}
    assert found == pytest.approx(expected)


def test_an_incomplete_line_waits_for_its_end(tmp_path: Path) -> None:
    log = tmp_path / "stdout"
    log.write_bytes(b"")
    progress = Progress((str(log),))
    whole = json.dumps({"note": "x" * 3000, "loss": 0.25, "accuracy": 0.75}).encode() + b"\nloss=0."
    seen = []
    for end in range(0, len(whole), 97):
        log.write_bytes(whole[:end])
        progress.update()
        seen.append(dict(progress.scalars))
    log.write_bytes(whole)
    progress.update()
    assert progress.scalars == {"loss": 0.25, "accuracy": 0.75}
    assert all(one in ({}, progress.scalars) for one in seen)
    log.write_bytes(whole + b"125")
    progress.update()
    assert progress.scalars["loss"] == 0.25
    progress.update(last=True)
    assert progress.scalars["loss"] == 0.125


def test_a_program_that_invents_names_fills_no_memory(tmp_path: Path) -> None:
    log = tmp_path / "stdout"
    progress = Progress((str(log),))
    with log.open("a") as file:
        for look in range(40):
            for n in range(40):
                file.write(f"loss_of_{look}_{n}_loss: 0.5\n")
            file.flush()
            progress.update()
    assert len(progress.scalars) == MAX_NAMES


HOSTILE = {
    "pairs": b"name=1 " * 145,
    "measured": b"name=1 " * 140 + b"loss=2",
    "dictionary": b"{" + b"'name': 'x', " * 600 + b"}",
    "nested": b'{"a":' * 1600,
    "quotes": b"{'a': '" + b"\\\\" * 4000 + b"}",
    "bars": b"a=5%|" + b"1it [, , " * 900 + b"]",
    "trees": b"[1]" + b"\tname:1" * 1100 + b"\t",
    "digits": b"loss=1 " + b"1" * 900 + b"x",
    "levels": b"loss=1 " + b"INFO " * 180,
    "huge": b"loss=0.5 " * 8000,
    "ends": b"\n:" * 32000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_line_costs_much(kind: str) -> None:
    line = HOSTILE[kind]
    text = b"\n".join([line] * max(1, (1 << 16) // len(line)))
    took = []
    for _ in range(3):  # the best of some: a busy machine's caches are cold
        began = time.thread_time()
        printed_scalars(text)
        took.append(time.thread_time() - began)
    assert min(took) < 0.4  # usually below 0.05


@given(st.binary(max_size=300))
def test_no_bytes_make_parsing_fail(data: bytes) -> None:
    for text in (data, b"{'loss': 1, " + data, b"[1]\t" + data, b" 5%| | 1/2 [" + data):
        for name, value in printed_scalars(text).items():
            assert name.isascii()
            assert isinstance(value, float)
