"""``submarine kernel list|check|uninstall``: the kernels of ours that Jupyter finds here.

Reads kernelspecs; what one asks a cluster for is judged by ``remote.judging``. Writes none.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import Any

import click
from click.shell_completion import CompletionItem

from submarine_jobs.commands.grammar import Verb, option
from submarine_jobs.display import columns
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import JOB_FAILED, Outcome
from submarine_jobs.text import one_line
from submarine_kernel.kernelspecs.cluster_check import judge
from submarine_kernel.kernelspecs.container import PROVISIONER
from submarine_kernel.kernelspecs.settings import own_spec

#: Name of the kernel on this machine, where no other is given.
NAME = "submarine"


@dataclass(frozen=True)
class Installed:
    """A kernelspec that Jupyter finds."""

    name: str
    path: str
    argv: tuple[str, ...]
    display_name: str
    metadata: dict[str, Any]

    @property
    def ours(self) -> bool:
        """Whether `kernel install` has made it."""
        return any(word.split(".")[0] == "submarine_kernel" for word in self.argv)

    @property
    def container(self) -> dict[str, Any] | None:
        """What it asks a cluster for; None: its kernel runs on this machine."""
        stanza = self.metadata.get("kernel_provisioner")
        known = isinstance(stanza, dict) and stanza.get("provisioner_name") == PROVISIONER
        return dict(stanza) if known and stanza is not None else None

    def to_json(self) -> dict[str, Any]:
        """For ``--json``."""
        where = "this machine" if self.container is None else "container"
        return {
            "name": self.name,
            "display_name": self.display_name,
            "runs_in": where,
            "path": self.path,
        }


def found() -> dict[str, Installed]:
    """Name -> kernelspec, everybody's; those that cannot be read are left out."""
    from jupyter_client.kernelspec import KernelSpecManager

    specs = KernelSpecManager().get_all_specs()
    return {
        name: Installed(
            name,
            str(entry["resource_dir"]),
            tuple(str(word) for word in entry["spec"].get("argv") or ()),
            str(entry["spec"].get("display_name") or name),
            dict(entry["spec"].get("metadata") or {}),
        )
        for name, entry in specs.items()
    }


def _one(name: str) -> Installed:
    """A kernel of ours.

    Raises
    ------
    UsageError
        If there is none of that name, or it is another's.
    """
    every = found()
    kernel = every.get(name.lower())
    if kernel is None:
        own = ", ".join(sorted(key for key, one in every.items() if one.ours))
        hint = f"Installed are {own}." if own else "`submarine kernel install` installs one."
        raise UsageError(f'There is no kernel "{name[:60]}".', hint)
    if not kernel.ours:
        raise UsageError(
            f'The kernel "{name[:60]}" is not one of Submarine\'s.',
            "`jupyter kernelspec list` shows all, `jupyter kernelspec remove NAME` removes any.",
        )
    return kernel


def complete_kernels(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of Submarine's kernels that begin so, each with what front ends show."""
    return [
        CompletionItem(kernel.name, help=one_line(kernel.display_name, 48))
        for _, kernel in sorted(found().items())
        if kernel.ours and kernel.name.startswith(incomplete)
    ]


@click.command("list", cls=Verb, example=("kernel list",))
def list_kernels() -> Outcome:
    """List Submarine's kernels that Jupyter offers here."""
    own = [kernel for _, kernel in sorted(found().items()) if kernel.ours]
    if not own:
        none = "No kernel of Submarine's is installed; `submarine kernel install` installs one."
        return Outcome(none, value=[])
    rows = [
        (
            kernel.name,
            one_line(kernel.display_name, 48),
            str(kernel.to_json()["runs_in"]),
            kernel.path,
        )
        for kernel in own
    ]
    table = columns.text(("NAME", "SHOWN AS", "RUNS IN", "WHERE"), rows)
    return Outcome(table, value=[kernel.to_json() for kernel in own])


@click.command("check", cls=Verb, example=("kernel check", "kernel check gpu4"))
@click.argument("kernel", required=False, shell_complete=complete_kernels)
@option("--name", default=NAME, metavar="NAME", heading="Kernel", help=f"Its name [{NAME}].")
def check(kernel: str | None, name: str) -> Outcome:
    """Look whether a kernel could start: its Python, its settings, and the cluster's word."""
    one = _one(kernel or name)
    problem = _broken(one)
    said = "its Python and its settings are as they should be."
    if not problem and one.container is not None:
        problem = judge(one.name, one.container).words
        said = "a container of this size can be had."
    text = f"{one.name} cannot start: {problem}" if problem else f"{one.name} can start: {said}"
    return Outcome(
        one_line(text, 600),
        value={**one.to_json(), "ok": not problem, "problem": problem},
        exit_code=JOB_FAILED if problem else 0,
    )


def _broken(kernel: Installed) -> str:
    """What is wrong with a kernelspec itself; empty: nothing."""
    python = kernel.argv[0]
    if shutil.which(python) is None:
        return (
            f"Its Python {python} is not there any more. `submarine kernel install` from the "
            "environment that it is to have writes it anew."
        )
    return own_spec(kernel.metadata.get("submarine", {}), f"{kernel.path}/kernel.json").problem


@click.command("uninstall", cls=Verb, example=("kernel uninstall", "kernel uninstall gpu4"))
@click.argument("kernel", required=False, shell_complete=complete_kernels)
@option("--name", default=NAME, metavar="NAME", heading="Kernel", help=f"Its name [{NAME}].")
def uninstall(kernel: str | None, name: str) -> Outcome:
    """Remove a kernel of Submarine's."""
    from jupyter_client.kernelspec import KernelSpecManager

    name = _one(kernel or name).name
    place = KernelSpecManager().remove_kernel_spec(name)
    return Outcome(f"Removed {place}.", value={"name": name, "path": str(place)})
