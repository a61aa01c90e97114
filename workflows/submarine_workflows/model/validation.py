"""Validate a workflow: names, cycles, conditions, parameters, job options, schedule.

The run time is linear in nodes and dependencies. No file is opened and no cluster is contacted, so
resources are not compared with the limits of a cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

from submarine_jobs.errors import SubmarineError
from submarine_jobs.text import one_line
from submarine_runtime.translation import _
from submarine_workflows.model.conditions import ConditionError, read_condition
from submarine_workflows.model.names import is_workflow_name
from submarine_workflows.model.node_commands import parameters_in, returns_of
from submarine_workflows.model.schedule import ScheduleError, read_schedule, read_timezone
from submarine_workflows.model.workflow import Kind, Node, Problem, Scalar, Workflow

#: Under ``config:``; ``retry.backoff`` is in milliseconds.
NUMBERS = ("retries", "retry.backoff")
_LONGEST = 12
_SOURCE = "job"
#: Azkaban's name of the outermost flow.
RESERVED = "ROOT"
_NAME = re.compile(r"[\w.-]+(?: [\w.-]+)*", re.ASCII)
_PARAMETER = re.compile(r"\$\{([^{}]*)\}")
#: Prefixes of parameters that Azkaban sets when it runs a node.
_AZKABAN_PARAMETERS = ("azkaban.", "working.dir", "user.to.proxy")


def number_problem(name: str, text: str) -> str:
    """Return the problem of a property's value in one sentence, or an empty string."""
    text = text.strip()
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST:
        return ""
    return _("`{name}` under `config:` must be a whole number of at least 0, not `{text}`.").format(
        name=name, text=text[:40]
    )


@dataclass(frozen=True)
class OptionProblem:
    """A problem with an option; ``option`` is empty if it concerns a combination."""

    sentence: str
    option: str = ""


def problem_of(options: Mapping[str, Scalar]) -> OptionProblem | None:
    """Return the problem of a node's job options, or None.

    For a value that contains a parameter only the option's name is checked.
    """
    fixed = {key: value for key, value in options.items() if "${" not in str(value)}
    names = tuple(sorted(set(options) - set(fixed)))
    problem = _problem(tuple(fixed.items()), names)
    if not problem:
        return None
    alone = [(name, _problem((), (name,))) for name in names]
    alone += [(item[0], _problem((item,), ())) for item in fixed.items()]
    return next(
        (OptionProblem(problem, name) for name, problem in alone if problem), OptionProblem(problem)
    )


@lru_cache(256)
def _problem(fixed: tuple[tuple[str, Scalar], ...], names: tuple[str, ...]) -> str:
    # cost: the options of `run` with click; a workflow without jobs does not need them.
    from submarine_jobs.commands.run import parse_run
    from submarine_magics.commands import default_words, option_named, spellings

    try:
        for name in names:
            option_named(name, _SOURCE, spellings())
        parse_run(["job", *default_words(dict(fixed), [], _SOURCE)])
    except SubmarineError as error:
        return " ".join(word for word in (error.message, error.fix) if word)
    return ""


def check(workflow: Workflow, given: Iterable[str] = ()) -> list[Problem]:
    """Return all problems of ``workflow`` sorted by line.

    Parameters
    ----------
    given
        Names of parameters that the run sets.
    """
    checker = _Checker(workflow, given)
    checker.name()
    checker.schedule()
    checker.common()
    checker.level(workflow.nodes, _("the workflow"))
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
        """Check the name of the workflow."""
        if not is_workflow_name(self._workflow.name):
            sentence = _(
                "{workflow!r} is not a valid flow name; use 1 to 128 printable characters "
                "without slashes."
            ).format(workflow=one_line(self._workflow.name, 80))
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
        """Check the properties that apply to every node."""
        for _unused, problem in _number_problems(self._workflow.config):
            self._add(0, problem)

    def level(self, nodes: Sequence[Node], where: str) -> None:
        """Check neighbouring nodes: names, dependencies and conditions."""
        known: dict[str, Node] = {}
        for node in nodes:
            if node.name in known:
                first = known[node.name].line
                where_first = _(", first in line {first}").format(first=first) if first else ""
                self._add(
                    node.line,
                    _("`{node}` is defined twice{where_first}.").format(
                        node=node.name, where_first=where_first
                    ),
                )
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
        right = (
            _("did you mean `{near}`?").format(near=near[0])
            if near
            else _("{where} has: {known}.").format(where=where, known=", ".join(known))
        )
        return _("`{node}` depends on `{name}`, which does not exist; {right}").format(
            node=node, name=name, right=right
        )

    def _cycle(self, known: Mapping[str, Node]) -> None:
        """Sort by Kahn's algorithm. Remaining nodes contain a cycle, which is then followed."""
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
            _("These nodes depend on each other in a cycle: {words}.").format(words=words),
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
                self._add(
                    line, _("`{node}` has a condition but no dependencies.").format(node=node.name)
                )
            before = _ancestors(node, known) if condition.parameters else set()
            for other, parameter in condition.parameters:
                if other not in before:
                    self._add(
                        line,
                        _(
                            "`{node}` uses `{parameter}` of `{other}` without depending on it: "
                            "`{other}` may not have run yet."
                        ).format(node=node.name, parameter=parameter, other=other),
                    )

    def node(self, flows: tuple[Node, ...], node: Node) -> None:
        """Check a single node."""
        if node.name == RESERVED or not _NAME.fullmatch(node.name):
            problem = (
                _("is reserved by Azkaban") if node.name == RESERVED else _("is not a valid name")
            )
            self._add(
                node.line,
                _("`{node}` {problem}; use letters, digits, `.`, `_` and `-`.").format(
                    node=node.name, problem=problem
                ),
            )
        if node.kind is Kind.COMMAND and not node.config.get("command", "").strip():
            self._add(
                node.line,
                _("`{node}` is a command but has no `command` under `config:`").format(
                    node=node.name
                ),
            )
        if node.kind is Kind.FLOW and not node.nodes:
            self._add(
                node.line, _("`{node}` is a flow but has no `nodes:`.").format(node=node.name)
            )
        if node.kind is Kind.NOTEBOOK and not node.notebook:
            self._add(
                node.line,
                _("`{node}` is a notebook but has no `notebook:`.").format(node=node.name),
            )
        if node.kind is Kind.CELLS and not node.cells:
            self._add(
                node.line,
                _("`{node}` runs cells but has none under `cells:`.").format(node=node.name),
            )
        if node.job and (wrong := problem_of(node.job)):
            line = node.line_of(f"job.{wrong.option}", "job")
            self._add(line, f"`{node.name}`: {wrong.sentence}")
        for key, problem in _number_problems(node.config):
            self._add(node.line_of(f"config.{key}", "config"), f"`{node.name}`: {problem}")
        self._parameters(flows, node)

    def _parameters(self, flows: tuple[Node, ...], node: Node) -> None:
        """Check that each ``${name}`` is set by the node, one of its flows, or the run."""
        given = {*self._workflow.config, *node.config, *self._given}
        for flow in flows:
            given.update(flow.config)
        lines: dict[str, int] = {}
        for line, text in _values(node):
            for name in _PARAMETER.findall(text) if "${" in text else ():
                lines.setdefault(name, line)
        for name, line in lines.items():
            if (
                name in given
                or name.startswith(_AZKABAN_PARAMETERS)
                or self._is_output(flows, node, name)
            ):
                continue
            self._add(
                line,
                _(
                    "`{node}` uses ${{{name}}}, which is not defined: add `{name}` to the "
                    "workflow's `config:`, where a run may override it."
                ).format(node=node.name, name=name),
            )

    def _is_output(self, flows: tuple[Node, ...], node: Node, name: str) -> bool:
        """Return whether a dependency may output this parameter, as Azkaban passes outputs on.

        The outputs of a command are unknown; those of a notebook are the ones that conditions use.
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
    """Yield invalid numbers; values with parameters are known only when the node runs."""
    for key in NUMBERS:
        text = config.get(key, "0")
        if "${" not in text and (problem := number_problem(key, text)):
            yield key, problem


def _values(node: Node) -> Iterator[tuple[int, str]]:
    """Yield the values that may contain parameters, with their lines."""
    for what, found in (("config", node.config), ("params", node.params), ("job", node.job)):
        for key, value in found.items():
            yield node.line_of(f"{what}.{key}", what), str(value)
    for need in node.needs:
        yield need.line or node.line, parameters_in(need.url)


def _ancestors(node: Node, known: Mapping[str, Node]) -> set[str]:
    """Return all nodes that must have ended before ``node`` starts."""
    found: set[str] = set()
    waiting = list(node.depends_on)
    while waiting:
        name = waiting.pop()
        if name not in found and name in known:
            found.add(name)
            waiting.extend(known[name].depends_on)
    return found
