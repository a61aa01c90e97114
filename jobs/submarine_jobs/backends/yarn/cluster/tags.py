"""Tags of YARN applications: find an application by its job, and recognize its kind."""

from __future__ import annotations

from submarine_jobs.model import JobSpec

TAG = "submarine"
#: On applications whose program has a container of its own.
BESIDE_TAG = "submarine_beside"
#: Tags that a spec may add: YARN takes 10 in all where nobody has set another limit.
MAX_ADDED_TAGS = 6


def tag_of(job_id: str) -> str:
    """The tag that finds a job again; YARN allows 100 ASCII characters and lowers their case."""
    return f"submarine_job:{job_id}".lower()[:100]


def added_tags(spec: JobSpec) -> set[str]:
    """The tags by which somebody else's scheduler finds the job; none may pass for one of ours."""
    lowered = [tag.lower()[:100] for tag in spec.yarn_tags]
    return set([tag for tag in lowered if not tag.startswith(TAG)][:MAX_ADDED_TAGS])


#: Followed by the number of containers that the gang needs, the master's not counted.
GANG_TAG = "submarine_gang:"
