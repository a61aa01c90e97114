"""The script of ``doctor --fix`` on a cluster without GPUs and cgroups, with a stopped queue.

The script edits the configuration files of the daemons, which then start with them as they are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.backends.yarn.cluster import read_properties, write_properties
from submarine_minicluster import Minicluster, Settings
from submarine_minicluster.pytest_plugin import running
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]
QUEUE = "narrow"
#: What Hadoop's plugin reads of NVIDIA's program: a node with one GPU, which does not exist.
_NVIDIA = """#!/bin/sh
cat <<XML
<?xml version="1.0" ?>
<nvidia_smi_log><driver_version>550.54.15</driver_version>
<gpu id="00000000:04:00.0"><product_name>A100</product_name><uuid>GPU-1</uuid>
<minor_number>0</minor_number>
<fb_memory_usage><total>40960 MiB</total><used>0 MiB</used><free>40960 MiB</free></fb_memory_usage>
<utilization><gpu_util>0 %</gpu_util></utilization>
<temperature><gpu_temp>30 C</gpu_temp><gpu_temp_max_threshold>90 C</gpu_temp_max_threshold>
<gpu_temp_slow_threshold>80 C</gpu_temp_slow_threshold></temperature></gpu></nvidia_smi_log>
XML
"""


@pytest.fixture
def cluster() -> Iterator[Minicluster]:
    with running("SUBMARINE_TEST_FIX_MINICLUSTER", Settings(gpus=0)) as found:
        path = found.layout.conf("resourcemanager") / "capacity-scheduler.xml"
        key = f"yarn.scheduler.capacity.root.{QUEUE}.state"
        path.write_bytes(write_properties({**read_properties(path), key: "STOPPED"}))
        found.reload("resourcemanager")
        yield found


def doctor(
    cluster: Minicluster, directory: Path, *words: str, conf: Path | None = None
) -> dict[str, Any]:
    """Return the findings by name, or the whole value of ``--fix``."""
    environ = {
        **os.environ,
        **cluster.environ(),
        "SUBMARINE_STATE_DIR": str(directory / "state"),
        "XDG_CONFIG_HOME": str(directory),
        "SUBMARINE_QUEUE": QUEUE,
    }
    if conf is not None:
        environ["HADOOP_CONF_DIR"] = str(conf)
    command = [sys.executable, "-m", "submarine_jobs.cli", "doctor", "--json", *words]
    done = subprocess.run(command, env=environ, cwd=directory, capture_output=True, text=True)
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def statuses(value: Mapping[str, Any]) -> dict[str, str]:
    return {check["name"]: check["status"] for check in value["checks"]}


def test_the_script_makes_the_doctor_pass(cluster: Minicluster, tmp_path: Path) -> None:
    node = cluster.layout.conf("nodemanager-0")
    before = statuses(doctor(cluster, tmp_path))
    assert (before["resource types"], before["queues"]) == ("warning", "error")
    assert "cgroups" not in before, "that is a check of nodes"

    found = doctor(cluster, tmp_path, "--fix", "--items", "all")
    assert {one["name"] for one in found["fixes"]} == {"queues", "resource types"}
    script = tmp_path / found["script"]

    nvidia = tmp_path / "bin" / "nvidia-smi"
    nvidia.parent.mkdir()
    nvidia.write_text(_NVIDIA)
    nvidia.chmod(0o755)
    (tmp_path / "cgroup" / "memory").mkdir(parents=True)
    environ = {
        "PATH": f"{nvidia.parent}:{os.environ['PATH']}",
        "CGROUP_ROOT": str(tmp_path / "cgroup"),
    }

    def run(mode: str) -> None:
        for machine, conf in (
            ("client", cluster.layout.client_conf),
            ("resourcemanager", cluster.layout.conf("resourcemanager")),
            ("node", node),
        ):
            subprocess.run(
                ["sh", str(script), mode, machine],
                env={**environ, "HADOOP_CONF_DIR": str(conf)},
                check=True,
                timeout=60,
            )

    plain = (node / "yarn-site.xml").read_bytes()
    run("dry-run")
    assert (node / "yarn-site.xml").read_bytes() == plain
    run("apply")
    cluster.reload("nodemanager-0", "resourcemanager")

    def passes() -> bool:
        after = statuses(doctor(cluster, tmp_path))
        return (after["resource types"], after["queues"]) == ("ok", "ok")

    until(passes, lambda: doctor(cluster, tmp_path)["checks"])
    checks = doctor(cluster, tmp_path, "--node", conf=node)["checks"]
    cgroups = next(one for one in checks if one["name"] == "cgroups")
    assert (cgroups["status"], "YARN uses it" in cgroups["sentence"]) == ("ok", True), cgroups

    run("undo")
    assert read_properties(node / "yarn-site.xml") == _read(plain, tmp_path)
    assert not (cluster.layout.client_conf / "resource-types.xml").exists()


def _read(text: bytes, directory: Path) -> dict[str, str]:
    path = directory / "before.xml"
    path.write_bytes(text)
    return read_properties(path)
