"""Rate of reading 100 MB of a job's log, compared with reading the same bytes from a file in HDFS.

Runs a real job on a minicluster, which writes the log. Then reads the log and the file alternately,
and prints both rates and their ratio. The limit is half the rate of the file.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from submarine_jobs.client import Job, Session
from submarine_jobs.model import JobSpec, Profile, Resources, Role
from submarine_jobs.program import Cell, build_bundle
from submarine_minicluster.cluster import Minicluster

MEGABYTES, ROUNDS = 100, 5
PROGRAM = f"""
import sys
line = b"%07d loss: 0.1234 - accuracy: 0.9876 - a line of log as training prints it, ok\\n"
written, number = 0, 0
while written < {MEGABYTES} << 20:
    block = b"".join(line % (number + i) for i in range(10000))
    sys.stdout.buffer.write(block)
    written, number = written + len(block), number + 10000
"""


def run_job(session: Session) -> Job:
    """Run a job that writes the log."""
    cell = Cell(
        cell_id="c", source=PROGRAM, label="[1]", execution_count=1, first_line=1, only=False
    )
    bundle = build_bundle([cell])
    spec = JobSpec(
        "log", "yarn", roles=(Role(resources=Resources(memory=512)),), python=sys.executable
    )
    job = session.submit(spec, bundle)
    job.wait_success(300)
    return job


def timed_ours(job: Job) -> tuple[float, int]:
    """Return seconds and bytes of reading the log through the job."""
    begin, size = time.perf_counter(), 0
    for chunk in job.read_log("stdout"):
        size += len(chunk.data)
    return time.perf_counter() - begin, size


def timed_file(job: Job, path: str) -> tuple[float, int]:
    """Return seconds and bytes of reading the file."""
    begin = time.perf_counter()
    data = job.directory.storage.read(path)
    return time.perf_counter() - begin, len(data)


def main() -> int:
    """Start the cluster, measure, stop the cluster."""
    cluster = Minicluster("benchmark-log-read")
    cluster.start(progress=print)
    os.environ.update(cluster.environ())
    with tempfile.TemporaryDirectory() as state:
        conf = Path(os.environ["HADOOP_CONF_DIR"])
        profile = Profile(backend="yarn", hadoop_conf_dir=conf, state_dir=Path(state))
        try:
            return measure(Session(profile))
        finally:
            from submarine_jobs.backends.yarn.driver import stop_driver

            stop_driver(profile)
            cluster.stop(delete_data=True)


def measure(session: Session) -> int:
    """Read alternately and print the ratio."""
    job = run_job(session)
    storage = job.directory.storage
    files = [name for name, _ in storage.walk(job.directory.path)]
    whole = b"".join(chunk.data for chunk in job.read_log("stdout"))
    storage.publish("/tmp/whole.log", whole)
    rates: dict[str, list[float]] = {"ours": [], "file": []}
    for _ in range(ROUNDS):
        for name, (seconds, size) in (
            ("ours", timed_ours(job)),
            ("file", timed_file(job, "/tmp/whole.log")),
        ):
            if size != len(whole):
                raise SystemExit(f"{name} read {size} bytes of {len(whole)}")
            rates[name].append(size / seconds / 1e6)
    ours, file = (statistics.median(rates[name]) for name in ("ours", "file"))
    print(f"{len(whole) / 1e6:.0f} MB in {len(files)} files of the job directory")
    print(f"ours {ours:.0f} MB/s, one file {file:.0f} MB/s, medians of {ROUNDS}")
    print(f"ratio {ours / file:.2f}; bar 0.5")
    return 0 if ours >= file / 2 else 1


if __name__ == "__main__":
    sys.exit(main())
