"""The claim: one container per intent may run the program, and none once cancel was asked.

Does not run anything. The claim's nonce lets a container that lost the reply to its own claim
recognise it.
"""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Callable, Mapping

from submarine_runtime.agent.store import Store, patiently
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.launch import AgentConfig

CLAIM_GRACE = 120.0


def container_id(environ: Mapping[str, str]) -> str | None:
    """YARN's name of this container, if we run in one."""
    return environ.get("CONTAINER_ID") or None


def application_id(environ: Mapping[str, str]) -> str | None:
    """``application_1_0002`` from ``container_e01_1_0002_01_000001``."""
    parts = (container_id(environ) or "").split("_")
    if len(parts) < 5:
        return None
    return "application_{}_{}".format(*parts[-4:-2])


def claim(
    store: Store,
    config: AgentConfig,
    environ: Mapping[str, str],
    wait: Callable[[float], object] = time.sleep,
) -> bool:
    """Claim the job for this container; False when another has it.

    Raises
    ------
    StoreError
        If the job directory cannot be reached for two minutes, or refuses.
    """
    content = {
        "intent": config.intent,
        "application_id": application_id(environ),
        "container_id": container_id(environ),
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "nonce": os.urandom(16).hex(),
        "time": time.time(),
    }
    data = json.dumps(content, sort_keys=True).encode()
    deadline = time.monotonic() + CLAIM_GRACE
    return patiently(
        lambda: store.publish_exclusive(layout.CLAIM, data), deadline, wait=wait, longest=5.0
    )


def asked_to_cancel(store: Store) -> dict[str, str] | None:
    """What ``cancel.json`` says (``by``, ``why``), or None when nobody asked."""
    data = store.read(layout.CANCEL)
    if data is None:
        return None
    try:
        content = json.loads(data)
    except ValueError:
        content = {}
    if not isinstance(content, dict):
        content = {}
    return {key: str(content.get(key) or "")[:500] for key in ("by", "why")}
