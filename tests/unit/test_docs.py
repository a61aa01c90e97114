"""What the pages say is true: tables, verbs, links, commands; and nothing of one machine is in it.

Run as a program it writes the tables of ``docs/end-reasons.md`` anew.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import click
import pytest
from markdown.extensions.toc import slugify

from submarine_jobs.commands.grammar import VERBS, build, plugins
from submarine_jobs.commands.mouth import Mouth
from submarine_jobs.commands.verb import HelpRequested
from submarine_runtime.protocol.reasons import MEANINGS
from submarine_runtime.protocol.states import TRANSITIONS, State

ROOT = Path(__file__).resolve().parents[2]
REASONS_PAGE = ROOT / "docs" / "end-reasons.md"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")])
_FENCE = re.compile(r"^( *)```([\w-]*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*$", re.MULTILINE)
_COMMENT = re.compile(r"\s{2,}#\s.*$|\s{2,}\(.*\)$")


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "``", _FENCE.sub("", text))


# The tables of end-reasons.md


def options_as_code(text: str) -> str:
    parts = re.split(r"(`[^`]*`)", text)
    parts[::2] = [re.sub(r"(?<![\w-])--[a-z][a-z-]*", r"`\g<0>`", part) for part in parts[::2]]
    return "".join(parts)


def reasons_table() -> str:
    lines = ["| reason | state | what happened | retry | what to do |", "|---|---|---|---|---|"]
    for reason, meaning in MEANINGS.items():
        retry = "yes" if meaning.retry_helps else "no"
        cells = (f"`{reason}`", f"`{meaning.state}`", meaning.sentence, retry, meaning.next_step)
        lines.append(f"| {' | '.join(map(options_as_code, cells))} |")
    return "\n".join(lines)


def states_table() -> str:
    lines = ["| from | may go to |", "|---|---|"]
    for state in State:
        after = [f"`{other}`" for other in State if other in TRANSITIONS[state]]
        lines.append(f"| `{state}` | {', '.join(after) or 'stays'} |")
    return "\n".join(lines)


TABLES = {"reasons": reasons_table, "states": states_table}


def with_table(text: str, name: str) -> str:
    pattern = rf"(<!-- {name}: [^\n]*-->\n).*?(<!-- end -->)"
    changed, count = re.subn(
        pattern, lambda m: f"{m[1]}\n{TABLES[name]()}\n\n{m[2]}", text, flags=re.DOTALL
    )
    assert count == 1, f"end-reasons.md has {count} places for the table {name}"
    return changed


@pytest.mark.parametrize("name", sorted(TABLES))
def test_end_reasons_page_agrees_with_the_protocol(name: str) -> None:
    text = REASONS_PAGE.read_text(encoding="utf-8")
    assert text == with_table(text, name), "run: python tests/unit/test_docs.py"


def test_every_state_is_explained() -> None:
    text = REASONS_PAGE.read_text(encoding="utf-8")
    explained = set(re.findall(r"^\| `([A-Z]+)` \| [a-z]", text, re.MULTILINE))
    assert {str(state) for state in State} <= explained


# Verbs


def all_verbs() -> list[str]:
    return [*VERBS, *plugins()]


def test_readme_has_a_row_for_each_verb() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(all_verbs())


@pytest.mark.parametrize("verb", all_verbs())
def test_commands_page_speaks_of_each_verb(verb: str) -> None:
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert re.search(rf"`(?:%?submarine )?{verb}\b|^#+ .*\b{verb}\b", text, re.MULTILINE)


# Links


def anchors(page: Path) -> set[str]:
    found: set[str] = set()
    for heading in _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
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
        if not known or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken, f"{page_name(page)} links to what is not there: {broken}"


def test_each_page_stands_once_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = re.findall(r"([\w-]+\.md)$", text.partition("\nnav:")[2], re.MULTILINE)
    assert sorted(named) == sorted(page.name for page in (ROOT / "docs").glob("*.md"))


# Commands in code blocks


def blocks(page: Path, *languages: str) -> Iterator[str]:
    for _, language, body in _FENCE.findall(page.read_text(encoding="utf-8")):
        if language in languages:
            yield body.replace("\\\n", " ")


def commands(page: Path) -> Iterator[str]:
    """Lines of code blocks that somebody could type, from ``submarine`` on."""
    for body in blocks(page, "sh", "bash", "shell"):
        yield from (line for line in body.splitlines() if line.startswith("submarine "))
    for body in blocks(page, "console"):
        yield from (line[2:] for line in body.splitlines() if line.startswith("$ submarine "))
    for body in blocks(page, "python", "ipython"):
        for line in body.splitlines():
            if match := re.match(r"(?:\w+ = )?%(submarine .*)$", line):
                yield match[1]


TYPED = [(page_name(page), line) for page in PAGES for line in commands(page)]


def parse(words: list[str]) -> None:
    """Parse as the grammar does, down to the last subcommand, and run nothing."""
    context = build().make_context("submarine", words, obj=Mouth())
    while isinstance(context.command, click.Group):
        rest = [*context._protected_args, *context.args]
        name, command, left = context.command.resolve_command(context, rest)
        assert command is not None
        context = command.make_context(name, left, parent=context)


def test_the_pages_show_commands() -> None:
    assert len(TYPED) > 20


@pytest.mark.parametrize(("page", "line"), TYPED)
def test_commands_of_the_pages_parse(page: str, line: str) -> None:
    words = shlex.split(_COMMENT.sub("", line))[1:]
    if words[:1] == ["help"]:
        return
    for end, word in enumerate(words):
        if word in ("|", ">", ">>", "&&", ";"):
            words = words[:end]
            break
    try:
        parse(words)
    except HelpRequested:
        pass
    except Exception as error:
        pytest.fail(f"{page} shows `{line}`: {error}")


# Nothing of one machine


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


def write_tables() -> None:
    text = REASONS_PAGE.read_text(encoding="utf-8")
    for name in TABLES:
        text = with_table(text, name)
    REASONS_PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_tables()
