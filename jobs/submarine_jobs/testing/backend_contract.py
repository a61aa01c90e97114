"""The contract of a backend as tests: what ``submarine_jobs.backends.Backend`` promises.

``pytest_plugin`` adds these tests to a module. They use real jobs through a session, and the
methods of the backend where a client calls them directly. Each message of a failure names the
method that breaks its promise.
"""

from __future__ import annotations

import hashlib
import io
import json
import secrets
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest

from submarine_jobs.backends import Backend, Observation, Overview, Plan, Stage, Submission
from submarine_jobs.client import Job, Session
from submarine_jobs.config import backend_names
from submarine_jobs.errors import ClusterError, RefusedError, SubmarineError
from submarine_jobs.model import JobSpec, Localization, Profile, Resources, Role
from submarine_jobs.program import Cell, build_bundle
from submarine_jobs.storage import Storage
from submarine_jobs.testing.backend_under_test import BackendUnderTest
from submarine_runtime.protocol import EndReason, State

T = TypeVar("T")

#: Methods may not take longer than this where they are promised to return immediately.
_IMMEDIATELY = 1.0
_PAUSE = 0.05
#: A job id that no job has.
_NO_JOB = "nothing-20200101-0a1b"
_FOREVER = "import time\nprint('up', flush=True)\nwhile True:\n    time.sleep(0.1)\n"
#: SIGTERM is ignored, as by a program that hangs.
_STUBBORN = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + _FOREVER
#: Kill the agent above this program, so that the job ends without a record.
_KILLS_ITS_AGENT = """
import os, signal, time

def words(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read().split(b"\\0")

pid = os.getpid()
while not {b"agent", b"--directory"} <= set(words(pid)):
    with open(f"/proc/{pid}/stat") as file:
        pid = int(file.read().rpartition(")")[2].split()[1])
print("killing the agent", flush=True)
os.kill(pid, signal.SIGKILL)
time.sleep(60)
"""
_ORDER = (Stage.WAITING, Stage.STARTING, Stage.RUNNING, Stage.ENDED)


class JobStarter:
    """Starts programs as jobs of the backend, and notes what its method ``submit`` receives."""

    #: The profile and the id of a job that has succeeded in an earlier test.
    _succeeded: ClassVar[tuple[Profile, str] | None] = None

    def __init__(self, subject: BackendUnderTest, session: Session) -> None:
        self._subject, self._session = subject, session
        self._jobs: list[Job] = []
        self.submissions: list[Submission] = []
        backend = session.backend()
        submit = backend.submit

        def note(submission: Submission) -> Any:
            self.submissions.append(submission)
            return submit(submission)

        backend.submit = note  # type: ignore[method-assign]

    def spec(self, source: str = "pass", instances: int = 1, **fields: Any) -> JobSpec:
        """Return the spec of a program."""
        profile = self._subject.profile
        role = Role("worker", instances, Resources(memory=self._subject.memory))
        values: dict[str, Any] = {
            "roles": (role,),
            "python": profile.python,
            "python_env": profile.python_env,
            "queue": profile.queue,
            "program": "main.py",
            "bundle_digest": build_bundle([Cell("cell-1", source)]).digest,
        }
        return JobSpec("contract", str(profile.backend), **{**values, **fields})

    def start(self, source: str, instances: int = 1, **fields: Any) -> Job:
        """Submit a program."""
        bundle = build_bundle([Cell("cell-1", source)])
        job = self._session.submit(self.spec(source, instances, **fields), bundle)
        self._jobs.append(job)
        return job

    def ended(self) -> Job:
        """Return a job that has succeeded: of an earlier test with this profile, or a new one."""
        profile, job_id = JobStarter._succeeded or (None, "")
        if profile == self._subject.profile:
            return self._session.job(job_id)
        job = self.start("pass")
        record = job.wait(self._subject.patience)
        assert record.state is State.SUCCEEDED, record.detail
        return job

    def stop_all(self) -> None:
        """Stop the jobs that still run, and keep one that has succeeded for ``ended``."""
        for job in self._jobs:
            with suppress(SubmarineError):
                state = job.record().state
                if not state.ended:
                    job.cancel("the test is over")
                elif state is State.SUCCEEDED:
                    JobStarter._succeeded = self._subject.profile, job.id


def _within(
    seconds: float, condition: Callable[[], T | None], promise: str | Callable[[], str]
) -> T:
    """Return the first true value of a condition; fail with a sentence after a time."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            sentence = promise if isinstance(promise, str) else promise()
            raise AssertionError(f"{sentence} (not within {seconds:g} s)")
        time.sleep(_PAUSE)
    return value


def _all_files(storage: Storage, directory: str) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each file below a directory; archives are unpacked."""
    for entry in storage.list_directory(directory):
        path = f"{directory}/{entry.name}"
        if entry.is_directory:
            yield from _all_files(storage, path)
            continue
        data = storage.read(path)
        yield path, data
        if zipfile.is_zipfile(io.BytesIO(data)):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                for name in archive.namelist():
                    yield f"{path}/{name}", archive.read(name)


def _observe(backend: Backend, job: Job) -> Observation:
    assert job.handle is not None, "submit must return a handle."
    seen = backend.observe({job.id: job.handle})
    assert set(seen) == {job.id}, "observe must return an observation of each job it is given."
    return seen[job.id]


class BackendContract:
    """Tests that a backend keeps what ``Backend`` promises."""

    @pytest.fixture(autouse=True)
    def _subject(
        self,
        backend_under_test: BackendUnderTest,
        contract_session: Session,
        contract_jobs: JobStarter,
    ) -> None:
        self.subject = backend_under_test
        self.session = contract_session
        self.backend: Backend = contract_session.backend()
        self.jobs = contract_jobs

    def _waits(self, condition: Callable[[], T | None], promise: str | Callable[[], str]) -> T:
        return _within(self.subject.patience, condition, promise)

    def _started(self, source: str, **fields: Any) -> Job:
        """Start a program, and wait for its first line."""
        job = self.jobs.start(source, **fields)
        self._waits(lambda: job.log("stdout").data, "submit must start the program.")
        return job

    def _ends(self, job: Job) -> Observation:
        """Wait until the backend reports the end of a job."""

        def ended() -> Observation | None:
            seen = _observe(self.backend, job)
            return None if seen.active else seen

        return self._waits(ended, "observe must report ENDED after the processes have ended.")

    def _leaves_nothing(self, job: Job) -> None:
        def clean() -> bool:
            _observe(self.backend, job)
            return not list(self.subject.leftovers(job.id))

        self._waits(
            clean,
            lambda: f"the ended job {job.id} has left {list(self.subject.leftovers(job.id))}",
        )

    def test_it_is_registered_under_its_name(self) -> None:
        """The name of the class, of the entry point and of the profile are the same."""
        assert self.backend.name == self.subject.profile.backend
        assert self.backend.name in backend_names()

    def test_job_root_is_a_directory_that_can_be_written(self) -> None:
        """``job_root`` gives a storage and an absolute path, the same at each call."""
        storage, root = self.backend.job_root()
        assert isinstance(storage, Storage), "job_root must return a Storage first."
        assert root.startswith("/"), f"job_root must return an absolute path, not {root!r}."
        assert self.backend.job_root()[1] == root
        path = f"{root}/contract/file"
        storage.publish(path, b"content")
        assert storage.read(path) == b"content", "the storage of job_root must keep files."
        storage.delete(f"{root}/contract", recursive=True)

    def test_plan_describes_the_containers_and_changes_nothing(self) -> None:
        """``plan`` answers with the containers of a spec, and adds no job."""
        before = {record.job_id for record in self.session.jobs()}
        plan = self.backend.plan(self.jobs.spec())
        assert isinstance(plan, Plan)
        assert plan.placement, "plan must say in `placement` where the program runs."
        assert not plan.errors, f"plan must accept a small job: {plan.errors}"
        memory = [entry["memory"] for entry in plan.containers]
        assert memory, "plan must list the containers."
        assert max(memory) >= self.subject.memory
        after = {record.job_id for record in self.session.jobs()}
        assert after == before, "plan must not create a job."

    def test_plan_refuses_what_cannot_run(self) -> None:
        """``plan`` returns sentences, and a job with errors is not submitted."""
        huge = Role("worker", 1, Resources(memory=1 << 50, vcores=1 << 20))
        asked = (
            Role("worker", 1, Resources(memory=self.subject.memory), node_label="no-such-label"),
            Role("worker", 1, Resources(memory=self.subject.memory), docker_image="no/such:image"),
        )
        for role in (huge, *asked):
            spec = self.jobs.spec(roles=(role,))
            errors = self.backend.plan(spec).errors
            if errors:
                break
        assert errors, "plan accepts an exbibyte of memory, an unknown label and any image."
        assert all(text.strip().endswith((".", "?")) for text in errors), (
            f"plan must return sentences as errors: {errors}"
        )
        with pytest.raises(RefusedError):
            self.jobs.start("pass", roles=(role,))
        assert not self.jobs.submissions, "a refused job must not reach submit."

    def test_prepare_returns_immediately(self) -> None:
        """``prepare`` works in the background, with and without a spec."""
        began = time.monotonic()
        self.backend.prepare()
        self.backend.prepare(self.jobs.spec())
        assert time.monotonic() - began < _IMMEDIATELY, "prepare must return immediately."

    def test_an_unknown_job_is_no_error(self) -> None:
        """``find`` returns None for a job that was never submitted; no jobs, no observations."""
        assert self.backend.find(_NO_JOB) is None, "find must return None for an unknown job."
        assert self.backend.observe({}) == {}
        assert self.backend.survey({}) == {}

    def test_overview_and_active_jobs_answer(self) -> None:
        """The methods with defaults return what their annotations say."""
        assert isinstance(self.backend.overview(), Overview)
        active = self.backend.active_jobs()
        assert active is None or not list(active), "active_jobs lists jobs that do not exist."

    def test_a_job_from_submit_to_record(self, tmp_path: Path) -> None:
        """Stages in order; record, both logs, a value, a localized file; nothing is left."""
        (tmp_path / "data.txt").write_text("localized", encoding="utf-8")
        source = (
            "import sys, time\n"
            "print(open('data.txt').read(), flush=True)\n"
            "print('problem', file=sys.stderr)\ntime.sleep(0.5)\nanswer = 42\n"
        )
        item = Localization(str(tmp_path / "data.txt"), "data.txt")
        job = self.jobs.start(source, localization=(item,), return_names=("answer",))
        assert job.handle is not None
        assert json.loads(json.dumps(job.handle)) == dict(job.handle), (
            "the handle that submit returns must be plain JSON."
        )
        stages: list[Stage] = []

        def ended() -> bool:
            stages.append(_observe(self.backend, job).stage)
            return job.record().state.ended

        self._waits(ended, "the job must end.")
        record = job.wait(self.subject.patience)
        assert record.state is State.SUCCEEDED, record.detail
        assert record.backend == self.backend.name
        seen = [stage for stage in dict.fromkeys(stages) if stage is not Stage.UNKNOWN]
        assert Stage.RUNNING in seen, f"observe must report RUNNING; it reported {seen}."
        assert seen == [stage for stage in _ORDER if stage in seen], (
            f"observe must report stages in their order: {seen}"
        )
        assert job.log("stdout").data == b"localized\n"
        assert job.log("stderr").data == b"problem\n"
        assert job.result["answer"] == 42
        self._ends(job)
        self._leaves_nothing(job)
        assert job.wait(self.subject.patience) == record, "observe must not change a record."

    def test_a_secret_reaches_the_program_only(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Values of ``--secret`` are variables of each task, and nothing keeps them."""
        here, there = (f"contract-{secrets.token_hex(16)}" for _number in range(2))
        monkeypatch.setenv("CONTRACT_TOKEN", here)
        (tmp_path / "key").write_text(there + "\n", encoding="utf-8")
        (tmp_path / "key").chmod(0o600)
        source = (
            "import hashlib, os\n"
            "for name in ('CONTRACT_TOKEN', 'CONTRACT_KEY'):\n"
            "    print(hashlib.sha256(os.environ[name].encode()).hexdigest())\n"
        )
        sources = {"CONTRACT_TOKEN": "", "CONTRACT_KEY": str(tmp_path / "key")}
        job = self.jobs.start(source, secrets=sources)
        record = job.wait(self.subject.patience)
        assert record.state is State.SUCCEEDED, record.detail
        digests = [hashlib.sha256(value.encode()).hexdigest() for value in (here, there)]
        assert job.log("stdout").data.decode().split() == digests, (
            "submit must localize secret-env.json, with the values of --secret, for the agent."
        )
        submission = repr(self.jobs.submissions[-1])
        storage, directory = job.directory.storage, job.directory.path
        for name, data in _all_files(storage, directory):
            for value in (here, there):
                assert value.encode() not in data, f"{name} holds the value of a secret."
                assert value not in submission
        self._ends(job)
        self._leaves_nothing(job)

    def test_a_failed_program_is_recorded(self) -> None:
        """The exit code is that of the program, and the end is reported."""
        job = self.jobs.start("raise SystemExit(3)")
        record = job.wait(self.subject.patience)
        assert record.state is State.FAILED
        assert [task.exit_code for task in record.tasks] == [3]
        self._ends(job)

    def test_a_running_job_is_found_observed_and_stopped(self) -> None:
        """No state is in memory; a repeated submit finds the job; stop ends it in any case."""
        job = self._started(_STUBBORN)
        assert job.handle is not None
        seen = _observe(self.backend, job)
        assert seen.stage is Stage.RUNNING, f"observe reports {seen.stage} for a running program."
        handles = {job.id: job.handle}
        survey = self.backend.survey(handles, explain=(job.id,))
        assert survey[job.id].stage is Stage.RUNNING, "survey must observe as observe does."
        sentence, began = self.backend.localizing(job.handle)
        assert isinstance(sentence, str), "localizing must return a sentence first."
        assert began is None or isinstance(began, float)
        active = self.backend.active_jobs()
        assert active is None or job.id in active, "active_jobs must have a running job."

        other = Session(replace(self.subject.profile)).backend()
        found = other.find(job.id)
        assert found is not None, "find must find a job of another process."
        assert other.observe({job.id: found})[job.id].stage is Stage.RUNNING
        again = other.submit(self.jobs.submissions[-1])
        assert other.observe({job.id: again})[job.id].stage is Stage.RUNNING, (
            "a repeated submit must return a handle of the first job."
        )

        other.stop(again)
        ended = self._ends(job)
        assert ended.stage is Stage.ENDED, f"observe reports {ended.stage} after stop."
        assert ended.reason is not None, "observe must give a reason for ENDED."
        self.backend.stop(job.handle)
        self.backend.stop(found)
        record = job.wait(self.subject.patience)
        assert record.state.ended
        assert record.state is not State.SUCCEEDED
        assert job.log("stdout").data == b"up\n", "the program must have run once."
        self._leaves_nothing(job)

    def test_a_cancelled_job_keeps_its_log(self) -> None:
        """A cancellation ends the job and is its recorded state."""
        job = self._started(_FOREVER)
        record = job.cancel("the test cancels it")
        assert record.state is State.CANCELLED, record.detail
        assert job.log("stdout").data == b"up\n"
        self._ends(job)
        self._leaves_nothing(job)

    def test_a_lost_agent_is_reported(self) -> None:
        """A job whose agent dies is reported as ended, with a reason, and gets a record."""
        job = self.jobs.start(_KILLS_ITS_AGENT)
        seen = self._ends(job)
        assert seen.stage is Stage.ENDED
        assert seen.reason is not None, "observe must give a reason for a lost job."
        assert isinstance(seen.reason, EndReason)
        record = job.wait(self.subject.patience)
        assert record.state is State.FAILED, f"{record.state}: {record.detail}"
        assert record.reason is seen.reason
        self._leaves_nothing(job)

    def test_several_jobs_are_observed_together(self) -> None:
        """``observe`` and ``survey`` answer for each job, whatever its stage."""
        ended, running = self.jobs.ended(), self._started(_FOREVER)
        handles = {job.id: job.handle for job in (ended, running) if job.handle is not None}
        for method in (self.backend.observe, self.backend.survey):
            seen = method(handles)
            assert set(seen) == set(handles), f"{method.__name__} must answer for each job."
            assert seen[running.id].active
        assert self.backend.find(running.id) is not None
        listed = {record.job_id: record.state for record in self.session.jobs()}
        assert listed[ended.id] is State.SUCCEEDED
        assert listed[running.id] is State.RUNNING
        running.cancel("the test is over")

    def test_several_tasks(self) -> None:
        """A distributed job runs all of its tasks, or ``plan`` refuses it."""
        source = "import os\nprint('task', os.environ['SUBMARINE_INDEX'])\n"
        spec = self.jobs.spec(source, 2, framework="any")
        if errors := self.backend.plan(spec).errors:
            pytest.skip(f"the backend runs no distributed jobs: {errors[0]}")
        job = self.jobs.start(source, 2, framework="any")
        record = job.wait(2 * self.subject.patience)
        assert record.state is State.SUCCEEDED, record.detail
        for index in (0, 1):
            text = job.log("stdout", task=f"worker:{index}").data
            assert text == f"task {index}\n".encode(), "each task must run once, with its index."
        self._ends(job)
        self._leaves_nothing(job)

    def test_a_system_that_does_not_answer(self) -> None:
        """Each method raises ClusterError in time, and nothing is submitted."""
        if self.subject.unreachable is None:
            pytest.skip("the fixture backend_under_test names no unreachable system")
        job = self.jobs.ended()
        handle = job.handle
        assert handle is not None
        session = Session(self.subject.unreachable)
        backend = session.backend()
        calls: dict[str, Callable[[], object]] = {
            "plan": lambda: backend.plan(self.jobs.spec()),
            "find": lambda: backend.find(job.id),
            "observe": lambda: backend.observe({job.id: handle}),
            "survey": lambda: backend.survey({job.id: handle}),
            "stop": lambda: backend.stop(handle),
            "a session's submit": lambda: session.submit(
                self.jobs.spec(), build_bundle([Cell("cell-1", "pass")])
            ),
        }
        limit = self.subject.unreachable.timeout + _IMMEDIATELY
        for name, call in calls.items():
            began = time.monotonic()
            with pytest.raises(ClusterError) as caught:
                call()
            took = time.monotonic() - began
            assert took < limit, f"{name} took {took:.1f} s; the profile allows {limit:g} s."
            assert caught.value.message.endswith("."), f"{name}: {caught.value.message!r}"
