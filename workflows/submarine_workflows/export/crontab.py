"""A workflow as lines of a crontab: its own runner, started on its schedule.

Does not install them: ``crontab FILE`` does, or a file in /etc/cron.d.

Notes
-----
``CRON_TZ`` is read by cronie (Red Hat and its kin) and by systemd-cron, not by Debian's cron, which
goes by the machine's zone (their pages crontab(5)).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from submarine_jobs.errors import UsageError
from submarine_jobs.text import one_line
from submarine_workflows.model import Workflow, no_option, read_schedule, read_timezone


def crontab_of(
    workflow: Workflow,
    file: Path,
    program: Sequence[str],
    options: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The lines that run ``workflow`` when it is due.

    Parameters
    ----------
    file
        Where the workflow lies; its folder is where it runs.
    program
        How ``submarine`` is called: cron has a short PATH.
    options
        Of ``workflow run``, with their values; empty ones are left out.

    Raises
    ------
    UsageError
        If it has no schedule, or one that five fields cannot say.
    """
    if not workflow.schedule:
        raise UsageError(
            f"{workflow.name} has no schedule: cron would not know when to run it.",
            'Give it one, as in `schedule: "0 30 2 ? * *"`.',
        )
    fields = five_fields(workflow.schedule)
    words = [*program, "workflow", "run", no_option(file.name), "--scheduled"]
    words += [word for name, value in options.items() if value for word in (name, value)]
    command = " ".join(_word(word) for word in words)
    schedule = " ".join(workflow.schedule.split())
    lines = [f"# {workflow.name}: {schedule}"]
    if workflow.timezone:
        lines += [
            "# Debian's cron does not read CRON_TZ: there, write the hours of the machine's zone.",
            f"CRON_TZ={read_timezone(workflow.timezone).key}",
        ]
    lines.append(f"{fields} cd {_word(str(file.parent))} && {command}")
    for line in lines:
        if not line.isprintable():
            raise UsageError(
                "A line of a crontab has no line break and no control character: "
                f"{one_line(line, 80)}",
                "Rename the workflow, file, folder or command that has one.",
            )
    return "\n".join(lines) + "\n"


def _word(word: str) -> str:
    """A word for the shell that cron starts.

    cron ends a command at a percent sign unless a backslash stands before it. Whether it removes
    one of two backslashes differs between cron and cronie, so no backslash may stand before another
    one or before a percent sign of the value: the quotes are closed and opened again between them.
    """
    return re.sub(r"\\(?=[\\%])", r"\\''", shlex.quote(word)).replace("%", r"\%")


def five_fields(schedule: str) -> str:
    """A schedule in the five fields that cron and Airflow take.

    Raises
    ------
    UsageError
        If it says more than that.
    """
    fields = read_schedule(schedule).crontab
    if not fields:
        raise UsageError(
            f"`{schedule}` says more than the five fields that cron and Airflow take.",
            "Use second 0, no year, and neither L nor #.",
        )
    return fields
