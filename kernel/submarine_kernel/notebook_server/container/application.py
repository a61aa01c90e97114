"""Base class of applications: a server process on the loopback interface."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from contextlib import suppress

from .environment import ContainerEnvironment, free_port

#: Seconds between SIGTERM and SIGKILL.
GRACE = 8.0
ANSWER_SECONDS = 10.0


class StartError(Exception):
    """The application cannot be started. The message is one sentence."""


class Application(ABC):
    """One application; ``start`` starts its process."""

    label = ""
    #: Path that needs no login.
    health = "/"

    def __init__(self, container: ContainerEnvironment) -> None:
        self.container = container
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> list[str]:
        """Write the configuration, which contains the token, and return the command."""

    def variables(self) -> dict[str, str]:
        """Return further environment variables, without secrets."""
        return {}

    def last_used(self) -> float:
        """Return the time of the last use that the application reports, in seconds of the epoch."""
        return 0.0

    def start(self) -> None:
        """Start the process.

        Raises
        ------
        StartError
            If the application is not installed.
        """
        command = self.command()
        environment = {**os.environ, **self.variables()}
        try:
            self.process = subprocess.Popen(command, cwd=self.container.notebooks, env=environment)
        except OSError as exc:
            raise StartError(f"{self.label} cannot be started: {exc}.") from exc

    def running(self) -> bool:
        """Whether the process runs."""
        return self.process is not None and self.process.poll() is None

    def answers(self) -> bool:
        """Whether the application accepts requests."""
        try:
            return self.get(self.health)[0] < 500
        except (OSError, http.client.HTTPException):
            return False

    def get(self, path: str, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
        """Send a GET request; return status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_SECONDS)
        try:
            connection.request("GET", path, headers=headers or {})
            with connection.getresponse() as answer:
                return answer.status, answer.read(1 << 22)
        finally:
            connection.close()

    def stop(self) -> None:
        """End the process by SIGTERM, then by SIGKILL."""
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
    """Return the newest modification time of the files below ``directory``."""
    newest = 0.0
    for path, _, names in os.walk(directory):
        for name in names:
            with suppress(OSError):
                newest = max(newest, os.lstat(os.path.join(path, name)).st_mtime)
    return min(newest, time.time())
