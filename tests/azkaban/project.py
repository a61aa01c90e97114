"""A project's zip as Azkaban's web server reads it, and what it says of a bad one.

After ``FlowLoaderFactory``, ``NodeBeanLoader``, ``DirectoryYamlFlowLoader`` and, for Flow 1.0, a
part of ``DirectoryFlowLoader``. Shares no code with what makes projects.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

BEAN = {"name", "config", "dependsOn", "type", "condition", "nodes", "trigger"}
MACROS = ("all_success", "all_failed", "all_done", "one_failed", "one_success")
OPERATORS = re.compile(r"&&|\|\||==|!=|>|>=|<|<=")
LITERAL = re.compile(r"\d+|'.*'|\".*\"")
VARIABLE = re.compile(r"\$\{([^:{}]+):([^:{}]+)\}")


class BadProjectError(Exception):
    """What an upload is answered with."""


@dataclass
class Node:
    """A job or an embedded flow."""

    name: str
    type: str
    config: dict[str, str] = field(default_factory=dict)
    depends_on: tuple[str, ...] = ()
    condition: str | None = None
    nodes: tuple[Node, ...] = ()


@dataclass
class Flow:
    """A flow with its parameters."""

    name: str
    nodes: tuple[Node, ...]
    config: dict[str, str] = field(default_factory=dict)

    def walk(self, nodes: tuple[Node, ...] | None = None, path: str = "") -> Iterator[Any]:
        """Every node with its nested id."""
        for node in self.nodes if nodes is None else nodes:
            yield f"{path}{node.name}", node
            yield from self.walk(node.nodes, f"{path}{node.name}:")


def unzip(packed: bytes) -> dict[str, bytes]:
    """The files of a zip."""
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            return {name: archive.read(name) for name in archive.namelist() if name[-1] != "/"}
    except zipfile.BadZipFile:
        raise BadProjectError("Error unzipping file.") from None


def load_project(packed: bytes) -> dict[str, Flow]:
    """The flows of a project by their ids."""
    files = unzip(packed)
    projects = [name for name in files if name.endswith(".project") and "/" not in name]
    if len(projects) > 1:
        raise BadProjectError(
            "Duplicate project YAML files found in the project directory. Only one is allowed."
        )
    if not projects:
        return _jobs(files)
    said = yaml.safe_load(files[projects[0]])
    if not isinstance(said, dict) or "azkaban-flow-version" not in said:
        raise BadProjectError("azkaban-flow-version is not specified in the project YAML file.")
    # Java compares with the double 2.0: neither 2 nor "2.0" equals it.
    version = said["azkaban-flow-version"]
    if not isinstance(version, float) or version != 2.0:
        raise BadProjectError("Invalid azkaban-flow-version in the project YAML file.")
    flows: dict[str, Flow] = {}
    errors: list[str] = []
    for name, content in sorted(files.items()):
        if not name.endswith(".flow"):
            continue
        try:
            flow = _flow(name.rsplit("/", 1)[-1].removesuffix(".flow"), content, errors)
        except (BadProjectError, yaml.YAMLError) as exc:
            errors.append(f"Error loading flow yaml file {name}:{exc}")
            continue
        if flow.name in flows:
            errors.append(f"Duplicate flows found in the project with name {flow.name}")
        flows[flow.name] = flow
    if errors:
        raise BadProjectError("<br>".join(errors))
    return flows


def _flow(name: str, content: bytes, errors: list[str]) -> Flow:
    root = yaml.safe_load(content.decode("utf-8"))
    if not isinstance(root, dict):
        raise BadProjectError(f"Failed to load flow file {name}. Node bean is null .")
    _bean(root)
    nodes = tuple(_node(item) for item in root["nodes"])
    names = [node.name for node in nodes]
    known = all(one in names for node in nodes for one in node.depends_on)
    if len(set(names)) < len(names) or not known or "ROOT" in names:
        raise BadProjectError(
            f"Failed to validate nodeBean for {name}. Duplicate nodes found or dependency "
            "undefined or ROOT used as a name."
        )
    flow = Flow(name, nodes, root.get("config") or {})
    _level(nodes, errors)
    return flow


def _bean(item: dict[str, Any]) -> None:
    for key in item:
        if key not in BEAN:
            raise BadProjectError(f"Unable to find property '{key}' on class: NodeBean")
    for key, value in (item.get("config") or {}).items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise BadProjectError(f"Cannot create property={key}: no text")


def _node(item: dict[str, Any]) -> Node:
    _bean(item)
    return Node(
        item["name"],
        item["type"],
        item.get("config") or {},
        tuple(item.get("dependsOn") or ()),
        item.get("condition"),
        tuple(_node(inner) for inner in item["nodes"]) if item["type"] == "flow" else (),
    )


def _level(nodes: tuple[Node, ...], errors: list[str]) -> None:
    for node in nodes:
        if node.condition is not None:
            _condition(node, {other.name for other in nodes}, errors)
        _level(node.nodes, errors)
    done: set[str] = set()
    waiting = list(nodes)
    while waiting:
        ready = [node for node in waiting if set(node.depends_on) <= done]
        if not ready:
            errors.append(f"Cycles found at {waiting[0].name}")
            return
        done |= {node.name for node in ready}
        waiting = [node for node in waiting if node.name not in done]


def _condition(node: Node, names: set[str], errors: list[str]) -> None:
    """``validateCondition``, with Java's order of alternatives: ``>`` is found before ``>=``."""
    macro = False
    for operand in OPERATORS.split(re.sub(r"\s+|\(|\)", "", node.condition or "")):
        if operand.lower() in MACROS:
            if macro:
                errors.append(f"Invalid condition for {node.name}: cannot combine more than one")
            macro = True
            continue
        word = operand.removeprefix("!")
        match = VARIABLE.fullmatch(word)
        if not word:
            errors.append(f"Invalid condition for {node.name}: operand is an empty string.")
        elif LITERAL.fullmatch(word):
            continue
        elif match is None:
            errors.append(f"Invalid condition for {node.name}: cannot resolve the condition.")
        elif match[1] not in names:
            errors.append(
                f"Invalid condition for {node.name}: {match[1]} doesn't exist in the flow."
            )


def _jobs(files: dict[str, bytes]) -> dict[str, Flow]:
    """Flow 1.0, as far as tests have it: plain ``key=value`` lines."""
    nodes = {}
    for name, content in files.items():
        if name.endswith(".job"):
            lines = [line.partition("=") for line in content.decode().splitlines() if "=" in line]
            config = {key.strip(): value.strip() for key, _, value in lines}
            wants = [one for one in config.pop("dependencies", "").split(",") if one]
            short = name.rsplit("/", 1)[-1].removesuffix(".job")
            nodes[short] = Node(short, config.pop("type"), config, tuple(wants))
    if not nodes:
        raise BadProjectError("No flows found")
    wanted = {one for node in nodes.values() for one in node.depends_on}
    flows = {}
    for end in sorted(set(nodes) - wanted):
        members, waiting = {end}, [end]
        while waiting:
            for one in nodes[waiting.pop()].depends_on:
                if one not in members:
                    members.add(one)
                    waiting.append(one)
        flows[end] = Flow(end, tuple(nodes[name] for name in sorted(members)))
    return flows
