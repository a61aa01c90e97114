"""What the agent itself costs beside a training: its CPU as percent of a core.

A real agent runs a program that prints as Keras does (a progress bar with carriage returns, five
steps a second) for some seconds; nobody follows. Prints the agent's user and system time, start-up
included, and exits with 1 when it is more than the limit.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from submarine_jobs.credentials import new_secret
from submarine_jobs.runtime_zip import write_runtime_zip
from submarine_runtime.protocol.launch import AgentConfig, JobStore

JOB_ID = "bench-20261121-0a1b"
PROGRAM = """
import sys, time
epochs, steps = 12, int(float(sys.argv[1]) * 5 / 12)
for epoch in range(1, epochs + 1):
    print(f"Epoch {epoch}/{epochs}")
    for step in range(1, steps + 1):
        time.sleep(0.2)
        print(f"\\r{step}/{steps} \\x1b[32m----\\x1b[0m 200ms/step - loss: 0.5", end="", flush=True)
    print(f"\\nval_accuracy: 0.9{epoch}")
"""


def prepare(root: Path, seconds: float) -> Path:
    """A scratch directory with the orders in it."""
    job, scratch = root / "job", root / "scratch"
    job.mkdir()
    scratch.mkdir()
    config = AgentConfig(
        job_id=JOB_ID,
        name="bench",
        user="bench",
        backend="local",
        intent="1",
        created=time.time(),
        store=JobStore("local", str(job)),
        job_dir=str(job),
        python=sys.executable,
        args=[str(seconds)],
        memory=1024,
        listen="127.0.0.1",
    )
    (scratch / "agent.json").write_text(json.dumps(config.to_json()))
    (scratch / "secret.json").write_bytes(new_secret(JOB_ID).to_bytes())
    with zipfile.ZipFile(scratch / "bundle.zip", "w") as bundle:
        bundle.writestr("main.py", PROGRAM)
    return scratch


def main() -> int:
    """Run and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--limit", type=float, default=1.0, help="percent of a core")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        scratch = prepare(root, options.seconds)
        runtime = write_runtime_zip(root / "cache")
        began = time.monotonic()
        # The agent's own time is what wait4 gives less that of the children it has waited for.
        agent = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", str(runtime), "agent", "--directory", str(scratch)],
            os.environ,
        )
        own = 0.0
        while True:
            pid, _, _ = os.wait4(agent, os.WNOHANG)
            if pid:
                break
            fields = Path(f"/proc/{agent}/stat").read_text().rpartition(")")[2].split()
            own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            time.sleep(0.05)
        wall = time.monotonic() - began
        record = json.loads((root / "job/record.json").read_text())
        files = sum(path.is_file() for path in (root / "job").rglob("*"))
    percent = 100 * own / wall
    print(f"job: {record['state']}, progress {record['progress']}, {wall:.1f} s")
    print(f"files in the job directory: {files}")
    print(f"agent: {own:.2f} s of CPU, {percent:.2f} % of a core (limit {options.limit:g} %)")
    return 0 if record["state"] == "SUCCEEDED" and percent <= options.limit else 1


if __name__ == "__main__":
    sys.exit(main())
