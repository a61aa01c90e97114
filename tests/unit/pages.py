"""The project's pages, as the tests of the docs read them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")])
FENCE = re.compile(r"^( *)```([\w-]*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "``", FENCE.sub("", text))


def blocks(page: Path, *languages: str) -> Iterator[str]:
    """Code blocks of these languages, continued lines joined."""
    for _, language, body in FENCE.findall(page.read_text(encoding="utf-8")):
        if language in languages:
            yield body.replace("\\\n", " ")


def first_job_cells() -> list[str]:
    """Cells of the first job in docs/quickstart.md, in order; the first loads the magics."""
    page = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    section = page.partition("\n## The first job\n")[2].partition("\n### ")[0]
    cells = [body.rstrip() for _, language, body in FENCE.findall(section) if language == "python"]
    assert len(cells) >= 5
    assert cells[0] == "%load_ext submarine_magics"
    return cells
