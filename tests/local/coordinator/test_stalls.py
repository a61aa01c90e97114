"""Programs that hang, for real: the awaited rank is named, or the gang restarts; idle GPUs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from submarine_runtime.files import replace_file
from submarine_runtime.protocol import EndReason, IdleLimit, State
from tests.configurations import make_role
from tests.local.coordinator.gang_processes import GangProcesses
from tests.subprocesses.gpus.gpu_node import device_line, node_with_gpus

LIMIT = 10.0
#: Ranks meet by connections to rank 0, as collective operations do; then one of them hangs.
MEET = """
import os, socket, threading, time
rank, place = int(os.environ["SUBMARINE_INDEX"]), {place!r}
path = os.path.join(place, "address-" + os.environ["SUBMARINE_EPOCH"])
def barrier():
    if rank == 0:
        for link in links:
            link.recv(1)
        for link in links:
            link.sendall(b"x")
    else:
        links[0].sendall(b"x")
        links[0].recv(1)
def hang():
    {hang}
if rank == 0:
    server = socket.create_server(("127.0.0.1", 0))
    with open(path + ".new", "w") as file:
        file.write(str(server.getsockname()[1]))
    os.rename(path + ".new", path)
    links = [server.accept()[0] for _ in range({count} - 1)]
else:
    while not os.path.exists(path):
        time.sleep(0.01)
    links = [socket.create_connection(("127.0.0.1", int(open(path).read())))]
barrier()
print("met", flush=True)
if rank == {hung} and not os.path.exists(os.path.join(place, "healed")):
    hang()
barrier()
"""


def program(place: Path, hang: str, hung: int = 1, count: int = 3) -> str:
    return MEET.format(place=str(place), hang=hang, hung=hung, count=count)


def limits(**values: IdleLimit) -> dict[str, Any]:
    """The limits, in the configuration of the coordinator and of the agents."""
    return {**values, "agent": {**values, "claim_gpus": True}}


def stalls(gang: GangProcesses) -> list[dict[str, Any]]:
    return [event for event in gang.events() if event["kind"] == "stall"]


LOCK = "lock = threading.Lock(); lock.acquire(); lock.acquire()"
PIPE = "os.read(os.pipe()[0], 1)"


@pytest.mark.parametrize(
    ("hang", "hung", "count", "where"),
    [
        ("time.sleep(600)", 1, 3, "time.sleep(600), main.py line 15"),
        (LOCK, 0, 2, f"{LOCK}, main.py line 15"),
        (PIPE, 1, 2, f"{PIPE}, main.py line 15"),
        # Only its own kernel state tells of a process that is stopped.
        ("os.kill(os.getpid(), 19)", 2, 3, "it is stopped by a signal"),
    ],
    ids=["sleep", "lock", "pipe", "stopped"],
)
def test_the_rank_that_hangs_is_named(
    gang: GangProcesses, tmp_path: Path, hang: str, hung: int, count: int, where: str
) -> None:
    gang.prepare(
        program(tmp_path, hang, hung, count),
        [make_role("worker", count)],
        **limits(stall=IdleLimit(LIMIT)),
    )
    gang.start()
    gang.wait_for_event("task", "running", count)
    began = time.monotonic()
    gang.wait_for_event("stall")
    assert time.monotonic() - began < LIMIT + 30
    [event] = stalls(gang)
    assert event["data"]["tasks"] == [f"worker:{hung}"], event
    assert event["data"]["waits_for"] == f"rank {hung}"
    assert where in event["detail"]
    calls = ("link.recv(1), main.py line 8", "links[0].recv(1), main.py line 13")
    assert {group["label"] for group in event["data"]["groups"][1:]} <= set(calls)
    assert f"The others wait for rank {hung} (worker:{hung})." in event["detail"]


def test_a_long_quiet_computation_is_no_stall(gang: GangProcesses, tmp_path: Path) -> None:
    """Rank 1 computes without a word, and the others wait for it without use of the CPU."""
    compute = "end = time.monotonic() + 25\n    while time.monotonic() < end: sum(range(1000))"
    restart = IdleLimit(LIMIT, "restart")
    workers = [make_role("worker", 3)]
    record = gang.run(program(tmp_path, compute), workers, **limits(stall=restart))
    assert record.state is State.SUCCEEDED, gang.story()
    assert record.epoch == 1
    assert not stalls(gang)
    # The others were quiet, and the reason was looked for.
    idle = [line for line in journal(gang) if line.get("type") == "stacks"]
    assert idle
    assert not any(line["stalled"] for line in idle)


def journal(gang: GangProcesses) -> list[dict[str, Any]]:
    path = gang.scratch / "journal.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_stall_restarts_the_gang_which_then_succeeds(gang: GangProcesses, tmp_path: Path) -> None:
    healed = tmp_path / "healed"
    gang.prepare(
        program(tmp_path, f"open({str(healed)!r}, 'w').close(); time.sleep(600)"),
        [make_role("worker", 3)],
        **limits(stall=IdleLimit(LIMIT, "restart")),
    )
    gang.start()
    record = gang.wait()
    assert record.state is State.SUCCEEDED, gang.story()
    assert record.epoch == 2
    [restart] = [event for event in record.events if event.kind == "restart"]
    assert (restart.task, restart.data["reason"]) == ("worker:1", "stalled")
    # The containers stay.
    assert len(list((gang.scratch / "tasks").iterdir())) == 3
    assert [task.restarts for task in record.tasks] == [0, 1, 0]


def test_a_stall_at_the_limit_of_restarts_ends_the_job(gang: GangProcesses, tmp_path: Path) -> None:
    gang.prepare(
        program(tmp_path, "time.sleep(600)", count=2),
        [make_role("worker", 2)],
        **limits(stall=IdleLimit(LIMIT, "restart")),
        max_restarts=0,
    )
    gang.start()
    record = gang.wait()
    assert record.reason is EndReason.STALLED, gang.story()
    assert "the limit of 0 restarts is reached" in str(record.detail)


def test_a_program_that_uses_the_signal_itself_is_not_disturbed(
    gang: GangProcesses, tmp_path: Path
) -> None:
    """It replaces handlers, closes descriptors and starts processes; each still goes on."""
    text = """
import os, signal, subprocess, sys, time
rank = int(os.environ["SUBMARINE_INDEX"])
if rank == 0:
    for number in range(signal.SIGRTMIN, signal.SIGRTMAX + 1):
        signal.signal(number, signal.SIG_DFL)
else:
    os.closerange(3, 64)
    held = [open({file!r}, "w") for _ in range(60)]
time.sleep(1)
print("ready", flush=True)
time.sleep(18)
if rank == 1:
    assert not any(os.fstat(one.fileno()).st_size for one in held)
"""
    text = text.format(file=str(tmp_path / "own"))
    record = gang.run(text, [make_role("worker", 2)], **limits(stall=IdleLimit(LIMIT)))
    assert record.state is State.SUCCEEDED, gang.story()
    [event] = stalls(gang)
    assert event["detail"].count("its code replaced the signal") == 2


@pytest.mark.parametrize("action", ["warn", "end"])
def test_idle_gpus(
    gang: GangProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    # All jobs of this machine share the locks of devices.
    first, second = f"GPU-{action}-a", f"GPU-{action}-b"
    lines = device_line(first, 90) + device_line(second, 1)
    file = node_with_gpus(tmp_path, monkeypatch, lines)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    saved = """
import os, signal, time
def save(*_):
    with open(os.path.join(os.environ["SUBMARINE_CHECKPOINT_DIR"], "last"), "w") as file:
        file.write("saved")
    raise SystemExit(0)
signal.signal(signal.SIGTERM, save)
time.sleep(600)
"""
    gang.prepare(
        saved,
        [make_role("worker", 2, gpus=1)],
        **limits(idle_gpu=IdleLimit(LIMIT, action)),
        kill_grace=5.0,
    )
    gang.start()
    gang.wait_for_event("task", "running", 2)
    time.sleep(LIMIT + 5)
    assert not [event for event in gang.events() if event["kind"] == "idle_gpu"]
    replace_file(file, (device_line(first, 0) + device_line(second, 1)).encode())
    if action == "warn":
        gang.wait_for_event("idle_gpu", "The GPUs of worker:0, worker:1 were below 5 %")
        return
    record = gang.wait()
    assert (record.reason, record.state) == (EndReason.IDLE_GPU, State.CANCELLED), gang.story()
    found = list((gang.job_dir / "checkpoints").rglob("*"))
    assert any(b"saved" in path.read_bytes() for path in found if path.is_file()), found
