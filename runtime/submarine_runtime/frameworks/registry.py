"""The frameworks, and the environment that each of them expects: one module for each framework.

A module has the function ``environment(member, members) -> dict``, the variables of the task
``member`` in a gang of ``members``. Where it differs from ``DEFAULTS``, it has the names of
``DEFAULTS`` in capitals, or functions:

``processes(member, members) -> list[dict]``
    Variables of each process in one container.
``launch(config, variables) -> dict``
    Variables that depend on the job, with those of ``environment``.
``helpers(member, members) -> list[Helper]``
    Processes beside the program.
``policy(roles) -> str``
    The success policy, if it depends on the roles.
``role_error(roles) -> str``
    A sentence on roles that cannot work; empty: they can.
``training(members) -> list[Member]``
    The tasks that read training data, if these are not all collective tasks.
``base(env) -> str``
    Another framework that is set up first.

Standard library only, because the notebook's side imports it too. See docs/frameworks.md for how to
add a framework.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Iterable, Mapping, Sequence

from submarine_runtime.protocol import AgentConfig, Member
from submarine_runtime.translation import _

#: Words of ``--framework`` with a module of another name. ``auto`` is resolved before the agent
#: starts for a program, whose imports are known, and remains for a command.
_OTHER_NAMES = {"auto": "shell", "any": "generic"}
_NOT_FRAMEWORKS = (*_OTHER_NAMES.values(), "interfaces", "lost_peers", "ranks", "registry")
#: Words of ``--framework``: each other module of this package is a framework.
KNOWN = (
    *_OTHER_NAMES,
    *sorted(
        module.name
        for module in iter_modules([os.path.dirname(__file__)])
        if not module.ispkg and module.name not in _NOT_FRAMEWORKS
    ),
)

#: Defaults of the names in capitals:
#:
#: IMPORTS
#:     Top-level modules that choose the framework when imported, the more specific first.
#: LATE_IMPORTS
#:     Modules that choose it if no framework is chosen by its IMPORTS.
#: PROJECTS
#:     Installed projects by which a library chooses the framework, if it requires one of them.
#: PRECEDENCE
#:     The highest is chosen if a program imports several frameworks: one may use TensorFlow or
#:     PyTorch only to read its data, Keras on top of any of them, and XGBoost beside anything.
#: PORTS
#:     Number of ports that each task reserves.
#: HOLD_PORTS
#:     Whether the reservation may stay bound while the program binds the same port (SO_REUSEPORT).
#: RESTART_IN_PLACE
#:     Whether one task may be restarted while the others continue.
#: UNTRACKED
#:     Roles that serve and never end.
#: EXTRA_ROLES
#:     Roles that a job needs besides the requested ones.
#: POLICY
#:     The success policy.
#: SHIMS
#:     Files of this package that the launcher applies once the program imports the framework.
#: ADDRESS_IN_USE
#:     Texts in stderr that mean a taken port.
#: PROCESSES
#:     Processes of the program in one container: ``one`` always, ``requested`` (one unless more are
#:     requested) or ``gpu`` (in a gang, one for each device unless requested otherwise).
#: RENDEZVOUS
#:     What opens a task's first port when tasks connect: the ``program`` of the chief, the
#:     ``programs`` of all tasks, or a ``helper`` of the chief that programs connect to; empty:
#:     nothing.
#: JOIN_CALL
#:     The call or argument by which a program joins its gang, with ``{tasks}`` for the number of
#:     tasks; empty: programs of this framework need not join.
DEFAULTS: dict[str, Any] = {
    "IMPORTS": (),
    "LATE_IMPORTS": (),
    "PROJECTS": (),
    "PRECEDENCE": 0,
    "PORTS": 1,
    "HOLD_PORTS": False,
    "RESTART_IN_PLACE": False,
    "UNTRACKED": ("ps", "scheduler", "server"),
    "EXTRA_ROLES": (),
    "POLICY": "chief",
    "SHIMS": (),
    "ADDRESS_IN_USE": ("Address already in use", "EADDRINUSE", "address already in use"),
    "PROCESSES": "one",
    "RENDEZVOUS": "",
    "JOIN_CALL": "",
}


@dataclass(frozen=True)
class Helper:
    """A process that an agent runs beside the program: a tracker, a rendezvous.

    What it writes to stderr is the stream ``helper`` of the task's log.

    Parameters
    ----------
    command
        Arguments; ``{python}`` is the job's interpreter, ``{agent}`` the agent's interpreter,
        ``{runtime}`` the runtime's zip.
    ready
        A line that it writes to stdout once it serves; the program is started after it.
    """

    command: tuple[str, ...]
    ready: str = ""


def wait_for_chief(address: str, port: int) -> Helper:
    """Return the helper by which a task waits until a helper of the chief serves."""
    place = ("--address", address, "--port", str(port))
    return Helper(("{agent}", "-I", "{runtime}", "await", *place), "the chief serves")


@dataclass(frozen=True)
class Setup:
    """What the framework needs to start one task's program.

    Parameters
    ----------
    env
        Variables of every process.
    processes
        Additional variables of each process of the program in this container.
    network
        Interface and address for the record: ``eth0 10.0.0.7``; empty: none was set.
    shims
        Files of this package to copy into ``shims`` beside the launcher.
    rendezvous
        RENDEZVOUS of a gang's framework; empty if there is only one process, or if this task's port
        is not used.
    """

    env: dict[str, str]
    processes: list[dict[str, str]] = field(default_factory=lambda: [{}])
    helpers: list[Helper] = field(default_factory=list)
    shims: tuple[str, ...] = ()
    hold_ports: bool = False
    network: str = ""
    rendezvous: str = ""


def module_of(framework: str) -> ModuleType:
    """Return the module of a framework.

    Raises
    ------
    ValueError
        If the framework is unknown.
    """
    if framework not in KNOWN:
        known = ", ".join(sorted(KNOWN))
        raise ValueError(
            _("framework {framework!r} is unknown; this agent supports {known}").format(
                framework=framework, known=known
            )
        )
    return import_module(f"submarine_runtime.frameworks.{_OTHER_NAMES.get(framework, framework)}")


def setting_of(framework: str, name: str) -> Any:
    """Return a capital name of the framework's module, or its default."""
    return _setting_of(module_of(framework), name)


def framework_of(imports: Iterable[str]) -> str:
    """Return the framework that a program's top-level imports choose; ``any`` if none."""
    return deciding_import(imports)[0]


def deciding_import(imports: Iterable[str]) -> tuple[str, str]:
    """Return the framework that imports choose, and the import; ``any`` and empty if none."""
    found = set(imports)
    words = sorted(KNOWN, key=lambda word: -int(setting_of(word, "PRECEDENCE")))
    for name in ("IMPORTS", "LATE_IMPORTS"):
        for word in words:
            for module in setting_of(word, name):
                if module in found:
                    return word, module
    return "any", ""


def framework_projects() -> dict[str, str]:
    """Return project -> framework of PROJECTS, the highest PRECEDENCE first."""
    words = sorted(KNOWN, key=lambda word: -int(setting_of(word, "PRECEDENCE")))
    return {project: word for word in words for project in setting_of(word, "PROJECTS")}


def policy_of(framework: str, roles: Iterable[str]) -> str:
    """Return the default success policy of a job with these roles."""
    module = module_of(framework)
    return str(
        module.policy(roles) if hasattr(module, "policy") else setting_of(framework, "POLICY")
    )


def role_error_of(framework: str, roles: Sequence[str], processes: int = 0) -> str:
    """Return why the framework does not support these roles; empty if it does.

    Parameters
    ----------
    roles
        One entry for each task, without sidecars.
    processes
        The largest number of processes requested in one container.
    """
    if processes > 1 and setting_of(framework, "PROCESSES") == "one":
        return _(
            "{framework} runs one process in a container: ask for {processes} times as many "
            "instances instead of --processes"
        ).format(framework=framework, processes=processes)
    module = module_of(framework)
    alone = len(roles) < 2 or not hasattr(module, "role_error")
    return "" if alone else str(module.role_error(roles))


def process_count(framework: str, requested: int, gpus: int, gang: bool) -> int:
    """Return the number of processes of the program in one container.

    Parameters
    ----------
    requested
        Number that the role requests; 0: none.
    gang
        Whether the job has more than one task; a single program uses its devices as it likes.
    """
    if requested:
        return requested
    return max(1, gpus) if gang and setting_of(framework, "PROCESSES") == "gpu" else 1


def sharding_tasks(
    framework: str, env: Mapping[str, str], members: Sequence[Member], roles: Sequence[str] = ()
) -> list[str]:
    """Return the tasks among which the files of a ``:shard`` input are divided, in order.

    These are the tasks that train, including the chief, but not parameter servers, schedulers,
    sidecars and evaluators. A framework with a chief that only coordinates leaves it out
    (``training``).

    Parameters
    ----------
    env
        The program's environment, which may choose the framework below Keras.
    roles
        Roles named by the user; their tasks are used instead.
    """
    # cost: socket; the command line only reads names of frameworks.
    from submarine_runtime.frameworks.ranks import collective_tasks

    if roles:
        found = [one for one in members if one.role in roles]
    else:
        module = module_of(framework)
        if hasattr(module, "base"):
            module = module_of(module.base(env))
        found = getattr(module, "training", collective_tasks)(members)
    # Client, agents and coordinator may list the roles in different orders.
    return [one.task for one in sorted(found, key=lambda one: (one.role, one.index))]


def setup(config: AgentConfig, member: Member, members: Sequence[Member]) -> Setup:
    """Return what ``member`` needs in a gang of ``members`` (all, ordered by role and index).

    Raises
    ------
    ValueError
        If the framework is unknown or does not support these roles; one sentence.
    """
    # cost: socket; the command line only reads names of frameworks.
    from submarine_runtime.frameworks import generic

    gang = [one.role for one in members if one.kind != "sidecar"]
    role_error = role_error_of(config.spec.framework, gang, member.processes)
    if role_error:
        raise ValueError(role_error)
    modules = [module_of(config.spec.framework)]
    if hasattr(modules[0], "base"):
        modules.insert(0, module_of(modules[0].base({**os.environ, **config.env})))
    env: dict[str, str] = generic.gang_variables(member, members)
    processes: list[dict[str, str]] = [{}]
    helpers: list[Helper] = []
    for module in modules:
        made = module.environment(member, members)
        env.update(made)
        if hasattr(module, "launch"):
            env.update(module.launch(config, made))
        if hasattr(module, "processes"):
            processes = module.processes(member, members)
        if hasattr(module, "helpers"):
            helpers += module.helpers(member, members)
    if config.spec.own_launcher and len(gang) == 1 and member.processes == 1:
        # The library interprets a rank as a sign that all processes have been started.
        env = {name: value for name, value in env.items() if name not in generic.SIZES}
        processes = [{}]
    network = ""
    if len(gang) > 1:
        network = _network(env, member, config.spec.network_interface)
    shims = tuple(name for module in modules for name in _setting_of(module, "SHIMS"))
    return Setup(
        env=env,
        processes=processes,
        helpers=helpers,
        shims=("shims.py", *shims) if shims else (),
        hold_ports=all(_setting_of(module, "HOLD_PORTS") for module in modules),
        network=network,
        rendezvous=_rendezvous(modules, member, members),
    )


def _rendezvous(modules: Sequence[ModuleType], member: Member, members: Sequence[Member]) -> str:
    # cost: socket; the command line only reads names of frameworks.
    from submarine_runtime.frameworks.ranks import collective_tasks, world_size

    collective = collective_tasks(members)
    if world_size(collective) < 2:
        return ""
    found = next((str(said) for one in modules if (said := _setting_of(one, "RENDEZVOUS"))), "")
    return found if found == "programs" or member.task == collective[0].task else ""


def must_join(framework: str, required: bool) -> bool:
    """Return whether ``not_collective_sentence`` has a sentence for this framework."""
    return required or bool(setting_of(framework, "JOIN_CALL"))


def not_collective_sentence(framework: str, tasks: int, required: bool) -> str:
    """Return a sentence for a gang that did not train together: what the program lacks.

    Empty if the framework's programs need not join, unless that is ``required``.
    """
    if not must_join(framework, required):
        return ""
    lacks = str(setting_of(framework, "JOIN_CALL")).format(tasks=tasks)
    many = _("each of the {tasks} tasks").format(tasks=tasks) if tasks > 1 else _("each process")
    lacks = lacks or _("a connection to MASTER_ADDR:MASTER_PORT")
    advice = "" if required else _(" --require-collective makes such a job fail.")
    return _(
        "No task opened the rendezvous port, so {many} trained by itself. The program lacks "
        "{lacks}.{advice}"
    ).format(many=many, lacks=lacks, advice=advice)


def _network(env: dict[str, str], member: Member, requested: str | None) -> str:
    """Add the variables that name the interface; return its description for the record."""
    # cost: only tasks of a gang need it.
    from submarine_runtime.frameworks.interfaces import interface_for, variables

    interface = interface_for(member.address, requested)
    env.update(variables(interface, requested is not None))
    return f"{interface} {member.address}" if interface else ""


def _setting_of(module: ModuleType, name: str) -> Any:
    return getattr(module, name, DEFAULTS[name])
