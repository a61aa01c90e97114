"""Notebook output of a workflow or run, in three formats by MIME type.

``application/vnd.submarine.workflow.v1+json`` for programs, created here; script-free HTML
(``html``); text (``text``). Untrusted text is sanitized in all three.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from submarine_jobs.text import one_line
from submarine_workflows.display.drawing import MAX_DRAWN, words_of
from submarine_workflows.display.html import run_html, workflow_html
from submarine_workflows.display.states import Caption, NextCommand, RunState
from submarine_workflows.display.text import run_text, workflow_text
from submarine_workflows.model import Workflow

MIME_TYPE = "application/vnd.submarine.workflow.v1+json"
_MAX_NAMED = 50


def workflow_output(workflow: Workflow, caption: Caption) -> dict[str, Any]:
    """Return a workflow that is not running."""
    return {
        MIME_TYPE: {
            **_plain(workflow),
            "next": [one.isoformat() for one in caption.upcoming],
        },
        "text/html": workflow_html(workflow, caption),
        "text/plain": workflow_text(workflow, caption),
    }


def run_output(
    workflow: Workflow,
    run: RunState,
    steps: Sequence[NextCommand] = (),
    *,
    now: float | None = None,
) -> dict[str, Any]:
    """Return the current state of a run.

    Parameters
    ----------
    steps
        Next commands, shown below the graph.
    now
        Time of the display in seconds since 1970; None: the current time.
    """
    now = time.time() if now is None else now
    return {
        MIME_TYPE: {**_plain(workflow, run), "time": now},
        "text/html": run_html(workflow, run, steps, now),
        "text/plain": run_text(workflow, run, steps, now),
    }


def _plain(workflow: Workflow, run: RunState | None = None) -> dict[str, Any]:
    """Return the JSON format."""
    nodes = []
    for node in workflow.nodes[:MAX_DRAWN]:
        one: dict[str, Any] = {
            "name": one_line(node.name, 200),
            "kind": node.kind.value,
            "does": one_line(words_of(node), 200),
            "dependsOn": [one_line(name, 200) for name in node.depends_on[:_MAX_NAMED]],
            "condition": one_line(node.condition, 500),
        }
        state = run.nodes.get(node.name) if run else None
        if state is not None:
            one |= {
                "status": state.status,
                "started": state.started,
                "ended": state.ended,
                "attempt": state.attempt,
                "detail": one_line(state.detail, 400),
            }
        nodes.append(one)
    found: dict[str, Any] = {
        "version": 1,
        "name": one_line(workflow.name, 200),
        "schedule": one_line(workflow.schedule, 200),
        "timezone": one_line(workflow.timezone, 100),
        "nodes": nodes,
    }
    if run is not None:
        found |= {
            "run": one_line(run.run, 200),
            "url": one_line(run.url, 500),
            "status": run.status,
            "started": run.started,
            "ended": run.ended,
        }
    return found
