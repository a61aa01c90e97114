"""Collect the files of a project: notebooks, the modules that they import, and scripts.

A file is included when something refers to it: a node its notebook, a notebook or module its
imports, a command or shell line a script. Further files are included on request. The outputs of
notebooks are removed: a run creates them again, and they may contain private data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _
from submarine_workflows.model import Kind, Workflow, split_command

MAX_FILE = 32 << 20
MAX_TOTAL = 128 << 20
MAX_FILES = 5000
NOTEBOOK = ".ipynb"
#: Azkaban interprets these files in any folder of a project.
_AZKABAN_SUFFIXES = (".flow", ".project")
_SECRET_FILES = re.compile(
    r"(?i)^(?:\.env(?:\..*)?|\.netrc|\.pgpass|\.git-credentials|id_(?:rsa|dsa|ecdsa|ed25519)"
    r"|credentials(?:\..*)?|.*\.(?:pem|key|p12|pfx|jks|jceks|keytab|kdbx))$"
)
_IGNORED_FOLDERS = ("__pycache__", ".ipynb_checkpoints", ".git")
#: Lines are matched one by one, because cells with magics are not valid Python.
_IMPORT = re.compile(r"^\s*(?:from\s+(\.*)([\w.]*)\s+import\s+(.*)|import\s+([\w.,\s]+))")
_SHELL = re.compile(r"^\s*(?:!|%)\s*(.*)")
_URL = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://")
_COMMAND = re.compile(r"command(\.\d+)?")


def is_url(path: str) -> bool:
    """Return whether a notebook path is a URL, which the executor reads itself."""
    return bool(_URL.match(path))


class ProjectFiles:
    """Collect files of one folder together with the files that they need from the same folder.

    Parameters
    ----------
    root
        Folder of the workflow file. Files outside it are refused.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._size = 0
        self.files: dict[str, bytes] = {}

    def notebook(self, path: str) -> None:
        """Add a notebook and the files that its cells refer to.

        Raises
        ------
        UsageError
            If it does not exist, is outside the folder, or is not a notebook.
        """
        if is_url(path):
            return
        if "${" in path:
            raise UsageError(
                _(
                    "The notebook `{path}` is unknown before the node runs, so it cannot be "
                    "included."
                ).format(path=path),
                _("Name the file, or a URL that the executor can read."),
            )
        file = self._inside(path, _("The notebook"))
        if file.suffix != NOTEBOOK:
            raise UsageError(
                _("{path} is not a notebook.").format(path=path),
                _("A notebook's name ends in {notebook}.").format(notebook=NOTEBOOK),
            )
        self._add(file)

    def words(self, words: Iterable[str]) -> None:
        """Add each file that one of ``words`` names. Words that name no file are ignored."""
        for word in words:
            if (found := self._named(self._root, word)) is not None:
                self._add(found)

    def matching(self, pattern: str) -> None:
        """Add the files that match a pattern such as ``conf/*.yaml`` or ``lib/**``.

        Raises
        ------
        UsageError
            If no file matches.
        """
        try:
            matches = [] if ".." in PurePosixPath(pattern).parts else self._root.glob(pattern)
            found = sorted(file for file in matches if file.is_file())
        except (ValueError, NotImplementedError):
            found = []
        if not found:
            raise UsageError(
                _("No file in {root} matches `{pattern}`.").format(root=self._root, pattern=pattern)
            )
        for file in found:
            if not any(part in _IGNORED_FOLDERS for part in file.parts):
                self._add(self._inside(str(file.relative_to(self._root)), _("The file")))

    def everything(self) -> None:
        """Add the whole folder except hidden files, as for a project in Azkaban's own format."""
        for file in sorted(self._root.rglob("*")):
            parts = file.relative_to(self._root).parts
            hidden = any(part.startswith(".") or part in _IGNORED_FOLDERS for part in parts)
            if not hidden and file.is_file():
                name = "/".join(parts)
                _refuse_key(name, file)
                self._take(name, self._read(self._inside(name, _("The file"))))

    def _add(self, file: Path) -> None:
        name = file.relative_to(self._root).as_posix()
        if name in self.files:
            return
        _refuse_key(name, file)
        if file.suffix in _AZKABAN_SUFFIXES:
            return
        content = self._read(file)
        if file.suffix == NOTEBOOK:
            content, lines = _bare(name, content)
        else:
            text = content.decode("utf-8", "replace") if file.suffix == ".py" else ""
            lines = text.splitlines()
        self._take(name, content)
        self._imports(file.parent, lines)

    def _take(self, name: str, content: bytes) -> None:
        self.files[name] = content
        self._size += len(content)
        if self._size > MAX_TOTAL or len(self.files) > MAX_FILES:
            raise UsageError(
                _("The project would have more than {max_all} MiB or {max_files} files.").format(
                    max_all=MAX_TOTAL >> 20, max_files=MAX_FILES
                ),
                _("Store data on HDFS or elsewhere, and name it under `needs:`."),
            )

    def _read(self, file: Path) -> bytes:
        try:
            if file.stat().st_size > MAX_FILE:
                raise UsageError(
                    _("{file} is larger than {max_file} MiB.").format(
                        file=file, max_file=MAX_FILE >> 20
                    ),
                    _("Store it on HDFS or elsewhere, and read it from there."),
                )
            return file.read_bytes()
        except OSError as exc:
            raise UsageError(
                _("{file} cannot be read: {strerror}.").format(file=file, strerror=exc.strerror)
            ) from None

    def _inside(self, path: str, what: str) -> Path:
        pure = PurePosixPath(path)
        if pure.is_absolute():
            raise UsageError(
                _("{what} {path} has an absolute path.").format(what=what, path=path),
                _("Use a path relative to the workflow file, so that the file can be included."),
            )
        file = (self._root / path).resolve()
        if not file.is_relative_to(self._root):
            raise UsageError(
                _("{what} {path} is outside the workflow's folder {root}.").format(
                    what=what, path=path, root=self._root
                )
            )
        if not file.is_file():
            raise UsageError(
                _("{what} {path} is not in {root}.").format(what=what, path=path, root=self._root)
            )
        return file

    def _named(self, directory: Path, word: str) -> Path | None:
        """Return the file of the folder that ``word`` names, or None."""
        if not word or len(word) > 400 or "\0" in word or word.startswith(("-", "/")):
            return None
        file = (directory / word).resolve()
        try:
            return file if file.is_relative_to(self._root) and file.is_file() else None
        except OSError:
            return None

    def _imports(self, directory: Path, lines: Iterable[str]) -> None:
        for line in lines:
            if (shell := _SHELL.match(line)) is not None:
                for word in re.split(r"[\s'\"]+", shell[1]):
                    if (found := self._named(directory, word)) is not None:
                        self._add(found)
            elif (match := _IMPORT.match(line)) is not None:
                for module in _modules(match):
                    self._module(directory, module)

    def _module(self, directory: Path, module: str) -> None:
        """Add a module beside a file, or the whole package that contains it."""
        dots = len(module) - len(module.lstrip("."))
        for _unused in range(dots - 1):
            directory = directory.parent
        first = module.lstrip(".").split(".")[0]
        if not first or not directory.is_relative_to(self._root):
            return
        if (directory / f"{first}.py").is_file():
            self._add(
                self._inside(_relative(directory / f"{first}.py", self._root), _("The module"))
            )
        package = directory / first
        if package.is_dir() and any(package.glob("*.py")):
            for file in sorted(package.rglob("*.py")):
                if not any(part in _IGNORED_FOLDERS for part in file.parts):
                    self._add(self._inside(_relative(file, self._root), _("The module")))


def _refuse_key(name: str, file: Path) -> None:
    if _SECRET_FILES.match(file.name):
        raise UsageError(
            _("{name} looks like a credential, and all users of the project could read it.").format(
                name=name
            ),
            _("Store it on the executor's host, and name its path."),
        )


def _relative(file: Path, root: Path) -> str:
    return file.relative_to(root).as_posix()


def _modules(match: re.Match[str]) -> Iterator[str]:
    dots, module, names, plain = match.groups()
    if plain is not None:
        for part in plain.split(","):
            yield part.split()[0] if part.split() else ""
    elif module:
        yield dots + module
    else:  # from . import helpers
        for part in names.strip("() ").split(","):
            yield dots + (part.split()[0] if part.split() else "")


def _bare(name: str, content: bytes) -> tuple[bytes, list[str]]:
    """Return a notebook without outputs, counts and times, and the lines of its code."""
    try:
        document = json.loads(content)
        cells = document["cells"]
        code = [cell for cell in cells if cell.get("cell_type") == "code"]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(
            _("{name} is not a notebook.").format(name=name),
            _("A notebook of format 4 is JSON with a list `cells`."),
        ) from None
    lines: list[str] = []
    for cell in code:
        cell["outputs"], cell["execution_count"] = [], None
        _drop(cell.get("metadata"), "execution", "collapsed", "scrolled")
        lines += _text(cell.get("source")).splitlines()
    _drop(document.get("metadata"), "widgets", "papermill")
    bare = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
    return bare.encode("utf-8", "surrogatepass"), lines


def _drop(metadata: Any, *names: str) -> None:
    if isinstance(metadata, dict):
        for name in names:
            metadata.pop(name, None)


def _text(source: Any) -> str:
    return "".join(str(line) for line in source) if isinstance(source, list) else str(source or "")


def collect_files(
    workflow: Workflow, root: Path, notebook: str = "", also: Iterable[str] = ()
) -> dict[str, bytes]:
    """Return content by path: notebooks, the files that they and commands need, and ``also``.

    Parameters
    ----------
    root
        Folder of the workflow file.
    notebook
        Notebook of the nodes that run cells; empty: the notebook that the workflow names.
    also
        Patterns of further files, ``lib/*.py``.

    Raises
    ------
    UsageError
        If a file is missing, too large, a credential, or outside ``root``.
    """
    collected = ProjectFiles(root)
    for _unused, node in workflow.walk():
        if node.kind is Kind.NOTEBOOK:
            collected.notebook(node.notebook)
        elif node.kind is Kind.CELLS:
            collected.notebook(notebook or workflow.notebook)
        else:
            for key, line in node.config.items():
                if _COMMAND.fullmatch(key):
                    collected.words(split_command(line))
    for pattern in also:
        collected.matching(pattern)
    return collected.files
