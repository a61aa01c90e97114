"""Write docs/messages.md: all sentences for users, extracted from the code with Babel.

Usage: python scripts/messages.py. `tests/unit/project/test_messages.py` checks that the page is
current. Sentences are the arguments of ``_()``, ``gettext_noop()`` and ``ngettext()``, help texts
of commands and options in Python, and the arguments of JupyterLab's ``trans.__()`` and
``trans._n()``.
"""

from __future__ import annotations

import ast
import io
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from babel.messages.extract import extract_javascript

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "messages.md"
#: Title of a section by folder, in the order of the page.
SECTIONS = {
    "jobs": "Jobs and commands",
    "magics": "Notebook",
    "data": "Training data",
    "runtime": "Containers of a job",
    "labextension": "JupyterLab",
    "server_ext": "Jupyter server extension",
    "workflows": "Workflows and headless runs",
    "kernel": "Kernels and notebook servers",
    "zeppelin": "Zeppelin",
    "minicluster": "Minicluster",
}
INTRODUCTION = """\
# Messages

After reading this page you can find the file of each sentence that the project shows to users.

The sentences are listed by package and file. This page is written by `python scripts/messages.py`;
edit a sentence in its file. A name in braces, or `%1`, stands for a value.
"""
_PYTHON = {"_": 1, "gettext_noop": 1, "ngettext": 2}
_TYPESCRIPT = {"__": 1, "_n": 2}
_COMMANDS = ("command", "group", "verb_group")


def python_messages(source: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield line and forms (singular, plural) of each sentence of a Python module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            count = _PYTHON.get(getattr(node.func, "id", ""), 0)
            forms = tuple(text for text in map(_text, node.args[:count]) if text)
            if forms:
                yield node.lineno, forms
            for keyword in node.keywords:
                text = _text(keyword.value)
                if keyword.arg in ("help", "heading") and text:
                    yield keyword.value.lineno, (text,)
        elif isinstance(node, ast.FunctionDef) and any(map(_is_command, node.decorator_list)):
            description = ast.get_docstring(node)
            if description:
                yield node.lineno, (description,)


def _text(node: ast.expr) -> str:
    """Return the text of a literal; empty for other expressions."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_command(decorator: ast.expr) -> bool:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in _COMMANDS


def typescript_messages(source: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield line and forms of each sentence of a TypeScript module."""
    found = extract_javascript(
        io.BytesIO(source.encode()),
        dict.fromkeys(_TYPESCRIPT),
        [],
        {"encoding": "utf-8", "jsx": True, "template_string": True},
    )
    for line, function, messages, _comments in found:
        found_forms = cast("str | tuple[str | None, ...]", messages)
        forms = (found_forms,) if isinstance(found_forms, str) else found_forms
        yield line, tuple(text for text in forms[: _TYPESCRIPT[str(function)]] if text)


def all_messages() -> Iterator[tuple[str, str, list[tuple[str, ...]]]]:
    """Yield section, file and the sentences of the file in their order."""
    for folder in SECTIONS:
        top = ROOT / folder / ("src" if folder == "labextension" else "")
        for path in sorted(top.rglob("*")):
            if path.suffix == ".py":
                found = python_messages(path.read_text(encoding="utf-8"))
            elif path.suffix in (".ts", ".tsx") and folder == "labextension":
                found = typescript_messages(path.read_text(encoding="utf-8"))
            else:
                continue
            ordered = [forms for _line, forms in sorted(found) if forms]
            yield folder, path.relative_to(ROOT).as_posix(), ordered


def page() -> str:
    """Return the text of docs/messages.md. Each sentence is listed once, where it is used first."""
    lines, section = [INTRODUCTION], ""
    known: set[tuple[str, ...]] = set()
    for folder, path, found in all_messages():
        new = [forms for forms in dict.fromkeys(found) if forms not in known]
        known.update(new)
        if not new:
            continue
        if folder != section:
            lines.append(f"\n## {SECTIONS[folder]}\n")
            section = folder
        lines.append(f"\n### {path}\n\n")
        lines += [f"- {' / '.join(map(_code, forms))}\n" for forms in new]
    return "".join(lines)


def _code(text: str) -> str:
    """Return ``text`` as inline code on one line."""
    text = text.strip().replace("\n", "⏎")
    fence = "``" if "`" in text else "`"
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
