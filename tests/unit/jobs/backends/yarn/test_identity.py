"""The user of a profile on a cluster, by its principal and settings."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn.cluster import HadoopConf, Identity, identity
from submarine_jobs.errors import ConfigError, TicketError
from submarine_jobs.model import Profile
from submarine_runtime.kerberos import CredentialState, GssError

KERBEROS = {"hadoop.security.authentication": "kerberos"}
SERVICE = {"yarn.resourcemanager.principal": "yarn/_HOST@EXAMPLE.COM"}


def configuration(directory: Path, core: dict[str, str], yarn: dict[str, str]) -> HadoopConf:
    for name, properties in (("core-site.xml", core), ("yarn-site.xml", yarn)):
        rows = "".join(
            f"<property><name>{key}</name><value>{value}</value></property>"
            for key, value in properties.items()
        )
        (directory / name).write_text(f"<configuration>{rows}</configuration>")
    return HadoopConf(directory)


@pytest.fixture
def ticket(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The principal of the ticket; empty: there is none."""
    principals = ["alice@EXAMPLE.COM"]

    def state(credential: object) -> CredentialState:
        if not principals:
            raise GssError("No Kerberos credentials available")
        return CredentialState(principals[0], 3600.0)

    monkeypatch.setattr(identity, "credential_state", state)
    monkeypatch.delenv("HADOOP_TOKEN_FILE_LOCATION", raising=False)
    return principals


@pytest.mark.parametrize("principal", ["alice@EXAMPLE.COM", "alice/gateway@EXAMPLE.COM"])
def test_the_default_rule(tmp_path: Path, ticket: list[str], principal: str) -> None:
    ticket[0] = principal
    assert Identity(Profile(), configuration(tmp_path, KERBEROS, SERVICE)).user == "alice"


@pytest.mark.parametrize(
    ("principal", "rules"),
    [("alice@OTHER.COM", "DEFAULT"), ("alice@EXAMPLE.COM", "RULE:[1:$1@$0](.*@X)s/@.*//")],
)
def test_a_user_that_does_not_follow_is_asked_for(
    tmp_path: Path, ticket: list[str], principal: str, rules: str
) -> None:
    ticket[0] = principal
    core = {**KERBEROS, "hadoop.security.auth_to_local": rules}
    conf = configuration(tmp_path, core, SERVICE)
    with pytest.raises(ConfigError, match=r"is not known.*Set user in the profile"):
        _ = Identity(Profile(), conf).user
    assert Identity(Profile(user="a.smith"), conf).user == "a.smith"


def test_without_a_ticket_lists_remain_readable(tmp_path: Path, ticket: list[str]) -> None:
    ticket.clear()
    found = Identity(Profile(), configuration(tmp_path, KERBEROS, SERVICE))
    assert found.user == getpass.getuser()
    with pytest.raises(TicketError, match="`submarine login`"):
        found.ticket()
    ticket.append("alice@EXAMPLE.COM")
    assert found.user == "alice"


def test_hdfs_native_knows_only_the_identity_of_the_process(
    tmp_path: Path, ticket: list[str]
) -> None:
    conf = configuration(tmp_path, KERBEROS, SERVICE)
    assert Identity(Profile(), conf).process_wide
    keytab = Profile(keytab=tmp_path / "k", principal="hub@EXAMPLE.COM", proxy_user="bob")
    service = Identity(keytab, conf)
    assert not service.process_wide
    assert service.user == "bob"


def test_intervals_and_lifetimes(tmp_path: Path) -> None:
    conf = configuration(tmp_path, KERBEROS, {})
    assert (conf.token_interval, conf.token_lifetime) == (6 * 3600.0, 7 * 86400.0)
    key = "yarn.resourcemanager.delegation.token.renew-interval"
    assert configuration(tmp_path, KERBEROS, {key: "60000"}).token_interval == 15.0
    assert conf.resourcemanager_user == ""
    assert configuration(tmp_path, KERBEROS, SERVICE).resourcemanager_user == "yarn"
