"""``submarine kernel install``: write a kernelspec to a directory that Jupyter searches."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from submarine_jobs.commands.grammar import Verb, option, verb_group
from submarine_jobs.commands.run import parse_run
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.frontends import Frontend, Outcome
from submarine_kernel.kernelspecs.cluster_check import check_container
from submarine_kernel.kernelspecs.container import (
    container_json,
    container_name,
    container_options,
    provisioning,
)
from submarine_kernel.kernelspecs.installed import (
    NAME,
    check,
    find_kernelspecs,
    list_kernels,
    uninstall,
)
from submarine_kernel.kernelspecs.settings import RESOURCE_DIR, parse_settings
from submarine_magics.commands import default_words
from submarine_runtime.translation import _, gettext_noop

DISPLAY_NAME = "Python + Submarine"
_RESOURCES = Path(__file__).parent.parent / "resources"
_VALID_NAME = re.compile(r"[a-z0-9._-]{1,100}", re.IGNORECASE)


def kernel_json(
    display_name: str = DISPLAY_NAME, submarine: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the content of ``kernel.json``: ipykernel's, with this package and interpreter.

    Parameters
    ----------
    submarine
        ``metadata.submarine``, see ``settings``.
    """
    # cost: ipykernel (0.1 s); other verbs do not need it.
    from ipykernel.kernelspec import get_kernel_dict, make_ipkernel_cmd

    spec = get_kernel_dict()
    if submarine:
        spec["metadata"] = {**spec.get("metadata", {}), "submarine": dict(submarine)}
    arguments = [f"--SubmarineKernelApp.spec={RESOURCE_DIR}/kernel.json"]
    return {
        **spec,
        "argv": make_ipkernel_cmd(mod="submarine_kernel", extra_arguments=arguments),
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
    """Install the kernelspec, and replace one of the same name.

    Parameters
    ----------
    user
        Install into this user's Jupyter directory instead of below ``prefix``.
    prefix
        Directory that contains ``share/jupyter/kernels``; default ``sys.prefix``.
    submarine
        Settings and defaults of the kernel, see ``settings``.
    container
        ``metadata.kernel_provisioner`` of a kernel in a container, see ``provisioning``.

    Returns
    -------
    Path
        The directory of the installed kernelspec.

    Raises
    ------
    UsageError
        If ``name`` is not a valid name of a kernelspec.
    SubmarineError
        If the directory cannot be written.
    """
    # cost: jupyter_client (0.1 s); `--help` does not need it.
    from jupyter_client.kernelspec import KernelSpecManager

    if not _VALID_NAME.fullmatch(name):
        raise UsageError(
            _('"{name}" is not a valid name of a kernel.').format(name=name[:60]),
            _("Use ASCII letters, digits, '.', '-' and '_', for example submarine."),
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
                _("The kernelspec cannot be written to {target}: {strerror}.").format(
                    target=target, strerror=error.strerror
                ),
                _("Install it for yourself with --user, or name a directory with --prefix."),
            ) from None


@verb_group(
    {
        gettext_noop("Kernels"): {
            "install": gettext_noop("Install a kernel, so that front ends offer it."),
            "list": gettext_noop("List Submarine's kernels that Jupyter offers here."),
            "check": gettext_noop("Check whether a kernel could start."),
            "uninstall": gettext_noop("Remove a Submarine kernel."),
        }
    }
)
def kernel() -> None:
    """Kernels: Python + Submarine on this machine, or a kernel in a container of the cluster."""


@kernel.command(
    "install",
    cls=Verb,
    example=(
        "kernel install --user",
        "kernel install --name gpu4 --memory 8G --vcores 2 --gpu 4 --queue ml --python-env auto",
    ),
)
@option(
    "--name",
    default=NAME,
    metavar="NAME",
    heading="Kernel",
    help=_("Its name [{name}].").format(name=NAME),
)
@option(
    "--display-name",
    metavar="TEXT",
    heading="Kernel",
    help=_("Name in front ends [{display_name}, or the size of its container].").format(
        display_name=DISPLAY_NAME
    ),
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
    help="Setting of the notebooks, for example profile=prod or queue=ml; repeatable.",
)
@option(
    "--default",
    "defaults",
    multiple=True,
    metavar="OPTION=VALUE",
    heading="Its notebooks",
    help="Default of each %submarine run, for example gpu=1 or memory=8G; repeatable.",
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

    With an option for the size or the place of a container, the kernel runs in a container of the
    cluster. A warning is shown if the cluster cannot provide such a container.
    """
    if user + sys_prefix + (prefix is not None) > 1:
        raise UsageError(_("--user, --sys-prefix and --prefix exclude each other."), _("Give one."))
    container = provisioning(name, typed)
    if container is not None and name == NAME:
        raise UsageError(
            _('"{name}" is the name of the kernel on this machine.').format(name=NAME),
            _("Use another name for a kernel in a container, for example --name gpu4."),
        )
    if container is not None and (settings or defaults):
        raise UsageError(
            _("--set and --default are for notebooks whose kernel runs on this machine."),
            _("For a kernel in a container use its own options, for example --queue ml."),
        )
    if display_name is None:
        display_name = DISPLAY_NAME if container is None else container_name(container)
    if not display_name.strip() or not display_name.isprintable():
        raise UsageError(_("--display-name must be one line of text."))
    _reject_foreign(name)
    place = install_kernel(
        name=name,
        display_name=display_name,
        user=user,
        prefix=prefix,
        submarine=typed_settings(settings, defaults),
        container=container,
    )
    problem = _warning(name, container) if container is not None else ""
    if problem:
        frontend.say(_("warning: {problem}").format(problem=problem))
    facts = {"name": place.name, "display_name": display_name, "path": str(place)}
    return Outcome(
        _("Installed the kernel {display_name} as {place}.").format(
            display_name=display_name, place=place
        ),
        value={**facts, "warnings": [problem] if problem else []},
    )


def typed_settings(settings: Sequence[str], defaults: Sequence[str]) -> dict[str, Any]:
    """Return ``metadata.submarine`` for the typed options.

    Parameters
    ----------
    settings, defaults
        Words ``NAME=VALUE`` of ``--set`` and of ``--default``.

    Raises
    ------
    UsageError
        If the kernel or ``%submarine run`` would reject one.
    """
    result: dict[str, Any] = _pairs("--set", settings)
    run: dict[str, Any] = {
        key: {"true": True, "false": False}.get(value.lower(), value)
        for key, value in _pairs("--default", defaults).items()
    }
    if run:
        parse_run(default_words(run, [], "--default"))
        result["run"] = run
    problem = parse_settings(result, "--set").problem
    if problem:
        raise UsageError(problem)
    return result


def _pairs(option: str, words: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise UsageError(
                _("{option}: {word!r} is not NAME=VALUE.").format(option=option, word=word[:60])
            )
        pairs[name.strip()] = value
    return pairs


def _warning(name: str, container: Mapping[str, Any]) -> str:
    """Return why the cluster cannot provide the container; empty if it can."""
    result = check_container(name, container)
    if result.answered and result.problem:
        return _("The kernel {name} cannot start at present. {problem}").format(
            name=name, problem=result.problem
        )
    return result.problem


def _reject_foreign(name: str) -> None:
    """Raise UsageError for the name of an installed kernel that is not Submarine's."""
    other = find_kernelspecs().get(name.lower())
    if other is not None and not other.is_submarine:
        raise UsageError(
            _('"{name}" is the name of a kernel that is not Submarine\'s: {path}.').format(
                name=name[:60], path=other.path
            ),
            _("Use another name, for example --name gpu4."),
        )


for _verb in (list_kernels, check, uninstall):
    kernel.add_command(_verb)
