"""A condition in the form that Azkaban takes, whose check of an upload is narrower than its words.

Notes
-----
``DirectoryYamlFlowLoader.validateCondition`` takes a condition apart at ``&& || == != > <``, so
that ``>=`` and ``<=`` leave a piece that it refuses, and knows whole numbers, quoted text and
``${job:parameter}`` only. The script engine that judges it later sees every parameter as text, and
compares two texts as texts, ``'10' < '9'``: a number must stay one.
"""

from __future__ import annotations

import re

from submarine_workflows.model import tokens_of

#: ``ConditionOnJobStatus``.
MACROS = ("all_success", "all_done", "all_failed", "one_success", "one_failed")
_WHOLE = re.compile(r"0|[1-9]\d*")
_SPLIT = re.compile(r"&&|\|\||==|!=|>|<")
_OPERAND = re.compile(r"\d+|'.*'|\".*\"|\$\{[^:{}]+:[^:{}]+\}", re.DOTALL)
_SPACE = re.compile(r"\s+|\(|\)")


def azkabans_condition(text: str) -> str:
    """``text`` in words that Azkaban takes and judges the same.

    Raises
    ------
    ValueError
        If there are none; the message is a sentence.

    Examples
    --------
    >>> azkabans_condition("${train:accuracy} >= 0.9")
    "(${train:accuracy} > '1'*'0.9' || ${train:accuracy} == '1'*'0.9')"
    """
    tokens = [(kind, _number(word) if kind == "number" else word) for kind, word in tokens_of(text)]
    words: list[str] = []
    at = 0
    while at < len(tokens):
        sign = tokens[at + 1][1] if at + 2 < len(tokens) else ""
        if tokens[at][0] != "op" and sign in (">=", "<="):
            left, right = tokens[at][1], tokens[at + 2][1]
            words += ["(", f"{left} {sign[0]} {right} || {left} == {right}", ")"]
            at += 3
        else:
            words.append(tokens[at][1])
            at += 1
    made = " ".join(words).replace("( ", "(").replace(" )", ")").replace("! ", "!")
    _check(text, made)
    return made


def _number(word: str) -> str:
    """A whole number as it is; any other as a product, which passes the check and is a number."""
    return word if _WHOLE.fullmatch(word) else f"'1'*'{word}'"


def _check(text: str, made: str) -> None:
    """Azkaban's own check, so that nobody learns of it at the upload."""
    if any(kind == "param" and _SPACE.search(word) for kind, word in tokens_of(text)):
        raise ValueError(
            f"Azkaban takes the spaces out of the condition `{text}` and then knows no such node: "
            "give the node a name without spaces."
        )
    for piece in _SPLIT.split(_SPACE.sub("", made)):
        word = piece.removeprefix("!")
        if word.lower() in MACROS or _OPERAND.fullmatch(word):
            continue
        if word.isidentifier():
            known = f"it knows {', '.join(MACROS)}"
        else:
            known = "quoted text must have none of && || == != < > in it, and one ! is enough"
        raise ValueError(f"Azkaban does not take `{word}` in the condition `{text}`: {known}.")
