"""Keys of a workflow's text with a line of help each, for completion and inspection."""

from __future__ import annotations

import re

from submarine_runtime.translation import _
from submarine_workflows.model import MACROS

ROOT = {
    "nodes": _("The steps: a list with one `- name:` for each."),
    "config": _("Flow parameters, used as ${name} in any node; a run may give other values."),
    "schedule": _("When it runs: Quartz's six or seven fields, 0 30 2 ? * *, or crontab's five."),
    "timezone": _("Time zone of the schedule, such as Europe/Berlin."),
    "trigger": _("Azkaban's form of a schedule: schedule: {type: cron, value: 0 30 2 ? * *}."),
    "notebook": _("The notebook that contains the workflow; a cell sets it automatically."),
}
NODE = {
    "name": _("Name, unique among its neighbours."),
    "notebook": _("Notebook to run, relative to this one: features.ipynb."),
    "cells": _("Cells of this notebook to run, by id, tag or title: [summary]."),
    "params": _('Parameters of the notebook run, as papermill has them: {date: "${date}"}.'),
    "job": _("Options of each %submarine run in it, by name: {worker: 2, gpu: 1}."),
    "needs": _("Data to wait for first: a URL, or {path: hdfs:///data/_SUCCESS, timeout: 6h}."),
    "dependsOn": _("Nodes that must have ended before it: [features]."),
    "condition": _("When it runs after them: all_done, one_failed ..., ${train:accuracy} > 0.9."),
    "type": _("Azkaban's: command, noop, flow; optional with `notebook:` or `cells:`."),
    "config": _("Azkaban's properties: command, retries, retry.backoff, env.NAME, failure.emails."),
    "nodes": _("The steps of an embedded flow."),
    "trigger": _("Azkaban's form of a schedule."),
}
CONFIG = {
    "command": _("Program of a node of type command, without a shell."),
    "retries": _("Number of retries after a failure."),
    "retry.backoff": _("Milliseconds between retries."),
    "working.dir": _("Working directory of its command."),
    "env.": _("env.NAME: an environment variable of its command."),
    "failure.emails": _("Mail addresses that Azkaban notifies of a failure, separated by commas."),
    "success.emails": _("Mail addresses that Azkaban notifies of a success, separated by commas."),
}
_KEY = re.compile(r"(?P<indent>[ ]*)(?P<dash>(?:-[ ]+)*)(?P<word>[\w.-]*)\Z")
_IN_BRACES = re.compile(r"[{,][ ]*(?P<word>[\w.-]*)\Z")
_PARENT = re.compile(r"(?P<indent>[ ]*(?:-[ ]+)*)(?P<key>[\w.-]+):[ ]*(?:#.*)?\Z")
_NAMED = re.compile(r"^[ ]*-?[ ]*\{?[ ]*name:[ ]*[\"']?([\w. -]+?)[\"']?[ ]*(?:[,}#].*)?$", re.M)
_VALUES = {"type": ("command", "noop", "flow"), "condition": MACROS}


def complete(before: str) -> list[str]:
    """Return completions of the last word of ``before``."""
    lines = before.split("\n")
    line = lines[-1]
    depends = re.search(r"dependsOn:[ ]*\[?(?:[^\]]*[ ,])?(?P<word>[\w.-]*)\Z", line)
    if depends:
        known = dict.fromkeys(_NAMED.findall(before))
        return _beginning(known, depends["word"])
    value = re.search(r"(?:\A|[ {,])(?P<key>type|condition):[ ]*(?P<word>\w*)\Z", line)
    if value:
        return _beginning(_VALUES[value["key"]], value["word"])
    return [word if word.endswith(".") else f"{word}:" for word in _keys(lines)]


def _keys(lines: list[str]) -> list[str]:
    line = lines[-1]
    plain = _KEY.fullmatch(line)
    if plain:
        return _beginning(_known_at(lines), plain["word"])
    braces = _IN_BRACES.search(line)
    if braces and re.match(r"[ ]*-[ ]*\{", line) and line.count("{") == line.count("}") + 1:
        return _beginning(NODE, braces["word"])
    return []


def _beginning(known: object, word: str) -> list[str]:
    return [str(item) for item in known if str(item).startswith(word)]  # type: ignore[attr-defined]


def explain(before: str) -> str | None:
    """Return help on the last word of ``before``."""
    found = re.search(r"[\w.$-]*\Z", before)
    word = found[0] if found else ""
    lines = before.split("\n")
    for table in (_known_at(lines), NODE, ROOT, CONFIG):
        for key, text in table.items():
            if word == key or (key.endswith(".") and word.startswith(key)):
                return f"{key}:\n    {text}" if not key.endswith(".") else f"{key}NAME:\n    {text}"
    if word in MACROS:
        return _("{word}\n    A condition: see `condition:`.").format(word=word)
    return None


def _known_at(lines: list[str]) -> dict[str, str]:
    """Return the keys of the map that contains the last line, determined by its indentation."""
    match = _KEY.match(lines[-1])
    own = len(match["indent"]) + len(match["dash"]) if match else _indent(lines[-1])
    for line in reversed(lines[:-1]):
        parent = _PARENT.match(line)
        if parent is None or len(parent["indent"]) >= own:
            continue
        if parent["key"] == "nodes":
            return NODE
        return CONFIG if parent["key"] == "config" and parent["indent"] else {}
    return ROOT


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" -"))
