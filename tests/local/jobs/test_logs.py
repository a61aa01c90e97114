"""Logs of every kind: as many bytes in the job directory as were written, the same ones."""

from __future__ import annotations

import time
from pathlib import Path

from submarine_jobs.access import JobDirectory
from submarine_jobs.logs import ShippedLog
from submarine_jobs.storage import LocalStorage
from submarine_runtime.protocol import State
from tests.local.agent.agent_processes import AgentProcesses
from tests.waiting import until


def test_a_killed_agent_has_shipped_its_log(agents: AgentProcesses) -> None:
    """Long before a segment is due."""
    source = "import time\nprint('begin', flush=True)\nprint('next', flush=True)\ntime.sleep(600)\n"
    agent = agents.start(source, ship_interval=3600.0)
    until(lambda: agents.shipped("stdout").endswith(b"next\n"))
    agent.kill()
    agent.wait(60)
    log = ShippedLog(JobDirectory(LocalStorage(), str(agents.job_dir)))
    log.refresh()
    assert log.read("stdout", 0, 100).data == b"begin\nnext\n"


def test_200_mb_of_log(agents: AgentProcesses) -> None:
    source = (
        "import sys, time, resource\n"
        "line = ''.join(chr(33 + i % 90) for i in range(999)) + '\\n'\n"
        "t = time.time()\n"
        "for i in range(2000): sys.stdout.write(line * 100)\n"
        "sys.stdout.flush()\n"
        "print(time.time() - t, file=sys.stderr)\n"
    )
    agent = agents.start(source)
    peak = 0
    while agent.poll() is None:
        try:
            with open(f"/proc/{agent.pid}/status") as file:
                lines = [line for line in file if line.startswith("VmHWM")]
            peak = max(peak, int(lines[0].split()[1])) if lines else peak
        except (OSError, IndexError):
            pass
        time.sleep(0.02)
    agents.finish(agent)
    record = agents.record()
    assert record.state is State.SUCCEEDED
    assert record.logs["worker:0/e1-a1/stdout"] == 200_000_000
    assert agents.shipped("stdout") == agents.log("stdout")
    segments = list((agents.job_dir / "logs/worker-0/e1-a1").glob("stdout.0*"))
    assert len(segments) < 120
    assert peak < 60 << 10, f"{peak} kB"


def test_segments_come_while_the_program_runs(agents: AgentProcesses) -> None:
    source = (
        "import time\nfor i in range(30):\n    print('x' * 999, flush=True)\n    time.sleep(0.1)\n"
    )
    record = agents.run(source, ship_interval=0.3, ship_bytes=1 << 20)
    directory = agents.job_dir / "logs/worker-0/e1-a1"
    assert len(list(directory.glob("stdout.0*"))) >= 3
    assert agents.shipped("stdout") == agents.log("stdout")
    index = [line.split() for line in (directory / "stdout.index").read_text().splitlines()]
    offsets = [int(offset) for offset, _ in index]
    assert offsets == sorted(set(offsets))
    assert offsets[-1] == 30_000
    assert record.created is not None
    assert all(record.created - 1 < float(moment) < time.time() + 1 for _, moment in index)
    events = sorted(path.name for path in (agents.job_dir / "events").iterdir())
    assert events[0] == "agent-000000.jsonl"


def test_bytes_are_kept_as_they_are(agents: AgentProcesses) -> None:
    source = (
        "import sys\n"
        "sys.stdout.buffer.write(bytes(range(256)) * 3)\n"
        "sys.stdout.buffer.write(b'\\r 1%\\r 2%\\x1b[31mred\\x1b[0m<script>alert(1)</script>')\n"
        "sys.stderr.buffer.write(b'\\xff\\xfe no newline at the end')\n"
        "sys.stdout.flush()\nsys.exit(1)\n"
    )
    record = agents.run(source)
    assert agents.shipped("stdout") == agents.log("stdout")
    assert agents.shipped("stdout").endswith(b"</script>")
    assert agents.shipped("stderr").startswith(b"\xff\xfe")
    assert "no newline at the end" in record.detail


def test_a_log_that_its_program_deletes(agents: AgentProcesses) -> None:
    source = "import os\nprint('x')\nos.remove('../worker-0.stdout.log')\nprint('y')\n"
    record = agents.run(source)
    assert record.state is State.SUCCEEDED
    assert not (agents.scratch() / "worker-0.stdout.log").exists()


def test_progress_of_keras_is_seen(agents: AgentProcesses) -> None:
    source = (
        "import time\nprint('Epoch 3/4')\n"
        "print('\\r 5/10 \\x1b[32m----\\x1b[0m 1s', end='', flush=True)\ntime.sleep(3)\n"
    )
    assert agents.run(source).progress == 0.625


def test_the_reported_progress_is_seen(agents: AgentProcesses) -> None:
    source = "import sys, time\nprint('report:progress:0.25', file=sys.stderr)\ntime.sleep(3)\n"
    record = agents.run(source)
    assert record.progress == 0.25
    assert record.tasks[0].progress == 0.25


def test_a_file_where_the_log_directory_should_be(agents: AgentProcesses, tmp_path: Path) -> None:
    (agents.job_dir / "logs").write_text("in the way")
    record = agents.run("print(1)", save_grace=1.0)
    assert record.reason is not None
    assert record.reason.value == "output_not_saved"
    assert record.missing
