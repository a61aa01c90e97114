"""The share of a rank: every unit once, balanced by bytes, the same in each process."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings, strategies as st

from submarine_data.sharding import order, permutation, ranges, share, unit_size
from tests.random_examples import examples

WEIGHTS = st.lists(st.integers(0, 1 << 40), max_size=60)


@settings(max_examples=examples(60))
@given(weights=WEIGHTS, world=st.integers(1, 20))
def test_every_unit_belongs_to_one_rank(weights: list[int], world: int) -> None:
    shares = [share(weights, rank, world) for rank in range(world)]
    assert [unit for one in shares for unit in one] == list(range(len(weights)))


@settings(max_examples=examples(60))
@given(weights=WEIGHTS, world=st.integers(1, 20))
def test_a_share_is_at_most_the_mean_and_one_unit(weights: list[int], world: int) -> None:
    total = sum(max(1, weight) for weight in weights)
    for rank in range(world):
        mine = sum(max(1, weights[unit]) for unit in share(weights, rank, world))
        assert mine <= total / world + max(1, *weights, 1)


@settings(max_examples=examples(30))
@given(count=st.integers(1, 40), world=st.integers(1, 40))
def test_equal_units_give_each_rank_one(count: int, world: int) -> None:
    sizes = [len(share([5] * count, rank, world)) for rank in range(world)]
    assert max(sizes) - min(sizes) <= 1


@settings(max_examples=examples(30))
@given(size=st.integers(0, 10**6), step=st.integers(1000, 10**5))
def test_ranges_cover_a_file(size: int, step: int) -> None:
    found = ranges(size, step)
    assert found[0][0] == 0
    assert found[-1][1] == size
    assert all(left[1] == right[0] for left, right in pairwise(found))


def test_the_order_depends_on_seed_and_epoch_only() -> None:
    # The same in each version of Python, or shares of two nodes would overlap.
    assert permutation(8, 1, 2) == [0, 5, 7, 2, 4, 3, 6, 1]
    assert order(8, True, 1, 2) == permutation(8, 1, 2)
    assert order(3, False, 1, 2) == [0, 1, 2]
    assert (
        len({tuple(order(20, True, seed, epoch)) for seed in range(3) for epoch in range(3)}) == 9
    )


def test_units_are_small_parts_of_a_share() -> None:
    assert unit_size(10 << 30, 4) == 64 << 20
    assert unit_size(1 << 30, 4) == (1 << 30) // 128
    assert unit_size(1000, 4) == 1 << 20
