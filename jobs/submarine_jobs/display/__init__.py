"""A job in words and pictures: pure functions of a ``JobView``, the same for every mouth.

Asks nobody, keeps nothing and never shows a text from a job without making it harmless first.
"""

from __future__ import annotations

from submarine_jobs.display.card import html
from submarine_jobs.display.columns import Table
from submarine_jobs.display.job_table import table
from submarine_jobs.display.mime import MIME_TYPE, mimebundle
from submarine_jobs.display.plain import headline, text
from submarine_jobs.display.task_table import all_tasks

__all__ = ["MIME_TYPE", "Table", "all_tasks", "headline", "html", "mimebundle", "table", "text"]
