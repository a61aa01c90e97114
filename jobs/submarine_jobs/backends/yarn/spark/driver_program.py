"""The driver that spark-submit submits: get the private files of the job, and become its agent.

It runs in the container of the application master, as a child of Spark's JVM, on Python 3.8 or
newer. The agent starts the user's program as its child, which connects to the same JVM. Spark
localizes its files for the executors too, so those with secrets are read from the job directory.
"""

from __future__ import annotations

import json
import os
import sys
import time
from functools import partial
from importlib import import_module
from typing import Any

#: Replaced at the submission: the configuration of the agent, the files to read, and the links of
#: the program directory (name in the container, path of the program).
AGENT: dict[str, Any] = {}
FILES: list[str] = []
LINKS: list[list[str]] = []
#: Exit code of an agent whose job directory does not answer.
UNAVAILABLE = 74


def main() -> int:  # noqa: RET503 - execv does not return
    """Write the files of the agent and execute it."""
    os.umask(0o077)
    sys.path.insert(0, os.path.abspath("runtime.zip"))
    # The runtime is in the container only.
    protocol = import_module("submarine_runtime.protocol")
    storage = import_module("submarine_runtime.storage")
    store = storage.open_store(protocol.from_json(protocol.JobStore, AGENT["store"]))
    deadline = time.monotonic() + float(AGENT.get("save_grace", 600.0))
    for name in FILES:
        try:
            data = storage.retry(partial(store.read, name), deadline, store=store)
        except storage.StoreError as error:
            sys.stderr.write(f"submarine driver: {name}: {error}\n")
            return UNAVAILABLE
        if data is None:
            sys.stderr.write(f"submarine driver: {name} is missing in the job directory\n")
            return 2
        with open(name, "wb") as file:
            file.write(data)
    with open("agent.json", "w", encoding="ascii") as file:
        json.dump(AGENT, file)
    for name, target in LINKS:
        path = os.path.join("program", target)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(os.path.relpath(name, os.path.dirname(path)), path)
    arguments = [sys.executable, "-I", "runtime.zip", "agent", "--directory", "."]
    os.execv(sys.executable, arguments)  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    sys.exit(main())
