"""As whom the job of a paragraph runs."""

from __future__ import annotations

import getpass

import pytest

from submarine_jobs.errors import RefusedError
from submarine_zeppelin.users import SERVICE_USER, ActingUser, cluster_user

ALLOWED = {SERVICE_USER: "true"}


def decide(
    user: str, backend: str = "yarn", acting: ActingUser | None = None, **rest
) -> str | None:
    settings = rest.pop("settings", {})
    return cluster_user(user, settings, backend=backend, acting=acting or ActingUser(), **rest)


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


@pytest.mark.parametrize(("backend", "kerberos"), [("local", False), ("yarn", True)])
def test_where_no_other_user_can_be_had_it_is_refused(backend: str, kerberos: bool) -> None:
    with pytest.raises(RefusedError, match=SERVICE_USER):
        decide("ada", backend, kerberos=kerberos)


@pytest.mark.parametrize("user", ["", "anonymous", "ada", "a/b"])
@pytest.mark.parametrize("backend", ["local", "yarn"])
def test_where_the_operator_allowed_it_all_run_as_the_account(user: str, backend: str) -> None:
    assert decide(user, backend, settings=ALLOWED) is None


@pytest.mark.parametrize("user", ["../root", "a b", "-x", "a/b", "ада", "a" * 101, "cn=ada,dc=x"])
def test_a_name_that_is_no_user_is_refused(user: str) -> None:
    with pytest.raises(RefusedError, match="cannot be a user"):
        decide(user)


def test_one_process_acts_as_one_user() -> None:
    acting = ActingUser()
    assert decide("ada", acting=acting) == "ada"
    assert decide("ada", acting=acting) == "ada"
    with pytest.raises(RefusedError, match="acts as ada"):
        decide("bob", acting=acting)
    with pytest.raises(RefusedError, match="acts as ada"):
        decide(getpass.getuser(), acting=acting)
    assert decide("bob", acting=acting, settings=ALLOWED) is None
