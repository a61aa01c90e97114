"""Find, read and check ``submarine.toml`` files, with the line of each key.

``loader`` merges the files and the environment.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import platformdirs

from submarine_jobs.config.file_safety import check_file
from submarine_jobs.errors import ConfigError
from submarine_runtime.translation import _

CONFIG_FILE = "submarine.toml"
PROFILE_KEYS = (
    "backend",
    "hadoop_conf_dir",
    "java_home",
    "job_root",
    "keytab",
    "principal",
    "proxy_user",
    "python_env",
    "queue",
    "state_dir",
    "timeout",
    "user",
)
#: What ``[profiles.NAME.settings]`` and ``--conf`` take; the backends read them.
KNOWN_SETTINGS = {
    "agent_python": "Python (3.8 or newer) on the nodes that runs agents, or brought [the job's].",
    "am_cds": "Start the application master from a shared class archive: on, off or auto [auto].",
    "am_heartbeat_ms": "Milliseconds between the application master's heartbeats.",
    "am_java_options": "JVM options of the application master.",
    "ca_file": "PEM certificates of the authority of the cluster's HTTPS servers "
    "[ssl-client.xml's].",
    "coordinator_python": "Python on the nodes with skein, for distributed jobs [brought along].",
    "docker_mounts": "Mounts of Docker containers, SOURCE:TARGET:ro, separated by commas.",
    "docker_network": "Network of Docker containers [the cluster's default].",
    "driver_idle_minutes": "Minutes without use after which the driver here ends [480].",
    "driver_java_options": "JVM options of the driver on this machine.",
    "hdfs_wait_minutes": "Minutes that a job waits for an HDFS that does not answer [10].",
    "submit_grace": "Time without a sign of its client after which a job counts as never submitted "
    "[3m].",
    "yarn_command": "Path of Hadoop's `yarn` command.",
}
PATH_KEYS = ("hadoop_conf_dir", "java_home", "keytab", "state_dir")
#: Tables of other Submarine packages and their keys; all values are strings.
SECTIONS = {
    "azkaban": (
        *("url", "user", "project", "timezone", "ca", "password_file"),
        *("outputs", "program"),
    ),
}
_SECTION_PATHS = ("ca", "password_file")
TOP_KEYS = (*PROFILE_KEYS, "default_profile", "profiles", "settings", *SECTIONS)
_MAX_BYTES = 1 << 20
_PROFILE_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}\Z")
_HEADER = re.compile(r"^\s*\[\s*([^\[\]]+?)\s*\]\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*[A-Za-z0-9_"'-]+)*)\s*=""")


@dataclass(frozen=True)
class ConfigFile:
    """Content of a file: values for every profile (``top``), of each profile, and of ``SECTIONS``.

    ``personal``: it is the file of the user, not of a project, which may come from others.
    """

    path: Path
    top: Mapping[str, Any]
    profiles: Mapping[str, Mapping[str, Any]]
    lines: Mapping[str, int] = field(default_factory=dict)
    sections: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    personal: bool = False

    def where(self, key: str) -> str:
        """Return ``file:line`` of a dotted key, or the file if the line is not known."""
        line = self.lines.get(key)
        return f"{self.path}:{line}" if line else str(self.path)


def user_file(environ: Mapping[str, str]) -> tuple[Path, Path] | None:
    """Return the user's file and the base of its relative paths; ``SUBMARINE_CONFIG`` overrides it.

    Raises
    ------
    ConfigError
        If ``SUBMARINE_CONFIG`` names a file that does not exist.
    """
    named = environ.get("SUBMARINE_CONFIG")
    path = (
        Path(named)
        if named
        else Path(platformdirs.user_config_dir("jupyter-submarine")) / CONFIG_FILE
    )
    if named and not path.is_file():
        raise ConfigError(
            _("SUBMARINE_CONFIG names {named}, which is not a file.").format(named=named)
        )
    return (path, path.parent) if path.is_file() else None


def project_file(cwd: Path) -> tuple[Path, Path] | None:
    """Return the nearest ``submarine.toml`` in ``cwd`` or its parents, and its directory."""
    for directory in (cwd, *cwd.parents):
        path = directory / CONFIG_FILE
        if os.path.isfile(path):  # Unlike Path.is_file, without an error where access is denied.
            return path, directory
    return None


def read_files(environ: Mapping[str, str], cwd: Path | None) -> list[ConfigFile]:
    """Read the user's file and the project's file, if they exist.

    Parameters
    ----------
    cwd
        Start of the search for the project's file; None: do not read it.

    Raises
    ------
    ConfigError
        If a file cannot be read, other users can change it, or its content is invalid.
    """
    found = []
    if (own := user_file(environ)) is not None:
        found.append(read_file(*own, named=bool(environ.get("SUBMARINE_CONFIG")), personal=True))
    project = project_file(cwd) if cwd is not None else None
    if project is not None and not (own and project[0].samefile(own[0])):
        found.append(read_file(*project))
    return found


def read_file(path: Path, base: Path, *, named: bool = False, personal: bool = False) -> ConfigFile:
    """Read and check one file; paths in it may be relative to ``base``.

    Parameters
    ----------
    named
        The user names this file, so it may belong to another user.
    personal
        It is the file of the user, not of a project.

    Raises
    ------
    ConfigError
        If it cannot be read, other users can change it, it is not TOML, or it contains an unknown
        key or a value of the wrong type.
    """
    try:
        with path.open("rb") as file:
            if unsafe := check_file(path, os.fstat(file.fileno()), foreign=named):
                raise ConfigError(
                    _("{path} {reason}, and the programs that it names would run as you.").format(
                        path=path, reason=unsafe.reason
                    ),
                    unsafe.fix,
                )
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise ConfigError(
                _("{path} is larger than 1 MiB, which no configuration file is.").format(path=path)
            )
        text = data.decode("utf-8")
        raw = tomllib.loads(text)
    except OSError as exc:
        raise ConfigError(
            _("{path} cannot be read: {error}.").format(path=path, error=exc.strerror)
        ) from exc
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise ConfigError(
            _("{path} is not valid TOML: {error}.").format(path=path, error=exc)
        ) from exc
    lines = _lines(text)
    checked = ConfigFile(path, {}, {}, lines)
    _refuse_unknown(checked, raw, TOP_KEYS, "")
    sections = {
        name: _section(checked, name, raw.pop(name), base) for name in SECTIONS if name in raw
    }
    tables = raw.pop("profiles", {})
    if not isinstance(tables, dict):
        raise ConfigError(
            _("profiles in {path} must be a table: [profiles.NAME].").format(path=path)
        )
    profiles = {}
    for name, entries in tables.items():
        if not isinstance(entries, dict) or not _PROFILE_NAME.match(name):
            raise ConfigError(
                _("{path}: {name!r} in profiles is not a table [profiles.NAME].").format(
                    path=path, name=name[:60]
                )
            )
        _refuse_unknown(checked, entries, (*PROFILE_KEYS, "settings"), f"profiles.{name}.")
        profiles[name] = _flat(checked, entries, f"profiles.{name}.", base)
    return ConfigFile(path, _flat(checked, raw, "", base), profiles, lines, sections, personal)


def _section(file: ConfigFile, name: str, table: Any, base: Path) -> dict[str, str]:
    if not isinstance(table, dict):
        raise ConfigError(
            _("{where}: {name} must be a table, [{name}].").format(
                where=file.where(name), name=name
            )
        )
    _refuse_unknown(file, table, SECTIONS[name], f"{name}.")
    for key, value in table.items():
        if not isinstance(value, str):
            raise ConfigError(
                _("{where}: {key} must be a text in quotes.").format(
                    where=file.where(f"{name}.{key}"), key=key
                )
            )
    return {
        key: str(base / Path(value).expanduser()) if key in _SECTION_PATHS else value
        for key, value in table.items()
    }


def _refuse_unknown(
    file: ConfigFile, entries: Mapping[str, Any], known: tuple[str, ...], prefix: str
) -> None:
    for key in entries:
        if key not in known:
            close = difflib.get_close_matches(key, known, 1)
            hint = (
                _("did you mean {suggestion}?").format(suggestion=close[0])
                if close
                else _("known are {known}.").format(known=", ".join(known))
            )
            raise ConfigError(
                _("{where} has the unknown key {key!r};").format(
                    where=file.where(prefix + key), key=key[:60]
                ),
                hint,
            )


def _flat(file: ConfigFile, entries: Mapping[str, Any], prefix: str, base: Path) -> dict[str, Any]:
    """Return values by key, those of the table ``settings`` as ``settings.NAME``."""
    flat: dict[str, Any] = {}
    for key, value in entries.items():
        if key == "settings":
            if not isinstance(value, dict):
                raise ConfigError(
                    _("{where}: settings must be a table.").format(where=file.where(prefix + key))
                )
            flat.update(_settings(file, value, prefix, "settings."))
        elif not isinstance(value, str) and not (key == "timeout" and _is_number(value)):
            raise ConfigError(
                _("{where}: {key} must be a text in quotes.").format(
                    where=file.where(prefix + key), key=key
                )
            )
        elif key in PATH_KEYS:
            flat[key] = str(base / Path(value).expanduser())
        else:
            flat[key] = value
    return flat


def _settings(file: ConfigFile, table: Mapping[str, Any], prefix: str, path: str) -> dict[str, str]:
    """Flatten nested tables to dotted names: both notations of TOML are equivalent."""
    flat: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat.update(_settings(file, value, prefix, f"{path}{key}."))
        elif isinstance(value, bool):
            flat[path + key] = "true" if value else "false"
        elif isinstance(value, str) or _is_number(value):
            flat[path + key] = str(value)
        else:
            raise ConfigError(
                _("{where}: a setting must be a text, number or boolean.").format(
                    where=file.where(prefix + path + key)
                )
            )
    return flat


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _lines(text: str) -> dict[str, int]:
    """Return the line of each dotted key, from table headers and plain keys; tomllib has none."""
    lines: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _dotted(header[1]) + "."
            lines.setdefault(table[:-1], number)
        elif key := _KEY.match(line):
            lines.setdefault(table + _dotted(key[1]), number)
    return lines


def _dotted(text: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in text.split("."))
