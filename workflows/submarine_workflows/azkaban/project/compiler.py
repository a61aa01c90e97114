"""Compile a workflow to an Azkaban Flow 2.0 project; the output is reproducible.

The commands of a node become properties of a ``command`` node. Nodes and properties of Azkaban are
passed through. All values are checked for secrets. No server is contacted.

Notes
-----
A project has exactly one ``.project`` file with ``azkaban-flow-version: 2.0``; each ``NAME.flow``
is a flow; the files beside them are the working directory of a node (``FlowLoaderFactory``,
``NodeBeanLoader``, ``JobRunner``). Azkaban accepts only text as values, so all are quoted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from submarine_jobs.model import NODE_VARIABLE, RUN_VARIABLE, TAGS_VARIABLE, WORKFLOW_VARIABLE
from submarine_runtime.translation import _
from submarine_workflows.azkaban.project.archive import Project
from submarine_workflows.azkaban.project.command_values import VERB, with_references
from submarine_workflows.azkaban.project.condition import to_azkaban_condition
from submarine_workflows.azkaban.project.secrets import find_secrets
from submarine_workflows.azkaban.run_ids import RUN_PREFIX
from submarine_workflows.model import (
    ENVIRONMENT,
    EXECUTION,
    ExecutionSettings,
    Kind,
    Node,
    Problem,
    Workflow,
    WorkflowError,
    commands_of,
    join_command,
    needs_of,
    path_of,
    properties_of,
)
from submarine_workflows.project_files import collect_files, is_url

PROJECT_FILE = b"azkaban-flow-version: 2.0\n"
#: Azkaban finds the applications of an execution by these tags, as for its own job types.
YARN_TAGS = tuple(
    f"azkaban.flow.{name}:${{azkaban.flow.{name}}}" for name in ("execid", "flowid", "projectname")
)
_NAME = re.compile(r"[\w-][\w.-]*(?: [\w.-]+)*", re.ASCII)
#: Database columns have 128 characters, also for the name of the flow file.
_MAX_NAME = 128 - len(".flow")
_PARAMETER = re.compile(r"\$\{([^{}:]+)\}")
_TYPES = {Kind.NOTEBOOK: "command", Kind.CELLS: "command"}
#: PyYAML may be built without libyaml, which is ten times faster.
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_TAG = "tag:yaml.org,2002:"
_WIDTH = 1 << 30


def compile_workflow(
    workflow: Workflow,
    root: Path,
    settings: ExecutionSettings | None = None,
    *,
    extra: Sequence[str] = (),
    trigger: Any = None,
) -> Project:
    """Return the project of a valid workflow.

    Parameters
    ----------
    root
        Folder of the workflow file, the base of notebook paths.
    extra
        Patterns of further files to include.
    trigger
        Azkaban's ``trigger:`` of the flow, as it was written.

    Raises
    ------
    WorkflowError
        With every node that Azkaban would reject, and every value that looks like a secret.
    UsageError
        If a required file cannot be included.
    """
    compiler = _Compiler(workflow, settings or ExecutionSettings())
    flow = compiler.flow(trigger)
    if compiler.problems:
        raise WorkflowError(compiler.problems)
    collected = collect_files(workflow, root, compiler.settings.notebook, extra)
    files = {
        **collected,
        **_folder(compiler.settings.outputs),
        f"{workflow.name}.project": PROJECT_FILE,
        f"{workflow.name}.flow": flow_text(flow),
    }
    return Project(workflow.name, (workflow.name,), files)


def environment(flow: str) -> dict[str, str]:
    """Return the properties that pass workflow and run to a node's command."""
    return {
        f"{ENVIRONMENT}{WORKFLOW_VARIABLE}": flow,
        f"{ENVIRONMENT}{RUN_VARIABLE}": f"{RUN_PREFIX}{EXECUTION}",
        f"{ENVIRONMENT}{TAGS_VARIABLE}": ",".join(YARN_TAGS),
    }


def job_file_environment() -> dict[str, str]:
    """Return the same for Flow 1.0 jobs; Azkaban sets their flow and node as parameters."""
    return {
        **environment("${azkaban.flow.flowid}"),
        f"{ENVIRONMENT}{NODE_VARIABLE}": "${azkaban.job.id}",
    }


def unsupported_value(value: str | None) -> str | None:
    """Return why Azkaban does not pass a parameter's value unchanged; None if it does."""
    if value is not None and "$(" in value:
        return "contains `$(`, which starts a JEXL expression in Azkaban"
    return None


class _Compiler:
    def __init__(self, workflow: Workflow, settings: ExecutionSettings) -> None:
        self._workflow = workflow
        self.settings = settings
        self.problems = find_secrets(workflow)
        if not _NAME.fullmatch(workflow.name):
            sentence = _(
                "`{workflow}` is not a valid flow name; use letters, digits, `.`, `_`, `-` and "
                "single spaces."
            ).format(workflow=workflow.name)
            self.problems.append(Problem(0, sentence, workflow.file))
        elif len(workflow.name) > _MAX_NAME:
            sentence = _(
                "`{workflow}` has {count} characters, and Azkaban allows {longest} for a flow: "
                "use a shorter name."
            ).format(workflow=workflow.name, count=len(workflow.name), longest=_MAX_NAME)
            self.problems.append(Problem(0, sentence, workflow.file))

    def flow(self, trigger: Any) -> dict[str, Any]:
        """Return the root of the ``.flow`` file."""
        workflow = self._workflow
        config = {**environment(workflow.name), **workflow.config}
        root: dict[str, Any] = {} if trigger is None else {"trigger": trigger}
        return {**root, "config": config, "nodes": self._level(workflow.nodes, ())}

    def _level(self, nodes: Sequence[Node], flows: tuple[Node, ...]) -> list[dict[str, Any]]:
        return [self._node(node, flows) for node in nodes]

    def _node(self, node: Node, flows: tuple[Node, ...]) -> dict[str, Any]:
        entry: dict[str, Any] = {"name": node.name, "type": self._type(node, flows)}
        if node.depends_on:
            entry["dependsOn"] = list(node.depends_on)
        if node.condition:
            entry["condition"] = self._condition(node)
        config = self._config(node, flows)
        if config:
            entry["config"] = config
        if node.kind is Kind.FLOW:
            entry["nodes"] = self._level(node.nodes, (*flows, node))
        return entry

    def _type(self, node: Node, flows: tuple[Node, ...]) -> str:
        if node.kind is Kind.NOOP and needs_of(node, flows):
            return "command"  # it awaits data
        return _TYPES.get(node.kind, node.type or node.kind.value)

    def _condition(self, node: Node) -> str:
        try:
            return to_azkaban_condition(node.condition)
        except ValueError as exc:
            self._add(node, f"`{node.name}`: {exc}")
            return ""

    def _config(self, node: Node, flows: tuple[Node, ...]) -> dict[str, str]:
        own = dict(node.config)
        if node.kind is Kind.FLOW:
            return own
        values: dict[str, str] = {}
        lines = self._lines(node, flows, values)
        if node.kind is not Kind.OTHER:
            node_commands = [own.pop(key) for key in _command_keys(own)]
            if node_commands and node.kind is not Kind.COMMAND:
                self._add(
                    node,
                    _("`{node}` is not a command node but has a `command` under `config:`.").format(
                        node=node.name
                    ),
                )
            lines += node_commands if node.kind is Kind.COMMAND else []
        if not lines and node.kind is Kind.NOOP:
            return own
        numbered = {f"command.{number}" if number else "command": line
                    for number, line in enumerate(lines)}  # fmt: skip
        name = {f"{ENVIRONMENT}{NODE_VARIABLE}": path_of(node, flows)}
        # The values last: a node's `config:` must not replace them.
        passed = {f"{ENVIRONMENT}{variable}": value for variable, value in values.items()}
        return {**numbered, **name, **own, **passed}

    def _lines(self, node: Node, flows: tuple[Node, ...], values: dict[str, str]) -> list[str]:
        """Return the lines before a node's own command: awaited data, and the run of a notebook.

        ``values`` receives the variables that these commands refer to.
        """
        needs = needs_of(node, flows)
        if node.kind is Kind.OTHER:
            if needs:
                self._add(
                    node,
                    _(
                        "`{node}` has type `{type}`, which cannot wait for data: move its "
                        "`needs:` to a noop node that it depends on."
                    ).format(node=node.name, type=node.type),
                )
            return []
        commands = commands_of(self._workflow, node, flows, self.settings)
        if node.kind is Kind.COMMAND:
            commands = commands[: len(needs)]
        program = list(self.settings.program)
        lines = []
        for words in commands:
            own = words[len(program) :]
            rest = with_references(own, values)
            verb = [] if rest == own else ["workflow", VERB]
            try:
                lines.append(join_command([*program, *verb, *rest]))
            except ValueError as exc:
                self._add(node, f"`{node.name}`: {exc}")
            if (why := unsupported_value(" ".join(words))) is not None:
                self._add(node, _("A command of `{node}` {why}.").format(node=node.name, why=why))
        self._values(node, values.values(), properties_of(self._workflow, node, flows))
        return lines

    def _values(self, node: Node, texts: Iterable[str], values: Mapping[str, str]) -> None:
        """Check that Azkaban's parameter substitution preserves the values."""
        for name in dict.fromkeys(_PARAMETER.findall("\n".join(texts))):
            if (why := unsupported_value(values.get(name))) is not None:
                self._add(
                    node,
                    _("`{node}` uses ${{{name}}}; its value {why}.").format(
                        node=node.name, name=name, why=why
                    ),
                )

    def _add(self, node: Node, sentence: str) -> None:
        self.problems.append(Problem(node.line, sentence, self._workflow.file))


def _folder(outputs: str) -> dict[str, bytes]:
    """Return a file in the folder for executed notebooks: zip files have no empty folders."""
    if not outputs or "${" in outputs or is_url(outputs) or outputs.startswith(("/", "..")):
        return {}
    return {f"{outputs.rstrip('/')}/ABOUT": b"Executed notebooks of this run.\n"}


def _command_keys(config: Mapping[str, str]) -> list[str]:
    """Return ``command``, ``command.1`` and so on, as far as Azkaban runs them."""
    keys = ["command"] if "command" in config else []
    while keys and f"command.{len(keys)}" in config:
        keys.append(f"command.{len(keys)}")
    return keys


def flow_text(root: Mapping[str, Any]) -> bytes:
    """Return a flow as YAML: keys in the given order, texts in double quotes, no anchors."""
    text = yaml.serialize(_yaml_node(root), Dumper=_DUMPER, allow_unicode=True, width=_WIDTH)
    return str(text).encode("utf-8")


def _yaml_node(value: Any) -> yaml.Node:
    # PyYAML's representers take twice the time of this function.
    if isinstance(value, str):
        return yaml.ScalarNode(_TAG + "str", value, style='"')
    if isinstance(value, Mapping):
        items = [
            (yaml.ScalarNode(_TAG + "str", key), _yaml_node(item)) for key, item in value.items()
        ]
        return yaml.MappingNode(_TAG + "map", items, flow_style=False)
    if isinstance(value, (list, tuple)):
        nodes = [_yaml_node(item) for item in value]
        return yaml.SequenceNode(_TAG + "seq", nodes, flow_style=False)
    plain = yaml.compose(json.dumps(value))  # A number or a truth value.
    assert plain is not None
    return plain
