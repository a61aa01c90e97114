"""Prepare the work of a node that may start: parameters, commands, environment."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from submarine_jobs.errors import UsageError
from submarine_jobs.model import HEADLESS_VARIABLE, WorkflowOrigin
from submarine_runtime.translation import _
from submarine_workflows.local.node_process import NodeWork
from submarine_workflows.local.options import RunOptions
from submarine_workflows.local.parameters import as_properties, parameter_filler, properties_for
from submarine_workflows.local.progress import Step
from submarine_workflows.model import (
    ExecutionSettings,
    Workflow,
    commands_of,
    environment_of,
    number_problem,
)
from submarine_workflows.runs import RunFolder

_MAX_OUTPUT = 1 << 20
#: Variables of the calling notebook's kernel and of its headless run.
_KERNEL_VARIABLES = (HEADLESS_VARIABLE, "JPY_")
#: Call this release, whatever ``submarine`` is on the PATH. ``-P``: a file of the working directory
#: must not shadow a module.
PROGRAM = (sys.executable, "-P", "-m", "submarine_jobs.cli")


@dataclass(frozen=True)
class PreparedNode:
    """Work of a node, and its properties for failures.

    Attributes
    ----------
    retries
        Number of further attempts after a failure.
    backoff
        Seconds before the next attempt.
    exponential
        Whether the delay doubles with each attempt.
    succeed_on_failure
        Whether a failure counts as a success for dependent nodes (``job.succeed.on.failure``).
    """

    work: NodeWork
    retries: int = 0
    backoff: float = 0.0
    exponential: bool = False
    succeed_on_failure: bool = False


@dataclass(frozen=True)
class NodePreparer:
    """Prepares the nodes of one run.

    Attributes
    ----------
    base
        Folder that paths of the workflow are relative to.
    common
        Azkaban's parameters of this run.
    """

    workflow: Workflow
    run: RunFolder
    base: Path
    options: RunOptions
    common: Mapping[str, str]
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def prepare(self, step: Step, attempt: int) -> PreparedNode:
        """Return the work of a node that starts now.

        Raises
        ------
        UsageError
            If a parameter is missing, or a numeric property is not a number.
        """
        raw = properties_for(step, self.common, self.workflow.config, self.options.parameters)
        raw["azkaban.job.attempt"] = str(attempt)
        fill = parameter_filler(raw)
        commands = commands_of(self.workflow, step.node, step.flows, self.settings(), fill)
        folder = self.base / fill(raw.get("working.dir", ""))
        environ = {name: fill(value) for name, value in environment_of(raw).items()}
        files = self._files(step, raw, fill)
        return PreparedNode(
            NodeWork(
                commands,
                {**self._environ(), **self._origin(step), **environ, **files},
                folder,
                self.run.log(step.path, attempt),
            ),
            _number(raw, "retries", fill),
            _number(raw, "retry.backoff", fill) / 1000,
            _flag(raw, "retry.backoff.exponential", fill),
            _flag(raw, "job.succeed.on.failure", fill),
        )

    def settings(self) -> ExecutionSettings:
        """Return the properties of this machine for commands of nodes."""
        return ExecutionSettings(
            run=self.run.run,
            outputs=self.options.outputs or str(self.run.notebooks),
            notebook=self.options.notebook,
            program=PROGRAM,
            on_interrupt=self.options.on_interrupt,
        )

    def _environ(self) -> dict[str, str]:
        environ = {k: v for k, v in self.environ.items() if not k.startswith(_KERNEL_VARIABLES)}
        if shutil.which("submarine", path=environ.get("PATH")) is None:
            # Commands of users find the interpreter, as on an executor host.
            here = os.path.dirname(sys.executable)
            environ["PATH"] = os.pathsep.join(filter(None, (environ.get("PATH"), here)))
        return environ

    def _origin(self, step: Step) -> dict[str, str]:
        tags = WorkflowOrigin.from_environment(self.environ).yarn_tags
        return WorkflowOrigin(self.workflow.name, self.run.run, step.path, tags).to_environment()

    def _files(
        self, step: Step, raw: Mapping[str, str], fill: Callable[[str], str]
    ) -> dict[str, str]:
        output, properties = self.run.output(step.path), self.run.properties(step.path)
        values: dict[str, str] = {}
        for key, value in raw.items():
            with suppress(UsageError):  # parameters that this node does not use may be unresolvable
                values[key] = fill(value)
        try:
            output.write_text("")
            properties.write_text(as_properties(values))
        except OSError as exc:
            raise UsageError(
                _("{parent} cannot be written: {strerror}.").format(
                    parent=output.parent, strerror=exc.strerror
                )
            ) from None
        return {
            "JOB_OUTPUT_PROP_FILE": str(output),
            "JOB_PROP_FILE": str(properties),
            "JOB_NAME": step.node.name,
        }


def read_outputs(path: Path) -> dict[str, str]:
    """Return the outputs in ``JOB_OUTPUT_PROP_FILE`` as text, as Azkaban converts JSON.

    Empty if the file contains no JSON object, as in Azkaban.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_OUTPUT + 1)
        found = json.loads(data) if 0 < len(data) <= _MAX_OUTPUT else {}
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {key: _as_text(value) for key, value in found.items() if value is not None}


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _number(raw: Mapping[str, str], name: str, fill: Callable[[str], str]) -> int:
    text = fill(raw.get(name, "0")).strip()
    if problem := number_problem(name, text):
        raise UsageError(problem)
    return int(text)


def _flag(raw: Mapping[str, str], name: str, fill: Callable[[str], str]) -> bool:
    return fill(raw.get(name, "")).strip().lower() == "true"
