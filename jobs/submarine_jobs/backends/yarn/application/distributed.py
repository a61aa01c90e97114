"""The application of a distributed job: a master with the coordinator, one service a role.

Services start without instances: the coordinator adds containers one by one, and identifies each by
three variables. Files, labels and images belong to the service. User text is not passed through
skein's environment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from submarine_jobs.backends.base import Submission
from submarine_jobs.backends.yarn.application import coordinator_python as coordinatorpython
from submarine_jobs.backends.yarn.application.single import (
    END,
    agent_script,
    cached,
    job_files,
    quote,
    sized,
    topology_variables,
)
from submarine_jobs.backends.yarn.application.specification import (
    ARCHIVE,
    Application,
    Master,
    Service,
)
from submarine_jobs.backends.yarn.cluster import GANG_TAG, TAG, added_tags, tag_of
from submarine_jobs.backends.yarn.driver import ARCHIVE_DIRECTORY
from submarine_jobs.backends.yarn.planning import RACK_NODES, gang_of, least_of
from submarine_jobs.model import JobSpec, Role, check_image_name
from submarine_runtime.protocol import layout, to_json
from submarine_runtime.translation import _

MOUNTS = "YARN_CONTAINER_RUNTIME_DOCKER_MOUNTS"
NETWORK = "YARN_CONTAINER_RUNTIME_DOCKER_CONTAINER_NETWORK"
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - of the container
_TMPFS = "YARN_CONTAINER_RUNTIME_DOCKER_TMPFS_MOUNTS"
_SCRIPT = """\
umask 077
unset JDK_JAVA_OPTIONS
cat >{name} <<'{end}'
{orders}
{end}
exec {python} -I runtime.zip supervise --directory .
"""


@dataclass(frozen=True)
class Parts:
    """Files in the cache of the job root, and settings.

    Parameters
    ----------
    archive
        Class archive of the master's JVM.
    coordinator_archive
        The packed Python; None: ``coordinator_python`` is on the nodes.
    agent_python
        Interpreter of the agents by role: a path on the nodes or in the packed Python.
    docker
        Further variables of containers with an image.
    """

    skein_jar: str
    heartbeat_jar: str
    jvm_options: tuple[str, ...]
    coordinator_python: str
    agent_python: Mapping[str, str]
    archive: str | None = None
    coordinator_archive: str | None = None
    fallback_queue: str = "default"
    docker: Mapping[str, str] = field(default_factory=dict)


def build_gang(submission: Submission, parts: Parts) -> Application:
    """Return the application of a distributed submission."""
    spec, orders = submission.spec, submission.coordinator
    if orders is None:
        raise ValueError(_("a submission without orders for a coordinator is no distributed job"))
    files = {
        "skein.jar": cached(submission, parts.skein_jar),
        "heartbeat.jar": cached(submission, parts.heartbeat_jar),
        "runtime.zip": cached(submission, submission.runtime_zip),
        **job_files(submission, None),
    }
    if parts.archive:
        files[ARCHIVE_DIRECTORY] = cached(submission, parts.archive, ARCHIVE)
    if parts.coordinator_archive:
        files[coordinatorpython.DIRECTORY] = cached(submission, parts.coordinator_archive, ARCHIVE)
    script = _SCRIPT.format(
        name=layout.COORDINATOR,
        end=END,
        orders=json.dumps(to_json(orders, defaults=False), sort_keys=True),
        python=quote(parts.coordinator_python),
    )
    tags = {TAG, tag_of(orders.record.job_id), f"{GANG_TAG}{containers_needed(submission) - 1}"}
    return Application(
        name=spec.name[:100],
        queue=spec.queue or parts.fallback_queue,
        tags=frozenset(tags | added_tags(spec)),
        max_attempts=orders.application_attempts,
        master=Master(
            resources=sized(submission.plan.containers[0]),
            files=files,
            env={"JDK_JAVA_OPTIONS": " ".join(parts.jvm_options)},
            script=script,
        ),
        services={role.name: _service(submission, role, parts) for role in spec.roles},
    )


def containers_needed(submission: Submission) -> int:
    """Return the number of containers, with the master, that must run before the program."""
    if submission.coordinator is None:
        return len(submission.plan.containers)
    return 1 + sum(least_of(role) for role in gang_of(submission.spec))


def _service(submission: Submission, role: Role, parts: Parts) -> Service:
    entry = next(e for e in submission.plan.containers if e.get("role") == role.name)
    files = job_files(submission, role)
    files["runtime.zip"] = cached(submission, submission.runtime_zip)
    python = parts.agent_python[role.name]
    if python == coordinatorpython.INTERPRETER and parts.coordinator_archive:
        files[coordinatorpython.DIRECTORY] = cached(submission, parts.coordinator_archive, ARCHIVE)
    return Service(
        instances=0,
        resources=sized(entry),
        files=files,
        env={
            **docker_variables(submission.spec, role, parts.docker),
            **topology_variables(submission.spec, role),
        },
        script=agent_script(submission, python, submission.agent.of_role(role)),
        # The coordinator handles lost containers; skein must not.
        max_restarts=0,
        allow_failures=True,
        node_label=role.node_label or "",
        nodes=list(dict.fromkeys([*role.nodes, *_rack_nodes(submission, role)])),
        racks=list(role.racks),
        relax_locality=role.relax,
    )


def _rack_nodes(submission: Submission, role: Role) -> list[str]:
    """Return nodes of the role's racks: YARN delays requests for racks alone, often for ever.

    A node is missing only if it registered after the plan; the request for the rack covers it.
    """
    return list(submission.plan.extra.get(RACK_NODES, {}).get(role.name, ()))


def docker_image(spec: JobSpec, role: Role) -> str | None:
    """Return the Docker image of a role; None: no Docker."""
    image = spec.image_of(role)
    return check_image_name(image) if image else None


def docker_variables(spec: JobSpec, role: Role, more: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make YARN start the containers of a role from its image."""
    image = docker_image(spec, role)
    if image is None:
        return {}
    mounted = (entry.split(":")[1:2] for entry in more.get(MOUNTS, "").split(","))
    # Docker's own has 64 MB, too little for the worker processes of a DataLoader. The memory counts
    # for the container. YARN before 3.2 ignores the variable.
    shared = {} if [_SHARED_MEMORY] in mounted else {_TMPFS: _SHARED_MEMORY}
    return {
        "YARN_CONTAINER_RUNTIME_TYPE": "docker",
        "YARN_CONTAINER_RUNTIME_DOCKER_IMAGE": image,
        **shared,
        **more,
    }
