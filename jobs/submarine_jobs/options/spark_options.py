"""Options of Spark jobs: executors, settings of Spark, and the options that they refuse.

``backends.yarn.spark`` submits such jobs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_jobs.model import Resources, SparkRequest, parse_python_env
from submarine_jobs.options.run_options import SPARK, SPARK_PREFIX, RunOptions
from submarine_runtime.translation import _, gettext_noop

#: Options without a meaning for a Spark job, by field: Spark itself starts and restarts executors.
_NO_GANG = {
    "processes": "--processes",
    "min_workers": "--min-workers",
    "gang_timeout": "--gang-timeout",
    "gang_retries": "--gang-retries",
    "max_restarts": "--max-restarts",
    "policy": "--policy",
    "allow_failures": "--allow-failures",
    "require_collective": "--require-collective",
    "heartbeat": "--heartbeat",
    "lost_after": "--lost-after",
    "restore": "--restore",
    "return_all_ranks": "--return-all-ranks",
    "network_interface": "--network-interface",
    "gpu_topology": "--gpu-topology",
    "node_label": "--node-label",
    "nodes": "--node",
    "racks": "--rack",
    "spread": "--spread",
    "avoid_nodes": "--avoid-node",
    "docker_image": "--docker_image",
    "share": "--share",
}
#: Settings of Spark that Submarine sets, and the option for each; empty: there is none.
_CONTROLLED = tuple(
    (re.compile(pattern), instead)
    for pattern, instead in (
        (r"app\.name", "--name"),
        (r"yarn\.queue", "--queue"),
        (r"yarn\.priority", "--priority"),
        (r"driver\.(memory|cores)|driver\.resource\.gpu\..*", "--memory, --vcores, --gpu"),
        (r"executor\.instances", "--executor"),
        (r"executor\.(memory|cores)|executor\.resource\.gpu\..*", "--executor_resources"),
        (r"executorEnv\..*|yarn\.appMasterEnv\..*", "--env"),
        (r"pyspark\.(driver\.)?python", "--python-env"),
        (r"yarn\.dist\..*|files|archives|submit\.pyFiles", "--file, --archive"),
        (r"(kerberos|yarn)\.(principal|keytab)", "--principal, --keytab"),
        (
            r"master|submit\..*|yarn\.(tags|archive|jars|maxAppAttempts|stagingDir|am\.waitTime"
            r"|applicationType|preserve\.staging\.files|submit\.waitAppCompletion)",
            "",
        ),
    )
)
_SECRET = re.compile(r"secret|password|credential|token$|access\.?key", re.IGNORECASE)
_LEAVE_OUT = gettext_noop("Leave it out.")


def check_spark(options: RunOptions) -> None:
    """Reject options that contradict the type of the job.

    Raises
    ------
    UsageError
        If a Spark job has options of a gang, or another job has options of Spark.
    """
    if options.type != SPARK:
        _check_other_type(options)
        return
    for name, word in _NO_GANG.items():
        if getattr(options, name):
            raise UsageError(
                _("{option} has no meaning for --type spark.").format(option=word), _(_LEAVE_OUT)
            )
    if options.framework != "auto":
        raise UsageError(
            _("--framework {name} has no meaning for --type spark.").format(name=options.framework),
            _(_LEAVE_OUT),
        )
    if options.roles:
        raise UsageError(
            _("A Spark job has no roles: {roles}.").format(
                roles=", ".join(role.name for role in options.roles)
            ),
            _("Its executors are --executor N; leave options of roles and of TensorBoard out."),
        )
    if options.python_env and parse_python_env(options.python_env).kind == "docker":
        raise UsageError(
            _("--python-env {python_env} is not available for --type spark.").format(
                python_env=options.python_env
            ),
            _("Choose host, path:DIR, auto or archive:URI."),
        )
    for key in _spark_settings(options.settings):
        _check_setting(key)


def _check_other_type(options: RunOptions) -> None:
    given = [
        word
        for word, value in (
            ("--executor", options.executors),
            ("--executor_resources", options.executor_resources),
        )
        if value
    ]
    given += [f"--conf {key}" for key in _spark_settings(options.settings)]
    if given:
        raise UsageError(
            _("{option} is an option of Spark jobs.").format(option=given[0]),
            _("Add --type spark, or leave it out."),
        )


def _check_setting(key: str) -> None:
    """Reject a setting of Spark that another option sets, or that may be a secret."""
    for pattern, instead in _CONTROLLED:
        if pattern.fullmatch(key.removeprefix(SPARK_PREFIX)):
            raise UsageError(
                _("--conf {key}: Submarine sets this setting of Spark.").format(key=key),
                _("Use {options} instead.").format(options=instead) if instead else _(_LEAVE_OUT),
            )
    if _SECRET.search(key):
        raise UsageError(
            _("--conf {key} seems to be a secret, and the job directory holds it readable.").format(
                key=key
            ),
            _("Give it with --secret, and set it in the program from its variable."),
        )


def _spark_settings(settings: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in settings.items() if key.startswith(SPARK_PREFIX)}


def spark_request(options: RunOptions) -> SparkRequest | None:
    """Return the executors and settings of a Spark job; None for another type of job."""
    if options.type != SPARK:
        return None
    return SparkRequest(
        executors=options.executors or SparkRequest().executors,
        resources=Resources(**(options.executor_resources or {})),
        conf=_spark_settings(options.settings),
    )


def spark_options(request: SparkRequest | None) -> dict[str, Any]:
    """Return the fields of ``RunOptions`` for ``request``."""
    if request is None:
        return {}
    return {
        "type": SPARK,
        "executors": request.executors,
        "executor_resources": vars(request.resources),
        "settings": dict(request.conf),
    }
