"""As whom the job of a paragraph runs."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from pathlib import Path

import pytest

from submarine_jobs.errors import RefusedError
from submarine_zeppelin.accounts import common_state_dir, config_of, environment_of
from submarine_zeppelin.accounts.users import SERVICE_USER, cluster_user

ALLOWED = {SERVICE_USER: "true"}


def decide(
    user: str,
    backend: str = "yarn",
    *,
    kerberos: bool = False,
    settings: Mapping[str, str] | None = None,
) -> str | None:
    return cluster_user(user, settings or {}, backend=backend, kerberos=kerberos)


def test_a_job_on_the_cluster_runs_as_the_paragraphs_user() -> None:
    assert decide("ada") == "ada"
    assert decide("ada@EXAMPLE.ORG") == "ada@EXAMPLE.ORG"


def test_the_account_of_zeppelin_needs_no_other_name() -> None:
    assert decide(getpass.getuser()) is None
    assert decide(getpass.getuser(), backend="local") is None


@pytest.mark.parametrize("user", ["", "anonymous"])
def test_nobody_is_refused_and_told_the_way(user: str) -> None:
    with pytest.raises(RefusedError, match=SERVICE_USER):
        decide(user)


def test_on_this_machine_nobody_else_can_be_had() -> None:
    with pytest.raises(RefusedError, match=SERVICE_USER):
        decide("ada", "local")


@pytest.mark.parametrize("user", ["", "anonymous", "ada", "a/b"])
@pytest.mark.parametrize("backend", ["local", "yarn"])
def test_where_the_operator_allowed_it_all_run_as_the_account(user: str, backend: str) -> None:
    assert decide(user, backend, settings=ALLOWED) is None


@pytest.mark.parametrize("user", ["../root", "a b", "-x", "a/b", "ада", "a" * 101, "cn=ada,dc=x"])
def test_a_name_that_is_no_user_is_refused(user: str) -> None:
    with pytest.raises(RefusedError, match="cannot be a user"):
        decide(user)


def test_kerberos_is_refused_in_one_sentence() -> None:
    with pytest.raises(RefusedError, match=r"not in this release: nothing can run there as ada\."):
        decide("ada", kerberos=True)


def test_users_of_one_process_have_configurations_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBMARINE_BACKEND", "yarn")
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    ada, bob, ours = (config_of({}, user).profile for user in ("ada", "bob", getpass.getuser()))
    assert (ada.user, bob.user) == ("ada", "bob")
    assert ours.state_dir == tmp_path
    # Each has an index of jobs; what paragraphs show is one for all, since each shows one thing.
    assert len({ada.state_dir, bob.state_dir, ours.state_dir}) == 3
    assert {common_state_dir(one) for one in (ada, bob, ours)} == {tmp_path}
    told = environment_of({}, config_of({}, "ada"))
    assert told["SUBMARINE_USER"] == told["HADOOP_USER_NAME"] == "ada"
    assert told["SUBMARINE_STATE_DIR"] == str(ada.state_dir)
    assert "HADOOP_USER_NAME" not in environment_of({}, config_of({}, getpass.getuser()))
