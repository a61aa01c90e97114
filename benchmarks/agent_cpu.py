"""CPU time of the agent during a training, as percent of a core.

A real agent runs a program that prints like Keras (a progress bar with carriage returns, five steps
a second) for some seconds, without a client that follows the log. With ``--gang`` it is a task of a
distributed job and sends a heartbeat every second to the coordinator's link server. Prints the
agent's user and system time, start included, and exits with 1 if it is above the limit.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

from submarine_jobs.access import create_secret
from submarine_jobs.submit.runtime_zip import write_runtime_zip
from submarine_runtime.network import bind_port
from submarine_runtime.port import Connection, PortServer
from submarine_runtime.protocol import (
    COORDINATOR_VARIABLE,
    SEAT_VARIABLE,
    TASK_VARIABLE,
    AgentConfig,
    JobRecord,
    JobSpec,
    JobStore,
    Member,
    Resources,
    Role,
    State,
    to_json,
)

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


def prepare(root: Path, seconds: float, gpus: int) -> Path:
    """Create a scratch directory with the agent's configuration."""
    job, scratch = root / "job", root / "scratch"
    job.mkdir()
    scratch.mkdir()
    role = Role("worker", 1, Resources(1024, 1, gpus))
    config = AgentConfig(
        spec=JobSpec("bench", "local", roles=(role,), args=(str(seconds),), framework="any"),
        record=JobRecord(JOB_ID, "bench", State.PENDING, backend="local", created=time.time()),
        intent="1",
        store=JobStore("local", str(job)),
        python=sys.executable,
        listen="127.0.0.1",
    )
    (scratch / "agent.json").write_text(json.dumps(to_json(config)))
    (scratch / "secret.json").write_bytes(create_secret(JOB_ID).to_bytes())
    with zipfile.ZipFile(scratch / "bundle.zip", "w") as bundle:
        bundle.writestr("main.py", PROGRAM)
    return scratch


class Gang:
    """The coordinator of a gang of one task."""

    def __init__(self, scratch: Path) -> None:
        secret = json.loads((scratch / "secret.json").read_text())
        self.reason, self.heartbeats, self.progress = "", 0, 0.0
        self._server = PortServer(bind_port("127.0.0.1"), secret)
        self._server.set_handlers(lambda request: None, self._hear)
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variables of the agent."""
        address = f"127.0.0.1:{self._server.port}"
        words = {TASK_VARIABLE: "worker:0", SEAT_VARIABLE: "worker-0.1"}
        return {**words, COORDINATOR_VARIABLE: address}

    def _serve(self) -> None:
        while True:
            self._server.poll(10.0)

    def _hear(self, peer: Connection, line: dict[str, Any]) -> None:
        kind = line["type"]
        if kind == "register":
            self._server.send(peer, {"type": "welcome", "heartbeat": 1.0, "lost_after": 25.0})
        elif kind == "heartbeat":
            self.heartbeats += 1
            self.progress = line.get("progress") or self.progress
            self._server.send(peer, {"type": "ack", "n": line["n"]})
        elif kind == "state" and line["state"] == "ready":
            me = Member("worker:0", "worker", 0, "127.0.0.1", "127.0.0.1", (4711,))
            start = {"epoch": 1, "attempt": 1, "members": [to_json(me)]}
            self._server.send(peer, {"type": "start", **start})
        elif kind == "state" and line["state"] == "ended":
            self.reason = line["reason"]
            self._server.send(peer, {"type": "leave"})


def main() -> int:
    """Run the benchmark and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--limit", type=float, default=1.0, help="percent of a core")
    parser.add_argument("--gpus", type=int, default=0, help="devices that are measured too")
    parser.add_argument("--gang", action="store_true", help="one task of a distributed job")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        scratch = prepare(root, options.seconds, options.gpus)
        runtime = write_runtime_zip(root / "cache")
        gang = Gang(scratch) if options.gang else None
        began = time.monotonic()
        # wait4 includes the children that the agent has waited for: subtract them.
        agent = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", str(runtime), "agent", "--directory", str(scratch)],
            {**os.environ, **(gang.environment if gang else {})},
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
        if gang is None:
            record = json.loads((root / "job/record.json").read_text())
            state, progress = record["state"], record["progress"]
        else:
            state, progress = gang.reason.upper(), gang.progress
            print(f"heartbeats: {gang.heartbeats}")
        files = sum(path.is_file() for path in (root / "job").rglob("*"))
    percent = 100 * own / wall
    print(f"job: {state}, progress {progress}, {wall:.1f} s")
    print(f"files in the job directory: {files}")
    print(f"agent: {own:.2f} s of CPU, {percent:.2f} % of a core (limit {options.limit:g} %)")
    return 0 if state == "SUCCEEDED" and percent <= options.limit else 1


if __name__ == "__main__":
    sys.exit(main())
