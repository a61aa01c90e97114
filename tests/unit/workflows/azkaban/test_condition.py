"""Conditions in the words that Azkaban's check takes, which judges them as we do."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from submarine_workflows.azkaban.project.condition import to_azkaban_condition
from submarine_workflows.model import ConditionInputs, read_condition
from tests.azkaban.script import holds


@pytest.mark.parametrize(
    ("ours", "azkabans"),
    [
        ("one_success", "one_success"),
        ("${a:x} > 5 && ${b:y} == 'z w'", "${a:x} > 5 && ${b:y} == 'z w'"),
        ("${a:x} < -0.5", "${a:x} < '1'*'-0.5'"),
        ("${a:x} <= 010", "(${a:x} < '1'*'010' || ${a:x} == '1'*'010')"),
        ("!(${a:x} >= 5) || all_done", "!((${a:x} > 5 || ${a:x} == 5)) || all_done"),
    ],
)
def test_conditions_in_azkabans_words(ours: str, azkabans: str) -> None:
    assert to_azkaban_condition(ours) == azkabans


@pytest.mark.parametrize(
    ("ours", "sentence"),
    [
        ("one_success_all_done", "use one of all_success"),
        ("${a b:x} == 1", "without spaces"),
        ("${a:x} == 'b && c'", "quoted text must not contain"),
        ("!!(${a:x} == 1)", "! must not be repeated"),
    ],
)
def test_conditions_that_azkaban_cannot_say(ours: str, sentence: str) -> None:
    with pytest.raises(ValueError) as refused:
        to_azkaban_condition(ours)
    assert sentence in str(refused.value)


NUMBERS = st.one_of(
    st.integers(-1000, 1000),
    st.floats(-1000, 1000, allow_nan=False).map(lambda value: round(value, 3)),
)
OPERATORS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])


@given(NUMBERS, OPERATORS, NUMBERS, st.booleans(), st.booleans())
def test_azkaban_judges_a_condition_as_we_do(
    value: float, sign: str, bound: float, negated: bool, swapped: bool
) -> None:
    left, right = "${a:x}", f"{bound:.3f}" if isinstance(bound, float) else str(bound)
    text = f"{right} {sign} {left}" if swapped else f"{left} {sign} {right}"
    text = f"!({text})" if negated else text
    ours = read_condition(text).holds(ConditionInputs([True], {"a": {"x": value}}))
    outputs = {"a": {"x": str(json.loads(json.dumps(value)))}}
    assert holds(to_azkaban_condition(text), outputs) is ours
    assert holds(to_azkaban_condition(f"one_success && ({text})"), outputs) is ours


def test_text_is_judged_as_we_do() -> None:
    for text, value, true in (
        ("${a:x} == 'good'", "good", True),
        ("${a:x} != \"good\"", "bad", True),
        ("${a:x} == 'good' || ${a:x} == 'fair'", "fair", True),
        ("${a:x} == 'a b'", "a  b", False),
    ):  # fmt: skip
        assert read_condition(text).holds(ConditionInputs([True], {"a": {"x": value}})) is true
        assert holds(to_azkaban_condition(text), {"a": {"x": value}}) is true
    # What was never put out is neither more nor less than anything.
    assert holds(to_azkaban_condition("${a:x} >= 0.5"), {}) is False
