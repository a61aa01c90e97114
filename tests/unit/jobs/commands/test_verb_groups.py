"""Verbs of one word (`kernel`, `notebook`, `workflow`, `zeppelin`): their help, and `--json`."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from submarine_jobs.commands import complete, execute
from submarine_jobs.commands.grammar import Verb, plugins
from submarine_jobs.commands.grammar.groups import VerbGroup
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend
from tests.frontends import RecordingFrontend

GROUPS = {
    name: found for name, point in plugins().items() if isinstance(found := point.load(), VerbGroup)
}
VERBS = [[name, verb] for name, group in GROUPS.items() for verb in group.commands]


def test_these_are_ours() -> None:
    assert set(GROUPS) == {"kernel", "notebook", "workflow", "zeppelin"}


@pytest.mark.parametrize("name", GROUPS)
def test_the_help_has_a_line_for_each_verb(name: str) -> None:
    group = GROUPS[name]
    lines = {verb: line for verbs in group.sections.values() for verb, line in verbs.items()}
    assert sorted(lines) == sorted(group.commands)
    told = execute([name, "--help"], Frontend()).text
    for verb, line in lines.items():
        assert re.search(rf"(?m)^  {verb} +{re.escape(line)}$", told)
    assert all(isinstance(verb, Verb) and verb.example for verb in group.commands.values())


@pytest.mark.parametrize(
    "words",
    [[name, verb] for name, group in GROUPS.items() for verb in group.commands],
    ids=" ".join,
)
def test_no_option_is_without_a_heading_or_a_help(words: list[str]) -> None:
    verb = GROUPS[words[0]].commands[words[1]]
    told = execute([*words, "--help"], Frontend()).text
    assert not re.search(r"(?m)^ *:$", told)
    assert "--json" in told
    for option in verb.params:
        assert not isinstance(option, click.Option) or option.help or option.hidden


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_tab_offers_words_and_never_nothing(words: list[str]) -> None:
    verb = GROUPS[words[0]].commands[words[1]]
    for option in verb.params:
        if isinstance(option.type, click.Choice):
            offered = complete([*words, option.opts[0], ""], Frontend())
            assert offered == list(option.type.choices)
            assert all(offered)


def test_in_a_notebook_the_help_is_in_its_words() -> None:
    assert execute(["workflow", "--help"], RecordingFrontend("notebook")).text.startswith(
        "Usage: %submarine workflow "
    )


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (["workflow", "export", "nightly.flow"], "--to"),
        (["workflow", "logs"], "RUN"),
        (["zeppelin", "check"], "DIRECTORY"),
    ],
)
def test_what_is_missing_is_named_as_it_is_typed(words: list[str], needed: str) -> None:
    with pytest.raises(UsageError, match=f"needs {needed}\\. See"):
        execute(words, Frontend())


def test_findings_about_a_zeppelin_are_json_too(tmp_path: Path) -> None:
    (tmp_path / "interpreter").mkdir()
    (tmp_path / "conf").mkdir()
    outcome = execute(["zeppelin", "install", str(tmp_path), "--json"], Frontend())
    assert outcome.as_json
    assert outcome.value["changed"] is True
