"""Small questions to the ResourceManager's REST interface; every one with a short timeout."""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any

from submarine_runtime.agent.claim import application_id
from submarine_runtime.protocol.coordination import CoordinatorConfig

MAX_BYTES = 4 << 20
#: Seconds; the question is asked while YARN is already killing us.
OVER_SECONDS = 0.5


def ask(config: CoordinatorConfig, path: str, timeout: float) -> dict[str, Any] | None:
    """``GET <ResourceManager>/ws/v1/cluster<path>`` as JSON; None when none of them answers."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for base in config.resourcemanagers:
        if not base.startswith(("http://", "https://")):
            continue
        request = urllib.request.Request(  # noqa: S310 - the scheme is checked above
            base.rstrip("/") + "/ws/v1/cluster" + path, headers={"Accept": "application/json"}
        )
        try:
            with opener.open(request, timeout=timeout) as answer:
                content = json.loads(answer.read(MAX_BYTES))
        except (OSError, ValueError):
            continue
        if isinstance(content, dict):
            return content
    return None


def application(config: CoordinatorConfig, timeout: float) -> dict[str, Any]:
    """What the ResourceManager knows of our application; empty when it does not answer."""
    name = application_id(os.environ)
    answer = ask(config, f"/apps/{name}", timeout) if name else None
    found = (answer or {}).get("app")
    return found if isinstance(found, dict) else {}


def application_is_over(config: CoordinatorConfig) -> bool:
    """Whether no later attempt of our application will be started."""
    app = application(config, OVER_SECONDS)
    return app.get("state") in ("KILLED", "FAILED", "FINISHED", "KILLING") or (
        app.get("finalStatus") in ("KILLED", "FAILED", "SUCCEEDED")
    )
