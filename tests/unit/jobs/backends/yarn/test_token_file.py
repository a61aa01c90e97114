"""Delegation tokens of a file in place of a ticket."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn.cluster import HadoopConf, Identity, client_tokens
from submarine_jobs.backends.yarn.driver.tickets import driver_tickets
from submarine_jobs.model import Profile
from submarine_runtime.kerberos import HDFS_TOKEN, RM_TOKEN, Token, token_bytes

HDFS = Token("", b"hdfs-alice", b"secret", HDFS_TOKEN, "10.0.0.1:8020")
RM = Token("", b"rm-alice", b"secret", RM_TOKEN, "")
PROPERTIES = {
    "hadoop.security.authentication": "kerberos",
    "hadoop.security.token.service.use_ip": "false",
    "fs.defaultFS": "hdfs://nn:8020",
    "yarn.resourcemanager.hostname": "rm",
}
#: Two NameNodes and two ResourceManagers.
PAIRS = {
    "fs.defaultFS": "hdfs://prod",
    "dfs.nameservices": "prod",
    "dfs.ha.namenodes.prod": "a,b",
    "yarn.resourcemanager.ha.enabled": "true",
    "yarn.resourcemanager.ha.rm-ids": "1,2",
    "yarn.resourcemanager.hostname.1": "rm1",
    "yarn.resourcemanager.address.2": "rm2:8033",
}


def configuration(directory: Path, **changes: str) -> HadoopConf:
    for file in ("core-site", "hdfs-site", "yarn-site"):
        properties = {**PROPERTIES, **changes}
        text = "".join(
            f"<property><name>{key}</name><value>{value}</value></property>"
            for key, value in properties.items()
        )
        (directory / f"{file}.xml").write_text(f"<configuration>{text}</configuration>")
    return HadoopConf(directory)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The token file of this process, which has no ticket."""
    path = tmp_path / "tokens"
    path.write_bytes(token_bytes([HDFS, RM]))
    monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(path))
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "no-ticket"))
    return path


def services(conf: HadoopConf) -> set[tuple[str, str]]:
    found = client_tokens(conf, [HDFS, RM])
    assert all(it.alias == it.service for it in found)
    return {(it.kind, it.service) for it in found}


def test_tokens_have_the_names_by_which_clients_look_for_them(tmp_path: Path) -> None:
    assert services(configuration(tmp_path)) == {
        (HDFS_TOKEN, "10.0.0.1:8020"),
        (HDFS_TOKEN, "nn:8020"),
        (RM_TOKEN, "rm:8032"),
    }


def test_a_pair_of_servers_has_one_name(tmp_path: Path) -> None:
    assert services(configuration(tmp_path, **PAIRS)) == {
        (HDFS_TOKEN, "ha-hdfs:prod"),
        (RM_TOKEN, "rm1:8032,rm2:8033"),
    }


def test_each_interface_gets_its_own_token(tmp_path: Path, file: Path) -> None:
    identity = Identity(Profile(), configuration(tmp_path))
    signed: list[tuple[dict[str, str], dict[str, str]]] = []
    for access in (identity.access, identity.file_system_access):
        query: dict[str, str] = {}
        headers: dict[str, str] = {}
        access.authentication.sign("host", "host:1", query, headers)
        signed.append((query, headers))
        assert access.authentication.in_containers == "token"
    assert signed == [
        ({}, {"X-Hadoop-Delegation-Token": RM.url_string}),
        ({"delegation": HDFS.url_string}, {}),
    ]


def test_a_keytab_comes_before_the_tokens(tmp_path: Path, file: Path) -> None:
    profile = Profile(keytab=tmp_path / "alice.keytab", principal="alice@EXAMPLE.COM")
    assert Identity(profile, configuration(tmp_path)).tokens is None


def test_the_driver_is_replaced_after_its_tokens(tmp_path: Path, file: Path) -> None:
    driver = tmp_path / "driver.json"
    driver.write_text("{}")
    tickets = driver_tickets(Profile(), configuration(tmp_path), tmp_path)
    assert tickets.env == {"HADOOP_TOKEN_FILE_LOCATION": str(file)}
    now = driver.stat().st_mtime
    os.utime(file, (now - 10, now - 10))
    assert not tickets.newer_than(driver)
    os.utime(file, (now + 10, now + 10))
    assert tickets.newer_than(driver)
