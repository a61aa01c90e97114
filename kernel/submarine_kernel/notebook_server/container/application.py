"""What the two applications have in common: a process that listens on loopback and can be asked."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import time
from contextlib import suppress

from .surroundings import Surroundings, free_port

#: Seconds between SIGTERM and SIGKILL.
GRACE = 8.0
ANSWER_SECONDS = 10.0


class StartError(Exception):
    """The application cannot be started; one sentence."""


class Application:
    """One application; made before it is started."""

    label = ""
    #: Path that answers without a login.
    health = "/"

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        """What to execute; writes the configuration that holds the token."""
        raise NotImplementedError

    def variables(self) -> dict[str, str]:
        """What it finds in its environment; no secret."""
        return {}

    def last_used(self) -> float:
        """When somebody last did something, in seconds since the epoch, as it tells itself."""
        return 0.0

    def start(self) -> None:
        """Start the process.

        Raises
        ------
        StartError
            If there is nothing to start.
        """
        command = self.command()
        environment = {**os.environ, **self.variables()}
        try:
            self.process = subprocess.Popen(command, cwd=self.around.notebooks, env=environment)
        except OSError as exc:
            raise StartError(f"{self.label} cannot be started: {exc}.") from exc

    def running(self) -> bool:
        """Whether the process lives."""
        return self.process is not None and self.process.poll() is None

    def answers(self) -> bool:
        """Whether it takes requests."""
        try:
            return self.get(self.health)[0] < 500
        except (OSError, http.client.HTTPException):
            return False

    def get(self, path: str, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
        """Status and body of a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_SECONDS)
        try:
            connection.request("GET", path, headers=headers or {})
            with connection.getresponse() as answer:
                return answer.status, answer.read(1 << 22)
        finally:
            connection.close()

    def stop(self) -> None:
        """End the process, gently at first."""
        if self.process is None:
            return
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def newest_change(directory: str) -> float:
    """When a file below ``directory`` last changed."""
    newest = 0.0
    for path, _, names in os.walk(directory):
        for name in names:
            with suppress(OSError):
                newest = max(newest, os.lstat(os.path.join(path, name)).st_mtime)
    return min(newest, time.time())
