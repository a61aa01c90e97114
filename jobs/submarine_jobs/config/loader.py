"""Merge configuration files, environment variables and options into a profile.

In rising precedence: defaults, the site's file, the user's ``submarine.toml``, the project's file
(the nearest one upward from the working directory), environment variables, options of the command.
Each value keeps its source. The site's file can lock keys: any other value of them is refused.
``doctor`` checks the values against the cluster.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from submarine_jobs.config.file import ConfigFile, read_files
from submarine_jobs.config.locks import Locks, queue_name
from submarine_jobs.config.project_trust import trusted_files
from submarine_jobs.config.values import CONVERTERS, check_setting, hdfs_wait, one_line, python_of
from submarine_jobs.errors import ConfigError, NoClusterError, SubmarineError, UsageError
from submarine_jobs.model import Profile
from submarine_runtime.translation import _

#: Environment variable -> key of a profile: variables of Submarine, then those of Hadoop.
OWN_VARIABLES = {
    "SUBMARINE_BACKEND": "backend",
    "SUBMARINE_HADOOP_CONF_DIR": "hadoop_conf_dir",
    "SUBMARINE_JAVA_HOME": "java_home",
    "SUBMARINE_JOB_ROOT": "job_root",
    "SUBMARINE_KEYTAB": "keytab",
    "SUBMARINE_PRINCIPAL": "principal",
    "SUBMARINE_PYTHON_ENV": "python_env",
    "SUBMARINE_QUEUE": "queue",
    "SUBMARINE_STATE_DIR": "state_dir",
    "SUBMARINE_TIMEOUT": "timeout",
    "SUBMARINE_USER": "user",
}
SHARED_VARIABLES = {
    "HADOOP_CONF_DIR": "hadoop_conf_dir",
    "HADOOP_PROXY_USER": "proxy_user",
    "HADOOP_USER_NAME": "user",
    "JAVA_HOME": "java_home",
}
#: Implicit profile of the cluster that ``submarine minicluster start`` starts.
MINICLUSTER = "minicluster"
DEFAULT = "default"
#: Value of ``proxy_user`` that stands for this property of the Azkaban job.
AZKABAN_USER = "user.to.proxy"
#: Azkaban names in it the file with the properties of the job.
_JOB_PROPERTIES = "JOB_PROP_FILE"
_MAX_PROPERTIES = 1 << 20


@dataclass(frozen=True)
class Setting:
    """Effective value and its source: ``file:line``, a variable or an option.

    ``locked``: the site's file has locked it.
    """

    name: str
    value: Any
    source: str
    locked: bool = False


@dataclass(frozen=True)
class Config:
    """Effective configuration of one command.

    Parameters
    ----------
    profile
        The selected profile.
    settings
        Every key of the profile with its source, and ``profile``.
    files
        The configuration files that were read, lowest precedence first.
    profiles
        Valid names for ``--profile``.
    site
        The site's file; None if there is none.
    locks
        The locks of the site's file.
    """

    profile: Profile
    settings: tuple[Setting, ...]
    files: tuple[Path, ...] = ()
    profiles: tuple[str, ...] = (DEFAULT,)
    site: Path | None = None
    locks: Locks = field(default_factory=Locks)


def load_config(
    options: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    project: bool = True,
    site: bool = True,
    sources: Mapping[str, str] | None = None,
) -> Config:
    """Return the effective configuration from files, environment and ``options``.

    Parameters
    ----------
    options
        Keys of a profile, ``profile`` for its name, ``settings.NAME`` for settings; None: not
        given.
    environ, cwd
        Default: those of this process.
    project
        Read the project's file; False: the files of site and user alone.
    site
        Read the site's file; False only to examine a configuration that it prevents.
    sources
        Key of ``options`` -> its source, if it is not an option of the command.

    Raises
    ------
    ConfigError
        If a file cannot be read, it contains an unknown key or an invalid value, or a key that the
        site's file locks has another value.
    UntrustedConfigError
        If the project's file has keys that the user has not confirmed.
    UsageError
        If there is no profile of the requested name.
    """
    environ = os.environ if environ is None else environ
    given = {key: value for key, value in (options or {}).items() if value is not None}
    sources = sources or {}
    tables = trusted_files(environ, (cwd or _here()) if project else None, site=site)
    name, source, explicit = _choose(given, environ, tables, sources)
    shared = next((table for table in tables if table.locks is not None), None)
    locked = shared.locked_values(name) if shared is not None else {}
    found: dict[str, tuple[Any, str]] = {}
    for table in tables:
        _override(found, table.values(name), locked)
    named = {key for table in tables for key in table.profiles.get(name, {})} if explicit else set()
    if name == MINICLUSTER and not any(name in table.profiles for table in tables):
        _override(found, _minicluster(), locked)
        named = set(found)
    _override(found, _from_environ(environ, named | set(locked)), locked)
    _override(found, _from_options(given, sources), locked)
    values = {key: (value, where) for key, (value, where) in found.items() if value is not None}
    if "backend" not in values and "hadoop_conf_dir" in values:
        values["backend"] = (
            "yarn",
            _("follows from hadoop_conf_dir ({hadoop_conf_dir})").format(
                hadoop_conf_dir=values["hadoop_conf_dir"][1]
            ),
        )
    if values.get("proxy_user", ("", ""))[0] == AZKABAN_USER:
        values["proxy_user"] = _azkaban_user(environ, values["proxy_user"][1])
    profile = _profile(name, values)
    return Config(
        profile=profile,
        settings=(Setting("profile", name, source), *_settings(profile, values, locked)),
        files=tuple(table.path for table in tables),
        profiles=_names(tables),
        site=shared.path if shared is not None else None,
        locks=(shared.locks if shared is not None else None) or Locks(),
    )


def _override(
    found: dict[str, tuple[Any, str]],
    values: Mapping[str, tuple[Any, str]],
    locked: Mapping[str, tuple[Any, str]],
) -> None:
    """Add ``values`` to ``found``.

    Raises
    ------
    ConfigError
        If one of them differs from the locked value of its key.
    """
    for key, (value, source) in values.items():
        if key in locked and value is not None:
            check_locked(key, value, source, locked[key])
        found[key] = (value, source)
    # An equal value of another source does not hide that the key is locked.
    found.update({key: item for key, item in locked.items() if key in values})


def check_locked(key: str, value: Any, source: str, locked: tuple[Any, str]) -> None:
    """Reject a value of a locked key that is not equal to the locked one.

    Parameters
    ----------
    source
        The source of ``value``, as the subject of the message.
    locked
        The locked value and its ``file:line``.
    """
    kept, where = locked
    if _comparable(key, value) != _comparable(key, kept):
        raise ConfigError(
            _("{source} sets {key} to {value!r}, and {where} locks it to {kept!r}.").format(
                source=source, key=key, value=str(value)[:80], where=where, kept=str(kept)[:80]
            ),
            _("Remove that value; the administrator of this machine can change the lock."),
        )


def _comparable(key: str, value: Any) -> Any:
    """Return the value in a form in which equal values are equal: ``30`` and ``30s``."""
    try:
        converted = CONVERTERS[key](value) if key in CONVERTERS else str(value)
    except (SubmarineError, ValueError):
        return str(value)  # `_profile` reports it unless it differs.
    return queue_name(converted) if key == "queue" else converted


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as exc:
        raise ConfigError(
            _("The working directory does not exist any more."), _("Change to another one.")
        ) from exc


def _choose(
    given: dict[str, Any],
    environ: Mapping[str, str],
    tables: list[ConfigFile],
    sources: Mapping[str, str],
) -> tuple[str, str, bool]:
    """Return the name of the profile, its source, and whether it is selected explicitly."""
    if "profile" in given:
        choice, explicit = str(given.pop("profile")), True
        source = sources.get("profile", "--profile")
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
        hint = (
            _("did you mean {suggestion}?").format(suggestion=close[0])
            if close
            else _("known are {names}.").format(names=", ".join(names))
        )
        raise UsageError(
            _("There is no profile {choice!r} ({source});").format(
                choice=choice[:60], source=source
            ),
            hint,
        )
    return choice, source, explicit


def _names(tables: list[ConfigFile]) -> tuple[str, ...]:
    names = {name for table in tables for name in table.profiles} | {DEFAULT, MINICLUSTER}
    return tuple(sorted(names))


def _from_environ(environ: Mapping[str, str], named: set[str]) -> dict[str, tuple[Any, str]]:
    """Read the variables of Hadoop, then those of Submarine, which have precedence.

    Variables of Hadoop do not override an explicitly selected profile: ``--profile prod`` must not
    use the cluster of HADOOP_CONF_DIR. Nor do they override a locked key, because other programs
    need them. ``named`` has the keys of both.
    """
    found: dict[str, tuple[Any, str]] = {}
    for variables in (SHARED_VARIABLES, OWN_VARIABLES):
        for variable, key in variables.items():
            text = environ.get(variable, "")
            if text and not (variables is SHARED_VARIABLES and key in named):
                found[key] = (text, variable)
    return found


def _azkaban_user(environ: Mapping[str, str], where: str) -> tuple[str, str]:
    """Return the user of the Azkaban job, and the source of the value.

    Raises
    ------
    ConfigError
        If this process is not such a job, or the job names no user.
    """
    path = environ.get(_JOB_PROPERTIES, "")
    try:
        with open(path, encoding="latin-1") as stream:
            lines = stream.read(_MAX_PROPERTIES).splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, _equals, value = line.partition("=")
        if key.strip() == AZKABAN_USER and value.strip():
            return value.strip(), _("{where}: {property} of the Azkaban job").format(
                where=where, property=AZKABAN_USER
            )
    raise ConfigError(
        _(
            "proxy_user is {property} ({where}), and this process has no Azkaban job with it."
        ).format(property=AZKABAN_USER, where=where),
        _(
            "Set {property} under `config:` of the workflow, or run the command outside of Azkaban "
            "with another configuration (SUBMARINE_CONFIG)."
        ).format(property=AZKABAN_USER),
    )


def _from_options(
    given: Mapping[str, Any], sources: Mapping[str, str]
) -> dict[str, tuple[Any, str]]:
    found: dict[str, tuple[Any, str]] = {}
    for key, value in given.items():
        option = "--conf" if key.startswith("settings.") else "--" + key.replace("_", "-")
        found[key] = (value, sources.get(key, option))
    return found


def _minicluster() -> dict[str, tuple[Any, str]]:
    """Return the values of the implicit profile ``minicluster``: the running cluster ``default``.

    Raises
    ------
    NoClusterError
        If the minicluster is not running.
    """
    # cost: the minicluster, which only its own profile needs.
    from submarine_minicluster import Minicluster, MiniclusterError

    cluster = Minicluster()
    try:
        state = cluster.status().state
        variables = cluster.env()
    except MiniclusterError as exc:
        raise NoClusterError(
            _("The profile minicluster is requested, but no minicluster was ever started here."),
            _("Start it with `submarine minicluster start`."),
        ) from exc
    if state != "running":
        raise NoClusterError(
            _("The profile minicluster is requested, but the minicluster is {state}.").format(
                state=state
            ),
            _("Start it with `submarine minicluster start`."),
        )
    values = {
        "backend": "yarn",
        "hadoop_conf_dir": variables["HADOOP_CONF_DIR"],
        "java_home": variables["JAVA_HOME"],
    }
    return {key: (value, _("the running minicluster")) for key, value in values.items()}


def _profile(name: str, values: Mapping[str, tuple[Any, str]]) -> Profile:
    built: dict[str, Any] = {"name": name, "settings": {}}
    # The backend is the first: it may have settings of its own.
    for key, (value, where) in sorted(values.items(), key=lambda item: item[0] != "backend"):
        try:
            if key.startswith("settings."):
                text = one_line(value)
                check_setting(key.removeprefix("settings."), text, where, built.get("backend"))
                built["settings"][key.removeprefix("settings.")] = text
                hdfs_wait(built["settings"])
            else:
                built[key] = CONVERTERS[key](value)
        except ConfigError:
            raise
        except (SubmarineError, ValueError) as exc:
            shown, why = str(value)[:80], str(exc).rstrip(".")
            raise ConfigError(
                _("{key} = {shown!r} from {where} is not valid: {why}.").format(
                    key=key, shown=shown, where=where, why=why
                )
            ) from exc
    profile = Profile(**built)
    if profile.keytab is not None and not profile.principal:
        raise ConfigError(
            _("keytab is set ({where}), but not principal.").format(where=values["keytab"][1]),
            _("Set principal to the name in the keytab, name@REALM (`klist -k` lists them)."),
        )
    built["python"] = python_of(profile.python_env, profile.python)
    return Profile(**built)


def _settings(
    profile: Profile, values: Mapping[str, tuple[Any, str]], locked: Collection[str]
) -> list[Setting]:
    shown = []
    for one in fields(Profile):
        if one.name in ("name", "settings"):
            continue
        value = getattr(profile, one.name)
        key = "python_env" if one.name == "python" else one.name
        source = values[key][1] if key in values else "default"
        plain = str(value) if isinstance(value, Path) else value
        shown.append(Setting(one.name, plain, source, key in locked))
    for key, value in sorted(profile.settings.items()):
        name = f"settings.{key}"
        shown.append(Setting(name, value, values[name][1], name in locked))
    return shown


@dataclass(frozen=True)
class SectionValue:
    """Effective value of a section.

    Attributes
    ----------
    where
        ``file:line``, for messages.
    personal
        Whether it is from the user's file, not from a project, which may come from others.
    """

    value: str
    where: str
    personal: bool


def load_section(
    name: str, *, environ: Mapping[str, str] | None = None, cwd: Path | None = None
) -> dict[str, SectionValue]:
    """Return the values of the table ``name``; the project's file overrides the user's.

    Raises
    ------
    ConfigError
        If a file cannot be read or its content is invalid.
    """
    environ = os.environ if environ is None else environ
    return _values(name, trusted_files(environ, cwd or Path.cwd()))


def user_section(name: str, *, environ: Mapping[str, str] | None = None) -> dict[str, SectionValue]:
    """Like ``load_section``, from the user's file only."""
    return _values(name, read_files(os.environ if environ is None else environ, None))


def _values(name: str, tables: list[ConfigFile]) -> dict[str, SectionValue]:
    return {
        key: SectionValue(value, table.where(f"{name}.{key}"), table.personal)
        for table in tables
        for key, value in table.sections.get(name, {}).items()
    }
