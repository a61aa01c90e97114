"""What the pages say is true: tables, names, verbs and commands.

Run as a program it writes the tables of ``docs/end-reasons.md`` anew.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from submarine_jobs import errors
from submarine_jobs.client import Job
from submarine_jobs.commands.grammar import VERBS, HelpRequested, plugins
from submarine_jobs.commands.grammar.verbs import build
from submarine_jobs.config import SITE_VARIABLE, file as config_file, read_file, read_site_file
from submarine_jobs.frontends import Frontend
from submarine_runtime.protocol import TRANSITIONS, EndReason, State, layout
from tests.unit.pages import PAGES, ROOT, blocks, page_name

REASONS_PAGE = ROOT / "docs" / "end-reasons.md"
_COMMENT = re.compile(r"\s{2,}#\s.*$|\s{2,}\(.*\)$")


# The tables of end-reasons.md


def options_as_code(text: str) -> str:
    parts = re.split(r"(`[^`]*`)", text)
    parts[::2] = [re.sub(r"(?<![\w-])--[a-z][a-z-]*", r"`\g<0>`", part) for part in parts[::2]]
    return "".join(parts)


def reasons_table() -> str:
    lines = ["| reason | state | what happened | retry | what to do |", "|---|---|---|---|---|"]
    for reason in EndReason:
        meaning = reason.meaning
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
    assert text == with_table(text, name), "run: python -m tests.unit.project.test_docs"


def test_every_state_is_explained() -> None:
    text = REASONS_PAGE.read_text(encoding="utf-8")
    explained = set(re.findall(r"^\| `([A-Z]+)` \| [a-z]", text, re.MULTILINE))
    assert {str(state) for state in State} <= explained


# Names that stand in the code


def test_job_directory_page_has_every_name_of_the_layout() -> None:
    text = (ROOT / "docs" / "job-directory.md").read_text(encoding="utf-8")
    names = [value for name, value in vars(layout).items() if name.isupper() and name[0] != "_"]
    words = [word for word in names if isinstance(word, str)]
    assert len(words) > 10
    assert [word for word in words if word not in text] == []


def test_python_page_has_every_error_and_what_a_job_can_do() -> None:
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    found = [value for value in vars(errors).values() if isinstance(value, type)]
    classes = [value.__name__ for value in found if value.__module__ == errors.__name__]
    # For other packages of ours, not for a caller.
    methods = {name for name in vars(Job) if name[0] != "_"} - {"agent", "index_entry"}
    assert [name for name in classes if name not in text] == []
    assert [name for name in sorted(methods) if f"`{name}" not in text] == []


def test_make_targets_of_the_pages_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named: set[str] = set()
    for page in PAGES:
        named |= set(re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8")))
        for body in blocks(page, "sh", "console"):
            named |= set(re.findall(r"^(?:\$ )?make ([a-z-]+)", body, re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


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


# Configuration and commands in code blocks


CONFIGURATIONS = [(page_name(page), body) for page in PAGES for body in blocks(page, "toml")]


@pytest.mark.parametrize(("page", "text"), CONFIGURATIONS, ids=[page for page, _ in CONFIGURATIONS])
def test_configurations_of_the_pages_are_read(
    page: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "submarine.toml"
    file.write_text(text, encoding="utf-8")
    file.chmod(0o644)
    monkeypatch.setattr(config_file, "SITE_FILE", tmp_path / "absent.toml")
    of_site = "[locked]" in text
    found = read_site_file({SITE_VARIABLE: str(file)}) if of_site else read_file(file, tmp_path)
    assert found is not None
    assert found.top or found.profiles or found.sections


def commands(page: Path) -> Iterator[str]:
    """Commands in code blocks, from ``submarine`` on."""
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
    context = build().make_context("submarine", words, obj=Frontend())
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


def write_tables() -> None:
    text = REASONS_PAGE.read_text(encoding="utf-8")
    for name in TABLES:
        text = with_table(text, name)
    REASONS_PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_tables()
