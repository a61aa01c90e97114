"""The script engine that judges a condition, as far as conditions go: JavaScript's comparisons."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

MACRO = re.compile(r"(?i)\b(all_success|all_failed|all_done|one_failed|one_success)\b")
VARIABLE = re.compile(r"\$\{([^:{}]+):([^:{}]+)\}")
TOKEN = re.compile(
    r"\s*(?:(\d+(?:\.\d+)?)|('[^']*'|\"[^\"]*\")|(&&|\|\||==|!=|>=|<=|>|<|!|\(|\)|\*)|(true))"
)


def holds(condition: str, outputs: Mapping[str, Mapping[str, str]]) -> bool:
    """``isConditionOnRuntimeVariableMet``: macros are true, parameters are text in quotes."""
    text = condition
    match = MACRO.search(text)
    if match is not None:
        text = text.replace(match[1], "true")
    for whole, job, name in [(m[0], m[1], m[2]) for m in VARIABLE.finditer(text)]:
        value = outputs.get(job, {}).get(name, "null")
        text = text.replace(whole, f"'{value}'")
    tokens: list[str] = []
    at = 0
    while at < len(text.rstrip()):
        found = TOKEN.match(text, at)
        if found is None:
            return False  # the engine fails, which counts as no
        tokens.append(next(group for group in found.groups() if group is not None))
        at = found.end()
    judged = _Judge(tokens).either()
    return judged if isinstance(judged, bool) else False  # a cast to boolean that fails


class _Judge:
    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens

    def take(self, *wanted: str) -> str:
        return self.tokens.pop(0) if self.tokens and self.tokens[0] in wanted else ""

    def either(self) -> object:
        value = self.both()
        while self.take("||"):
            other = self.both()
            value = value if truth(value) else other
        return value

    def both(self) -> object:
        value = self.equal()
        while self.take("&&"):
            other = self.equal()
            value = other if truth(value) else value
        return value

    def equal(self) -> object:
        value = self.order()
        while sign := self.take("==", "!="):
            same = equal(value, self.order())
            value = same if sign == "==" else not same
        return value

    def order(self) -> object:
        value = self.product()
        while sign := self.take(">", "<", ">=", "<="):
            value = ordered(sign, value, self.product())
        return value

    def product(self) -> object:
        value = self.one()
        while self.take("*"):
            value = number(value) * number(self.one())
        return value

    def one(self) -> object:
        if self.take("!"):
            return not truth(self.one())
        if self.take("("):
            value = self.either()
            assert self.take(")")
            return value
        word = self.tokens.pop(0)
        if word == "true":
            return True
        return word[1:-1] if word[0] in "'\"" else float(word)


def truth(value: object) -> bool:
    return bool(value) and value == value


def number(value: object) -> float:
    if isinstance(value, (bool, float)):
        return float(value)
    try:
        return float(str(value).strip() or "0")
    except ValueError:
        return math.nan


def equal(a: object, b: object) -> bool:
    if isinstance(a, str) and isinstance(b, str):
        return a == b
    return number(a) == number(b)


def ordered(sign: str, a: object, b: object) -> bool:
    x, y = (a, b) if isinstance(a, str) and isinstance(b, str) else (number(a), number(b))
    return {">": x > y, "<": x < y, ">=": x >= y, "<=": x <= y}[sign]  # type: ignore[operator]
