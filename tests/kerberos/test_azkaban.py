"""A workflow in Azkaban whose nodes run as a service, and whose jobs are a user's."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_minicluster import Minicluster
from tests.azkaban import server as servers
from tests.kerberos.helpers import User

pytestmark = [pytest.mark.cluster, pytest.mark.full]

FLOW = """\
config:
  user.to.proxy: "{user}"
nodes:
  - name: fit
    type: command
    config: {{command: submarine run fit.py --name fit --memory 256M --wait}}
"""


@pytest.fixture
def alice(kerberos_minicluster: Minicluster, tmp_path: Path) -> User:
    return User(kerberos_minicluster, "alice", tmp_path / "alice")


@pytest.fixture
def executor(
    kerberos_minicluster: Minicluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> User:
    """The account of the executor: its configuration permits ``user.to.proxy``."""
    user = User(kerberos_minicluster, "hub", tmp_path / "hub", ticket=False)
    config = user.directory / "jupyter-submarine" / "submarine.toml"
    config.parent.mkdir()
    config.write_text(
        f'keytab = "{kerberos_minicluster.keytab("hub")}"\n'
        'principal = "hub@MINICLUSTER.TEST"\n'
        'proxy_user = "user.to.proxy"\n',
        encoding="utf-8",
    )
    # Azkaban's jobs have the environment of its executor.
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    for name, value in user.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{user.environ['PATH']}")
    return user


@pytest.fixture
def azkaban(executor: User, alice: User, tmp_path: Path) -> Iterator[servers.Azkaban]:
    with servers.running(tmp_path / "azkaban") as running:
        alice.environ |= {
            "SUBMARINE_AZKABAN_URL": running.url,
            "SUBMARINE_AZKABAN_USER": "alice",
            "SUBMARINE_AZKABAN_PASSWORD": "correct horse",
        }
        yield running


def submit(alice: User, azkaban: servers.Azkaban, name: str, user: str) -> tuple[str, str]:
    """Run the flow for a user; its status and the log of the node."""
    alice.file("fit.py", "print('fits')\n")
    flow = alice.file(f"{name}.flow", FLOW.format(user=user))
    words = ("workflow", "submit", flow, "--to", "azkaban", "--run", "--json")
    submitted = alice.run(*words)
    assert submitted.returncode == 0, submitted.stderr
    run = json.loads(submitted.stdout)["run"]
    execution = azkaban.executions[int(run.removeprefix("azkaban:"))]
    assert execution.wait(240)
    return execution.root.status, alice.run("workflow", "logs", run, "fit").stdout


@pytest.mark.timeout(500)
def test_the_job_of_a_node_belongs_to_the_proxy_user(alice: User, azkaban: servers.Azkaban) -> None:
    status, log = submit(alice, azkaban, "nightly", "alice")
    assert status == "SUCCEEDED", log
    (job,) = [one for one in alice.json("list", "--all") if one["name"] == "fit"]
    assert (job["state"], job["user"]) == ("SUCCEEDED", "alice")
    shown = alice.json("show", job["job_id"])
    assert shown["job_dir"].split("/")[3:5] == ["user", "alice"]
    assert shown["application_id"] in log
    assert "fits" in alice.run("logs", job["job_id"]).stdout
    # The cluster has the last word.
    status, log = submit(alice, azkaban, "others", "carol")
    assert status == "FAILED"
    assert "The cluster does not allow hub to act for carol." in log


def test_outside_of_azkaban_the_executor_acts_for_nobody(executor: User) -> None:
    refused = executor.run("run", executor.file("x.py", "1"), "--memory", "256M")
    assert refused.returncode == 2
    assert "this process has no Azkaban job with it" in refused.stderr
