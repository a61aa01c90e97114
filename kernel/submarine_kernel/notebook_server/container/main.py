"""Program of a notebook server's job: start the application, listen, stop it when idle.

The exit code is 0 if the application was stopped, ended by itself without an error, or was idle.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from typing import Any

from .application import Application, StartError, newest_change
from .environment import ContainerEnvironment
from .lab import Lab
from .tls_listener import TlsListener
from .zeppelin import Zeppelin

START_SECONDS = 300.0
#: Seconds between two checks of the process, and the longest pause between two checks for use.
POLL_SECONDS = 1.0
MAX_IDLE_POLL = 30.0


class _SigtermInterrupt(Exception):  # noqa: N818 - not an error: the agent ends the program
    pass


def main() -> None:
    """Run until the application has ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--app", choices=("lab", "zeppelin"), required=True)
    parser.add_argument("--idle", type=float, default=0.0)
    parser.add_argument("--zeppelin-home", default="")
    options = parser.parse_args()

    def stop(*_: Any) -> None:
        raise _SigtermInterrupt

    signal.signal(signal.SIGTERM, stop)
    container = ContainerEnvironment.from_agent()
    app: Application = Lab(container)
    if options.app == "zeppelin":
        app = Zeppelin(container, options.zeppelin_home or os.environ.get("ZEPPELIN_HOME", ""))
    try:
        _serve(app, container, options.idle)
    except StartError as error:
        sys.exit(f"submarine: {error}")
    except _SigtermInterrupt:
        print(f"{app.label} was stopped.", flush=True)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        app.stop()


def _serve(app: Application, container: ContainerEnvironment, idle: float) -> None:
    app.start()
    deadline = time.monotonic() + START_SECONDS
    while not app.answers():
        if not app.running():
            raise StartError(f"{app.label} ended before it was ready; its log has the reason.")
        if time.monotonic() > deadline:
            raise StartError(f"{app.label} was not ready after {START_SECONDS:g} s.")
        time.sleep(0.2)
    try:
        TlsListener(container.listen, container.port, container.tls(), app.port)
    except OSError as error:
        raise StartError(f"port {container.port} is taken: {error}.") from error
    container.declare_tunnel(app.port)
    print(f"{app.label} is ready on port {container.port}.", flush=True)
    _wait(app, container, idle)


def _wait(app: Application, container: ContainerEnvironment, idle: float) -> None:
    """Wait until the application ends or was not used for ``idle`` seconds; 0: no limit."""
    began = time.time()
    pause = min(MAX_IDLE_POLL, max(POLL_SECONDS, idle / 10))
    due = time.monotonic() + pause
    while app.running():
        time.sleep(POLL_SECONDS)
        if not idle or time.monotonic() < due:
            continue
        due = time.monotonic() + pause
        used = max(began, app.last_used(), newest_change(container.notebooks))
        if time.time() - used >= idle:
            print(f"{app.label} was not used for {idle:g} s: it ends.", flush=True)
            return
    code = app.process.wait() if app.process is not None else 0
    print(f"{app.label} has ended with exit code {code}.", flush=True)
    if code:
        sys.exit(1)
