"""Notebooks that run without a user: a keytab and a principal, and no ticket cache at all."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from submarine_minicluster import Minicluster
from tests.kerberos.helpers import User
from tests.local.workflows.scheduler_server import OURS, Scheduler
from tests.notebooks import write_notebook

pytestmark = [pytest.mark.cluster, pytest.mark.full]

PRINCIPAL = "alice@MINICLUSTER.TEST"
#: Longer than a ticket and the smallest clock difference that MIT Kerberos accepts.
TICKET, LONG = 60, 150
CELLS = (
    ("seconds = 0", ["parameters"]),
    "%load_ext submarine_magics",
    "%%submarine --only --file train.py\nimport time\ntime.sleep(seconds)\nanswer = 6 * 7",
    "job = %submarine run scheduled --program train.py --memory 256M --with seconds "
    "--return answer\njob",
    "%submarine wait scheduled\nprint('the result is', job.result['answer'])",
)


@pytest.fixture
def alice(kerberos_minicluster: Minicluster, tmp_path: Path) -> User:
    """Alice with a configuration that names her keytab, and without a ticket."""
    user = User(kerberos_minicluster, "alice", tmp_path / "alice", ticket=False)
    config = user.directory / "jupyter-submarine" / "submarine.toml"
    config.parent.mkdir(exist_ok=True)
    keytab = kerberos_minicluster.keytab("alice")
    config.write_text(f'keytab = "{keytab}"\nprincipal = "{PRINCIPAL}"\n', encoding="utf-8")
    write_notebook(user.directory / "nightly.ipynb", *CELLS)
    return user


def check(user: User, output: Path) -> None:
    """The executed notebook has the result of a job of alice; there is still no ticket cache."""
    document = nbformat.read(output, as_version=4)
    assert "the result is 42" in json.dumps(document.cells[-1].outputs)
    # Injected parameters are one more cell.
    outputs = json.dumps(document.cells[-2].outputs)
    assert "SUCCEEDED" in outputs
    found = re.search(r"scheduled-\d{8}-\w+", outputs)
    assert found is not None
    shown: Any = user.json("show", found[0])
    assert (shown["state"], shown["user"], shown["backend"]) == ("SUCCEEDED", "alice", "yarn")
    assert not Path(user.environ["KRB5CCNAME"].removeprefix("FILE:")).exists()


def run(user: User, *words: str, env: dict[str, str] | None = None) -> None:
    program = str(Path(sys.executable).with_name(words[0]))
    done = subprocess.run(
        [program, *words[1:]],
        env={**user.environ, **(env or {})},
        cwd=user.directory,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.timeout(500)
def test_a_headless_run_and_papermill(alice: User) -> None:
    run(alice, "submarine", "run", "nightly.ipynb", "-o", "out.ipynb")
    check(alice, alice.directory / "out.ipynb")
    run(alice, "papermill", "--engine", "submarine", "nightly.ipynb", "by-papermill.ipynb")
    check(alice, alice.directory / "by-papermill.ipynb")


@pytest.mark.timeout(600)
def test_a_run_that_is_longer_than_a_ticket(alice: User) -> None:
    config = alice.directory / "krb5.conf"
    original = Path(alice.environ["KRB5_CONFIG"]).read_text(encoding="utf-8")
    assert "[libdefaults]" in original
    kept = "\n".join(line for line in original.splitlines() if "ticket_lifetime" not in line)
    lifetime = f"[libdefaults]\n    ticket_lifetime = {TICKET}s"
    config.write_text(kept.replace("[libdefaults]", lifetime), encoding="utf-8")
    short = {"KRB5_CONFIG": str(config)}
    checks = json.loads(alice.run("doctor", "--json", env=short).stdout)["checks"]
    (ticket,) = [one["sentence"] for one in checks if one["name"] == "kerberos ticket"]
    assert re.search(r"valid for (\d\d s|1 min)", ticket), ticket
    words = ("run", "nightly.ipynb", "-o", "long.ipynb", "-p", "seconds", str(LONG))
    began = time.monotonic()
    run(alice, "submarine", *words, env=short)
    assert time.monotonic() - began > LONG > 2 * TICKET
    check(alice, alice.directory / "long.ipynb")


@pytest.mark.timeout(500)
def test_the_line_of_cron(alice: User) -> None:
    """The exported line, with the few variables that cron gives and those of the cluster."""
    flow = alice.directory / "nightly.flow"
    flow.write_text(
        'schedule: "0 30 2 ? * *"\nnodes:\n  - name: train\n    notebook: nightly.ipynb\n',
        encoding="utf-8",
    )
    exported = alice.run("workflow", "export", str(flow), "--to", "cron")
    assert exported.returncode == 0, exported.stderr
    (line,) = [one for one in exported.stdout.splitlines() if one.startswith("30 2 * * * ")]
    kept = ("HOME", "HADOOP_CONF_DIR", "JAVA_HOME", "KRB5_CONFIG", "KRB5CCNAME", "PYTHONPATH")
    names = (*kept, "XDG_CONFIG_HOME", "XDG_STATE_HOME", "SUBMARINE_BACKEND")
    given = {name: alice.environ[name] for name in names if name in alice.environ}
    done = subprocess.run(
        ["/bin/sh", "-c", line.split(" ", 5)[5]],
        env={**given, "PATH": f"{alice.cluster.layout.bin}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, (shlex.quote(line), done.stdout[-3000:], done.stderr[-3000:])
    (output,) = alice.directory.rglob("notebooks/train.ipynb")
    check(alice, output)


@pytest.fixture
def server(alice: User, tmp_path: Path) -> Iterator[Scheduler]:
    (tmp_path / "scheduler").mkdir()
    made = Scheduler(tmp_path / "scheduler", OURS)
    own = ("HADOOP_CONF_DIR", "JAVA_HOME", "KRB5_CONFIG", "KRB5CCNAME", "PATH")
    made.environment |= {name: alice.environ[name] for name in own}
    made.environment |= {
        "SUBMARINE_BACKEND": "yarn",
        "SUBMARINE_KEYTAB": str(alice.cluster.keytab("alice")),
        "SUBMARINE_PRINCIPAL": PRINCIPAL,
        "SUBMARINE_STATE_DIR": str(alice.directory / "jupyter-submarine"),
    }
    made.environment.pop("JAVA_TOOL_OPTIONS", None)
    made.start()
    yield made
    made.stop()


@pytest.mark.timeout(500)
def test_jupyter_scheduler(alice: User, server: Scheduler) -> None:
    write_notebook(server.root / "nightly.ipynb", *CELLS)
    job = server.create("nightly.ipynb", formats=["ipynb"])
    assert server.ended(job)["status"] == "COMPLETED", server.job(job)
    check(alice, server.outputs(job)["ipynb"])
