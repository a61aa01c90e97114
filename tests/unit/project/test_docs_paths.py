"""The three paths through the documentation, the first paragraph of each page, and the pictures."""

from __future__ import annotations

import importlib.util
import re
import struct
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from submarine_jobs.commands.grammar import grammar
from submarine_jobs.commands.grammar.verbs import build
from tests.unit.pages import FENCE, ROOT, page_name

DOCS = ROOT / "docs"
DOC_PAGES = sorted(DOCS.glob("**/*.md"))
PATHS = ("Data scientists", "Administrators", "Contributors")
#: Pages of a path.
MOST = 5
#: The agreed beginning of a page: what its reader can do, in at most two sentences.
BEGINNING = "After reading this page you can "
MOST_CHARACTERS = 320
#: Bytes and pixels of a picture.
MOST_BYTES = 150_000
MOST_WIDTH = 2100


class Loader(yaml.SafeLoader):
    """Read mkdocs.yml, whose own tags (`!!python/name:...`) do not matter here."""


def _any_tag(loader: Loader, suffix: str, node: yaml.Node) -> str:
    return suffix


Loader.add_multi_constructor("tag:yaml.org,2002:python/", _any_tag)


def navigation() -> list[Any]:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    nav = yaml.load(text, Loader)["nav"]
    assert isinstance(nav, list)
    return nav


def pages_of(entries: list[Any]) -> list[str]:
    """Files of a section of the navigation, in order."""
    found: list[str] = []
    for entry in entries:
        target = next(iter(entry.values())) if isinstance(entry, dict) else entry
        found += pages_of(target) if isinstance(target, list) else [target]
    return found


def path_pages(title: str) -> list[str]:
    sections = [one[title] for one in navigation() if isinstance(one, dict) and title in one]
    assert len(sections) == 1, f"mkdocs.yml has {len(sections)} sections {title!r}"
    return pages_of(sections[0])


def title_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


# Paths


def test_the_paths_are_at_the_top_of_the_navigation() -> None:
    titles = [next(iter(one)) for one in navigation() if isinstance(one, dict)]
    assert titles[: 1 + len(PATHS)] == ["Overview", *PATHS]


@pytest.mark.parametrize("title", PATHS)
def test_a_path_has_at_most_five_pages_and_each_links_to_the_next(title: str) -> None:
    pages = path_pages(title)
    assert 3 <= len(pages) <= MOST
    for page, following in zip(pages, [*pages[1:], None], strict=True):
        text = (DOCS / page).read_text(encoding="utf-8")
        links = re.findall(r"^\*\*Next:\*\* \[([^\]]+)\]\(([\w.-]+)\)$", text, re.MULTILINE)
        wanted = [(title_of(following), following)] if following else []
        assert links == wanted, f"{page} must end with **Next:** and a link to {following}"
        assert not links or text.rstrip().splitlines()[-1].startswith("**Next:** ")


def test_the_overview_leads_to_the_first_page_of_each_path() -> None:
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    assert [title for title in PATHS if f"]({path_pages(title)[0]})" not in text] == []


# Beginnings


@pytest.mark.parametrize("page", DOC_PAGES, ids=page_name)
def test_a_page_begins_with_what_its_reader_can_do(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    assert lines[1] == ""
    paragraph = " ".join(lines[2 : lines.index("", 2)])
    assert paragraph.startswith(BEGINNING), f"{page_name(page)} must begin with {BEGINNING!r}"
    plain = re.sub(r"`[^`]*`|\([^)]*\)", "", paragraph)
    sentences = re.findall(r"[.!?](?= [A-Z`%]|$)", plain)
    assert 1 <= len(sentences) <= 2
    assert paragraph.endswith(".")
    assert len(paragraph) <= MOST_CHARACTERS


# Commands and options within sentences and tables; those of code blocks are parsed in test_docs.py.


def options_of(command: click.Command) -> set[str]:
    return {
        name.replace("_", "-")
        for param in command.params
        for name in (*param.opts, *param.secondary_opts)
    } | {"--help", "-h", "--json"}


def named_commands(page: Path) -> list[str]:
    """Inline code that is a command, `submarine VERB ...` or `%submarine VERB ...`."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return re.findall(r"(?<!`)`%?(submarine [a-z][^`\n]*)`(?!`)", text)


#: Commands that are wrong on purpose, and sentences with placeholders.
NOT_COMMANDS = (DOCS / "refusals.md", DOCS / "messages.md")
INLINE = [
    (page_name(page), line)
    for page in DOC_PAGES
    if page not in NOT_COMMANDS
    for line in named_commands(page)
]


def unknown_words(line: str) -> list[str]:
    """Words of a command line that are no verb, subcommand or option."""
    words = [word.strip("[]?") for word in line.replace("\\|", "|").split()[1:]]
    # A verb of Zeppelin's former interpreter, and a command that contains another one.
    if words[0] == "dashboard" or "with-values" in words:
        return []
    command: click.Command | None = build()
    while words and isinstance(command, click.Group):
        with click.Context(command, info_name="submarine") as ctx:
            following = command.get_command(ctx, words[0])
        if following is None:
            # A group with a default, an option of the group or a placeholder.
            return [] if words[0].startswith("-") or not words[0].islower() else [words[0]]
        command = following
        words = words[1:]
    assert command is not None
    if "--" in words:
        words = words[: words.index("--")]
    named = [word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)]
    return [name for name in named if name.replace("_", "-") not in options_of(command)]


def test_the_pages_name_commands() -> None:
    assert len(INLINE) > 100


@pytest.mark.parametrize(("page", "line"), INLINE)
def test_commands_in_sentences_exist(page: str, line: str) -> None:
    unknown = unknown_words(line)
    assert not unknown, f"{page} names `{line}`: there is no {unknown}"


def test_a_command_that_does_not_exist_is_found() -> None:
    assert unknown_words("submarine runn train.py") == ["runn"]
    assert unknown_words("submarine run train.py --gpus-please 1") == ["--gpus-please"]
    assert unknown_words("submarine kernel remove gpu4") == ["remove"]
    assert unknown_words("submarine kernel install --gpu 4 --queue ml") == []


def test_options_in_the_paths_exist() -> None:
    """Options on the pages of the paths, with or without a command, are options of some verb."""
    known: set[str] = set()
    pending: list[click.Command] = [grammar(), build()]
    while pending:
        command = pending.pop()
        known |= options_of(command)
        if isinstance(command, click.Group):
            with click.Context(command, info_name="submarine") as ctx:
                children = [command.get_command(ctx, name) for name in command.list_commands(ctx)]
            pending += [child for child in children if child is not None]
    # Options of `%%submarine` above a cell, and of pytest on the contributors' pages.
    known |= {"--file", "--only", "--hypothesis-profile", "--basetemp"}
    wrong = []
    for page in (name for title in PATHS for name in path_pages(title)):
        text = FENCE.sub("", (DOCS / page).read_text(encoding="utf-8"))
        named = re.findall(r"`(--[a-z][a-z_-]*)", text)
        wrong += [f"{page}: {one}" for one in named if one.replace("_", "-") not in known]
    assert wrong == []


# A change from start to end


def test_the_change_names_files_and_what_they_contain() -> None:
    text = (DOCS / "change.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|(?: \d+ \|)? `([\w./]+)` \| (.*) \|$", text, re.MULTILINE)
    assert len(rows) >= 16
    for name, description in rows:
        content = (ROOT / name).read_text(encoding="utf-8")
        words = re.findall(r"`([^`]+)`", description)
        assert [word for word in words if word not in content] == [], name


# Pictures


def declared_pictures() -> set[str]:
    """Files that scripts/screenshots.py writes."""
    path = ROOT / "scripts" / "screenshots.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its dataclass looks itself up there.
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return {file for name in module.PICTURES for _, file in module.files_of(name)}


@pytest.mark.slow
def test_every_picture_is_written_by_the_script_and_shown_on_a_page() -> None:
    files = {path.name for path in (DOCS / "assets").glob("*.png")}
    assert files == declared_pictures()
    text = "".join(page.read_text(encoding="utf-8") for page in DOC_PAGES)
    shown = set(re.findall(r"\]\(assets/([\w-]+\.png)", text))
    assert shown == files


@pytest.mark.parametrize("page", DOC_PAGES, ids=page_name)
def test_a_picture_with_a_dark_file_shows_both(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    pictures = re.findall(r"!\[([^\]]+)\]\(assets/([\w-]+)\.png(#[\w-]+)?\)", text)
    for alternative, name, theme in pictures:
        if name.endswith("-dark"):
            assert theme == "#only-dark"
            assert (alternative, name.removesuffix("-dark"), "#only-light") in pictures
        elif (DOCS / "assets" / f"{name}-dark.png").exists():
            assert theme == "#only-light"
            assert (alternative, f"{name}-dark", "#only-dark") in pictures


@pytest.mark.parametrize(
    "picture", sorted((DOCS / "assets").glob("*.png")), ids=lambda path: str(path.name)
)
def test_a_picture_is_small(picture: Path) -> None:
    content = picture.read_bytes()
    assert len(content) <= MOST_BYTES
    width, height = struct.unpack(">II", content[16:24])
    assert width <= MOST_WIDTH
    assert height <= width * 1.2
