"""Export a workflow as crontab lines that start the local runner on its schedule.

The lines are installed with ``crontab FILE`` or as a file in /etc/cron.d.

Notes
-----
cronie (Red Hat) and systemd-cron read ``CRON_TZ``; Debian's cron uses the machine's time zone
(crontab(5)).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from submarine_jobs.errors import UsageError
from submarine_jobs.text import one_line
from submarine_runtime.translation import _
from submarine_workflows.model import Workflow, no_option, read_schedule, read_timezone


def crontab_of(
    workflow: Workflow,
    file: Path,
    program: Sequence[str],
    options: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the crontab lines of ``workflow``.

    Parameters
    ----------
    file
        Path of the workflow; it runs in this folder.
    program
        Command that calls ``submarine``: cron has a short PATH.
    options
        Options of ``workflow run`` with values; empty ones are omitted.

    Raises
    ------
    UsageError
        If it has no schedule, or one that five fields cannot express.
    """
    if not workflow.schedule:
        raise UsageError(
            _("{workflow} has no schedule, which cron requires.").format(workflow=workflow.name),
            _('Add one, such as `schedule: "0 30 2 ? * *"`.'),
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
                _("A crontab line cannot contain line breaks or control characters: {line}").format(
                    line=one_line(line, 80)
                ),
                _("Rename the workflow, file, folder or command that contains one."),
            )
    return "\n".join(lines) + "\n"


def _word(word: str) -> str:
    """Quote a word for the shell that cron starts.

    cron ends a command at a percent sign without a preceding backslash. cron and cronie differ in
    whether they remove one of two backslashes, so a backslash must not precede another one or a
    percent sign of the value: the quotes are closed and opened again between them.
    """
    return re.sub(r"\\(?=[\\%])", r"\\''", shlex.quote(word)).replace("%", r"\%")


def five_fields(schedule: str) -> str:
    """Return a schedule in the five fields of cron and Airflow.

    Raises
    ------
    UsageError
        If five fields cannot express it.
    """
    fields = read_schedule(schedule).crontab
    if not fields:
        raise UsageError(
            _("`{schedule}` cannot be expressed in the five fields of cron and Airflow.").format(
                schedule=schedule
            ),
            _("Use second 0, no year, and neither L nor #."),
        )
    return fields
