"""What Azkaban's web server answers: pages and JSON in its own forms, and connections that break.

Does not know what was asked.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

from tests.azkaban.executor import Job

LOGIN_PAGE = """<!DOCTYPE html><html><head><title>Azkaban Web Client</title></head><body>
<form><input type="text" name="username"><input type="password" name="password"></form></body>
</html>"""
JETTY = "<html><head><title>Error {0} </title></head><body><h2>HTTP ERROR: {0}</h2></body></html>"


@dataclass
class Reply:
    """What goes back; ``kind`` is the content type."""

    body: str | dict[str, Any]
    status: int = 200
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        body = self.body if isinstance(self.body, str) else json.dumps(self.body)
        return body.encode()


def made(value: dict[str, Any]) -> Reply:
    """``createJsonResponse``: JSON that says nothing of what it is."""
    return Reply(json.dumps(value), kind="")


def broken() -> Reply:
    """A fault: the connection breaks without an answer."""
    return Reply("", 0)


def info(job: Job, flow: str) -> dict[str, Any]:
    """``getExecutableNodeInfo``."""
    found: dict[str, Any] = {
        "id": job.node.name, "status": job.status, "startTime": ms(job.start),
        "endTime": ms(job.end), "updateTime": ms(time.time()), "attempt": job.attempt,
        "type": None if job.parent is None else job.type, "nestedId": job.path or flow,
    }  # fmt: skip
    if job.node.condition is not None:
        found["condition"] = job.node.condition
    if job.attempt:
        found["pastAttempts"] = [{"attempt": one} for one in range(job.attempt)]
    if job.node.depends_on:
        found["in"] = list(job.node.depends_on)
    if job.children or job.parent is None:
        name = f"{flow}:{job.path}" if job.parent is not None else flow
        nodes = [info(child, flow) for child in job.children]
        found |= {"flow": name, "nodes": nodes, "flowId": name}
    return found


def ms(seconds: float) -> int:
    return -1 if seconds < 0 else int(seconds * 1000)


def whole_characters(data: bytes) -> tuple[int, int]:
    """``getUtf8Range``: no half characters at either end."""
    begin, end = 0, len(data)
    while begin < min(4, end) and data[begin] & 0xC0 == 0x80:
        begin += 1
    for back in range(1, min(4, end) + 1):
        lead = data[-back]
        if lead & 0xC0 == 0x80:
            continue
        wants = 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
        if wants > back:
            end -= back
        break
    return begin, end
