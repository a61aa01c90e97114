"""Read and write ``interpreter-setting.json``, which defines the group for Zeppelin's server.

Changes of an administrator in the file are kept when the file is written again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from submarine_jobs.errors import SubmarineError, UsageError
from submarine_runtime.files import replace_file
from submarine_runtime.translation import _
from submarine_zeppelin.interface import ENTRIES, PROPERTIES, Entry, check_value, flag_property

GROUP = "submarine"
FILE_NAME = "interpreter-setting.json"
MODULE = "submarine_zeppelin"
#: Titles are file names and are shown, except for commands. ``runOnSelectionChange``: otherwise
#: Zeppelin's pages run a paragraph when a list in its form changes, and the dashboard would start
#: its job before the fields are complete.
_CONFIG = {"title": True, "runOnSelectionChange": False}
#: ``checkEmpty``: otherwise the server does not run an empty %submarine, which shows the help.
_CONFIG_OF = {GROUP: {"checkEmpty": False, "title": False}}


def runner_command(python: str) -> str:
    """Return the command that starts an interpreter process.

    Raises
    ------
    UsageError
        If Zeppelin, which does not interpret quotes, cannot run the command.
    """
    if any(not char.isprintable() or char in " \"'\\$`" for char in python):
        raise UsageError(
            _(
                "Zeppelin cannot start {python!r}: runners must not contain blanks or quotes."
            ).format(python=python[:200]),
            _("Use another path with --python, such as a symbolic link."),
        )
    return f"{python} -m {MODULE}"


def file_entries(
    runner: str, values: Mapping[str, str], before: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the contents of the file.

    Parameters
    ----------
    values
        Values of properties, which override defaults and existing values.
    before
        Existing contents. Changes of the administrator are kept.
    """
    _check_names(values)
    entries_by_name = {str(entry.get("name")): entry for entry in before if isinstance(entry, dict)}
    own_names = {item.name for item in PROPERTIES}
    result = []
    for entry in ENTRIES:
        existing = entries_by_name.get(entry.name, {})
        properties = _properties(entry, existing.get("properties"), values)
        if entry.name == GROUP:  # all interpreters of the group get these
            for name in sorted(set(values) - own_names):
                properties[name] = _property(name, values[name], _("Set by the administrator."))
        result.append(
            {
                "group": GROUP,
                "name": entry.name,
                "className": entry.class_name,
                "defaultInterpreter": entry.name == GROUP,
                "properties": properties,
                "editor": existing.get("editor") or _editor(entry),
                "config": {
                    **_CONFIG,
                    **_CONFIG_OF.get(entry.name, {}),
                    **(existing.get("config") or {}),
                },
                # All versions of Zeppelin use the runner of the last entry.
                "runner": {"linux": runner},
                **({"option": existing["option"]} if "option" in existing else {}),
            }
        )
    return result


def _check_names(values: Mapping[str, str]) -> None:
    for name, value in values.items():
        if not name or any(char.isspace() or not char.isprintable() for char in name):
            raise UsageError(
                _("{name!r} is not a valid property name.").format(name=name[:60]),
                _("Write --set NAME=VALUE."),
            )
        check_value(name, value)


def _properties(entry: Entry, existing: object, values: Mapping[str, str]) -> dict[str, Any]:
    before = existing if isinstance(existing, dict) else {}
    result: dict[str, Any] = {}
    for item in PROPERTIES:
        if item.entry != entry.name:
            continue
        value: Any = item.value
        if isinstance(old := before.get(item.name), dict):
            value = old.get("defaultValue", value)
        if item.name in values:
            value = values[item.name]
            value = (
                flag_property({item.name: value}, item.name) if item.kind == "checkbox" else value
            )
        result[item.name] = _property(item.name, value, item.description, item.kind)
    for name, old in before.items():
        if name not in result and isinstance(old, dict):
            value = values.get(name, old.get("defaultValue", ""))
            result[name] = {**old, "defaultValue": value}
    return result


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


def read_file(path: Path) -> list[dict[str, Any]]:
    """Return the contents of a file, or an empty list if it does not exist.

    Raises
    ------
    SubmarineError
        If it cannot be read or has another format.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SubmarineError(
            _("{path} cannot be read: {strerror}.").format(path=path, strerror=error.strerror)
        ) from None
    except ValueError as error:
        raise SubmarineError(
            _("{path} is not valid JSON ({error}).").format(path=path, error=error),
            _("Correct it, or remove it and install again."),
        ) from None
    if not isinstance(found, list):
        raise SubmarineError(
            _("{path} does not contain a list of interpreters.").format(path=path),
            _("Remove it and install again."),
        )
    return [entry for entry in found if isinstance(entry, dict)]


def write_file(path: Path, contents: list[dict[str, Any]]) -> bool:
    """Replace the file atomically and return whether its contents changed.

    Raises
    ------
    SubmarineError
        If the file cannot be written.
    """
    text = json.dumps(contents, indent=2) + "\n"
    try:
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        # The server may run as another account. Defaults contain no secrets.
        replace_file(path, text.encode(), mode=0o644)
    except OSError as error:
        raise SubmarineError(
            _("{filename} cannot be written: {strerror}.").format(
                filename=error.filename or path, strerror=error.strerror
            ),
            _("Run this as the account that owns Zeppelin's directory."),
        ) from None
    return True
