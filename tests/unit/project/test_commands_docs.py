"""The pages on commands and configuration name everything that there is."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from submarine_jobs.commands.grammar import grammar
from submarine_jobs.commands.grammar.verbs import VERBS
from submarine_jobs.config import OWN_VARIABLES
from submarine_jobs.config.file import KNOWN_SETTINGS, PROFILE_KEYS
from submarine_jobs.config.loader import SHARED_VARIABLES

DOCS = Path(__file__).parents[3] / "docs"
COMMANDS = (DOCS / "commands.md").read_text(encoding="utf-8")
CONFIGURATION = (DOCS / "configuration.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_of_a_verb_is_on_the_page(verb: str) -> None:
    with click.Context(grammar(), info_name="submarine") as ctx:
        command = grammar().get_command(ctx, verb)
        assert command is not None
        visible = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
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
    known = {
        name.replace("_", "-")
        for command in commands
        if command is not None
        for param in command.params
        for name in param.opts
    } | {"--help"}
    named = {name.replace("_", "-") for name in re.findall(r"`(--[a-z][a-z_-]+)", COMMANDS)}
    assert named - known == set()


def test_every_key_variable_and_setting_is_on_the_page() -> None:
    words = (*PROFILE_KEYS, *OWN_VARIABLES, *SHARED_VARIABLES, *KNOWN_SETTINGS)
    assert [word for word in words if f"`{word}`" not in CONFIGURATION] == []
