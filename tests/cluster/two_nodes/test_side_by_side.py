"""Two miniclusters side by side; the one of two nodes is stopped in the end and leaves no trace."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from pathlib import Path

import pytest
import skein

from submarine_minicluster import Minicluster
from submarine_minicluster.hadoop import MARK
from submarine_minicluster.lifecycle.shutdown import stop_drivers
from submarine_minicluster.machine import find_marked
from tests.waiting import until

from .conftest import Command

pytestmark = pytest.mark.cluster


def command_lines() -> list[str]:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_text(errors="replace"))
        except OSError:
            continue
    return lines


def test_the_command_line_shows_it_beside_the_first(
    minicluster: Minicluster, two: Minicluster, command: Command
) -> None:
    status = json.loads(command("status", "--name", "two", "--json"))
    assert status["state"] == "running"
    assert status["settings"]["memory_mb"] == 6144
    mine = {daemon["port"] for daemon in status["daemons"]}
    assert not mine & set(minicluster.saved.ports.values())
    assert "running" in command("status", "--all")
    logged = command("logs", "--name", "two", "nodemanager-1", "-n", "100000")
    assert "Registered with ResourceManager" in logged
    env = json.loads(command("env", "--name", "two", "--json"))
    script = 'eval "$1"; command -v yarn; echo "$HADOOP_CONF_DIR"'
    shell = subprocess.run(
        ["sh", "-c", script, "sh", command("env", "--name", "two")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.splitlines()
    assert shell == [f"{env['PATH'].split(':')[0]}/yarn", env["HADOOP_CONF_DIR"]]


def test_stopped_while_a_job_runs_it_leaves_no_trace(
    minicluster: Minicluster,
    two: Minicluster,
    command: Command,
    data_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = data_home / "jupyter-submarine" / "minicluster" / "two"
    for key, value in two.environ().items():
        monkeypatch.setenv(key, value)
    with skein.Client(security=skein.Security.new_credentials(), log_level="ERROR") as client:
        # One child moves to a session of its own; one wipes its environment.
        master = skein.Master(
            resources=skein.Resources(memory="512 MiB", vcores=1),
            script="setsid sleep 987 & env -i sleep 988",
        )
        app = client.submit(skein.ApplicationSpec(name="test", master=master))
        until(lambda: client.application_report(app).state == "running", "running")
        for second in ("987", "988"):
            until(
                partial(
                    lambda second: any(f"sleep\x00{second}" in it for it in command_lines()), second
                ),
                "the container's children",
            )
        command("stop", "--name", "two")
        assert stop_drivers(two.layout.client_conf) == 0, "skein's driver outlived the cluster"
    assert find_marked(MARK, str(root)) == []
    assert not any("sleep\x0098" in line for line in command_lines())
    assert json.loads(command("status", "--name", "two", "--json"))["state"] == "stopped"
    command("stop", "--name", "two", "--delete-data")
    assert not root.exists()
    assert minicluster.status().state == "running"
