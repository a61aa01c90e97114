"""Latency of a job with four workers, compared with skein and four service instances, interleaved.

Plain skein runs the same program as in its documentation: one service with four instances, default
settings, and a running driver. Submarine runs a distributed job: coordinator, four agents, gang,
log and record. Both run alternately on the same minicluster. Each task writes the time of its first
line to a file of this machine. The job has finished when the ResourceManager reports it. Submarine
is measured with the heartbeat of this machine's master (200 ms) and of a shared cluster (1 s).

Run: ``python benchmarks/distributed_latency.py [--runs N] [--minicluster NAME]``
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any

from on_minicluster import bundle_of, open_session, run_on_minicluster, spec_of

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.driver import stop_driver
from submarine_jobs.client import Session
from submarine_jobs.submit import submit

WORKERS = 4
FIRST_TARGET, FINISHED_TARGET = 0.9, 0.6
#: Writes the time to a file with a name that is unique to the task.
PROGRAM = """\
import os, sys, time
print("first line", flush=True)
name = os.path.join(sys.argv[1], str(os.getpid()))
with open(name + ".tmp", "w") as f: f.write(repr(time.time()))
os.rename(name + ".tmp", name)
"""
OURS = {"ours": {}, "ours, 1 s heartbeat": {"am_heartbeat_ms": "1000"}}
ENDED = ("FINISHED", "FAILED", "KILLED")


def main() -> int:
    """Run the benchmark; return 1 if a target is missed."""
    result = run_on_minicluster(__doc__, "distributed", measure, report)
    ratios = result["ratios"]["ours"]
    return 0 if ratios[0] <= FIRST_TARGET and ratios[1] <= FINISHED_TARGET else 1


def measure(scratch: Path, runs: int) -> dict[str, Any]:
    """Return the seconds from the submission to the first line of all tasks, and to the end."""
    import skein

    sessions = {word: open_session(scratch / "state", settings) for word, settings in OURS.items()}
    (scratch / "main.py").write_text(PROGRAM)
    times: dict[str, list[tuple[float, float]]] = {"bare skein": [], **{word: [] for word in OURS}}
    backend = sessions["ours"].backend()
    assert isinstance(backend, YarnBackend)
    try:
        with skein.Client(log=False) as client:
            warm_up(sessions, client, backend, scratch)
            for number in range(runs):
                times["bare skein"].append(bare(client, backend, scratch / f"bare-{number}"))
                for word, session in sessions.items():
                    out = scratch / f"{word.replace(' ', '-')}-{number}"
                    times[word].append(submarine(session, backend, out))
    finally:
        stop_driver(sessions["ours"].profile)
    medians = {
        word: [statistics.median(pair[part] for pair in pairs) for part in (0, 1)]
        for word, pairs in times.items()
    }
    bare_medians = medians["bare skein"]
    ratios = {word: [medians[word][part] / bare_medians[part] for part in (0, 1)] for word in OURS}
    return {"seconds": times, "medians": medians, "ratios": ratios}


def warm_up(sessions: dict[str, Session], client: Any, backend: YarnBackend, scratch: Path) -> None:
    """Start drivers, fill caches, upload the class archive and the coordinator's environment."""
    bare(client, backend, scratch / "warm-bare")
    for number in range(2):
        for word, session in sessions.items():
            submarine(session, backend, scratch / f"warm-{number}-{word.replace(' ', '-')}")
        archive = backend.applications.archive
        if archive is not None:
            archive.wait()


def bare(client: Any, backend: YarnBackend, out: Path) -> tuple[float, float]:
    """Return the seconds since skein's submission."""
    import skein

    out.mkdir()
    service = skein.Service(
        instances=WORKERS,
        resources=skein.Resources(memory=512, vcores=1),
        files={"main.py": str(out.parent / "main.py")},
        script=f"{sys.executable} main.py {out}",
    )
    began = time.time()
    application_id = client.submit(
        skein.ApplicationSpec(name=out.name, services={"worker": service})
    )
    return watch(backend, application_id, out, began)


def submarine(session: Session, backend: YarnBackend, out: Path) -> tuple[float, float]:
    """Return the same for Submarine; the job must succeed."""
    out.mkdir()
    spec, bundle = spec_of(out.name[:40], str(out), count=WORKERS), bundle_of(PROGRAM)
    began = time.time()
    job = submit(session, spec, bundle)
    assert job.handle is not None
    seconds = watch(backend, str(job.handle["application_id"]), out, began)
    job.wait_success(timeout=60)
    return seconds


def watch(
    backend: YarnBackend, application_id: str, out: Path, began: float, seconds: float = 180.0
) -> tuple[float, float]:
    """Return when the last task wrote its line, and when the application had ended."""
    deadline = time.monotonic() + seconds
    finished = 0.0
    while not finished:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{application_id} has not ended")
        app = backend.rm.get(f"/apps/{application_id}")["app"]
        if app["state"] in ENDED:
            finished = app["finishedTime"] / 1000
        time.sleep(0.2)
    written = [float(path.read_text()) for path in out.iterdir() if path.suffix != ".tmp"]
    if len(written) != WORKERS:
        raise RuntimeError(f"{application_id}: {len(written)} of {WORKERS} tasks ran")
    time.sleep(1.0)  # The next run starts on an idle cluster.
    return max(written) - began, finished - began


def report(result: dict[str, Any]) -> None:
    """Print the figures."""
    print(f"{'seconds from the submit call':30}{'first line in all':>18}{'finished':>10}  each")
    for word, pairs in result["seconds"].items():
        first, finished = result["medians"][word]
        each = " ".join(f"{a:.1f}/{b:.1f}" for a, b in pairs)
        print(f"  {word:28}{first:18.2f}{finished:10.2f}  {each}")
    for word, (first, finished) in result["ratios"].items():
        print(f"ratio {word:24}{first:18.2f}{finished:10.2f}")
    print(f"{'target at most':30}{FIRST_TARGET:18.2f}{FINISHED_TARGET:10.2f}")


if __name__ == "__main__":
    raise SystemExit(main())
