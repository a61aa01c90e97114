"""Dataclasses as JSON: round trip, unknown fields, and errors that name the field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given, strategies as st

from submarine_runtime.protocol import FieldError, from_json, to_json


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Part:
    name: str
    color: Color | None = None
    sizes: tuple[int, ...] = ()


@dataclass
class Whole:
    title: str
    part: Part
    ratio: float = 0.5
    ready: bool = False
    parts: list[Part] = field(default_factory=list)
    by_name: Mapping[str, Part] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    other: Part | None = None


_text = st.text(max_size=4)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=6,
)
_parts = st.builds(
    Part,
    _text,
    st.none() | st.sampled_from(Color),
    st.lists(st.integers(), max_size=3).map(tuple),
)
_wholes = st.builds(
    Whole,
    _text,
    _parts,
    st.floats(allow_nan=False),
    st.booleans(),
    st.lists(_parts, max_size=2),
    st.dictionaries(_text, _parts, max_size=2),
    st.dictionaries(_text, st.integers(), max_size=2),
    st.dictionaries(_text, _json, max_size=2),
    st.lists(st.dictionaries(_text, _json, max_size=2), max_size=2),
    st.none() | _parts,
)
_names = st.sampled_from([*Whole.__dataclass_fields__, *Part.__dataclass_fields__, "new"])
_almost = st.recursive(
    _json, lambda inner: st.dictionaries(_names, inner, max_size=5), max_leaves=8
)


@pytest.mark.slow
@given(_wholes)
def test_round_trip(value: Whole) -> None:
    for defaults in (True, False):
        data = json.dumps(to_json(value, defaults=defaults))
        assert from_json(Whole, json.loads(data)) == value


@given(_wholes, _json)
def test_unknown_fields_are_ignored(value: Whole, added: Any) -> None:
    data = to_json(value)
    data["added"] = added
    data["part"]["added"] = added
    assert from_json(Whole, data) == value


@pytest.mark.slow
@given(_almost)
def test_other_forms_are_refused(data: Any) -> None:
    try:
        value = from_json(Whole, data)
    except FieldError:
        return
    assert isinstance(value.part, Part)
    assert to_json(value).items() >= {"title": data["title"]}.items()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"title": None}, "title: expected a string, got NoneType"),
        ({"ratio": True}, "ratio: expected a number, got bool"),
        ({"ready": 1}, "ready: expected true or false, got int"),
        ({"part": {}}, "part.name: missing"),
        ({"part": []}, "part: expected an object, got list"),
        ({"parts": [{"name": "a"}, {"name": 1}]}, "parts.1.name: expected a string, got int"),
        ({"parts": "ab"}, "parts: expected a list, got str"),
        ({"by_name": {"k": {"name": "a", "sizes": [2.5]}}}, "by_name.k.sizes.0: expected an int"),
        ({"other": {"name": "a", "color": "green"}}, "other.color: no Color: 'green'"),
        ({"other": {"name": "a", "color": []}}, "other.color: no Color: []"),
    ],
)
def test_an_error_names_the_field(change: dict[str, Any], message: str) -> None:
    data = {"title": "t", "part": {"name": "p"}, **change}
    with pytest.raises(ValueError) as caught:
        from_json(Whole, data)
    assert str(caught.value).startswith(message)


def test_an_integer_is_a_number() -> None:
    assert from_json(Whole, {"title": "t", "part": {"name": "p"}, "ratio": 2}).ratio == 2


def test_the_value_must_be_an_object() -> None:
    with pytest.raises(ValueError, match=r"^expected an object, got list$"):
        from_json(Whole, [])
