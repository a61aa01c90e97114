"""Shared values: Java's format, limits, and values that are not there."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

from submarine_zeppelin.execution import ResourcePool
from submarine_zeppelin.execution.resources import MAX_TEXT, MAX_VALUES
from submarine_zeppelin.interface import ResourceValue, from_java, java_class, to_java
from submarine_zeppelin.thrift import EventClient
from tests.random_examples import examples

#: Written by ObjectOutputStream of a JDK 17.
WRITTEN = {
    "aced000574000161": "a",
    "aced0005740006eda0bdedb880": "\U0001f600",
    "aced0005740002c080": "\0",
    "aced0005737200116a6176612e6c616e672e496e746567657212e2a0a4f781873802000149000576616c7565"
    "787200106a6176612e6c616e672e4e756d62657286ac951d0b94e08b0200007870fffffff9": -7,
    "aced0005737200116a6176612e6c616e672e426f6f6c65616ecd207280d59cfaee0200015a000576616c7565"
    "787001": True,
}


@pytest.mark.parametrize(("data", "value"), list(WRITTEN.items()))
def test_the_format_is_javas(data: str, value: ResourceValue) -> None:
    assert to_java(value).hex() == data
    assert from_java(bytes.fromhex(data)) == value


@settings(max_examples=examples(50))
@given(
    st.text() | st.booleans() | st.floats(allow_nan=False) | st.integers(-(1 << 63), (1 << 63) - 1)
)
def test_values_are_read_as_they_were_written(value: ResourceValue) -> None:
    read = from_java(to_java(value))
    assert read == value
    assert type(read) is type(value)


def test_other_classes_and_damaged_data_are_refused() -> None:
    assert from_java(b"") is None
    assert from_java(bytes.fromhex("aced000570")) is None
    for data in (b"x", to_java(1)[:-1], bytes.fromhex("aced0005757200025b42")):
        with pytest.raises(ValueError, match="neither a text"):
            from_java(data)
    with pytest.raises(ValueError, match="64 bits"):
        java_class(1 << 63)


def test_a_process_has_limits_and_describes_its_values() -> None:
    pool = ResourcePool(EventClient("127.0.0.1", 1, "group"))
    pool.put("a", "text")
    (described,) = map(json.loads, pool.describe())
    assert described["resourceId"] == {"resourcePoolId": "group", "name": "a"}
    assert described["className"] == "java.lang.String"
    assert from_java(pool.serialized("a")) == "text"
    assert pool.serialized("b") == b""
    with pytest.raises(ValueError, match="limited"):
        pool.put("b", "x" * MAX_TEXT)
    for number in range(MAX_VALUES - 1):
        pool.put(f"n{number}", number)
    with pytest.raises(ValueError, match="limited"):
        pool.put("more", 1)
    assert pool.remove("a")
    assert not pool.remove("a")
    with pytest.raises(ValueError, match="does not answer"):
        pool.get("a")
