"""Jobs through the whole core on a real YARN and HDFS: endings, logs, faults."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from submarine_jobs.access import AgentClient
from submarine_jobs.backends import Stage
from submarine_jobs.client import Job, Session
from submarine_jobs.errors import ClusterError, StorageError
from submarine_jobs.model import Localization, Profile
from submarine_minicluster.cluster import Minicluster
from submarine_minicluster.hadoop import SUPERUSER
from submarine_runtime.protocol import EndReason, JobRecord, State, layout
from tests.local.jobs.slow_submission import check_slow_submission
from tests.reading import files_below
from tests.submission import Submit, make_job
from tests.waiting import until

pytestmark = pytest.mark.cluster

LIMIT = 180.0
WAITS = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"
#: Prints ten lines, waits for a file, and prints ten more: it lives as long as the test wants.
HELD = """\
import os, time
for i in range(20):
    print(i, flush=True)
    time.sleep(0.2)
    while i == 9 and not os.path.exists({go!r}):
        time.sleep(0.05)
"""
HELD_PRINTS = [b"%d" % i for i in range(20)]


@pytest.fixture(scope="module")
def finished(session: Session) -> Job:
    """A job that has succeeded, for all tests that only look at one."""
    job = session.submit(*make_job("print('kept')\n", "finished", backend="yarn", env={"A": "b c"}))
    assert job.wait(LIMIT).state is State.SUCCEEDED
    return job


def phases(record: JobRecord) -> list[str]:
    return [phase.name for phase in record.phases]


def _files_with(value: bytes, top: Path) -> list[Path]:
    """Return the files below a directory of this machine that contain a value."""
    found = []
    for path in files_below(top):
        with contextlib.suppress(OSError):  # YARN removes files meanwhile.
            if path.is_file() and path.stat().st_size < 16 << 20 and value in path.read_bytes():
                found.append(path)
    return found


def test_a_secret_reaches_the_tasks_of_a_gang(
    submit: Submit, minicluster: Minicluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file in HDFS and its localized copies have the value, while the job runs."""
    value, go = f"core-{secrets.token_hex(16)}", tmp_path / "go"
    monkeypatch.setenv("CORE_TOKEN", value)
    digest = hashlib.sha256(value.encode()).hexdigest()
    source = (
        "import hashlib, os, time\n"
        "print(hashlib.sha256(os.environ['CORE_TOKEN'].encode()).hexdigest(), flush=True)\n"
        f"while not os.path.exists({str(go)!r}):\n    time.sleep(0.1)\n"
    )
    job = submit(source, instances=2, framework="any", secrets={"CORE_TOKEN": ""})
    tasks = ("worker:0", "worker:1")
    until(lambda: all(job.log("stdout", task=task).data for task in tasks), "a line of each")
    assert [job.log("stdout", task=task).data.decode() for task in tasks] == [f"{digest}\n"] * 2
    storage, directory = job.directory.storage, job.directory.path
    status = f"{minicluster.url('namenode')}/webhdfs/v1{directory}/{layout.SECRET_ENV}"
    user = json.loads(storage.read(job.directory.file(layout.INTENT)))["user"]
    with urllib.request.urlopen(f"{status}?op=GETFILESTATUS&user.name={user}", timeout=20) as got:
        assert json.load(got)["FileStatus"]["permission"] == "600"
    home = minicluster.layout.root
    copies = _files_with(value.encode(), home)
    localized = [path for path in copies if path.name == layout.SECRET_ENV]
    # The others are blocks of HDFS.
    assert localized
    assert [p for p in copies if p not in localized and not p.name.startswith("blk_")] == []
    assert all(path.stat().st_mode & 0o077 == 0 for path in localized)
    go.touch()
    assert job.wait(LIMIT).state is State.SUCCEEDED
    assert storage.stat(job.directory.file(layout.SECRET_ENV)) is None

    def removed() -> bool:
        return not _files_with(value.encode(), home)

    until(removed, lambda: f"left: {_files_with(value.encode(), home)}", 60.0)


def test_every_ending_has_its_reason(submit: Submit) -> None:
    """Submitted side by side, since each has a container of its own."""
    jobs = {
        "fine": submit("print('hello')\nanswer = 42\n", return_names=("answer",)),
        "error": submit("def f():\n    return 1 / 0\n\nf()\n"),
        "import": submit("import no_such_module_anywhere\n"),
        "exit": submit("import sys\nsys.exit(3)\n"),
        "signal": submit("import os\nos.kill(os.getpid(), 11)\n"),
        "memory": submit("x = bytearray(900 << 20)\nimport time\ntime.sleep(60)\n"),
        "time": submit(WAITS, timeout=3.0),
    }
    records = {name: job.wait(LIMIT) for name, job in jobs.items()}
    reasons = {name: record.reason for name, record in records.items()}
    assert reasons == {
        "fine": EndReason.SUCCEEDED,
        "error": EndReason.PROGRAM_ERROR,
        "import": EndReason.IMPORT_ERROR,
        "exit": EndReason.PROGRAM_ERROR,
        "signal": EndReason.KILLED_BY_SIGNAL,
        "memory": EndReason.OUT_OF_MEMORY,
        "time": EndReason.TIMED_OUT,
    }
    assert jobs["fine"].result["answer"] == 42
    assert records["exit"].exit_code == 3
    assert records["signal"].signal == signal.SIGSEGV
    failure = records["error"].failure
    assert failure is not None
    assert failure.type == "ZeroDivisionError"
    where = [(frame.cell, frame.cell_line) for frame in failure.frames]
    assert where == [("[3]", 5), ("[3]", 3)]
    wanted = ["upload", "queue", "localizing", "master_start", "start", "first_line", "run", "save"]
    assert sorted(phases(records["fine"])) == sorted(wanted)
    assert all(phase.end is not None for phase in records["fine"].phases)


LISTED = """
import os
for name in ("data", "again", "other"):
    for where, _, files in os.walk(name):
        for file in sorted(files):
            print(os.path.join(where, file), open(os.path.join(where, file)).read())
"""


def test_hdfs_directories_arrive_unchanged_under_every_name(
    session: Session, submit: Submit
) -> None:
    """The NodeManager writes a checksum file beside every file of a directory that it copies."""
    storage, root = session.backend().job_root()
    source = f"{root}/localized-{os.getpid()}"
    for name, content in (("a.txt", b"1"), ("deep/b.txt", b"2"), (".mine.crc", b"3")):
        storage.publish(f"{source}/{name}", content)
    url = storage.url(source)
    wanted = (
        Localization(url, "data"),
        Localization(url, "again"),
        Localization(f"{url}/deep", "other"),
    )
    try:
        job = submit(LISTED, localization=wanted)
        record = job.wait(LIMIT)
        assert record.state is State.SUCCEEDED, record.detail
        printed = b"".join(chunk.data for chunk in job.read_log("stdout")).decode().splitlines()
    finally:
        storage.delete(source, recursive=True)
    each = [".mine.crc 3", "a.txt 1", "deep/b.txt 2"]
    assert printed == [f"{top}/{line}" for top in ("data", "again") for line in each] + [
        "other/b.txt 2"
    ]


HOSTILE = r"""
import sys
out = sys.stdout.buffer
line = b"<script>alert(1)</script> \x1b]0;title\x07\x1b[31mred\x1b[0m \xff\xfe caf\xc3\xa9 %06d\n"
for i in range(LINES):
    out.write(line % i)
    if i % 1000 == 0:
        out.write(b"\r 10% [==>  ]\r 99% [====>]\n")
out.flush()
"""


@pytest.mark.parametrize("megabytes", [3, pytest.param(200, marks=pytest.mark.full)])
def test_a_log_of_any_bytes_comes_back_exactly(submit: Submit, megabytes: int) -> None:
    lines = megabytes * 13_000
    source = HOSTILE.replace("LINES", str(lines))
    job = submit(source, memory=512)
    expected = hashlib.sha256()
    program = source.replace("out = sys.stdout.buffer", "out = sink")

    class Sink:
        size = 0

        def write(self, data: bytes) -> None:
            expected.update(data)
            self.size += len(data)

        def flush(self) -> None:
            return None

    sink = Sink()
    exec(program, {"sink": sink})
    record = job.wait(300)
    assert record.state is State.SUCCEEDED, record.detail
    got, size = hashlib.sha256(), 0
    for chunk in job.read_log("stdout"):
        assert chunk.offset == size
        got.update(chunk.data)
        size += len(chunk.data)
    assert (size, got.hexdigest()) == (sink.size, expected.hexdigest())
    middle = size // 2
    assert job.log("stdout", middle, 10).offset == middle


def run_kernel(profile: Profile, body: str) -> subprocess.Popen[str]:
    """Another process that submits, as a kernel does; ``body`` has ``session`` and ``submit``."""
    source = f"""
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from submarine_jobs.client import Session
from submarine_jobs.model import Profile
from tests.submission import make_job
profile = Profile(backend="yarn", hadoop_conf_dir=Path({str(profile.hadoop_conf_dir)!r}),
                  state_dir=Path({str(profile.state_dir)!r}))
session = Session(profile)
def submit(source, name="test", **changes):
    return session.submit(*make_job(source, name, backend="yarn", **changes))
{body}
"""
    return subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)


def test_the_kernel_dies_right_after_submit_and_another_machine_takes_over(
    yarn_profile: Profile, tmp_path: Path
) -> None:
    source = "import time\nfor i in range(3):\n    print('line', i)\n    time.sleep(1)\n"
    kernel = run_kernel(
        yarn_profile,
        f"job = submit({source!r}, 'orphan')\nprint(job.id, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)",
    )
    out, _ = kernel.communicate(timeout=LIMIT)
    assert kernel.returncode == -signal.SIGKILL
    elsewhere = Session(replace(yarn_profile, state_dir=tmp_path / "other"))
    job = elsewhere.job(out.strip())
    record = job.wait(LIMIT)
    assert record.state is State.SUCCEEDED
    assert job.log("stdout", 0, 100).data == b"line 0\nline 1\nline 2\n"
    assert out.strip() in [listed.job_id for listed in elsewhere.jobs(10)]


def test_the_kernel_dies_between_intent_and_hand_over(
    yarn_profile: Profile, session: Session
) -> None:
    """What it leaves is a job that says it is being submitted, never a second program."""
    kernel = run_kernel(
        yarn_profile,
        "import submarine_jobs.backends.yarn.backend as b\n"
        "def die(self, submission):\n"
        "    print(submission.job_dir, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "b.YarnBackend.submit = die\n"
        "submit('print(1)', 'halfway')",
    )
    out, _ = kernel.communicate(timeout=LIMIT)
    job = session.job(out.strip().rpartition("/")[2])
    assert job.record().state is State.SUBMITTING
    record = job.cancel("nobody will submit it")
    assert (record.state, record.reason) == (State.CANCELLED, EndReason.CANCELLED)
    assert session.job(job.id).record().state is State.CANCELLED


def test_two_kernels_submit_at_once(yarn_profile: Profile, session: Session) -> None:
    body = "job = submit('print(1)', 'twin')\nprint(job.id, job.wait(150).state.value)"
    kernels = [run_kernel(yarn_profile, body) for _ in range(2)]
    answers = [kernel.communicate(timeout=LIMIT)[0].split() for kernel in kernels]
    assert [answer[1] for answer in answers] == ["SUCCEEDED", "SUCCEEDED"]
    assert answers[0][0] != answers[1][0]


def test_cancelled_while_it_waits_for_resources(
    minicluster: Minicluster, session: Session, submit: Submit
) -> None:
    filler = submit(WAITS, "filler", memory=6000)
    until(lambda: filler.log("stdout").data == b"up\n", "the filler runs")
    waiting = submit("print('never')\n", "waiting", memory=4000)
    until(lambda: bool(waiting.view().pending), "a sentence on why it waits")
    assert waiting.record().state is State.PENDING
    record = waiting.cancel("changed my mind")
    assert (record.state, record.reason) == (State.CANCELLED, EndReason.CANCELLED)
    assert "changed my mind" in record.detail
    assert waiting.log("stdout").data == b""
    running = filler.cancel()
    assert running.state is State.CANCELLED
    assert filler.log("stdout").data == b"up\n"
    assert filler.cancel("again").state is State.CANCELLED


def test_cancelled_at_any_moment_of_its_start(submit: Submit) -> None:
    """Four jobs side by side, each cancelled after another delay."""

    def cancelled(delay: float) -> JobRecord:
        job = submit(WAITS)
        time.sleep(delay)
        return job.cancel()

    with ThreadPoolExecutor(4) as pool:
        records = list(pool.map(cancelled, [0.0, 1.5, 2.5, 3.5]))
    for record in records:
        assert (record.state, record.reason) == (State.CANCELLED, EndReason.CANCELLED), record


def test_cancelled_while_it_saves_and_after_it_has_ended(submit: Submit) -> None:
    """Many small files keep the job saving for some seconds; more where that was too quick."""
    source = (
        "import os\n"
        "for i in range({files}):\n"
        "    with open(os.path.join(os.environ['SUBMARINE_MODEL_DIR'], f'{{i}}.bin'), 'wb') as f:\n"
        "        f.write(bytes(1000))\n"
    )
    for files in (250, 1000, 4000):
        job = submit(source.format(files=files))
        seen: list[State] = []

        def saves_or_has_ended(job: Job = job, seen: list[State] = seen) -> bool:
            seen.append(job.record().state)
            return seen[-1] is State.FINISHING or seen[-1].ended

        until(saves_or_has_ended, "it saves", LIMIT)
        record = job.cancel()
        assert record.state in (State.CANCELLED, State.SUCCEEDED)
        assert job.log("stdout").data == b""
        assert job.cancel().state is record.state
        if seen[-1] is State.FINISHING:
            return
    pytest.fail("it was never seen to save")


def test_cancel_when_the_agent_cannot_be_reached(submit: Submit) -> None:
    """The request to the agent is lost: the cluster is asked, and the wish explains the end."""
    job = submit(WAITS)
    until(lambda: job.agent() is not None, "the agent listens")
    job.agent = lambda: None  # type: ignore[method-assign]
    record = job.cancel("no way to the agent")
    assert (record.state, record.reason) == (State.CANCELLED, EndReason.CANCELLED), record.detail


def test_the_agent_is_shot_and_the_job_is_closed_once(session: Session, submit: Submit) -> None:
    job = submit(WAITS)
    until(lambda: job.record().state is State.RUNNING and bool(job.record().tasks), "it runs")
    until(lambda: job.log("stdout", 0, 10).data == b"up\n", "its first line")
    claim = job.directory.read_json("claim.json")
    program = job.record().tasks[0].pid
    os.kill(claim["pid"], signal.SIGKILL)
    record = job.wait(LIMIT)
    assert record.state is State.FAILED
    assert record.reason in (EndReason.AGENT_LOST, EndReason.MASTER_LOST), record.detail
    assert record.written_by == "closer"
    assert program is not None
    until(lambda: not Path(f"/proc/{program}").exists(), "the program is gone too")


def test_killed_on_the_cluster(session: Session, submit: Submit) -> None:
    job = submit(WAITS)
    until(lambda: job.record().state is State.RUNNING, "it runs")
    assert job.handle is not None
    session.backend().stop(job.handle)
    record = job.wait(LIMIT)
    assert record.state is State.CANCELLED
    assert record.reason in (EndReason.KILLED_ON_CLUSTER, EndReason.CANCELLED)


def test_the_resourcemanager_restarts_while_the_job_runs(
    minicluster: Minicluster, submit: Submit, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    job = submit(HELD.format(go=str(go)))
    until(lambda: job.record().state is State.RUNNING, "it runs")
    minicluster.kill("resourcemanager")
    time.sleep(1)
    assert not job.record().state.ended, "an absent ResourceManager is no end"
    minicluster.restart("resourcemanager")
    assert not job.record().state.ended, "nor is one that is back"
    go.touch()
    record = job.wait(LIMIT)
    assert record.state is State.SUCCEEDED, record.detail
    assert job.log("stdout").data.split() == HELD_PRINTS


def test_rerun_needs_the_job_directory_alone(yarn_profile: Profile, finished: Job) -> None:
    job = finished
    elsewhere = Session(replace(yarn_profile, state_dir=yarn_profile.state_dir))
    again = elsewhere.job(job.id).rerun()
    assert again.wait(LIMIT).state is State.SUCCEEDED
    assert again.id != job.id
    assert again.directory.spec() == replace(job.directory.spec(), rerun_of=job.id)
    bundles = [j.directory.storage.read(j.directory.file("bundle.zip")) for j in (job, again)]
    assert bundles[0] == bundles[1]


def test_a_job_directory_is_private_and_holds_no_secret_elsewhere(finished: Job) -> None:
    job = finished
    secret = job.directory.secret()
    storage = job.directory.storage
    for path, _ in storage.walk(job.directory.path):
        data = storage.read(job.directory.file(path))
        if path != "secret.json":
            assert secret.token.encode() not in data, path
            assert b"PRIVATE KEY" not in data, path


def test_the_job_of_another_user_is_refused_with_a_message(
    yarn_profile: Profile, finished: Job
) -> None:
    job = finished
    root = job.directory.path.rpartition("/")[0].rpartition("/")[0]
    stranger = f"""
import sys
from pathlib import Path
from submarine_jobs.errors import SubmarineError
from submarine_jobs.client import Session
from submarine_jobs.model import Profile
profile = Profile(backend="yarn", hadoop_conf_dir=Path({str(yarn_profile.hadoop_conf_dir)!r}),
                  user="mallory", job_root={root!r}, state_dir=Path(sys.argv[1]))
try:
    print(Session(profile).job({job.id!r}).log("stdout").data)
except SubmarineError as error:
    print(type(error).__name__, error)
"""
    import tempfile

    with tempfile.TemporaryDirectory() as state:
        done = subprocess.run(
            [sys.executable, "-c", stranger, state], capture_output=True, text=True, timeout=120
        )
    assert "NoAccessError" in done.stdout, done.stdout + done.stderr
    assert "permission denied" in done.stdout


def test_the_spec_is_refused_before_anything_is_written(session: Session) -> None:
    from submarine_jobs.errors import RefusedError

    before = {record.job_id for record in session.jobs(100)}
    for changes, words in (
        ({"queue": "nowhere"}, "nowhere"),
        ({"memory": 1 << 20}, "memory"),
        ({"gpus": 64}, "GPU"),
    ):
        spec, bundle = make_job("print(1)\n", backend="yarn", **changes)
        with pytest.raises(RefusedError, match=words) as caught:
            session.submit(spec, bundle)
        assert "Exception" not in str(caught.value)
    assert {record.job_id for record in session.jobs(100)} == before


def test_storage_errors_are_one_sentence(session: Session) -> None:
    storage, _ = session.backend().job_root()
    with pytest.raises((StorageError, FileNotFoundError)):
        storage.read("/no/such/file")


@pytest.mark.full
def test_a_quota_that_is_used_up_while_a_job_runs(
    minicluster: Minicluster, yarn_profile: Profile, submit: Submit, tmp_path: Path
) -> None:
    """Neither the agent nor a client can write the record: the job ends and its reason is shown."""
    go = tmp_path / "go"
    job = submit(HELD.format(go=str(go)))
    until(lambda: b"9" in job.log("stdout").data, "ten lines", LIMIT)

    def limit(option: str, *words: str) -> None:
        environment = {**os.environ, **minicluster.environ(), "HADOOP_USER_NAME": SUPERUSER}
        path = job.directory.path
        command = ["hdfs", "dfsadmin", option, *words, path]
        subprocess.run(command, env=environment, check=True, timeout=120)

    limit("-setSpaceQuota", "4096")
    go.touch()
    elsewhere = Session(replace(yarn_profile, state_dir=tmp_path / "other"))
    record = elsewhere.job(job.id).wait(LIMIT)
    assert (record.state, record.reason) == (State.FAILED, EndReason.JOB_DIRECTORY_FULL)
    assert f"{job.directory.path} is full, its quota of 4 KB" in record.detail
    limit("-clrSpaceQuota")
    assert job.wait(LIMIT).reason is EndReason.JOB_DIRECTORY_FULL
    assert job.directory.record() is not None, "with room again, it is told to everybody"


def test_unfinished_job_of_a_dead_listener_can_be_followed(submit: Submit) -> None:
    source = "import time\nfor i in range(6):\n    print('line', i)\n    time.sleep(0.5)\n"
    job: Job = submit(source)
    got = b"".join(chunk.data for chunk in job.follow() if chunk.stream == "stdout")
    assert got == b"".join(b"line %d\n" % i for i in range(6))


def test_after_yarn_has_forgotten_everything(
    minicluster: Minicluster,
    yarn_profile: Profile,
    finished: Job,
    submit: Submit,
    tmp_path: Path,
) -> None:
    """The ResourceManager loses its memory; job directory and log are all that is needed."""
    job = finished
    minicluster.kill("resourcemanager")
    shutil.rmtree(minicluster.layout.data("resourcemanager"))
    minicluster.start()
    elsewhere = Session(replace(yarn_profile, state_dir=tmp_path / "other"))
    assert elsewhere.backend().observe({job.id: job.handle or {}})[job.id].stage is Stage.UNKNOWN
    found = elsewhere.job(job.id)
    assert found.record().state is State.SUCCEEDED
    assert found.log("stdout").data == b"kept\n"
    assert job.id in [record.job_id for record in elsewhere.jobs(200)]
    assert submit("print('works')\n").wait(LIMIT).state is State.SUCCEEDED


def test_cancel_whose_reply_is_lost(submit: Submit, monkeypatch: pytest.MonkeyPatch) -> None:
    job = submit(WAITS)
    until(lambda: job.agent() is not None, "the agent listens")
    real = AgentClient.cancel

    def heard_but_not_confirmed(agent: AgentClient, by: str, why: str) -> None:
        real(agent, by, why)
        raise ClusterError("the connection was cut before the answer")

    monkeypatch.setattr(AgentClient, "cancel", heard_but_not_confirmed)
    record = job.cancel("twice asked, once done")
    assert (record.state, record.reason) == (State.CANCELLED, EndReason.CANCELLED), record.detail


def test_the_namenode_is_away_for_a_while(
    minicluster: Minicluster, submit: Submit, tmp_path: Path
) -> None:
    """The program does not notice, and nothing of its log is lost."""
    go = tmp_path / "go"
    job = submit(HELD.format(go=str(go)))
    until(lambda: job.log("stdout", 0, 10).data != b"", "its first line")
    minicluster.kill("namenode")
    time.sleep(8)
    minicluster.start()
    go.touch()
    record = job.wait(LIMIT)
    assert record.state is State.SUCCEEDED, record.detail
    assert job.log("stdout").data.split() == HELD_PRINTS


@pytest.mark.full
@pytest.mark.parametrize(("seconds", "settings"), [(10.0, {"submit_grace": "6s"}), (200.0, {})])
def test_slow_submission_is_not_closed(
    yarn_profile: Profile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    settings: dict[str, str],
) -> None:
    submitter = Session(replace(yarn_profile, settings=settings))
    watcher, retrier = (
        Session(replace(yarn_profile, settings=settings, state_dir=tmp_path / name))
        for name in ("watcher", "retrier")
    )
    name = f"slow{secrets.token_hex(4)}"
    spec, bundle = make_job("print('once')\n", name, backend="yarn", run_id=name)
    job = check_slow_submission(submitter, watcher, retrier, spec, bundle, seconds, monkeypatch)
    assert job.log().data == b"once\n"
    assert job.attempts() == ["e1-a1"]
