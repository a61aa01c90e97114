"""Read a ``%%submarine workflow`` cell as a workflow, and create its ``.flow`` file.

The text is Flow 2.0 YAML, or Flow 1.0 job files, each headed by its name in a comment, ``#
features.job``, as in Azkaban's documentation. Line numbers are those of the cell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import yaml

from submarine_jobs.commands import CellBody
from submarine_runtime.translation import _
from submarine_workflows import model
from submarine_workflows.formats import read_jobs, read_workflow
from submarine_workflows.model import Node, Problem, Workflow, WorkflowError

_JOB = re.compile(r"#\s*([\w.-]+)\.job\s*")


@dataclass(frozen=True)
class WorkflowHeader:
    """The first line of the cell.

    Attributes
    ----------
    notebook
        File name of the notebook; empty if it has none yet.
    """

    name: str
    schedule: str = ""
    timezone: str = ""
    notebook: str = ""


@dataclass(frozen=True)
class WrittenWorkflow:
    """A valid workflow, and the text of an equivalent ``.flow`` file."""

    workflow: Workflow
    text: str


def read_cell(body: CellBody, header: WorkflowHeader) -> WrittenWorkflow:
    """Return the workflow of a cell.

    Raises
    ------
    WorkflowError
        With every problem and its line in the cell.
    """
    jobs = _job_files(body)
    if jobs:
        workflow = _of_jobs(jobs, header.name, body.cell)
    else:
        workflow = read_workflow(body.in_place, header.name, body.cell)
    merged = _with_line(workflow, body, header)
    problems = [replace(found, file=body.cell) for found in model.check(merged)]
    if problems:
        raise WorkflowError(problems)
    return WrittenWorkflow(merged, _text(body.text if not jobs else "", merged, workflow))


def _with_line(workflow: Workflow, body: CellBody, header: WorkflowHeader) -> Workflow:
    """Merge the options of the first line; they must not contradict the text."""
    line = body.first_line - 1
    if workflow.name != header.name:
        raise _error(
            body,
            line,
            _("It is named `{name}` here and `{workflow}` below.").format(
                name=header.name, workflow=workflow.name
            ),
        )
    for word in ("schedule", "timezone"):
        here, below = getattr(header, word), getattr(workflow, word)
        if here and below and here != below:
            raise _error(
                body,
                line,
                _("--{word} is `{here}` and `{word}:` below is `{below}`; give one.").format(
                    word=word, here=here, below=below
                ),
            )
    return replace(
        workflow,
        schedule=header.schedule or workflow.schedule,
        schedule_line=line if header.schedule else workflow.schedule_line,
        timezone=header.timezone or workflow.timezone,
        timezone_line=line if header.timezone else workflow.timezone_line,
        notebook=workflow.notebook or header.notebook,
    )


def _error(body: CellBody, line: int, sentence: str) -> WorkflowError:
    return WorkflowError([Problem(line, sentence, body.cell)])


def _text(typed: str, workflow: Workflow, below: Workflow) -> str:
    """Return the cell's YAML text, including comments, below the options of the first line."""
    added = {
        word: getattr(workflow, word)
        for word in ("schedule", "timezone", "notebook")
        if getattr(workflow, word) != getattr(below, word)
    }
    head = "".join(f"{key}: {_quoted(value)}\n" for key, value in added.items())
    if typed.strip():
        return _under(head, added, typed.rstrip() + "\n")
    document = {"config": dict(workflow.config)} if workflow.config else {}
    nodes = [_node(node) for node in workflow.nodes]
    return head + yaml.safe_dump({**document, "nodes": nodes}, sort_keys=False, allow_unicode=True)


def _under(head: str, added: Mapping[str, str], typed: str) -> str:
    """Return both texts together, or merged if the text is in flow style or indented."""
    if not head:
        return typed
    try:
        if yaml.safe_load(head + typed) == {**added, **yaml.safe_load(typed)}:
            return head + typed
    except yaml.YAMLError:
        pass  # the text is valid only by itself
    both = {**added, **yaml.safe_load(typed)}
    return str(yaml.safe_dump(both, sort_keys=False, allow_unicode=True))


def _quoted(value: str) -> str:
    dumped = yaml.safe_dump(value, default_style='"', allow_unicode=True, width=10_000)
    return str(dumped).strip()


def _node(node: Node) -> dict[str, object]:
    found: dict[str, object] = {"name": node.name, "type": node.type}
    if node.config:
        found["config"] = dict(node.config)
    if node.depends_on:
        found["dependsOn"] = list(node.depends_on)
    return found


@dataclass(frozen=True)
class _JobFile:
    name: str
    line: int
    text: str


def _job_files(body: CellBody) -> list[_JobFile]:
    """Return the jobs with name and line; empty if the text is Flow 2.0."""
    lines = body.text.split("\n")
    first = next((line for line in lines if line.strip()), "")
    if not _JOB.fullmatch(first.strip()):
        return []
    found: list[_JobFile] = []
    for number, line in enumerate(lines, body.first_line):
        match = _JOB.fullmatch(line.strip())
        if match:
            # Blank lines preserve the line numbers of the editor.
            found.append(_JobFile(f"{match[1]}.job", number, "\n" * number))
        elif found:
            found[-1] = replace(found[-1], text=f"{found[-1].text}{line}\n")
    return found


def _of_jobs(jobs: list[_JobFile], name: str, cell: str) -> Workflow:
    places: dict[str, int] = {}
    problems = []
    for job in jobs:
        if job.name in places:
            sentence = _("`{job}` is defined twice, first in line {places}.").format(
                job=job.name, places=places[job.name]
            )
            problems.append(Problem(job.line, sentence, cell))
        places.setdefault(job.name, job.line)
    if problems:
        raise WorkflowError(problems)
    try:
        workflow = read_jobs({job.name: job.text for job in jobs}, name)
    except WorkflowError as error:
        raise WorkflowError(
            [
                Problem(found.line or places.get(found.file, 0), found.sentence, cell)
                for found in error.problems
            ]
        ) from None
    nodes = tuple(replace(node, line=places[f"{node.name}.job"]) for node in workflow.nodes)
    return replace(workflow, nodes=nodes)
