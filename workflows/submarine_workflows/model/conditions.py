"""Parse and evaluate the conditions of Flow 2.0, without Python's ``eval``.

A condition such as ``one_success && ${features:rows} > 5`` contains at most one of ``MACROS``,
comparisons of output parameters of earlier nodes with numbers or quoted text, ``&& || !`` and
parentheses (Azkaban's documentation, "Conditional Workflow").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from submarine_runtime.translation import _

MACROS = (
    "all_success",
    "all_done",
    "all_failed",
    "one_success",
    "one_failed",
    "one_success_all_done",
    "one_failed_all_done",
)
DEFAULT = "all_success"
MAX_LENGTH = 2000
_TOKEN = re.compile(
    r"\s*(?:(?P<param>\$\{[^{}:]{1,200}:[^{}]{1,200}\})|(?P<number>-?\d+(?:\.\d+)?)"
    r"|(?P<text>\"[^\"]*\"|'[^']*')|(?P<op>&&|\|\||==|!=|>=|<=|>|<|!|\(|\))|(?P<word>\w+))"
)
_COMPARE: dict[str, Callable[[int], bool]] = {
    "==": lambda sign: sign == 0,
    "!=": lambda sign: sign != 0,
    ">": lambda sign: sign > 0,
    "<": lambda sign: sign < 0,
    ">=": lambda sign: sign >= 0,
    "<=": lambda sign: sign <= 0,
}


class ConditionError(ValueError):
    """A condition is invalid; the message is a sentence."""


@dataclass(frozen=True)
class ConditionInputs:
    """Values that a condition is evaluated against.

    Attributes
    ----------
    succeeded
        Whether each node that this one depends on has succeeded.
    outputs
        Node -> output parameter -> value.
    """

    succeeded: Sequence[bool]
    outputs: Mapping[str, Mapping[str, object]]


Predicate = Callable[[ConditionInputs], bool]


@dataclass(frozen=True)
class Condition:
    """A parsed condition.

    Attributes
    ----------
    parameters
        ``(node, name)`` of each output that it refers to.
    """

    text: str
    macro: str
    parameters: tuple[tuple[str, str], ...]
    holds: Predicate


def read_condition(text: str) -> Condition:
    """Parse a condition. An empty condition requires that all have succeeded.

    Raises
    ------
    ConditionError
        If the text is not a condition.
    """
    if len(text) > MAX_LENGTH:
        raise ConditionError(
            _("A condition has at most {max_length} characters.").format(max_length=MAX_LENGTH)
        )
    parser = _Parser(text)
    if not parser.tokens:
        return Condition(text, DEFAULT, (), _MACROS[DEFAULT])
    predicate = parser.disjunction()
    if parser.tokens:
        raise ConditionError(
            _("Unexpected `{tokens}` in the condition `{text}`.").format(
                tokens=parser.tokens[0][1], text=text
            )
        )
    if len(parser.macros) > 1:
        raise ConditionError(
            _("The condition `{text}` combines {macros}; use only one.").format(
                text=text, macros=" and ".join(parser.macros)
            )
        )
    if not parser.macros:  # Azkaban starts such a node when all its dependencies have succeeded
        parameters, base = predicate, _MACROS[DEFAULT]
        predicate = lambda inputs: base(inputs) and parameters(inputs)  # noqa: E731
    macro = parser.macros[0] if parser.macros else DEFAULT
    return Condition(text, macro, tuple(dict.fromkeys(parser.parameters)), predicate)


def tokens_of(text: str) -> list[tuple[str, str]]:
    """Return the tokens of a condition, each with its kind: param, number, text, op or word.

    Raises
    ------
    ConditionError
        If the text contains anything else.
    """
    tokens, at, text = [], 0, text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ConditionError(
                _("`{text}` is not valid in the condition `{text_2}`.").format(
                    text=text[at:].split()[0], text_2=text
                )
            )
        tokens.append((str(match.lastgroup), match.group(str(match.lastgroup))))
        at = match.end()
    return tokens


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self.macros: list[str] = []
        self.parameters: list[tuple[str, str]] = []
        self.tokens = tokens_of(text)
        self._depth = 0

    def _take(self, *wanted: str) -> bool:
        if self.tokens and self.tokens[0][0] == "op" and self.tokens[0][1] in wanted:
            self.tokens.pop(0)
            return True
        return False

    def disjunction(self) -> Predicate:
        parts = [self.conjunction()]
        while self._take("||"):
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else lambda inputs: any(part(inputs) for part in parts)

    def conjunction(self) -> Predicate:
        parts = [self.term()]
        while self._take("&&"):
            parts.append(self.term())
        return parts[0] if len(parts) == 1 else lambda inputs: all(part(inputs) for part in parts)

    def term(self) -> Predicate:
        self._depth += 1
        if self._depth > 100:
            raise ConditionError(_("`{text}` is nested too deeply.").format(text=self._text))
        try:
            if self._take("!"):
                inner = self.term()
                return lambda inputs: not inner(inputs)
            if self._take("("):
                inner = self.disjunction()
                if not self._take(")"):
                    raise ConditionError(
                        _("A closing parenthesis is missing in `{text}`.").format(text=self._text)
                    )
                return inner
            if self.tokens and self.tokens[0][0] == "word":
                return self._macro(self.tokens.pop(0)[1])
            return self._comparison()
        finally:
            self._depth -= 1

    def _macro(self, word: str) -> Predicate:
        if word not in MACROS:
            raise ConditionError(
                _("`{word}` is not a condition; use one of {macros}.").format(
                    word=word, macros=", ".join(MACROS)
                )
            )
        self.macros.append(word)
        return _MACROS[word]

    def _comparison(self) -> Predicate:
        left, sign, right = self._operand(), self._sign(), self._operand()
        compare = _COMPARE[sign]

        def predicate(inputs: ConditionInputs) -> bool:
            a, b = left(inputs), right(inputs)
            if a is None or b is None:
                return False  # a missing output compares as false with any value
            return compare(_order(a, b))

        return predicate

    def _sign(self) -> str:
        if self.tokens and self.tokens[0][1] in _COMPARE:
            return self.tokens.pop(0)[1]
        raise ConditionError(
            _("A comparison in `{text}` needs one of {compare}.").format(
                text=self._text, compare=" ".join(_COMPARE)
            )
        )

    def _operand(self) -> Callable[[ConditionInputs], object]:
        if not self.tokens:
            raise ConditionError(_("`{text}` is incomplete.").format(text=self._text))
        kind, word = self.tokens.pop(0)
        if kind == "param":
            node, _unused, name = word[2:-1].partition(":")
            self.parameters.append((node, name))
            return lambda inputs: inputs.outputs.get(node, {}).get(name)
        if kind not in ("number", "text"):
            raise ConditionError(
                _(
                    "`{text}` needs a number, quoted text or ${{node:parameter}} instead of "
                    "`{word}`."
                ).format(text=self._text, word=word)
            )
        value = word[1:-1] if kind == "text" else word
        return lambda inputs: value


def _order(a: object, b: object) -> int:
    """Compare two values and return -1, 0 or 1: as numbers if both are numbers, else as text."""
    try:
        x, y = float(str(a)), float(str(b))
    except ValueError:
        left, right = str(a), str(b)
        return (left > right) - (left < right)
    return (x > y) - (x < y)


_MACROS: dict[str, Predicate] = {
    "all_success": lambda inputs: all(inputs.succeeded),
    "all_done": lambda inputs: True,
    "all_failed": lambda inputs: not any(inputs.succeeded),
    "one_success": lambda inputs: any(inputs.succeeded),
    "one_failed": lambda inputs: not all(inputs.succeeded),
    "one_success_all_done": lambda inputs: any(inputs.succeeded),
    "one_failed_all_done": lambda inputs: not all(inputs.succeeded),
}
