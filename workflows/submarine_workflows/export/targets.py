"""What ``submarine workflow export --to`` knows: each target's files, by name.

Writes nothing; a new target is one more function here.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from submarine_workflows.model import Workflow

_PROGRAM = "submarine"


@dataclass(frozen=True)
class Wishes:
    """What the options of ``export`` say.

    Attributes
    ----------
    file
        Where the workflow lies.
    program
        How ``submarine`` is called where it will run; empty: as it is called there usually.
    outputs
        Folder or URL for executed notebooks; empty: the target's own.
    also
        Patterns of further files to take along.
    notify
        Command that is told of failures.
    """

    file: Path
    program: tuple[str, ...] = ()
    outputs: str = ""
    also: Sequence[str] = ()
    notify: str = ""


@dataclass(frozen=True)
class Export:
    """What an export makes.

    Attributes
    ----------
    files
        Content by relative path, to be written below ``-o``; one that is alone may go to a file.
    said
        One line for the person: what to do with it.
    """

    files: Mapping[str, bytes]
    said: str


def _here() -> str:
    """Where ``submarine`` lies on this machine, which is cron's too."""
    beside = Path(sys.executable).with_name(_PROGRAM)
    return str(beside) if beside.is_file() else shutil.which(_PROGRAM) or _PROGRAM


def _airflow(workflow: Workflow, wishes: Wishes) -> Export:
    from submarine_workflows.carrying import carry
    from submarine_workflows.export.airflow import OUTPUTS, dag_of
    from submarine_workflows.model import Setting

    setting = Setting(
        outputs=wishes.outputs or OUTPUTS,
        notebook=workflow.notebook,
        program=wishes.program or (_PROGRAM,),
    )
    folder = wishes.file if wishes.file.is_dir() else wishes.file.parent
    carried = carry(workflow, folder, also=wishes.also)
    # The workflow itself too: who opens the folder sees what it was made of.
    sources = sorted(folder.glob("*.job")) if wishes.file.is_dir() else [wishes.file]
    carried |= {source.name: source.read_bytes() for source in sources}
    files = {f"{workflow.name}_dag.py": dag_of(workflow, workflow.name, setting).encode()}
    files |= {f"{workflow.name}/{name}": data for name, data in carried.items()}
    return Export(
        files,
        "Airflow finds it in its folder of DAGs (`airflow config get-value core dags_folder`).",
    )


def _cron(workflow: Workflow, wishes: Wishes) -> Export:
    from submarine_workflows.export.crontab import crontab_of

    program = wishes.program or (_here(),)
    options = {"--notify": wishes.notify, "--outputs": wishes.outputs}
    text = crontab_of(workflow, wishes.file.resolve(), program, options)
    return Export({f"{workflow.name}.cron": text.encode()}, "`crontab -e` takes these lines.")


def _azkaban(_workflow: Workflow, wishes: Wishes) -> Export:
    from submarine_workflows.azkaban.project import project_of
    from submarine_workflows.commands import setting_of

    said = {"outputs": wishes.outputs, "program": " ".join(wishes.program or (_PROGRAM,))}
    _, made = project_of(wishes.file, setting_of(said), extra=tuple(wishes.also))
    return Export(
        {f"{made.name}.zip": made.to_zip()},
        "Azkaban takes it on the page of a project, or by `submarine workflow submit`.",
    )


TARGETS: dict[str, Callable[[Workflow, Wishes], Export]] = {
    "airflow": _airflow,
    "azkaban": _azkaban,
    "cron": _cron,
}
