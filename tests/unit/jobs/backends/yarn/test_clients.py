"""The REST client, the driver's channel and the configuration against misbehaving peers."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.backends import Plan, Submission
from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.application.single import agent_script
from submarine_jobs.backends.yarn.cluster import (
    HadoopConf,
    ResourceManager,
    read_properties,
    tag_of,
)
from submarine_jobs.backends.yarn.driver import (
    DriverChannel,
    DriverTimeoutError,
    DriverUnreachableError,
)
from submarine_jobs.backends.yarn.driver.process import write_overlay
from submarine_jobs.backends.yarn.driver.skein_calls import new_credentials
from submarine_jobs.errors import ClusterError, ConfigError, RefusedError
from submarine_jobs.model import JobSpec, Profile
from submarine_jobs.storage import LocalStorage
from submarine_runtime.cluster_http import simple_access
from submarine_runtime.protocol import AgentConfig, from_json
from tests.configurations import make_agent_config

Answer = Callable[[BaseHTTPRequestHandler], tuple[int, dict[str, str], bytes]]


@pytest.fixture
def servers() -> Iterator[Callable[[Answer], str]]:
    running: list[ThreadingHTTPServer] = []

    def start(answer: Answer) -> str:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, headers, body = answer(self)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_PUT = do_GET

            def log_message(self, *args: Any) -> None:
                return

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        running.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def say(value: Any, status: int = 200) -> Answer:
    return lambda _: (status, {"Content-Type": "application/json"}, json.dumps(value).encode())


def rm(*urls: str, timeout: float = 3.0) -> ResourceManager:
    return ResourceManager(urls, timeout=timeout, access=simple_access("me"))


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_the_active_resourcemanager_is_found(servers: Callable[[Answer], str]) -> None:
    standby = servers(lambda _: (307, {"Location": "http://elsewhere/"}, b"This is standby RM"))
    active = servers(say({"ok": 1}))
    client = rm(closed_port(), standby, active)
    assert client.get("/info") == {"ok": 1}
    before = client.calls
    assert client.get("/info") == {"ok": 1}
    assert client.calls == before + 1
    assert client.url == active


def test_a_resourcemanager_that_is_down_is_one_sentence() -> None:
    with pytest.raises(ClusterError, match="does not answer"):
        rm(closed_port()).get("/info")


@pytest.mark.slow
def test_a_hanging_resourcemanager_costs_the_timeout_and_no_more() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        with pytest.raises(ClusterError, match="does not answer"):
            rm(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.5).get("/info")
        assert time.monotonic() - began < 10


def test_a_broken_keep_alive_connection_is_replaced(servers: Callable[[Answer], str]) -> None:
    url = servers(lambda handler: _then_close(handler))
    client = rm(url)
    assert client.get("/a") == {}
    assert client.get("/b") == {}


def _then_close(handler: BaseHTTPRequestHandler) -> tuple[int, dict[str, str], bytes]:
    handler.close_connection = True
    return 200, {}, b"{}"


def test_answers_without_meaning_are_errors(servers: Callable[[Answer], str]) -> None:
    with pytest.raises(ClusterError, match="something else than JSON"):
        rm(servers(lambda _: (200, {}, b"<html>"))).get("/info")
    with pytest.raises(ClusterError, match="Kerberos"):
        rm(servers(say({}, 401))).get("/info")
    with pytest.raises(RefusedError, match="no such word"):
        rm(servers(say({"RemoteException": {"message": "no such word"}}, 400))).get("/apps")
    assert rm(servers(say({}, 404))).get("/apps/application_1_1") is None


def test_kill_says_whether_it_was_allowed(servers: Callable[[Answer], str]) -> None:
    assert rm(servers(say({"state": "KILLED"}, 202))).kill("application_1_1", "why")
    assert rm(servers(say({}, 404))).kill("application_1_1", "why")
    assert not rm(servers(say({}, 403))).kill("application_1_1", "why")


@pytest.mark.slow
def test_every_driver_call_has_a_timeout() -> None:
    certificate, key = new_credentials()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        channel = DriverChannel(silent.getsockname()[1], certificate, key)
        began = time.monotonic()
        with pytest.raises((DriverTimeoutError, DriverUnreachableError)):
            channel.ping(0.5)
        assert time.monotonic() - began < 15
        channel.close()


def test_no_process_on_the_drivers_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    certificate, key = new_credentials()
    port = int(closed_port().rpartition(":")[2])
    channel = DriverChannel(port, certificate, key)
    with pytest.raises((DriverUnreachableError, DriverTimeoutError)):
        channel.ping(2.0)
    channel.close()


def write_conf(directory: Path, **files: dict[str, str]) -> HadoopConf:
    for name, values in files.items():
        entries = "".join(
            f"<property><name>{k}</name><value>{v}</value></property>" for k, v in values.items()
        )
        path = directory / f"{name.replace('_', '-')}.xml"
        path.write_text(f"<configuration>{entries}</configuration>")
    return HadoopConf(directory)


def test_configuration_with_high_availability(tmp_path: Path) -> None:
    conf = write_conf(
        tmp_path,
        core_site={"fs.defaultFS": "hdfs://ns1"},
        hdfs_site={
            "dfs.ha.namenodes.ns1": "a,b",
            "dfs.namenode.http-address.ns1.a": "nn1:9870",
            "dfs.namenode.http-address.ns1.b": "nn2:9870",
        },
        yarn_site={
            "yarn.resourcemanager.ha.enabled": "true",
            "yarn.resourcemanager.ha.rm-ids": "rm1, rm2",
            "yarn.resourcemanager.hostname.rm1": "h1",
            "yarn.resourcemanager.webapp.address.rm2": "${other}:18088",
            "other": "h2",
        },
    )
    assert conf.resourcemanagers == ["http://h1:8088", "http://h2:18088"]
    assert conf.webhdfs == ["http://nn1:9870", "http://nn2:9870"]
    assert not conf.on_loopback
    assert conf.gpu_resources == ()


def test_the_resource_of_gpus_is_known_by_each_of_its_names(tmp_path: Path) -> None:
    types = "x.io/fpga, nvidia.com/gpu, yarn.io/gpu"
    conf = write_conf(
        tmp_path,
        core_site={"fs.defaultFS": "hdfs://nn:9820"},
        yarn_site={"yarn.resource-types": types},
    )
    assert conf.gpu_resources == ("yarn.io/gpu", "nvidia.com/gpu")


def test_the_driver_waits_for_a_failover_but_not_longer_than_the_timeout(tmp_path: Path) -> None:
    conf = write_conf(tmp_path, core_site={"fs.defaultFS": "hdfs://ns1"})
    overlay = write_overlay(conf, tmp_path / "overlay", 20.0)
    yarn = read_properties(overlay / "yarn-site.xml")
    hdfs = read_properties(overlay / "hdfs-site.xml")
    for attempts, pause in (
        (yarn["yarn.client.failover-max-attempts"], yarn["yarn.client.failover-sleep-max-ms"]),
        (
            hdfs["dfs.client.failover.max.attempts"],
            hdfs["dfs.client.failover.sleep.max.millis"],
        ),
    ):
        assert 10_000 < int(attempts) * int(pause) < 20_000


HA_SITE = {
    "dfs.ha.namenodes.ns1": "a,b",
    "dfs.namenode.rpc-address.ns1.a": "nn1:8020",
    "dfs.namenode.rpc-address.ns1.b": "NN2:9000",
    "dfs.namenode.http-address.ns1.a": "nn1:9870",
    "dfs.namenode.https-address.ns1.b": "nn2:9871",
    "dfs.namenode.rpc-address.ns2.a": "far:8020",
}


@pytest.mark.parametrize(
    ("default", "site", "uri", "path"),
    [
        ("hdfs://ns1", HA_SITE, "hdfs://ns1/a", "/a"),
        ("hdfs://ns1", HA_SITE, "hdfs:///a/", "/a"),
        ("hdfs://ns1", HA_SITE, "/a//b/../c", "/a/c"),
        ("hdfs://ns1", HA_SITE, "hdfs://nn1:8020/a", "/a"),
        ("hdfs://ns1", HA_SITE, "hdfs://nn1/a", "/a"),
        ("hdfs://ns1", HA_SITE, "hdfs://me@nn2:9000/a b%20", "/a b%20"),
        ("hdfs://ns1", HA_SITE, "webhdfs://nn1:9870/a", "/a"),
        ("hdfs://ns1", HA_SITE, "swebhdfs://nn2/a", "/a"),
        ("hdfs://ns1", HA_SITE, "webhdfs://ns1/a", "/a"),
        ("hdfs://ns1", HA_SITE, "hdfs://nn2:8020/a", None),
        ("hdfs://ns1", HA_SITE, "hdfs://ns2/a", None),
        ("hdfs://ns1", HA_SITE, "hdfs://far:8020/a", None),
        ("hdfs://ns1", HA_SITE, "webhdfs://nn1:8020/a", None),
        ("hdfs://ns1", HA_SITE, "s3a://ns1/a", None),
        ("hdfs://ns1", HA_SITE, "a/b", None),
        ("hdfs://nn/", {}, "hdfs://nn:8020/a", "/a"),
        ("hdfs://nn:9000", {}, "hdfs://nn/a", None),
        ("hdfs://nn:9000", {}, "webhdfs://nn/a", "/a"),
        (
            "hdfs://nn:9000",
            {"dfs.namenode.http-address": "0.0.0.0:50070"},
            "webhdfs://nn:50070/a",
            "/a",
        ),
        ("hdfs://nn:9000", {"dfs.namenode.http-address": "nn:1"}, "webhdfs://nn:9870/a", None),
        ("hdfs://one", {"dfs.namenode.rpc-address.one": "h:8020"}, "hdfs://h:8020/a", "/a"),
    ],
)
def test_all_spellings_of_one_hdfs_are_one_file_system(
    default: str, site: dict[str, str], uri: str, path: str | None, tmp_path: Path
) -> None:
    write_conf(tmp_path, core_site={"fs.defaultFS": default}, hdfs_site=site)
    storage, _ = YarnBackend(Profile(backend="yarn", hadoop_conf_dir=tmp_path)).job_root()
    assert storage.path_of(uri) == path


def test_a_changed_configuration_has_another_fingerprint(tmp_path: Path) -> None:
    first = write_conf(tmp_path, core_site={"fs.defaultFS": "hdfs://a:1"}).fingerprint("java")
    assert first == HadoopConf(tmp_path).fingerprint("java")
    assert first != HadoopConf(tmp_path).fingerprint("other")
    second = write_conf(tmp_path, core_site={"fs.defaultFS": "hdfs://b:1"}).fingerprint("java")
    assert first != second


def test_configuration_errors_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no core-site\.xml"):
        HadoopConf(tmp_path)
    conf = write_conf(tmp_path, core_site={"fs.defaultFS": "file:///"})
    with pytest.raises(ConfigError, match="needs an HDFS"):
        _ = conf.default_fs
    (tmp_path / "yarn-site.xml").write_text("<configuration>")
    with pytest.raises(ConfigError, match="cannot be read"):
        HadoopConf(tmp_path)


def test_nothing_of_the_users_is_seen_by_the_shell(tmp_path: Path) -> None:
    nasty = "a'b\"c$(touch hacked)`touch hacked`\nEND-OF-AGENT-JSON\ntouch hacked\\"
    agent = make_agent_config(name=nasty, command=nasty, env={"K": nasty}, args=(nasty,))
    spec = JobSpec(name=nasty, backend="yarn")
    submission = Submission(spec, Plan("", []), LocalStorage(), "/x", agent, "/x/cache/r.zip")
    script = agent_script(submission, "/bin/e cho'", submission.agent)
    script = script.replace("exec ", "echo ")
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, check=True)
    assert from_json(AgentConfig, json.loads((tmp_path / "agent.json").read_text())) == agent
    assert (tmp_path / "agent.json").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "hacked").exists()
    assert b"/bin/e cho'" in done.stdout


def test_tags_are_what_yarn_takes() -> None:
    longest = "x" * 63 + "-20261121-0123456789ab"
    assert tag_of(longest) == f"submarine_job:{longest}"
    assert len(tag_of(longest)) <= 100
