"""Read from the ResourceManager's REST interface, with a short timeout for each request."""

from __future__ import annotations

import json
import os
import re
import urllib.request
from typing import Any, Sequence

from submarine_runtime.protocol import CoordinatorConfig
from submarine_runtime.storage import application_id

MAX_BYTES = 4 << 20
#: Timeout in seconds of a request while YARN ends this container.
OVER_SECONDS = 0.5
_CONTAINER = re.compile(r"^container_(?:e\d+_)?(\d+)_(\d+)_(\d+)_\d+\Z")


def get(urls: Sequence[str], path: str, timeout: float) -> dict[str, Any] | None:
    """Return ``GET <ResourceManager>/ws/v1/cluster<path>`` as JSON; None if none answers."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for base in urls:
        if not base.startswith(("http://", "https://")):
            continue
        request = urllib.request.Request(  # noqa: S310 - the scheme is checked above
            base.rstrip("/") + "/ws/v1/cluster" + path, headers={"Accept": "application/json"}
        )
        try:
            with opener.open(request, timeout=timeout) as answer:
                content = json.loads(answer.read(MAX_BYTES))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(content, dict):
            return content
    return None


def application(config: CoordinatorConfig, timeout: float) -> dict[str, Any]:
    """Return the ResourceManager's data on this application; empty if it does not answer."""
    name = application_id(os.environ)
    answer = get(config.resourcemanagers, f"/apps/{name}", timeout) if name else None
    found = (answer or {}).get("app")
    return found if isinstance(found, dict) else {}


def application_was_killed(config: CoordinatorConfig) -> bool:
    """Return whether a user or an administrator killed the application."""
    app = application(config, OVER_SECONDS)
    return "KILLED" in (app.get("state"), app.get("finalStatus"))


def container_started(urls: Sequence[str], container: str, timeout: float) -> float | None:
    """Return when YARN granted a container, in seconds since the epoch; None if unknown.

    Parameters
    ----------
    container
        Its id, ``container_e17_1795438692895_0001_01_000002``.
    """
    match = _CONTAINER.match(container)
    if match is None:
        return None
    stamp, application_number, attempt = match.groups()
    name = f"{stamp}_{application_number}"
    place = f"/apps/application_{name}/appattempts/appattempt_{name}_{int(attempt):06d}"
    answer = get(urls, f"{place}/containers", timeout)
    found = (answer or {}).get("container") or []
    for one in found if isinstance(found, list) else [found]:
        if isinstance(one, dict) and one.get("containerId") == container:
            started = one.get("startedTime")
            return started / 1000 if isinstance(started, int) and started > 0 else None
    return None


def application_is_over(config: CoordinatorConfig) -> bool:
    """Return whether no later attempt of this application will start."""
    app = application(config, OVER_SECONDS)
    return app.get("state") in ("KILLED", "FAILED", "FINISHED", "KILLING") or (
        app.get("finalStatus") in ("KILLED", "FAILED", "SUCCEEDED")
    )
