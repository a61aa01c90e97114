"""Delegation tokens of a file in place of a ticket."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn.cluster import HadoopConf, Identity, TokenSource, client_tokens
from submarine_jobs.backends.yarn.driver import driver_tickets
from submarine_jobs.errors import ClusterError, ConfigError, TicketError
from submarine_jobs.model import Profile, default_state_dir, use_container_cache
from submarine_runtime.kerberos import (
    HDFS_TOKEN,
    RM_TOKEN,
    CredentialState,
    GssError,
    Token,
    token_bytes,
)

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


class TestContainer:
    """A process in a YARN container, whose file contains the tokens of its own application."""

    @pytest.fixture
    def directory(self, tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        container = tmp_path / "container"
        container.mkdir()
        file.rename(container / "container_tokens")
        monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(container / "container_tokens"))
        monkeypatch.setenv("CONTAINER_ID", "container_1_0001_01_000001")
        monkeypatch.setenv("LOGNAME", "alice")
        monkeypatch.delenv("HADOOP_USER_NAME", raising=False)
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)
        return container

    def test_its_tokens_submit_no_job(self, tmp_path: Path, directory: Path) -> None:
        conf = configuration(tmp_path)
        assert Identity(Profile(), conf).own_tokens
        with pytest.raises(TicketError, match=r"watch jobs, but not submit one.*%submarine login"):
            driver_tickets(Profile(), conf, tmp_path)
        with pytest.raises(ClusterError, match="this container has no ticket"):
            TokenSource(conf, Identity(Profile(), conf), 1.0).text()

    @pytest.mark.parametrize(
        ("service", "changes", "native"),
        [
            (HDFS.service, {}, False),
            ("nn:8020", {}, True),
            ("ha-hdfs:prod", PAIRS, True),
            (HDFS.service, PAIRS, False),
        ],
    )
    def test_hdfs_native_is_used_where_it_finds_the_token(
        self,
        tmp_path: Path,
        directory: Path,
        service: str,
        changes: dict[str, str],
        native: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """A container without an agent has only the address; a ticket there may expire."""
        conf = configuration(tmp_path, **changes)
        file = directory / "container_tokens"
        file.write_bytes(token_bytes([replace(HDFS, service=service), RM]))
        assert Identity(Profile(), conf).process_wide is native
        ticket = CredentialState("alice@EXAMPLE.COM", 60.0)
        monkeypatch.setattr(f"{Identity.__module__}.credential_state", lambda *_: ticket)
        assert Identity(Profile(), conf).process_wide is native
        monkeypatch.delenv("CONTAINER_ID")
        assert Identity(Profile(), conf).process_wide

    def test_a_ticket_is_used_as_soon_as_there_is_one_and_only_while_it_is_valid(
        self, tmp_path: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        identity = Identity(Profile(), configuration(tmp_path))
        signed: list[bool] = []
        states = [
            GssError("none"),
            CredentialState("alice@EXAMPLE.COM", 60.0),
            GssError("it has expired"),
        ]
        monkeypatch.setattr("submarine_runtime.kerberos.negotiation.negotiate", lambda *_: "word")
        monkeypatch.setattr(f"{Identity.__module__}._FRESH", -1.0)
        for state in states:

            def present(*_: object, state: object = state) -> object:
                if isinstance(state, Exception):
                    raise state
                return state

            monkeypatch.setattr(f"{Identity.__module__}.credential_state", present)
            headers: dict[str, str] = {}
            identity.access.authentication.sign("host", "host:1", {}, headers)
            signed.append("X-Hadoop-Delegation-Token" in headers)
            assert identity.user == "alice"
            if isinstance(state, CredentialState):
                identity.check_submission()
        assert signed == [True, False, True]

    def test_the_ticket_of_another_user_submits_nothing(
        self, tmp_path: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        identity = Identity(Profile(), configuration(tmp_path))
        assert identity.user == "alice"
        bob = CredentialState("bob@EXAMPLE.COM", 60.0)
        monkeypatch.setattr(f"{Identity.__module__}.credential_state", lambda *_: bob)
        with pytest.raises(ConfigError, match=r"bob@EXAMPLE.COM, and this container that of alice"):
            identity.check_submission()

    def test_cache_and_state_are_in_its_directory(
        self, directory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert default_state_dir() == directory / "jupyter-submarine"
        monkeypatch.setenv("KRB5CCNAME", "FILE:/named")
        use_container_cache()
        assert os.environ["KRB5CCNAME"] == "FILE:/named"
        monkeypatch.delenv("KRB5CCNAME")
        use_container_cache()
        assert os.environ["KRB5CCNAME"] == f"FILE:{directory}/krb5cc"

    def test_the_file_of_a_hub_is_not_that_of_the_container(
        self, tmp_path: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hub = tmp_path / "alice"
        (directory / "container_tokens").rename(hub)
        monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(hub))
        tickets = driver_tickets(Profile(), configuration(tmp_path), tmp_path)
        assert tickets.token_file == str(hub)
