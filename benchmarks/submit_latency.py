"""Time from submission to the program's first line, compared with plain skein, interleaved.

Plain skein runs the same program as in its documentation: default settings, ``master.script``, a
running driver, and the program as a file. Submarine checks the plan, writes job directory and
intent, and starts an agent. Both run alternately on the same minicluster. The program writes the
time of its first line to a file of this machine.

Also prints the ResourceManager and NameNode operations of one job, and the bytes that a submission
uploads. Run: ``python benchmarks/submit_latency.py [--runs N] [--minicluster NAME]``
"""

from __future__ import annotations

import json
import statistics
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from on_minicluster import bundle_of, open_session, run_on_minicluster

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.driver import stop_driver
from submarine_jobs.client import Session
from submarine_jobs.model import JobSpec, Resources, Role
from submarine_jobs.submit import submit

TARGET = 0.7
PROGRAM = """\
import os, sys, time
print("first line", flush=True)
with open(sys.argv[1] + ".tmp", "w") as f: f.write(repr(time.time()))
os.rename(sys.argv[1] + ".tmp", sys.argv[1])
"""


def main() -> int:
    """Run the benchmark; return 1 if the target is missed."""
    result = run_on_minicluster(__doc__, "submit", measure, report)
    return 0 if result["ratio with AppCDS"] <= TARGET else 1


def measure(scratch: Path, runs: int) -> dict[str, Any]:
    """Measure all figures of one interleaved run."""
    import skein

    ours = {
        word: open_session(scratch / f"state-{word}", {"am_cds": word}) for word in ("on", "off")
    }
    (scratch / "main.py").write_text(PROGRAM)
    times: dict[str, list[float]] = {"bare skein": [], "without AppCDS": [], "with AppCDS": []}
    try:
        with skein.Client(log=False) as client:
            warm_up(ours, client, scratch)
            for number in range(runs):
                times["bare skein"].append(bare(client, scratch, f"bare-{number}"))
                times["without AppCDS"].append(submarine(ours["off"], scratch, f"off-{number}"))
                times["with AppCDS"].append(submarine(ours["on"], scratch, f"on-{number}"))
        costs = count_costs(ours["on"], scratch)
    finally:
        for session in ours.values():
            stop_driver(session.profile)
    medians = {word: statistics.median(values) for word, values in times.items()}
    return {
        "seconds": times,
        "medians": medians,
        "ratio without AppCDS": medians["without AppCDS"] / medians["bare skein"],
        "ratio with AppCDS": medians["with AppCDS"] / medians["bare skein"],
        **costs,
    }


def warm_up(ours: dict[str, Session], client: Any, scratch: Path) -> None:
    """Start drivers, fill caches and build the class archive before the measurement."""
    bare(client, scratch, "warm-bare")
    for word, session in ours.items():
        submarine(session, scratch, f"warm-{word}")
    backend = ours["on"].backend()
    assert isinstance(backend, YarnBackend)
    archive = backend.applications.archive
    assert archive is not None
    archive.wait()
    submarine(ours["on"], scratch, "warm-again")


def bare(client: Any, scratch: Path, name: str) -> float:
    """Return the seconds from skein's submission to the program's first line."""
    import skein

    out = scratch / name
    master = skein.Master(
        files={"main.py": str(scratch / "main.py")}, script=f"{sys.executable} main.py {out}"
    )
    began = time.time()
    client.submit(skein.ApplicationSpec(name=name, master=master))
    return wait_for(out) - began


def submarine(session: Session, scratch: Path, name: str) -> float:
    """Return the same for Submarine."""
    out = scratch / name
    spec, bundle = job_of(name, out)
    began = time.time()
    job = submit(session, spec, bundle)
    first = wait_for(out)
    job.wait(timeout=60)
    return first - began


def job_of(name: str, out: Path) -> tuple[JobSpec, bytes]:
    """Return a specification of skein's default size, and the bundle with the program."""
    role = Role(resources=Resources(512, 1, 0))
    spec = JobSpec(
        name=name, backend="yarn", roles=(role,), args=(str(out),), python=sys.executable
    )
    return spec, bundle_of(PROGRAM)


def wait_for(path: Path, seconds: float = 120.0) -> float:
    """Return the time that the program wrote."""
    deadline = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{path.name} never ran")
        time.sleep(0.02)
    time.sleep(1.0)  # Wait for the end: the next run starts on an idle cluster.
    return float(path.read_text())


def count_costs(session: Session, scratch: Path) -> dict[str, Any]:
    """Return NameNode operations, HDFS files, bytes and ResourceManager calls of one job."""
    backend = session.backend()
    assert isinstance(backend, YarnBackend)
    spec, bundle = job_of("counted", scratch / "counted")
    operations = namenode_operations(backend)
    calls, began = backend.rm.calls, time.monotonic()
    job = submit(session, spec, bundle)
    uploaded = sum(size for _, size in backend.storage.walk(job.directory.path))
    handle = backend.find(job.id)
    assert handle is not None
    staging = f"/user/{backend.user}/.skein/{handle['application_id']}"
    if backend.storage.stat(staging) is not None:
        uploaded += sum(size for _, size in backend.storage.walk(staging))
    at_submit = backend.rm.calls - calls - 1
    job.wait(timeout=60)
    minutes = (time.monotonic() - began) / 60
    calls = backend.rm.calls - calls - 1
    return {
        "bytes uploaded per submit": uploaded,
        "ResourceManager calls at submit": at_submit,
        "ResourceManager calls a minute": (calls - at_submit) / minutes,
        "NameNode operations per job": namenode_operations(backend) - operations,
        "HDFS files per job": len(backend.storage.walk(job.directory.path)),
    }


_OPERATIONS = (
    "CreateFileOps",
    "AddBlockOps",
    "FileInfoOps",
    "FilesRenamed",
    "DeleteFileOps",
    "GetListingOps",
    "GetBlockLocations",
)


def namenode_operations(backend: YarnBackend) -> int:
    """Return the NameNode's count of file operations, which it updates every ten seconds."""
    time.sleep(11)
    url = f"{backend.conf.webhdfs[0]}/jmx?qry=Hadoop:service=NameNode,name=NameNodeActivity"
    with urllib.request.urlopen(url, timeout=10) as reply:
        beans = json.load(reply)["beans"]
    return sum(int(beans[0].get(name, 0)) for name in _OPERATIONS)


def report(result: dict[str, Any]) -> None:
    """Print the figures."""
    print(f"{'submit to first line':34}{'median':>8}  each, seconds")
    for word, values in result["seconds"].items():
        each = " ".join(f"{value:.2f}" for value in values)
        print(f"  {word:32}{result['medians'][word]:8.2f}  {each}")
    for word in ("without AppCDS", "with AppCDS"):
        ratio = result[f"ratio {word}"]
        print(f"ratio {word:28}{ratio:8.2f}  target at most {TARGET}")
    for word, value in result.items():
        if isinstance(value, int | float) and not word.startswith("ratio"):
            print(f"{word:34}{value:8.1f}" if isinstance(value, float) else f"{word:34}{value:8d}")


if __name__ == "__main__":
    raise SystemExit(main())
