"""Sentences for users: marked where they are used, and listed in docs/messages.md."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


messages = _load(ROOT / "scripts" / "messages.py")
#: Packages whose sentences are marked.
MARKED = (
    "data",
    "jobs",
    "kernel",
    "magics",
    "minicluster",
    "runtime",
    "server_ext",
    "workflows",
    "zeppelin",
)
#: Exceptions and results for users, by the position of the first sentence among their arguments.
WITH_SENTENCES = {
    "UsageError": 0,
    "ConfigError": 0,
    "DataError": 0,
    "SubmarineError": 0,
    "ClusterError": 0,
    "RefusedError": 0,
    "MiniclusterError": 0,
    "JobNotFoundError": 0,
    "ApiError": 1,
    "WorkflowError": 0,
    "DriverUnreachableError": 0,
    "IPythonSyntaxError": 1,
    "NoAccessError": 0,
    "NoAnswerError": 0,
    "NoClusterError": 0,
    "NotSubmittedError": 0,
    "NotebookError": 0,
    "Outcome": 0,
    "StorageError": 0,
    "TimeoutError": 0,
    "error": 0,
    "ok": 0,
    "skipped": 0,
    "warning": 0,
}


@pytest.mark.slow
def test_the_page_of_messages_is_current() -> None:
    assert messages.PAGE.read_text(encoding="utf-8") == messages.page(), (
        "run: python scripts/messages.py"
    )


def test_singular_and_plural_are_extracted_from_python_and_typescript() -> None:
    source = """
@click.option("--gpu", help="GPUs.")
@verb.command()
def run():
    \"\"\"Run it.

    Twice.
    \"\"\"
    raise UsageError(_("No {name}, " "no job.").format(name=_("file")), ngettext("one", "many", n))
"""
    found = [forms for _line, forms in sorted(messages.python_messages(source))]
    expected = [
        ("GPUs.",),
        ("Run it.\n\nTwice.",),
        ("No {name}, no job.",),
        ("file",),
        ("one", "many"),
    ]
    assert sorted(found) == sorted(expected)
    source = (
        "const a = <p title={trans.__('Log of %1', f(trans._n('%1 job', '%1 jobs', n)))}>x</p>;"
    )
    assert ("Log of %1",) in [forms for _line, forms in messages.typescript_messages(source)]


@pytest.mark.slow
@pytest.mark.parametrize("package", MARKED)
def test_errors_and_results_have_marked_sentences(package: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for line in unmarked(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []


def unmarked(tree: ast.AST) -> Iterator[int]:
    """Yield the lines of errors and results whose sentences are literals without ``_()``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if name in WITH_SENTENCES:
                for argument in node.args[WITH_SENTENCES[name] : WITH_SENTENCES[name] + 2]:
                    text = (
                        "".join(
                            str(part.value)
                            for part in ast.walk(argument)
                            if isinstance(part, ast.Constant)
                        )
                        if isinstance(argument, (ast.Constant, ast.JoinedStr))
                        else ""
                    )
                    if any(word.isalpha() for word in text.split()):
                        yield node.lineno
