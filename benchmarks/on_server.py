"""Common code of the server's benchmarks: jupyter-server with the extension, as a process."""

from __future__ import annotations

import argparse
import contextlib
import http.client
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from submarine_jobs.client import Job, Session
from submarine_jobs.config import load_config
from submarine_jobs.model import JobSpec, Resources, Role
from submarine_jobs.program import Cell, build_bundle
from submarine_minicluster import Minicluster
from submarine_minicluster.machine import free_port

API = "/submarine/api/v1/"


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Parse the common command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--minicluster", help="run jobs there; else as processes of this machine")
    parser.add_argument("--json", type=Path, help="write the numbers there, too")
    return parser


class Server:
    """A server on a free port of the loopback interface, with its files in ``scratch``."""

    def __init__(self, scratch: Path, cluster: str | None) -> None:
        self.token, self._scratch = secrets.token_hex(16), scratch
        self.port = free_port()
        os.environ["SUBMARINE_STATE_DIR"] = str(scratch / "state")
        if cluster:
            minicluster = Minicluster(cluster)
            minicluster.start()
            os.environ.update(minicluster.environ())
        self.backend = "yarn" if cluster else "local"
        os.environ["SUBMARINE_BACKEND"] = self.backend
        self.session = Session(load_config({}).profile)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Start the server, and stop it afterwards."""
        places = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
        own = {f"JUPYTER_{name}": str(self._scratch / name.lower()) for name in places}
        extensions = "{'submarine_server': True, 'jupyterlab': False, 'notebook': False}"
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"),
                f"--ServerApp.port={self.port}",
                f"--ServerApp.root_dir={self._scratch}",
                f"--ServerApp.jpserver_extensions={extensions}",
                f"--IdentityProvider.token={self.token}",
            ],
            env={**os.environ, **own},
            cwd=self._scratch,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while True:
                with contextlib.suppress(OSError):
                    if self.get("health")[1]:
                        break
                if process.poll() is not None:
                    raise SystemExit("The server has ended: is the extension installed?")
                time.sleep(0.1)
            yield
        finally:
            process.terminate()
            process.wait(20)

    def open(self, path: str) -> http.client.HTTPResponse:
        """Send ``GET`` for a path below the API."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("GET", API + path, headers={"Authorization": f"token {self.token}"})
        return connection.getresponse()

    def get(self, path: str) -> tuple[float, bytes]:
        """Return the seconds and the answer."""
        begin = time.perf_counter()
        reply = self.open(path)
        data = reply.read()
        if reply.status != http.client.OK:
            raise SystemExit(f"{path} was answered with {reply.status}: {data[:500]!r}")
        return time.perf_counter() - begin, data

    def submit(self, source: str, name: str) -> Job:
        """Run a job of one task."""
        bundle = build_bundle([Cell("c", source, label="[1]", execution_count=1)])
        role = Role(resources=Resources(memory=512))
        return self.session.submit(
            JobSpec(name, self.backend, roles=(role,), python=sys.executable), bundle
        )
