"""Which HDFS a URI names, and how this process signs in there."""

from __future__ import annotations

from pathlib import Path

import pytest

from submarine_data.remote import (
    ClientConfiguration,
    RemoteError,
    client_configuration,
    hdfs_clients,
    read_hadoop_settings,
    remote_file_system,
)
from submarine_runtime.agent.program import place_client_configuration
from submarine_runtime.kerberos import Token, TokenFile, WebHdfsTokens, token_bytes
from submarine_runtime.protocol import AgentConfig, HdfsClients, JobRecord, JobSpec, JobStore, State
from submarine_runtime.storage import Scratch

SETTINGS = {
    "fs.defaultFS": "hdfs://ns1",
    "dfs.nameservices": "ns1,ns2",
    "dfs.ha.namenodes.ns1": "a,b",
    "dfs.namenode.http-address.ns1.a": "one:9870",
    "dfs.namenode.http-address.ns1.b": "two:9870",
    "dfs.namenode.rpc-address.ns1.a": "one:8020",
    "dfs.namenode.rpc-address.ns1.b": "two:8020",
    "dfs.ha.namenodes.ns2": "x",
    "dfs.namenode.http-address.ns2.x": "${other}:50070",
    "dfs.namenode.rpc-address.ns2.x": "${other}:8020",
    "other": "three",
    "fs.viewfs.mounttable.all.link./data": "hdfs://ns2/warehouse",
    "fs.viewfs.mounttable.all.link./data/hot": "hdfs://ns1/hot",
    "fs.viewfs.mounttable.all.linkFallback": "hdfs://ns1/rest",
    "hadoop.security.authentication": "simple",
}


def conf(directory: Path, settings: dict[str, str]) -> str:
    rows = (
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in settings.items()
    )
    (directory / "core-site.xml").write_text(f"<configuration>{''.join(rows)}</configuration>")
    return str(directory)


@pytest.mark.parametrize(
    ("uri", "urls", "path"),
    [
        ("hdfs:///d/x?#%20", ("http://one:9870", "http://two:9870"), "/d/x?#%20"),
        ("hdfs://ns1/d", ("http://one:9870", "http://two:9870"), "/d"),
        ("hdfs://NS2/d", ("http://three:50070",), "/d"),
        ("hdfs://two:8020/d", ("http://two:9870",), "/d"),
        ("hdfs://three/d", ("http://three:50070",), "/d"),
        ("hdfs://elsewhere:8020/d", ("http://elsewhere:9870",), "/d"),
        ("webhdfs://elsewhere:1234/d", ("http://elsewhere:1234",), "/d"),
        ("swebhdfs://elsewhere:1234/d", ("https://elsewhere:1234",), "/d"),
        ("webhdfs://ns1/d", ("http://one:9870", "http://two:9870"), "/d"),
        ("viewfs://all/data/x", ("http://three:50070",), "/warehouse/x"),
        ("viewfs://all/data/hot/x", ("http://one:9870", "http://two:9870"), "/hot/x"),
        ("viewfs://all/datax", ("http://one:9870", "http://two:9870"), "/rest/datax"),
        ("hdfs://ns1", ("http://one:9870", "http://two:9870"), "/"),
    ],
)
def test_places(tmp_path: Path, uri: str, urls: tuple[str, ...], path: str) -> None:
    hdfs = hdfs_clients(read_hadoop_settings(conf(tmp_path, SETTINGS)))
    place = ClientConfiguration(hdfs).place(uri)
    assert (place.urls, place.path) == (urls, path)


def test_unknown_places() -> None:
    with pytest.raises(RemoteError, match="no default file system is configured"):
        ClientConfiguration().place("hdfs:///d")
    with pytest.raises(RemoteError, match="below no mount of viewfs"):
        ClientConfiguration(HdfsClients(mounts={"a": {"/b": "hdfs://x/"}})).place("viewfs://a/c")
    with pytest.raises(RemoteError, match="no scheme"):
        remote_file_system("/d")


def test_secure_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secure = {
        "fs.defaultFS": "hdfs://one:8020",
        "hadoop.security.authentication": "kerberos",
        "dfs.http.policy": "HTTPS_ONLY",
        "dfs.namenode.https-address": "0.0.0.0:9999",
    }
    monkeypatch.delenv("SUBMARINE_DATA_CONFIG", raising=False)
    monkeypatch.delenv("HADOOP_TOKEN_FILE_LOCATION", raising=False)
    monkeypatch.setenv("HADOOP_CONF_DIR", conf(tmp_path, secure))
    assert client_configuration().authentication == "ticket"
    assert client_configuration().place("hdfs:///d").urls == ("https://one:9999",)
    monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", "/x")
    assert client_configuration().authentication == "token"


@pytest.mark.parametrize("settings", [SETTINGS, {"fs.defaultFS": "hdfs://one:8020"}])
def test_the_files_of_an_agent_mean_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]
) -> None:
    hdfs = hdfs_clients(read_hadoop_settings(conf(tmp_path, settings)))
    store = JobStore("webhdfs", "/j", ["http://one:9870"], "alice", ca="PEM")
    config = AgentConfig(
        JobSpec("a", "yarn"), JobRecord("a", "a", State.PENDING), "i", store, hdfs=hdfs
    )
    scratch = Scratch(str(tmp_path / "scratch"), str(tmp_path), "worker-0")
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("HADOOP_USER_NAME", raising=False)
    variables = place_client_configuration(config, scratch)
    assert variables["HADOOP_USER_NAME"] == "alice"
    assert read_hadoop_settings(variables["HADOOP_CONF_DIR"])["fs.defaultFS"] == hdfs.default
    again = hdfs_clients(read_hadoop_settings(variables["HADOOP_CONF_DIR"]))
    assert again == hdfs
    monkeypatch.setenv("SUBMARINE_DATA_CONFIG", variables["SUBMARINE_DATA_CONFIG"])
    found = client_configuration()
    assert (found.hdfs, found.user) == (hdfs, "alice")
    assert Path(found.ca).read_text() == "PEM"
    # That of the container, or of the user, is kept.
    monkeypatch.setenv("HADOOP_CONF_DIR", variables["HADOOP_CONF_DIR"])
    monkeypatch.setenv("HADOOP_USER_NAME", "bob")
    assert list(place_client_configuration(config, scratch)) == ["SUBMARINE_DATA_CONFIG"]


def test_a_job_without_hdfs_gets_no_files(tmp_path: Path) -> None:
    store = JobStore("local", "/j")
    config = AgentConfig(JobSpec("a", "local"), JobRecord("a", "a", State.PENDING), "i", store)
    scratch = Scratch(str(tmp_path / "scratch"), str(tmp_path), "worker-0")
    assert place_client_configuration(config, scratch) == {}
    assert not (tmp_path / "scratch").exists()


def test_each_nameservice_gets_its_token(tmp_path: Path) -> None:
    file = TokenFile(str(tmp_path / "tokens"))
    kind = "HDFS_DELEGATION_TOKEN"
    tokens = [Token(name, name.encode(), b"p", kind, f"ha-hdfs:{name}") for name in ("ns1", "ns2")]
    Path(file.path).write_bytes(token_bytes(tokens))
    for service, used in (("ha-hdfs:ns2", tokens[1]), ("ha-hdfs:ns3", tokens[0])):
        query: dict[str, str] = {}
        WebHdfsTokens(file, services=(service,)).sign("h", "h:1", query, {})
        assert query["delegation"] == used.url_string
