"""XGBoost's tracker in a separate process: ``tracker --address A --port P --workers N``.

Once it serves, the port of ``--ready`` opens; the other tasks' agents wait for that. Runs in the
job's Python, because it imports XGBoost, and ends when all workers have disconnected.

XGBoost sends the lines of ``communicator_print`` and the evaluation of each round to the tracker,
which prints them; here to stderr.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from typing import Any, Sequence

from submarine_runtime.frameworks.helpers.port_wait import open_ready_port


def main(arguments: Sequence[str]) -> int:
    """Serve one training of the workers."""
    parser = argparse.ArgumentParser(prog="tracker")
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ready", type=int)
    parser.add_argument("--workers", type=int, required=True)
    options = parser.parse_args(arguments)
    try:
        module: Any = importlib.import_module("xgboost.tracker")
    except ImportError as exc:
        sys.stderr.write(f"the tracker needs xgboost in {sys.executable}: {exc}\n")
        return 1
    try:
        tracker = _started(module, options)
    except Exception as exc:
        lines = [line.strip() for line in str(exc).splitlines()]
        message = next(
            (line for line in lines if "rror:" in line), lines[0] if lines else repr(exc)
        )
        sys.stderr.write(f"tracker at {options.address}:{options.port}: {message}\n")
        return 1
    if options.ready:
        open_ready_port(options.address, options.ready)
    print("tracker ready", flush=True)
    sys.stdout = sys.stderr
    if hasattr(sys.stderr, "reconfigure"):
        sys.stderr.reconfigure(line_buffering=True)
    tracker.wait_for()
    return 0


def _started(module: Any, options: argparse.Namespace) -> Any:
    tracker = module.RabitTracker(
        n_workers=options.workers, host_ip=options.address, port=options.port, sortby="task"
    )
    tracker.start()  # First: worker_args() of a tracker that has not started blocks forever.
    took = int(tracker.worker_args()["dmlc_tracker_port"])
    if took != options.port:
        place = f"{options.address}:{options.port}"
        sys.stderr.write(f"tracker at {place}: XGBoost before 3.0 takes port {took} instead\n")
        sys.stderr.flush()
        os._exit(1)  # Deleting a tracker waits for its workers, which will never connect.
    return tracker
