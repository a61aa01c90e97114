"""Cluster user and configuration of a paragraph."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from submarine_jobs.errors import ConfigError, RefusedError, UsageError
from submarine_zeppelin.accounts import (
    child_environment,
    common_state_dir,
    paragraph_config,
    service_key,
)
from submarine_zeppelin.accounts.users import SERVICE_USER, cluster_user

CORE_SITE = (
    "<configuration><property><name>hadoop.security.authentication</name>"
    "<value>{kind}</value></property></configuration>"
)
ALLOWED = {SERVICE_USER: "true"}


def user_of(
    user: str,
    backend: str = "yarn",
    *,
    kerberos: bool = False,
    service: str = "",
    settings: Mapping[str, str] | None = None,
) -> str | None:
    return cluster_user(user, settings or {}, backend=backend, kerberos=kerberos, service=service)


def test_cluster_jobs_run_as_the_paragraphs_user() -> None:
    assert user_of("ada") == "ada"
    assert user_of("ada@EXAMPLE.ORG") == "ada@EXAMPLE.ORG"


def test_zeppelins_account_keeps_its_name() -> None:
    assert user_of(getpass.getuser()) is None
    assert user_of(getpass.getuser(), backend="local") is None


@pytest.mark.parametrize("user", ["", "anonymous"])
def test_anonymous_jobs_are_rejected_with_a_hint(user: str) -> None:
    with pytest.raises(RefusedError, match=SERVICE_USER):
        user_of(user)


@pytest.mark.parametrize("backend", ["local", "slurm"])
def test_jobs_of_other_users_that_are_not_on_yarn_are_rejected(backend: str) -> None:
    """Whether the backend of another package starts jobs as the user is not known."""
    with pytest.raises(RefusedError, match=SERVICE_USER):
        user_of("ada", backend)


@pytest.mark.parametrize("user", ["", "anonymous", "ada", "a/b"])
@pytest.mark.parametrize("backend", ["local", "yarn"])
def test_all_jobs_may_run_as_zeppelins_account(user: str, backend: str) -> None:
    assert user_of(user, backend, settings=ALLOWED) is None


@pytest.mark.parametrize("user", ["../root", "a b", "-x", "a/b", "ада", "a" * 101, "cn=ada,dc=x"])
def test_invalid_user_names_are_rejected(user: str) -> None:
    with pytest.raises(RefusedError, match="is not a valid user name"):
        user_of(user)


def test_kerberos_requires_a_keytab_for_other_users() -> None:
    with pytest.raises(RefusedError, match=r"can act for ada\. .* sets SUBMARINE_HADOOP_KEYTAB"):
        user_of("ada", kerberos=True)
    assert user_of("ada", kerberos=True, service="zeppelin") == "ada"
    for user in ("", "anonymous"):
        with pytest.raises(RefusedError, match=SERVICE_USER):
            user_of(user, kerberos=True, service="zeppelin")
    assert user_of("ada", kerberos=True, settings=ALLOWED) is None


def test_an_account_is_the_user_of_the_keytab_only_by_its_name() -> None:
    account = getpass.getuser()
    assert user_of(account, kerberos=True) is None
    assert user_of(account, kerberos=True, service=account) is None
    assert user_of(account, kerberos=True, service="zeppelin") == account


def test_each_user_has_a_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBMARINE_BACKEND", "yarn")
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    ada, bob, ours = (
        paragraph_config({}, user).profile for user in ("ada", "bob", getpass.getuser())
    )
    assert (ada.user, bob.user) == ("ada", "bob")
    assert ours.state_dir == tmp_path
    # Each user has an index of jobs; the index of paragraphs is common.
    assert len({ada.state_dir, bob.state_dir, ours.state_dir}) == 3
    assert {common_state_dir(one) for one in (ada, bob, ours)} == {tmp_path}
    variables = child_environment({}, paragraph_config({}, "ada"))
    assert variables["SUBMARINE_USER"] == variables["HADOOP_USER_NAME"] == "ada"
    assert variables["SUBMARINE_STATE_DIR"] == str(ada.state_dir)
    assert "HADOOP_USER_NAME" not in child_environment({}, paragraph_config({}, getpass.getuser()))


@pytest.fixture
def clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, str]]:
    """Settings for a cluster with simple authentication, and for one with Kerberos."""
    for name in [name for name in os.environ if name.startswith(("SUBMARINE_", "HADOOP_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(service_key, "_hidden", {})
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "zeppelin.keytab").write_bytes(b"key")
    found = {}
    for kind in ("simple", "kerberos"):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "core-site.xml").write_text(CORE_SITE.format(kind=kind))
        found[kind] = {
            "SUBMARINE_HADOOP_CONF_DIR": str(tmp_path / kind),
            "SUBMARINE_HADOOP_KEYTAB": str(tmp_path / "zeppelin.keytab"),
            "SUBMARINE_HADOOP_PRINCIPAL": "zeppelin/host@EXAMPLE.COM",
        }
    return found


@pytest.mark.parametrize("alternative", [False, True])
def test_the_keytab_acts_for_each_user(
    clusters: dict[str, dict[str, str]], tmp_path: Path, alternative: bool
) -> None:
    settings = {
        name.lower().replace("_", ".") if alternative and "CONF" not in name else name: value
        for name, value in clusters["kerberos"].items()
    }
    ada, bob = (paragraph_config(settings, user).profile for user in ("ada", "bob"))
    assert ada.keytab == bob.keytab == tmp_path / "zeppelin.keytab"
    assert ada.principal == "zeppelin/host@EXAMPLE.COM"
    assert (ada.user, ada.proxy_user) == ("ada", "ada")
    assert (bob.user, bob.proxy_user) == ("bob", "bob")
    assert ada.state_dir != bob.state_dir
    service = paragraph_config(settings, "zeppelin").profile
    assert (service.user, service.proxy_user) == ("zeppelin", None)
    all_users = paragraph_config({**settings, **ALLOWED}, "ada").profile
    assert (all_users.user, all_users.proxy_user) == (None, None)
    assert all_users.keytab == ada.keytab


def test_a_cluster_with_simple_authentication_has_no_proxy_users(
    clusters: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_PROXY_USER", "eve")
    ada = paragraph_config(clusters["simple"], "ada").profile
    assert (ada.user, ada.proxy_user) == ("ada", None)


@pytest.mark.parametrize("actual", ["simple", "kerberos"])
def test_the_setting_of_the_authentication_must_agree(
    clusters: dict[str, dict[str, str]], actual: str
) -> None:
    other = {"simple": "kerberos", "kerberos": "simple"}[actual]
    name = "zeppelin.submarine.auth.type"
    for agreed in ("", actual, actual.upper()):
        assert paragraph_config({**clusters[actual], name: agreed}, "ada").profile.user == "ada"
    refused = f"{name} is {other}, but the cluster's authentication is {actual} .* Leave"
    with pytest.raises(RefusedError, match=refused):
        paragraph_config({**clusters[actual], name: other}, "ada")
    with pytest.raises(UsageError, match="Set it to simple or kerberos"):
        paragraph_config({**clusters[actual], name: "ldap"}, "ada")
    # Without a readable configuration, the command reports its own error.
    nowhere = {"SUBMARINE_HADOOP_CONF_DIR": "/nonexistent", name: "kerberos"}
    assert paragraph_config(nowhere, "ada").profile.user == "ada"


def test_a_keytab_requires_its_principal(clusters: dict[str, dict[str, str]]) -> None:
    del (settings := clusters["kerberos"])["SUBMARINE_HADOOP_PRINCIPAL"]
    with pytest.raises(ConfigError, match=r"SUBMARINE_HADOOP_KEYTAB\), but not principal"):
        paragraph_config(settings, "ada")


def test_programs_of_users_receive_no_keytab(
    clusters: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = clusters["kerberos"]
    key = {name: value for name, value in settings.items() if "CONF_DIR" not in name}
    others = {"SUBMARINE_KEYTAB": key["SUBMARINE_HADOOP_KEYTAB"], "SUBMARINE_PRINCIPAL": "z@E"}
    for name, value in {**key, **others}.items():
        monkeypatch.setenv(name, value)
    service_key.hide_service_key()
    assert not [name for name in os.environ if "KEYTAB" in name or "PRINCIPAL" in name]
    # The configuration still has them: those of the settings, then those of the environment.
    assert paragraph_config(settings, "ada").profile.principal == "zeppelin/host@EXAMPLE.COM"
    conf_dir = {"SUBMARINE_HADOOP_CONF_DIR": settings["SUBMARINE_HADOOP_CONF_DIR"]}
    ada = paragraph_config(conf_dir, "ada")
    assert (ada.profile.principal, ada.profile.proxy_user) == ("z@E", "ada")
    for configured in (settings, conf_dir, {**settings, **ALLOWED}):
        with pytest.raises(RefusedError, match="do not receive Zeppelin's keytab"):
            child_environment(configured, paragraph_config(configured, "ada"))
    # On a cluster with simple authentication the name is sufficient.
    simple = clusters["simple"]
    variables = child_environment(simple, paragraph_config(simple, "ada"))
    assert variables["SUBMARINE_USER"] == "ada"
    assert not set(variables.values()) & {*key.values(), *others.values()}


def test_the_account_uses_its_ticket_cache(clusters: dict[str, dict[str, str]]) -> None:
    conf_dir = {"SUBMARINE_HADOOP_CONF_DIR": clusters["kerberos"]["SUBMARINE_HADOOP_CONF_DIR"]}
    for settings, user in ((conf_dir, getpass.getuser()), ({**conf_dir, **ALLOWED}, "ada")):
        config = paragraph_config(settings, user)
        assert (config.profile.keytab, config.profile.proxy_user) == (None, None)
        assert "SUBMARINE_USER" not in child_environment(settings, config)
