"""What ``submarine doctor`` reports of the rights on a Kerberised cluster, for both outcomes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn.cluster import read_properties, write_properties
from submarine_minicluster import Minicluster
from submarine_minicluster.hadoop import make_ticket_cache
from tests.kerberos.helpers import User

pytestmark = [pytest.mark.cluster, pytest.mark.full]

SUBMIT = "acl_submit_applications"


@pytest.fixture
def alice(kerberos_minicluster: Minicluster, tmp_path: Path) -> User:
    return User(kerberos_minicluster, "alice", tmp_path / "alice")


@pytest.fixture
def hub(kerberos_minicluster: Minicluster, tmp_path: Path) -> User:
    """A service with a keytab and without a ticket cache."""
    user = User(kerberos_minicluster, "hub", tmp_path / "hub", ticket=False)
    keytab = str(kerberos_minicluster.keytab("hub"))
    user.environ |= {"SUBMARINE_KEYTAB": keytab, "SUBMARINE_PRINCIPAL": "hub@MINICLUSTER.TEST"}
    return user


def findings(user: User, **env: str) -> dict[str, dict[str, str]]:
    """The findings of ``doctor --json`` by name."""
    done = user.run("doctor", "--json", env=env)
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


def test_the_rights_of_a_user(alice: User) -> None:
    found = findings(alice)
    assert {name: found[name]["status"] for name in found if found[name]["status"] == "error"} == {}
    expected = {
        "proxy user": ("skipped", "No proxy_user is set"),
        "yarn acls": ("ok", "YARN checks access control lists (yarn.acl.enable)."),
        "hdfs acls": ("ok", "HDFS keeps access control lists, which --share sets."),
        "queue access": ("ok", "The access list of queue default does not exclude alice"),
        "token renewal": ("ok", "After 7d a job needs fresh tokens"),
    }
    for name, (status, sentence) in expected.items():
        assert found[name]["status"] == status, found[name]
        assert found[name]["sentence"].startswith(sentence), found[name]


def test_a_service_may_act_for_the_users_of_its_rule(hub: User) -> None:
    found = findings(hub, HADOOP_PROXY_USER="alice")
    assert found["proxy user"]["status"] == "ok"
    assert found["proxy user"]["sentence"] == (
        "NameNode and ResourceManager let hub act for alice."
    )
    assert found["hdfs"]["status"] == "ok"
    refused = findings(hub, HADOOP_PROXY_USER="carol")
    assert refused["proxy user"]["status"] == "error"
    for part in (
        "hub may not act for carol: ",
        "NameNode: User: hub is not allowed to impersonate carol",
        "ResourceManager: The cluster does not allow hub to act for carol",
    ):
        assert part in refused["proxy user"]["sentence"]
    assert (
        "set hadoop.proxyuser.hub.hosts and hadoop.proxyuser.hub.users"
        in (refused["proxy user"]["fix"])
    )
    # One fault is one finding.
    assert [name for name in refused if refused[name]["status"] == "error"] == ["proxy user"]
    assert refused["hdfs"]["unchecked"]


def test_a_queue_that_excludes_the_user(
    alice: User, kerberos_minicluster: Minicluster, tmp_path: Path
) -> None:
    lists = {"root": " ", "root.default": "*", "root.gpu": "alice", "root.narrow": "bob"}
    with queue_lists(kerberos_minicluster, tmp_path, lists):
        default = findings(alice)["queue access"]
        own = findings(alice, SUBMARINE_QUEUE="gpu")["queue access"]
        others = findings(alice, SUBMARINE_QUEUE="narrow")
    assert (default["status"], own["status"]) == ("ok", "ok")
    assert own["sentence"] == "alice may submit to queue gpu."
    assert others["queue access"]["status"] == "error"
    assert others["queue access"]["sentence"] == "alice may not submit to queue narrow."
    assert others["queue access"]["fix"].startswith("Choose one of default, gpu ")
    assert others["capacity"]["unchecked"]


@contextmanager
def queue_lists(cluster: Minicluster, directory: Path, lists: Mapping[str, str]) -> Iterator[None]:
    """Give queues of the running ResourceManager other lists of users that may submit."""
    path = cluster.layout.conf("resourcemanager") / "capacity-scheduler.xml"
    original = path.read_bytes()
    changed = {f"yarn.scheduler.capacity.{queue}.{SUBMIT}": text for queue, text in lists.items()}
    try:
        path.write_bytes(write_properties({**read_properties(path), **changed}))
        refresh_queues(cluster, directory)
        yield
    finally:
        path.write_bytes(original)
        refresh_queues(cluster, directory)


def refresh_queues(cluster: Minicluster, directory: Path) -> None:
    cache = directory / "administrator"
    make_ticket_cache(
        "yarn/localhost@MINICLUSTER.TEST",
        cluster.layout.keytab("yarn"),
        cache,
        krb5_conf=cluster.layout.krb5_conf,
        lifetime=3600,
        renewable=3600,
    )
    environ = {**os.environ, **cluster.environ(), "KRB5CCNAME": f"FILE:{cache}"}
    environ.pop("JAVA_TOOL_OPTIONS", None)
    done = subprocess.run(
        [str(cluster.layout.bin / "yarn"), "rmadmin", "-refreshQueues"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_certificates(alice: User, kerberos_minicluster: Minicluster, tmp_path: Path) -> None:
    """Those of the cluster are accepted by ssl-client.xml or ``ca_file``; not by another CA."""
    accepted = findings(alice)["certificates"]
    assert accepted["status"] == "ok"
    for daemon in ("resourcemanager", "namenode"):
        assert kerberos_minicluster.url(daemon) in accepted["sentence"]
    config = tmp_path / "submarine.toml"
    named = {"SUBMARINE_CONFIG": str(config)}
    config.write_text(f'[settings]\nca_file = "{kerberos_minicluster.ca}"\n')
    assert findings(alice, **named)["certificates"]["status"] == "ok"
    import certifi  # Any certificate that has not signed those of the cluster.

    before, middle, _ = Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----")
    other = tmp_path / "other.pem"
    other.write_text(before[before.index("-----BEGIN") :] + middle + "\n")
    config.write_text(f'[settings]\nca_file = "{other}"\n')
    rejected = findings(alice, **named)["certificates"]
    assert rejected["status"] == "error"
    assert rejected["sentence"].startswith("The certificate of localhost:")
    assert "is not accepted: " in rejected["sentence"]
    assert rejected["fix"].startswith("Set ca_file to the certificates (PEM)")
