"""A job in words and pictures: pure functions of a ``JobView``, the same for every front end.

Asks nobody, keeps nothing and never shows a text from a job without making it harmless first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.display.card import BOX as BOX, html as html
    from submarine_jobs.display.changes import Changes as Changes
    from submarine_jobs.display.columns import Table as Table
    from submarine_jobs.display.failure import (
        failure_text as failure_text,
        frames_shown as frames_shown,
    )
    from submarine_jobs.display.job_table import table as table
    from submarine_jobs.display.mime import MIME_TYPE as MIME_TYPE, mimebundle as mimebundle
    from submarine_jobs.display.plain import headline as headline, text as text
    from submarine_jobs.display.sanitized_record import number as number, tame as tame
    from submarine_jobs.display.summary import (
        lost_if_cancelled as lost_if_cancelled,
        next_step as next_step,
        sentence as sentence,
    )
    from submarine_jobs.display.task_table import all_tasks as all_tasks
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "card": ("BOX", "html"),
            "changes": ("Changes",),
            "columns": ("Table",),
            "failure": ("failure_text", "frames_shown"),
            "job_table": ("table",),
            "mime": ("MIME_TYPE", "mimebundle"),
            "plain": ("headline", "text"),
            "sanitized_record": ("number", "tame"),
            "summary": ("lost_if_cancelled", "next_step", "sentence"),
            "task_table": ("all_tasks",),
        },
    )
