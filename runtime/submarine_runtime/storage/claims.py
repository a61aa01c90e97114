"""The claim: at most one container per intent runs the program, and none after a cancel.

The claim's nonce lets a container recognise its own claim after a lost reply.
"""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Callable, Mapping

from submarine_runtime.protocol import AgentConfig, layout
from submarine_runtime.storage.retries import retry
from submarine_runtime.storage.store import Store


def container_id(environ: Mapping[str, str]) -> str | None:
    """Return YARN's id of this container; None outside YARN."""
    return environ.get("CONTAINER_ID") or None


def application_id(environ: Mapping[str, str]) -> str | None:
    """Return ``application_1_0002`` for ``container_e01_1_0002_01_000001``."""
    parts = (container_id(environ) or "").split("_")
    if len(parts) < 5:
        return None
    return "application_{}_{}".format(*parts[-4:-2])


def new_claim(intent: str, environ: Mapping[str, str]) -> bytes:
    """Return the content of a claim of this process; ``intent`` identifies the submission."""
    content = {
        "intent": intent,
        "application_id": application_id(environ),
        "container_id": container_id(environ),
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "nonce": os.urandom(16).hex(),
        "time": time.time(),
    }
    return json.dumps(content, sort_keys=True).encode()


def claim(
    store: Store,
    config: AgentConfig,
    environ: Mapping[str, str],
    wait: Callable[[float], object] = time.sleep,
) -> bool:
    """Claim the job for this container; return False if another has it, or the job has ended.

    A client that closes a job which was never submitted takes the claim before it writes the
    record, and the record of a rejected job is written without a claim. So a container that has
    the claim and finds no record may start the program.

    Parameters
    ----------
    environ
        Environment of the container, with YARN's ids.
    wait
        Function that waits for some seconds between two attempts.

    Raises
    ------
    StoreError
        If the job directory is not available for ``save_grace`` seconds, or the operation fails.
    """
    data = new_claim(config.intent, environ)
    deadline = time.monotonic() + config.save_grace
    if not retry(
        lambda: store.publish_exclusive(layout.CLAIM, data),
        deadline,
        wait=wait,
        longest=5.0,
        store=store,
    ):
        return False
    return not retry(
        lambda: store.exists(layout.RECORD), deadline, wait=wait, longest=5.0, store=store
    )


def claimed_by_closer(store: Store) -> bool:
    """Return whether a client holds the first claim, because it closes the job as not submitted.

    A later attempt of an application has its own claim, so it does not conflict with the client's.
    """
    data = store.read(layout.CLAIM)
    try:
        content = json.loads(data) if data is not None else None
    except ValueError:
        return False
    return isinstance(content, dict) and bool(content.get(layout.CLOSER))


def is_superseded(store: Store, attempt: int = 1) -> bool:
    """Return whether a later attempt of the application has a claim, or the job a record.

    Raises
    ------
    StoreError
        If the job directory cannot be listed.
    """
    names = [entry.name for entry in store.entries("")]
    return layout.newest_claim(names) > attempt or layout.RECORD in names


def cancel_request(store: Store) -> dict[str, str] | None:
    """Return ``by`` and ``why`` of ``cancel.json``; None without a request to cancel."""
    data = store.read(layout.CANCEL)
    if data is None:
        return None
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        content = {}
    if not isinstance(content, dict):
        content = {}
    return {key: str(content.get(key) or "")[:500] for key in ("by", "why")}
