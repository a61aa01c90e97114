"""``submarine kernel install``: put a kernelspec where Jupyter finds it; others are `installed`."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from submarine_jobs.commands.grammar import Verb, option, verb_group
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.frontends import Frontend, Outcome
from submarine_kernel.kernelspecs.cluster_check import judge
from submarine_kernel.kernelspecs.container import (
    container_json,
    container_name,
    container_options,
    provisioning,
)
from submarine_kernel.kernelspecs.installed import NAME, check, found, list_kernels, uninstall
from submarine_kernel.kernelspecs.settings import RESOURCE_DIR
from submarine_kernel.kernelspecs.typed_settings import told_settings

DISPLAY_NAME = "Python + Submarine"
_RESOURCES = Path(__file__).parent.parent / "resources"
_VALID_NAME = re.compile(r"[a-z0-9._-]{1,100}", re.IGNORECASE)


def kernel_json(
    display_name: str = DISPLAY_NAME, submarine: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What ``kernel.json`` holds: ipykernel's own, with our module and this interpreter.

    Parameters
    ----------
    submarine
        ``metadata.submarine``, see ``own_spec``.
    """
    from ipykernel.kernelspec import get_kernel_dict, make_ipkernel_cmd

    spec = get_kernel_dict()
    if submarine:
        spec["metadata"] = {**spec.get("metadata", {}), "submarine": dict(submarine)}
    own = [f"--SubmarineKernelApp.spec={RESOURCE_DIR}/kernel.json"]
    return {
        **spec,
        "argv": make_ipkernel_cmd(mod="submarine_kernel", extra_arguments=own),
        "display_name": display_name,
    }


def install_kernel(
    *,
    name: str = NAME,
    display_name: str = DISPLAY_NAME,
    user: bool = False,
    prefix: str | None = None,
    submarine: Mapping[str, Any] | None = None,
    container: Mapping[str, Any] | None = None,
) -> Path:
    """Install the kernelspec, replacing one of the same name.

    Parameters
    ----------
    user
        Into this user's Jupyter directory; else below ``prefix``.
    prefix
        Below which ``share/jupyter/kernels`` lies; ``sys.prefix`` where neither is given.
    submarine
        Settings and defaults of the kernel, see ``own_spec``.
    container
        What ``remote.kernelspec.provisioning`` gave for a kernel in a container.

    Returns
    -------
    Path
        The directory of the installed kernelspec.

    Raises
    ------
    UsageError
        If ``name`` cannot be a kernelspec's name.
    SubmarineError
        If the directory cannot be written.
    """
    from jupyter_client.kernelspec import KernelSpecManager

    if not _VALID_NAME.fullmatch(name):
        raise UsageError(
            f'"{name[:60]}" cannot be a kernel\'s name.',
            "Use ASCII letters, digits, '.', '-' and '_', for example submarine.",
        )
    where: dict[str, Any] = {"user": True} if user else {"prefix": prefix or sys.prefix}
    with tempfile.TemporaryDirectory() as scratch:
        spec = Path(scratch) / name
        shutil.copytree(_RESOURCES, spec)
        content = kernel_json(display_name, submarine)
        if container is not None:
            content = container_json(content, container)
        (spec / "kernel.json").write_text(json.dumps(content, indent=1) + "\n")
        spec.chmod(0o755)
        try:
            manager = KernelSpecManager()
            return Path(manager.install_kernel_spec(str(spec), name, **where))
        except OSError as error:
            target = error.filename or prefix or sys.prefix
            raise SubmarineError(
                f"The kernelspec cannot be written to {target}: {error.strerror}.",
                "Install it for yourself with --user, or name a directory with --prefix.",
            ) from None


@verb_group(
    {
        "Kernels": {
            "install": "Install a kernel, so that front ends offer it.",
            "list": "List Submarine's kernels that Jupyter offers here.",
            "check": "Look whether a kernel could start.",
            "uninstall": "Remove a kernel of Submarine's.",
        }
    }
)
def kernel() -> None:
    """Kernels: Python + Submarine here, or one in a container of the cluster."""


@kernel.command(
    "install",
    cls=Verb,
    example=(
        "kernel install --user",
        "kernel install --name gpu4 --memory 8G --vcores 2 --gpu 4 --queue ml --python-env auto",
    ),
)
@option("--name", default=NAME, metavar="NAME", heading="Kernel", help=f"Its name [{NAME}].")
@option(
    "--display-name",
    metavar="TEXT",
    heading="Kernel",
    help=f"What front ends show [{DISPLAY_NAME}, or the size of its container].",
)
@option("--user", is_flag=True, heading="Where", help="For this user, in every environment.")
@option("--sys-prefix", is_flag=True, heading="Where", help="Into this environment (the default).")
@option("--prefix", metavar="DIR", heading="Where", help="Below DIR/share/jupyter/kernels.")
@option(
    "--set",
    "settings",
    multiple=True,
    metavar="SETTING=VALUE",
    heading="Its notebooks",
    help="Setting of its notebooks, for example profile=prod or queue=ml; repeatable.",
)
@option(
    "--default",
    "defaults",
    multiple=True,
    metavar="OPTION=VALUE",
    heading="Its notebooks",
    help="Each %submarine run begins with it, for example gpu=1 or memory=8G; repeatable.",
)
@container_options
@click.pass_obj
def install(
    frontend: Frontend,
    /,
    user: bool,
    sys_prefix: bool,
    prefix: str | None,
    name: str,
    display_name: str | None,
    settings: tuple[str, ...],
    defaults: tuple[str, ...],
    **typed: str | None,
) -> Outcome:
    """Install the kernelspec, so that front ends offer the kernel.

    With an option that says how large its container is, or where, the kernel runs in a container of
    the cluster; the cluster is asked whether it ever gives such a one, and its no is a warning.
    """
    if user + sys_prefix + (prefix is not None) > 1:
        raise UsageError("--user, --sys-prefix and --prefix exclude each other.", "Give one.")
    container = provisioning(name, typed)
    if container is not None and name == NAME:
        raise UsageError(
            f'"{NAME}" is the name of the kernel on this machine.',
            "Give the one in a container another, for example --name gpu4.",
        )
    if container is not None and (settings or defaults):
        raise UsageError(
            "--set and --default are for notebooks whose kernel runs on this machine.",
            "A kernel in a container takes its options themselves, for example --queue ml.",
        )
    if display_name is None:
        display_name = DISPLAY_NAME if container is None else container_name(container)
    if not display_name.strip() or not display_name.isprintable():
        raise UsageError("--display-name: front ends show it, so it is one line of text.")
    _spare(name)
    place = install_kernel(
        name=name,
        display_name=display_name,
        user=user,
        prefix=prefix,
        submarine=told_settings(settings, defaults),
        container=container,
    )
    problem = _doubt(name, container) if container is not None else ""
    if problem:
        frontend.say(f"warning: {problem}")
    facts = {"name": place.name, "display_name": display_name, "path": str(place)}
    return Outcome(
        f"Installed the kernel {display_name} as {place}.",
        value={**facts, "warnings": [problem] if problem else []},
    )


def _doubt(name: str, container: Mapping[str, Any]) -> str:
    """What the cluster has against it; empty: nothing."""
    judgement = judge(name, container)
    if judgement.asked and judgement.words:
        return f"The kernel {name} would not start today. {judgement.words}"
    return judgement.words


def _spare(name: str) -> None:
    """Refuse the name of a kernel that is somebody else's: ours would stand in its place."""
    other = found().get(name.lower())
    if other is not None and not other.ours:
        raise UsageError(
            f'"{name[:60]}" is the name of a kernel that is not Submarine\'s: {other.path}.',
            "Give ours another, for example --name gpu4.",
        )


for _verb in (list_kernels, check, uninstall):
    kernel.add_command(_verb)
