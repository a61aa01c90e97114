"""Two Azkabans behind one client: the contract server, and a real one where a person names it.

``SUBMARINE_TEST_AZKABAN=http://user:password@host:port`` names a real one whose executor has this
checkout's ``submarine`` on its PATH; projects of these tests begin with ``submarine-test-``.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import requests

from submarine_workflows.azkaban.api import Azkaban, Connection, SessionFile, Settings
from tests.azkaban import server as servers

VARIABLE = "SUBMARINE_TEST_AZKABAN"


@dataclass
class Location:
    """One Azkaban, and what a test made there.

    Attributes
    ----------
    contract
        The contract server, where this is it.
    """

    settings: Settings
    password: str
    folder: Path
    contract: servers.Azkaban | None = None
    projects: list[str] = field(default_factory=list)

    def client(self, password: str = "") -> Azkaban:
        """A client with the session of the one before, if there was one."""
        said = password or self.password
        kept = SessionFile(self.folder / "sessions", self.settings)
        return Azkaban(Connection(self.settings, lambda: said, kept))

    def keep(self, session: str) -> None:
        """Have the next client begin with this session."""
        SessionFile(self.folder / "sessions", self.settings).write(session)

    def project(self) -> str:
        """Name of a project that is not there yet."""
        self.projects.append(f"submarine-test-{secrets.token_hex(4)}")
        return self.projects[-1]


@contextmanager
def contract(folder: Path) -> Iterator[Location]:
    """The server that was written after Azkaban's source."""
    with servers.running(folder / "azkaban", kill_seconds=5) as running:
        settings = Settings(running.url, "alice")
        yield Location(settings, "correct horse", folder, running)


@contextmanager
def real(folder: Path) -> Iterator[Location]:
    """The Azkaban that the variable names."""
    parts = urlsplit(os.environ[VARIABLE])
    url = f"{parts.scheme}://{parts.hostname}:{parts.port}"
    place = Location(Settings(url, parts.username or ""), parts.password or "", folder)
    try:
        yield place
    finally:
        _remove(place)


def _remove(place: Location) -> None:
    """The tests' projects go; their executions stay in Azkaban's history."""
    login = {"action": "login", "username": place.settings.user, "password": place.password}
    answer = requests.post(place.settings.url, data=login, timeout=60)
    session = answer.json()["session.id"]
    for name in place.projects:
        given = {"session.id": session, "delete": "true", "project": name}
        requests.get(f"{place.settings.url}/manager", params=given, timeout=60)
