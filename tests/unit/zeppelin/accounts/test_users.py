"""Cluster user and configuration of a paragraph."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from pathlib import Path

import pytest

from submarine_jobs.errors import RefusedError
from submarine_zeppelin.accounts import child_environment, common_state_dir, paragraph_config
from submarine_zeppelin.accounts.users import SERVICE_USER, cluster_user

ALLOWED = {SERVICE_USER: "true"}


def user_of(
    user: str,
    backend: str = "yarn",
    *,
    kerberos: bool = False,
    settings: Mapping[str, str] | None = None,
) -> str | None:
    return cluster_user(user, settings or {}, backend=backend, kerberos=kerberos)


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


def test_kerberos_is_rejected() -> None:
    with pytest.raises(RefusedError, match=r"does not support: no job can run there as ada\."):
        user_of("ada", kerberos=True)


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
