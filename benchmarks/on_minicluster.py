"""Common code of benchmarks on a minicluster: command line, session, jobs of one program."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from submarine_jobs.client import Session
from submarine_jobs.model import JobSpec, Profile, Resources, Role
from submarine_minicluster import Minicluster

Result = dict[str, Any]


def run_on_minicluster(
    description: str | None,
    name: str,
    measure: Callable[[Path, int], Result],
    report: Callable[[Result], None],
) -> Result:
    """Parse the command line, measure in an empty directory, print, and write the figures."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--minicluster", help="use this one; else one is started and removed")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    cluster = Minicluster(chosen.minicluster or f"benchmark-{name}")
    try:
        cluster.start()
        os.environ.update(cluster.environ())
        with tempfile.TemporaryDirectory(prefix=f"{name}-latency-") as scratch:
            result = measure(Path(scratch), chosen.runs)
    finally:
        if not chosen.minicluster:
            cluster.stop(delete_data=True)
    report(result)
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1))
    return result


def open_session(state_dir: Path, settings: Mapping[str, str]) -> Session:
    """Open a session on the cluster that the environment names."""
    return Session(
        Profile(
            backend="yarn",
            hadoop_conf_dir=Path(os.environ["HADOOP_CONF_DIR"]),
            java_home=Path(os.environ["JAVA_HOME"]),
            state_dir=state_dir,
            settings=dict(settings),
        )
    )


def bundle_of(program: str) -> bytes:
    """Return the bundle of a program."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("main.py", program)
    return stream.getvalue()


def spec_of(
    name: str, *arguments: str, count: int = 1, resources: Resources | None = None
) -> JobSpec:
    """Return the specification of a job that succeeds when all its workers do.

    Parameters
    ----------
    arguments
        Of the program.
    resources
        Of a worker; by default those of skein.
    """
    return JobSpec(
        name=name,
        backend="yarn",
        roles=(Role(instances=count, resources=resources or Resources(512, 1, 0)),),
        args=arguments,
        python=sys.executable,
        framework="any",
        policy="all" if count > 1 else None,
        bundle_digest="0" * 64,
    )
