"""Common code of the latency benchmarks: command line and minicluster."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from submarine_jobs.client import Session
from submarine_jobs.model import Profile
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
