"""How programs end, each for real, and what the record says of it."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from submarine_runtime.protocol import EndReason, State
from tests.local.agent.agent_processes import OLDEST_PYTHONS, AgentProcesses
from tests.waiting import until


@pytest.mark.parametrize("python", OLDEST_PYTHONS)
def test_a_program_that_succeeds(agents: AgentProcesses, python: str) -> None:
    scratch = agents.prepare(
        "import sys\nprint('hello')\nprint('oops', file=sys.stderr)\n", python=python
    )
    assert agents.finish(agents.launch(scratch, python=python)) == 0
    record = agents.record()
    assert record.state is State.SUCCEEDED
    assert record.reason is EndReason.SUCCEEDED
    assert record.exit_code == 0
    assert agents.shipped("stdout") == b"hello\n"
    assert agents.shipped("stderr") == b"oops\n"
    assert record.logs == {"worker:0/e1-a1/stdout": 6, "worker:0/e1-a1/stderr": 5}
    states = [event.state for event in record.events if event.kind == "state"]
    assert states == [State.STARTING, State.RUNNING, State.FINISHING, State.SUCCEEDED]
    assert [event.seq for event in record.events] == list(range(len(record.events)))
    names = [phase.name for phase in record.phases]
    assert names == ["localizing", "start", "first_line", "run", "save"]
    assert all(phase.end is not None and phase.end >= phase.start for phase in record.phases)
    assert record.tasks[0].state is State.SUCCEEDED
    assert record.resources["used"]["namenode_operations"] == 0


def test_what_the_program_finds(agents: AgentProcesses) -> None:
    source = (
        "import json, os, sys\n"
        "print(json.dumps([dict(os.environ), os.getcwd(), sys.argv, os.listdir('.')]))\n"
    )
    record = agents.run(
        source,
        args=["--epochs", "3"],
        env={"A": 'x "y" $Z'},
        input_path="hdfs://nn/data",
        files={"pkg/model.py": ""},
    )
    assert record.exit_code == 0
    environment, directory, argv, files = json.loads(agents.log("stdout"))
    scratch = agents.scratch()
    assert directory == str(scratch / "program")
    assert argv == ["main.py", "--epochs", "3"]
    assert sorted(files) == ["main.py", "pkg"]
    assert environment["A"] == 'x "y" $Z'
    assert environment["SUBMARINE_INPUT_PATH"] == "hdfs://nn/data"
    assert environment["SUBMARINE_JOB_ID"] == record.job_id
    assert environment["SUBMARINE_ROLE"] == "worker"
    assert environment["SUBMARINE_INDEX"] == "0"
    assert (environment["SUBMARINE_EPOCH"], environment["SUBMARINE_ATTEMPT"]) == ("1", "1")
    assert environment["PYTHONUNBUFFERED"] == "1"
    assert "TF_CONFIG" not in environment
    for text in (agents.secret.token, agents.secret.key):
        assert text not in agents.log("stdout").decode()


@pytest.mark.parametrize(
    ("source", "code", "detail"),
    [
        ("import sys; sys.exit(3)", 3, "Exit code 3."),
        ("import sys; sys.exit('enough')", 1, "Exit code 1: enough"),
        ("import os; os._exit(7)", 7, "Exit code 7."),
        ("raise ValueError('no\\x1b[31m <b>')", 1, "ValueError: no\x1b[31m <b>"),
    ],
)
def test_program_errors(agents: AgentProcesses, source: str, code: int, detail: str) -> None:
    agent = agents.start(source)
    assert agents.finish(agent) == 1
    record = agents.record()
    assert (record.state, record.reason) == (State.FAILED, EndReason.PROGRAM_ERROR)
    assert (record.exit_code, record.signal, record.detail) == (code, None, detail)


def test_a_traceback_names_its_cells(agents: AgentProcesses) -> None:
    source_map = {
        "version": 1,
        "files": {
            "main.py": [{"start": 1, "end": 9, "cell": "[5]", "cell_id": "b", "line": 1}],
            "model.py": [
                {"start": 1, "end": 2, "cell": "[2]", "cell_id": None, "line": 1},
                {"start": 3, "end": 9, "cell": "[3]", "cell_id": "abc", "line": 2},
            ],
        },
    }
    record = agents.run(
        "import model\ntry:\n    model.f()\n"
        "except KeyError as exc:\n    raise OSError('x') from exc",
        files={
            "model.py": "\n\ndef f():\n    {}['a']\n",
            ".submarine/sourcemap.json": json.dumps(source_map),
        },
    )
    assert record.failure is not None
    frame = record.failure.frames[-1]
    assert (frame.file, frame.line, frame.cell, frame.cell_line) == ("main.py", 5, "[5]", 5)
    assert 'Cell [3] "model.py", line 3, in f' in record.failure.text
    assert record.failure.type == "OSError"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import nothing_of_that_name", EndReason.IMPORT_ERROR),
        ("from os import nothing_of_that_name", EndReason.IMPORT_ERROR),
        ("raise MemoryError", EndReason.OUT_OF_MEMORY),
        ("raise OSError(28, 'No space left on device')", EndReason.DISK_FULL),
        ("if True", EndReason.PROGRAM_ERROR),
    ],
)
def test_kinds_of_exceptions(agents: AgentProcesses, source: str, reason: EndReason) -> None:
    assert agents.run(source).reason is reason


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_signals(agents: AgentProcesses, number: signal.Signals) -> None:
    record = agents.run(f"import os\nprint('here')\nos.kill(os.getpid(), {int(number)})")
    assert record.reason is EndReason.KILLED_BY_SIGNAL
    assert record.signal == int(number)
    assert record.exit_code is None
    assert number.name in record.detail
    assert agents.shipped("stdout") == b"here\n"


def test_a_crash_in_native_code_shows_where(agents: AgentProcesses) -> None:
    record = agents.run("import ctypes\ndef crash():\n    ctypes.string_at(0)\ncrash()")
    assert record.signal == signal.SIGSEGV
    assert b"in crash" in agents.shipped("stderr")


def test_too_much_memory_is_ended_by_the_agent(agents: AgentProcesses) -> None:
    source = "import time\nprint('all')\nx = bytearray(400 << 20)\ntime.sleep(60)"
    record = agents.run(source, memory=200, memory_slack=50)
    assert record.reason is EndReason.OUT_OF_MEMORY
    assert record.signal == signal.SIGKILL
    assert "of 200 MiB" in record.detail
    assert record.resources["used"]["memory_peak"] > 250
    assert agents.shipped("stdout") == b"all\n"


def test_memory_of_children_counts(agents: AgentProcesses) -> None:
    source = (
        "import subprocess, sys, time\n"
        "code = 'x = bytearray(150 << 20); import time; time.sleep(60)'\n"
        "for _ in range(3):\n"
        "    subprocess.Popen([sys.executable, '-c', code], start_new_session=True)\n"
        "time.sleep(60)"
    )
    record = agents.run(source, memory=300)
    assert record.reason is EndReason.OUT_OF_MEMORY
    until(lambda: not _running(agents))


def test_sigkill_near_the_limit_is_out_of_memory(agents: AgentProcesses) -> None:
    source = (
        "import os, signal, time\nx = bytearray(285 << 20)\ntime.sleep(4.5)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert agents.run(source, memory=300).reason is EndReason.OUT_OF_MEMORY


def test_timeout(agents: AgentProcesses) -> None:
    source = (
        "import signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('asked', flush=True))\n"
        "print('go')\nwhile True: time.sleep(1)"
    )
    record = agents.run(source, timeout=3.0, kill_grace=0.5)
    assert record.reason is EndReason.TIMED_OUT
    assert record.signal == signal.SIGKILL
    assert agents.shipped("stdout") == b"go\nasked\n"
    run = next(phase for phase in record.phases if phase.name == "run")
    assert run.end is not None
    assert 3.4 < run.end - run.start < 60


@pytest.mark.parametrize(
    "config",
    [
        {"python": "/nowhere/python"},
        {"python": "/etc/passwd"},
        {"python": "/bin/false"},
        {"command": "nothing-of-that-name --x"},
        {"framework": "abacus"},
    ],
)
def test_what_cannot_be_launched(agents: AgentProcesses, config: dict[str, str]) -> None:
    record = agents.run("print(1)", **config)
    assert record.reason is EndReason.LAUNCH_FAILED
    assert record.detail


def test_a_shell_command(agents: AgentProcesses) -> None:
    record = agents.run(None, command="echo $SUBMARINE_ROLE; cat data.txt", files={"data.txt": "d"})
    assert record.state is State.SUCCEEDED
    assert agents.shipped("stdout") == b"worker\nd"


def test_a_shell_command_that_fails_in_python(agents: AgentProcesses) -> None:
    command = f"{sys.executable} main.py"
    record = agents.run("def f():\n    import nothing_of_that_name\nf()", command=command)
    assert record.reason is EndReason.IMPORT_ERROR
    assert record.failure is not None
    assert [(f.file, f.line) for f in record.failure.frames] == [("main.py", 3), ("main.py", 2)]


def test_a_shell_command_whose_child_is_shot(agents: AgentProcesses) -> None:
    record = agents.run(None, command="bash -c 'kill -SEGV $$'; exit $?")
    assert (record.reason, record.signal) == (EndReason.KILLED_BY_SIGNAL, signal.SIGSEGV)


def test_what_is_left_behind_is_ended(agents: AgentProcesses) -> None:
    source = (
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'])\n"
    )
    record = agents.run(source)
    assert record.state is State.SUCCEEDED
    assert any(
        "a process that the program had left behind" in event.detail for event in record.events
    )
    until(lambda: not _running(agents))


def test_a_program_that_was_told_to_end_has_left_nothing_behind(agents: AgentProcesses) -> None:
    child = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1); time.sleep(300)"
    record = agents.run(None, command=f"{sys.executable} -uc '{child}' & wait", timeout=2.0)
    assert record.reason is EndReason.TIMED_OUT
    assert not any("behind" in event.detail for event in record.events)
    until(lambda: not _running(agents))


def _running(agents: AgentProcesses) -> list[str]:
    """Processes whose working directory is the program's."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "cwd").startswith(str(agents.root)):
                found.append((entry / "cmdline").read_text())
        except OSError:
            continue
    return found
