"""Whether a workflow makes sense: names, cycles, conditions, parameters, schedule.

Costs time in proportion to nodes and dependencies. Opens no file and asks no cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from submarine_jobs.text import one_line
from submarine_workflows.model.conditions import ConditionError, read_condition
from submarine_workflows.model.errors import Problem
from submarine_workflows.model.job_options import problem_of
from submarine_workflows.model.names import is_workflow_name
from submarine_workflows.model.node_commands import parameters_in, returns_of
from submarine_workflows.model.properties import NUMBERS, number_problem
from submarine_workflows.model.schedule import ScheduleError, read_schedule, read_timezone
from submarine_workflows.model.workflow import Kind, Node, Workflow

#: Azkaban's own name for the outermost flow.
RESERVED = "ROOT"
_NAME = re.compile(r"[\w.-]+(?: [\w.-]+)*", re.ASCII)
_PARAMETER = re.compile(r"\$\{([^{}]*)\}")
#: Parameters that Azkaban fills in when it runs a node, by how they begin.
_GIVEN = ("azkaban.", "working.dir", "user.to.proxy")


def check(workflow: Workflow, given: Iterable[str] = ()) -> list[Problem]:
    """All that is wrong with ``workflow``, in the order of its lines; empty: nothing.

    Parameters
    ----------
    given
        Names of parameters that the run is given values for.
    """
    checker = _Checker(workflow, given)
    checker.name()
    checker.schedule()
    checker.common()
    checker.level(workflow.nodes, "the workflow")
    for flows, node in workflow.walk():
        checker.node(flows, node)
        if node.kind is Kind.FLOW:
            checker.level(node.nodes, f"`{node.name}`")
    return sorted(checker.problems)


class _Checker:
    def __init__(self, workflow: Workflow, given: Iterable[str] = ()) -> None:
        self._workflow = workflow
        self._given = frozenset(given)
        self.problems: list[Problem] = []

    def name(self) -> None:
        """The workflow's own name."""
        if not is_workflow_name(self._workflow.name):
            sentence = (
                f"{one_line(self._workflow.name, 80)!r} is no name of a flow; it has 1 to 128 "
                "printable characters and no slash."
            )
            self._add(0, sentence)

    def schedule(self) -> None:
        workflow = self._workflow
        try:
            if workflow.schedule:
                read_schedule(workflow.schedule)
        except ScheduleError as exc:
            self._add(workflow.schedule_line, str(exc))
        try:
            if workflow.timezone:
                read_timezone(workflow.timezone)
        except ScheduleError as exc:
            self._add(workflow.timezone_line or workflow.schedule_line, str(exc))

    def common(self) -> None:
        """What holds for every node."""
        for _, problem in _number_problems(self._workflow.config):
            self._add(0, problem)

    def level(self, nodes: Sequence[Node], where: str) -> None:
        """Nodes beside each other: their names and what depends on what."""
        known: dict[str, Node] = {}
        for node in nodes:
            if node.name in known:
                first = known[node.name].line
                where_first = f", first in line {first}" if first else ""
                self._add(node.line, f"`{node.name}` is there twice{where_first}.")
            known.setdefault(node.name, node)
        sound = True
        for node in nodes:
            for name in node.depends_on:
                if name not in known:
                    sound = False
                    line = node.line_of(f"dependsOn.{name}", "dependsOn")
                    self._add(line, self._unknown(node.name, name, known, where))
        if sound and len(known) == len(nodes):
            self._cycle(known)
        self._conditions(known)

    def _unknown(self, node: str, name: str, known: Iterable[str], where: str) -> str:
        near = get_close_matches(name, list(known), 1)
        right = f"did you mean `{near[0]}`?" if near else f"{where} has: {', '.join(known)}."
        return f"`{node}` depends on `{name}`, which is not there; {right}"

    def _cycle(self, known: Mapping[str, Node]) -> None:
        """Kahn's order; whatever is left over contains a cycle, which is then walked."""
        open_ends = {name: len(set(node.depends_on)) for name, node in known.items()}
        followers: dict[str, list[str]] = {name: [] for name in known}
        for name, node in known.items():
            for other in set(node.depends_on):
                followers[other].append(name)
        ready = [name for name, count in open_ends.items() if not count]
        while ready:
            name = ready.pop()
            del open_ends[name]
            for follower in followers[name]:
                open_ends[follower] -= 1
                if not open_ends[follower]:
                    ready.append(follower)
        if not open_ends:
            return
        path = [next(iter(open_ends))]
        while path.count(path[-1]) < 2:
            path.append(next(n for n in known[path[-1]].depends_on if n in open_ends))
        circle = path[path.index(path[-1]) :]
        words = " -> ".join(f"`{name}`" for name in circle)
        self._add(
            min(known[name].line for name in circle),
            f"These nodes wait for each other and none could ever start: {words}.",
        )

    def _conditions(self, known: Mapping[str, Node]) -> None:
        for node in known.values():
            line = node.line_of("condition")
            try:
                condition = read_condition(node.condition)
            except ConditionError as exc:
                self._add(line, f"`{node.name}`: {exc}")
                continue
            if node.condition and not node.depends_on:
                self._add(line, f"`{node.name}` has a condition and depends on nothing.")
            before = _ancestors(node, known) if condition.parameters else set()
            for other, parameter in condition.parameters:
                if other not in before:
                    self._add(
                        line,
                        f"`{node.name}` asks for `{parameter}` of `{other}`, which it does not "
                        "depend on: it may not have run yet.",
                    )

    def node(self, flows: tuple[Node, ...], node: Node) -> None:
        """What a node says for itself."""
        if node.name == RESERVED or not _NAME.fullmatch(node.name):
            said = "is Azkaban's own" if node.name == RESERVED else "is no name"
            self._add(
                node.line,
                f"`{node.name}` {said}; a node's name has letters, digits, `.`, `_` and `-`.",
            )
        if node.kind is Kind.COMMAND and not node.config.get("command", "").strip():
            self._add(node.line, f"`{node.name}` is a command and has no `command` under `config:`")
        if node.kind is Kind.FLOW and not node.nodes:
            self._add(node.line, f"`{node.name}` is a flow and has no `nodes:`.")
        if node.kind is Kind.NOTEBOOK and not node.notebook:
            self._add(node.line, f"`{node.name}` is a notebook and has no `notebook:`.")
        if node.kind is Kind.CELLS and not node.cells:
            self._add(node.line, f"`{node.name}` runs cells and names none under `cells:`.")
        if node.job and (wrong := problem_of(node.job)):
            line = node.line_of(f"job.{wrong.option}", "job")
            self._add(line, f"`{node.name}`: {wrong.sentence}")
        for key, problem in _number_problems(node.config):
            self._add(node.line_of(f"config.{key}", "config"), f"`{node.name}`: {problem}")
        self._parameters(flows, node)

    def _parameters(self, flows: tuple[Node, ...], node: Node) -> None:
        """``${name}`` must be given by the node's own config or by that of a flow around it."""
        given = {*self._workflow.config, *node.config, *self._given}
        for flow in flows:
            given.update(flow.config)
        lines: dict[str, int] = {}
        for line, text in _values(node):
            for name in _PARAMETER.findall(text) if "${" in text else ():
                lines.setdefault(name, line)
        for name, line in lines.items():
            if name in given or name.startswith(_GIVEN) or self._is_output(flows, node, name):
                continue
            self._add(
                line,
                f"`{node.name}` uses ${{{name}}}, which is given nowhere: put `{name}` under the "
                "workflow's `config:`, where a run may give it another value.",
            )

    def _is_output(self, flows: tuple[Node, ...], node: Node, name: str) -> bool:
        """Whether one of those that it comes after may put it out: Azkaban makes it a parameter.

        What a command puts out is not known; of a notebook it is what conditions look at.
        """
        for depth, one in enumerate((*flows, node)):
            level = flows[depth - 1].nodes if depth else self._workflow.nodes
            for other in level:
                if other.name not in one.depends_on:
                    continue
                if other.kind in (Kind.COMMAND, Kind.OTHER, Kind.FLOW):
                    return True
                if name in returns_of(self._workflow, other, flows[:depth]):
                    return True
        return False

    def _add(self, line: int, sentence: str) -> None:
        self.problems.append(Problem(line, sentence, self._workflow.file))


def _number_problems(config: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What is a number must be one; a parameter in it is known only when the node runs."""
    for key in NUMBERS:
        text = config.get(key, "0")
        if "${" not in text and (problem := number_problem(key, text)):
            yield key, problem


def _values(node: Node) -> Iterator[tuple[int, str]]:
    """What parameters may stand in, with its line."""
    for what, found in (("config", node.config), ("params", node.params), ("job", node.job)):
        for key, value in found.items():
            yield node.line_of(f"{what}.{key}", what), str(value)
    for need in node.needs:
        yield need.line or node.line, parameters_in(need.url)


def _ancestors(node: Node, known: Mapping[str, Node]) -> set[str]:
    """All that must have ended before ``node`` starts."""
    found: set[str] = set()
    waiting = list(node.depends_on)
    while waiting:
        name = waiting.pop()
        if name not in found and name in known:
            found.add(name)
            waiting.extend(known[name].depends_on)
    return found
