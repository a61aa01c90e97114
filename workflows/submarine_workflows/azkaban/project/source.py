"""Create the project for a path: workflows are compiled, Azkaban's own projects are unchanged.

Notes
-----
A ``.flow`` file is included unchanged if it has only Azkaban's keys and no command that calls
``submarine``. A folder of Flow 1.0 job files is included unchanged, with one additional properties
file if a job calls ``submarine``. A zip file is not unpacked.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _
from submarine_workflows.azkaban.project.archive import Project
from submarine_workflows.azkaban.project.compiler import (
    PROJECT_FILE,
    compile_workflow,
    job_file_environment,
)
from submarine_workflows.azkaban.project.secrets import find_secrets
from submarine_workflows.formats import Value, load, open_workflow
from submarine_workflows.model import (
    ExecutionSettings,
    Kind,
    Node,
    Workflow,
    WorkflowError,
    check,
    split_command,
)
from submarine_workflows.project_files import ProjectFiles

#: Default location of executed notebooks: must not overwrite the originals.
OUTPUTS = "executed"
ORIGIN_FILE = "00-submarine.properties"
#: Keys of a flow's root that Azkaban supports.
_AZKABAN_ROOT_KEYS = ("config", "nodes", "trigger", "dependsOn", "condition", "type", "name")


def project_of(
    path: Path, settings: ExecutionSettings | None = None, *, extra: tuple[str, ...] = ()
) -> tuple[Workflow, Project]:
    """Return the workflow in ``path``, and its project for Azkaban.

    Raises
    ------
    WorkflowError
        With every problem of the workflow.
    UsageError
        If there is no workflow, or a required file cannot be included.
    """
    workflow = open_workflow(path)
    problems = check(workflow)
    if problems:
        raise WorkflowError(problems)
    if path.is_dir() or path.suffix == ".zip":
        return workflow, _unchanged_project(workflow, path)
    keys = _keys(path.read_text(encoding="utf-8-sig")) if _may_be_azkaban_format(workflow) else None
    trigger = keys.get("trigger") if keys else _trigger(path)
    is_azkaban_format = keys is not None and all(key in _AZKABAN_ROOT_KEYS for key in keys)
    if is_azkaban_format and not extra and not _calls_submarine(workflow):
        return workflow, _azkaban_flow_project(workflow, path)
    plain = _plain(trigger) if trigger is not None else None
    project = compile_workflow(workflow, path.parent, settings, extra=extra, trigger=plain)
    return workflow, project


def has_trigger(path: Path) -> bool:
    """Return whether the flow contains a trigger, which excludes a separate schedule."""
    return path.is_file() and path.suffix != ".zip" and _trigger(path) is not None


def _unchanged_project(workflow: Workflow, path: Path) -> Project:
    """Return the project of a folder or zip file that already is an Azkaban project."""
    if not _may_be_azkaban_format(workflow):
        raise UsageError(
            _("{path} has nodes that run notebooks, which Azkaban does not support.").format(
                path=path
            ),
            _("Name the .flow file, which is compiled."),
        )
    if problems := find_secrets(workflow):
        raise WorkflowError(problems)
    flows = _flows(workflow)
    if path.is_dir():
        carried = ProjectFiles(path)
        carried.everything()
        files = {**carried.files, **_origin(workflow)}
        return Project(path.resolve().name, flows, files)
    packed = path.read_bytes()
    if not zipfile.is_zipfile(path):
        raise UsageError(_("{path} is not a zip file.").format(path=path))
    return Project(path.stem, flows, packed=packed)


def _origin(workflow: Workflow) -> dict[str, bytes]:
    """Return properties for job files that call ``submarine``, as Flow 2.0 has in ``config:``.

    Azkaban reads the files of a folder by name, so a later file can override the values.
    """
    if workflow.file or not _calls_submarine(workflow):
        return {}
    lines = [f"{key}={value}\n" for key, value in job_file_environment().items()]
    return {ORIGIN_FILE: "".join(lines).encode()}


def _azkaban_flow_project(workflow: Workflow, path: Path) -> Project:
    """Return the project of a ``.flow`` file in Azkaban's format, with its scripts."""
    if problems := find_secrets(workflow):
        raise WorkflowError(problems)
    carried = ProjectFiles(path.parent)
    for _unused, node in workflow.walk():
        for key, line in node.config.items():
            if key == "command" or key.startswith("command."):
                carried.words(split_command(line))
    own = {f"{workflow.name}.project": PROJECT_FILE, f"{workflow.name}.flow": path.read_bytes()}
    return Project(workflow.name, (workflow.name,), {**carried.files, **own})


def _flows(workflow: Workflow) -> tuple[str, ...]:
    """Return the ids of the flows: Flow 1.0 names each flow after the node without dependents."""
    if workflow.file:
        return (workflow.name,)
    wanted = {name for node in workflow.nodes for name in node.depends_on}
    return tuple(node.name for node in workflow.nodes if node.name not in wanted)


def _may_be_azkaban_format(workflow: Workflow) -> bool:
    return not any(_uses_extensions(node) for _, node in workflow.walk())


def _uses_extensions(node: Node) -> bool:
    kinds = (Kind.NOTEBOOK, Kind.CELLS)
    return node.kind in kinds or bool(node.needs or node.params or node.job) or not node.type


def _calls_submarine(workflow: Workflow) -> bool:
    """Return whether a command is ``submarine``: its jobs need the execution as their origin."""
    lines = [
        line
        for _, node in workflow.walk()
        for key, line in node.config.items()
        if key == "command" or key.startswith("command.")
    ]
    return any(word.rsplit("/", 1)[-1] == "submarine" for line in lines for word in line.split())


def _keys(text: str) -> dict[str, Value]:
    root = load(text).data
    return root if isinstance(root, dict) else {}


def _trigger(path: Path) -> Value | None:
    text = path.read_text(encoding="utf-8-sig")
    return _keys(text).get("trigger") if "trigger" in text else None


def _plain(value: Value) -> Any:
    if isinstance(value.data, dict):
        return {key: _plain(item) for key, item in value.data.items()}
    if isinstance(value.data, list):
        return [_plain(item) for item in value.data]
    return value.scalar if isinstance(value.scalar, int) else value.data


def executor_settings(outputs: str, program: str) -> ExecutionSettings:
    """Return the properties of an executor for commands of nodes."""
    return ExecutionSettings(
        outputs=outputs or OUTPUTS, program=tuple((program or "submarine").split())
    )
