"""``submarine doctor --fix``: a shell script for chosen findings; nothing is run here.

``fixes_of`` returns the findings that have steps, ``script_of`` the script. A step has its reason,
the kind of machine, and what applies it and takes it back. All values from the cluster are quoted.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from submarine_jobs.doctor.context import DoctorContext
from submarine_jobs.doctor.result import Result, Status
from submarine_jobs.errors import UsageError
from submarine_jobs.text import one_line
from submarine_runtime.translation import _
from submarine_runtime.yarn import find_queue, queues_of

_TEMPLATE = Path(__file__).with_name("fix_script.sh")
#: Kinds of machines in the order in which the script is applied.
MACHINES = CLIENT, RESOURCEMANAGER, NODE = ("client", "resourcemanager", "node")
_NM = "yarn.nodemanager"
_LCE = f"{_NM}.linux-container-executor"
_GPU = "yarn.io/gpu"
_SCHEDULER = "yarn.scheduler.capacity"
ALL = "all"
_NUMBER = re.compile(r"[0-9]{1,4}\Z")


@dataclass(frozen=True)
class Step:
    """One change of a kind of machine.

    Parameters
    ----------
    apply, undo
        Lines of shell; equal lines where a function of the script handles both.
    """

    machine: str
    reason: str
    apply: tuple[str, ...]
    undo: tuple[str, ...]


@dataclass(frozen=True)
class Fix:
    """A finding and its steps.

    Parameters
    ----------
    restarts
        Daemons that read the changed files at their start.
    """

    result: Result
    steps: tuple[Step, ...]
    restarts: str = ""

    @property
    def machines(self) -> list[str]:
        """The kinds of machines on which it changes something."""
        return [one for one in MACHINES if any(step.machine == one for step in self.steps)]


def edit(machine: str, reason: str, file: str, name: str, value: str, *, add: bool = False) -> Step:
    """Return a step that sets a property of Hadoop, or adds a word to its list."""
    words = ("edit", file, "add" if add else "set", name, value)
    line = " ".join(map(shlex.quote, words))
    return Step(machine, reason, (line,), (line,))


def commands(machine: str, reason: str, apply: Sequence[str], undo: Sequence[str]) -> Step:
    """Return a step of shell lines."""
    return Step(machine, reason, tuple(apply), tuple(undo))


def _gpu_types(_context: DoctorContext, _result: Result) -> list[Step]:
    everywhere = _("YARN counts GPUs only where the resource type is named.")
    steps = [
        edit(machine, everywhere, "resource-types.xml", "yarn.resource-types", _GPU, add=True)
        for machine in MACHINES
    ]
    steps.append(
        edit(
            RESOURCEMANAGER,
            _("Only this calculator compares more than memory."),
            "capacity-scheduler.xml",
            f"{_SCHEDULER}.resource-calculator",
            "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
        )
    )
    plugin = edit(
        NODE,
        _("The plugin finds the GPUs of the node and offers them."),
        "yarn-site.xml",
        f"{_NM}.resource-plugins",
        _GPU,
        add=True,
    )
    auto = edit(
        NODE,
        _("All GPUs of the node are offered."),
        "yarn-site.xml",
        f"{_NM}.resource-plugins.gpu.allowed-gpu-devices",
        "auto",
    )
    name = f"{_NM}.resource-plugins.gpu.path-to-discovery-executables"
    found = '"$(command -v nvidia-smi || echo /usr/bin/nvidia-smi)"'
    path = f"    edit yarn-site.xml set {name} {found}"
    steps.append(
        commands(
            NODE,
            _("A node without nvidia-smi offers no GPU, and its NodeManager would not start."),
            (
                'if command -v nvidia-smi >/dev/null || [ "$MODE" = dry-run ]; then',
                path,
                f"    {plugin.apply[0]}",
                f"    {auto.apply[0]}",
                "fi",
            ),
            (path.strip(), plugin.undo[0], auto.undo[0]),
        )
    )
    return [*steps, *_cgroup_steps()]


def _cgroup_steps() -> list[Step]:
    memory = _("The kernel limits memory and CPU of a container, and GPUs can be isolated.")
    values = {
        f"{_NM}.resource.memory.enabled": "true",
        f"{_NM}.resource.cpu.enabled": "true",
        f"{_LCE}.cgroups.hierarchy": "/hadoop-yarn",
        f"{_LCE}.cgroups.mount": "false",
    }
    steps = [edit(NODE, memory, "yarn-site.xml", name, value) for name, value in values.items()]
    version = f"edit yarn-site.xml set {_LCE}.cgroups.v2.enabled true"
    steps.append(
        commands(
            NODE,
            _("Hadoop 3.5 uses cgroup v2 only with this property."),
            ('if [ -f "$CGROUPS/cgroup.controllers" ]; then', f"    {version}", "fi"),
            (version,),
        )
    )
    steps.append(
        commands(
            NODE,
            _("The NodeManager creates the groups of containers below its own directory."),
            (
                'for controller in "" cpu memory devices; do',
                '    if [ -d "$CGROUPS/$controller" ] && '
                '{ [ -n "$controller" ] || [ -f "$CGROUPS/cgroup.controllers" ]; }; then',
                '        run mkdir -p "$CGROUPS/$controller/hadoop-yarn"',
                '        id "$YARN_USER" >/dev/null 2>&1 &&',
                '            run chown -R "$YARN_USER" "$CGROUPS/$controller/hadoop-yarn"',
                "    fi",
                "done",
            ),
            (
                'for controller in "" cpu memory devices; do',
                '    [ ! -d "$CGROUPS/$controller/hadoop-yarn" ] ||',
                '        run rmdir "$CGROUPS/$controller/hadoop-yarn"',
                "done",
            ),
        )
    )
    return steps


def _cgroups(_context: DoctorContext, _result: Result) -> list[Step]:
    return _cgroup_steps()


def _executor(context: DoctorContext, _result: Result) -> list[Step]:
    home = context.environ.get("HADOOP_YARN_HOME") or context.environ.get("HADOOP_HOME") or ""
    home = home or "/usr/lib/hadoop-yarn"
    binary = context.conf.get(f"{_LCE}.path") or f"{home}/bin/container-executor"
    group = context.conf.get(f"{_LCE}.group") or "hadoop"
    quoted, cfg = shlex.quote(binary), '"$CONF/container-executor.cfg"'
    content = f"{_LCE}.group={group}\nbanned.users=hdfs,yarn,mapred,bin\nmin.user.id=1000"
    site = {
        f"{_NM}.container-executor.class": (
            "org.apache.hadoop.yarn.server.nodemanager.LinuxContainerExecutor"
        ),
        f"{_LCE}.group": group,
        f"{_LCE}.nonsecure-mode.limit-users": "false",
    }
    reason = _("Containers run as their user, and only this executor isolates GPUs.")
    return [
        *(edit(NODE, reason, "yarn-site.xml", name, value) for name, value in site.items()),
        commands(
            NODE,
            _("The set-uid program reads its limits from this file, which only root may write."),
            (
                f"block executor {cfg} {shlex.quote(content)} top",
                f"run chown root {cfg}",
                f"run chmod 0400 {cfg}",
            ),
            (f"block executor {cfg} ''",),
        ),
        commands(
            NODE,
            _("The executor must belong to root and the group of the NodeManager, with set-uid."),
            (
                f"run chown root:{shlex.quote(group)} {quoted}",
                f"run chmod 6050 {quoted}",
            ),
            (f"run chmod 0755 {quoted}",),
        ),
    ]


def _docker(_context: DoctorContext, _result: Result) -> list[Step]:
    cfg = '"$CONF/container-executor.cfg"'
    content = (
        "[docker]\nmodule.enabled=true\ndocker.binary=/usr/bin/docker\n"
        "docker.allowed.networks=host,none\ndocker.allowed.capabilities=\n"
        "docker.trusted.registries=local"
    )
    network = f"{_NM}.runtime.linux.docker"
    return [
        commands(
            NODE,
            _("Containers with an image need Docker's daemon."),
            (
                "if ! command -v docker >/dev/null; then",
                "    if command -v apt-get >/dev/null; then",
                "        install_packages docker.io",
                "    else",
                "        install_packages docker",
                "    fi",
                "fi",
                "run systemctl enable --now docker",
            ),
            ("run systemctl disable --now docker",),
        ),
        commands(
            NODE,
            _("The NVIDIA runtime gives containers their GPUs."),
            (
                "if command -v nvidia-ctk >/dev/null; then",
                "    run nvidia-ctk runtime configure --runtime=docker",
                "    run systemctl restart docker",
                "fi",
            ),
            (
                "if command -v nvidia-ctk >/dev/null; then",
                "    run nvidia-ctk runtime configure --runtime=docker --remove",
                "    run systemctl restart docker",
                "fi",
            ),
        ),
        commands(
            NODE,
            _("The executor allows Docker, and the networks by which tasks reach each other."),
            (f"block docker {cfg} {shlex.quote(content)}",),
            (f"block docker {cfg} ''",),
        ),
        edit(
            NODE,
            _("Tasks in containers reach each other over the network of the host."),
            "yarn-site.xml",
            f"{network}.allowed-container-networks",
            "host,none",
        ),
        edit(
            NODE,
            _("A container has the network of its node unless a job asks for another."),
            "yarn-site.xml",
            f"{network}.default-container-network",
            "host",
        ),
    ]


def _driver(_context: DoctorContext, _result: Result) -> list[Step]:
    return [
        commands(
            NODE,
            _("The driver is older than the framework needs, or does not answer; then reboot."),
            ("install_packages nvidia-driver",),
            ("remove_packages nvidia-driver",),
        )
    ]


def _names(_context: DoctorContext, _result: Result) -> list[Step]:
    line = "$(hostname -I | cut -d ' ' -f 1) $(hostname -f) $(hostname -s)"
    return [
        commands(
            NODE,
            _("Hadoop's daemons need the address of this name, and the name of that address."),
            (f'block names /etc/hosts "{line}"',),
            ("block names /etc/hosts ''",),
        )
    ]


def _memory_checks(_context: DoctorContext, _result: Result) -> list[Step]:
    reason = _("CUDA and TensorFlow reserve address space that they do not use.")
    return [edit(NODE, reason, "yarn-site.xml", f"{_NM}.vmem-check-enabled", "false")]


def _yarn_acls(_context: DoctorContext, _result: Result) -> list[Step]:
    reason = _("Without it each user can view and end the jobs of others.")
    return [
        edit(machine, reason, "yarn-site.xml", "yarn.acl.enable", "true")
        for machine in (RESOURCEMANAGER, NODE)
    ]


def _queue(context: DoctorContext, _result: Result) -> list[Step]:
    """Start the queue of the profile; no step where there is no such queue."""
    name = context.profile.queue or "default"
    queue = find_queue(queues_of(context.rm_response("/scheduler")), name)
    if queue is None or not queue.leaf or queue.running:
        return []
    return [
        edit(
            RESOURCEMANAGER,
            _("The queue {queue} is stopped.").format(queue=queue.path),
            "capacity-scheduler.xml",
            f"{_SCHEDULER}.{queue.path}.state",
            "RUNNING",
        )
    ]


def _queue_access(context: DoctorContext, _result: Result) -> list[Step]:
    name, user = context.profile.queue or "default", context.yarn.user
    queue = find_queue(queues_of(context.rm_response("/scheduler")), name)
    if queue is None or queue.submitters is None:
        return []
    users = ",".join(sorted({*queue.submitters, user}))
    return [
        edit(
            RESOURCEMANAGER,
            _("{user} is not in the access list of queue {queue}.").format(
                user=user, queue=queue.path
            ),
            "capacity-scheduler.xml",
            f"{_SCHEDULER}.{queue.path}.acl_submit_applications",
            users,
        )
    ]


_BOTH = "ResourceManager, NodeManagers"
#: Name of a check -> its steps, and the daemons to restart.
RECIPES: Mapping[str, tuple[Callable[[DoctorContext, Result], list[Step]], str]] = {
    "resource types": (_gpu_types, _BOTH),
    "cgroups": (_cgroups, "NodeManagers"),
    "container executor": (_executor, "NodeManagers"),
    "docker": (_docker, "NodeManagers"),
    "gpu driver": (_driver, ""),
    "names": (_names, ""),
    "memory checks": (_memory_checks, "NodeManagers"),
    "yarn acls": (_yarn_acls, _BOTH),
    "queues": (_queue, "ResourceManager"),
    "queue access": (_queue_access, "ResourceManager"),
}


def fixes_of(context: DoctorContext, results: Iterable[Result]) -> list[Fix]:
    """Return the findings that a script can fix, in the order of the checks."""
    fixes = []
    for result in results:
        recipe = RECIPES.get(result.name)
        if recipe is not None and result.status in (Status.ERROR, Status.WARNING):
            make, restarts = recipe
            steps = tuple(make(context, result))
            if steps:
                fixes.append(Fix(result, steps, restarts))
    return fixes


def menu(fixes: Sequence[Fix]) -> list[str]:
    """Return a numbered line for each fix."""
    return [
        _("{number}  {name} ({machines}): {sentence}").format(
            number=number,
            name=fix.result.name,
            machines=", ".join(fix.machines),
            sentence=one_line(fix.result.sentence),
        )
        for number, fix in enumerate(fixes, 1)
    ]


def chosen_fixes(fixes: Sequence[Fix], items: str) -> list[Fix]:
    """Return the fixes of ``1,3`` or ``all``.

    Raises
    ------
    UsageError
        If a number is not in the menu.
    """
    if items.strip() == ALL:
        return list(fixes)
    numbers = [word.strip() for word in items.split(",")]
    for word in numbers:
        if not _NUMBER.match(word) or not 1 <= int(word) <= len(fixes):
            raise UsageError(
                _("There is no item {item} in the menu.").format(item=word[:20] or "''"),
                _("It has {count}; write --items 1,2 or --items all.").format(count=len(fixes)),
            )
    return [fixes[number - 1] for number in sorted({int(word) for word in numbers})]


def script_of(fixes: Sequence[Fix]) -> str:
    """Return the script for these fixes."""
    parts = [_TEMPLATE.read_text(encoding="utf-8")]
    for fix in fixes:
        parts.append(f"\n# {fix.result.name}: {one_line(fix.result.sentence)}\n")
        parts.extend(_lines_of(machine, fix) for machine in fix.machines)
    restarts = dict.fromkeys(word for fix in fixes for word in fix.restarts.split(", ") if word)
    if restarts:
        sentence = shlex.quote(", ".join(restarts))
        parts.append(f"\nprintf '\\nRestart: %s\\n' {sentence}\n")
    return "".join(parts)


def _lines_of(machine: str, fix: Fix) -> str:
    lines = [f'if [ "$MACHINE" = {machine} ]; then']
    for step in (one for one in fix.steps if one.machine == machine):
        lines.append(f"    reason {shlex.quote(step.reason)}")
        if step.apply == step.undo:
            lines += [f"    {line}" for line in step.apply]
        else:
            lines.append('    if [ "$MODE" = undo ]; then')
            lines += [f"        {line}" for line in step.undo]
            lines.append("    else")
            lines += [f"        {line}" for line in step.apply]
            lines.append("    fi")
    return "\n".join([*lines, "fi", ""])
