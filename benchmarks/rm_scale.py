"""What users do on a cluster of 4,000 nodes with 1,000 applications, over a cluster of one node.

A minicluster has one real NodeManager, on which our jobs run. Each action is measured there, and
again after ``simulated_nodes.py`` has added NodeManagers and applications to the same real
ResourceManager. The ratio of both is printed with the requests and bytes of each action.

Then 12 containers start each second on simulated nodes, and the jobs panel polls 200 of our
applications. The CPU time of the ResourceManager is measured in turn without the panel, with it,
and with it while one waiting job and the view of the cluster are on display. The difference of two
such stretches is within the noise of a shared machine, so the share of the panel is calculated: CPU
time of one poll, from a series without a pause, times polls a minute, over the CPU time without it.

Run: ``python benchmarks/rm_scale.py [--nodes N] [--applications N] [--gang N] [--json FILE]``
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from distributed_latency import PROGRAM
from on_minicluster import bundle_of, open_session, spec_of
from simulated_nodes import PROPERTIES, ContainerStarts, SimulatedApplications, SimulatedNodes

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.cluster import Survey, tag_of
from submarine_jobs.backends.yarn.driver import stop_driver
from submarine_jobs.commands import execute
from submarine_jobs.frontends import Frontend
from submarine_jobs.model import Resources
from submarine_jobs.submit import submit
from submarine_minicluster import Minicluster, Settings
from submarine_runtime.cluster_http import Answer
from submarine_runtime.yarn import TAG, ContainerRequest, ResourceManagerClient

#: Target: percent of the ResourceManager's CPU time that the panel may add.
TARGET = 2.0
STARTS = 12
#: Seconds between two polls of the panel while nothing changes.
INTERVAL = 10.0
_SERIES = 30
_WORKER = Resources(192, 1, 1)
WITHOUT = "without the panel"


class Shell(Frontend):
    """The command line, without a terminal and without output."""

    kind = "cli"


class Traffic:
    """Counts requests to ResourceManagers and the bytes of their responses."""

    def __init__(self) -> None:
        self.requests = self.bytes = 0
        request = ResourceManagerClient.request

        def counted(client: ResourceManagerClient, *words: Any, **more: Any) -> Answer:
            answer = request(client, *words, **more)
            self.requests += 1
            self.bytes += len(answer.body)
            return answer

        ResourceManagerClient.request = counted  # type: ignore[method-assign, assignment]


@dataclass
class Cost:
    """Median seconds of an action, and its requests, bytes and CPU seconds of the server."""

    seconds: float
    requests: float
    bytes: float
    cpu: float


class Bench:
    """Measures actions on one cluster.

    Parameters
    ----------
    jobs
        Ids of our watched jobs and their applications.
    waiting
        One of them, which waits for its master.
    """

    def __init__(
        self, cluster: Minicluster, scratch: Path, jobs: Mapping[str, str], waiting: str
    ) -> None:
        self.scratch, self.traffic = scratch, Traffic()
        pid = next(d.pid for d in cluster.status().daemons if d.name == "resourcemanager")
        self._server = psutil.Process(pid)
        self.handles: dict[str, Any] = {
            job_id: {"application_id": identity} for job_id, identity in jobs.items()
        }
        self.waiting = waiting

    def cpu(self) -> float:
        """Return the CPU seconds of the ResourceManager so far."""
        times = self._server.cpu_times()
        return float(times.user + times.system)

    def cost(self, action: Callable[[], object], runs: int) -> Cost:
        """Repeat an action."""
        traffic, cpu, times = (self.traffic.requests, self.traffic.bytes), self.cpu(), []
        for _ in range(runs):
            began = time.perf_counter()
            action()
            times.append(time.perf_counter() - began)
        return Cost(
            statistics.median(times),
            (self.traffic.requests - traffic[0]) / runs,
            (self.traffic.bytes - traffic[1]) / runs,
            (self.cpu() - cpu) / runs,
        )

    def backend(self) -> YarnBackend:
        """Return a backend without cached responses, as a new process has."""
        found = open_session(self.scratch / "state", {}).backend()
        assert isinstance(found, YarnBackend)
        return found

    def panel(self, *, view: bool) -> Callable[[], None]:
        """Return what polls the jobs panel as the server extension does, after some polls.

        Parameters
        ----------
        view
            Whether a waiting job and the view of the cluster are on display.
        """
        backend = self.backend()
        survey = Survey(backend.rm, backend.waits, backend.user)

        def poll() -> None:
            if view:
                backend.overview()
            if len(survey.poll(self.handles, [self.waiting] * view)) != len(self.handles):
                raise RuntimeError("a poll lacks jobs")

        for _ in range(5):
            poll()
        return poll

    def actions(self, runs: int, gang: int) -> dict[str, Cost]:
        """Measure all actions."""
        spec = spec_of("plan", str(self.scratch), count=2, resources=_WORKER)
        needs = [ContainerRequest(2, 512, 1, 1)]
        words = ["run", "probe", "--dry-run", "--memory", "256M", "--worker_launch_cmd", "true"]
        warm = self.backend()
        warm.plan(spec)
        found = {
            "doctor": self.cost(lambda: execute(["doctor"], Shell()), 1),
            "dry run": self.cost(lambda: execute(words, Shell()), runs),
            "plan": self.cost(lambda: self.backend().plan(spec), runs),
            "plan in a running kernel": self.cost(lambda: warm.plan(spec), runs),
            "pending sentence": self.cost(
                lambda: self.backend().waits.would_wait(needs, "default"), runs
            ),
            "poll of the jobs panel": self.cost(self.panel(view=False), 3 * runs),
            "poll with a wait and the cluster": self.cost(self.panel(view=True), 3 * runs),
        }
        if gang:
            name = f"gang of {gang}: first line in all"
            found[name] = self.cost(lambda: self.gang(gang), 1)
        return found

    def gang(self, count: int) -> None:
        """Run a gang and wait for the first line of each task."""
        out = Path(tempfile.mkdtemp(dir=self.scratch))
        session = open_session(self.scratch / "state", {})
        spec = spec_of("gang", str(out), count=count, resources=_WORKER)
        job = submit(session, spec, bundle_of(PROGRAM))
        deadline = time.monotonic() + 420
        while sum(path.suffix != ".tmp" for path in out.iterdir()) < count:
            if time.monotonic() > deadline or job.view().record.state.ended:
                raise RuntimeError(f"the gang has not started: {job.view().record}")
            time.sleep(0.2)
        # The record is written afterwards; the wait for it is no part of the figure.
        threading.Thread(target=job.wait, kwargs={"timeout": 120}, daemon=True).start()


@contextmanager
def polls_of(panel: Callable[[], None]) -> Iterator[None]:
    """Poll in a thread."""
    ended = threading.Event()

    def polls() -> None:
        while not ended.wait(INTERVAL):
            panel()

    thread = threading.Thread(target=polls, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(60)


def load_of(bench: Bench, starts: ContainerStarts, seconds: float) -> dict[str, float]:
    """Return the figures of the ResourceManager of a minute."""
    cpu, began, granted = bench.cpu(), time.monotonic(), starts.granted
    requests, read = bench.traffic.requests, bench.traffic.bytes
    time.sleep(seconds)
    minutes = (time.monotonic() - began) / 60
    return {
        "CPU seconds": (bench.cpu() - cpu) / minutes,
        "requests": (bench.traffic.requests - requests) / minutes,
        "kilobytes": (bench.traffic.bytes - read) / minutes / 1024,
        "container starts": (starts.granted - granted) / minutes,
    }


def measure(cluster: Minicluster, scratch: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return all figures."""
    backend = open_session(scratch / "state", {}).backend()
    assert isinstance(backend, YarnBackend)
    applications = SimulatedApplications(cluster, backend.user)
    jobs = {f"watched-20261129-{number:04x}": "" for number in range(options.watched)}
    waiting = list(jobs)[-1]
    for job_id in jobs:
        # Without containers, which the real node would have to run.
        jobs[job_id] = applications.run(
            job_id,
            containers=0,
            register=job_id != waiting,
            kind="skein",
            tags=(TAG, tag_of(job_id)),
        ).identity
    bench = Bench(cluster, scratch, jobs, waiting)
    if options.gang:
        bench.gang(2)  # Starts the driver and fills the caches.
    load = [os.getloadavg()[0]]
    one_node = bench.actions(options.runs, options.gang)
    nodes = SimulatedNodes(cluster, options.nodes)
    print(f"registering {options.nodes} nodes", flush=True)
    nodes.start()
    others = [
        applications.run(f"etl-{number}") for number in range(options.applications - len(jobs))
    ]
    print(f"{len(others) + len(jobs)} applications run", flush=True)
    load.append(os.getloadavg()[0])
    starts = ContainerStarts(nodes, applications, others[:STARTS])
    starts.start()
    try:
        large = bench.actions(options.runs, options.gang)
        load.append(os.getloadavg()[0])
        stretches = measure_load(bench, starts, options)
        series = bench.cost(bench.panel(view=False), _SERIES)
        load.append(os.getloadavg()[0])
    finally:
        starts.stop()
        nodes.stop()
        applications.close()
        stop_driver(backend.profile)
    without = statistics.median(each["CPU seconds"] for each in stretches[WITHOUT])
    polls = 60 / INTERVAL
    return {
        "load average": load,
        "one node": {name: vars(cost) for name, cost in one_node.items()},
        "large": {name: vars(cost) for name, cost in large.items()},
        "heartbeats": nodes.heartbeats,
        "heartbeats late by": nodes.late,
        "stretches": stretches,
        "CPU milliseconds of a poll": 1000 * series.cpu,
        "percent of CPU by the panel": 100 * series.cpu * polls / without,
    }


def measure_load(
    bench: Bench, starts: ContainerStarts, options: argparse.Namespace
) -> dict[str, list[dict[str, float]]]:
    """Measure the ResourceManager with and without the panel in turn."""
    panels = {"with the panel": bench.panel(view=False), "with a view": bench.panel(view=True)}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in (WITHOUT, *panels)}
    for _ in range(options.stretches):
        found[WITHOUT].append(load_of(bench, starts, options.seconds))
        for name, panel in panels.items():
            with polls_of(panel):
                found[name].append(load_of(bench, starts, options.seconds))
    return found


def report(result: dict[str, Any]) -> None:
    """Print the figures."""
    print(f"load average {', '.join(f'{one:.1f}' for one in result['load average'])}")
    print(
        f"{'':40}{'one node':>9}{'large':>9}{'ratio':>7}{'requests':>9}{'KB':>8}{'RM CPU ms':>10}"
    )
    for name, cost in result["large"].items():
        small = result["one node"][name]
        print(
            f"{name:40}{small['seconds']:8.3f}s{cost['seconds']:8.3f}s"
            f"{cost['seconds'] / small['seconds']:7.2f}{cost['requests']:9.1f}"
            f"{cost['bytes'] / 1024:8.0f}{1000 * cost['cpu']:10.0f}"
        )
    for name, stretches in result["stretches"].items():
        for each in stretches:
            figures = ", ".join(f"{value:.1f} {what}" for what, value in each.items())
            print(f"a minute {name}: {figures}")
    late = result["heartbeats late by"]
    print(f"{result['heartbeats']} heartbeats of simulated nodes, late by at most {late:.1f} s")
    print(f"one poll: {result['CPU milliseconds of a poll']:.1f} ms of the ResourceManager's CPU")
    share = result["percent of CPU by the panel"]
    print(f"the panel adds {share:.2f} % of the ResourceManager's CPU, target at most {TARGET}")


def main() -> int:
    """Run the benchmark; return 1 if the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=4000)
    parser.add_argument("--applications", type=int, default=1000)
    parser.add_argument("--watched", type=int, default=200)
    parser.add_argument("--gang", type=int, default=64, help="0: no gang")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--stretches", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0, help="length of a stretch")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    cluster = Minicluster("benchmark-rm-scale")
    size = {"memory_mb": 1 << 18, "vcores": 1024, "gpus": max(options.gang, 2)}
    try:
        cluster.start(Settings(node_expiry=600, properties=PROPERTIES, **size))
        os.environ.update(cluster.environ(), SUBMARINE_BACKEND="yarn")
        with tempfile.TemporaryDirectory(prefix="rm-scale-") as scratch:
            os.environ.update(SUBMARINE_STATE_DIR=f"{scratch}/state", XDG_CONFIG_HOME=scratch)
            os.chdir(scratch)
            result = measure(cluster, Path(scratch), options)
            os.chdir("/")
    finally:
        cluster.stop(delete_data=True)
    report(result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))
    return 0 if result["percent of CPU by the panel"] <= TARGET else 1


if __name__ == "__main__":
    raise SystemExit(main())
