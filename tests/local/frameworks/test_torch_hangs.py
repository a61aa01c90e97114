"""A rank of PyTorch that hangs, while the others are in a collective operation of gloo."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import submarine_jobs
from submarine_jobs.client import Job
from tests.waiting import until

pytestmark = pytest.mark.full

#: Rank 1 waits for the DataLoader, or the others are in the backward pass of DDP.
TRAINING = """
import os, time, torch, torch.distributed as dist
from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, index):
        if index == 4 and dist.get_rank() == 1:
            time.sleep(900)
        return torch.full((4,), float(index))
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
for row in DataLoader(Rows(), batch_size=2, num_workers={workers}):
    print("step", flush=True)
    {step}
"""
STEPS = {
    "all_reduce": "dist.all_reduce(row.sum())",
    "_tensor.backward": "model(row).sum().backward()",
}


@pytest.fixture
def environment(pytorch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.setattr(submarine_jobs, "_sessions", {})
    monkeypatch.chdir(tmp_path)
    return pytorch


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("call", STEPS)
def test_the_rank_in_the_data_loader_is_named(
    environment: Path, tmp_path: Path, call: str, workers: int
) -> None:
    source = TRAINING.format(workers=workers, step=STEPS[call])
    (tmp_path / "train.py").write_text(source)
    job: Job = submarine_jobs.run(
        "hangs",
        program="train.py",
        backend="local",
        python_env=f"path:{environment}",
        num_workers=3,
        memory="3G",
        stall="10s",
        # Debian's PyTorch has no libuv.
        env={"USE_LIBUV": "0", "OMP_NUM_THREADS": "1"},
    )
    try:

        def stalled() -> str:
            record = job.record()
            assert not record.state.ended, record.detail
            return next((event.detail for event in record.events if event.kind == "stall"), "")

        detail = until(stalled, seconds=150)
    finally:
        job.cancel()
        job.wait(timeout=60)
    assert "The others wait for rank 1 (worker:1)." in detail
    lines = source.splitlines()
    line = next(number for number, text in enumerate(lines, 1) if text.startswith("for row"))
    if workers:
        assert f"DataLoader.__next__, train.py line {line}" in detail
    else:
        assert "time.sleep(900), train.py line 9" in detail
    step = next(number for number, text in enumerate(lines, 1) if STEPS[call] in text)
    assert f"ranks 0, 2: {call}, train.py line {step}." in detail
    silent = re.search(r"of rank 1 \(worker:1\) for (\d+) s\.", detail)
    assert silent is not None, detail
    assert 10 <= int(silent[1]) <= 10 + 30
