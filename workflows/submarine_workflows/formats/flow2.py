"""Read a workflow from YAML: the keys of Flow 2.0 and our own. Problems refer to lines.

Only the structure is checked. ``validation`` checks names, conditions and schedules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from submarine_jobs.errors import UsageError
from submarine_jobs.model import parse_duration
from submarine_runtime.translation import _
from submarine_workflows.formats.marked_yaml import Value, load
from submarine_workflows.model import (
    NEED_TIMEOUT,
    Kind,
    Need,
    Node,
    Problem,
    Scalar,
    Workflow,
    WorkflowError,
)

AZKABAN_KEYS = ("name", "type", "config", "dependsOn", "condition", "nodes", "trigger")
EXTENSION_KEYS = ("notebook", "cells", "params", "job", "needs")
_ROOT_KEYS = ("name", "config", "nodes", "trigger", "type", "schedule", "timezone", "notebook")
_KINDS = {kind.value: kind for kind in Kind if kind is not Kind.OTHER}


def read_workflow(text: str, name: str, file: str = "") -> Workflow:
    """Return the workflow that ``text`` describes.

    Parameters
    ----------
    name
        Name of the workflow, unless the text contains one.
    file
        Name of the text, for messages.

    Raises
    ------
    WorkflowError
        With every structural problem.
    """
    root = load(text, file)
    reader = _FlowReader(file)
    workflow = reader.workflow(root, name)
    if reader.problems:
        raise WorkflowError(reader.problems)
    return workflow


def _lines(keys: Mapping[str, Value]) -> dict[str, int]:
    """Return the lines of a node's values, including the items of its maps and lists."""
    found = {key: value.line for key, value in keys.items()}
    for key in ("config", "params", "job"):
        if key in keys and isinstance(inner := keys[key].data, dict):
            found |= {f"{key}.{name}": value.line for name, value in inner.items()}
    if "dependsOn" in keys and isinstance(names := keys["dependsOn"].data, list):
        found |= {f"dependsOn.{one.data}": one.line for one in names if isinstance(one.data, str)}
    return found


class _FlowReader:
    def __init__(self, file: str) -> None:
        self._file = file
        self.problems: list[Problem] = []

    def workflow(self, root: Value, name: str) -> Workflow:
        keys = self._keys(root, _ROOT_KEYS, "A workflow")
        schedule, trigger = keys.get("schedule"), self._trigger(keys.get("trigger"))
        cron = trigger if schedule is None or schedule.data == "" else schedule
        nodes = self._nodes(keys.get("nodes"))
        if not nodes and not self.problems:
            self._add(root.line, _("A workflow needs `nodes:`, a list of at least one step."))
        return Workflow(
            self._text(keys.get("name")) or name,
            nodes,
            self._config(keys.get("config")),
            self._text(cron),
            cron.line if cron is not None else 0,
            self._text(keys.get("timezone")),
            self._file,
            self._text(keys.get("notebook")),
            keys["timezone"].line if "timezone" in keys else 0,
        )

    def _trigger(self, value: Value | None) -> Value | None:
        """Return the cron expression of Azkaban's ``trigger:``, if there is one."""
        if value is None or not isinstance(value.data, dict):
            return None
        schedule = value.data.get("schedule")
        if schedule is None or not isinstance(schedule.data, dict):
            return None
        kind = self._text(schedule.data.get("type"))
        if kind not in ("", "cron"):
            self._add(
                schedule.line,
                _("The schedule of a trigger must have type cron, not `{kind}`.").format(kind=kind),
            )
        return schedule.data.get("value")

    def _nodes(self, value: Value | None) -> tuple[Node, ...]:
        return tuple(self._node(item) for item in self._list(value, "`nodes:`"))

    def _node(self, value: Value) -> Node:
        keys = self._keys(value, (*AZKABAN_KEYS, *EXTENSION_KEYS), "A node")
        name = self._text(keys.get("name"))
        if not name:
            self._add(value.line, _("A node needs a `name:`."))
        kind = self._kind(keys, name or _("this node"), value.line)
        return Node(
            name,
            kind,
            self._text(keys.get("type")),
            value.line,
            self._config(keys.get("config")),
            self._names(keys.get("dependsOn"), "`dependsOn:`"),
            self._text(keys.get("condition")),
            self._nodes(keys.get("nodes")),
            self._text(keys.get("notebook")),
            self._names(keys.get("cells"), "`cells:`"),
            self._scalars(keys.get("params"), "`params:`"),
            self._scalars(keys.get("job"), "`job:`"),
            tuple(self._needs(keys.get("needs"))),
            _lines(keys),
        )

    def _kind(self, keys: Mapping[str, Value], name: str, line: int) -> Kind:
        """Return the kind given by ``type:``, else by the keys of the node."""
        word = self._text(keys.get("type"))
        does = [key for key in ("notebook", "cells", "nodes") if key in keys]
        if len(does) > 1:
            self._add(
                line,
                _("`{name}` has both `{does}:` and `{does_2}:`; use one of them.").format(
                    name=name, does=does[0], does_2=does[1]
                ),
            )
        if word:
            return _KINDS.get(word, Kind.OTHER)
        if does:
            return {"notebook": Kind.NOTEBOOK, "cells": Kind.CELLS, "nodes": Kind.FLOW}[does[0]]
        if all(
            key in (*AZKABAN_KEYS, *EXTENSION_KEYS) for key in keys
        ):  # else a key may be misspelt
            self._add(
                line,
                _("`{name}` has nothing to run: add `notebook:`, `cells:` or `type:`.").format(
                    name=name
                ),
            )
        return Kind.NOOP

    def _needs(self, value: Value | None) -> Iterable[Need]:
        items = value.data if value is not None and isinstance(value.data, list) else [value]
        for item in items:
            if item is None:
                continue
            if isinstance(item.data, str):
                yield Need(item.data, NEED_TIMEOUT, item.line)
                continue
            keys = self._keys(item, ("path", "timeout"), "`needs:`")
            path, limit = self._text(keys.get("path")), self._text(keys.get("timeout"))
            if not path:
                self._add(
                    item.line, _("`needs:` requires a `path:`, such as hdfs:///data/_SUCCESS.")
                )
            yield Need(path, self._seconds(limit, item.line), item.line)

    def _seconds(self, text: str, line: int) -> float:
        if not text:
            return NEED_TIMEOUT
        try:
            return parse_duration(text)
        except (UsageError, ValueError) as exc:
            self._add(line, str(exc))
            return NEED_TIMEOUT

    def _config(self, value: Value | None) -> dict[str, str]:
        found = self._map(value, "`config:`")
        for key, item in found.items():
            if not isinstance(item.data, str):
                self._add(
                    item.line,
                    _("`{key}` under `config:` must be text, not {what}.").format(
                        key=key, what=item.what
                    ),
                )
        return {key: item.data for key, item in found.items() if isinstance(item.data, str)}

    def _scalars(self, value: Value | None, what: str) -> dict[str, Scalar]:
        found = self._map(value, what)
        for key, item in found.items():
            if not isinstance(item.data, str):
                self._add(
                    item.line,
                    _("`{key}` under {what} must be one value, not {item_what}.").format(
                        key=key, what=what, item_what=item.what
                    ),
                )
        return {key: item.scalar for key, item in found.items() if isinstance(item.data, str)}

    def _names(self, value: Value | None, what: str) -> tuple[str, ...]:
        if value is not None and isinstance(value.data, str):
            return (value.data,) if value.data else ()
        names = []
        for item in self._list(value, what):
            if isinstance(item.data, str) and item.data:
                names.append(item.data)
            else:
                self._add(
                    item.line,
                    _("{what} must be a list of names, not of {item_what}.").format(
                        what=what, item_what=item.what
                    ),
                )
        return tuple(names)

    def _text(self, value: Value | None) -> str:
        if value is None:
            return ""
        if isinstance(value.data, str):
            return value.data.strip()
        self._add(value.line, _("One value is expected here, not {what}.").format(what=value.what))
        return ""

    def _list(self, value: Value | None, what: str) -> list[Value]:
        if value is None or value.data == "":
            return []
        if isinstance(value.data, list):
            return value.data
        self._add(
            value.line,
            _("{what} must be a list with a dash before each item, not {value_what}.").format(
                what=what, value_what=value.what
            ),
        )
        return []

    def _map(self, value: Value | None, what: str) -> dict[str, Value]:
        if value is None or value.data == "":
            return {}
        if isinstance(value.data, dict):
            return value.data
        self._add(
            value.line,
            _("{what} must be a map of `key: value`, not {value_what}.").format(
                what=what, value_what=value.what
            ),
        )
        return {}

    def _keys(self, value: Value, known: Iterable[str], what: str) -> dict[str, Value]:
        found = self._map(value, what)
        for key, item in found.items():
            if key not in known:
                near = get_close_matches(key, list(known), 1)
                right = (
                    _("did you mean `{near}`?").format(near=near[0])
                    if near
                    else _("it has: {known}.").format(known=", ".join(known))
                )
                self._add(
                    item.line,
                    _("{what} has no `{key}:`; {right}").format(what=what, key=key, right=right),
                )
        return found

    def _add(self, line: int, sentence: str) -> None:
        self.problems.append(Problem(line, sentence, self._file))
