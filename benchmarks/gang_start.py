"""Time from the last registration of an agent to the start of the program in all tasks of a gang.

The coordinator and the agents are real processes on this machine; the program is the shell's
``date``, not Python. Prints each run and the median, and exits with 1 if it is above the limit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

from submarine_jobs.access import create_secret
from submarine_jobs.submit.runtime_zip import write_runtime_zip
from submarine_runtime.protocol import (
    AgentConfig,
    CoordinatorConfig,
    JobRecord,
    JobSpec,
    JobStore,
    Resources,
    Role,
    State,
    to_json,
)

JOB_ID = "gang-20261121-0a1b"


def prepare(root: Path, tasks: int) -> Path:
    """Create the scratch directory of a job of ``tasks`` workers."""
    job, scratch = root / "job", root / "scratch"
    role = scratch / "worker"
    job.mkdir()
    role.mkdir(parents=True)
    roles = (Role("worker", tasks, Resources(0), command="date +%s.%N"),)
    common: dict[str, Any] = {
        "spec": JobSpec("gang", "local", roles=roles, framework="any"),
        "record": JobRecord(JOB_ID, "gang", State.PENDING, backend="local", created=time.time()),
        "intent": "1",
        "store": JobStore("local", str(job)),
        "listen": "127.0.0.1",
    }
    orders = CoordinatorConfig(**common, policy="all", application_attempts=1)
    agent = AgentConfig(**common)
    secret = create_secret(JOB_ID).to_bytes()
    (scratch / "coordinator.json").write_text(json.dumps(to_json(orders)))
    (role / "agent.json").write_text(json.dumps(to_json(agent)))
    for place in (scratch, role):
        (place / "secret.json").write_bytes(secret)
    with zipfile.ZipFile(role / "bundle.zip", "w") as bundle:
        bundle.writestr("notes.txt", "nothing to see")
    return scratch


def run(tasks: int) -> tuple[float, float]:
    """Return the milliseconds since the last registration, and since the last task was ready."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        scratch = prepare(root, tasks)
        runtime = write_runtime_zip(root / "cache")
        offset = time.time() - time.monotonic()
        command = [sys.executable, "-I", str(runtime), "supervise", "--directory", str(scratch)]
        code = subprocess.run(command, timeout=300, check=False).returncode
        if code:
            raise SystemExit(f"the job failed: {(root / 'job/record.json').read_text()[:2000]}")
        entries = [json.loads(line) for line in (scratch / "journal.jsonl").open()]
        registered = max(e["t"] for e in entries if e.get("type") == "register") + offset
        ready = max(e["t"] for e in entries if e.get("state") == "ready") + offset
        logs = list((root / "job/logs").glob("worker-*/e1-a1/stdout.0*"))
        started = [float(path.read_text()) for path in logs]
        if len(started) != tasks:
            raise SystemExit(f"{len(started)} of {tasks} programs were started")
        return 1000 * (max(started) - registered), 1000 * (max(started) - ready)


def main() -> int:
    """Run the benchmark and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=32)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--limit", type=float, default=200.0, help="ms")
    options = parser.parse_args()
    results = []
    for number in range(options.runs):
        whole, ready = run(options.tasks)
        results.append(whole)
        print(
            f"run {number + 1}: {whole:.0f} ms from the last registration, {ready:.0f} from ready"
        )
    median = statistics.median(results)
    print(f"median {median:.0f} ms for {options.tasks} tasks (limit {options.limit:g} ms)")
    return 0 if median <= options.limit else 1


if __name__ == "__main__":
    sys.exit(main())
