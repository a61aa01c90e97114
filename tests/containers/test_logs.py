"""The logs of programs that run as their users, as YARN shows and aggregates them."""

from __future__ import annotations

import time

from tests.containers.conftest import Containers

_AGGREGATION_SECONDS = 60


def _aggregated(containers: Containers, application: str) -> str:
    """Return the aggregated log of an application, as YARN's command prints it."""
    deadline = time.monotonic() + _AGGREGATION_SECONDS
    while True:
        done = containers.yarn("logs", "-applicationId", application)
        if "LogType:" in done or time.monotonic() > deadline:
            return done
        time.sleep(1)


def test_yarn_shows_and_aggregates_the_log_of_a_program(containers: Containers) -> None:
    source = """
    import os, stat, time, urllib.request
    print("a line of the program", flush=True)
    time.sleep(1)
    user, container = os.environ["USER"], os.environ["CONTAINER_ID"]
    log = [n for n in os.listdir(os.environ["LOG_DIRS"]) if n.endswith("stdout.log")][0]
    print("mode", oct(stat.S_IMODE(os.stat(os.path.join(os.environ["LOG_DIRS"], log)).st_mode)))
    url = f"http://node0:8042/node/containerlogs/{container}/{user}/{log}/?start=0"
    print("page", "a line of the program" in urllib.request.urlopen(url).read().decode())
    """
    done = containers.run(source)
    assert "mode 0o640\n" in done.output
    assert "page True\n" in done.output
    assert "a line of the program\n" in _aggregated(containers, containers.application(done))
