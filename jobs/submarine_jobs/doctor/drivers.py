"""Compare the CUDA build of a job's framework with the drivers of the nodes, for the dry run.

The drivers of a cluster's nodes are those that ``doctor --nodes`` has read last; on the local
backend it is the driver of this machine. Nothing is reported where a build or a driver is unknown.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from submarine_jobs.config import make_private
from submarine_jobs.doctor.context import run
from submarine_jobs.doctor.gpu import probe
from submarine_jobs.doctor.nodes import NodeRow
from submarine_jobs.errors import ClusterError
from submarine_jobs.model import JobSpec, Profile, Role
from submarine_jobs.text import one_line
from submarine_runtime.files import replace_file
from submarine_runtime.translation import _

#: Lowest version of NVIDIA's driver for Linux, by release of CUDA: that of the major version from
#: CUDA 11 on, because all of its releases run with the same driver ("minor version compatibility"
#: in NVIDIA's document "CUDA Compatibility").
MINIMUM_DRIVERS = {
    "10.0": "410.48",
    "10.1": "418.39",
    "10.2": "440.33",
    "11": "450.80.02",
    "12": "525",
    "13": "580",
}
#: The package with the CUDA build of a framework.
_PACKAGES = {"pytorch": "torch", "tensorflow": "tensorflow", "keras": "tensorflow", "jax": "jax"}
#: Days for which a driver that was read counts.
_DAYS = 90.0
_VERSION = re.compile(r"\d{1,5}(\.\d{1,5}){0,3}")


def remember_drivers(profile: Profile, rows: Sequence[NodeRow]) -> None:
    """Keep the drivers that ``doctor --nodes`` has read; ignore errors of the disk."""
    now = time.time()
    kept = _read(profile)
    for row in rows:
        version = row.cells.get("driver", "")
        if _VERSION.fullmatch(version):
            kept[row.node] = (version, now)
        elif row.cells.get("GPUs") == "0":
            kept.pop(row.node, None)
    path = _path(profile)
    try:
        make_private(path.parent)
        replace_file(path, json.dumps(kept).encode())
    except OSError:
        return


def cuda_warnings(spec: JobSpec, profile: Profile) -> list[str]:
    """Return one sentence for each build of CUDA that known nodes cannot run, or that is missing.

    Parameters
    ----------
    spec
        A job; only its roles with GPUs count, without those that run in images.
    """
    package = _PACKAGES.get(spec.framework, "")
    roles = [role for role in spec.roles if role.resources.gpus]
    roles = [role for role in roles if (role.docker_image or spec.docker_image) is None]
    if not package or not roles:
        return []
    found = []
    for python in dict.fromkeys(role.python or spec.python for role in roles):
        with suppress(ClusterError):  # A program of this machine does not answer.
            built = probe(python).frameworks
            if package not in built:
                continue
            cuda = built[package]
            if cuda is None:
                sentence = _(
                    "{package} of {python} is built without CUDA, so it will not use the "
                    "requested GPUs: install a build for CUDA."
                ).format(package=package, python=one_line(python))
            else:
                users = [role for role in roles if (role.python or spec.python) == python]
                sentence = _too_old(package, cuda, _drivers(spec.backend, users, profile))
            if sentence:
                found.append(sentence)
    return found


def _too_old(package: str, cuda: str, drivers: Mapping[str, str]) -> str:
    """Return the sentence on nodes whose driver is too old for a release of CUDA; empty if none."""
    major, _separator, minor = cuda.partition(".")
    minimum = MINIMUM_DRIVERS.get(major) or MINIMUM_DRIVERS.get(f"{major}.{minor.split('.')[0]}")
    if minimum is None:
        return ""
    old = {node: one for node, one in drivers.items() if _numbers(one) < _numbers(minimum)}
    if not old:
        return ""
    node, version = next(iter(old.items()))
    return _(
        "{package} is built for CUDA {cuda}, which needs NVIDIA's driver {minimum} or newer, and "
        "{count} of {known} known nodes have an older one ({node}: {version}): install a build for "
        "an older CUDA, or choose other nodes; `submarine doctor --nodes` reads the drivers again."
    ).format(
        package=package,
        cuda=cuda,
        minimum=minimum,
        count=len(old),
        known=len(drivers),
        node=one_line(node),
        version=version,
    )


def _drivers(backend: str, roles: Sequence[Role], profile: Profile) -> dict[str, str]:
    """Return node -> driver of the nodes on which these roles may run."""
    if backend == "local":
        code, text = run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], 5.0)
        version = text.strip().partition("\n")[0].strip()
        return {_("this machine"): version} if not code and _VERSION.fullmatch(version) else {}
    known = sorted(_read(profile).items())
    return {
        node: version
        for node, (version, _moment) in known
        if any(_may_use(role, node.partition(":")[0]) for role in roles)
    }


def _may_use(role: Role, host: str) -> bool:
    chosen = not role.nodes or role.relax or host in role.nodes
    return chosen and host not in role.avoid


def _read(profile: Profile) -> dict[str, tuple[str, float]]:
    """Return node -> driver and time at which it was read, of this profile."""
    found: dict[str, tuple[str, float]] = {}
    try:
        for node, (version, moment) in json.loads(_path(profile).read_bytes()).items():
            fresh = time.time() - float(moment) < _DAYS * 86400.0
            if fresh and _VERSION.fullmatch(str(version)):
                found[str(node)] = (str(version), float(moment))
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
    return found


def _path(profile: Profile) -> Path:
    return profile.state_dir / "nodes" / f"{profile.name}-drivers.json"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
