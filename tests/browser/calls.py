"""Requests to the server below the browser: with any headers, any path, no normalisation."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

API = "submarine/api/v1/"


@dataclass(frozen=True)
class Answer:
    """A response. Status 0: there was none."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


def call(
    url: str,
    path: str,
    method: str = "GET",
    *,
    headers: Mapping[str, str] | None = None,
    body: Any = None,
    timeout: float = 30,
) -> Answer:
    """One request to ``path`` as it stands: absolute, or below ``url``."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
    data = None if body is None else json.dumps(body)
    try:
        connection.request(
            method, path if path.startswith("/") else parts.path + path, data, dict(headers or {})
        )
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, found, response.read())
    except (OSError, http.client.HTTPException):
        return Answer(0, {}, b"")
    finally:
        connection.close()
