"""Latency of a job on a cluster with Kerberos, over the same cluster without it, interleaved.

Two miniclusters of the same size run at the same time; jobs of one task are submitted to them in
turn. The program writes the time of its first line to a file of this machine. The numbers of
requests to the ResourceManager and of NameNode operations for each job are counted too.

Run: ``python benchmarks/kerberos_start.py [--runs N] [--https] [--json FILE]``
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from on_minicluster import bundle_of, spec_of

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.driver import stop_driver
from submarine_jobs.client import Session
from submarine_jobs.model import Profile
from submarine_jobs.submit import submit
from submarine_minicluster import Minicluster, Settings

TARGET = 1.15
PROGRAM = """\
import sys, time
print("first line", flush=True)
with open(sys.argv[1], "w") as file: file.write(repr(time.time()))
"""


def main() -> int:
    """Run the benchmark; return 1 if the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--https", action="store_true", help="also HTTPS on the secure cluster")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    settings = {"plain": Settings(), "kerberos": Settings(kerberos=True, https=chosen.https)}
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kerberos-start-")))
        sessions = {}
        for name, wanted in settings.items():
            cluster = Minicluster(f"benchmark-{name}", parent=scratch)
            stack.callback(cluster.stop, delete_data=True)
            cluster.start(wanted)
            user = "alice" if wanted.kerberos else None
            values = cluster.environ(user)
            os.environ.update(values)  # The ticket; the other cluster does not look at it.
            sessions[name] = session = Session(
                Profile(
                    backend="yarn",
                    hadoop_conf_dir=Path(values["HADOOP_CONF_DIR"]),
                    java_home=Path(values["JAVA_HOME"]),
                    state_dir=scratch / f"state-{name}",
                )
            )
            stack.callback(stop_driver, session.profile)
        result = measure(sessions, scratch, chosen.runs)
    print(json.dumps(result["medians"], indent=1))
    print(f"first line, with Kerberos over without: {result['ratio']:.2f} (target {TARGET})")
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1))
    return 0 if result["ratio"] <= TARGET else 1


def measure(sessions: dict[str, Session], scratch: Path, runs: int) -> dict[str, Any]:
    """Return seconds to the first line, requests and operations of each job."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in sessions}
    for number in range(-2, runs):  # The first two start drivers and fill caches.
        for name, session in sessions.items():
            figures = run(session, scratch / f"{name}-{number}")
            if number >= 0:
                found[name].append(figures)
    medians = {
        name: {key: statistics.median(row[key] for row in rows) for key in rows[0]}
        for name, rows in found.items()
    }
    seconds = [medians[name]["seconds"] for name in ("kerberos", "plain")]
    return {"runs": found, "medians": medians, "ratio": seconds[0] / seconds[1]}


def run(session: Session, out: Path) -> dict[str, float]:
    """Return the figures of one job, which must succeed."""
    backend = session.backend()
    assert isinstance(backend, YarnBackend)
    calls, began = backend.rm.calls, time.time()
    job = submit(session, spec_of("start", str(out)), bundle_of(PROGRAM))
    submitted = backend.rm.calls - calls
    record = job.wait_success(timeout=180)
    used = record.resources.get("used") or {}
    return {
        "seconds": float(out.read_text()) - began,
        "requests of the submission": float(submitted),
        "NameNode operations of the job": float(used.get("namenode_operations") or 0),
    }


if __name__ == "__main__":
    sys.exit(main())
