"""``interpreter-setting.json``: the file by which Zeppelin's server knows the group.

What an administrator has changed in it stays, when it is written again. Finds no directories and
asks nobody (``installing`` does).
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from submarine_jobs.errors import SubmarineError, UsageError
from submarine_zeppelin.interface import ENTRIES, PROPERTIES, Entry, check_given, flag

GROUP = "submarine"
FILE_NAME = "interpreter-setting.json"
MODULE = "submarine_zeppelin"
#: Titles are names of files, but those of commands say nothing. Zeppelin's pages run a paragraph
#: as soon as a list of its form has changed, unless told not to: the dashboard's would run its job
#: before the fields are filled in.
_CONFIG = {"title": True, "runOnSelectionChange": False}
#: Its server runs no empty paragraph unless told to; %submarine alone shows the help.
_CONFIG_OF = {GROUP: {"checkEmpty": False, "title": False}}


def runner_of(python: str) -> str:
    """The command that starts a process of the group.

    Raises
    ------
    UsageError
        If Zeppelin, which takes quotes literally, could not run it.
    """
    if any(not char.isprintable() or char in " \"'\\$`" for char in python):
        raise UsageError(
            f"Zeppelin cannot start {python[:200]!r}: its runners take no blanks and no quotes.",
            "Name another with --python, or a symbolic link to it.",
        )
    return f"{python} -m {MODULE}"


def entries(
    runner: str, wanted: Mapping[str, str], before: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The contents of the file.

    Parameters
    ----------
    wanted
        Values of properties, in place of defaults and of those before.
    before
        The contents that it has now: values, properties and words of an administrator stay.
    """
    _check_names(wanted)
    known = {str(entry.get("name")): entry for entry in before if isinstance(entry, dict)}
    own_names = {item.name for item in PROPERTIES}
    made = []
    for entry in ENTRIES:
        had = known.get(entry.name, {})
        properties = _properties(entry, had.get("properties"), wanted)
        if entry.name == GROUP:  # what is not ours goes where all of the group see it
            for name in sorted(set(wanted) - own_names):
                properties[name] = _property(name, wanted[name], "Set by the administrator.")
        made.append(
            {
                "group": GROUP,
                "name": entry.name,
                "className": entry.class_name,
                "defaultInterpreter": entry.name == GROUP,
                "properties": properties,
                "editor": had.get("editor") or _editor(entry),
                "config": {
                    **_CONFIG,
                    **_CONFIG_OF.get(entry.name, {}),
                    **(had.get("config") or {}),
                },
                # The last entry's is taken, in any version.
                "runner": {"linux": runner},
                **({"option": had["option"]} if "option" in had else {}),
            }
        )
    return made


def _check_names(wanted: Mapping[str, str]) -> None:
    for name, value in wanted.items():
        if not name or any(char.isspace() or not char.isprintable() for char in name):
            raise UsageError(
                f"{name[:60]!r} cannot be a property's name.", "Write --set NAME=VALUE."
            )
        check_given(name, value)


def _properties(entry: Entry, had: object, wanted: Mapping[str, str]) -> dict[str, Any]:
    before = had if isinstance(had, dict) else {}
    made: dict[str, Any] = {}
    for item in PROPERTIES:
        if item.entry != entry.name:
            continue
        value: Any = item.value
        if isinstance(old := before.get(item.name), dict):
            value = old.get("defaultValue", value)
        if item.name in wanted:
            value = wanted[item.name]
            value = flag({item.name: value}, item.name) if item.kind == "checkbox" else value
        made[item.name] = _property(item.name, value, item.description, item.kind)
    for name, old in before.items():
        if name not in made and isinstance(old, dict):
            value = wanted.get(name, old.get("defaultValue", ""))
            made[name] = {**old, "defaultValue": value}
    return made


def _property(name: str, value: Any, description: str, kind: str = "string") -> dict[str, Any]:
    is_variable = bool(name) and all(
        char.isupper() or char.isdigit() or char == "_" for char in name
    )
    return {
        "envName": name if is_variable else None,
        "propertyName": name,
        "defaultValue": value,
        "description": description,
        "type": kind,
    }


def _editor(entry: Entry) -> dict[str, Any]:
    return {
        "language": entry.language,
        "editOnDblClick": False,
        "completionKey": "TAB",
        "completionSupport": True,
    }


def read(path: Path) -> list[dict[str, Any]]:
    """The contents of a file that may not be there.

    Raises
    ------
    SubmarineError
        If it cannot be read, or is not one of Zeppelin's.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SubmarineError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise SubmarineError(
            f"{path} is not JSON ({error}).", "Correct it, or remove it and install again."
        ) from None
    if not isinstance(found, list):
        raise SubmarineError(
            f"{path} has no list of interpreters in it.", "Remove it and install again."
        )
    return [entry for entry in found if isinstance(entry, dict)]


def write(path: Path, contents: list[dict[str, Any]]) -> bool:
    """Write the file, whole or not at all; whether it has changed.

    Raises
    ------
    SubmarineError
        If it cannot be written.
    """
    text = json.dumps(contents, indent=2) + "\n"
    try:
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as draft:
            draft.write(text)
        # The server may be another account's process; a default may hold no secret.
        Path(draft.name).chmod(0o644)
        os.replace(draft.name, path)
    except OSError as error:
        raise SubmarineError(
            f"{error.filename or path} cannot be written: {error.strerror}.",
            "Run this as the account that owns Zeppelin's directory.",
        ) from None
    return True
