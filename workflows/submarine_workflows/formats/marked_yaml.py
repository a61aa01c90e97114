"""Load YAML with the line of each value; only text, numbers, lists and maps are constructed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from submarine_runtime.translation import _
from submarine_workflows.model import Problem, WorkflowError

#: PyYAML may be built without libyaml, which is ten times faster.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_BYTES = 4 << 20
#: Aliases can expand a small text to more values than fit into memory.
MAX_VALUES = 200_000
MAX_DEPTH = 50


@dataclass(frozen=True)
class Value:
    """A value and the line where it begins.

    Attributes
    ----------
    data
        ``str`` for a scalar, as it was written; ``list`` of values; ``dict`` by key.
    """

    data: str | list[Value] | dict[str, Value]
    line: int
    scalar: Any = None

    @property
    def what(self) -> str:
        """Return the type of the value in words, for messages."""
        if isinstance(self.data, dict):
            return "a map"
        return "a list" if isinstance(self.data, list) else f"`{self.data}`"


def load(text: str, file: str = "") -> Value:
    """Load one document.

    Raises
    ------
    WorkflowError
        If it is not YAML, contains several documents or a duplicate key, or is too large.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise WorkflowError(
            [
                Problem(
                    0,
                    _("The text is larger than {max_bytes} MiB.").format(max_bytes=MAX_BYTES >> 20),
                    file,
                )
            ]
        )
    try:
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as exc:
        raise WorkflowError([_syntax_problem(exc, text, file)]) from None
    except (RecursionError, ValueError) as exc:
        raise WorkflowError(
            [Problem(0, _("This is not valid YAML: {error}.").format(error=exc), file)]
        ) from None
    if root is None:
        return Value({}, 1)
    return _MarkReader(file).read(root, 0)


def _syntax_problem(exc: yaml.YAMLError, text: str, file: str) -> Problem:
    mark = getattr(exc, "problem_mark", None) or getattr(exc, "context_mark", None)
    problem = getattr(exc, "problem", None) or str(exc)
    if mark is not None and "cannot start any token" in problem and _is_tab(mark, text):
        problem = _("the line is indented with a tab, and YAML requires spaces")
    return Problem(
        mark.line + 1 if mark else 0,
        _("This is not valid YAML: {problem}.").format(problem=problem),
        file,
    )


def _is_tab(mark: yaml.Mark, text: str) -> bool:
    line = text.splitlines()[mark.line : mark.line + 1]
    return bool(line) and line[0][mark.column : mark.column + 1] == "\t"


class _MarkReader:
    def __init__(self, file: str) -> None:
        self._file = file
        self._count = 0
        self._constructor = yaml.constructor.SafeConstructor()

    def read(self, node: yaml.Node, depth: int) -> Value:
        line = node.start_mark.line + 1
        self._count += 1
        if self._count > MAX_VALUES or depth > MAX_DEPTH:
            raise self._error(line, _("The text expands to more values than a workflow may have."))
        if isinstance(node, yaml.MappingNode):
            return Value(self._map(node, depth), line)
        if isinstance(node, yaml.SequenceNode):
            return Value([self.read(item, depth + 1) for item in node.value], line)
        return Value(str(node.value), line, self._scalar(node))

    def _map(self, node: yaml.MappingNode, depth: int) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(line, _("A key must be text."))
            if key.value in found:
                first = found[key.value].line
                raise self._error(
                    line,
                    _("`{key}` is defined twice, first in line {first}.").format(
                        key=key.value, first=first
                    ),
                )
            found[key.value] = self.read(value, depth + 1)
        return found

    def _scalar(self, node: yaml.Node) -> Any:
        """Return a number, boolean, None or text. Other types, such as dates, become text."""
        try:
            value = self._constructor.construct_object(node)
        except (yaml.YAMLError, ValueError):
            return str(node.value)
        return value if isinstance(value, (str, int, float)) or value is None else str(node.value)

    def _error(self, line: int, sentence: str) -> WorkflowError:
        return WorkflowError([Problem(line, sentence, self._file)])
