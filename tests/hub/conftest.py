"""A hub with the users alice and bob, and Chromium."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.browser.chromium import chromium_arguments
from tests.hub.hub import PROXY, Hub
from tests.hub.person import Person

USERS = ("alice", "bob")


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, Any]:
    """Arguments of the browser that pytest-playwright starts."""
    return chromium_arguments()


def require_hub() -> None:
    """Skip the test where this process cannot start servers of other users."""
    if os.geteuid() != 0:
        pytest.skip("only root can start servers of several Unix users")
    if not PROXY.is_dir():
        pytest.fail("no JupyterHub here: scripts/setup.sh jupyterhub")


@pytest.fixture(scope="session")
def hub() -> Iterator[Hub]:
    """A hub whose users have the local backend; no server runs yet."""
    require_hub()
    scratch = Path(tempfile.mkdtemp(prefix="submarine-hub-"))
    made = Hub(scratch, USERS, {"SUBMARINE_BACKEND": "local"})
    try:
        if problem := made.namespace.problem():
            pytest.skip(f"no mount namespaces here: {problem}")
        made.start()
        yield made
    finally:
        made.close()
        shutil.rmtree(scratch, ignore_errors=True)


@pytest.fixture(scope="session")
def people(hub: Hub, browser: Browser) -> Iterator[dict[str, Person]]:
    """Both users with JupyterLab open, after a job of each."""
    found = {}
    with contextlib.ExitStack() as stack:
        for name in USERS:
            found[name] = person = Person(hub, browser, name)
            stack.callback(person.context.close)
            try:
                person.login()
                person.run_job()
            except Exception:
                person.lab.shot(f"failed-hub-{name}")
                print(hub.said())
                raise
        yield found
