"""In a notebook the job's card replaces the progress line of the submission."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from submarine_jobs.frontends import JobDisplays, job_displays
from submarine_jobs.model import JobView
from submarine_magics.frontend.cell_output import CellOutput
from submarine_runtime.protocol import JobRecord, State


def test_the_card_replaces_the_progress_line(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, bool, dict[str, Any]]] = []

    def put(bundle: dict[str, Any], *, raw: bool, display_id: str, update: bool = False) -> None:
        shown.append((display_id, update, bundle))

    monkeypatch.setattr("IPython.display.display", put)
    monkeypatch.setattr(job_displays, "has_result", lambda record: False)
    publisher = SimpleNamespace(parent_header={})
    shell = SimpleNamespace(kernel=object(), execution_count=1, display_pub=publisher)
    displays = JobDisplays(CellOutput(cast(Any, shell)))
    view = JobView(JobRecord("steps-20261120-7f3a", "steps", State.CANCELLED))
    job = cast(Any, SimpleNamespace(id=view.record.job_id, view=lambda: view))
    displays.place = displays.line("Uploading 3 files (2.0 kB) ...", None)
    displays.line("Submitting the application to YARN ...", displays.place)
    displays.show(job)
    (first, *later) = shown
    assert [(place, update) for place, update, _ in later] == [(first[0], True)] * 2
    assert "text/html" in shown[-1][2]
    # Another job has its own output.
    displays.show(job)
    assert shown[-1][0] != first[0]
    assert shown[-1][1] is False
