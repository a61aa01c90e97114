"""Tags of YARN applications: find an application by its job, and recognize its kind."""

from __future__ import annotations

from submarine_jobs.model import JobSpec
from submarine_runtime.yarn import JOB_TAG, TAG

#: On applications whose program has a container of its own.
BESIDE_TAG = "submarine_beside"
#: Followed by the number of containers that the gang needs, without the master's.
GANG_TAG = "submarine_gang:"
#: Maximum number of tags that a spec may add; YARN admits 10 in total by default.
MAX_ADDED_TAGS = 6


def tag_of(job_id: str) -> str:
    """Return the tag of a job; YARN admits 100 ASCII characters and converts them to lower case."""
    return f"{JOB_TAG}{job_id}".lower()[:100]


def added_tags(spec: JobSpec) -> set[str]:
    """Return the tags of ``spec`` for other schedulers, without those with the project's prefix."""
    lowered = [tag.lower()[:100] for tag in spec.yarn_tags]
    return set([tag for tag in lowered if not tag.startswith(TAG)][:MAX_ADDED_TAGS])
