"""``%%submarine VERB`` with text below it, for verbs that other packages bring along."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import click
import pytest

from submarine_jobs.commands import CellBody, complete, execute, explain_word
from submarine_jobs.commands.grammar import CellVerb, complete_below, explain_below, option
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.frontends import Frontend, Outcome
from submarine_jobs.program import (
    Cell,
    DocumentCell,
    NotebookDocument,
    cell_magic as found,
    marked_cells,
    parse_options,
)
from submarine_magics.commands import complete_text, help_at
from submarine_magics.commands.help import COLLECTING


class Fruit(CellVerb):
    def complete_text(self, before: str) -> list[str]:
        last = before.split()[-1] if before.split() else ""
        return [word for word in ("apple", "apricot", "pear") if word.startswith(last)]

    def explain_text(self, before: str) -> str | None:
        return "A fruit." if before.endswith("pear") else None


@click.command("fruit", cls=Fruit)
@click.argument("name")
@option("--ripe", is_flag=True, help="Now.")
@click.pass_context
def fruit(ctx: click.Context, name: str, ripe: bool) -> Outcome:
    """Count the lines below."""
    body = CellBody.of(ctx)
    return Outcome(f"{name} of {body.cell}", value=[body.text, body.in_place.split("\n")[3], ripe])


@pytest.fixture(autouse=True)
def verbs(monkeypatch: pytest.MonkeyPatch) -> None:
    """This module's verb is there, and one that cannot be loaded."""
    group = found.ENTRY_POINT_GROUP
    points = {
        "fruit": EntryPoint("fruit", f"{__name__}:fruit", group),
        "gone": EntryPoint("gone", "submarine_is_not_there:at_all", group),
    }
    for module in (
        "submarine_jobs.program.cell_magic",
        "submarine_jobs.program.cell_magic",
        "submarine_jobs.commands.grammar.verbs",
        "submarine_magics.commands.completion",
        "submarine_magics.commands.help",
    ):
        monkeypatch.setattr(f"{module}.cell_verbs", lambda: points)


def test_the_verb_gets_the_text_below_it_and_knows_its_lines() -> None:
    body = CellBody("a\nb", 3, "[7]")
    outcome = execute(["fruit", "pear", "--ripe", "--json"], Frontend(), body)
    assert outcome.text == "pear of Cell [7]"
    assert outcome.value == ["a\nb", "b", True]
    assert outcome.as_json


def test_text_goes_to_no_other_verb_and_the_verb_wants_text() -> None:
    with pytest.raises(UsageError, match="No such command list"):
        execute(["list"], Frontend(), CellBody("x"))
    with pytest.raises(UsageError, match="No such command fruit"):
        execute(["fruit", "pear"], Frontend())
    with pytest.raises(SubmarineError, match="cannot be loaded from submarine_is_not_there"):
        execute(["gone"], Frontend(), CellBody("x"))
    with click.Context(fruit, info_name="fruit") as ctx, pytest.raises(UsageError, match="takes"):
        CellBody.of(ctx)


def test_such_a_cell_is_no_part_of_a_program() -> None:
    assert parse_options("fruit pear --ripe").verb == "fruit"
    assert not parse_options("fruit pear").in_program
    assert parse_options("run digits").in_program
    with pytest.raises(UsageError, match=r"run NAME \[options\] or fruit NAME \[options\]"):
        parse_options("vegetable")
    cells = tuple(
        DocumentCell(name, text, f"#{place}")
        for place, (name, text) in enumerate(
            [("a", "%%submarine fruit pear\nnodes: []"), ("b", "%%submarine\nx = 1")]
        )
    )
    document = NotebookDocument("n.ipynb", cells, b"")
    assert marked_cells(document) == [Cell("b", "x = 1", label="#1", first_line=2)]


def test_tab_and_help_on_the_line_and_below_it() -> None:
    assert complete(["fruit", "--r"], Frontend(), in_cell=True) == ["--ripe"]
    assert complete(["fr"], Frontend()) == []
    assert complete_below("fruit", "one ap") == ["apple", "apricot"]
    assert complete_below("gone", "one ap") == []
    assert explain_below("fruit", "a pear") == "A fruit."
    assert "Count the lines below." in (explain_word(["fruit"], "%%submarine", in_cell=True) or "")


def test_tab_in_a_cell_offers_what_the_verb_knows() -> None:
    text = "\n%%submarine fruit salad\nsome ap and more"
    matches = complete_text(text, 2, 7)
    assert matches is not None
    assert [item.text for item in matches["completions"]] == ["apple", "apricot"]
    assert matches["matched_fragment"] == "ap"
    assert complete_text("%%submarine\nap", 1, 2) is None
    assert complete_text("%%submarine fruit salad", 0, 8) is None


def test_help_in_a_cell_is_the_verbs() -> None:
    text = "%%submarine fruit salad --ripe\na pear"
    assert help_at(text, len(text) - 2) == "A fruit."
    assert "Now." in (help_at(text, text.index("--ripe") + 3) or "")
    assert "Count the lines below." in (help_at(text, text.index("fruit") + 1) or "")
    assert help_at("%%submarine --only\na pear", 3) == COLLECTING
    assert help_at("x = 1\na pear", 9) is None


def test_help_in_a_notebook_is_spelled_as_it_is_typed_there() -> None:
    text = help_at("%submarine wait", 12) or ""
    assert text.startswith("Usage: %submarine wait")
    assert "\n  %submarine wait last" in text
    assert "%%submarine" not in text
    assert execute(["wait", "--help"], Frontend()).text.startswith("Usage: submarine wait")
