"""The active ResourceManager ends while jobs run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from submarine_minicluster import Minicluster
from submarine_runtime.protocol import State
from tests.cluster.ha.conftest import application_ids
from tests.cluster.jobs.training import (
    check_result,
    program,
    until_step,
    whole_log,
    workers,
)
from tests.submission import Submit
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

KIND = "resourcemanager"
STEPS = 60
COUNTS = """\
import os, time
number = 0
while not os.path.exists({go!r}) or number < 50:
    print(number, flush=True)
    number += 1
    time.sleep(0.2)
print("end", number, flush=True)
"""


def check_counts(text: str) -> None:
    """Every line of COUNTS is there once, in order."""
    *numbers, last = text.splitlines()
    assert last == f"end {len(numbers)}"
    assert numbers == [str(number) for number in range(len(numbers))]


def test_jobs_continue_and_lose_no_line(
    both: Minicluster, submit: Submit, go: Path, measure: Callable[..., Any]
) -> None:
    gang = {"roles": workers(2), "policy": "all", "framework": "any"}
    training = submit(program(STEPS, 0.1, hold=str(go)), "gang", **gang)
    single = submit(COUNTS.format(go=str(go)), "single")
    until_step(training, 5)
    until(lambda: b"5" in single.log().data.split(), "lines of the single job")
    killed = both.active(KIND)
    both.kill(killed)
    # Neither job depends on a ResourceManager: both continue while none is active.
    lines = len(single.log("stdout", -4096, 4096).data)
    for job in (training, single):
        assert job.record().state is State.RUNNING, job.record().detail
    until(lambda: len(single.log("stdout", -1 << 20, 1 << 20).data) > lines + 20, "more lines")
    assert measure("activation", lambda: both.fail_over(KIND)) != killed

    def observed() -> bool:
        seen = single.backend.observe({one.id: one.handle or {} for one in (training, single)})
        return all(one.active for one in seen.values())

    measure("status of both jobs from the new ResourceManager", lambda: until(observed))
    go.touch()
    for job in (training, single):
        assert job.wait(timeout=180).state is State.SUCCEEDED, job.record().events[-8:]
        assert len(application_ids(job)) == 1
    record = check_result(training, STEPS)
    assert [task.restarts for task in record.tasks] == [0, 0]
    assert not single.record().missing
    check_counts(whole_log(single, "worker:0"))
