"""One rank of a DDP training fails: the record names it, although its peers fail too."""

from __future__ import annotations

import pytest

from submarine_runtime.protocol import EndReason, State
from tests.local.frameworks.conftest import RunTorch

#: The peers lose their connection, and are delayed by their own clean-up.
FAILING = """
import atexit, os, signal, sys, time, torch, torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
for step in range(100):
    if step == 5 and rank == 3:
        atexit.register(time.sleep, 3)
        dist.destroy_process_group()
        CAUSE
    model(torch.ones(2, 4)).sum().backward()
"""


@pytest.mark.full
@pytest.mark.parametrize(
    ("cause", "reason", "words"),
    [
        ("raise ValueError('bad row')", EndReason.PROGRAM_ERROR, "ValueError: bad row"),
        ("sys.exit(3)", EndReason.PROGRAM_ERROR, "Exit code 3"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", EndReason.KILLED_BY_SIGNAL, "SIGSEGV"),
        ("os._exit(7)", EndReason.PROGRAM_ERROR, "Exit code 7"),
    ],
    ids=["exception", "sys.exit", "signal", "os._exit"],
)
def test_the_rank_that_failed_first(
    run_torch: RunTorch, cause: str, reason: EndReason, words: str
) -> None:
    record = run_torch(FAILING.replace("CAUSE", cause), worker=2, processes=2).record()
    assert (record.state, record.reason) == (State.FAILED, reason)
    assert record.detail.startswith("worker:1: Rank 3: ")
    assert words in record.detail
    if words.startswith("ValueError"):
        assert record.failure is not None
        assert (record.failure.rank, record.failure.type) == (3, "ValueError")
