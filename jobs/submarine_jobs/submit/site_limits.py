"""Check a job against the locks of the site file: queue, Docker images, GPUs and locked keys.

The file is read at each submission, because a kernel or server may be older than its last change,
and because a job that is run again has the values of an earlier submission.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from submarine_jobs.config import ConfigFile, check_locked, read_site_file
from submarine_jobs.errors import ConfigError, RefusedError, SubmarineError
from submarine_jobs.model import JobSpec, parse_python_env
from submarine_jobs.text import one_line
from submarine_runtime.translation import _


def site_refusals(spec: JobSpec, profile: str, queue: str | None) -> list[SubmarineError]:
    """Return why the site file does not allow a job; empty if it does, or there is none.

    Parameters
    ----------
    spec
        With the roles that the framework adds.
    profile
        The name of the profile.
    queue
        The queue that the backend uses; None: it is not known, or the backend has no queues.
    """
    try:
        site = read_site_file(os.environ)
    except ConfigError as error:
        return [error]
    if site is None or site.locks is None:
        return []
    return [*_locked_keys(site, spec, profile, queue), *_limits(site, spec, queue)]


def _locked_keys(
    site: ConfigFile, spec: JobSpec, profile: str, queue: str | None
) -> Iterator[SubmarineError]:
    locked = site.locked_values(profile)
    values = {("backend", spec.backend), ("queue", queue), ("python_env", spec.python_env)}
    values |= {("python_env", role.python_env) for role in spec.roles}
    for key, value in sorted((key, value) for key, value in values if value is not None):
        if key in locked:
            try:
                check_locked(key, value, _("The job"), locked[key])
            except ConfigError as error:
                yield error


def _limits(site: ConfigFile, spec: JobSpec, queue: str | None) -> Iterator[SubmarineError]:
    locks = site.locks
    if locks is None:
        return
    allowed = locks.describe()
    where = {name: site.where(f"locked.{name}") for name in allowed}
    if locks.queues is not None and queue is None and spec.backend != "local":
        yield RefusedError(
            _("The job names no queue, and {where} allows only {allowed}.").format(
                where=where["queues"], allowed=allowed["queues"]
            ),
            _("Choose one of them with --queue."),
        )
    if queue is not None and not locks.allows_queue(queue):
        yield RefusedError(
            _("The queue {queue} is not allowed: {where} allows only {allowed}.").format(
                queue=one_line(queue, 100), where=where["queues"], allowed=allowed["queues"]
            ),
            _("Choose one of them with --queue."),
        )
    for image in _images(spec):
        if not locks.allows_image(image):
            yield RefusedError(
                _("The image {image} is not allowed: {where} allows only {allowed}.").format(
                    image=one_line(image, 200), where=where["images"], allowed=allowed["images"]
                ),
                _("Choose one of them with --docker_image."),
            )
    gpus = sum(role.instances * role.resources.gpus for role in spec.roles)
    if spec.spark is not None:
        gpus += spec.spark.executors * spec.spark.resources.gpus
    if locks.max_gpus_per_job is not None and gpus > locks.max_gpus_per_job:
        yield RefusedError(
            _("The job asks for {gpus} GPUs, and {where} allows {most} for each job.").format(
                gpus=gpus, where=where["max_gpus_per_job"], most=locks.max_gpus_per_job
            ),
            _("Ask for fewer GPUs for each task (--gpu), or for fewer tasks."),
        )


def _images(spec: JobSpec) -> list[str]:
    """Return the Docker images of all tasks, each once."""
    found = [spec.docker_image, *(role.docker_image for role in spec.roles)]
    for text in (spec.python_env, *(role.python_env for role in spec.roles)):
        environment = parse_python_env(text) if text else None
        if environment is not None and environment.kind == "docker":
            found.append(environment.value)
    return list(dict.fromkeys(image for image in found if image))
