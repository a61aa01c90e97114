"""Which connections give way to new ones."""

from __future__ import annotations

from hypothesis import given, strategies as st

from submarine_runtime.network import ConnectionLimit


def test_the_oldest_of_the_same_address_gives_way() -> None:
    limit: ConnectionLimit[str] = ConnectionLimit(2, 10)
    assert limit.add("other", "10.0.0.2", 0) == []
    assert limit.add("a", "10.0.0.1", 1) == []
    assert limit.add("b", "10.0.0.1", 2) == []
    assert limit.add("c", "10.0.0.1", 3) == ["a"]
    limit.touch("b", 4)
    assert limit.add("d", "10.0.0.1", 5) == ["c"]
    assert list(limit) == ["other", "b", "d"]
    assert limit.older_than(5) == ["other", "b"]


def test_at_the_overall_limit_the_address_with_most_connections_gives_way() -> None:
    limit: ConnectionLimit[str] = ConnectionLimit(3, 4)
    for name in ("x1", "x2", "x3"):
        assert limit.add(name, "10.0.0.1", 0) == []
    assert limit.add("owner", "10.0.0.2", 1) == []
    assert limit.add("third", "10.0.0.3", 2) == ["x1"]
    assert limit.remove("owner")
    assert not limit.remove("owner")
    assert limit.add("again", "10.0.0.2", 3) == []
    assert "again" in limit


@given(
    st.lists(st.tuples(st.sampled_from(["add", "remove", "touch"]), st.integers(0, 5))),
    st.integers(1, 3),
    st.integers(1, 6),
)
def test_the_limits_hold_and_the_newest_connection_stays(
    steps: list[tuple[str, int]], per_address: int, overall: int
) -> None:
    limit: ConnectionLimit[int] = ConnectionLimit(per_address, overall)
    addresses: dict[int, str] = {}
    for number, (step, which) in enumerate(steps):
        if step == "add":
            addresses[number] = f"10.0.0.{which}"
            replaced = limit.add(number, addresses[number], number)
            assert number in limit or replaced == [number]
            assert replaced != [number] or overall < len(set(addresses.values()))
            assert all(one not in limit for one in replaced)
        elif step == "touch":
            limit.touch(which, number)
        else:
            limit.remove(which)
        held = [addresses[one] for one in limit]
        assert len(held) <= overall
        assert all(held.count(address) <= per_address for address in held)
