"""Checks of the Hadoop client on this machine: commands and configuration directory."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from submarine_jobs.backends.yarn import driver
from submarine_jobs.config import check_file
from submarine_jobs.doctor.context import DoctorContext, run
from submarine_jobs.doctor.result import Finding, error, ok, warning
from submarine_jobs.errors import no_cluster
from submarine_runtime.translation import _
from submarine_runtime.yarn import largest_node, offered_gpu_resource

#: Configuration files that can run commands, classes or scripts.
_EXECUTED = ("core-site.xml", "hdfs-site.xml", "yarn-site.xml", "hadoop-env.sh", "yarn-env.sh")


def configured(context: DoctorContext) -> Finding:
    """Check that a backend is configured."""
    profile = context.profile
    if profile.backend is None:
        missing = no_cluster()
        return warning(missing.message, missing.fix)
    if profile.backend == "local":
        return ok(
            _("Profile {profile}: jobs run as processes of this machine.").format(
                profile=profile.name
            )
        )
    if not context.on_yarn:
        return ok(
            _("Profile {profile}: jobs run on the backend {backend}.").format(
                profile=profile.name, backend=profile.backend
            )
        )
    return ok(
        _("Profile {profile}: YARN by {hadoop_conf_dir}.").format(
            profile=profile.name, hadoop_conf_dir=profile.hadoop_conf_dir
        )
    )


def configuration(context: DoctorContext) -> Finding:
    """Check that the configuration directory is complete, consistent and safe."""
    conf = context.conf
    directory = conf.directory
    missing = [
        name for name in ("hdfs-site.xml", "yarn-site.xml") if not (directory / name).is_file()
    ]
    if missing:
        return error(
            _("{directory} has no {missing}.").format(
                directory=directory, missing=" and no ".join(missing)
            ),
            _("Copy the cluster's client configuration whole."),
        )
    file_system = conf.default_fs
    unset = [url for url in conf.resourcemanagers if urlsplit(url).hostname in ("0.0.0.0", None)]  # noqa: S104
    if unset:
        return error(
            _("{directory}/yarn-site.xml does not say where the ResourceManager is.").format(
                directory=directory
            ),
            _("Set yarn.resourcemanager.hostname."),
        )
    for path in (directory / name for name in _EXECUTED):
        if path.is_file() and (unsafe := check_file(path, path.stat(), foreign=True)):
            return warning(
                _("{path} {reason}, and what it says runs as you.").format(
                    path=path, reason=unsafe.reason
                ),
                unsafe.fix,
            )
    return ok(
        _("{directory}: {file_system}, ResourceManager {resourcemanagers}.").format(
            directory=directory,
            file_system=file_system,
            resourcemanagers=", ".join(conf.resourcemanagers),
        )
    )


def client(context: DoctorContext) -> Finding:
    """Check that the ``yarn`` command lists Hadoop's jars."""
    command = driver.yarn_command(context.profile, context.conf.directory)
    home = driver.java_home(context.profile)
    words: list[str | Path] = [
        "/usr/bin/env",
        f"JAVA_HOME={home}",
        f"HADOOP_CONF_DIR={context.conf.directory}",
        command,
        "classpath",
        "--glob",
    ]
    code, text = run(words, 30.0)
    jars = [word for word in text.strip().rpartition("\n")[2].split(":") if word.endswith(".jar")]
    missing = [jar for jar in jars if not os.path.exists(jar)]
    if code or not jars:
        return error(
            _("`{command} classpath --glob` does not name Hadoop's jars.").format(command=command),
            _("Run it by hand; HADOOP_HOME may point at a half-removed Hadoop."),
        )
    if missing:
        return error(
            _("{count} of its {jars} jars do not exist.").format(
                count=len(missing), jars=len(jars)
            ),
            _("Install Hadoop again."),
        )
    return ok(_("{command} names {count} jars.").format(command=command, count=len(jars)))


def resource_types(context: DoctorContext) -> Finding:
    """Check that the client's configuration has the resource type of the nodes' GPUs."""
    usable = context.yarn.nodes()
    name = offered_gpu_resource(usable)
    known = name in context.conf.gpu_resources
    largest, nodes = largest_node(usable)
    if largest.gpus and not known:
        return error(
            _(
                "Nodes offer up to {gpus} GPUs, but resource-types.xml here does not name {name}."
            ).format(gpus=largest.gpus, name=name),
            _("Copy the cluster's resource-types.xml to {directory}.").format(
                directory=context.conf.directory
            ),
        )
    if not largest.gpus:
        return warning(
            _(
                "None of the {nodes} usable nodes offers yarn.io/gpu or nvidia.com/gpu, so --gpu "
                "will be refused."
            ).format(nodes=nodes),
            _("Operators: yarn.nodemanager.resource-plugins = yarn.io/gpu on the nodes."),
        )
    return ok(
        _("{name} is known; a node offers up to {gpus}.").format(name=name, gpus=largest.gpus)
    )
