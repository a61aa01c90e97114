"""Build the arguments of spark-submit and the driver's program for a submission; no I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from submarine_jobs.backends.base import Submission
from submarine_jobs.backends.yarn.application import files_to_localize
from submarine_jobs.backends.yarn.cluster import TAG, added_tags, tag_of
from submarine_jobs.backends.yarn.planning import driver_overhead
from submarine_jobs.errors import RefusedError
from submarine_jobs.inputs import container_names
from submarine_jobs.model import JobSpec
from submarine_runtime.network import parse_port_range
from submarine_runtime.protocol import AgentConfig, has_secrets, layout, to_json
from submarine_runtime.translation import _
from submarine_runtime.yarn import GPU

#: Time in which the program must create its Spark session, by default 100 s: inputs may be large.
_SESSION_SECONDS = 7 * 86400
_DISCOVERY = "submarine_gpus.sh"
#: Prints the GPUs that the container may use, as Spark expects it.
DISCOVERY_SCRIPT = """\
#!/bin/sh
found=$(nvidia-smi --query-gpu=index --format=csv,noheader 2>/dev/null |
  sed 's/.*/"&"/' | paste -sd, -)
if [ -z "$found" ]; then
  found=$(ls /dev 2>/dev/null | sed -n 's/^nvidia\\([0-9][0-9]*\\)$/"\\1"/p' | paste -sd, -)
fi
echo "{\\"name\\":\\"gpu\\",\\"addresses\\":[$found]}"
"""
_LOOPBACK = "127.0.0.1"


def staging_directory(job_dir: str) -> str:
    """Return the directory of Spark's own files in a job directory, which Spark deletes itself.

    They remain if the driver was killed. Spark adds the names of the user and of the application.
    """
    return f"{job_dir}/spark"


def driver_program(template: str, submission: Submission, agent: AgentConfig) -> str:
    """Return the source of the driver's program.

    Parameters
    ----------
    template
        The source of ``driver_program``.
    """
    spec = submission.spec
    names = [layout.SECRET]
    if spec.distribute_keytab:
        names.append(layout.KEYTAB)
    if spec.with_names:
        names.append(layout.VALUES)
    if has_secrets(spec, spec.worker):
        names.append(layout.SECRET_ENV)
    links = [[name, item.target] for name, item in container_names(spec)]
    for name, value in (
        ("AGENT: dict[str, Any]", to_json(agent, defaults=False)),
        ("FILES: list[str]", names),
        ("LINKS: list[list[str]]", links),
    ):
        empty = "{}" if name.startswith("AGENT") else "[]"
        text = json.dumps(value, sort_keys=True)
        template = template.replace(
            f"\n{name} = {empty}\n", f"\n{name} = json.loads({text!r})\n", 1
        )
    return template


def spark_arguments(
    submission: Submission,
    agent: AgentConfig,
    *,
    directory: Path,
    archive: str,
    agent_python: str,
    queue: str,
    proxy_user: str = "",
    loopback: bool = False,
    gpu_resource: str = GPU,
) -> list[str]:
    """Return the arguments of spark-submit.

    Parameters
    ----------
    directory
        Directory on this machine with the driver's program and the discovery script.
    archive
        URL of the jars on the cluster.
    agent_python
        Interpreter of the agent.
    queue
        Queue of a spec that names none.
    loopback
        Whether all nodes are this machine, reached by 127.0.0.1.
    gpu_resource
        Name of GPUs as a resource of YARN.

    Raises
    ------
    RefusedError
        If the path of a localized file has a comma, which separates paths in Spark's lists.
    """
    spec, request = submission.spec, submission.spec.spark
    assert request is not None
    driver = spec.worker.resources
    words = ["--master", "yarn", "--deploy-mode", "cluster", "--name", spec.name[:100]]
    words += ["--queue", spec.queue or queue]
    words += ["--driver-memory", f"{driver.memory}m", "--driver-cores", str(driver.vcores)]
    words += ["--executor-memory", f"{request.resources.memory}m"]
    words += ["--executor-cores", str(request.resources.vcores)]
    words += ["--num-executors", str(request.executors)]
    if proxy_user:
        words += ["--proxy-user", proxy_user]
    modules = _modules(submission)
    files, archives = _localized(submission)
    files += [f"{url}#{name}" for name, url in modules.items()]
    if driver.gpus or request.resources.gpus:
        files.append(str(directory / _DISCOVERY))
    words += ["--files", ",".join(files)]
    if archives:
        words += ["--archives", ",".join(archives)]
    settings = {
        **_port_settings(agent.port_range),
        **request.conf,
        **_settings(submission, archive),
        **_interpreters(agent_python, agent.interpreter),
        **_gpu_settings(spec, gpu_resource),
        **{f"spark.executorEnv.{key}": value for key, value in agent.env.items()},
        "spark.executorEnv.PYTHONPATH": _python_path(agent.env, modules),
    }
    if loopback:
        settings["spark.yarn.appMasterEnv.SPARK_LOCAL_IP"] = _LOOPBACK
        settings["spark.executorEnv.SPARK_LOCAL_IP"] = _LOOPBACK
    for key, value in settings.items():
        words += ["--conf", f"{key}={value}"]
    return [*words, str(directory / "submarine_driver.py")]


def _settings(submission: Submission, archive: str) -> dict[str, str]:
    tags = {TAG, tag_of(submission.agent.record.job_id), *added_tags(submission.spec)}
    return {
        "spark.yarn.submit.waitAppCompletion": "false",
        "spark.yarn.maxAppAttempts": "1",
        "spark.yarn.tags": ",".join(sorted(tags)),
        "spark.yarn.archive": archive,
        "spark.yarn.stagingDir": submission.storage.url(staging_directory(submission.job_dir)),
        "spark.yarn.am.waitTime": f"{_SESSION_SECONDS}s",
        "spark.driver.memoryOverhead": f"{driver_overhead(submission.spec)}m",
    }


def _port_settings(ports: str) -> dict[str, str]:
    """Return the settings by which driver and executors try the ports of ``port_range`` in order.

    YARN's proxy reaches the driver's web page at a port that Spark always leaves to the system.
    """
    if not ports:
        return {}
    allowed = parse_port_range(ports)
    first = str(allowed[0])
    return {
        "spark.driver.port": first,
        "spark.blockManager.port": first,
        "spark.port.maxRetries": str(len(allowed) - 1),
    }


def _interpreters(agent: str, program: str) -> dict[str, str]:
    """Return the settings for the agent's Python, and for that of the executors."""
    return {"spark.pyspark.driver.python": agent, "spark.pyspark.python": program}


def _gpu_settings(spec: JobSpec, gpu_resource: str) -> Mapping[str, str]:
    request = spec.spark
    assert request is not None
    found: dict[str, str] = {}
    amounts = (("driver", spec.worker.resources.gpus), ("executor", request.resources.gpus))
    for role, gpus in amounts:
        if gpus:
            found[f"spark.{role}.resource.gpu.amount"] = str(gpus)
            found[f"spark.{role}.resource.gpu.discoveryScript"] = f"./{_DISCOVERY}"
    if found and gpu_resource != GPU:
        found["spark.yarn.resourceGpuDeviceName"] = gpu_resource
    task = "spark.task.resource.gpu.amount"
    if request.resources.gpus and task not in request.conf:
        found[task] = "1"
    return found


def _localized(submission: Submission) -> tuple[list[str], list[str]]:
    """Return the files and archives that YARN localizes in all containers."""
    named = [(submission.storage.url(submission.runtime_zip), "runtime.zip", False)]
    environment = submission.environments.get(submission.spec.worker.name)
    if environment:
        named.append((environment.archive, layout.PYTHON_ENV, True))
    named += [
        (file.source, name, file.type == "ARCHIVE")
        for name, file in files_to_localize(submission).items()
    ]
    found: tuple[list[str], list[str]] = ([], [])
    for source, name, archived in named:
        if "," in source or "#" in source:
            raise RefusedError(
                _("A Spark job cannot localize {source}: its path has a comma or #.").format(
                    source=source
                ),
                _("Rename the file."),
            )
        found[archived].append(f"{source}#{name}")
    return found


def _modules(submission: Submission) -> dict[str, str]:
    """Return the zips that executors import from: the program's modules, ``submarine_data``.

    ``--py-files`` needs the container's directory as the program's working directory.
    """
    storage = submission.storage
    found = {layout.BUNDLE: storage.url(f"{submission.job_dir}/{layout.BUNDLE}")}
    if submission.data_zip is not None:
        found[layout.DATA_PACKAGE] = storage.url(submission.data_zip)
    return found


def _python_path(env: Mapping[str, str], modules: Iterable[str]) -> str:
    """Return the value for executors, with YARN's words for directory and separator."""
    own = env.get("PYTHONPATH", "")
    return "<CPS>".join(filter(None, [own, *(f"{{{{PWD}}}}/{name}" for name in modules)]))
