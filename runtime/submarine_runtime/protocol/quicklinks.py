"""Resolve names of tasks in quicklinks: ``http://worker-0:8080`` is the host where that task runs.

``master-0`` is the chief if no role is called master. Port 0 is the first port that was reserved
for the task (``SUBMARINE_PORT``).
"""

from __future__ import annotations

import re
from typing import Iterable, Mapping, Sequence

from submarine_runtime.protocol.link import Member, chief_of

_TASK = re.compile(r"^(https?://)([a-z][a-z0-9_]{0,31})-(\d{1,5})(?::(\d{1,5}))?(?=[/?#]|$)")


def resolve_links(links: Mapping[str, str], members: Sequence[Member]) -> dict[str, str]:
    """Return the links with hosts and ports of ``members``; links of other tasks are unchanged."""
    return {label: _resolved(url, members) for label, url in links.items()}


def fixed_links(links: Mapping[str, str], roles: Iterable[str]) -> dict[str, str]:
    """Return the links that need no resolution: those that name no task of ``roles``."""
    names = {*roles, "master"}
    return {label: url for label, url in links.items() if _role(url) not in names}


def _role(url: str) -> str | None:
    match = _TASK.match(url)
    return match.group(2) if match else None


def _resolved(url: str, members: Sequence[Member]) -> str:
    match = _TASK.match(url)
    member = _member(match.group(2), int(match.group(3)), members) if match else None
    if match is None or member is None:
        return url
    port = match.group(4)
    if port == "0":
        port = str(member.ports[0]) if member.ports else None
        if port is None:
            return url
    host = member.host + (f":{port}" if port else "")
    return f"{match.group(1)}{host}{url[match.end() :]}"


def _member(role: str, index: int, members: Sequence[Member]) -> Member | None:
    for member in members:
        if (member.role, member.index) == (role, index):
            return member
    masters = any(member.role == "master" for member in members)
    return chief_of(members) if (role, index) == ("master", 0) and members and not masters else None
