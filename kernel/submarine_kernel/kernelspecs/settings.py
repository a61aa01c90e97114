"""Settings of a kernel's jobs in its ``kernel.json``: ``metadata.submarine``.

``{"profile": "prod", "queue": "ml", "run": {"gpu": 1, "memory": "8G"}}`` has settings of the
profile by name, and default options of each ``%submarine run``, which the grammar of ``run``
validates. A kernel with invalid settings starts, and ``%submarine run`` reports the error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from submarine_runtime.translation import _

#: Placeholder for which Jupyter inserts the directory of the kernelspec in a command line.
RESOURCE_DIR = "{resource_dir}"
SETTINGS = (
    "backend",
    "hadoop_conf_dir",
    "java_home",
    "job_root",
    "profile",
    "python_env",
    "queue",
    "state_dir",
    "timeout",
    "user",
)
_MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class KernelSettings:
    """The value of ``metadata.submarine``.

    Parameters
    ----------
    settings
        Name of a setting -> value.
    run
        Option of ``run`` -> value.
    source
        The file, for error messages.
    problem
        Why the value is invalid, one sentence; empty if it is valid.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    problem: str = ""

    def apply(self, environ: MutableMapping[str, str]) -> None:
        """Set the environment variables of the settings, for this process and its children."""
        for name, value in self.settings.items():
            environ[f"SUBMARINE_{name.upper()}"] = value


def read_settings(path: str) -> KernelSettings:
    """Read ``metadata.submarine`` of a kernelspec.

    Parameters
    ----------
    path
        Path of ``kernel.json``. If it is empty or contains the placeholder, which some front ends
        do not replace, the settings are empty.
    """
    if not path or RESOURCE_DIR in path:
        return KernelSettings()
    try:
        with Path(path).open("rb") as file:
            raw = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError) as error:
        return KernelSettings(
            source=path, problem=_("{path} cannot be read: {error}.").format(path=path, error=error)
        )
    metadata = raw.get("metadata") if isinstance(raw, dict) else None
    value = metadata.get("submarine", {}) if isinstance(metadata, dict) else {}
    return parse_settings(value, path)


def parse_settings(raw: object, source: str) -> KernelSettings:
    """Validate the value of ``metadata.submarine``."""
    where = f"{source}: metadata.submarine"
    if not isinstance(raw, dict):
        return KernelSettings(
            source=source, problem=_("{where} must be an object.").format(where=where)
        )
    run = raw.get("run", {})
    if not isinstance(run, dict):
        return KernelSettings(
            source=source, problem=_("{where}.run must be an object.").format(where=where)
        )
    settings: dict[str, str] = {}
    for name, value in raw.items():
        if name == "run":
            continue
        if name not in SETTINGS:
            known = ", ".join((*SETTINGS, "run"))
            problem = _("{where} has no setting {name!r}. Valid settings: {known}.").format(
                where=where, name=str(name)[:60], known=known
            )
            return KernelSettings(source=source, problem=problem)
        if not isinstance(value, str) or not value.isprintable():
            problem = _("{where}.{name} must be a string of one line.").format(
                where=where, name=name
            )
            return KernelSettings(source=source, problem=problem)
        settings[name] = value
    return KernelSettings(settings, run, f"{where}.run")
