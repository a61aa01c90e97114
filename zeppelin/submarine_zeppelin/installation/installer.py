"""Install the interpreter group in Zeppelin, and remove it.

Only ``interpreter/submarine`` of the installation is changed. ``conf/interpreter.json``, in which
Zeppelin's server saves settings, is only read.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from submarine_jobs.errors import SubmarineError, UsageError
from submarine_runtime.translation import _
from submarine_zeppelin.installation.setting_file import (
    FILE_NAME,
    GROUP,
    MODULE,
    file_entries,
    read_file,
    runner_command,
    write_file,
)

#: Directory for the jars of Zeppelin's former Submarine interpreter while this group replaces it.
REPLACED = "submarine-interpreter-of-zeppelin"


@dataclass(frozen=True)
class Installation:
    """A Zeppelin installation by its home directory."""

    home: Path

    @property
    def folder(self) -> Path:
        """Directory of the group, which must have the group's name."""
        return self.home / "interpreter" / GROUP

    @property
    def setting(self) -> Path:
        """File that defines the group for the server."""
        return self.folder / FILE_NAME

    @property
    def replaced(self) -> Path:
        """Directory that keeps replaced jars until the group is uninstalled."""
        return self.home / REPLACED

    def jars(self) -> list[Path]:
        """Return jars in the group's directory. Their settings would take precedence."""
        return sorted(self.folder.glob("*.jar"))


def find_installation(directory: str | Path) -> Installation:
    """Return the installation in a directory.

    Raises
    ------
    UsageError
        If the directory is not an installation.
    """
    home = Path(directory).expanduser().absolute()
    if not (home / "interpreter").is_dir():
        raise UsageError(
            _("{home} is not a Zeppelin installation: it has no directory `interpreter`.").format(
                home=home
            ),
            _("Name the directory that contains Zeppelin's bin, conf and interpreter."),
        )
    return Installation(home)


def install(
    installation: Installation, python: str | None, values: Mapping[str, str], *, replace: bool
) -> tuple[bool, list[str]]:
    """Install or update the group.

    Returns
    -------
    bool, list of str
        Whether a file was changed, and notices for the administrator.

    Raises
    ------
    SubmarineError
        If the installation fails.
    """
    runner = runner_command(_python(python))
    if jars := installation.jars():
        if not replace:
            raise UsageError(
                _(
                    "{folder} contains Zeppelin's former interpreter ({jars}), which its "
                    "server would continue to use."
                ).format(folder=installation.folder, jars=jars[0].name),
                _("Use --replace to move its jars to {replaced}; uninstall restores them.").format(
                    replaced=installation.replaced
                ),
            )
        _move(jars, installation.replaced)
    contents = file_entries(runner, values, read_file(installation.setting))
    changed = write_file(installation.setting, contents)
    return changed or bool(jars), _notices(installation, contents, values)


def uninstall(installation: Installation) -> list[Path]:
    """Remove the group, restore replaced jars and return the removed files.

    Raises
    ------
    UsageError
        If the group is not installed.
    """
    if not starts_submarine(read_file(installation.setting)):
        raise UsageError(
            _("Submarine is not installed in {home}: {setting} is ").format(
                home=installation.home, setting=installation.setting
            )
            + (_("of another interpreter.") if installation.setting.exists() else _("missing.")),
        )
    try:
        installation.setting.unlink()
        if installation.replaced.is_dir():
            _move(sorted(installation.replaced.glob("*.jar")), installation.folder)
            installation.replaced.rmdir()
        if not any(installation.folder.iterdir()):
            installation.folder.rmdir()
    except OSError as error:
        raise _write_error(error) from None
    return [installation.setting]


def starts_submarine(contents: list[dict[str, Any]]) -> bool:
    """Whether a settings file starts this package."""
    return bool(contents) and all(MODULE in runner_in(entry).split() for entry in contents)


def runner_in(entry: Mapping[str, Any]) -> str:
    """Return the command that an entry of the file starts."""
    runner = entry.get("runner")
    return str(runner.get("linux", "")) if isinstance(runner, dict) else ""


def _python(named: str | None) -> str:
    """Return the Python to start. Links are kept, because virtual environments use them."""
    if named is None:
        return sys.executable
    found = shutil.which(named)
    if found is None:
        raise UsageError(
            _("There is no program {named!r}.").format(named=named[:200]),
            _("Use --python with the path of a Python."),
        )
    return str(Path(found).absolute())


def _move(files: list[Path], target: Path) -> None:
    try:
        target.mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.move(str(file), str(target / file.name))
    except OSError as error:
        raise _write_error(error) from None


def _write_error(error: OSError) -> SubmarineError:
    return SubmarineError(
        _("{filename} cannot be changed: {strerror}.").format(
            filename=error.filename, strerror=error.strerror
        ),
        _("Run this as the account that owns Zeppelin's directory."),
    )


def _notices(
    installation: Installation, contents: list[dict[str, Any]], values: Mapping[str, str]
) -> list[str]:
    """Return notices about steps that the administrator must take."""
    saved = saved_properties(installation)
    if saved is None:
        return [_("Restart Zeppelin, then bind the interpreter to a note.")]
    names_in_file = {name for entry in contents for name in entry["properties"]}
    notices = [_("Restart Zeppelin, or the interpreter on its page Interpreters.")]
    changed_values = {name for name in values if name in saved and saved[name] != values[name]}
    new = sorted(names_in_file - saved.keys()) + sorted(changed_values)
    if new:
        notices.append(
            _(
                "Zeppelin has saved settings of this group and ignores new defaults: set {new} "
                "on its page Interpreters."
            ).format(new=", ".join(new))
        )
    return notices


def saved_properties(installation: Installation) -> dict[str, str] | None:
    """Return the properties that Zeppelin's server has saved for the group; None if none."""
    try:
        found = json.loads(
            (installation.home / "conf" / "interpreter.json").read_text(encoding="utf-8")
        )
        settings = found["interpreterSettings"].values()
        groups = [one["properties"] for one in settings if one.get("group") == GROUP]
        pairs = {name: one for group in groups for name, one in group.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if not groups:
        return None
    return {
        name: _as_text(one.get("value") if isinstance(one, dict) else one)
        for name, one in pairs.items()
    }


def effective_properties(installation: Installation) -> dict[str, str]:
    """Return the properties with which a process starts. Saved ones override those of the file.

    Raises
    ------
    SubmarineError
        If the settings file cannot be read.
    """
    found: dict[str, str] = {}
    for entry in read_file(installation.setting):
        for name, one in (entry.get("properties") or {}).items():
            if isinstance(one, dict):
                found[name] = _as_text(one.get("defaultValue"))
    return {**found, **(saved_properties(installation) or {})}


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
