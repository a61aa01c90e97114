"""Targets of ``submarine workflow export --to``: one function per target returns its files."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from submarine_runtime.translation import _
from submarine_workflows.model import Workflow

_PROGRAM = "submarine"


@dataclass(frozen=True)
class ExportOptions:
    """Options of ``export``.

    Attributes
    ----------
    file
        Path of the workflow.
    program
        Command that calls ``submarine``; empty: the default of the target.
    outputs
        Folder or URL for executed notebooks; empty: the default of the target.
    also
        Patterns of further files to include.
    notify
        Command to call on failure.
    """

    file: Path
    program: tuple[str, ...] = ()
    outputs: str = ""
    also: Sequence[str] = ()
    notify: str = ""


@dataclass(frozen=True)
class Export:
    """Result of an export.

    Attributes
    ----------
    files
        Content by path relative to ``-o``; a single file may be written to ``-o`` itself.
    usage
        One line on how to use the files.
    """

    files: Mapping[str, bytes]
    usage: str


def _local_program() -> str:
    """Return the path of ``submarine`` on this machine, on which cron runs."""
    beside = Path(sys.executable).with_name(_PROGRAM)
    return str(beside) if beside.is_file() else shutil.which(_PROGRAM) or _PROGRAM


def _airflow(workflow: Workflow, options: ExportOptions) -> Export:
    # cost: only the requested format is loaded.
    from submarine_workflows.export.airflow import OUTPUTS, dag_of
    from submarine_workflows.model import ExecutionSettings
    from submarine_workflows.project_files import collect_files

    settings = ExecutionSettings(
        outputs=options.outputs or OUTPUTS,
        notebook=workflow.notebook,
        program=options.program or (_PROGRAM,),
    )
    folder = options.file if options.file.is_dir() else options.file.parent
    collected = collect_files(workflow, folder, also=options.also)
    # Include the source of the workflow for reference.
    sources = sorted(folder.glob("*.job")) if options.file.is_dir() else [options.file]
    collected |= {source.name: source.read_bytes() for source in sources}
    files = {f"{workflow.name}_dag.py": dag_of(workflow, workflow.name, settings).encode()}
    files |= {f"{workflow.name}/{name}": data for name, data in collected.items()}
    return Export(
        files,
        _("Airflow loads it from its DAG folder (`airflow config get-value core dags_folder`)."),
    )


def _cron(workflow: Workflow, options: ExportOptions) -> Export:
    # cost: only the requested format is loaded.
    from submarine_workflows.export.crontab import crontab_of

    program = options.program or (_local_program(),)
    words = {"--notify": options.notify, "--outputs": options.outputs}
    text = crontab_of(workflow, options.file.resolve(), program, words)
    return Export({f"{workflow.name}.cron": text.encode()}, _("Add these lines with `crontab -e`."))


def _azkaban(_workflow: Workflow, options: ExportOptions) -> Export:
    # cost: only the requested format is loaded.
    from submarine_workflows.azkaban.project import executor_settings, project_of

    settings = executor_settings(options.outputs, " ".join(options.program))
    _unused, exported = project_of(options.file, settings, extra=tuple(options.also))
    return Export(
        {f"{exported.name}.zip": exported.to_zip()},
        _("Upload it on the page of a project, or with `submarine workflow submit`."),
    )


TARGETS: dict[str, Callable[[Workflow, ExportOptions], Export]] = {
    "airflow": _airflow,
    "azkaban": _azkaban,
    "cron": _cron,
}
