"""Forms in the text of a paragraph: ``${name=value}`` and its variants, as in Zeppelin.

Zeppelin replaces each ``${...}`` of an interpreter whose forms are *simple*. The code of a program
has other texts of this kind, such as f-strings, ``string.Template`` and shell variables, so here
only a text that states a value is a form::

    ${rate=0.1}                             a text field
    ${rate(Learning rate)=0.1}              with a label
    ${city=b,b(Bern)|z(Zurich)}             a list: default, options with their texts
    ${checkbox:parts=x|y,x|y|z}             boxes; the checked values are joined by commas
    ${checkbox( or ):parts=x|y,x|y|z}       with another text between them
    _${rate=0.1}                            not shown

A name has letters, digits, blanks and ``_ . -``. A value that is empty or begins with ``=``, ``!``
or ``:`` is none, because an f-string can contain it.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from submarine_zeppelin.interface import Context, ParagraphKey

#: Value of the option ``form`` with which Zeppelin itself replaces the forms, before it sends the
#: text. With another value, such as ``native``, the text has no forms.
SIMPLE = "simple"
_TEMPLATE = re.compile(
    r"(?<!\$)(?P<hidden>_?)\$\{"
    r"(?:(?P<kind>checkbox)(?:\((?P<delimiter>[^()\n}]{0,50})\))?:)?"
    r"(?P<name>[^\W\d][\w .-]{0,199}?)(?:\((?P<label>[^()\n}]{0,200})\))?"
    r"=(?=[^\S\n]*[^\s=!:}])(?P<value>[^}\n]{0,2000})\}"
)
#: A form that Zeppelin itself replaces; ``$${...}`` is one of the whole note.
_SIMPLE_TEMPLATE = re.compile(
    r"(?P<hidden>_?)(?P<note>\$?)\$\{"
    r"(?:(?P<kind>checkbox|password)(?:\((?P<delimiter>[^()}]{0,50})\))?:)?"
    r"(?P<name>[^=}:()]{1,200}?)(?:\((?P<label>[^()}]{0,200})\))?"
    r"(?:=(?P<value>[^}]{0,2000}))?\}"
)
_ANY = re.compile(r"\$\{[^}]{0,2000}\}")
_OPTION = re.compile(r"([^(]*)\(([^)]*)\)")
_MAX_PARAGRAPHS = 2000


@dataclass(frozen=True)
class FormTemplate:
    """One form in a text.

    Attributes
    ----------
    text
        The form as it is in the text.
    kind
        Zeppelin's type: ``TextBox``, ``Select`` or ``CheckBox``.
    default
        A text; for boxes the list of the checked values.
    options
        Pairs of a value and its text, which may be None.
    delimiter
        Text between the checked values.
    """

    text: str
    name: str
    kind: str
    default: str | list[str]
    options: tuple[tuple[str, str | None], ...] = ()
    label: str = ""
    hidden: bool = False
    delimiter: str = ","

    def replacement(self, params: Mapping[str, Any]) -> str:
        """Return the text in place of the form, for the values of the page."""
        value = params.get(self.name)
        if value is None or (self.kind == "CheckBox") != isinstance(value, list):
            value = self.default
        if not isinstance(value, list):
            return _plain(value)
        checked = [_plain(one) for one in value]
        offered = {option for option, _text in self.options}
        return self.delimiter.join([one for one in checked if one in offered] or checked)

    def call(self) -> dict[str, Any]:
        """Return the fields with which a form is added to a paragraph."""
        return {
            "name": self.name,
            "kind": self.kind,
            "default": self.default,
            "options": [list(pair) for pair in self.options],
            "label": self.label,
            "hidden": self.hidden,
        }


def templates_of(context: Context) -> list[FormTemplate]:
    """Return the forms that the interpreter itself replaces in a paragraph."""
    return [] if context.form_mode else find_templates(context.text)


def expand_text(text: str, context: Context) -> str:
    """Return the text that a paragraph runs, with the values that the page has sent."""
    return text if context.form_mode else expand_templates(text, context.params)


def find_templates(text: str) -> list[FormTemplate]:
    """Return the forms in a text; of several with one name the last."""
    found = (_template(match) for match in _TEMPLATE.finditer(text))
    return list({template.name: template for template in found}.values())


def expand_templates(text: str, params: Mapping[str, Any]) -> str:
    """Replace the forms in a text by their values, or by their defaults."""
    return _TEMPLATE.sub(lambda match: _template(match).replacement(params), text)


def expand_simple(text: str, params: Mapping[str, Any], note_params: Mapping[str, Any]) -> str:
    """Replace the forms in a text as Zeppelin does in a paragraph with ``form=simple``."""
    return _SIMPLE_TEMPLATE.sub(
        lambda match: _template(match).replacement(note_params if match["note"] else params), text
    )


def _template(match: re.Match[str]) -> FormTemplate:
    first, comma, rest = (match["value"] or "").partition(",")
    boxes = match["kind"] == "checkbox"
    options = tuple(_option(one.strip()) for one in rest.split("|")) if comma else ()
    default: str | list[str] = first
    if boxes:
        default = [one.strip() for one in first.split("|") if one.strip()]
    return FormTemplate(
        match[0],
        match["name"].strip(),
        "CheckBox" if boxes else "Select" if comma else "TextBox",
        default,
        options,
        (match["label"] or "").strip(),
        bool(match["hidden"]),
        "," if match["delimiter"] is None else match["delimiter"],
    )


def _option(text: str) -> tuple[str, str | None]:
    match = _OPTION.match(text)
    return (text, None) if match is None else (match[1].strip(), match[2])


def _plain(value: object) -> str:
    # Zeppelin's JSON has only floating point numbers.
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)


@dataclass(frozen=True)
class FormRun:
    """Values of a paragraph's forms in its last run.

    Attributes
    ----------
    raw, expanded
        Only if Zeppelin has replaced the forms: the body before and after.
    """

    params: Mapping[str, Any]
    raw: str | None = None
    expanded: str = ""


_RUNS: OrderedDict[ParagraphKey, FormRun] = OrderedDict()


def record_forms(key: ParagraphKey, run: FormRun) -> None:
    """Record the values with which a paragraph runs."""
    _RUNS.pop(key, None)
    _RUNS[key] = run
    while len(_RUNS) > _MAX_PARAGRAPHS:
        _RUNS.popitem(last=False)


def forms_of(key: ParagraphKey) -> FormRun | None:
    """Return the values with which a paragraph ran last in this process; None if it did not."""
    return _RUNS.get(key)


def expand_body(body: str, mode: str, run: FormRun | None) -> tuple[str, str]:
    """Return the text of a body that is part of a program, and a form whose value is unknown.

    Parameters
    ----------
    mode
        Value of the option ``form``; empty if there is none.
    run
        The paragraph's last run; None if there is none.
    """
    if mode not in ("", SIMPLE) or "${" not in body:
        return body, ""
    if mode == SIMPLE:
        if run is not None and run.raw == body:
            return run.expanded, ""
        found = _ANY.search(body)
        return body, found[0] if found else ""
    templates = find_templates(body)
    if templates and run is None:
        return body, templates[0].text
    return expand_templates(body, run.params if run is not None else {}), ""
