"""Checks of Hadoop's client on this machine: its commands and its configuration directory."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from submarine_jobs.backends.yarn import driver
from submarine_jobs.backends.yarn.cluster import largest_node
from submarine_jobs.config import check_file
from submarine_jobs.doctor.context import DoctorContext, run
from submarine_jobs.doctor.result import Finding, error, ok, warning
from submarine_jobs.errors import no_cluster

#: Files of Hadoop's configuration that run commands, or name classes and scripts.
_EXECUTED = ("core-site.xml", "hdfs-site.xml", "yarn-site.xml", "hadoop-env.sh", "yarn-env.sh")


def configured(context: DoctorContext) -> Finding:
    """Whether there is anywhere to run a job."""
    profile = context.profile
    if profile.backend is None:
        missing = no_cluster()
        return warning(missing.message, missing.fix)
    if profile.backend == "local":
        return ok(f"Profile {profile.name}: jobs run as processes of this machine.")
    return ok(f"Profile {profile.name}: YARN by {profile.hadoop_conf_dir}.")


def configuration(context: DoctorContext) -> Finding:
    """The configuration directory is readable and its parts agree."""
    conf = context.conf
    here = conf.directory
    missing = [name for name in ("hdfs-site.xml", "yarn-site.xml") if not (here / name).is_file()]
    if missing:
        return error(
            f"{here} has no {' and no '.join(missing)}.",
            "Copy the cluster's client configuration whole.",
        )
    file_system = conf.default_fs
    unset = [url for url in conf.resourcemanagers if urlsplit(url).hostname in ("0.0.0.0", None)]  # noqa: S104
    if unset:
        return error(
            f"{here}/yarn-site.xml does not say where the ResourceManager is.",
            "Set yarn.resourcemanager.hostname.",
        )
    if conf.kerberos:
        return error(
            "The cluster asks for Kerberos (hadoop.security.authentication).",
            "Kerberos is not in this release; use a cluster with simple authentication.",
        )
    for path in (here / name for name in _EXECUTED):
        if path.is_file() and (unsafe := check_file(path, path.stat(), foreign=True)):
            return warning(f"{path} {unsafe.reason}, and what it says runs as you.", unsafe.fix)
    return ok(f"{here}: {file_system}, ResourceManager {', '.join(conf.resourcemanagers)}.")


def client(context: DoctorContext) -> Finding:
    """The ``yarn`` command, and that it names jars."""
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
    gone = [jar for jar in jars if not os.path.exists(jar)]
    if code or not jars:
        return error(
            f"`{command} classpath --glob` does not name Hadoop's jars.",
            "Run it by hand; HADOOP_HOME may point at a half-removed Hadoop.",
        )
    if gone:
        return error(f"{len(gone)} of its {len(jars)} jars do not exist.", "Install Hadoop again.")
    return ok(f"{command} names {len(jars)} jars.")


def resource_types(context: DoctorContext) -> Finding:
    """``yarn.io/gpu``: a client whose configuration lacks it cannot ask for GPUs at all."""
    known = context.conf.knows_gpus
    most, nodes = largest_node(context.ask_rm("/nodes"))
    if most.gpus and not known:
        return error(
            f"Nodes offer up to {most.gpus} GPUs, but resource-types.xml here does not name "
            "yarn.io/gpu.",
            f"Copy the cluster's resource-types.xml to {context.conf.directory}.",
        )
    if not most.gpus:
        return warning(
            f"None of the {nodes} usable nodes offers yarn.io/gpu, so --gpu will be refused.",
            "Operators: yarn.nodemanager.resource-plugins = yarn.io/gpu on the nodes.",
        )
    return ok(f"yarn.io/gpu is known; a node offers up to {most.gpus}.")
