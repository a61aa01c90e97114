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
_MAX_PASSES = 4

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
class _Slot:
    """A node, or the lane of an edge in a column."""

    name: str
    height: int
    before: list[_Slot]
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


def compute_layout(nodes: Sequence[Node]) -> Layout:
    """Compute the positions of ``nodes`` and of the edges between them."""
    steps = columns(nodes)
    column_of = {node.name: number for number, step in enumerate(steps) for node in step}
    slots: list[list[_Slot]] = [[_Slot(node.name, HEIGHT, []) for node in s] for s in steps]
    boxes = {slot.name: slot for column in slots for slot in column}
    pairs = [
        (name, node.name)
        for step in steps
        for node in step
        for name in dict.fromkeys(node.depends_on)
        if name in column_of and column_of[name] < column_of[node.name]
    ]
    ways: dict[tuple[str, str], list[tuple[int, _Slot]]] = {}
    for start, end in pairs:
        way = _skipped_columns(column_of[start], column_of[end], len(pairs) <= _MAX_ROUTED)
        passed = [(column, _Slot("", _LANE, [])) for column in way]
        last = boxes[start]
        for column, slot in passed:
            slots[column].append(slot)
            slot.before.append(last)
            last = slot
        boxes[end].before.append(last)
        ways[start, end] = passed
    _arrange(slots)
    height = _set_vertical_positions(slots)
    corners = {
        name: (MARGIN + column_of[name] * (WIDTH + ACROSS), slot.top)
        for name, slot in boxes.items()
    }
    edges = [
        (start, end, list(_points(start, end, passed, boxes, column_of)))
        for (start, end), passed in ways.items()
    ]
    width = 2 * MARGIN + max(len(steps), 1) * (WIDTH + ACROSS) - ACROSS
    return Layout(width, height, corners, edges)


def _skipped_columns(start: int, end: int, routed: bool) -> range:
    return range(start + 1, end) if routed else range(0)


def _arrange(slots: list[list[_Slot]]) -> None:
    """Sort each column by the mean position of its predecessors, to reduce crossing edges."""
    for column in slots:
        for number, slot in enumerate(column):
            slot.order = number / max(len(column), 1)
    for _ in range(_MAX_PASSES):
        for column in slots[1:]:
            for slot in column:
                if slot.before:
                    slot.order = sum(one.order for one in slot.before) / len(slot.before)
            column.sort(key=lambda slot: slot.order)
            for number, slot in enumerate(column):
                slot.order = (number + 0.5) / len(column)


def _set_vertical_positions(slots: list[list[_Slot]]) -> float:
    """Assign vertical positions, with centred columns; return the total height."""
    heights = [sum(slot.height for slot in c) + DOWN * (len(c) - 1) for c in slots]
    tallest = max(heights, default=HEIGHT)
    for column, height in zip(slots, heights, strict=True):
        top = MARGIN + (tallest - height) / 2
        for slot in column:
            slot.top = top
            top += slot.height + DOWN
    return tallest + 2 * MARGIN


def _points(
    start: str,
    end: str,
    passed: Sequence[tuple[int, _Slot]],
    boxes: Mapping[str, _Slot],
    column_of: Mapping[str, int],
) -> Iterable[Point]:
    yield MARGIN + column_of[start] * (WIDTH + ACROSS) + WIDTH, boxes[start].middle
    for column, slot in passed:
        left = MARGIN + column * (WIDTH + ACROSS)
        yield left, slot.middle
        yield left + WIDTH, slot.middle
    yield MARGIN + column_of[end] * (WIDTH + ACROSS), boxes[end].middle
