"""Checks of a node by its yarn-site.xml: executor, cgroups, memory checks, Docker, disks."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from submarine_jobs.doctor.context import DoctorContext, run
from submarine_jobs.doctor.result import Finding, error, ok, skipped, warning
from submarine_runtime.translation import _

CGROUPS = Path("/sys/fs/cgroup")
_LINUX = "LinuxContainerExecutor"
_NM = "yarn.nodemanager"
#: Used share of a disk above which a NodeManager stops using it, by Hadoop's default.
_MAX_USED = 0.90


def container_executor(context: DoctorContext) -> Finding:
    """Check the container executor; only the Linux executor isolates GPUs."""
    name = context.conf.get(f"{_NM}.container-executor.class").rpartition(".")[2]
    gpus = "yarn.io/gpu" in context.conf.words(f"{_NM}.resource-plugins")
    if name != _LINUX:
        if gpus:
            return warning(
                _(
                    "This node offers GPUs, but its container executor is the default one, so "
                    "every job sees every GPU."
                ),
                _(
                    "Operators: {prefix}.container-executor.class = "
                    "org.apache.hadoop.yarn.server.nodemanager.{linux}."
                ).format(prefix=_NM, linux=_LINUX),
            )
        return ok(_("Containers run as the NodeManager's user (default container executor)."))
    return _linux_executor(context)


def _linux_executor(context: DoctorContext) -> Finding:
    named = context.conf.get(f"{_NM}.linux-container-executor.path")
    home = context.environ.get("HADOOP_YARN_HOME") or context.environ.get("HADOOP_HOME") or ""
    binary = Path(named or f"{home}/bin/container-executor")
    try:
        found = binary.stat()
    except OSError:
        return error(
            _("The container executor {binary} is not there.").format(binary=binary),
            _("Set HADOOP_HOME, or {prefix}.linux-container-executor.path.").format(prefix=_NM),
        )
    if found.st_uid != 0 or not found.st_mode & stat.S_ISUID or found.st_mode & stat.S_IWOTH:
        return error(
            _(
                "{binary} must belong to root, with the set-uid bit, and be writable by root only."
            ).format(binary=binary),
            _("chown root:hadoop {binary} && chmod 6050 {binary}").format(binary=binary),
        )
    group = context.conf.get(f"{_NM}.linux-container-executor.group")
    if not group:
        return error(
            _("{prefix}.linux-container-executor.group is not set.").format(prefix=_NM),
            _("Set it to the group of the NodeManager, here and in container-executor.cfg."),
        )
    return ok(_("{binary} is set up for the group {group}.").format(binary=binary, group=group))


def cgroups(context: DoctorContext) -> Finding:
    """Check that the cgroups of the kernel match the configuration of YARN."""
    conf = context.conf
    handler = conf.get(f"{_NM}.linux-container-executor.resources-handler.class")
    used = handler.endswith("CgroupsLCEResourcesHandler") or any(
        conf.get(f"{_NM}.resource.{kind}.enabled").lower() == "true" for kind in ("memory", "cpu")
    )
    plugins = conf.words(f"{_NM}.resource-plugins")
    if not used and "yarn.io/gpu" not in plugins:
        return ok(_("Cgroups are not used; YARN checks the memory of containers by polling."))
    unified = (CGROUPS / "cgroup.controllers").exists()
    if not CGROUPS.is_dir() or not any(CGROUPS.iterdir()):
        return error(
            _("Cgroups are configured, but /sys/fs/cgroup is not mounted."), _("Mount it.")
        )
    if unified and conf.get(f"{_NM}.linux-container-executor.cgroups.v2.enabled").lower() != "true":
        return error(
            _("This kernel has cgroup v2 only, and YARN is not configured for it."),
            _(
                "Hadoop 3.5: {prefix}.linux-container-executor.cgroups.v2.enabled = true; older "
                "ones need the kernel option systemd.unified_cgroup_hierarchy=0."
            ).format(prefix=_NM),
        )
    if not used:
        return warning(
            _(
                "This node offers GPUs, and YARN has no settings for cgroups, so no limit of "
                "memory and CPU is enforced by the kernel."
            ),
            _("Operators: {prefix}.resource.memory.enabled and .cpu.enabled = true.").format(
                prefix=_NM
            ),
        )
    kind = "v2" if unified else "v1"
    return ok(_("Cgroup {kind} is mounted, and YARN uses it.").format(kind=kind))


def memory_checks(context: DoctorContext) -> Finding:
    """Check YARN's virtual memory limit, which kills programs that reserve address space."""
    conf = context.conf
    if conf.get(f"{_NM}.vmem-check-enabled", "true").lower() == "false":
        return ok(_("Virtual memory is not counted against containers."))
    ratio = conf.get(f"{_NM}.vmem-pmem-ratio", "2.1")
    return warning(
        _(
            "Containers are killed above {ratio} times their size in virtual memory, which CUDA "
            "and TensorFlow reserve freely."
        ).format(ratio=ratio),
        _("Operators: {prefix}.vmem-check-enabled = false.").format(prefix=_NM),
    )


def docker(context: DoctorContext) -> Finding:
    """Check the Docker runtime if YARN allows it; only jobs with an image need it."""
    allowed = context.conf.words(f"{_NM}.runtime.linux.allowed-runtimes")
    if "docker" not in allowed:
        return skipped(_("YARN allows no Docker containers here; only --docker_image needs them."))
    if shutil.which("docker") is None:
        return warning(
            _("YARN allows Docker containers, but there is no docker command on this node."),
            _("Install Docker, or take docker out of allowed-runtimes."),
        )
    code, text = run(["docker", "info", "--format", "{{.ServerVersion}}"], 10.0)
    if code:
        last = text.strip().rpartition("\n")[2][:200]
        return warning(
            _("Docker does not answer: {last}").format(last=last), _("Start the docker service.")
        )
    return ok(_("Docker {text} runs and YARN allows it.").format(text=text.strip()[:40]))


def local_directories(context: DoctorContext) -> Finding:
    """Check the disks of the NodeManager's directories."""
    named = context.conf.words(f"{_NM}.local-dirs") + context.conf.words(f"{_NM}.log-dirs")
    paths = [Path(item.removeprefix("file://")) for item in named]
    there = [path for path in paths if path.is_dir()]
    if not there:
        return skipped(_("This machine's yarn-site.xml names no directory of a NodeManager here."))
    full = [path for path in there if _used(path) > _MAX_USED]
    if full:
        return error(
            _("{full} is {used:.0%} full, and YARN stops using a disk above 90 %.").format(
                full=full[0], used=_used(full[0])
            ),
            _("Free some space; old application logs are the usual cause."),
        )
    closed = [path for path in there if not os.access(path, os.X_OK)]
    if closed:
        return warning(
            _("{closed} cannot be entered by this user.").format(closed=closed[0]),
            _("Run the doctor as yarn."),
        )
    return ok(_("{count} directories of the NodeManager have space.").format(count=len(there)))


def _used(path: Path) -> float:
    usage = shutil.disk_usage(path)
    return usage.used / usage.total if usage.total else 1.0
