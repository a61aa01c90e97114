"""The pages on commands and configuration name everything that there is."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from submarine_jobs.commands.grammar import VERBS, grammar
from submarine_jobs.config import KNOWN_SETTINGS, OWN_VARIABLES, PROFILE_KEYS
from submarine_jobs.config.loader import SHARED_VARIABLES
from submarine_jobs.options import RUN_OPTIONS, RoleOptions, normalize_option
from submarine_jobs.options.declaration import declared

DOCS = Path(__file__).parents[3] / "docs"
COMMANDS = (DOCS / "commands.md").read_text(encoding="utf-8")
CONFIGURATION = (DOCS / "configuration.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_of_a_verb_is_on_the_page(verb: str) -> None:
    with click.Context(grammar(), info_name="submarine") as ctx:
        command = grammar().get_command(ctx, verb)
        assert command is not None
        inner = command.commands.values() if isinstance(command, click.Group) else ()
        params = [param for one in (command, *inner) for param in one.params]
        visible = [p for p in params if isinstance(p, click.Option) and not p.hidden]
    missing = [
        name
        for option in visible
        for name in option.opts
        if name.startswith("--") and name != "--workers" and f"`{name}" not in COMMANDS
    ]
    assert missing == []
    assert re.search(rf"`{verb}\b", COMMANDS)


def test_no_option_on_the_page_is_invented() -> None:
    with click.Context(grammar(), info_name="submarine") as ctx:
        commands = [grammar().get_command(ctx, verb) for verb in VERBS]
        groups = [one for one in commands if isinstance(one, click.Group)]
        commands += [verb for group in groups for verb in group.commands.values()]
    known = {
        name.replace("_", "-")
        for command in commands
        if command is not None
        for param in command.params
        for name in param.opts
    } | {"--help"}
    named = {name.replace("_", "-") for name in re.findall(r"`(--[a-z][a-z_-]+)", COMMANDS)}
    assert named - known == set()


def headings() -> dict[str, set[str]]:
    """Normalized names of the options of a job, by their heading in the help."""
    found: dict[str, set[str]] = {}
    heading = ""
    for option in RUN_OPTIONS.values():
        heading = option.heading or heading
        names = (normalize_option(name) for name in (option.name, *option.aliases))
        found.setdefault(heading, set()).update(names)
    return found


def rows_below(heading: str) -> list[str]:
    """Rows of the tables below a heading, without the last column."""
    section = re.search(rf"^### {heading}\n(.*?)^##", COMMANDS, re.MULTILINE | re.DOTALL)
    assert section is not None
    rows = [line for line in section[1].splitlines() if line.startswith("| `")]
    return [re.sub(r"(?<!\\)\|[^|]*\|$", "", row) for row in rows]


@pytest.mark.parametrize("heading", headings())
def test_the_tables_of_run_have_exactly_the_declared_options(heading: str) -> None:
    named = re.findall(r"`(--[a-z][\w-]*)", "\n".join(rows_below(heading)))
    assert sorted(map(normalize_option, named)) == sorted(headings()[heading])


def test_the_table_of_role_words_has_exactly_the_declared_words() -> None:
    rows = "\n".join(row for row in rows_below("Roles") if "`--" not in row)
    words = {option.name for option in declared(RoleOptions).values()}
    assert sorted(re.findall(r"`([a-z][\w-]*)", rows)) == sorted(words)


def test_every_key_variable_and_setting_is_on_the_page() -> None:
    words = (*PROFILE_KEYS, *OWN_VARIABLES, *SHARED_VARIABLES, *KNOWN_SETTINGS)
    assert [word for word in words if f"`{word}`" not in CONFIGURATION] == []
