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
class Wishes:
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
    said
        One line on how to use the files.
    """

    files: Mapping[str, bytes]
    said: str


def _here() -> str:
    """Return the path of ``submarine`` on this machine, on which cron runs."""
    beside = Path(sys.executable).with_name(_PROGRAM)
    return str(beside) if beside.is_file() else shutil.which(_PROGRAM) or _PROGRAM


def _airflow(workflow: Workflow, wishes: Wishes) -> Export:
    # cost: only the requested format is loaded.
    from submarine_workflows.export.airflow import OUTPUTS, dag_of
    from submarine_workflows.model import Setting
    from submarine_workflows.project_files import carry

    setting = Setting(
        outputs=wishes.outputs or OUTPUTS,
        notebook=workflow.notebook,
        program=wishes.program or (_PROGRAM,),
    )
    folder = wishes.file if wishes.file.is_dir() else wishes.file.parent
    carried = carry(workflow, folder, also=wishes.also)
    # Include the source of the workflow for reference.
    sources = sorted(folder.glob("*.job")) if wishes.file.is_dir() else [wishes.file]
    carried |= {source.name: source.read_bytes() for source in sources}
    files = {f"{workflow.name}_dag.py": dag_of(workflow, workflow.name, setting).encode()}
    files |= {f"{workflow.name}/{name}": data for name, data in carried.items()}
    return Export(
        files,
        _("Airflow loads it from its DAG folder (`airflow config get-value core dags_folder`)."),
    )


def _cron(workflow: Workflow, wishes: Wishes) -> Export:
    # cost: only the requested format is loaded.
    from submarine_workflows.export.crontab import crontab_of

    program = wishes.program or (_here(),)
    options = {"--notify": wishes.notify, "--outputs": wishes.outputs}
    text = crontab_of(workflow, wishes.file.resolve(), program, options)
    return Export({f"{workflow.name}.cron": text.encode()}, _("Add these lines with `crontab -e`."))


def _azkaban(_workflow: Workflow, wishes: Wishes) -> Export:
    # cost: only the requested format is loaded.
    from submarine_workflows.azkaban.project import executor_setting, project_of

    setting = executor_setting(wishes.outputs, " ".join(wishes.program))
    _unused, made = project_of(wishes.file, setting, extra=tuple(wishes.also))
    return Export(
        {f"{made.name}.zip": made.to_zip()},
        _("Upload it on the page of a project, or with `submarine workflow submit`."),
    )


TARGETS: dict[str, Callable[[Workflow, Wishes], Export]] = {
    "airflow": _airflow,
    "azkaban": _azkaban,
    "cron": _cron,
}
