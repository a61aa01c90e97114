"""Compute the positions of nodes and edges in a drawing.

Columns are steps: a node is placed one column to the right of its last dependency. An edge that
skips a column has its own lane there, so that it passes between nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from submarine_workflows.model import Node

WIDTH, HEIGHT, ACROSS, DOWN, MARGIN = 168, 42, 52, 18, 2
#: Height of an edge's lane in a column that it skips.
_LANE = 10
#: With more edges they are drawn straight: lanes would fill most of the drawing.
_MAX_ROUTED = 600
_SWEEPS = 4

Point = tuple[float, float]


@dataclass(frozen=True)
class Layout:
    """Positions of a drawing.

    Attributes
    ----------
    corners
        Node -> upper left corner of its box.
    edges
        ``(from, to, points)``: points that the edge passes, from the right side of one box to the
        left side of the other.
    """

    width: float
    height: float
    corners: Mapping[str, Point]
    edges: Sequence[tuple[str, str, Sequence[Point]]]


@dataclass
class _Place:
    """A node, or the lane of an edge in a column."""

    name: str
    height: int
    before: list[_Place]
    order: float = 0.0
    top: float = 0.0

    @property
    def middle(self) -> float:
        return self.top + self.height / 2


def columns(nodes: Sequence[Node]) -> list[list[Node]]:
    """Group the nodes of an acyclic graph by the earliest step in which they may start."""
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
    """Compute the positions of ``nodes`` and of the edges between them."""
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
    """Sort each column by the mean position of its predecessors, to reduce crossing edges."""
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
    """Assign vertical positions, with centred columns; return the total height."""
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
