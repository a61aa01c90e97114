"""Configuration: files, environment and options become one profile, each value with its source.

Rising precedence: built-in default, the user's ``submarine.toml``, the project's (the nearest one
upward from the working directory), environment variables, options of the command. Does not talk
to any cluster and does not look whether a directory holds what it should (``doctor`` does).
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from submarine_jobs.config.file import ConfigFile
from submarine_jobs.config.project_trust import trusted_files
from submarine_jobs.config.values import CONVERTERS, check_setting, hdfs_wait, one_line, python_of
from submarine_jobs.errors import ConfigError, SubmarineError, UsageError
from submarine_jobs.model import Profile

#: Environment variable -> key of a profile. The first group is ours, the second is Hadoop's.
OWN_VARIABLES = {
    "SUBMARINE_BACKEND": "backend",
    "SUBMARINE_HADOOP_CONF_DIR": "hadoop_conf_dir",
    "SUBMARINE_JAVA_HOME": "java_home",
    "SUBMARINE_JOB_ROOT": "job_root",
    "SUBMARINE_PYTHON_ENV": "python_env",
    "SUBMARINE_QUEUE": "queue",
    "SUBMARINE_STATE_DIR": "state_dir",
    "SUBMARINE_TIMEOUT": "timeout",
    "SUBMARINE_USER": "user",
}
SHARED_VARIABLES = {
    "HADOOP_CONF_DIR": "hadoop_conf_dir",
    "HADOOP_USER_NAME": "user",
    "JAVA_HOME": "java_home",
}
#: The profile of the cluster that ``submarine minicluster start`` starts; needs no file.
MINICLUSTER = "minicluster"
DEFAULT = "default"


@dataclass(frozen=True)
class Setting:
    """One value in force and where it came from: ``file:line``, a variable, an option."""

    name: str
    value: Any
    source: str


@dataclass(frozen=True)
class Config:
    """What is in force for one command.

    Parameters
    ----------
    profile
        The chosen cluster, complete.
    settings
        Every key of the profile with its source, and ``profile`` itself.
    files
        The configuration files that were read, lowest precedence first.
    profiles
        Names that ``--profile`` takes here.
    """

    profile: Profile
    settings: tuple[Setting, ...]
    files: tuple[Path, ...] = ()
    profiles: tuple[str, ...] = (DEFAULT,)


def load_config(
    options: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    project: bool = True,
) -> Config:
    """Read files and environment, add ``options``, and give the profile in force.

    Parameters
    ----------
    options
        Keys of a profile, ``profile`` for its name, ``settings.NAME`` for single settings; values
        of None count as not given.
    environ, cwd
        Default: those of this process.
    project
        Read the project's file; False: the user's file alone.

    Raises
    ------
    ConfigError
        If a file cannot be read, holds an unknown key or an impossible value.
    UntrustedConfigError
        If the project's file has keys that the user has not confirmed.
    UsageError
        If no profile has the name that was asked for.
    """
    environ = os.environ if environ is None else environ
    given = {key: value for key, value in (options or {}).items() if value is not None}
    tables = trusted_files(environ, (cwd or _here()) if project else None)
    name, source, explicit = _choose(given, environ, tables)
    found = _from_tables(tables, name)
    named = {key for table in tables for key in table.profiles.get(name, {})} if explicit else set()
    if name == MINICLUSTER and not any(name in table.profiles for table in tables):
        found.update(_minicluster())
        named = set(found)
    found.update(_from_environ(environ, named))
    found.update(_from_options(given))
    values = {key: (value, where) for key, (value, where) in found.items() if value is not None}
    if "backend" not in values and "hadoop_conf_dir" in values:
        values["backend"] = (
            "yarn",
            f"follows from hadoop_conf_dir ({values['hadoop_conf_dir'][1]})",
        )
    profile = _profile(name, values)
    return Config(
        profile=profile,
        settings=(Setting("profile", name, source), *_settings(profile, values)),
        files=tuple(table.path for table in tables),
        profiles=_names(tables),
    )


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as exc:
        raise ConfigError(
            "The working directory does not exist any more.", "Change to another one."
        ) from exc


def _choose(
    given: dict[str, Any], environ: Mapping[str, str], tables: list[ConfigFile]
) -> tuple[str, str, bool]:
    """Name of the profile, its source, and whether somebody chose it by name."""
    if "profile" in given:
        choice, source, explicit = str(given.pop("profile")), "--profile", True
    elif environ.get("SUBMARINE_PROFILE"):
        choice, source, explicit = environ["SUBMARINE_PROFILE"], "SUBMARINE_PROFILE", True
    else:
        choice, source, explicit = DEFAULT, "default", False
        for table in tables:
            if "default_profile" in table.top:
                choice, source = table.top["default_profile"], table.where("default_profile")
    names = _names(tables)
    if choice not in names:
        close = difflib.get_close_matches(choice, names, 1)
        hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(names)}."
        raise UsageError(f"There is no profile {choice[:60]!r} ({source});", hint)
    return choice, source, explicit


def _names(tables: list[ConfigFile]) -> tuple[str, ...]:
    names = {name for table in tables for name in table.profiles} | {DEFAULT, MINICLUSTER}
    return tuple(sorted(names))


def _from_tables(tables: list[ConfigFile], name: str) -> dict[str, tuple[Any, str]]:
    found: dict[str, tuple[Any, str]] = {}
    for table in tables:
        for prefix, entries in (("", table.top), (f"profiles.{name}.", table.profiles.get(name))):
            for key, value in (entries or {}).items():
                if key != "default_profile":
                    found[key] = (value, table.where(prefix + key))
    return found


def _from_environ(environ: Mapping[str, str], named: set[str]) -> dict[str, tuple[Any, str]]:
    """Hadoop's own variables first, ours over them.

    A variable of Hadoop's does not override what a profile says that was chosen by its name:
    ``--profile prod`` must never go to the cluster of some HADOOP_CONF_DIR.
    """
    found: dict[str, tuple[Any, str]] = {}
    for variables in (SHARED_VARIABLES, OWN_VARIABLES):
        for variable, key in variables.items():
            text = environ.get(variable, "")
            if text and not (variables is SHARED_VARIABLES and key in named):
                found[key] = (text, variable)
    return found


def _from_options(given: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
    found: dict[str, tuple[Any, str]] = {}
    for key, value in given.items():
        option = "--conf" if key.startswith("settings.") else "--" + key.replace("_", "-")
        found[key] = (value, option)
    return found


def _minicluster() -> dict[str, tuple[Any, str]]:
    """What a running minicluster of this user says of itself."""
    from submarine_jobs.config.minicluster import minicluster_values

    return {key: (value, "the running minicluster") for key, value in minicluster_values().items()}


def _profile(name: str, values: Mapping[str, tuple[Any, str]]) -> Profile:
    built: dict[str, Any] = {"name": name, "settings": {}}
    for key, (value, where) in values.items():
        try:
            if key.startswith("settings."):
                text = one_line(value)
                check_setting(key.removeprefix("settings."), text, where)
                built["settings"][key.removeprefix("settings.")] = text
                hdfs_wait(built["settings"])
            else:
                built[key] = CONVERTERS[key](value)
        except ConfigError:
            raise
        except (SubmarineError, ValueError) as exc:
            shown, why = str(value)[:80], str(exc).rstrip(".")
            raise ConfigError(f"{key} = {shown!r} from {where} is not valid: {why}.") from exc
    profile = Profile(**built)
    built["python"] = python_of(profile.python_env, profile.python)
    return Profile(**built)


def _settings(profile: Profile, values: Mapping[str, tuple[Any, str]]) -> list[Setting]:
    shown = []
    for field in fields(Profile):
        if field.name in ("name", "settings"):
            continue
        value = getattr(profile, field.name)
        key = "python_env" if field.name == "python" else field.name
        source = values[key][1] if key in values else "default"
        plain = str(value) if isinstance(value, Path) else value
        shown.append(Setting(field.name, plain, source))
    for key, value in sorted(profile.settings.items()):
        shown.append(Setting(f"settings.{key}", value, values[f"settings.{key}"][1]))
    return shown
