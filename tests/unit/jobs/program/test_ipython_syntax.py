"""IPython syntax in collected cells: left out or refused, and valid Python never touched."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from IPython.core.inputtransformer2 import TransformerManager

import submarine_jobs
from submarine_jobs.program import IPythonSyntaxError, clean_source
from submarine_jobs.program.logical_lines import logical_lines
from tests.random_examples import examples

VALID = [
    "x = 1\n",
    "x = (10\n% 3)\n",
    "y = 10 \\\n% 3\n",
    "s = '''\n%matplotlib inline\n!ls\n'''\n",
    's = """\n?\n"""\nz = "?"\n',
    "print('%s' % x)\nprint('!')  # ? ! %\n",
    "def f():\n    '''\n    %time\n    '''\n    return [1,\n!= 2] if 0 else 1\n".replace(
        "!=", "  -"
    ),
    'name = "a"\ns = f"{name!r:>{10}} {{%}}"\n',
    "s = f'''\n%ls {name}\n!x {{\n'''\n",
    "a: int = 3\nassert a != 2\nb = a == 3\n",
    "x = {'a':\n1,}\n",
    "async def f():\n    await g()\n    async with h: pass\n",
]
COMMANDS = [
    "%matplotlib inline",
    "!ls 'un(closed",
    "!pip install a \\\n   b",
    "?len",
    "len?",
    "%cd x",
]


@pytest.mark.parametrize("source", VALID)
def test_valid_python_is_never_changed(source: str) -> None:
    ast.parse(source)
    assert clean_source(source).text == source
    assert clean_source(source).removed == ()


@given(st.lists(st.sampled_from(VALID), min_size=1, max_size=6).map("".join))
def test_sequences_of_valid_statements_are_never_changed(source: str) -> None:
    assert clean_source(source).text == source


@pytest.mark.slow
def test_modules_of_this_project_and_of_python_are_never_changed() -> None:
    files = [Path(ast.__file__), Path(re.__file__)]
    files += sorted(Path(submarine_jobs.__file__).parent.rglob("*.py"))
    for file in files:
        source = file.read_text()
        assert clean_source(source).text == source


@pytest.mark.slow
def test_the_scanner_agrees_with_python_on_where_statements_begin() -> None:
    for file in [Path(ast.__file__), *sorted(Path(submarine_jobs.__file__).parent.rglob("*.py"))]:
        source = file.read_text()
        starts = {source.count("\n", 0, line.start) + 1 for line in logical_lines(source)}
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.stmt):
                first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
                assert first in starts, (file, first)


@given(
    st.lists(st.sampled_from(VALID), min_size=1, max_size=4),
    st.lists(st.sampled_from(COMMANDS), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
)
def test_commands_between_statements_are_found_exactly(
    parts: list[str], commands: list[str], random: object
) -> None:
    pieces = [(text, False) for text in parts] + [(text + "\n", True) for text in commands]
    random.shuffle(pieces)  # type: ignore[attr-defined]
    source = "".join(text for text, _ in pieces)
    cleaned = clean_source(source)
    assert [item.text for item in cleaned.removed] == [t.strip() for t, is_cmd in pieces if is_cmd]
    assert cleaned.text.count("\n") == source.count("\n")
    for item in cleaned.removed:
        assert source.split("\n")[item.line - 1].strip() == item.text.split("\n")[0]
    ast.parse(cleaned.text)
    for text, is_command in pieces:
        assert is_command or text in cleaned.text


@given(st.text(alphabet="%!?=()'\"\\\n#{}fx ,/;awit", max_size=80))
@settings(max_examples=examples(300))
def test_any_text_is_cleaned_or_refused_and_keeps_its_lines(source: str) -> None:
    line, fix = 1, "not needed"
    try:
        cleaned = clean_source(source)
    except IPythonSyntaxError as error:
        line, fix = error.line, error.fix
        cleaned = clean_source(source, lenient=True)
    assert 1 <= line <= source.count("\n") + 1
    assert fix
    assert cleaned.text.count("\n") == source.count("\n")


# IPython's own scanner loses its way behind an open bracket in a shell command; ours need not.
PLAIN = [*VALID, *(c + "\n" for c in COMMANDS if "(" not in c), "# %no\n"]


@given(st.lists(st.sampled_from(PLAIN)))
def test_what_is_left_out_is_what_ipython_transforms(parts: list[str]) -> None:
    source = "".join(parts)
    transformed = TransformerManager().transform_cell(source)
    assert len(clean_source(source).removed) == transformed.count("get_ipython()")


def test_an_indented_command_leaves_a_statement_in_its_block() -> None:
    cleaned = clean_source("if True:\n    !ls\nx = 1\n")
    assert cleaned.text == "if True:\n    pass  # !ls\nx = 1\n"


def test_time_keeps_its_statement() -> None:
    assert clean_source("%time x = f()\n!ls\n").text == "x = f()\n# !ls\n"


def test_the_first_lines_indentation_is_taken_from_all_as_ipython_does() -> None:
    assert clean_source("  x = 1\n  if x:\n    y = 2\n").text == "x = 1\nif x:\n  y = 2\n"


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        ("x = 1\nfiles = !ls", 2, "shell command"),
        ("out = %who_ls", 1, "a magic"),
        ("x = 1\n%%bash\nls", 2, "cell magic"),
        ("%%html\n<b>", 1, "cell magic"),
        ("x = 1\n%%time\ny = 2", 2, "cell magic"),
        ("%run other.py", 1, "runs code"),
        ("%timeit f()", 1, "runs code"),
        ("/f 1", 1, "automatic calling"),
        (",f a b", 1, "automatic calling"),
        ("x = 1\nawait f()", 2, "notebook only"),
        ("async with f() as g:\n    pass", 1, "notebook only"),
        ("y = [x async for x in g()]", 1, "notebook only"),
    ],
)
def test_what_the_program_would_miss_is_refused(source: str, line: int, words: str) -> None:
    with pytest.raises(IPythonSyntaxError, match=words) as caught:
        clean_source(source)
    assert caught.value.line == line


@pytest.mark.parametrize("source", ["%%time\nx = 1", "# first\n%%capture out\nx = 1"])
def test_measuring_cell_magics_are_left_out(source: str) -> None:
    assert ast.unparse(ast.parse(clean_source(source).text)) == "x = 1"


@pytest.mark.slow
def test_a_hostile_cell_takes_linear_time() -> None:
    for source in ["(" * 200_000 + "?", "f'{" * 100_000, "!a\\\n" * 50_000, "'" * 200_001 + "\n!x"]:
        clean_source(source, lenient=True)


def test_a_question_mark_that_asks_nothing_is_left_for_python_to_report() -> None:
    assert clean_source("len(x)?\n").text == "len(x)?\n"
