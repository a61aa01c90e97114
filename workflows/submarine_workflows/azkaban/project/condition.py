"""Translate a condition to the subset that Azkaban accepts.

Notes
-----
``DirectoryYamlFlowLoader.validateCondition`` splits a condition at ``&& || == != > <``, so it
rejects the rest of ``>=`` and ``<=``, and accepts only whole numbers, quoted text and
``${job:parameter}``. The script engine that evaluates the condition receives every parameter as
text and compares two texts as text, ``'10' < '9'``: a number must remain a number.
"""

from __future__ import annotations

import re

from submarine_runtime.translation import _
from submarine_workflows.model import tokens_of

#: ``ConditionOnJobStatus``.
MACROS = ("all_success", "all_done", "all_failed", "one_success", "one_failed")
_WHOLE_NUMBER = re.compile(r"0|[1-9]\d*")
_SPLIT = re.compile(r"&&|\|\||==|!=|>|<")
_OPERAND = re.compile(r"\d+|'.*'|\".*\"|\$\{[^:{}]+:[^:{}]+\}", re.DOTALL)
_SPACE = re.compile(r"\s+|\(|\)")


def to_azkaban_condition(text: str) -> str:
    """Return an equivalent condition that Azkaban accepts.

    Raises
    ------
    ValueError
        If there is none; the message is a sentence.

    Examples
    --------
    >>> to_azkaban_condition("${train:accuracy} >= 0.9")
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
    translated = " ".join(words).replace("( ", "(").replace(" )", ")").replace("! ", "!")
    _check(text, translated)
    return translated


def _number(word: str) -> str:
    """Return a whole number unchanged, any other as a product, which is accepted and is numeric."""
    return word if _WHOLE_NUMBER.fullmatch(word) else f"'1'*'{word}'"


def _check(text: str, translated: str) -> None:
    """Apply Azkaban's own check, so that errors appear before the upload."""
    if any(kind == "param" and _SPACE.search(word) for kind, word in tokens_of(text)):
        raise ValueError(
            _(
                "Azkaban removes the spaces from the condition `{text}` and does not find the "
                "node: use a node name without spaces."
            ).format(text=text)
        )
    for piece in _SPLIT.split(_SPACE.sub("", translated)):
        word = piece.removeprefix("!")
        if word.lower() in MACROS or _OPERAND.fullmatch(word):
            continue
        if word.isidentifier():
            known = _("use one of {macros}").format(macros=", ".join(MACROS))
        else:
            known = "quoted text must not contain && || == != < >, and ! must not be repeated"
        raise ValueError(
            _("Azkaban does not accept `{word}` in the condition `{text}`: {known}.").format(
                word=word, text=text, known=known
            )
        )
