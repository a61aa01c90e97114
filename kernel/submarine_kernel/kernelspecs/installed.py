"""``submarine kernel list|check|uninstall``: Submarine's kernelspecs that Jupyter finds."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from string import Template
from typing import Any

import click
from click.shell_completion import CompletionItem

from submarine_jobs.commands.grammar import Verb, option
from submarine_jobs.display import columns
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import JOB_FAILED, Outcome
from submarine_jobs.model import parse_duration
from submarine_jobs.text import one_line
from submarine_kernel.kernelspecs.cluster_check import check_container
from submarine_kernel.kernelspecs.container import PROVISIONER, TIMES
from submarine_kernel.kernelspecs.settings import parse_settings
from submarine_kernel.remote import KernelRequest
from submarine_runtime.translation import _

#: Default name of the kernel on this machine.
NAME = "submarine"


@dataclass(frozen=True)
class Kernelspec:
    """An installed kernelspec."""

    name: str
    path: str
    argv: tuple[str, ...]
    display_name: str
    metadata: dict[str, Any]
    env: dict[str, str] = field(default_factory=dict)

    @property
    def is_submarine(self) -> bool:
        """Whether `kernel install` has written it."""
        return any(word.split(".")[0] == "submarine_kernel" for word in self.argv)

    @property
    def container(self) -> dict[str, Any] | None:
        """``metadata.kernel_provisioner``; None if the kernel runs on this machine."""
        stanza = self.metadata.get("kernel_provisioner")
        known = isinstance(stanza, dict) and stanza.get("provisioner_name") == PROVISIONER
        return dict(stanza) if known and stanza is not None else None

    def to_json(self) -> dict[str, Any]:
        """Return the value for ``--json``."""
        where = _("this machine") if self.container is None else "container"
        return {
            "name": self.name,
            "display_name": self.display_name,
            "runs_in": where,
            "path": self.path,
        }


def find_kernelspecs() -> dict[str, Kernelspec]:
    """Return all installed kernelspecs by name, without those that cannot be read."""
    # cost: jupyter_client (0.1 s); `--help` does not need it.
    from jupyter_client.kernelspec import KernelSpecManager

    specs = KernelSpecManager().get_all_specs()
    return {
        name: Kernelspec(
            name,
            str(entry["resource_dir"]),
            tuple(str(word) for word in entry["spec"].get("argv") or ()),
            str(entry["spec"].get("display_name") or name),
            dict(entry["spec"].get("metadata") or {}),
            dict(entry["spec"].get("env") or {}),
        )
        for name, entry in specs.items()
    }


def _find(name: str) -> Kernelspec:
    """Return the kernelspec of a Submarine kernel.

    Raises
    ------
    UsageError
        If there is no such kernel, or it is not Submarine's.
    """
    every = find_kernelspecs()
    kernel = every.get(name.lower())
    if kernel is None:
        names = ", ".join(sorted(key for key, spec in every.items() if spec.is_submarine))
        hint = (
            _("Installed are {names}.").format(names=names)
            if names
            else _("`submarine kernel install` installs one.")
        )
        raise UsageError(_('There is no kernel "{name}".').format(name=name[:60]), hint)
    if not kernel.is_submarine:
        raise UsageError(
            _('The kernel "{name}" is not one of Submarine\'s.').format(name=name[:60]),
            _("`jupyter kernelspec list` shows all, `jupyter kernelspec remove NAME` removes any."),
        )
    return kernel


def container_request(name: str) -> KernelRequest:
    """Return the kernel that a kernelspec requests, for a start without Jupyter.

    Raises
    ------
    UsageError
        If there is no such kernelspec, or it does not run in a container.
    """
    every = find_kernelspecs()
    kernel = every.get(name.lower())
    if kernel is None or kernel.container is None:
        problem = (
            _('There is no kernel "{name}".')
            if kernel is None
            else _('The kernel "{name}" does not run in a container.')
        ).format(name=name[:60])
        names = ", ".join(sorted(key for key, spec in every.items() if spec.container is not None))
        hint = (
            _("Kernels in a container are {names}.").format(names=names)
            if names
            else _("`submarine kernel install --name NAME --memory SIZE` installs one.")
        )
        raise UsageError(problem, hint)
    config = dict(kernel.container.get("config") or {})
    times: dict[str, Any] = {key: parse_duration(config[key]) for key in TIMES if key in config}
    env = {key: Template(value).safe_substitute(os.environ) for key, value in kernel.env.items()}
    return KernelRequest(kernel.name, dict(config.get("run") or {}), env=env, **times)


def complete_kernels(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the names of Submarine's kernels, with their display names."""
    return [
        CompletionItem(kernel.name, help=one_line(kernel.display_name, 48))
        for _, kernel in sorted(find_kernelspecs().items())
        if kernel.is_submarine and kernel.name.startswith(incomplete)
    ]


@click.command("list", cls=Verb, example=("kernel list",))
def list_kernels() -> Outcome:
    """List Submarine's kernels that Jupyter offers here."""
    kernels = [kernel for _, kernel in sorted(find_kernelspecs().items()) if kernel.is_submarine]
    if not kernels:
        text = _("No Submarine kernel is installed; `submarine kernel install` installs one.")
        return Outcome(text, value=[])
    rows = [
        (
            kernel.name,
            one_line(kernel.display_name, 48),
            str(kernel.to_json()["runs_in"]),
            kernel.path,
        )
        for kernel in kernels
    ]
    table = columns.text((_("NAME"), _("SHOWN AS"), _("RUNS IN"), _("WHERE")), rows)
    return Outcome(table, value=[kernel.to_json() for kernel in kernels])


@click.command("check", cls=Verb, example=("kernel check", "kernel check gpu4"))
@click.argument("kernel", required=False, shell_complete=complete_kernels)
@option(
    "--name",
    default=NAME,
    metavar="NAME",
    heading="Kernel",
    help=_("Its name [{name}].").format(name=NAME),
)
def check(kernel: str | None, name: str) -> Outcome:
    """Check whether a kernel could start: its Python, its settings and its container."""
    spec = _find(kernel or name)
    problem = _problem(spec)
    result = _("its Python and its settings are valid.")
    if not problem and spec.container is not None:
        problem = check_container(spec.name, spec.container).problem
        result = _("the cluster can provide its container.")
    text = (
        _("{spec} cannot start: {problem}").format(spec=spec.name, problem=problem)
        if problem
        else _("{spec} can start: {result}").format(spec=spec.name, result=result)
    )
    return Outcome(
        one_line(text, 600),
        value={**spec.to_json(), "ok": not problem, "problem": problem},
        exit_code=JOB_FAILED if problem else 0,
    )


def _problem(kernel: Kernelspec) -> str:
    """Return why a kernelspec is invalid; empty if it is valid."""
    python = kernel.argv[0]
    if shutil.which(python) is None:
        return _(
            "Its Python {python} does not exist. Run `submarine kernel install` in the "
            "environment that the kernel should use."
        ).format(python=python)
    settings = kernel.metadata.get("submarine", {})
    return parse_settings(settings, f"{kernel.path}/kernel.json").problem


@click.command("uninstall", cls=Verb, example=("kernel uninstall", "kernel uninstall gpu4"))
@click.argument("kernel", required=False, shell_complete=complete_kernels)
@option(
    "--name",
    default=NAME,
    metavar="NAME",
    heading="Kernel",
    help=_("Its name [{name}].").format(name=NAME),
)
def uninstall(kernel: str | None, name: str) -> Outcome:
    """Remove a Submarine kernel."""
    # cost: jupyter_client (0.1 s); `--help` does not need it.
    from jupyter_client.kernelspec import KernelSpecManager

    name = _find(kernel or name).name
    place = KernelSpecManager().remove_kernel_spec(name)
    return Outcome(
        _("Removed {place}.").format(place=place), value={"name": name, "path": str(place)}
    )
