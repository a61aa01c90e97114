"""The application of a submission: containers, files, the script that starts the agent.

User text is not passed through skein's environment, whose quoting is unsafe: the configuration of
the agent is JSON in a quoted here-document.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from submarine_jobs.backends.base import Submission
from submarine_jobs.backends.yarn.application import coordinator_python as coordinatorpython
from submarine_jobs.backends.yarn.application.localized_files import files_to_localize
from submarine_jobs.backends.yarn.application.specification import (
    ARCHIVE,
    FILE,
    PRIVATE,
    PUBLIC,
    Application,
    File,
    Master,
    Resources,
    Service,
)
from submarine_jobs.backends.yarn.cluster import BESIDE_TAG, TAG, added_tags, tag_of
from submarine_jobs.backends.yarn.driver import ARCHIVE_DIRECTORY
from submarine_jobs.inputs import container_names
from submarine_jobs.model import JobSpec, Role
from submarine_runtime.protocol import AgentConfig, has_secrets, layout, to_json

TASK_SERVICE = "task"
#: For the master's JVM; read by Java 9 and later, ignored by Java 8.
MASTER_JVM = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Xshare:auto",
    "-Xss512k",
    # skein's web pages access internals of java.util.
    "--add-opens=java.base/java.util=ALL-UNNAMED",
)
END = "END-OF-ORDERS"
_SCRIPT = """\
umask 077
unset JDK_JAVA_OPTIONS
cat >agent.json <<'{end}'
{agent}
{end}
{links}exec {python} -I runtime.zip agent --directory .
"""


def build(
    submission: Submission,
    *,
    skein_jar: str,
    heartbeat_jar: str | None,
    jvm_options: tuple[str, ...] = MASTER_JVM,
    archive: str | None = None,
    agent_python: str,
    brought_python: str | None = None,
    fallback_queue: str,
) -> Application:
    """Return the application of a single-task submission."""
    plan = submission.plan
    master_files = {"skein.jar": cached(submission, skein_jar)}
    if archive:
        master_files[ARCHIVE_DIRECTORY] = cached(submission, archive, ARCHIVE)
    if heartbeat_jar:
        master_files["heartbeat.jar"] = cached(submission, heartbeat_jar)
    task_files = job_files(submission, submission.spec.worker)
    task_files["runtime.zip"] = cached(submission, submission.runtime_zip)
    if brought_python:
        task_files[coordinatorpython.DIRECTORY] = cached(submission, brought_python, ARCHIVE)
    script = agent_script(submission, agent_python, submission.agent)
    master, task = _sizes(plan.containers)
    if task is None:
        master_files.update(task_files)
    topology = topology_variables(submission.spec, submission.spec.worker)
    tags = {TAG, tag_of(submission.agent.record.job_id), *added_tags(submission.spec)}
    return Application(
        name=submission.spec.name[:100],
        queue=submission.spec.queue or fallback_queue,
        tags=frozenset(tags | ({BESIDE_TAG} if task else set())),
        master=Master(
            resources=master,
            files=master_files,
            env={
                "JDK_JAVA_OPTIONS": " ".join(jvm_options),
                **(topology if task is None else {}),
            },
            script=script if task is None else "",
        ),
        services={TASK_SERVICE: Service(task, task_files, script, env=topology)} if task else {},
    )


def topology_variables(spec: JobSpec, role: Role) -> dict[str, str]:
    """Return the variable by which the plugin of ``nvidia.com/gpu`` chooses a container's GPUs."""
    if spec.gpu_topology is None or not role.resources.gpus:
        return {}
    return {"NVIDIA_TOPO_POLICY": spec.gpu_topology.upper()}


def cached(submission: Submission, path: str, kind: str = FILE) -> File:
    """Return a file that node managers keep for this user between jobs."""
    return File(submission.storage.url(path), kind, PRIVATE)


def agent_script(submission: Submission, python: str, orders: AgentConfig) -> str:
    """Return the shell script that writes ``agent.json`` and executes the agent."""
    # One line, ASCII.
    agent = json.dumps(to_json(orders, defaults=False), sort_keys=True)
    links = "".join(_link(name, item.target) for name, item in container_names(submission.spec))
    return _SCRIPT.format(end=END, agent=agent, links=links, python=quote(python))


def quote(text: str) -> str:
    """Quote ``text`` for a shell."""
    return "'" + text.replace("'", "'\"'\"'") + "'"


def _link(name: str, target: str) -> str:
    """Return the lines that link ``name`` of the container to ``target`` of the program."""
    parent, up = posixpath.dirname(f"program/{target}"), "../" * (target.count("/") + 1)
    return f"mkdir -p {quote(parent)}\nln -s {up}{name} {quote(f'program/{target}')}\n"


def job_files(submission: Submission, role: Role | None) -> dict[str, File]:
    """Return the files that YARN localizes from the job directory, without another upload.

    Program, values and environment of ``role``; None: the secret, and the keytab, of a coordinator.
    """
    spec, storage, job_dir = submission.spec, submission.storage, submission.job_dir

    def job_file(name: str) -> File:
        return File(storage.url(f"{job_dir}/{name}"))

    files = {layout.SECRET: job_file(layout.SECRET)}
    if spec.distribute_keytab and (role is None or not spec.distributed):
        files[layout.KEYTAB] = job_file(layout.KEYTAB)
    if role is None:
        return files
    if spec.bundle_digest or role.command is None:
        files[layout.BUNDLE] = job_file(layout.BUNDLE)
    if spec.with_names:
        files[layout.VALUES] = job_file(layout.VALUES)
    if submission.data_zip is not None:
        files[layout.DATA_PACKAGE] = cached(submission, submission.data_zip)
    if has_secrets(spec, role):
        files[layout.SECRET_ENV] = job_file(layout.SECRET_ENV)
    environment = submission.environments.get(role.name)
    if environment and environment.shared:
        files[layout.PYTHON_ENV] = File(environment.archive, ARCHIVE, PUBLIC)
    elif environment:
        files[layout.PYTHON_ENV_ARCHIVE] = File(environment.archive, FILE, PRIVATE)
        if environment.delta:
            files[layout.PYTHON_ENV_DELTA] = File(environment.delta, FILE, PRIVATE)
        if environment.description:
            files[layout.PYTHON_ENV_DESCRIPTION] = File(environment.description, FILE, PRIVATE)
    files.update(files_to_localize(submission))
    return files


def sized(entry: Mapping[str, Any]) -> Resources:
    """Return the size of one container of a plan."""
    return Resources(int(entry["memory"]), int(entry["vcores"]), int(entry["gpus"]))


def _sizes(containers: Sequence[Mapping[str, Any]]) -> tuple[Resources, Resources | None]:
    return sized(containers[0]), sized(containers[1]) if len(containers) > 1 else None
