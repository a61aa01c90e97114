"""Flow 2.0's conditions: what they mean, and that nothing but them is ever evaluated."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, strategies as st

from submarine_workflows.model import ConditionError, ConditionInputs, read_condition

GOOD, MIXED, BAD = (True, True), (True, False), (False, False)


def holds(text: str, succeeded: Any = GOOD, **outputs: Any) -> bool:
    return read_condition(text).holds(ConditionInputs(succeeded, outputs))


@pytest.mark.parametrize(
    ("macro", "expected"),
    [
        ("", (True, False, False)),
        ("all_success", (True, False, False)),
        ("all_done", (True, True, True)),
        ("all_failed", (False, False, True)),
        ("one_success", (True, True, False)),
        ("one_failed", (False, True, True)),
        ("!one_failed", (True, False, False)),
    ],
)
def test_words_for_how_the_earlier_ones_ended(macro, expected):
    assert tuple(holds(macro, ended) for ended in (GOOD, MIXED, BAD)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${a:n} > 5", True),
        ("${a:n} == 10.0", True),
        ("5 < ${a:n}", True),
        ("${a:n} < 9", False),  # as numbers: as text 10 would come before 9
        ("${a:word} == 'yes'", True),
        ('${a:word} != "yes"', False),
        ("${a:none} == 1", False),
        ("${b:n} != 1", False),
        ("${a:n} > 50 || ${a:word} == 'yes' && ${a:n} > 1", True),
        ("(${a:n} > 50 || ${a:word} == 'yes') && ${a:n} > 11", False),
        ("!(${a:n} > 50)", True),
        ("one_success && ${a:n} >= 10", True),
    ],
)
def test_comparisons(text, expected):
    assert holds(text, a={"n": 10, "word": "yes"}) is expected


def test_parameters_alone_ask_for_success_too():
    assert not holds("${a:n} == 1", BAD, a={"n": 1})
    assert holds("one_failed && ${a:n} == 1", BAD, a={"n": 1})


def test_the_names_in_a_condition():
    condition = read_condition("${a:n} > 5 && ${b:m} < 2 && ${a:n} < 9")
    assert condition.parameters == (("a", "n"), ("b", "m"))


@pytest.mark.parametrize(
    "text",
    [
        "sometimes", "${a} > 5", "${a:n} >", "(all_done", "all_done)", "all_done && one_failed",
        "${a:n} = 5", "1 + 1 == 2", "__import__('os')", "${a:n} 5", "&&", "!" * 500 + "all_done",
        "(" * 500, "all_done || " * 500, "'open", "a.b == 1",
    ],
)  # fmt: skip
def test_anything_else_is_refused(text):
    with pytest.raises(ConditionError):
        read_condition(text)


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader(text):
    with contextlib.suppress(ConditionError):
        read_condition(text)
