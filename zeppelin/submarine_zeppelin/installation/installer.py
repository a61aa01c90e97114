"""Puts the group into a Zeppelin installation, and takes it out again.

Touches ``interpreter/submarine`` of the installation and nothing else. Zeppelin's own file of
settings, ``conf/interpreter.json``, is its server's: it is read for what has to be said about it.
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
from submarine_zeppelin.installation import setting_file
from submarine_zeppelin.installation.setting_file import FILE_NAME, GROUP, MODULE

#: Where the jars of Zeppelin's former interpreter are put, out of the sight of its server.
FORMER = "submarine-interpreter-of-zeppelin"


@dataclass(frozen=True)
class Installation:
    """A Zeppelin installation by its home directory."""

    home: Path

    @property
    def folder(self) -> Path:
        """Where the group lies; its name has to be the group's."""
        return self.home / "interpreter" / GROUP

    @property
    def setting(self) -> Path:
        """The file by which the server knows the group."""
        return self.folder / FILE_NAME

    @property
    def former(self) -> Path:
        """Where jars that were in the group's directory wait for an uninstall."""
        return self.home / FORMER

    def jars(self) -> list[Path]:
        """Jars in the group's directory: their setting would win over ours."""
        return sorted(self.folder.glob("*.jar"))


def installation(directory: str | Path) -> Installation:
    """The installation that a person named.

    Raises
    ------
    UsageError
        If there is none.
    """
    home = Path(directory).expanduser().absolute()
    if not (home / "interpreter").is_dir():
        raise UsageError(
            f"{home} is no Zeppelin installation: it has no directory `interpreter`.",
            "Name the directory in which Zeppelin's bin, conf and interpreter lie.",
        )
    return Installation(home)


def install(
    where: Installation, python: str | None, wanted: Mapping[str, str], *, replace: bool
) -> tuple[bool, list[str]]:
    """Install the group, or bring it up to date.

    Returns
    -------
    bool, list of str
        Whether anything was changed, and what the administrator has to know.

    Raises
    ------
    SubmarineError
        If it cannot be.
    """
    runner = setting_file.runner_of(_python(python))
    if jars := where.jars():
        if not replace:
            raise UsageError(
                f"{where.folder} holds Zeppelin's former interpreter ({jars[0].name}), and its "
                "server would go on to take that one.",
                f"With --replace its jars are moved to {where.former}; uninstall puts them back.",
            )
        _move(jars, where.former)
    contents = setting_file.entries(runner, wanted, setting_file.read(where.setting))
    changed = setting_file.write(where.setting, contents)
    return changed or bool(jars), _to_know(where, contents, wanted)


def uninstall(where: Installation) -> list[Path]:
    """Remove the group, and put a former interpreter's jars back; what was removed.

    Raises
    ------
    UsageError
        If it is not installed.
    """
    if not is_ours(setting_file.read(where.setting)):
        raise UsageError(
            f"Submarine is not installed in {where.home}: {where.setting} is "
            + ("not ours." if where.setting.exists() else "not there."),
        )
    try:
        where.setting.unlink()
        if where.former.is_dir():
            _move(sorted(where.former.glob("*.jar")), where.folder)
            where.former.rmdir()
        if not any(where.folder.iterdir()):
            where.folder.rmdir()
    except OSError as error:
        raise _cannot(error) from None
    return [where.setting]


def is_ours(contents: list[dict[str, Any]]) -> bool:
    """Whether a file of settings starts our module."""
    return bool(contents) and all(MODULE in runner_in(entry).split() for entry in contents)


def runner_in(entry: Mapping[str, Any]) -> str:
    """The command that an entry of the file starts."""
    runner = entry.get("runner")
    return str(runner.get("linux", "")) if isinstance(runner, dict) else ""


def _python(named: str | None) -> str:
    """The interpreter to start: not resolved, since a virtual environment's is a link."""
    if named is None:
        return sys.executable
    found = shutil.which(named)
    if found is None:
        raise UsageError(
            f"There is no program {named[:200]!r}.", "Give --python the path of a Python."
        )
    return str(Path(found).absolute())


def _move(files: list[Path], target: Path) -> None:
    try:
        target.mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.move(str(file), str(target / file.name))
    except OSError as error:
        raise _cannot(error) from None


def _cannot(error: OSError) -> SubmarineError:
    return SubmarineError(
        f"{error.filename} cannot be changed: {error.strerror}.",
        "Run this as the account that owns Zeppelin's directory.",
    )


def _to_know(
    where: Installation, contents: list[dict[str, Any]], wanted: Mapping[str, str]
) -> list[str]:
    """What Zeppelin's server does not take over by itself."""
    saved = saved_properties(where)
    if saved is None:
        return ["Restart Zeppelin, and bind the interpreter to a note."]
    ours = {name for entry in contents for name in entry["properties"]}
    said = ["Restart Zeppelin, or the interpreter on its page Interpreters."]
    held = {name for name in wanted if name in saved and saved[name] != wanted[name]}
    new = sorted(ours - saved.keys()) + sorted(held)
    if new:
        said.append(
            "Zeppelin has settings of this group already and takes no new ones from here: set "
            f"{', '.join(new)} on its page Interpreters."
        )
    return said


def saved_properties(where: Installation) -> dict[str, str] | None:
    """The group's properties as Zeppelin's server has them; None: it has none yet."""
    try:
        found = json.loads((where.home / "conf" / "interpreter.json").read_text(encoding="utf-8"))
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


def properties_in_force(where: Installation) -> dict[str, str]:
    """The values with which a process of the group is started: what the server has comes first.

    Raises
    ------
    SubmarineError
        If the file of settings cannot be read.
    """
    found: dict[str, str] = {}
    for entry in setting_file.read(where.setting):
        for name, one in (entry.get("properties") or {}).items():
            if isinstance(one, dict):
                found[name] = _as_text(one.get("defaultValue"))
    return {**found, **(saved_properties(where) or {})}


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
