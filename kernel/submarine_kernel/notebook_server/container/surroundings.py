"""What the container gives: directories, port, the job's secret, the application's own token."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import random
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

#: What the application's token is derived from, with the job's as the key; a client does the same.
PURPOSE = b"submarine notebook"
#: Above the well-known ports, below those that systems take for outgoing connections.
_LOWEST, _HIGHEST = 15_000, 32_000
_TRIES = 64
_CHANCE = random.SystemRandom()


@dataclass(frozen=True)
class Surroundings:
    """One container.

    Parameters
    ----------
    root
        The scratch directory, for this user alone.
    notebooks
        Directory whose files the agent brings to the job directory.
    listen
        Address for those outside.
    port
        Port that was reserved for the program; the job's link leads to it.
    """

    root: str
    notebooks: str
    listen: str
    port: int
    secret: dict[str, str] = field(repr=False)

    @classmethod
    def found(cls) -> Surroundings:
        """What the agent has put here."""
        root = os.path.dirname(os.environ["SUBMARINE_TUNNELS"])
        listen = str(_read(root, "agent.json").get("listen") or "127.0.0.1")
        return cls(
            root,
            os.environ["SUBMARINE_CHECKPOINT_DIR"],
            listen,
            int(os.environ["SUBMARINE_PORT"]),
            _read(root, "secret.json"),
        )

    @property
    def token(self) -> str:
        """What lets a person in; not the job's token, since it ends up in a browser's history."""
        return token_of(self.secret["token"])

    def tls(self) -> ssl.SSLContext:
        """Shows the job's certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        path = self.private("door.pem", self.secret["certificate"] + "\n" + self.secret["key"])
        try:
            context.load_cert_chain(path)
        finally:
            os.unlink(path)
        return context

    def closed(self, name: str) -> str:
        """Make a directory that only this user can enter; its path."""
        path = os.path.join(self.root, name)
        os.makedirs(path, exist_ok=True)
        os.chmod(path, 0o700)
        return path

    def private(self, name: str, content: str) -> str:
        """Write a file that only this user can read; its path."""
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
        return path

    def declare(self, port: int) -> None:
        """Let clients of the job's own port through to the application."""
        path = os.environ["SUBMARINE_TUNNELS"]
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump({"app": {"port": port}}, file)
        os.replace(path + ".new", path)


def token_of(job_token: str) -> str:
    """The application's token: whoever may read the job's secret can make it."""
    digest = hmac.new(job_token.encode(), PURPOSE, hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def free_port() -> int:
    """A port of the loopback interface that nobody has now, and that the system gives nobody.

    What the system itself chose may be a kernel's or a connection's before the application, which
    takes seconds to start, gets round to it.
    """
    for _ in range(_TRIES):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", _CHANCE.randint(_LOWEST, _HIGHEST)))
            return int(probe.getsockname()[1])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _read(root: str, name: str) -> Any:
    with open(os.path.join(root, name), encoding="utf-8") as file:
        return json.load(file)
