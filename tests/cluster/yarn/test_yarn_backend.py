"""The yarn backend on the real minicluster: submit, observe, stop, lost replies, the driver."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from submarine_jobs.backends import Stage, Submission
from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.application.single import MASTER_JVM
from submarine_jobs.backends.yarn.cluster import tag_of
from submarine_jobs.backends.yarn.driver import DriverChannel, DriverUnreachableError, stop_driver
from submarine_jobs.errors import ClusterError, RefusedError
from submarine_jobs.model import Localization, Profile, Resources
from submarine_runtime.protocol import EndReason
from tests.cluster.yarn_jobs import applications, look, make_submission, until_stage
from tests.waiting import until

pytestmark = pytest.mark.cluster

Make = Callable[..., Submission]


@pytest.fixture(scope="module")
def backend(yarn_profile: Profile) -> YarnBackend:
    return YarnBackend(yarn_profile)


@pytest.fixture(scope="module")
def make(backend: YarnBackend) -> Make:
    return lambda agent, **fields: make_submission(backend, agent, **fields)


REPORT = """\
import json, os, stat, sys, time
out = {out!r}
found = {{name: stat.S_IMODE(os.stat(name).st_mode) for name in os.listdir(".")}}
facts = {{"argv": sys.argv, "files": found, "program": os.listdir("program") if
  os.path.isdir("program") else [], "env": dict(os.environ)}}
with open(out + ".tmp", "w") as f: json.dump(facts, f)
os.rename(out + ".tmp", out)
{more}
"""
#: Goes on until the test has seen enough.
HELD = "import os, time\nwhile not os.path.exists({go!r}): time.sleep(0.05)\n"


def test_a_job_in_the_masters_container_with_gpus(
    backend: YarnBackend, make: Make, tmp_path: Path
) -> None:
    import json

    os.chmod(tmp_path, 0o777)
    data = tmp_path / "data"
    data.mkdir()
    (data / "part").write_text("x")
    (tmp_path / "one").write_text("y")
    out = tmp_path / "report"
    submission = make(
        REPORT.format(out=str(out), more=HELD.format(go=str(tmp_path / "go"))),
        resources=Resources(200, 2, 3),
        queue="gpu",
        localization=(
            Localization(str(data), "dir"),
            Localization(f"file://{tmp_path}/one", "one"),
        ),
    )
    handle = backend.submit(submission)
    assert len(submission.plan.containers) == 1
    app = applications(backend, submission)[0]
    assert app["queue"].endswith("gpu")
    assert sorted(app["applicationTags"].split(",")) == sorted(
        ["submarine", tag_of(submission.agent.record.job_id)]
    )
    until(lambda: out.exists() and out.read_text(), f"the file {out}")
    facts = json.loads(out.read_text())
    running = until_stage(backend, handle, Stage.RUNNING)
    assert running.links["YARN application"].endswith(handle["application_id"])
    assert running.links["YARN log"].startswith("http")
    app = backend.rm.get(f"/apps/{handle['application_id']}")["app"]
    assert app["runningContainers"] == 1
    assert app["allocatedVCores"] == 2
    # YARN counts whole seconds: of two cores, two seconds' worth at least.
    until(
        lambda: backend.rm.get(f"/apps/{handle['application_id']}")["app"]["vcoreSeconds"] >= 4,
        "YARN counts no seconds of a running container",
        60,
    )
    (tmp_path / "go").touch()
    ended = until_stage(backend, handle, Stage.ENDED)
    assert ended.reason is EndReason.SUCCEEDED
    assert ended.used["memory_seconds"] > 0
    entries = applications(backend, submission)[0]["resourceSecondsMap"]["entry"]
    if isinstance(entries, list):  # Hadoop 3.3 writes one entry of several, by mistake
        assert ended.used["gpu_seconds"] > 0
    assert {"agent.json", "secret.json", "bundle.zip", "runtime.zip"} <= set(facts["files"])
    assert facts["files"]["agent.json"] == 0o600
    assert facts["files"]["secret.json"] & 0o077 == 0
    assert sorted(facts["program"]) == ["dir", "one"]
    assert "JDK_JAVA_OPTIONS" not in facts["env"]
    assert facts["argv"][1:] == ["agent", "--directory", "."]


def test_a_narrow_queue_runs_the_task_beside_its_master(
    backend: YarnBackend, make: Make, tmp_path: Path
) -> None:
    source = HELD.format(go=str(tmp_path / "go"))
    submission = make(source, resources=Resources(700, 1), queue="narrow")
    assert len(submission.plan.containers) == 2
    handle = backend.submit(submission)
    assert handle["beside"]
    until_stage(backend, handle, Stage.RUNNING)
    found = backend.find(submission.agent.record.job_id)
    assert found is not None
    assert found["beside"]
    (tmp_path / "go").touch()
    assert until_stage(backend, handle, Stage.ENDED, Stage.ENDED).reason is EndReason.SUCCEEDED


@pytest.mark.full
def test_how_ends_are_reported(backend: YarnBackend, make: Make) -> None:
    """Three jobs at once, one observation for all of them."""
    sources = {
        EndReason.OUT_OF_MEMORY: "x = b'a' * (900 << 20); import time; time.sleep(30)",
        EndReason.AGENT_LOST: "import os; os.kill(os.getpid(), 9)",
        EndReason.MASTER_LOST: "import os, time; os.kill(os.getppid(), 9); time.sleep(30)",
    }
    handles = {}
    for reason, source in sources.items():
        submission = make(source)
        handles[submission.agent.record.job_id] = (reason, backend.submit(submission))
    deadline = time.monotonic() + 120
    while True:
        calls = backend.rm.calls
        seen = backend.observe({job: handle for job, (_, handle) in handles.items()})
        if all(o.stage is Stage.ENDED for o in seen.values()):
            break
        assert backend.rm.calls - calls <= 1 + 2 * len(handles)
        assert time.monotonic() < deadline, seen
        time.sleep(0.3)
    for job, (reason, _) in handles.items():
        ended = seen[job]
        assert ended.detail
        if reason is EndReason.OUT_OF_MEMORY:
            # skein's master may sign off in the 250 ms that YARN gives it; then only it speaks.
            assert " MB." in ended.detail or "more memory" in ended.detail
        else:
            assert ended.reason is reason, ended


def test_an_interpreter_that_is_not_there(backend: YarnBackend, make: Make) -> None:
    submission = make("pass")
    submission.agent.python = "/nowhere/python"
    ended = until_stage(backend, backend.submit(submission), Stage.ENDED)
    assert ended.reason is EndReason.LAUNCH_FAILED


def test_stop_while_running_and_again_afterwards(backend: YarnBackend, make: Make) -> None:
    handle = backend.submit(make("import time; time.sleep(600)"))
    until_stage(backend, handle, Stage.RUNNING)
    backend.stop(handle)
    ended = until_stage(backend, handle, Stage.ENDED)
    # YARN's diagnostics say that Submarine killed it, and for which user.
    assert ended.reason is EndReason.CANCELLED
    assert ended.detail == f"Cancelled by {backend.user}."
    backend.stop(handle)


def test_stop_while_waiting_leaves_nothing_behind(backend: YarnBackend, make: Make) -> None:
    """The first job has nearly all resources, so the second waits for the first."""
    resources = Resources(7000, 1)
    first = backend.submit(make("import time; time.sleep(600)", resources=resources))
    until_stage(backend, first, Stage.RUNNING)
    second = backend.submit(make("pass", resources=resources))
    # The first explanation is the ResourceManager's diagnostics.
    waiting = until(
        lambda: seen if " holds " in (seen := look(backend, second)).pending else None,
        lambda: look(backend, second),
    )
    assert re.match(r"queue default has \d+ of \d+ MiB free, .* holds \d+ MiB", waiting.pending)
    assert waiting.stage is Stage.WAITING
    backend.stop(second)
    assert until_stage(backend, second, Stage.ENDED).reason is EndReason.CANCELLED
    staging = f"/user/{backend.user}/.skein/{second['application_id']}"
    assert backend.storage.stat(staging) is None
    backend.stop(first)
    until_stage(backend, first, Stage.ENDED)


def test_an_unknown_application(backend: YarnBackend) -> None:
    gone = {"kind": "yarn", "application_id": "application_1_0001", "submitted": time.time()}
    assert look(backend, gone).stage is Stage.UNKNOWN
    assert backend.find("nobody-20261121-0000") is None
    backend.stop(gone)


def test_submit_refusals_are_sentences(backend: YarnBackend, make: Make) -> None:
    submission = make("pass")
    object.__setattr__(submission.spec, "queue", "nope")
    with pytest.raises(RefusedError, match="no queue nope") as refused:
        backend.submit(submission)
    assert "\tat " not in str(refused.value)
    missing = make("pass")
    backend.storage.delete(f"{missing.job_dir}/bundle.zip")
    with pytest.raises(RefusedError, match="does not exist"):
        backend.submit(missing)


def test_a_submit_of_the_same_intent_finds_the_first(backend: YarnBackend, make: Make) -> None:
    submission = make("import time; time.sleep(600)")
    handle = backend.submit(submission)
    assert backend.submit(submission)["application_id"] == handle["application_id"]
    assert len(applications(backend, submission)) == 1
    backend.stop(handle)


@pytest.mark.parametrize("cut", ["request lost", "reply lost"])
def test_a_lost_submit_gives_one_application(
    backend: YarnBackend, make: Make, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    """The connection to the driver breaks before or after the submit went through."""
    submission = make("import time; time.sleep(600)")
    real = DriverChannel.submit
    broken: list[str] = []

    def submit(self: DriverChannel, spec: Any, timeout: float) -> str:
        if broken:
            return real(self, spec, timeout)
        broken.append(cut)
        if cut == "reply lost":
            real(self, spec, timeout)
        raise DriverUnreachableError("cut")

    monkeypatch.setattr(DriverChannel, "submit", submit)
    handle = backend.submit(submission)
    assert broken
    found = applications(backend, submission)
    assert [app["id"] for app in found] == [handle["application_id"]]
    backend.stop(handle)


def test_a_driver_killed_in_the_middle_of_a_submit(backend: YarnBackend, make: Make) -> None:
    """SIGSTOP before the call and SIGKILL during it: the connection is cut in between."""
    import threading

    backend.driver.channel()
    running = backend.driver.running()
    assert running is not None
    submission = make("import time; time.sleep(600)")
    original = DriverChannel.submit

    def stopped(self: DriverChannel, spec: Any, timeout: float) -> str:
        DriverChannel.submit = original  # type: ignore[method-assign]
        os.kill(running.pid, signal.SIGSTOP)
        threading.Timer(0.5, os.kill, (running.pid, signal.SIGKILL)).start()
        return original(self, spec, timeout)

    DriverChannel.submit = stopped  # type: ignore[method-assign]
    try:
        handle = backend.submit(submission)
    finally:
        DriverChannel.submit = original  # type: ignore[method-assign]
    assert len(applications(backend, submission)) == 1
    again = backend.driver.running()
    assert again is not None
    assert again.pid != running.pid
    backend.stop(handle)


def test_the_drivers_directory_is_private(backend: YarnBackend) -> None:
    backend.driver.channel()
    directory = backend.driver.directory
    assert directory.stat().st_mode & 0o777 == 0o700
    for name in ("skein.pem", "skein.crt", "driver.json"):
        assert (directory / name).stat().st_mode & 0o777 == 0o600


_KERNEL = """\
import sys
from pathlib import Path
from submarine_jobs.backends.yarn.backend import YarnBackend
from submarine_jobs.model.profile import Profile
profile = Profile(backend="yarn", hadoop_conf_dir=Path(sys.argv[1]), java_home=Path(sys.argv[2]),
                  state_dir=Path(sys.argv[3]))
driver = YarnBackend(profile).driver
driver.channel()
print(driver.running().pid, flush=True)
sys.stdin.read()
"""


def test_two_kernels_share_one_driver_which_outlives_them(
    yarn_profile: Profile, tmp_path: Path
) -> None:
    arguments = [str(yarn_profile.hadoop_conf_dir), str(yarn_profile.java_home), str(tmp_path)]
    environ = {
        **os.environ,
        "http_proxy": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:9",
    }
    kernels = [
        subprocess.Popen(
            [sys.executable, "-c", _KERNEL, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environ,
        )
        for _ in range(2)
    ]
    try:
        pids = {int(kernel.stdout.readline()) for kernel in kernels if kernel.stdout}
        assert len(pids) == 1
        for kernel in kernels:
            kernel.kill()
            kernel.communicate(timeout=60)  # ends: the driver holds none of its pipes
        (pid,) = pids
        process = psutil.Process(pid)
        assert process.is_running()
        for link in Path(f"/proc/{pid}/fd").iterdir():
            try:
                target = os.readlink(link)
            except FileNotFoundError:  # closed meanwhile
                continue
            assert not target.startswith("/dev/pts"), target
        mine = Profile(**{**vars(yarn_profile), "state_dir": tmp_path})
        found = YarnBackend(mine).driver
        found.channel()
        running = found.running()
        assert running is not None
        assert running.pid == pid
        found.close()
    finally:
        assert stop_driver(Profile(state_dir=tmp_path)) == 1
    assert not psutil.pid_exists(pid) or process.status() == psutil.STATUS_ZOMBIE


@pytest.mark.full
def test_a_changed_configuration_replaces_the_driver(yarn_profile: Profile, tmp_path: Path) -> None:
    import shutil

    conf = tmp_path / "conf"
    shutil.copytree(yarn_profile.hadoop_conf_dir, conf)  # type: ignore[arg-type]
    settings = {
        "yarn_command": str(Path(str(yarn_profile.hadoop_conf_dir)).parent.parent / "bin/yarn")
    }
    mine = Profile(
        **{
            **vars(yarn_profile),
            "state_dir": tmp_path,
            "hadoop_conf_dir": conf,
            "settings": settings,
        }
    )
    first = YarnBackend(mine).driver
    first.channel()
    before = first.running()
    first.close()
    (conf / "yarn-site.xml").write_bytes((conf / "yarn-site.xml").read_bytes() + b"\n")
    second = YarnBackend(mine).driver
    second.channel()
    after = second.running()
    second.close()
    assert before is not None
    assert after is not None
    assert before.pid != after.pid
    assert not psutil.pid_exists(before.pid) or (
        psutil.Process(before.pid).status() == psutil.STATUS_ZOMBIE
    )
    assert stop_driver(mine) == 1


def test_no_yarn_command_and_no_java(
    yarn_profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    conf = tmp_path / "etc" / "conf"
    shutil.copytree(yarn_profile.hadoop_conf_dir, conf)  # type: ignore[arg-type]
    for name in ("HADOOP_HOME", "HADOOP_YARN_HOME", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    mine = Profile(**{**vars(yarn_profile), "state_dir": tmp_path, "hadoop_conf_dir": conf})
    with pytest.raises(ClusterError, match="no `yarn` command"):
        YarnBackend(mine).driver.channel()
    no_java = Profile(**{**vars(mine), "java_home": None})
    with pytest.raises(ClusterError, match="no Java"):
        YarnBackend(no_java).driver.channel()


def test_importing_the_backend_loads_neither_skein_nor_grpc() -> None:
    code = "import sys, submarine_jobs.backends.yarn.backend; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = done.stdout
    assert "'grpc'" not in modules
    assert "'skein'" not in modules
    assert "'hdfs_native'" not in modules


def test_a_submit_uploads_next_to_nothing(backend: YarnBackend, make: Make) -> None:
    """skein's own 7.85 MB jar comes from the cache of the job root."""
    handle = backend.submit(make("import time; time.sleep(600)"))
    staging = f"/user/{backend.user}/.skein/{handle['application_id']}"
    files = backend.storage.walk(staging)
    assert files
    assert sum(size for _, size in files) < 16_000, files
    backend.stop(handle)


@pytest.mark.full
def test_the_class_archive_is_used_by_the_master(
    yarn_profile: Profile, make: Make, tmp_path: Path
) -> None:
    """Built after one submit, used by the next; the master's own log of classes says so."""
    os.chmod(tmp_path, 0o777)
    log = tmp_path / "classes"
    options = " ".join((*MASTER_JVM, f"-Xlog:class+load=info:file={log}"))
    settings = {"am_cds": "on", "am_java_options": options}
    mine = YarnBackend(replace(yarn_profile, settings=settings))
    archive = mine.applications.archive
    assert archive is not None
    until_stage(mine, mine.submit(make("pass")), Stage.ENDED)
    archive.wait()
    # The backend of another test may be building it.
    until(lambda: archive.path() is not None, "the class archive", 120)
    log.unlink()
    ended = until_stage(mine, mine.submit(make("pass")), Stage.ENDED)
    assert ended.reason is EndReason.SUCCEEDED
    lines = log.read_text().splitlines()
    shared = sum("shared objects file" in line for line in lines)
    assert shared > 0.7 * len(lines)
    assert any("org.apache.hadoop" in line and "shared objects" in line for line in lines)


@pytest.mark.full
def test_a_node_with_other_paths_starts_the_master_without_the_archive(
    yarn_profile: Profile, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chmod(tmp_path, 0o777)
    log = tmp_path / "classes"
    options = " ".join((*MASTER_JVM, f"-Xlog:class+load=info:file={log}"))
    settings = {"am_cds": "on", "am_java_options": options}
    mine = YarnBackend(replace(yarn_profile, settings=settings))
    archive = mine.applications.archive
    assert archive is not None
    mine.applications.build_archive_later()
    until(lambda: archive.path() is not None, "the class archive", 120)
    elsewhere = [jar.replace("/lib/", "/elsewhere/") for jar in archive._jars]
    monkeypatch.setattr(archive, "_jars", elsewhere)
    ended = until_stage(mine, mine.submit(make("pass")), Stage.ENDED)
    assert ended.reason is EndReason.SUCCEEDED
    lines = log.read_text().splitlines()
    assert not any("org.apache.hadoop" in line and "shared objects" in line for line in lines)
