"""The minicluster on real daemons: what start, status, env, stop and repair promise."""

from __future__ import annotations

import getpass
import http.client
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import skein

from submarine_minicluster import Minicluster, MiniclusterError, Settings
from submarine_minicluster.hadoop import MARK, QUEUES, RestError, WebHdfs, get_json, http_request
from submarine_minicluster.lifecycle import readiness
from submarine_minicluster.machine import find_marked
from tests.waiting import until

pytestmark = pytest.mark.cluster


def pids(cluster: Minicluster) -> dict[str, int | None]:
    return {daemon.name: daemon.pid for daemon in cluster.status().daemons}


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


def finished(client: skein.Client, app: str, timeout: float = 180) -> skein.model.ApplicationReport:
    until(
        lambda: client.application_report(app).final_status != "undefined", f"{app} ended", timeout
    )
    return client.application_report(app)


def test_a_gpu_job_runs_and_its_log_is_served(minicluster, driver):
    app = submit(driver, "echo from-container; echo $HADOOP_CONF_DIR", gpus=2, queue="gpu")
    assert finished(driver, app).final_status == "succeeded"
    history = minicluster.url("historyserver")
    container = get_json(
        f"{minicluster.url('resourcemanager')}/ws/v1/cluster/apps/{app}/appattempts"
    )
    name = container["appAttempts"]["appAttempt"][0]["containerId"]
    url = f"{history}/ws/v1/history/containerlogs/{name}/application.driver.log"

    def log() -> str:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.read().decode()
        except (OSError, http.client.HTTPException):
            return ""

    until(lambda: "from-container" in log(), "the aggregated log", 90)
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
    info = get_json(f"{rm}/ws/v1/cluster/scheduler")["scheduler"]["schedulerInfo"]
    queues = {queue["queueName"]: queue for queue in info["queues"]["queue"]}
    assert set(queues) == set(QUEUES)
    for name, (capacity, _) in QUEUES.items():
        assert queues[name]["capacity"] == capacity
        assert queues[name]["maxCapacity"] == 100
    node = get_json(f"{rm}/ws/v1/cluster/nodes")["nodes"]["node"][0]
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


def test_only_admitted_names_are_served(minicluster):
    def call(user: str, *words: str) -> str:
        environ = {**os.environ, **minicluster.environ(), "HADOOP_USER_NAME": user}
        done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=60)
        return done.stdout + done.stderr

    refused = "User eve (auth:SIMPLE) is not authorized for protocol"
    assert refused in call("eve", "hdfs", "dfs", "-ls", "/")
    assert refused in call("eve", "yarn", "application", "-list")
    minicluster.admit("eve")
    minicluster.admit("eve")
    assert "/user" in call("eve", "hdfs", "dfs", "-ls", "/")
    assert "Total number of applications" in call("eve", "yarn", "application", "-list")
    assert "eve" in minicluster.saved.users


@pytest.mark.parametrize("user", ["mallory", getpass.getuser()])
def test_rest_starts_no_application(minicluster, user):
    url = f"{minicluster.url('resourcemanager')}/ws/v1/cluster/apps"
    for path in ("/new-application", ""):
        status, body, _ = http_request("POST", f"{url}{path}?user.name={user}", body=b"{}")
        assert (status, b"App submission via REST is disabled" in body) == (403, True), body


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
    assert "not a command of the minicluster" in refused.stderr


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


@pytest.mark.full
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
        assert minicluster.status().state == "degraded"
        lines: list[str] = []
        minicluster.start(progress=lines.append)
        after = pids(minicluster)
        assert "some daemons do not run" in lines[0]
        assert {name for name in before if before[name] != after[name]} == set(round_)
        assert minicluster.status().state == "running"
    assert minicluster.saved.ports == ports
    assert hdfs.call("GET", f"/user/{user}/kept", "GETFILESTATUS")["FileStatus"]["length"] == 10


@pytest.mark.full
def test_a_running_job_survives_the_resourcemanager(minicluster, driver, tmp_path):
    go = tmp_path / "go"
    app = submit(driver, f"while [ ! -e {go} ]; do sleep 0.1; done; echo survived")
    until(lambda: driver.application_report(app).state == "running", "running")
    minicluster.kill("resourcemanager")
    minicluster.start()
    go.touch()
    assert finished(driver, app).final_status == "succeeded"


@pytest.mark.full
def test_a_daemon_that_hangs_is_replaced(minicluster, monkeypatch):
    real, hung = readiness.responds, minicluster.url("nodemanager")
    # Patience with all others, however busy this machine is.
    monkeypatch.setattr(
        readiness,
        "responds",
        lambda url, timeout, access: real(url, 3.0 if url == hung else 120.0, access),
    )
    before = pids(minicluster)
    minicluster.kill("nodemanager", signal.SIGSTOP)
    lines: list[str] = []
    minicluster.start(progress=lines.append)
    assert "nodemanager-0 runs but does not answer: killing it" in lines
    after = pids(minicluster)
    assert {name for name in before if before[name] != after[name]} == {"nodemanager-0"}


@pytest.mark.full
def test_a_daemon_without_its_pidfile_is_found_and_replaced(minicluster):
    """As a `start` leaves it that was killed between the two."""
    before = pids(minicluster)["historyserver"]
    minicluster.layout.pidfile("historyserver").unlink()
    assert minicluster.status().state == "degraded"
    minicluster.start()
    assert pids(minicluster)["historyserver"] != before
    assert not Path(f"/proc/{before}").exists()
    assert minicluster.status().state == "running"


@pytest.mark.full
def test_an_occupied_port_is_reported_with_the_daemons_message(minicluster):
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


@pytest.mark.full
def test_an_older_hadoop_starts_and_runs_a_command(tmp_path):
    cluster = Minicluster("older", parent=tmp_path)
    try:
        cluster.start(Settings(hadoop="3.3.6"), print)
        info = get_json(f"{cluster.url('resourcemanager')}/ws/v1/cluster/info")["clusterInfo"]
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
    assert find_marked(MARK, str(tmp_path / "older")) == []
