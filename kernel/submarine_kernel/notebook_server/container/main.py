"""The program of the job: start the application, open the door, end when it is idle.

Its exit code is the job's: 0 when it was told to stop, ended itself, or was idle.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from typing import Any

from .application import Application, StartError, newest_change
from .door import Door
from .lab import Lab
from .surroundings import Surroundings
from .zeppelin import Zeppelin

START_SECONDS = 300.0
#: Seconds between two looks: at the process; at when it was last used, at most.
LOOK = 1.0
LONGEST_LOOK = 30.0


class _ToldToStop(Exception):  # noqa: N818 - no error: the agent ends the program
    pass


def main() -> None:
    """Run until the application has ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--app", choices=("lab", "zeppelin"), required=True)
    parser.add_argument("--idle", type=float, default=0.0)
    parser.add_argument("--zeppelin-home", default="")
    given = parser.parse_args()

    def stop(*_: Any) -> None:
        raise _ToldToStop

    signal.signal(signal.SIGTERM, stop)
    around = Surroundings.found()
    app: Application = Lab(around)
    if given.app == "zeppelin":
        app = Zeppelin(around, given.zeppelin_home or os.environ.get("ZEPPELIN_HOME", ""))
    try:
        _serve(app, around, given.idle)
    except StartError as error:
        sys.exit(f"submarine: {error}")
    except _ToldToStop:
        print(f"{app.label} was told to stop.", flush=True)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        app.stop()


def _serve(app: Application, around: Surroundings, idle: float) -> None:
    app.start()
    deadline = time.monotonic() + START_SECONDS
    while not app.answers():
        if not app.running():
            raise StartError(f"{app.label} has ended before it was ready; its log says why.")
        if time.monotonic() > deadline:
            raise StartError(f"{app.label} was not ready after {START_SECONDS:g} s.")
        time.sleep(0.2)
    try:
        Door(around.listen, around.port, around.tls(), app.port)
    except OSError as error:
        raise StartError(f"port {around.port} is taken: {error}.") from error
    around.declare(app.port)
    print(f"{app.label} is ready on port {around.port}.", flush=True)
    _watch(app, around, idle)


def _watch(app: Application, around: Surroundings, idle: float) -> None:
    """Until the application ends or nobody has used it for ``idle`` seconds; 0: for ever."""
    began = time.time()
    pause = min(LONGEST_LOOK, max(LOOK, idle / 10))
    due = time.monotonic() + pause
    while app.running():
        time.sleep(LOOK)
        if not idle or time.monotonic() < due:
            continue
        due = time.monotonic() + pause
        used = max(began, app.last_used(), newest_change(around.notebooks))
        if time.time() - used >= idle:
            print(f"Nobody has used {app.label} for {idle:g} s: it ends.", flush=True)
            return
    code = app.process.wait() if app.process is not None else 0
    print(f"{app.label} has ended with exit code {code}.", flush=True)
    if code:
        sys.exit(1)
