"""The names of phases are declared once; each front end knows them all."""

from __future__ import annotations

import re
from pathlib import Path

from submarine_jobs.display import card, summary
from submarine_runtime.protocol import PHASES

ROOT = Path(__file__).parents[4]


def test_every_front_end_knows_every_phase() -> None:
    front_end = (ROOT / "labextension/src/card/labels.ts").read_text()
    (listed,) = re.findall(r"PHASES: readonly string\[\] = \[(.*?)\]", front_end, re.DOTALL)
    assert tuple(re.findall(r"'(\w+)'", listed)) == PHASES
    style = (ROOT / "labextension/style/card.css").read_text()
    described = (ROOT / "docs/job-directory.md").read_text()
    for name in PHASES:
        assert f"{name}: trans.__('{summary.PHASE_WORDS[name]}')" in front_end
        assert f".jp-Submarine-phase-{name}" in style
        assert summary.PHASE_WORDS[name] in card.PHASE_COLOURS
        assert f"`{name}`" in described
