"""The application of a distributed job on a real YARN: files, variables, archives, placement.

Coordinator and agents are a few lines here, which only report what they were given; those of the
runtime have tests of their own.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.backends import Stage
from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.client import Job
from submarine_jobs.errors import RefusedError
from submarine_jobs.model import Localization, Profile, Resources, Role
from submarine_runtime.protocol import State
from tests.cluster.jobs.training import processes
from tests.cluster.yarn_jobs import make_gang, until_stage
from tests.waiting import until

pytestmark = pytest.mark.cluster

SMALL = Resources(100, 1, 0)
#: Adds a container for each role's instance, waits for their reports, reports itself and ends.
PROGRAM = """\
import json, os, stat, sys, time
verb, out = sys.argv[1], {out!r}
facts = {{"argv": sys.argv, "executable": sys.executable, "prefix": sys.prefix,
  "files": {{n: stat.S_IMODE(os.stat(n).st_mode) for n in os.listdir(".")}},
  "env": dict(os.environ), "program": os.listdir("program") if os.path.isdir("program") else []}}
def report(name):
    with open(os.path.join(out, ".tmp-" + name), "w") as f: json.dump(facts, f)
    os.rename(os.path.join(out, ".tmp-" + name), os.path.join(out, name))
if verb == "agent":
    facts["orders"] = json.load(open("agent.json"))
    report(os.environ["SUBMARINE_AGENT_TASK"].replace(":", "-"))
    {agent}
else:
    facts["orders"] = orders = json.load(open("coordinator.json"))
    # The Python that the job brings along has no distutils; the product imports skein likewise.
    import types
    sys.modules["distutils.version"] = types.SimpleNamespace(LooseVersion=str)
    import skein
    client = skein.ApplicationClient.from_current()
    wanted = []
    for role in orders["spec"]["roles"]:
        for index in range(role.get("instances", 1)):
            name = role.get("name", "worker")
            task = name + ":" + str(index)
            client.add_container(name, env={{"SUBMARINE_AGENT_TASK": task,
              "SUBMARINE_AGENT_SEAT": "1", "SUBMARINE_AGENT_COORDINATOR": "127.0.0.1:1"}})
            wanted.append(task.replace(":", "-"))
    while set(wanted) - set(os.listdir(out)): time.sleep(0.05)
    {more}
    report("coordinator")
"""


@pytest.fixture(scope="module")
def backend(yarn_profile: Profile) -> YarnBackend:
    return YarnBackend(yarn_profile)


def program(out: Path, more: str = "pass", agent: str = "pass") -> str:
    return PROGRAM.format(out=str(out), more=more, agent=agent)


def report(path: Path, seconds: float = 120.0) -> Any:
    until(path.exists, lambda: f"{path.name} never reported", seconds)
    return json.loads(path.read_text())


def test_a_gang_of_two_roles_from_one_application(backend: YarnBackend, tmp_path: Path) -> None:
    word = tmp_path / "word.txt"
    word.write_text("hello")
    roles = (Role("worker", 2, SMALL), Role("ps", 1, Resources(64, 1, 1), kind="untracked"))
    submission = make_gang(
        backend, program(tmp_path), *roles,
        localization=(Localization(str(word), "data/word.txt"),), priority=3,
    )  # fmt: skip
    assert not submission.plan.errors, submission.plan.errors
    handle = backend.submit(submission)
    assert handle["containers"] == 4
    assert backend.submit(submission)["application_id"] == handle["application_id"]
    seen = report(tmp_path / "coordinator")
    app = backend.rm.get(f"/apps/{handle['application_id']}")["app"]
    # A cluster may allow no priorities; then that is said.
    assert (app["priority"] == 3) is not bool(handle.get("warnings"))
    assert seen["argv"][1:] == ["supervise", "--directory", "."]
    # On a Python of its own, which is not this one.
    assert "/coordinator-python/bin/python3" in seen["executable"]
    assert seen["files"]["secret.json"] & 0o077 == 0
    assert seen["files"]["coordinator.json"] == 0o600
    assert seen["orders"]["resourcemanagers"] == backend.conf.resourcemanagers
    assert [role.get("kind") for role in seen["orders"]["spec"]["roles"]] == [None, "untracked"]
    for name in ("worker-0", "worker-1", "ps-0"):
        agent = report(tmp_path / name)
        assert agent["orders"].get("role", "worker") == name.partition("-")[0]
        assert agent["files"]["secret.json"] & 0o077 == 0
        assert agent["program"] == ["data"]
        assert "coordinator-python" not in agent["files"]
        assert [role.get("name") for role in agent["orders"]["spec"]["roles"]] == [None, "ps"]
    until_stage(backend, handle, Stage.ENDED)
    again = backend.find(submission.agent.record.job_id)
    assert again is not None
    assert again["containers"] == 4


def test_the_brought_python_serves_agents_too(yarn_profile: Profile, tmp_path: Path) -> None:
    settings = {**yarn_profile.settings, "agent_python": "brought"}
    backend = YarnBackend(replace(yarn_profile, settings=settings))
    handle = backend.submit(make_gang(backend, program(tmp_path), Role("worker", 2, SMALL)))
    agent = report(tmp_path / "worker-1")
    assert "/coordinator-python/bin/python3" in agent["executable"]
    # Nothing of the interpreter's place on this machine is needed.
    assert os.path.realpath(agent["prefix"]) != os.path.realpath(sys.base_prefix)
    until_stage(backend, handle, Stage.ENDED)


def test_a_master_that_dies_is_started_again_with_the_same_orders(
    backend: YarnBackend, tmp_path: Path
) -> None:
    kill_master = (
        "first = os.path.join(out, 'first')\n"
        "    if not os.path.exists(first):\n"
        "        import signal, subprocess\n"
        "        open(first, 'w').close()\n"
        "        pid = os.getppid()\n"
        "        while b'ApplicationMaster' not in open('/proc/%d/cmdline' % pid, 'rb').read()"
        " or b'java' not in os.readlink('/proc/%d/exe' % pid).encode():\n"
        "            pid = int(open('/proc/%d/stat' % pid).read().rsplit(')')[1].split()[1])\n"
        "        os.kill(pid, signal.SIGKILL)\n"
        "        time.sleep(60)"
    )
    handle = backend.submit(
        make_gang(backend, program(tmp_path, kill_master), Role("worker", 2, SMALL))
    )
    seen = report(tmp_path / "coordinator")
    assert "_02_000001" in seen["env"]["CONTAINER_ID"]
    until_stage(backend, handle, Stage.ENDED)


def test_a_failed_gang_leaves_no_files_of_skein(submit: Callable[..., Job]) -> None:
    job = submit("raise SystemExit(3)", "fails", roles=(Role("worker", 2, SMALL),), policy="all")
    assert job.wait(timeout=180).state is State.FAILED
    backend = job.backend
    assert isinstance(backend, YarnBackend)
    application_id = str((job.handle or {})["application_id"])

    def end() -> str:
        app = backend.rm.get(f"/apps/{application_id}")["app"]
        return str(app["finalStatus"]) if app["state"] in ("FINISHED", "FAILED") else ""

    assert until(end, "the application's end") == "FAILED"
    path = f"/user/{backend.user}/.skein/{application_id}"
    until(lambda: job.directory.storage.stat(path) is None, "the master has deleted its files")


def test_a_cancel_at_any_point_leaves_nothing(submit: Callable[..., Job]) -> None:
    """Two jobs at a time: the cluster has resources for two."""
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(partial(check_cancel, submit), [0.0, 1.5, 3.0, 6.0]))


def check_cancel(submit: Callable[..., Job], delay: float) -> None:
    """Cancel a job so many seconds after its submission; nothing of it is left."""
    job = submit("import time; time.sleep(300)", "cancel", roles=(Role("worker", 3, SMALL),))
    time.sleep(delay)
    record = job.cancel("enough")
    assert record.state is State.CANCELLED
    assert "enough" in record.detail
    backend = job.backend
    assert isinstance(backend, YarnBackend)
    application_id = str((job.handle or {})["application_id"])

    def state() -> str:
        return str(backend.rm.get(f"/apps/{application_id}")["app"]["state"])

    # KILLED, or FINISHED where a second master came up before it was killed and found the record.
    until(lambda: state() in ("KILLED", "FINISHED", "FAILED"), "the application's end")
    for kind in ("master", "coordinator", "agent", "program"):
        until(partial(lambda *of: not processes(*of), job, kind), f"the end of every {kind}")
    assert job.directory.storage.stat(f"/user/{backend.user}/.skein/{application_id}") is None


@pytest.mark.parametrize(
    ("role", "sentence"),
    [
        (Role("worker", 2, Resources(100, 1, 99)), "asks for 99 GPUs, and the largest node has"),
        (Role("worker", 40, Resources(100, 1, 1)), r"at most \d+ containers"),
        (Role("worker", 2, Resources(1 << 20)), "ask for less with --memory"),
        (Role("worker", 2, SMALL, node_label="fast"), "no running node has the label fast"),
        (Role("worker", 2, SMALL, nodes=("elsewhere",)), "there is no running node elsewhere"),
        (Role("worker", 2, SMALL, racks=("/other",)), "there is no rack /other"),
    ],
)
def test_what_could_never_run_is_refused_up_front(
    backend: YarnBackend, role: Role, sentence: str
) -> None:
    from submarine_jobs.model import JobSpec

    with pytest.raises(RefusedError, match=sentence):
        raise RefusedError(" ".join(backend.plan(JobSpec("x", "yarn", roles=(role,))).errors))
