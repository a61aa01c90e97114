"""Find, read and check ``submarine.toml`` files, with the line of each key.

``loader`` merges the files and the environment.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import stat
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import platformdirs

from submarine_jobs.config.file_safety import check_file, check_site_file
from submarine_jobs.config.locks import LOCKED, Locks, read_locks
from submarine_jobs.errors import ConfigError
from submarine_runtime.translation import _

CONFIG_FILE = "submarine.toml"
SITE_FILE = Path("/etc/jupyter-submarine") / CONFIG_FILE
#: Names another site file where ``SITE_FILE`` does not exist; for tests, because users can set it.
SITE_VARIABLE = "SUBMARINE_SITE_CONFIG"
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
    "gpu_resource": "Resource of GPUs: yarn.io/gpu or nvidia.com/gpu [the nodes' one].",
    "hdfs_wait_minutes": "Minutes that a job waits for an HDFS that does not answer [10].",
    "httpfs": "Address of an HttpFS gateway, https://HOST:14000, used in place of WebHDFS [none].",
    "mlflow_uri": "Address of the MLflow server of `--to mlflow` [MLFLOW_TRACKING_URI].",
    "port_range": "Ports that the processes of a job bind on the nodes, LOW-HIGH [any].",
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

    ``personal``: it is the file of the user or of the site, not of a project, which may come from
    others. ``locks``: the locks of the site's file; None for other files.
    """

    path: Path
    top: Mapping[str, Any]
    profiles: Mapping[str, Mapping[str, Any]]
    lines: Mapping[str, int] = field(default_factory=dict)
    sections: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    personal: bool = False
    locks: Locks | None = None

    def where(self, key: str) -> str:
        """Return ``file:line`` of a dotted key, or the file if the line is not known."""
        line = self.lines.get(key)
        return f"{self.path}:{line}" if line else str(self.path)

    def values(self, profile: str) -> dict[str, tuple[Any, str]]:
        """Return key -> value and ``file:line`` of a profile; its own values override the top's."""
        found: dict[str, tuple[Any, str]] = {}
        for prefix, entries in (
            ("", self.top),
            (f"profiles.{profile}.", self.profiles.get(profile, {})),
        ):
            for key, value in entries.items():
                if key != "default_profile":
                    found[key] = (value, self.where(prefix + key))
        return found

    def locked_values(self, profile: str) -> dict[str, tuple[Any, str]]:
        """Return the part of ``values`` that no other source can change."""
        keys = self.locks.keys_of(profile) if self.locks is not None else set()
        return {key: item for key, item in self.values(profile).items() if key in keys}


def site_file(environ: Mapping[str, str]) -> Path | None:
    """Return the path of the site's file; ``SITE_VARIABLE`` counts only if there is none."""
    try:
        os.lstat(SITE_FILE)
    except (FileNotFoundError, NotADirectoryError):
        named = environ.get(SITE_VARIABLE)
        return Path(named) if named else None
    except OSError:
        pass  # It may exist: `read_site_file` reports the error instead of ignoring the locks.
    return SITE_FILE


def read_site_file(environ: Mapping[str, str]) -> ConfigFile | None:
    """Read the site's file with its locks; None if there is none.

    Raises
    ------
    ConfigError
        If it cannot be read, users other than root can change it, or its content is invalid. It is
        never ignored, because its locks would be lost without a message.
    """
    path = site_file(environ)
    if path is None:
        return None
    # A file that a user names is for tests of that user.
    owners = {0} if path == SITE_FILE else {0, os.getuid()}

    def check(status: os.stat_result) -> None:
        if unsafe := check_site_file(path, status, owners):
            raise ConfigError(
                _("The site file cannot be trusted: {reason}.").format(reason=unsafe.reason),
                unsafe.fix,
            )

    fix = _("As root, make it readable by all users: `chmod 644 {name}`.").format(
        name=shlex.quote(str(path))
    )
    data = _contents(path, check, fix)
    return _parse(path, path.parent, data, personal=True, site=True)


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


def read_files(
    environ: Mapping[str, str], cwd: Path | None, *, site: bool = True
) -> list[ConfigFile]:
    """Read the site's file, the user's file and the project's file, if they exist.

    Parameters
    ----------
    cwd
        Start of the search for the project's file; None: do not read it.
    site
        Read the site's file.

    Raises
    ------
    ConfigError
        If a file cannot be read, other users can change it, or its content is invalid.
    """
    found = []
    if site and (shared := read_site_file(environ)) is not None:
        found.append(shared)
    own = user_file(environ)
    if own is not None and not _is_one_of(found, own[0]):
        found.append(read_file(*own, named=bool(environ.get("SUBMARINE_CONFIG")), personal=True))
    project = project_file(cwd) if cwd is not None else None
    if project is not None and not _is_one_of(found, project[0]):
        found.append(read_file(*project))
    return found


def _is_one_of(files: list[ConfigFile], path: Path) -> bool:
    return any(path.samefile(file.path) for file in files)


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

    def check(status: os.stat_result) -> None:
        if unsafe := check_file(path, status, foreign=named):
            raise ConfigError(
                _("{path} {reason}, and the programs that it names would run as you.").format(
                    path=path, reason=unsafe.reason
                ),
                unsafe.fix,
            )

    return _parse(path, base, _contents(path, check), personal=personal)


def _contents(path: Path, check: Callable[[os.stat_result], None], fix: str = "") -> bytes:
    """Return the content of a file whose status ``check`` has accepted.

    Parameters
    ----------
    fix
        The fix if this user may not read the file.
    """
    try:
        # A pipe would block an open without O_NONBLOCK.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ConfigError(_("{path} is not a regular file.").format(path=path))
            check(status)
            data = file.read(_MAX_BYTES + 1)
    except OSError as exc:
        raise ConfigError(
            _("{path} cannot be read: {error}.").format(path=path, error=exc.strerror),
            fix if isinstance(exc, PermissionError) else "",
        ) from exc
    if len(data) > _MAX_BYTES:
        raise ConfigError(
            _("{path} is larger than 1 MiB, which no configuration file is.").format(path=path)
        )
    return data


def _parse(
    path: Path, base: Path, data: bytes, *, personal: bool, site: bool = False
) -> ConfigFile:
    try:
        text = data.decode("utf-8")
        raw = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise ConfigError(
            _("{path} is not valid TOML: {error}.").format(path=path, error=exc)
        ) from exc
    lines = _lines(text)
    checked = ConfigFile(path, {}, {}, lines)
    if LOCKED in raw and not site:
        raise ConfigError(
            _("{where}: only the site file {site} can lock keys.").format(
                where=checked.where(LOCKED), site=SITE_FILE
            ),
            _("Remove [locked] from this file."),
        )
    _refuse_unknown(checked, raw, (*TOP_KEYS, LOCKED) if site else TOP_KEYS, "")
    locked = raw.pop(LOCKED, {})
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
    found = ConfigFile(path, _flat(checked, raw, "", base), profiles, lines, sections, personal)
    return replace(found, locks=_locks(found, locked)) if site else found


def _locks(file: ConfigFile, table: Any) -> Locks:
    if not isinstance(table, dict):
        raise ConfigError(
            _("{where}: {name} must be a table, [{name}].").format(
                where=file.where(LOCKED), name=LOCKED
            )
        )
    _refuse_unknown(file, table, tuple(field.name for field in fields(Locks)), f"{LOCKED}.")
    values = dict(file.top)
    for name, entries in file.profiles.items():
        values |= {f"profiles.{name}.{key}": value for key, value in entries.items()}
    for name, section in file.sections.items():
        values |= {f"{name}.{key}": value for key, value in section.items()}
    return read_locks(table, file.where, values)


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
            parts = (table + _dotted(key[1])).split(".")
            # `locked.keys = ...` is also the place of the table `locked`.
            for length in range(table.count(".") + 1, len(parts) + 1):
                lines.setdefault(".".join(parts[:length]), number)
    return lines


def _dotted(text: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in text.split("."))
