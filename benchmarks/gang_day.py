"""A day of gangs on eight counted GPUs, with Submarine and with bare skein.

Each of the 40 jobs needs 1 to 4 containers with one GPU each, and computes for some seconds when it
has all of them. With bare skein a job requests its containers one by one and starts when all are
there; it never gives one back. Both run the same jobs in the same order on the same minicluster,
one system after the other, with the same number of jobs submitted at a time.

Printed are the makespan, the GPU seconds that gangs without all their containers held, and the
deadlocks: no job is complete and no GPU has changed hands for some time. A deadlock is broken as an
operator would: the youngest of the jobs that hold GPUs is killed and submitted again.

Run: ``python benchmarks/gang_day.py [--jobs N] [--minicluster NAME] [--json FILE]``
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from on_minicluster import bundle_of, open_session, spec_of

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.driver import stop_driver
from submarine_jobs.client import Session
from submarine_jobs.model import Resources
from submarine_jobs.submit import submit
from submarine_minicluster import Minicluster, Settings
from submarine_runtime.yarn import REQUESTS_AND_TIMEOUTS, Application, applications_of

GPUS = 8
#: Seconds between two samples of the ResourceManager.
SAMPLE = 0.5
#: Seconds after which one of our gangs releases what it has.
PATIENCE = 20.0

PROGRAM = "import sys, time\ntime.sleep(float(sys.argv[1]))\n"
#: A container of bare skein waits for the others of its job in a directory of this machine.
MEMBER = """\
import os, sys, time
place, size, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
open(os.path.join(place, str(os.getpid())), "w").close()
while len(os.listdir(place)) < size: time.sleep(0.1)
time.sleep(seconds)
"""
#: The master of bare skein: one container after the other, then the end of all.
MASTER = """\
import sys, time, skein
size = int(sys.argv[1])
app = skein.ApplicationClient.from_current()
for number in range(size):
    app.add_container("w")
    while len(app.get_containers(services=["w"], states=["RUNNING", "SUCCEEDED"])) <= number:
        time.sleep(0.2)
while len(app.get_containers(services=["w"], states=["SUCCEEDED"])) < size: time.sleep(0.2)
"""


@dataclass(frozen=True)
class Gang:
    """A job: its number of containers, and the seconds for which it computes."""

    name: str
    size: int
    seconds: float


def gangs_of(count: int, seed: int) -> list[Gang]:
    """Return the jobs of a day; the same for the same seed."""
    dice = random.Random(seed)
    return [
        Gang(f"gang-{number:02}", dice.randint(1, 4), round(dice.uniform(4, 12), 1))
        for number in range(count)
    ]


@dataclass
class Day:
    """Figures of one system."""

    makespan: float = 0.0
    held: float = 0.0
    used: float = 0.0
    deadlocks: int = 0


#: Submits a job and returns its application's id.
Start = Callable[[Gang], str]


def run_day(
    backend: YarnBackend, gangs: list[Gang], start: Start, options: argparse.Namespace
) -> Day:
    """Run all jobs, and sample who holds GPUs."""
    day, waiting, running = Day(), list(gangs), dict[str, Gang]()
    began = changed = then = time.monotonic()
    last: dict[str, int] = {}
    while waiting or running:
        if waiting and len(running) < options.parallel:
            gang = waiting.pop(0)
            running[start(gang)] = gang
        time.sleep(SAMPLE)
        now = time.monotonic()
        if now - began > options.limit:
            raise TimeoutError(f"{len(waiting) + len(running)} jobs have not ended")
        apps = _applications(backend, set(running))
        held = {app.id: sum(app.used_gpus.values()) for app in apps if not app.ended}
        for identity, count in held.items():
            complete = count >= running[identity].size
            day.used += count * (now - then) if complete else 0.0
            day.held += 0.0 if complete else count * (now - then)
        then = now
        for app in apps:
            if app.ended:
                gang = running.pop(app.id)
                if app.final_status != "SUCCEEDED":
                    raise RuntimeError(f"{gang.name} has ended as {app.final_status}")
        whole = [one for one in running if held.get(one, 0) >= running[one].size]
        if held != last or whole or not any(held.values()):
            last, changed = held, now
        elif now - changed > options.stuck:
            day.deadlocks += 1
            youngest = max(one for one, count in held.items() if count)
            backend.rm.kill(youngest, "a deadlock of gangs")
            waiting.append(running.pop(youngest))
            changed = now
    day.makespan = time.monotonic() - began
    return day


def _applications(backend: YarnBackend, ids: set[str]) -> list[Application]:
    """Return the applications, also those that have ended."""
    answer = backend.rm.get("/apps", user=backend.user, deSelects=REQUESTS_AND_TIMEOUTS)
    return [app for app in applications_of(answer) if app.id in ids]


def submarine(session: Session) -> Start:
    """Return what submits a job of ours."""
    bundle = bundle_of(PROGRAM)

    def start(gang: Gang) -> str:
        spec = spec_of(
            gang.name, str(gang.seconds), count=gang.size, resources=Resources(192, 1, 1)
        )
        patient = replace(spec, gang_timeout=PATIENCE, gang_retries=100)
        job = submit(session, patient, bundle)
        assert job.handle is not None
        return str(job.handle["application_id"])

    return start


def bare(client: Any, scratch: Path) -> Start:
    """Return what submits a job with bare skein."""
    import skein

    (scratch / "member.py").write_text(MEMBER)
    (scratch / "master.py").write_text(MASTER)

    def start(gang: Gang) -> str:
        place = Path(tempfile.mkdtemp(dir=scratch))
        service = skein.Service(
            instances=0,
            resources=skein.Resources(memory=256, vcores=1, gpus=1),
            files={"member.py": str(scratch / "member.py")},
            script=f"{sys.executable} member.py {place} {gang.size} {gang.seconds}",
        )
        master = skein.Master(
            resources=skein.Resources(memory=512, vcores=1),
            files={"master.py": str(scratch / "master.py")},
            script=f"{sys.executable} master.py {gang.size}",
        )
        spec = skein.ApplicationSpec(name=gang.name, master=master, services={"w": service})
        return str(client.submit(spec))

    return start


def measure(scratch: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of both systems."""
    import skein

    gangs = gangs_of(options.jobs, options.seed)
    session = open_session(scratch / "state", {})
    backend = session.backend()
    assert isinstance(backend, YarnBackend)
    result: dict[str, Any] = {"load average": [os.getloadavg()[0]]}
    result["GPU seconds of the programs"] = sum(gang.size * gang.seconds for gang in gangs)
    try:
        run_day(backend, [Gang("warm", 1, 0), Gang("warm", 2, 0)], submarine(session), options)
        result["ours"] = vars(run_day(backend, gangs, submarine(session), options))
        result["load average"].append(os.getloadavg()[0])
        with skein.Client(log=False) as client:
            result["bare skein"] = vars(run_day(backend, gangs, bare(client, scratch), options))
    finally:
        stop_driver(session.profile)
    result["load average"].append(os.getloadavg()[0])
    return result


def report(result: dict[str, Any]) -> None:
    """Print the figures and their ratios."""
    print(f"load average {', '.join(f'{one:.1f}' for one in result['load average'])}")
    print(f"GPU seconds of the programs {result['GPU seconds of the programs']:.0f}")
    print(f"{'':44}{'ours':>8}{'bare':>8}{'ratio':>8}")
    for word, name in (
        ("makespan, s", "makespan"),
        ("GPU seconds held by incomplete gangs", "held"),
        ("GPU seconds held by complete gangs", "used"),
        ("deadlocks", "deadlocks"),
    ):
        ours, other = result["ours"][name], result["bare skein"][name]
        ratio = f"{ours / other:8.2f}" if other else f"{'-':>8}"
        print(f"{word:44}{ours:8.0f}{other:8.0f}{ratio}")


def main() -> int:
    """Run the benchmark; return 1 if one of our jobs was in a deadlock."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=40)
    parser.add_argument("--parallel", type=int, default=10, help="jobs submitted at a time")
    parser.add_argument("--stuck", type=float, default=30.0, help="seconds until a deadlock counts")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds for each system")
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--minicluster", help="use this one; else one is started and removed")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    cluster = Minicluster(options.minicluster or "benchmark-gang-day")
    try:
        if options.minicluster:
            cluster.start()
        else:
            cluster.start(Settings(gpus=GPUS, memory_mb=1 << 16, vcores=256))
        os.environ.update(cluster.environ())
        with tempfile.TemporaryDirectory(prefix="gang-day-") as scratch:
            result = measure(Path(scratch), options)
    finally:
        if not options.minicluster:
            cluster.stop(delete_data=True)
    report(result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))
    return 0 if not result["ours"]["deadlocks"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
