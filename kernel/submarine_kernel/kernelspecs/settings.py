"""What a kernel's own ``kernel.json`` says about jobs: ``metadata.submarine``.

``{"profile": "prod", "queue": "ml", "run": {"gpu": 1, "memory": "8G"}}``: settings of the profile
by their names, and options that each ``%submarine run`` begins with. Knows no option of ``run``;
what is wrong here is said when ``%submarine run`` is used, since a kernel must start.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: As Jupyter writes the directory of a kernelspec into its command line.
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
class OwnSpec:
    """What was found.

    Parameters
    ----------
    settings
        Name of a setting -> value.
    run
        Option of ``run`` -> value.
    source
        The file, for sentences.
    problem
        What is wrong with it, one sentence; empty: nothing.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    problem: str = ""

    def apply(self, environ: MutableMapping[str, str]) -> None:
        """Set the variables of the settings: of this kernel and of what it starts."""
        for name, value in self.settings.items():
            environ[f"SUBMARINE_{name.upper()}"] = value


def read_own_spec(path: str) -> OwnSpec:
    """Read ``metadata.submarine`` of a kernelspec.

    Parameters
    ----------
    path
        Of ``kernel.json``; empty, or with a placeholder that the front end did not fill in: there
        is nothing to read.
    """
    if not path or RESOURCE_DIR in path:
        return OwnSpec()
    try:
        with Path(path).open("rb") as file:
            raw = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError) as error:
        return OwnSpec(source=path, problem=f"{path} cannot be read: {error}.")
    metadata = raw.get("metadata") if isinstance(raw, dict) else None
    given = metadata.get("submarine", {}) if isinstance(metadata, dict) else {}
    return own_spec(given, path)


def own_spec(given: object, source: str) -> OwnSpec:
    """Judge the value of ``metadata.submarine``."""
    where = f"{source}: metadata.submarine"
    if not isinstance(given, dict):
        return OwnSpec(source=source, problem=f"{where} must be an object.")
    run = given.get("run", {})
    if not isinstance(run, dict):
        return OwnSpec(source=source, problem=f"{where}.run must be an object.")
    settings: dict[str, str] = {}
    for name, value in given.items():
        if name == "run":
            continue
        if name not in SETTINGS:
            known = ", ".join((*SETTINGS, "run"))
            problem = f"{where} has no {str(name)[:60]!r}; it has {known}."
            return OwnSpec(source=source, problem=problem)
        if not isinstance(value, str) or not value.isprintable():
            return OwnSpec(source=source, problem=f"{where}.{name} must be a text of one line.")
        settings[name] = value
    return OwnSpec(settings, run, f"{where}.run")
