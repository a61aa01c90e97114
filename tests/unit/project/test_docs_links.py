"""Links of the pages lead somewhere, and no file knows the machine on which it was written."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown.extensions.toc import slugify

from tests.unit.pages import FENCE, PAGES, ROOT, page_name, without_code

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    found: set[str] = set()
    for heading in _HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading)
        found.add(slugify(plain, "-"))
    return found


def links(page: Path) -> list[str]:
    return _LINK.findall(without_code(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in links(page):
        if link.startswith(("https://", "http://", "mailto:")):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        known = target.is_file() and target.is_relative_to(ROOT)
        if known and target.suffix == ".png":
            known = anchor in ("", "only-light", "only-dark")  # The theme shows one of two.
        elif known and anchor:
            known = anchor in anchors(target)
        if not known:
            broken.append(link)
    assert not broken, f"{page_name(page)} links to what is not there: {broken}"


def test_each_page_stands_once_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = re.findall(r"([\w-]+\.md)$", text.partition("\nnav:")[2], re.MULTILINE)
    assert sorted(named) == sorted(page.name for page in (ROOT / "docs").glob("*.md"))


#: Put together, so that this file is not found itself.
_OF_ONE_MACHINE = re.compile(
    r"(?<![\w.}~*>/-])/(?:" + "wo" + r"rk|ro" + r"ot)(?:/|\b)"
    r"|--(?:extra-)?index" + r"-url|trusted" + r"-host"
    r"|https?://[^\s\"'>]*(?:/sim" + r"ple\b|/mav" + r"en2|pypi\.|registry\.|repo1\.)",
    re.IGNORECASE,
)


def tracked_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False, timeout=30
    )
    if listed.returncode:
        pytest.skip("this is no git checkout")
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name]


@pytest.mark.slow
def test_no_file_knows_the_machine_on_which_it_was_written() -> None:
    found = []
    for path in tracked_files():
        if not path.is_file():
            continue
        text = path.read_bytes().decode("utf-8", "replace")
        for number, line in enumerate(text.splitlines(), 1):
            if match := _OF_ONE_MACHINE.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {match[0]}")
    assert not found, "\n".join(found)
