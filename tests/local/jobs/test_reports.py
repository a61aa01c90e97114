"""Silent defects of a training are in its record and on its card, in each front end.

The cards of JupyterLab show the fields that the server's view has: ``labextension/tests/card``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs import display
from submarine_jobs.client import Job, Session
from submarine_jobs.model import Profile
from submarine_runtime.protocol import EndReason, State
from submarine_server.views import JobDetails, view_json
from tests.submission import Submit, submitting
from tests.subprocesses.gpus.gpu_node import device_line, node_with_gpus


@pytest.fixture
def submit(tmp_path: Path) -> Iterator[Submit]:
    session = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    with submitting(session) as made:
        yield made


def cards(job: Job) -> list[str]:
    """Return what the notebook, the terminal and the server show of a job."""
    view = job.view()
    bundle = display.mimebundle(view)
    record = view_json(view, JobDetails())["record"]
    return [bundle["text/plain"], bundle["text/html"].replace("&#x27;", "'"), str(record)]


def test_unused_gpus_and_a_loss_that_is_no_number(
    submit: Submit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second GPU computes; the first has neither utilization nor memory in use."""
    lines = device_line("GPU-report-a", 0) + device_line("GPU-report-b", 40, 900)
    node_with_gpus(tmp_path, monkeypatch, lines)
    source = (
        "import time\n"
        "for loss in ('0.5', '0.4', 'nan'):\n"
        "    print(f'loss: {loss}', flush=True)\n"
        "    time.sleep(12)\n"
    )
    job = submit(source, gpus=2)
    record = job.wait(120)
    assert record.state is State.SUCCEEDED, record.detail
    diverged, unused = record.hints
    assert diverged.startswith("loss was nan ")
    assert unused.startswith("No program used GPU-report-a in 3")
    assert [event.detail for event in record.events if event.kind == "warning"] == [diverged]
    for card in cards(job):
        assert diverged in card
        assert unused in card


#: What PyTorch 2.6 writes when NCCL's watchdog ends a process, and JAX's coordination service.
NCCL = """\
[rank1]:[E1129 12:00:00.000000000 ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught collective \
operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=5, NumelOut=5, Timeout(ms)=9000) \
ran for 9012 milliseconds before timing out.
terminate called after throwing an instance of 'c10::DistBackendError'
  what():  [PG ID 0 PG GUID 0(default_pg) Rank 1] Process group watchdog thread terminated with \
exception: [Rank 1] Watchdog caught collective operation timeout
Exception raised from checkTimeout at ProcessGroupNCCL.cpp:632 (most recent call first):
frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96
"""
JAX = """\
E1129 12:00:00.000000    4711 coordination_service_agent.cc:332] Polled an error from service.
F1129 12:00:00.000000    4711 pjrt/distributed/client.h:80] Terminating process because the JAX \
distributed service detected fatal errors.
"""


@pytest.mark.parametrize(
    ("printed", "name", "message"),
    [
        (NCCL, "c10.DistBackendError", "Watchdog caught collective operation timeout"),
        (JAX, "Abort", "Terminating process because the JAX distributed service detected"),
    ],
    ids=["nccl", "jax"],
)
def test_the_error_with_which_a_library_aborts(
    submit: Submit, printed: str, name: str, message: str
) -> None:
    job = submit(f"import os, sys\nsys.stderr.write({printed!r})\nsys.stderr.flush()\nos.abort()")
    record = job.wait(60)
    assert (record.reason, record.signal) == (EndReason.KILLED_BY_SIGNAL, 6)
    assert record.failure is not None
    assert record.failure.type == name
    assert message in record.failure.message
    assert record.detail.startswith(f"Signal 6 (SIGABRT). {name}: ")
    for card in cards(job):
        assert name in card
        assert message in card


def test_the_error_in_the_file_of_torch_elastic(submit: Submit) -> None:
    """PyTorch's decorator ``record`` writes it; the rank that did is named."""
    source = """
import json, os
rank = int(os.environ["RANK"])
if rank == 0:
    import time
    time.sleep(60)
error = {"py_callstack": "", "timestamp": "1795000000"}
message = {"message": "DistNetworkError: the client socket has failed", "extraInfo": error}
with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
    json.dump({"message": message}, file)
os._exit(1)
"""
    job = submit(source, framework="pytorch", memory=400, processes=2)
    record = job.wait(60)
    assert record.reason is EndReason.PROGRAM_ERROR
    assert record.failure is not None
    assert (record.failure.rank, record.failure.type) == (1, "DistNetworkError")
    for card in cards(job):
        assert "the client socket has failed" in card
