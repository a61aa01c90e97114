"""Submissions for the backend's own tests: an agent of a few lines, no core, no record."""

from __future__ import annotations

import io
import secrets
import sys
import time
import zipfile
from typing import Any

from submarine_jobs.access import JobDirectory
from submarine_jobs.backends import Handle, Observation, Stage, Submission
from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.cluster import tag_of
from submarine_jobs.inputs import NO_STORE_PATHS, copy_sources
from submarine_jobs.model import JobSpec, Resources, Role
from submarine_jobs.submit.configuration import make_submission as make_submission_of
from submarine_runtime.protocol import JobRecord, State
from tests.configurations import make_agent_config
from tests.waiting import until


def make_submission(backend: YarnBackend, agent: str, **fields: Any) -> Submission:
    """A submission whose "agent" is the given Python source."""
    storage, root = backend.job_root()
    resources = fields.pop("resources", Resources(200, 1, 0))
    spec = JobSpec(name="t", backend="yarn", roles=(Role(resources=resources),), **fields)
    job_id = f"t-20261121-{secrets.token_hex(4)}"
    job_dir = f"{root}/202611/{job_id}"
    storage.publish(f"{job_dir}/secret.json", b'{"token": "t"}')
    storage.publish(f"{job_dir}/bundle.zip", zipped("main.py", "pass"))
    copy_sources(JobDirectory(storage, job_dir), spec)
    runtime = f"{root}/cache/test-{secrets.token_hex(4)}.zip"
    storage.publish(runtime, zipped("__main__.py", agent))
    config = make_agent_config(
        job_id=job_id, user=backend.user, backend="yarn", created=time.time(), job_dir=job_dir,
        store=storage.job_store(job_dir), python=sys.executable, memory=resources.memory,
    )  # fmt: skip
    return Submission(spec, backend.plan(spec), storage, job_dir, config, runtime)


def make_gang(backend: YarnBackend, program: str, *roles: Role, **fields: Any) -> Submission:
    """A distributed submission; ``program`` stands for supervisor and agent, by ``sys.argv[1]``."""
    storage, root = backend.job_root()
    spec = JobSpec("gang", "yarn", roles=roles, python=sys.executable, **fields)
    job_id = f"gang-20261121-{secrets.token_hex(4)}"
    directory = JobDirectory(storage, f"{root}/202611/{job_id}")
    storage.publish(directory.file("secret.json"), b'{"token": "t"}')
    storage.publish(directory.file("bundle.zip"), zipped("main.py", "pass"))
    copy_sources(directory, spec)
    runtime = f"{root}/cache/test-{secrets.token_hex(4)}.zip"
    storage.publish(runtime, zipped("__main__.py", program))
    record = JobRecord(job_id, "gang", State.PENDING, user=backend.user, backend="yarn",
                       created=time.time())  # fmt: skip
    return make_submission_of(
        spec, backend.plan(spec), directory, record, intent="i", python=sys.executable,
        runtime_zip=runtime, reached=NO_STORE_PATHS, environments={},
    )  # fmt: skip


def zipped(name: str, text: str) -> bytes:
    """A zip with one file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, text)
    return buffer.getvalue()


def applications(backend: YarnBackend, submission: Submission) -> list[dict[str, Any]]:
    """The applications of a submission, as the ResourceManager returns them."""
    answer = backend.rm.get("/apps", applicationTags=tag_of(submission.agent.record.job_id))
    return list(((answer or {}).get("apps") or {}).get("app") or [])


def application_ids(backend: YarnBackend, submission: Submission) -> list[str]:
    """The ids of the applications of a submission."""
    return [str(app["id"]) for app in applications(backend, submission)]


def look(backend: YarnBackend, handle: Handle) -> Observation:
    """What the cluster says now."""
    return backend.observe({"t-20261121-0000": handle})["t-20261121-0000"]


def until_stage(
    backend: YarnBackend, handle: Handle, *stages: Stage, seconds: float = 120.0
) -> Observation:
    """Wait for one of ``stages``; the end is an error if it is not one of them."""

    def reached() -> Observation | None:
        observation = look(backend, handle)
        if observation.stage in stages:
            return observation
        assert observation.stage is not Stage.ENDED, f"ended early: {observation}"
        return None

    return until(reached, lambda: f"{stages}, but {look(backend, handle)}", seconds)
