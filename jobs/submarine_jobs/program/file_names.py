"""Check file names of a program (``--file``). Files are not accessed."""

from __future__ import annotations

import keyword
import sys

from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _

PROGRAM = "main.py"
_RESERVED = frozenset({"submarine_runtime"})
_MAX_LENGTH = 200


def check_file_name(name: str) -> str:
    """Return ``name`` if it may be a file of the program, such as ``pkg/model.py``.

    Raises
    ------
    UsageError
        For a path out of the bundle, a file that is not Python, a name that cannot be imported, or
        a name that would hide a module of the standard library.
    """
    shown = f'"{name[:80]}"'
    if not name or len(name) > _MAX_LENGTH:
        raise UsageError(
            _("--file {shown} is not a file name of 1 to {max_length} characters.").format(
                shown=shown, max_length=_MAX_LENGTH
            ),
            _("Use a name such as model.py."),
        )
    if "\\" in name:
        raise UsageError(
            _("--file {shown} has a backslash.").format(shown=shown),
            _("Separate directories with /."),
        )
    if name.startswith(("/", "~")) or (len(name) > 1 and name[1] == ":"):
        raise UsageError(
            _("--file {shown} is an absolute path.").format(shown=shown),
            _("Files of a program are named from its own root, such as model.py or pkg/model.py."),
        )
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise UsageError(
            _("--file {shown} leads out of the program's directory or has an empty part.").format(
                shown=shown
            ),
            _("Use a plain name such as model.py or pkg/model.py."),
        )
    if not name.endswith(".py"):
        raise UsageError(
            _("--file {shown} is not a Python file.").format(shown=shown),
            _("Its name must end in .py."),
        )
    _check_importable(name, [*parts[:-1], parts[-1][: -len(".py")]])
    return name


def _check_importable(name: str, modules: list[str]) -> None:
    for module in modules:
        if not module.isidentifier() or not module.isascii() or keyword.iskeyword(module):
            raise UsageError(
                _(
                    '--file "{name}" cannot be imported, because "{module}" is not a valid '
                    "module name."
                ).format(name=name, module=module),
                _("Use ASCII letters, digits and _, not beginning with a digit."),
            )
    top = modules[0]
    if top in sys.stdlib_module_names or top in _RESERVED:
        owner = _("Submarine") if top in _RESERVED else _("Python's standard library")
        raise UsageError(
            _('--file "{name}" would hide the module "{top}" of {owner}.').format(
                name=name, top=top, owner=owner
            ),
            _("Choose another name."),
        )


def package_files(names: set[str]) -> set[str]:
    """Return the ``__init__.py`` files that make the directories of ``names`` packages."""
    needed: set[str] = set()
    for name in names:
        parts = name.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            needed.add("/".join([*parts[:depth], "__init__.py"]))
    return needed - names
