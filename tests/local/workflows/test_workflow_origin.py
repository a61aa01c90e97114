"""Jobs that a workflow started say so: in their records, the list and its search, and the card."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.commands import execute
from submarine_jobs.frontends import Frontend
from submarine_jobs.model import JobSpec, Profile, Resources, Role
from submarine_jobs.tracking import JobQuery, JobStore
from submarine_runtime.protocol import JobRecord, State

FROM = ("nightly", "nightly-20261122-023000-1f0a", "train")


def origin(record: JobRecord) -> tuple[str, str, str]:
    return record.workflow, record.workflow_run, record.workflow_node


@pytest.mark.parametrize("workers", [1, 2])
def test_the_record_that_the_job_writes_names_workflow_run_and_node(
    tmp_path: Path, workers: int
) -> None:
    """One job writes its record by its agent, the other by its coordinator."""
    session = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    command = f"{shlex.quote(sys.executable)} -c pass"
    role = Role(instances=workers, resources=Resources(memory=256), command=command)
    names: dict[str, Any] = dict(
        zip(("workflow", "workflow_run", "workflow_node"), FROM, strict=True)
    )
    spec = JobSpec("fit", "local", roles=(role,), python=sys.executable, program=None, **names)
    job = session.submit(spec, None)
    assert origin(job.record()) == FROM
    assert job.wait(timeout=120).state is State.SUCCEEDED
    # Another machine of the user's knows the directory alone.
    elsewhere = Session(Profile(backend="local", state_dir=tmp_path / "other"))
    found = Job(elsewhere, job.id, "fit", job.backend, job.directory, None)
    published = found.directory.record()
    assert published is not None
    assert origin(published) == FROM
    assert published.written_by == ("agent" if workers == 1 else "coordinator")
    found_again = next(one for one in session.jobs() if one.job_id == job.id)
    assert origin(found_again) == FROM


@pytest.fixture
def submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Ids of two jobs, the first of a workflow's run."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SUBMARINE_BACKEND", "local")
    monkeypatch.chdir(tmp_path)
    Path("fit.py").write_text("print(1)\n")
    ids = []
    for names in (FROM, ("", "", "")):
        for variable, word in zip(("", "_RUN", "_NODE"), names, strict=True):
            monkeypatch.setenv(f"SUBMARINE_WORKFLOW{variable}", word)
        ids.append(execute(["run", "fit.py", "--wait"], Frontend()).value["job_id"])
    return ids[0], ids[1]


def test_the_list_shows_and_finds_jobs_by_their_workflow(
    submitted: tuple[str, str], tmp_path: Path
) -> None:
    nightly, other = submitted
    everything = execute(["list"], Frontend())
    head, *rows = everything.text.splitlines()
    assert head.endswith("WORKFLOW")
    assert [row.rstrip().endswith("nightly · train") for row in rows] == [False, True]
    for words in (["--workflow", "night*"], ["--workflow-run", FROM[1]]):
        found = execute(["list", *words], Frontend())
        assert [job["job_id"] for job in found.value] == [nightly]
    assert found.value[0]["workflow_node"] == "train"
    by_hand = execute(["list", "--workflow", ""], Frontend())
    assert [job["job_id"] for job in by_hand.value] == [other]
    assert "WORKFLOW" not in by_hand.text
    shown = execute(["show", nightly], Frontend())
    assert "Workflow: nightly · run nightly-20261122-023000-1f0a · train" in shown.text
    assert "nightly · run nightly-20261122-023000-1f0a · train" in str(shown.html)
    store = JobStore(tmp_path / "state" / "jobs.sqlite")
    for text in ("Nightly", "023000"):
        assert [row.job_id for row in store.page(JobQuery(text=text)).rows] == [nightly]
