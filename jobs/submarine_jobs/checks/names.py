"""Find names that the program uses but does not define, and the cells that define them.

pyflakes finds the names; this module adds the location of the definition and the fix. No user code
runs.
"""

from __future__ import annotations

import ast
import difflib
import re
import warnings
from collections.abc import Collection, Sequence

from pyflakes.checker import Checker
from pyflakes.messages import UndefinedName

from submarine_jobs.checks.definitions import Definition, bound_names, definitions_in
from submarine_jobs.checks.findings import Finding, Level, finding_at, place_of
from submarine_jobs.program import Bundle, DocumentCell, parse_cell
from submarine_runtime.translation import _, gettext_noop

#: Names of each module in addition to the builtins and to those that pyflakes defines.
_MODULE_NAMES = {"__file__", "__builtins__", "__annotations__", "WindowsError"}
_DYNAMIC = re.compile(r"\b(?:globals\(\)|exec\()")
# Names that IPython adds to a notebook and that a program does not have.
_NOTEBOOK_ONLY = {
    "display": gettext_noop("Use print(...), or write files to $SUBMARINE_MODEL_DIR."),
    "get_ipython": gettext_noop("Remove the call, or move it to a cell that is not collected."),
    "In": gettext_noop("It is the notebook's history; give the value a name of its own."),
    "Out": gettext_noop("It is the notebook's history; give the value a name of its own."),
}


def check_names(
    bundle: Bundle,
    broken: set[str | None],
    document_cells: Sequence[DocumentCell],
    history: Sequence[DocumentCell],
    with_names: Sequence[str],
    builtins: Collection[str],
) -> list[Finding]:
    """Return the undefined names in all files that are not ``broken``, each once per file."""
    undefined: list[tuple[str, str, int]] = []
    valid = sorted(set(bundle.python_files) - broken)
    for file in valid:
        given = {*builtins, *(with_names if file == bundle.program else ())}
        undefined += [(file, name, line) for name, line in _undefined(bundle, file, given)]
    if not undefined:
        return []
    # A marked cell was collected when it ran, so its text is in the program or outdated.
    plain = [cell for cell in history if parse_cell(cell.source, cell.tags) is None]
    elsewhere = definitions_in(bundle, [*plain, *document_cells])
    in_program = {file: bound_names(bundle.text(file)) for file in valid}
    return [
        _finding(bundle, file, name, line, elsewhere, in_program, with_names)
        for file, name, line in undefined
    ]


def check_returned(
    bundle: Bundle, broken: set[str | None], return_names: Sequence[str], with_names: Sequence[str]
) -> list[Finding]:
    """Return findings for names of ``--return`` that the program does not bind at its top level."""
    if bundle.program in broken:
        return []
    text = bundle.text()
    bound = bound_names(text)
    missing = [name for name in return_names if name not in bound and name not in with_names]
    if not missing or _DYNAMIC.search(text) or "import *" in text:
        return []
    return [
        Finding(
            Level.ERROR,
            "undefined-return",
            _("--return names {name}, which {program} never assigns outside functions.").format(
                name=name, program=bundle.program
            ),
            bundle.program,
            fix=_similar(name, bound)
            or _("Assign {name} at the top level of the program.").format(name=name),
        )
        for name in missing
    ]


def _undefined(bundle: Bundle, file: str, given: Collection[str]) -> list[tuple[str, int]]:
    """Return the undefined names of one file, each with the first line that uses it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(bundle.files[file])
    try:
        # By default pyflakes uses the builtins of this process, which IPython changes.
        fixed = property(lambda _: {*_MODULE_NAMES, *given}, lambda _, value: None)
        checker = type("OwnBuiltins", (Checker,), {"builtIns": fixed})
        messages = checker(tree, filename=file).messages
    except RecursionError:
        return []
    first: dict[str, int] = {}
    for message in messages:
        if isinstance(message, UndefinedName):
            name = str(message.message_args[0])
            first[name] = min(message.lineno, first.get(name, message.lineno))
    return sorted(first.items(), key=lambda item: item[1])


def _finding(
    bundle: Bundle,
    file: str,
    name: str,
    line: int,
    elsewhere: dict[str, Definition],
    in_program: dict[str, dict[str, int]],
    with_names: Sequence[str],
) -> Finding:
    uses = _("{file} uses {name} ({place})").format(
        file=file, name=name, place=place_of(bundle, file, line)
    )
    if name in in_program[file]:
        there = place_of(bundle, file, in_program[file][name])
        message = _("{uses} before it is defined ({there}).").format(uses=uses, there=there)
        fix = _("Move the definition up.")
        if bundle.source_map.lookup(file, line):
            fix = _("Change the order of the cells in the notebook, and save it.")
    elif owner := next((other for other in sorted(in_program) if name in in_program[other]), None):
        message, fix = _in_other_file(bundle, uses, file, name, owner, in_program[owner][name])
    elif name in with_names:
        message = _("{uses}, and values of --with reach {program} only.").format(
            uses=uses, program=bundle.program
        )
        fix = _("Pass it on from {program} as an argument.").format(program=bundle.program)
    elif name in _NOTEBOOK_ONLY:
        message, fix = (
            _("{uses}, which exists in a notebook only.").format(uses=uses),
            _(_NOTEBOOK_ONLY[name]),
        )
    elif name in elsewhere:
        message, fix = _in_other_cell(uses, file == bundle.program, elsewhere[name])
    else:
        message = _("{uses}, which nothing defines.").format(uses=uses)
        close = _similar(name, [*in_program[file], *elsewhere])
        where = _("a collected cell") if bundle.source_map.lookup(file, line) else file
        fix = close or _("Define {name} in {where}.").format(name=name, where=where)
    # A program may also define names at run time.
    level = Level.WARNING if _DYNAMIC.search(bundle.text(file)) else Level.ERROR
    return finding_at(bundle, level, "undefined-name", message, file, line, fix)


def _in_other_file(
    bundle: Bundle, uses: str, file: str, name: str, owner: str, line: int
) -> tuple[str, str]:
    message = _("{uses}, which is defined in another file ({place}).").format(
        uses=uses, place=place_of(bundle, owner, line)
    )
    there = _("a cell of {file}").format(file=file) if bundle.source_map.files.get(file) else file
    imported = _import_statement(bundle.text(owner), name)
    if imported:
        return message, _("Every file needs its own imports: add {imported} to {there}.").format(
            imported=imported, there=there
        )
    if owner == bundle.program:
        return message, _("Move it to {there}, or pass it as an argument.").format(there=there)
    module = owner[: -len(".py")].replace("/", ".").removesuffix(".__init__")
    return message, _("Add from {module} import {name} to {there}.").format(
        module=module, name=name, there=there
    )


def _in_other_cell(uses: str, in_main: bool, found: Definition) -> tuple[str, str]:
    cell = _("cell {label}").format(label=found.label)
    if found.marked:
        message = _(
            "{uses}; {cell} defines it and carries %%submarine, but was not run since."
        ).format(uses=uses, cell=cell)
        return message, _("Run {cell}.").format(cell=cell)
    message = _("{uses}, which no collected cell defines; {cell} does.").format(
        uses=uses, cell=cell
    )
    fix = _("Add %%submarine to {cell} and run it").format(cell=cell)
    if found.statement:
        return message, _("{fix}, or write {statement} in a collected cell.").format(
            fix=fix, statement=found.statement
        )
    if found.code or not in_main:
        return message, f"{fix}."
    return message, _("{fix}, or send the value with --with {name}.").format(
        fix=fix, name=found.name
    )


def _import_statement(text: str, name: str) -> str:
    found = definitions_of_text(text).get(name)
    return found.statement if found else ""


def definitions_of_text(text: str) -> dict[str, Definition]:
    """Return the top-level definitions of a file of the program."""
    return definitions_in(None, [DocumentCell(None, text, "")])


def _similar(name: str, names: Sequence[str] | dict[str, int]) -> str:
    close = difflib.get_close_matches(name, list(names), 1)
    return _("Did you mean {suggestion}?").format(suggestion=close[0]) if close else ""
