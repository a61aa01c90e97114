"""The kernelspec of a kernel in a container, and the options of ``kernel install`` for it.

The grammar of ``run`` validates the options.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from submarine_jobs.commands.grammar import option
from submarine_jobs.errors import UsageError
from submarine_jobs.model import parse_duration
from submarine_jobs.options import check_idle_gpu
from submarine_kernel.remote import KernelRequest, run_options
from submarine_runtime.translation import _, ngettext

PROVISIONER = "submarine-yarn"
F = TypeVar("F", bound=Callable[..., Any])

#: Option of ``kernel install`` -> metavar and help; the meaning is that of the option of ``run``.
_RUN = {
    "memory": ("SIZE", _("Memory of the kernel, 8G or 512M.")),
    "vcores": ("N", _("Virtual cores.")),
    "gpu": ("N", "GPUs."),
    "idle_gpu": (
        "TIME[:ACTION]",
        _("Report idle GPUs after this time (warn), or end the kernel (end) [off]."),
    ),
    "queue": ("NAME", _("Queue of the cluster.")),
    "python_env": ("ENV", _("Its Python: auto, host, path:DIR or archive:URI.")),
    "backend": ("NAME", _("yarn, or local for a process of this machine.")),
    "profile": ("NAME", _("The cluster, by the name of its profile.")),
    "priority": ("N", _("Priority within the queue.")),
    "docker_image": ("IMAGE", _("Docker image with Python and ipykernel.")),
    "node_label": ("LABEL", _("On a node with this label.")),
    "node": ("NODE", _("On this node; repeatable.")),
    "rack": ("RACK", _("In this rack; repeatable.")),
    "avoid_node": ("NODE", _("Not on this node; repeatable.")),
}
_HEADING = _("In a container of the cluster")
_REPEATED = ("node", "rack", "avoid_node")
TIMES = {
    "idle_timeout": _("How long the container stays without a notebook server [1h]."),
    "start_timeout": _("How long to wait for the container [30m]."),
}


def container_options(command: F) -> F:
    """Add the options to a click command, as parameters ``memory`` and so on."""
    for name, text in reversed(TIMES.items()):
        word = f"--{name.replace('_', '-')}"
        command = option(word, name, metavar="TIME", heading=_HEADING, help=text)(command)
    for name, (metavar, text) in reversed(_RUN.items()):
        word, many = f"--{name.replace('_', '-')}", name in _REPEATED
        command = option(word, name, metavar=metavar, multiple=many, heading=_HEADING, help=text)(
            command
        )
    return command


def provisioning(name: str, typed: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return ``metadata.kernel_provisioner``; None if no option asks for a container.

    Raises
    ------
    UsageError
        If ``run`` would reject an option, or a time is invalid.
    """
    given: dict[str, Any] = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in typed.items()
        if value is not None and value != ()
    }
    if not given:
        return None
    run = {key: value for key, value in given.items() if key in _RUN}
    for key in ("vcores", "gpu", "priority"):
        if str(run.get(key, "")).isdigit():
            run[key] = int(run[key])
    check_idle_gpu(run_options(KernelRequest(name, run)).idle_gpu, gpus=bool(run.get("gpu")))
    times = {key: value for key, value in given.items() if key in TIMES}
    for key, value in times.items():
        try:
            parse_duration(value)
        except UsageError as error:
            word = f"--{key.replace('_', '-')}"
            raise UsageError(f"{word}: {error.message}", error.fix) from None
    return {"provisioner_name": PROVISIONER, "config": {"run": run, **times}}


def container_json(spec: Mapping[str, Any], stanza: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``kernel.json`` of a kernel in a container.

    Parameters
    ----------
    spec
        The ``kernel.json`` of a kernel on this machine.
    stanza
        The result of ``provisioning``.
    """
    metadata = {**spec.get("metadata", {}), "kernel_provisioner": dict(stanza)}
    # The connection to the container uses TLS. CurveZMQ would protect sockets of this machine only.
    metadata.pop("supported_encryption", None)
    return {
        **spec,
        # Started only by front ends without support for provisioners; prints an error.
        "argv": [sys.executable, "-m", "submarine_kernel.remote", "-f", "{connection_file}"],
        "interrupt_mode": "signal",
        "metadata": metadata,
    }


def container_name(stanza: Mapping[str, Any]) -> str:
    """Return the display name: ``Python (8G, 4 GPUs, queue ml)``."""
    run = stanza["config"]["run"]
    gpus = run.get("gpu")
    words = [
        str(run.get("memory", "")),
        ngettext("{gpus} GPU", "{gpus} GPUs", gpus).format(gpus=gpus) if gpus else "",
        _("queue {queue}").format(queue=run["queue"]) if "queue" in run else "",
        _("label {node_label}").format(node_label=run["node_label"]) if "node_label" in run else "",
        _("image {docker_image}").format(docker_image=run["docker_image"])
        if "docker_image" in run
        else "",
    ]
    shown = ", ".join(word for word in words if word)
    return _("Python ({shown})").format(shown=shown) if shown else _("Python (container)")
