"""The minicluster on real daemons: what start, status, env, stop and repair promise."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import skein

from submarine_minicluster import Minicluster, MiniclusterError, Settings, bringup
from submarine_minicluster import processes as proc
from submarine_minicluster.config import MARK, QUEUES
from submarine_minicluster.drivers import end_drivers
from submarine_minicluster.rest import RestError, WebHdfs, get

pytestmark = pytest.mark.cluster


def run_command(*arguments: str, env: dict[str, str] | None = None) -> str:
    """`python -m submarine_minicluster ...` as its own process; its standard output."""
    done = subprocess.run(
        [sys.executable, "-m", "submarine_minicluster", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **(env or {})},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def pids(cluster: Minicluster) -> dict[str, int | None]:
    return {daemon.name: daemon.pid for daemon in cluster.status().daemons}


def wait_for(check, what: str, timeout: float = 60) -> None:
    deadline = time.monotonic() + timeout
    while not check():
        assert time.monotonic() < deadline, f"not in {timeout} s: {what}"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def driver(minicluster: Minicluster) -> Iterator[skein.Client]:
    with pytest.MonkeyPatch.context() as patch:
        for key, value in minicluster.environ().items():
            patch.setenv(key, value)
        with skein.Client(security=skein.Security.new_credentials(), log_level="ERROR") as client:
            yield client


def submit(client: skein.Client, script: str, **options: object) -> str:
    resources = skein.Resources(memory="512 MiB", vcores=1, gpus=options.pop("gpus", 0))
    master = skein.Master(resources=resources, script=script)
    return client.submit(skein.ApplicationSpec(name="test", master=master, **options))


def finished(client: skein.Client, app: str, timeout: float = 90) -> skein.model.ApplicationReport:
    wait_for(
        lambda: client.application_report(app).final_status != "undefined", f"{app} ended", timeout
    )
    return client.application_report(app)


def test_a_gpu_job_runs_and_its_log_is_served(minicluster, driver):
    app = submit(driver, "echo from-container; echo $HADOOP_CONF_DIR", gpus=2, queue="gpu")
    assert finished(driver, app).final_status == "succeeded"
    history = minicluster.url("historyserver")
    container = get(f"{minicluster.url('resourcemanager')}/ws/v1/cluster/apps/{app}/appattempts")
    name = container["appAttempts"]["appAttempt"][0]["containerId"]
    url = f"{history}/ws/v1/history/containerlogs/{name}/application.driver.log"

    def log() -> str:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.read().decode()
        except OSError:
            return ""

    wait_for(lambda: "from-container" in log(), "the aggregated log", 30)
    assert str(minicluster.layout.client_conf) in log()


def test_a_container_over_its_memory_is_killed_by_yarn(minicluster, driver):
    script = f"{sys.executable} -c \"x = b'x' * (1200 << 20); import time; time.sleep(60)\""
    report = finished(driver, submit(driver, script))
    assert report.final_status == "failed"
    assert "exit code 143" in report.diagnostics
    log = minicluster.layout.log("nodemanager-0").read_text()
    assert "beyond the 'PHYSICAL' memory limit" in log


def test_queues_and_resources_are_as_promised(minicluster):
    rm = minicluster.url("resourcemanager")
    info = get(f"{rm}/ws/v1/cluster/scheduler")["scheduler"]["schedulerInfo"]
    queues = {queue["queueName"]: queue for queue in info["queues"]["queue"]}
    assert set(queues) == set(QUEUES)
    for name, (capacity, _) in QUEUES.items():
        assert queues[name]["capacity"] == capacity
        assert queues[name]["maxCapacity"] == 100
    node = get(f"{rm}/ws/v1/cluster/nodes")["nodes"]["node"][0]
    resources = {
        one["name"]: one["value"]
        for one in node["totalResource"]["resourceInformations"]["resourceInformation"]
    }
    assert resources == {"memory-mb": 8192, "vcores": 8, "yarn.io/gpu": 4}


def test_hdfs_refuses_what_another_user_may_not(minicluster):
    minicluster.add_user("alice")
    base = minicluster.url("namenode")
    alice, me = WebHdfs(base, "alice"), WebHdfs(base, os.environ.get("USER") or "root")
    alice.write("/user/alice/mine", b"x")
    alice.call("PUT", "/user/alice/mine", "SETPERMISSION", permission="600")
    with pytest.raises(RestError, match="Permission denied: user="):
        me.call("GET", "/user/alice/mine", "OPEN")
    with pytest.raises(RestError, match="Permission denied: user="):
        me.call("DELETE", "/user/alice/mine", "DELETE")


def test_client_environment_answers_for_skein_and_for_people(minicluster_env):
    jars = subprocess.run(
        ["yarn", "classpath", "--glob"], capture_output=True, text=True, check=True, timeout=30
    ).stdout.strip()
    parts = jars.split(":")
    assert parts[-1] == os.environ["HADOOP_CONF_DIR"]
    assert len(parts) > 150
    assert all(Path(part).exists() for part in parts)
    files = {path.name for path in Path(os.environ["HADOOP_CONF_DIR"]).iterdir()}
    assert {"core-site.xml", "hdfs-site.xml", "yarn-site.xml", "mapred-site.xml"} <= files
    assert "resource-types.xml" in files
    listed = subprocess.run(
        ["hdfs", "dfs", "-ls", "/"], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert "/user" in listed
    refused = subprocess.run(["yarn", "jar"], capture_output=True, text=True, timeout=30)
    assert refused.returncode == 2
    assert "not in the minicluster" in refused.stderr


def test_a_second_start_finds_the_first(minicluster):
    before = pids(minicluster)
    lines: list[str] = []
    minicluster.start(minicluster.saved.settings, lines.append)
    assert pids(minicluster) == before
    assert "is running already" in lines[0]


def test_other_settings_are_refused_while_it_runs(minicluster):
    with pytest.raises(MiniclusterError, match="running with other settings"):
        minicluster.start(Settings(gpus=1))
    with pytest.raises(MiniclusterError, match="running with other settings"):
        minicluster.start(Settings(hadoop="3.3.6"))


def test_every_killed_daemon_is_repaired_and_the_data_kept(minicluster):
    base, user = minicluster.url("namenode"), os.environ.get("USER") or "root"
    hdfs = WebHdfs(base, user)
    hdfs.write(f"/user/{user}/kept", b"still here")
    ports = minicluster.saved.ports
    # Two rounds: what HDFS needs, and what YARN needs.
    for round_ in (["namenode", "historyserver"], ["datanode", "resourcemanager", "nodemanager-0"]):
        before = pids(minicluster)
        for name in round_:
            minicluster.kill(name)
        assert minicluster.status().state == "half dead"
        lines: list[str] = []
        minicluster.start(progress=lines.append)
        after = pids(minicluster)
        assert "half dead" in lines[0]
        assert {name for name in before if before[name] != after[name]} == set(round_)
        assert minicluster.status().state == "running"
    assert minicluster.saved.ports == ports
    assert hdfs.call("GET", f"/user/{user}/kept", "GETFILESTATUS")["FileStatus"]["length"] == 10


def test_a_running_job_survives_the_resourcemanager(minicluster, driver):
    app = submit(driver, "sleep 15; echo survived")
    wait_for(lambda: driver.application_report(app).state == "running", "running")
    minicluster.kill("resourcemanager")
    minicluster.start()
    assert finished(driver, app).final_status == "succeeded"


def test_a_daemon_that_hangs_is_replaced(minicluster, monkeypatch):
    monkeypatch.setattr(bringup, "HANGS_AFTER", 3.0)
    before = pids(minicluster)
    minicluster.kill("nodemanager", signal.SIGSTOP)
    lines: list[str] = []
    minicluster.start(progress=lines.append)
    assert "nodemanager-0 runs but does not answer: killing it" in lines
    after = pids(minicluster)
    assert {name for name in before if before[name] != after[name]} == {"nodemanager-0"}


def test_a_daemon_without_its_pidfile_is_found_and_replaced(minicluster):
    """As a `start` leaves it that was killed between the two."""
    before = pids(minicluster)["historyserver"]
    minicluster.layout.pidfile("historyserver").unlink()
    assert minicluster.status().state == "half dead"
    minicluster.start()
    assert pids(minicluster)["historyserver"] != before
    assert not Path(f"/proc/{before}").exists()
    assert minicluster.status().state == "running"


def test_an_occupied_port_is_told_in_the_daemons_own_words(minicluster):
    minicluster.kill("historyserver")
    port = minicluster.saved.ports["history-http"]
    with socket.socket() as intruder:
        intruder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        intruder.bind(("127.0.0.1", port))
        intruder.listen()
        with pytest.raises(MiniclusterError, match="JobHistoryServer") as error:
            minicluster.start()
    assert "in use" in str(error.value)
    assert "\tat " not in str(error.value)
    minicluster.start()


@pytest.fixture
def own_dirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory of this test's own; the cache stays shared."""
    from submarine_minicluster.artifacts import cache_dir

    cache = cache_dir()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))
    return tmp_path


def test_from_the_command_line_side_by_side_to_nothing(minicluster, own_dirs, tmp_path):
    """A second cluster beside the first: two nodes, a job running, stopped without a trace."""
    started = time.monotonic()
    out = run_command("start", "--name", "two", "--nodes", "2", "--memory", "2G", "--gpus", "1")
    print(f"second cluster started in {time.monotonic() - started:.1f} s")
    try:
        assert "YARN has 2 nodes" in out
        status = json.loads(run_command("status", "--name", "two", "--json"))
        assert status["state"] == "running"
        assert status["settings"]["memory_mb"] == 2048
        mine = {daemon["port"] for daemon in status["daemons"]}
        assert not mine & set(minicluster.saved.ports.values())
        assert "running" in run_command("status", "--all")
        assert "Registered with ResourceManager" in run_command(
            "logs", "--name", "two", "nodemanager-1", "-n", "500"
        )
        env = json.loads(run_command("env", "--name", "two", "--json"))
        script = 'eval "$1"; command -v yarn; echo "$HADOOP_CONF_DIR"'
        shell = subprocess.run(
            ["sh", "-c", script, "sh", run_command("env", "--name", "two")],
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        ).stdout.splitlines()
        assert shell == [f"{env['PATH'].split(':')[0]}/yarn", env["HADOOP_CONF_DIR"]]
        root = own_dirs / "jupyter-submarine" / "minicluster" / "two"
        with pytest.MonkeyPatch.context() as patch:
            for key, value in env.items():
                patch.setenv(key, value)
            with skein.Client(
                security=skein.Security.new_credentials(), log_level="ERROR"
            ) as client:
                # One child moves to a session of its own; one wipes its environment.
                app = submit(client, "setsid sleep 987 & env -i sleep 988")
                wait_for(lambda: client.application_report(app).state == "running", "running")
                wait_for(lambda: sleeping(root) >= 1, "the container's children")
                run_command("stop", "--name", "two")
                conf = Path(env["HADOOP_CONF_DIR"])
                assert end_drivers(conf) == 0, "skein's driver outlived the cluster"
        assert proc.marked(MARK, str(root)) == []
        assert not any("sleep\x0098" in line for line in command_lines())
        assert json.loads(run_command("status", "--name", "two", "--json"))["state"] == "stopped"
    finally:
        run_command("stop", "--name", "two", "--delete-data")
    assert not (own_dirs / "jupyter-submarine" / "minicluster" / "two").exists()
    assert minicluster.status().state == "running"


def command_lines() -> list[str]:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_text(errors="replace"))
        except OSError:
            continue
    return lines


def sleeping(root: Path) -> int:
    assert proc.marked(MARK, str(root))
    return sum("sleep\x00987" in line for line in command_lines())


def test_an_older_hadoop_runs_a_job(tmp_path):
    cluster = Minicluster("older", parent=tmp_path)
    try:
        cluster.start(Settings(hadoop="3.3.6"), print)
        info = get(f"{cluster.url('resourcemanager')}/ws/v1/cluster/info")["clusterInfo"]
        assert info["hadoopVersion"] == "3.3.6"
        with pytest.MonkeyPatch.context() as patch:
            for key, value in cluster.environ().items():
                patch.setenv(key, value)
            with skein.Client(
                security=skein.Security.new_credentials(), log_level="ERROR"
            ) as client:
                app = submit(client, "echo hello", gpus=1)
                assert finished(client, app).final_status == "succeeded"
    finally:
        cluster.stop(print, delete_data=True)
    assert proc.marked(MARK, str(tmp_path / "older")) == []
