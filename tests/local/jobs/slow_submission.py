"""A submission that is slower than the grace, while a second client and a second attempt watch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from submarine_jobs.backends import Handle, Submission
from submarine_jobs.client import Job, Session, run_attempts as attempts
from submarine_jobs.model import JobSpec
from submarine_jobs.program import Bundle
from submarine_runtime.protocol import State


def check_slow_submission(
    submitter: Session,
    watcher: Session,
    retrier: Session,
    spec: JobSpec,
    bundle: Bundle | None,
    seconds: float,
    monkeypatch: pytest.MonkeyPatch,
) -> Job:
    """Submit ``spec``, which has a run id, in ``seconds``; the job, which has succeeded.

    ``watcher`` lists the jobs all the time, and ``retrier`` starts the same run again.
    """
    backend = submitter.backend()
    submit = backend.submit

    handing_over = threading.Event()

    def slowly(submission: Submission) -> Handle:
        handing_over.set()
        time.sleep(seconds)
        return submit(submission)

    monkeypatch.setattr(backend, "submit", slowly)
    jobs: list[Job] = []
    said: list[str] = []

    def start(session: Session) -> Callable[[], None]:
        def work() -> None:
            monkeypatch.setattr(attempts, "_ordinals", {})  # as another process
            job, _ = attempts.start_or_join(
                session,
                spec,
                "cell-1",
                lambda claim: session.submit(spec, bundle, claim=claim),
                said.append,
            )
            jobs.append(job)

        return work

    threads = [threading.Thread(target=start(submitter))]
    threads[0].start()
    states: list[State] = []
    deadline = time.monotonic() + seconds + 180
    while not states or states[-1] is not State.SUCCEEDED:
        assert time.monotonic() < deadline, states
        found = [record for record in watcher.jobs() if record.name == spec.name]
        assert len(found) <= 1
        states += [record.state for record in found]
        assert State.LOST not in states
        if states and handing_over.is_set() and len(threads) == 1:
            threads.append(threading.Thread(target=start(retrier)))
            threads[1].start()
        time.sleep(0.5)
    for thread in threads:
        thread.join(120)
    assert states[0] is State.SUBMITTING
    assert len(jobs) == 2
    assert jobs[0].id == jobs[1].id
    assert any("is joined" in text for text in said)
    record = jobs[0].directory.record()
    assert record is not None
    assert record.state is State.SUCCEEDED
    assert record.written_by != "closer"
    return jobs[0]
