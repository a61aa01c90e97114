"""What a person names, as a project: a workflow of ours is compiled, Azkaban's own pass through.

Notes
-----
A ``.flow`` with Azkaban's keys alone, none of whose commands calls ``submarine``, is carried byte
for byte; so is a folder of Flow 1.0's job files, with one file of properties more where one of them
calls ``submarine``, and a zip is not even unpacked.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_workflows.azkaban.project.archive import Project
from submarine_workflows.azkaban.project.compiler import (
    PROJECT_FILE,
    compile_workflow,
    job_file_environment,
)
from submarine_workflows.azkaban.project.secrets import find_secrets
from submarine_workflows.formats import Value, load, open_workflow
from submarine_workflows.model import (
    Kind,
    Node,
    Setting,
    Workflow,
    WorkflowError,
    check,
    split_command,
)
from submarine_workflows.project_files import Carried

ORIGIN_FILE = "00-submarine.properties"
#: Keys of a flow's root that Azkaban's own reader knows.
_AZKABANS_ROOT = ("config", "nodes", "trigger", "dependsOn", "condition", "type", "name")


def project_of(
    path: Path, setting: Setting | None = None, *, extra: tuple[str, ...] = ()
) -> tuple[Workflow, Project]:
    """The workflow in ``path``, and the project that Azkaban gets.

    Raises
    ------
    WorkflowError
        With all that is wrong with the workflow.
    UsageError
        If there is none, or a file that it needs cannot be carried.
    """
    workflow = open_workflow(path)
    problems = check(workflow)
    if problems:
        raise WorkflowError(problems)
    if path.is_dir() or path.suffix == ".zip":
        return workflow, _as_it_stands(workflow, path)
    keys = _keys(path.read_text(encoding="utf-8-sig")) if _may_be_theirs(workflow) else None
    trigger = keys.get("trigger") if keys else _trigger(path)
    theirs = keys is not None and all(key in _AZKABANS_ROOT for key in keys)
    if theirs and not extra and not _calls_us(workflow):
        return workflow, _theirs(workflow, path)
    plain = _plain(trigger) if trigger is not None else None
    made = compile_workflow(workflow, path.parent, setting, extra=extra, trigger=plain)
    return workflow, made


def has_trigger(path: Path) -> bool:
    """Whether the flow brings Azkaban's own trigger, which forbids a schedule beside it."""
    return path.is_file() and path.suffix != ".zip" and _trigger(path) is not None


def _as_it_stands(workflow: Workflow, path: Path) -> Project:
    """A folder or zip that is a project of Azkaban's already."""
    if not _may_be_theirs(workflow):
        raise UsageError(
            f"{path} has nodes that run notebooks, which Azkaban knows nothing of.",
            "Name its .flow file, which is then compiled.",
        )
    if problems := find_secrets(workflow):
        raise WorkflowError(problems)
    flows = _flows(workflow)
    if path.is_dir():
        carried = Carried(path)
        carried.everything()
        files = {**carried.files, **_origin(workflow)}
        return Project(path.resolve().name, flows, files)
    packed = path.read_bytes()
    if not zipfile.is_zipfile(path):
        raise UsageError(f"{path} is no zip.")
    return Project(path.stem, flows, packed=packed)


def _origin(workflow: Workflow) -> dict[str, bytes]:
    """For job files that call ``submarine``: what Flow 2.0 has under ``config:``, as properties.

    Of the files of a folder Azkaban takes the first by name first, so that any other may say
    something else.
    """
    if workflow.file or not _calls_us(workflow):
        return {}
    lines = [f"{key}={value}\n" for key, value in job_file_environment().items()]
    return {ORIGIN_FILE: "".join(lines).encode()}


def _theirs(workflow: Workflow, path: Path) -> Project:
    """A ``.flow`` file of Azkaban's own, with the scripts that it names."""
    if problems := find_secrets(workflow):
        raise WorkflowError(problems)
    carried = Carried(path.parent)
    for _, node in workflow.walk():
        for key, line in node.config.items():
            if key == "command" or key.startswith("command."):
                carried.words(split_command(line))
    own = {f"{workflow.name}.project": PROJECT_FILE, f"{workflow.name}.flow": path.read_bytes()}
    return Project(workflow.name, (workflow.name,), {**carried.files, **own})


def _flows(workflow: Workflow) -> tuple[str, ...]:
    """Ids of its flows: Flow 1.0 names each by the node that nothing depends on."""
    if workflow.file:
        return (workflow.name,)
    wanted = {name for node in workflow.nodes for name in node.depends_on}
    return tuple(node.name for node in workflow.nodes if node.name not in wanted)


def _may_be_theirs(workflow: Workflow) -> bool:
    return not any(_is_ours(node) for _, node in workflow.walk())


def _is_ours(node: Node) -> bool:
    kinds = (Kind.NOTEBOOK, Kind.CELLS)
    return node.kind in kinds or bool(node.needs or node.params or node.job) or not node.type


def _calls_us(workflow: Workflow) -> bool:
    """Whether a command is ``submarine``, whose jobs want to know the execution they are of."""
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
