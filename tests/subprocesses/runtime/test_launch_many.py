"""Several processes of one program: their lines, and which of them failed first."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import submarine_runtime
from submarine_runtime.agent.program.environment import failure_file
from submarine_runtime.agent.program.first_failure import FailedProcess, first_failure
from submarine_runtime.frameworks import CONSEQUENCE
from submarine_runtime.launcher.launch_many import DRAIN

LAUNCHER = Path(submarine_runtime.__file__).parent / "launcher"
LABELS = ["4", "5", "6"]


def launch(
    directory: Path, source: str, unread: float = 0.0
) -> tuple[subprocess.CompletedProcess[bytes], Path]:
    """Run three processes of a program as the agent does; return the end and the log.

    ``unread``: seconds in which the output is not read.
    """
    launch = directory / "launch"
    launch.mkdir()
    for name in ("launch.py", "launch_many.py"):
        (launch / name).write_bytes((LAUNCHER / name).read_bytes())
    (directory / "main.py").write_text(source)
    orders = {
        "command": [sys.executable, str(launch / "launch.py"), "main.py"],
        "variables": [{"RANK": label, "PYTHONUNBUFFERED": "1"} for label in LABELS],
        "labels": LABELS,
        "failures": [str(directory / failure_file(number)) for number in range(len(LABELS))],
        "consequence": CONSEQUENCE,
    }
    (launch / "processes.json").write_text(json.dumps(orders))
    paths = [str(launch / name) for name in ("launch_many.py", "processes.json")]
    command = [sys.executable, "-I", "-S", *paths]
    with (
        (directory / "stderr").open("wb") as stderr,
        subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, stderr=stderr) as process,
    ):
        time.sleep(unread)
        try:
            text, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    return subprocess.CompletedProcess(command, process.returncode, text), directory / "stderr"


def failed(directory: Path, source: str) -> FailedProcess:
    ended, log = launch(directory, source)
    assert ended.returncode != 0
    return first_failure(
        str(directory), str(directory / "launch"), str(log), ended.returncode, LABELS
    )


def test_lines_are_whole_and_labelled(tmp_path: Path) -> None:
    source = """
import os, sys, time
rank = os.environ["RANK"]
for number in range(200):
    for piece in (rank * 30, " ", str(number), "\\n"):
        sys.stdout.write(piece)
        sys.stdout.flush()
sys.stdout.write("\\r10%\\r20%\\r\\nno end")
"""
    ended, _ = launch(tmp_path, source)
    assert ended.returncode == 0
    text = ended.stdout.decode()
    for label in LABELS:
        own = re.findall(rf"(?m)^\[{label}\] ({label}{{30}} \d+)\n", text)
        assert own == [f"{label * 30} {number}" for number in range(200)]
        ends = [text.index(f"[{label}] {word}") for word in ("10%\r", "20%\n", "no end\n")]
        assert ends == sorted(ends)
    exits = json.loads((tmp_path / "launch/exits.json").read_text())
    assert sorted(one["process"] for one in exits) == [0, 1, 2]
    assert not any(one["status"] or one["stopped"] for one in exits)


def test_no_line_is_lost_when_the_log_is_slow(tmp_path: Path) -> None:
    """The processes have ended long before all that they wrote can be copied."""
    ended, _ = launch(tmp_path, 'print("x" * 40_000, flush=True)', unread=DRAIN + 2)
    assert ended.returncode == 0
    lines = {f"[{label}] {'x' * 40_000}" for label in LABELS}
    assert set(ended.stdout.decode().splitlines()) == lines


#: Process 1 fails at once in one of four ways, and the others lose their peer. They may exit first.
PEERS = """
import atexit, os, signal, sys, time
if os.environ["SUBMARINE_PROCESS"] != "1":
    while not os.path.exists("failing"):
        time.sleep(0.01)
    time.sleep({delay})
    raise RuntimeError("[gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]")
time.sleep(0.3)
{cause}
"""
FAILING = "open('failing', 'w').close()"


@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.parametrize(
    ("cause", "status", "name"),
    [
        (f"atexit.register(time.sleep, 1.5); {FAILING}; raise ValueError('x')", 1, "ValueError"),
        (f"atexit.register(time.sleep, 1.5); {FAILING}; sys.exit(3)", 3, "SystemExit"),
        (f"{FAILING}; os.kill(os.getpid(), signal.SIGSEGV)", -11, None),
        (f"{FAILING}; os._exit(7)", 7, None),
    ],
    ids=["exception", "sys.exit", "signal", "os._exit"],
)
def test_the_process_that_failed_first(
    tmp_path: Path, cause: str, status: int, name: str | None, delay: int
) -> None:
    first = failed(tmp_path, PEERS.format(cause=cause, delay=delay))
    assert (first.number, first.status) == (1, status)
    assert (first.failure.type if first.failure is not None else None) == name


def test_an_exception_that_a_finally_clause_delays(tmp_path: Path) -> None:
    cause = f"""
try:
    raise KeyError("x")
finally:
    {FAILING}
    time.sleep(1.5)
"""
    first = failed(tmp_path, PEERS.format(cause=cause, delay=0))
    assert (first.number, first.failure and first.failure.type) == (1, "KeyError")


def test_only_lost_peers(tmp_path: Path) -> None:
    first = failed(tmp_path, "raise ConnectionResetError('peer')")
    assert first.failure is not None
    assert first.failure.type == "ConnectionResetError"


def test_the_error_file_of_torch(tmp_path: Path) -> None:
    source = """
import json, os, time, traceback
try:
    raise ValueError("bad")
except ValueError:
    extra = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
if os.environ["SUBMARINE_PROCESS"] == "2":
    with open("torch-error-2.json", "w") as file:
        json.dump({"message": {"message": "ValueError: bad", "extraInfo": extra}}, file)
    os._exit(1)
time.sleep(30)
"""
    first = failed(tmp_path, source)
    assert (first.number, first.status) == (2, 1)
    assert first.failure is not None
    assert (first.failure.type, first.failure.message) == ("ValueError", "bad")
    assert [(frame.file, frame.line) for frame in first.failure.frames] == [
        (str(tmp_path / "main.py"), 4)
    ]
