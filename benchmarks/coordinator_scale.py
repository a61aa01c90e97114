"""CPU time and memory of the coordinator of a job with many agents.

The coordinator is a real process. The agents are simulated by another process, which uses the real
protocol over a TLS connection for each agent, with a heartbeat a second. Prints the time until the
gang has started, and exits with 1 if the coordinator is above the limits.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from submarine_jobs.access import create_secret
from submarine_runtime.coordinator.coordinator import Coordinator
from submarine_runtime.coordinator.placement import Placer
from submarine_runtime.network import client_context
from submarine_runtime.port import TlsChannel
from submarine_runtime.protocol import (
    LINK_PROTOCOL,
    CoordinatorConfig,
    JobRecord,
    JobSpec,
    JobStore,
    Role,
    State,
    from_json,
    to_json,
)

JOB_ID = "scale-20261121-0a1b"


class NoPlacer(Placer):
    """Placer without containers: the simulated agents register by themselves."""

    def request(self, task: str, role: Role, seat: str) -> None:
        """Do nothing: the agents already run."""

    def release(self, seat: str) -> None:
        """Do nothing."""

    def poll(self) -> list[dict[str, Any]]:
        """Return no events."""
        return []

    def close(self) -> None:
        """Do nothing."""

    def terminate(self) -> None:
        """Do nothing."""


class ScaleCoordinator(Coordinator):
    """A coordinator with simulated agents."""

    def make_placer(self, address: str) -> Placer:
        """Return a placer that does nothing."""
        return NoPlacer()


class Agent:
    """One simulated agent."""

    def __init__(self, index: int, address: tuple[str, int], context: Any, token: str) -> None:
        connection = socket.create_connection(address)
        self.channel = TlsChannel(connection, context, server_side=False)
        self.index, self.beats, self.buffer, self.linked = index, 0, b"", False
        self.started: float | None = None
        self.over = False
        head = (
            f"GET /v1/link HTTP/1.1\r\nUpgrade: {LINK_PROTOCOL}\r\n"
            f"Authorization: Bearer {token}\r\n\r\n"
        )
        self.channel.send(head.encode())
        self.say(
            type="register",
            task=f"worker:{index}",
            seat=f"worker-{index}.1",
            nonce=str(index),
            container_id=f"container_{index}",
            host="127.0.0.1",
            address="127.0.0.1",
            pid=index,
            agent_port=1,
            ports=[20000 + index],
            gpus=[],
            node="n",
        )

    def say(self, **line: Any) -> None:
        """Send a line."""
        self.channel.send(json.dumps(line).encode() + b"\n")

    def hear(self) -> None:
        """Handle the received lines."""
        if not self.channel.handshake():
            return
        self.channel.flush()
        self.buffer += self.channel.receive()
        if not self.linked:
            _, gap, self.buffer = self.buffer.rpartition(b"\r\n\r\n")
            self.linked = bool(gap)
        *lines, self.buffer = self.buffer.split(b"\n")
        for line in lines:
            self.obey(json.loads(line))

    def obey(self, line: dict[str, Any]) -> None:
        """Act like an agent, without a program."""
        if line["type"] == "welcome":
            self.say(type="state", state="ready", epoch=0, attempt=0)
        elif line["type"] == "start":
            self.started = time.monotonic()
            words = {key: line[key] for key in ("epoch", "attempt")}
            self.say(type="state", state="running", pid=1, started=time.time(), **words)
        elif line["type"] == "leave":
            self.say(type="left")
            self.over = True

    def beat(self) -> None:
        """Send a heartbeat with the values that change in a running task."""
        self.beats += 1
        memory = 500.0 + self.beats % 7
        self.say(type="heartbeat", n=self.beats, memory_now=memory, cpu_seconds=self.beats * 0.9)


def simulate(count: int, address: tuple[str, int], secret: dict[str, str]) -> None:
    """Run ``count`` agents until the process ends; report when all have started."""
    context = client_context(secret["certificate"])
    selector = selectors.DefaultSelector()
    agents: list[Agent] = []
    began, told = time.monotonic(), False
    schedule = 0
    next_beat = time.monotonic()
    while True:
        if len(agents) < count:
            agent = Agent(len(agents), address, context, secret["token"])
            selector.register(agent.channel.sock, selectors.EVENT_READ, agent)
            agents.append(agent)
            agent.hear()
        pause = 0.0 if len(agents) < count else max(0.0, next_beat - time.monotonic())
        for key, _ in selector.select(pause):
            key.data.hear()
        # Distribute the heartbeats over the second.
        while agents and time.monotonic() >= next_beat:
            agents[schedule % len(agents)].beat()
            schedule += 1
            next_beat = max(next_beat + 1.0 / len(agents), time.monotonic() - 1.0)
        if not told and len(agents) == count and all(agent.started for agent in agents):
            told = True
            first = min(agent.started or 0.0 for agent in agents)
            last = max(agent.started or 0.0 for agent in agents)
            print(f"started {last - began:.2f} s, {1000 * (last - first):.0f} ms", flush=True)


def prepare(root: Path, count: int) -> dict[str, str]:
    """Create the coordinator's directory; return the secret."""
    job = root / "job"
    job.mkdir()
    config = CoordinatorConfig(
        spec=JobSpec("scale", "local", roles=(Role("worker", count),), framework="any"),
        record=JobRecord(JOB_ID, "scale", State.PENDING, backend="local", created=time.time()),
        intent="1",
        store=JobStore("local", str(job)),
        listen="127.0.0.1",
    )
    (root / "coordinator.json").write_text(json.dumps(to_json(config)))
    (root / "secret.json").write_bytes(create_secret(JOB_ID).to_bytes())
    secret: dict[str, str] = json.loads((root / "secret.json").read_text())
    return secret


def usage(pid: int) -> tuple[float, float]:
    """Return CPU seconds and resident MiB of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return cpu, int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def measure(options: argparse.Namespace) -> int:
    """Run both processes and report."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        prepare(root, options.agents)
        here = [sys.executable, __file__]
        coordinator = subprocess.Popen([*here, "--serve", name])
        live = root / "job/live.json"
        while not live.exists():
            time.sleep(0.05)
        port = json.loads(live.read_text())["port"]
        arguments = ["--simulate", name, "--port", str(port), "--agents", str(options.agents)]
        agents = subprocess.Popen([*here, *arguments], stdout=subprocess.PIPE, text=True)
        try:
            assert agents.stdout is not None
            print(f"{options.agents} agents: {agents.stdout.readline().strip()}")
            at_start, peak = usage(coordinator.pid)
            print(f"gang start: {at_start:.1f} s of CPU, {peak:.0f} MiB")
            time.sleep(5.0)
            before, began = usage(coordinator.pid)[0], time.monotonic()
            time.sleep(options.seconds)
            after, memory = usage(coordinator.pid)
            percent = 100 * (after - before) / (time.monotonic() - began)
        finally:
            for process in (agents, coordinator):
                process.send_signal(signal.SIGKILL)
                process.wait()
    print(f"coordinator: {percent:.2f} % of a core (limit {options.limit:g} %), {memory:.0f} MiB")
    return 0 if percent <= options.limit and max(memory, peak) <= options.memory else 1


def main() -> int:
    """Measure, or run one of the two processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--limit", type=float, default=100.0, help="percent of a core")
    parser.add_argument("--memory", type=float, default=300.0, help="MiB")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--simulate", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    place = options.serve or options.simulate
    if place is None:
        return measure(options)
    secret = json.loads(Path(place, "secret.json").read_text())
    if options.simulate:
        simulate(options.agents, ("127.0.0.1", options.port), secret)
    config = from_json(CoordinatorConfig, json.loads(Path(place, "coordinator.json").read_text()))
    return ScaleCoordinator(config, secret, place, master="").run()


if __name__ == "__main__":
    sys.exit(main())
