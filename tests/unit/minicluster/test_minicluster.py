"""Settings, ports, configuration, downloads and commands of the minicluster, without Hadoop."""

from __future__ import annotations

import json
import os
import socket
import threading
from contextlib import ExitStack
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from submarine_minicluster import Minicluster, MiniclusterError, Settings
from submarine_minicluster.cli import minicluster
from submarine_minicluster.hadoop import (
    QUEUES,
    capacity_scheduler,
    jars,
    maven,
    port_names,
    resourcemanager,
    write_configuration,
)
from submarine_minicluster.hadoop.daemons import last_errors
from submarine_minicluster.layout import Layout
from submarine_minicluster.machine import check_host_name, choose_ports, is_free_port, java
from submarine_minicluster.settings import SavedCluster, parse_memory


@pytest.fixture(autouse=True)
def own_dirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("text", "megabytes"), [("8G", 8192), ("8192M", 8192), ("512", 512), ("1 gib", 1024)]
)
def test_parse_memory(text, megabytes):
    assert parse_memory(text) == megabytes


@pytest.mark.parametrize("text", ["", "8T", "-1G", "8.5G", "many"])
def test_invalid_memory_is_rejected(text):
    with pytest.raises(MiniclusterError, match="Write 8G"):
        parse_memory(text)


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "..", "x" * 42, "a b", "a\n"])
def test_invalid_names_are_rejected(name):
    with pytest.raises(MiniclusterError, match="is not a valid name"):
        Minicluster(name)


@pytest.mark.parametrize(
    "given", [{"hadoop": "2.10.2"}, {"hadoop": "latest"}, {"nodes": 0}, {"gpus": -1}]
)
def test_invalid_settings_are_rejected(given):
    with pytest.raises(MiniclusterError):
        Settings(**given)


def test_saved_settings_are_read_again(tmp_path):
    path = tmp_path / "cluster.json"
    saved = SavedCluster(Settings(gpus=2, nodes=3), "/java", {"rm": 1})
    saved.write(path)
    assert SavedCluster.read(path) == saved
    assert SavedCluster.read(tmp_path / "none.json") is None
    path.write_text("{}")
    with pytest.raises(MiniclusterError, match="does not describe a minicluster"):
        SavedCluster.read(path)


def test_chosen_ports_are_free_and_distinct():
    names = port_names(3)
    first = choose_ports(names, set())
    second = choose_ports(names, set(first.values()))
    assert len(set(first.values()) | set(second.values())) == 2 * len(names)
    with socket.socket() as server:
        server.bind(("127.0.0.1", first["rm"]))
        server.listen()
        assert not is_free_port(first["rm"])
    assert is_free_port(first["rm"])


def test_unresolvable_host_name_is_reported(monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "host.invalid")
    with pytest.raises(MiniclusterError, match=r"127\.0\.1\.1 host\.invalid' to /etc/hosts"):
        check_host_name()


def test_configuration_files_are_consistent(tmp_path):
    layout = Layout(tmp_path / "it's & <odd>")
    layout.make()
    chosen = choose_ports(port_names(2), set())
    saved = SavedCluster(Settings(nodes=2, gpus=3), "/java", chosen, ("ada",))
    write_configuration(layout, saved, tmp_path / "lib")

    def read(path: Path) -> dict[str, str]:
        root = ElementTree.parse(path).getroot()
        return {entry.findtext("name", ""): entry.findtext("value", "") for entry in root}

    client = read(layout.client_conf / "yarn-site.xml")
    server = read(layout.conf("resourcemanager") / "yarn-site.xml")
    assert client.items() <= server.items()
    assert client["yarn.application.classpath"].endswith(str(layout.client_conf))
    nodes = [read(layout.conf(f"nodemanager-{index}") / "yarn-site.xml") for index in (0, 1)]
    assert nodes[0]["yarn.nodemanager.address"] != nodes[1]["yarn.nodemanager.address"]
    for daemon in ("namenode", "datanode", "resourcemanager", "nodemanager-0", "historyserver"):
        policy = read(layout.conf(daemon) / "hadoop-policy.xml")
        served = policy["security.service.authorization.default.acl"]
        assert served == "ada,hdfs,mapred,yarn"
        assert (
            read(layout.conf(daemon) / "core-site.xml")["hadoop.security.authorization"] == "true"
        )
    gpus = read(layout.conf("nodemanager-1") / "node-resources.xml")
    assert gpus == {"yarn.nodemanager.resource-type.yarn.io/gpu": "3"}
    queues = read(layout.conf("resourcemanager") / "capacity-scheduler.xml")
    shares = [int(queues[f"yarn.scheduler.capacity.root.{q}.capacity"]) for q in QUEUES]
    assert sum(shares) == 100
    assert queues["yarn.scheduler.capacity.root.narrow.maximum-am-resource-percent"] == "0.1"


def fake_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_old_or_missing_java_is_reported(tmp_path, monkeypatch):
    old = fake_program(
        tmp_path / "old" / "bin" / "java", "echo 'openjdk version \"1.8.0_392\"' >&2"
    )
    monkeypatch.setattr(java, "_candidates", lambda: [old.parent.parent, tmp_path / "none"])
    with pytest.raises(MiniclusterError, match=r"^Java 8 in .*/old is too old .*openjdk-17") as e:
        java.find_java()
    assert "\n" not in str(e.value)
    monkeypatch.setattr(java, "_candidates", lambda: [tmp_path / "none"])
    with pytest.raises(MiniclusterError, match=r"^No Java was found"):
        java.find_java()
    new = fake_program(tmp_path / "new" / "bin" / "java", "echo 'openjdk version \"21.0.1\"' >&2")
    monkeypatch.setattr(java, "_candidates", lambda: [old.parent.parent, new.parent.parent])
    assert java.find_java().major == 21


JAVA = java.Java(Path("/nowhere"), 17)


def test_missing_or_failing_maven_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(
        MiniclusterError, match=r"^Maven \(mvn\), which downloads Hadoop 3\.5\.0, is not on PATH"
    ):
        jars.ensure_jars("3.5.0", JAVA, print)
    script = f'echo x >>"{tmp_path}/calls"; echo "[ERROR] Could not find artifact 3.9.9"; exit 1'
    fake_program(tmp_path / "bin" / "mvn", script)
    with pytest.raises(
        MiniclusterError, match=r"could not download Hadoop 3\.9\.9: Could not find"
    ):
        jars.ensure_jars("3.9.9", JAVA, print)
    assert not jars.lib_dir("3.9.9").exists()
    assert (tmp_path / "calls").read_text() == "x\n", "a missing artifact is requested once"


def test_maven_is_run_again_after_a_failed_download(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(maven, "PAUSE", 0.0)
    script = 'for a; do case "$a" in -DoutputDirectory=*) d=${a#*=};; esac; done\n'
    script += f'echo x >>"{tmp_path}/calls"; test "$(wc -l <"{tmp_path}/calls")" -ge "$ENOUGH" ||\n'
    script += '  { echo "[ERROR] Could not transfer artifact: Connection reset"; exit 1; }\n'
    script += 'mkdir "$d"; echo >"$d/a.jar"'
    fake_program(tmp_path / "bin" / "mvn", script)
    monkeypatch.setenv("ENOUGH", "9")
    with pytest.raises(MiniclusterError, match=r"^Maven could not download it: Could not transfer"):
        maven.copy_jars("it", tmp_path / "pom.xml", tmp_path / "lib", JAVA, (), print)
    assert (tmp_path / "calls").read_text() == "x\n" * maven.ATTEMPTS
    (tmp_path / "calls").unlink()
    monkeypatch.setenv("ENOUGH", "2")
    said: list[str] = []
    maven.copy_jars("it", tmp_path / "pom.xml", tmp_path / "lib", JAVA, (), said.append)
    assert [path.name for path in (tmp_path / "lib").iterdir()] == ["a.jar"]
    (again,) = said
    assert again.endswith("trying again in 0 s: Could not transfer artifact: Connection reset")


def test_full_disk_is_reported(tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 1 << 20})
    monkeypatch.setattr("submarine_minicluster.hadoop.jars.shutil.disk_usage", lambda path: usage)
    with pytest.raises(MiniclusterError, match=r"has 1 MB free .*needs 600 MB"):
        jars.check_disk(tmp_path, 600 << 20)


@pytest.mark.slow
def test_parallel_downloads_run_maven_once(tmp_path, monkeypatch):
    script = 'for a; do case "$a" in -DoutputDirectory=*) d=${a#*=};; esac; done\n'
    script += f'echo x >>"{tmp_path}/calls"; /bin/sleep 0.3; /bin/mkdir "$d"; echo >"$d/a.jar"'
    fake_program(tmp_path / "bin" / "mvn", script)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    found: list[Path] = []
    said: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(jars.ensure_jars("3.5.0", JAVA, said.append)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert found == [jars.lib_dir("3.5.0")] * 2
    assert [path.name for path in found[0].iterdir()] == ["a.jar"]
    assert (tmp_path / "calls").read_text() == "x\n"


def test_last_errors_of_a_log_are_quoted_without_the_stack(tmp_path):
    log = tmp_path / "daemon.log"
    log.write_text(
        "2026 INFO all is well\n2026 ERROR cannot start\njava.net.BindException: in use\n"
        "\tat java.base/sun.nio.ch.Net.bind0(Native Method)\n2026 INFO goodbye\n"
    )
    assert last_errors(log) == ["2026 ERROR cannot start", "java.net.BindException: in use"]
    log.write_text("only\nwords\n")
    assert last_errors(log, tmp_path / "absent") == ["only", "words"]


def test_commands_on_a_cluster_that_was_never_started():
    runner = CliRunner()
    for command in ("status", "env", "logs"):
        result = runner.invoke(minicluster, [command, "--name", "absent"])
        assert result.exit_code == 1
        assert "There is no minicluster 'absent'." in result.output
        assert "`submarine minicluster start --name absent`" in result.output
    assert "was not running" in runner.invoke(minicluster, ["stop", "--name", "absent"]).output
    refused = runner.invoke(minicluster, ["start", "--memory", "lots"])
    assert refused.exit_code == 1
    assert "Write 8G" in refused.output


def test_status_of_a_stopped_cluster():
    cluster = Minicluster("asleep")
    cluster.layout.make()
    chosen = choose_ports(port_names(1), set())
    SavedCluster(Settings(), "/java", chosen).write(cluster.layout.cluster_file)
    result = CliRunner().invoke(minicluster, ["status", "--name", "asleep", "--json"])
    document = json.loads(result.output)
    assert document["state"] == "stopped"
    assert document["default_fs"] == f"hdfs://127.0.0.1:{chosen['namenode']}"
    assert [daemon["running"] for daemon in document["daemons"]] == [False] * 5
    exports = CliRunner().invoke(minicluster, ["env", "--name", "asleep"]).output
    assert f"export HADOOP_CONF_DIR={cluster.layout.client_conf}\n" in exports
    assert exports.endswith(':"$PATH"\n')


def test_labels_preemption_and_expiry_are_configured(tmp_path: Path) -> None:
    settings = Settings(nodes=2, preemption=True, labels=("fast=1",), node_expiry=5)
    assert settings.node_labels == [("fast", 1)]
    path = tmp_path / "cluster.json"
    SavedCluster(settings, "/java").write(path)
    again = SavedCluster.read(path)
    assert again is not None
    assert again.settings == settings
    rm = resourcemanager(Layout(tmp_path), settings)
    assert rm["yarn.nm.liveness-monitor.expiry-interval-ms"] == "5000"
    assert rm["yarn.resourcemanager.scheduler.monitor.enable"] == "true"
    assert rm["yarn.node-labels.enabled"] == "true"
    plain = resourcemanager(Layout(tmp_path), Settings())
    assert not {key for key in plain if "preemption" in key or "node-labels" in key}
    queues = capacity_scheduler(settings)
    shares = [v for k, v in queues.items() if k.endswith(".fast.capacity") and ".root.a" not in k]
    assert sum(map(int, shares)) == 100
    for wrong in ("fast", "fast=2", "=1", "a b=0"):
        with pytest.raises(MiniclusterError, match="is not a label"):
            Settings(nodes=2, labels=(wrong,))


def test_start_warns_of_simple_authentication(monkeypatch):
    monkeypatch.setattr(Minicluster, "start", lambda self, settings, progress: None)
    started = CliRunner().invoke(minicluster, ["start", "--name", "absent"])
    assert started.exit_code == 0
    assert "Hadoop does not verify the user name that a client gives" in started.stderr
    assert "Ready (Hadoop 3.5.0" in started.stdout


def test_configuration_files_are_replaced_atomically(tmp_path: Path) -> None:
    """Daemons reload their files while they run, and end if a file is incomplete."""
    layout = Layout(tmp_path / "cluster")
    layout.make()
    saved = SavedCluster(Settings(), "/java", choose_ports(port_names(1), set()), ())
    write_configuration(layout, saved, tmp_path / "lib")
    files = sorted(layout.root.rglob("*.xml"))
    assert layout.client_conf / "core-site.xml" in files
    before = {file: file.read_bytes() for file in files}
    with ExitStack() as stack:
        opened = {file: stack.enter_context(file.open("rb")) for file in files}
        write_configuration(layout, saved, tmp_path / "lib")
        for file, stream in opened.items():
            assert stream.read() == before[file]
            assert os.fstat(stream.fileno()).st_ino != file.stat().st_ino
