"""What a cell's first line and its tags say: names of files, options, refusals."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from submarine_jobs.errors import UsageError
from submarine_jobs.program import (
    Cell,
    check_file_name,
    package_files,
    parse_cell,
    parse_options,
    tags_of_metadata,
)
from submarine_jobs.program.cell_magic import CollectOptions


@pytest.mark.parametrize("name", ["model.py", "pkg/model.py", "a/b/c.py", "Main_2.py", "main.py"])
def test_names_of_files_that_are_taken(name: str) -> None:
    assert check_file_name(name) == name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("/etc/passwd.py", "absolute"),
        ("C:/x.py", "absolute"),
        ("~/x.py", "absolute"),
        ("../x.py", "leads out"),
        ("a/../x.py", "leads out"),
        ("a//x.py", "leads out"),
        ("./x.py", "leads out"),
        ("a\\x.py", "backslash"),
        ("model.txt", "not a Python file"),
        ("model", "not a Python file"),
        ("my-model.py", "valid module name"),
        ("2fast.py", "valid module name"),
        ("class.py", "valid module name"),
        (".py", "valid module name"),
        ("modèle.py", "valid module name"),
        ("json.py", "standard library"),
        ("os/path.py", "standard library"),
        ("submarine_runtime/x.py", "Submarine"),
        ("a" * 300 + ".py", "200 characters"),
        ("", "200 characters"),
        ("a\nb.py", "valid module name"),
    ],
)
def test_names_of_files_that_are_refused(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_file_name(name)
    with pytest.raises(UsageError):
        Cell(None, "x", filename=name)


@given(st.text(max_size=30))
def test_an_accepted_name_stays_in_the_bundle(name: str) -> None:
    try:
        check_file_name(name)
    except UsageError:
        return
    assert not name.startswith("/")
    assert ".." not in name.split("/")
    assert name.endswith(".py")


def test_packages_get_their_init_files() -> None:
    assert package_files({"a/b/c.py", "m.py"}) == {"a/__init__.py", "a/b/__init__.py"}
    assert package_files({"a/__init__.py", "a/x.py"}) == set()


def test_the_magic_line_is_split_from_the_body() -> None:
    marked = parse_cell("\n\n%%submarine --file m.py\r\nx = 1\r\n")
    assert marked is not None
    assert (marked.line, marked.body, marked.first_line) == ("--file m.py", "x = 1\n", 4)
    assert parse_cell("x = 1\n%%submarine") is None
    assert parse_cell("%%submarine_other\nx") is None
    assert parse_cell("%submarine run x") is None
    empty = parse_cell("%%submarine")
    assert empty is not None
    assert empty.body == ""


def test_options_of_the_magic_line() -> None:
    assert parse_options("") == CollectOptions()
    assert parse_options("--only --file 'pkg/m.py'") == CollectOptions("pkg/m.py", True)
    assert parse_options("--file=m.py  # why") == CollectOptions("m.py")
    assert parse_options("run digits --gpu 1").verb == "run"


@pytest.mark.parametrize("line", ["--file", "--what", "--file 'x", "status", "--file ../x.py"])
def test_a_wrong_magic_line_is_refused(line: str) -> None:
    with pytest.raises(UsageError):
        parse_options(line)


@pytest.mark.parametrize(
    ("tags", "line"),
    [
        (["submarine"], ""),
        ([" submarine "], ""),
        (["x", "submarine:model.py"], "--file model.py"),
        (["submarine", "submarine: pkg/model.py"], "--file pkg/model.py"),
        (["submarine:a b.py"], "--file 'a b.py'"),
        (["submarine:"], "--file ''"),
        (["submarine-only"], "--only"),
        (["x", "submarine-only: a.py"], "--only --file a.py"),
        (["submarine-only", "submarine:a.py"], "--only --file a.py"),
        (["Submarine", "submarine-x", "x:submarine", ""], None),
    ],
)
def test_a_tag_says_what_a_line_would(tags: list[str], line: str | None) -> None:
    marked = parse_cell("a = 1\nb = 2", tags)
    assert (marked.line if marked else None) == line
    if marked:
        assert (marked.body, marked.first_line) == ("a = 1\nb = 2", 1)


def test_the_magic_line_has_the_last_word_over_tags() -> None:
    marked = parse_cell("%%submarine --file b.py\nb = 1", ["submarine:a.py"])
    assert marked is not None
    assert (marked.line, marked.body, marked.first_line) == ("--file b.py", "b = 1", 2)


def test_tags_are_read_from_any_metadata() -> None:
    assert tags_of_metadata({"tags": ["a", 3, None, "b"]}) == ("a", "b")
    odd: Any
    for odd in (None, {}, {"tags": "submarine"}, {"tags": {"a": 1}}, []):
        assert tags_of_metadata(odd) == ()
