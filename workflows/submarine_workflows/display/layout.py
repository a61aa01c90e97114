"""Where the nodes of a workflow stand in a picture, and the ways of the edges between them.

Columns are steps: a node stands one to the right of the last node that it waits for. An edge that
skips a column has a place of its own there, so that it runs between nodes and not through them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from submarine_workflows.model import Node

WIDTH, HEIGHT, ACROSS, DOWN, MARGIN = 168, 42, 52, 18, 2
#: Height of the place that an edge has in a column which it skips.
_LANE = 10
#: More edges than these run straight: their places would be most of the picture.
_MAX_ROUTED = 600
_SWEEPS = 4

Point = tuple[float, float]


@dataclass(frozen=True)
class Layout:
    """A picture without its colours.

    Attributes
    ----------
    corners
        Node -> upper left corner of its box.
    edges
        ``(from, to, points)``: points where it passes, from the right of one box to the left of
        the other.
    """

    width: float
    height: float
    corners: Mapping[str, Point]
    edges: Sequence[tuple[str, str, Sequence[Point]]]


@dataclass
class _Place:
    """A node, or an edge on its way through a column."""

    name: str
    height: int
    before: list[_Place]
    order: float = 0.0
    top: float = 0.0

    @property
    def middle(self) -> float:
        return self.top + self.height / 2


def columns(nodes: Sequence[Node]) -> list[list[Node]]:
    """Nodes by the step in which they may start at the earliest; of a graph without cycles."""
    known = {node.name: node for node in nodes}
    waits = {name: {n for n in node.depends_on if n in known} for name, node in known.items()}
    found: list[list[Node]] = []
    done: set[str] = set()
    while waits:
        ready = [name for name, others in waits.items() if others <= done] or list(waits)
        found.append([known[name] for name in ready])
        done.update(ready)
        for name in ready:
            del waits[name]
    return found


def lay_out(nodes: Sequence[Node]) -> Layout:
    """Places of ``nodes`` and of the edges between them."""
    steps = columns(nodes)
    column_of = {node.name: number for number, step in enumerate(steps) for node in step}
    places: list[list[_Place]] = [[_Place(node.name, HEIGHT, []) for node in s] for s in steps]
    boxes = {place.name: place for column in places for place in column}
    pairs = [
        (name, node.name)
        for step in steps
        for node in step
        for name in dict.fromkeys(node.depends_on)
        if name in column_of and column_of[name] < column_of[node.name]
    ]
    ways: dict[tuple[str, str], list[tuple[int, _Place]]] = {}
    for start, end in pairs:
        way = _way(column_of[start], column_of[end], len(pairs) <= _MAX_ROUTED)
        passed = [(column, _Place("", _LANE, [])) for column in way]
        last = boxes[start]
        for column, place in passed:
            places[column].append(place)
            place.before.append(last)
            last = place
        boxes[end].before.append(last)
        ways[start, end] = passed
    _arrange(places)
    height = _settle(places)
    corners = {
        name: (MARGIN + column_of[name] * (WIDTH + ACROSS), place.top)
        for name, place in boxes.items()
    }
    edges = [
        (start, end, list(_points(start, end, passed, boxes, column_of)))
        for (start, end), passed in ways.items()
    ]
    width = 2 * MARGIN + max(len(steps), 1) * (WIDTH + ACROSS) - ACROSS
    return Layout(width, height, corners, edges)


def _way(start: int, end: int, routed: bool) -> range:
    return range(start + 1, end) if routed else range(0)


def _arrange(places: list[list[_Place]]) -> None:
    """Order each column by the mean of what its places come from: fewer edges cross."""
    for column in places:
        for number, place in enumerate(column):
            place.order = number / max(len(column), 1)
    for _ in range(_SWEEPS):
        for column in places[1:]:
            for place in column:
                if place.before:
                    place.order = sum(one.order for one in place.before) / len(place.before)
            column.sort(key=lambda place: place.order)
            for number, place in enumerate(column):
                place.order = (number + 0.5) / len(column)


def _settle(places: list[list[_Place]]) -> float:
    """Give each place its height on the page, columns centred; returns the whole height."""
    heights = [sum(place.height for place in c) + DOWN * (len(c) - 1) for c in places]
    tallest = max(heights, default=HEIGHT)
    for column, height in zip(places, heights, strict=True):
        top = MARGIN + (tallest - height) / 2
        for place in column:
            place.top = top
            top += place.height + DOWN
    return tallest + 2 * MARGIN


def _points(
    start: str,
    end: str,
    passed: Sequence[tuple[int, _Place]],
    boxes: Mapping[str, _Place],
    column_of: Mapping[str, int],
) -> Iterable[Point]:
    yield MARGIN + column_of[start] * (WIDTH + ACROSS) + WIDTH, boxes[start].middle
    for column, place in passed:
        left = MARGIN + column * (WIDTH + ACROSS)
        yield left, place.middle
        yield left + WIDTH, place.middle
    yield MARGIN + column_of[end] * (WIDTH + ACROSS), boxes[end].middle
