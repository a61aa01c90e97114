"""The container's directories, port and secrets, as the agent provides them."""

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

#: Message of the HMAC that derives the application's token from the job's token.
PURPOSE = b"submarine notebook"
#: Above the well-known ports, and below the ports that systems use for outgoing connections.
_LOWEST, _HIGHEST = 15_000, 32_000
_TRIES = 64
_RANDOM = random.SystemRandom()


@dataclass(frozen=True)
class ContainerEnvironment:
    """One container.

    Parameters
    ----------
    root
        Scratch directory, accessible to this user only.
    notebooks
        Directory of the notebooks. The agent copies its files to the job directory.
    listen
        Address of the TLS listener.
    port
        Port that is reserved for the program; the job's link refers to it.
    """

    root: str
    notebooks: str
    listen: str
    port: int
    secret: dict[str, str] = field(repr=False)

    @classmethod
    def from_agent(cls) -> ContainerEnvironment:
        """Read the variables and files that the agent has provided."""
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
        """The application's token; not the job's, because browsers store it in their history."""
        return token_of(self.secret["token"])

    def tls(self) -> ssl.SSLContext:
        """Return a TLS context with the job's certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        path = self.write_private(
            "listener.pem", self.secret["certificate"] + "\n" + self.secret["key"]
        )
        try:
            context.load_cert_chain(path)
        finally:
            os.unlink(path)
        return context

    def private_directory(self, name: str) -> str:
        """Create a directory that only this user can enter; return its path."""
        path = os.path.join(self.root, name)
        os.makedirs(path, exist_ok=True)
        os.chmod(path, 0o700)
        return path

    def write_private(self, name: str, content: str) -> str:
        """Write a file that only this user can read; return its path."""
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
        return path

    def declare_tunnel(self, port: int) -> None:
        """Let clients reach the application through the job's own port."""
        path = os.environ["SUBMARINE_TUNNELS"]
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump({"app": {"port": port}}, file)
        os.replace(path + ".new", path)


def token_of(job_token: str) -> str:
    """Derive the application's token from the job's token."""
    digest = hmac.new(job_token.encode(), PURPOSE, hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def free_port() -> int:
    """Return a free port of the loopback interface, outside the system's range of ephemeral ports.

    The application takes seconds to start. Until then the system could assign an ephemeral port to
    a kernel or a connection.
    """
    for _ in range(_TRIES):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", _RANDOM.randint(_LOWEST, _HIGHEST)))
            return int(probe.getsockname()[1])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _read(root: str, name: str) -> Any:
    with open(os.path.join(root, name), encoding="utf-8") as file:
        return json.load(file)
