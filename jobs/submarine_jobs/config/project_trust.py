"""Trust of project files: the user confirms a file by its path and a digest of its critical keys.

A ``submarine.toml`` above the working directory may come with the code of others. Keys such as
queue and timeout apply without confirmation. Keys that select programs or addresses apply only
after ``submarine config trust FILE``.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import stat
from collections.abc import Mapping
from pathlib import Path

from submarine_jobs.config.backend_registry import has_other_backends
from submarine_jobs.config.file import KNOWN_SETTINGS, PROFILE_KEYS, ConfigFile, read_files
from submarine_jobs.config.file_safety import make_private
from submarine_jobs.errors import ConfigError
from submarine_jobs.model import default_state_dir
from submarine_jobs.text import printable
from submarine_runtime.files import replace_file
from submarine_runtime.translation import _

#: Keys that need no confirmation; every other key needs it.
HARMLESS = frozenset(
    (
        *("default_profile", "queue", "timeout"),
        *("settings.am_cds", "settings.am_heartbeat_ms", "settings.driver_idle_minutes"),
        *("settings.hdfs_wait_minutes", "settings.submit_grace"),
        *("azkaban.project", "azkaban.timezone"),
    )
)
#: Other keys have no effect: ``loader`` rejects them, except settings of another package's backend.
_EFFECTIVE = frozenset((*PROFILE_KEYS, *KNOWN_SETTINGS))
_SHOWN = 4
_MAX_BYTES = 1 << 16


class UntrustedConfigError(ConfigError):
    """A project's file has keys that the user has not confirmed.

    Attributes
    ----------
    file
        The file as it was read.
    """

    def __init__(self, file: ConfigFile) -> None:
        keys = list(confirmed_keys(file))
        more = _(" and {count} more").format(count=len(keys) - _SHOWN) if len(keys) > _SHOWN else ""
        command = f"submarine config trust {shlex.quote(str(file.path))}"
        super().__init__(
            _(
                "{file} sets {keys}{more}, which decides what runs on this machine or what it "
                "trusts, and you have not confirmed this file as it is now."
            ).format(file=file.path, keys=", ".join(keys[:_SHOWN]), more=more),
            _("Run `{command}` once: it shows the values and asks.").format(command=command),
        )
        self.file = file


def trusted_files(
    environ: Mapping[str, str], cwd: Path | None, *, site: bool = True
) -> list[ConfigFile]:
    """Like ``read_files``, for files that the user trusts.

    Raises
    ------
    UntrustedConfigError
        If the project's file has keys that the user has not confirmed.
    """
    tables = read_files(environ, cwd, site=site)
    for table in tables:
        if not table.personal and confirmed_keys(table) and not is_trusted(table):
            raise UntrustedConfigError(table)
    return tables


def confirmed_keys(file: ConfigFile) -> dict[str, str]:
    """Return the keys of a file that need confirmation, with values; paths are absolute."""
    tables = [("", file.top), *((f"profiles.{name}.", it) for name, it in file.profiles.items())]
    found = {
        prefix + key: str(value)
        for prefix, table in tables
        for key, value in table.items()
        if key not in HARMLESS and _is_effective(key)
    }
    for name, section in file.sections.items():
        for key, value in section.items():
            if f"{name}.{key}" not in HARMLESS:
                found[f"{name}.{key}"] = value
    return dict(sorted(found.items()))


def _is_effective(key: str) -> bool:
    name = key.removeprefix("settings.")
    return name in _EFFECTIVE or (name != key and has_other_backends())


def summary(file: ConfigFile) -> str:
    """Return the file and these keys and values, one per line.

    Values are complete and quoted, so that the user sees all that is confirmed.
    """
    keys = confirmed_keys(file)
    where = printable(file.path, 5000)
    if not keys:
        return _("{where} sets nothing that needs to be confirmed.").format(where=where)
    width = max(map(len, keys))
    quoted = {key: json.dumps(value, ensure_ascii=False) for key, value in keys.items()}
    lines = [f"  {key:<{width}}  {printable(text, len(text))}" for key, text in quoted.items()]
    return "\n".join([_("{where} sets:").format(where=where), *lines])


def is_trusted(file: ConfigFile) -> bool:
    """Whether the user has confirmed this file with these keys and values."""
    try:
        path = _entry(file.path)
        if _is_foreign(path.parent.lstat()):
            return False
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as opened:
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode) or _is_foreign(status):
                return False
            kept = json.loads(opened.read(_MAX_BYTES))
        return bool(kept["digest"] == _digest(file))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def trust(file: ConfigFile) -> None:
    """Remember that the user has confirmed ``file`` as it was read.

    Raises
    ------
    ConfigError
        If the state cannot be written, or other users could change it.
    """
    path = _entry(file.path)
    content = json.dumps({"version": 1, "file": str(file.path), "digest": _digest(file)})
    try:
        make_private(path.parent)
        if _is_foreign(path.parent.lstat()):
            raise ConfigError(
                _("{parent} can be changed by other users, so nothing is remembered there.").format(
                    parent=path.parent
                ),
                _("Run `rm -r {parent}`, and confirm your files again.").format(
                    parent=shlex.quote(str(path.parent))
                ),
            )
        replace_file(path, content.encode(), mode=0o600)
    except OSError as exc:
        raise ConfigError(
            _("{path} cannot be written: {error}.").format(path=path, error=exc.strerror)
        ) from exc


def forget(file: Path) -> bool:
    """Revoke the trust in ``file``; return whether it was trusted."""
    try:
        _entry(file).unlink()
    except FileNotFoundError:
        return False
    except OSError as exc:
        raise ConfigError(
            _("{entry} cannot be removed: {error}.").format(entry=_entry(file), error=exc.strerror)
        ) from exc
    return True


def _entry(file: Path) -> Path:
    """Return the state file; each project file has its own, so that commands need no lock."""
    real = os.path.join(os.path.realpath(file.parent), file.name)
    name = hashlib.sha256(os.fsencode(real)).hexdigest()[:32]
    return default_state_dir() / "trust" / f"{name}.json"


def _is_foreign(status: os.stat_result) -> bool:
    return status.st_uid != os.getuid() or bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _digest(file: ConfigFile) -> str:
    return hashlib.sha256(json.dumps(confirmed_keys(file)).encode()).hexdigest()
