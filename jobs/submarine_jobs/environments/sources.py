"""Build an environment from a file that lists its packages, with uv.

``requirements:FILE``, ``uv:LOCK`` and ``pyproject[:DIRECTORY]``. The digest of a source covers the
listing, the files that it includes and the local packages that it names, and the version of Python;
so an environment is built once for each content. A version that the listing leaves open is chosen
when the environment is built.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from submarine_jobs.errors import UsageError
from submarine_jobs.model import BUILT_KINDS, PythonEnv
from submarine_jobs.text import one_line
from submarine_runtime.translation import _

#: Maximum number of files of a local package, and of files that requirements include.
_MAX_FILES = 20_000
_MAX_INCLUDED = 100
#: Seconds after which a build is ended; a large environment is downloaded in this time.
BUILD_SECONDS = 3600
_MAX_REASON = 300
#: Directories of a project that are no sources.
_NOT_SOURCES = frozenset({"__pycache__", "node_modules"})
_NOT_TOP_SOURCES = frozenset({"build", "dist"})
_INCLUDE = re.compile(r"^(?:-r|--requirement|-c|--constraint)[ =]?\s*(\S+)")
_EDITABLE = re.compile(r"^(?:-e|--editable)[ =]?\s*(.+)")
_REFERENCE = re.compile(r"^[A-Za-z0-9][\w.-]*(?:\[[^\]]*\])?\s*@\s*(\S+)")
#: Lines and arrows, and the sign of multiplication that uv begins errors with.
_BOX = re.compile("[\u2500-\u259f\u25b6\u00d7]+")


@dataclass(frozen=True)
class EnvironmentSource:
    """Listing of an environment's packages.

    Parameters
    ----------
    text
        Value of ``--python-env``.
    kind
        ``requirements``, ``uv`` or ``pyproject``.
    path
        The listing: requirements file, lock file, or directory of the project.
    """

    text: str
    kind: str
    path: Path

    def digest(self) -> str:
        """Return the SHA-256 of the content.

        Raises
        ------
        UsageError
            If a file that the listing names cannot be read.
        """
        digest = hashlib.sha256(b"submarine environment source 1\n")
        digest.update(f"{self.kind} {platform.python_version()} {_platform()}\n".encode())
        try:
            for name, content in self._content():
                digest.update(f"{name}\0{len(content)}\0".encode())
                digest.update(content)
        except OSError as exc:
            raise UsageError(
                _("--python-env {text}: {filename}: {error}.").format(
                    text=self.text, filename=exc.filename, error=exc.strerror
                )
            ) from exc
        return digest.hexdigest()

    def _content(self) -> Iterator[tuple[str, bytes]]:
        if self.kind == "requirements":
            yield from self._requirements()
        elif self.kind == "pyproject":
            yield from self._tree(self.path)
        else:
            yield from self._lock()

    def _requirements(self) -> Iterator[tuple[str, bytes]]:
        """Yield the files that are included, and those of local packages."""
        pending, seen = [self.path], set[Path]()
        while pending:
            path = pending.pop()
            if path in seen:
                continue
            seen.add(path)
            if len(seen) > _MAX_INCLUDED:
                raise self._refusal(_("it includes more than 100 files"))
            content = path.read_bytes()
            yield os.path.relpath(path, self.path.parent), content
            for line in _lines(content):
                if found := _INCLUDE.match(line):
                    if "://" not in found[1]:
                        pending.append((path.parent / found[1]).resolve())
                elif (local := _local_path(line)) is not None:
                    # Relative to the working directory of uv, see `_run`.
                    yield from self._package((self.path.parent / local).resolve())

    def _lock(self) -> Iterator[tuple[str, bytes]]:
        """Yield the lock, the project file, and the files of local packages."""
        content = self.path.read_bytes()
        yield self.path.name, content
        project = self.path.parent / "pyproject.toml"
        yield project.name, project.read_bytes()
        try:
            lock: Mapping[str, Any] = tomllib.loads(content.decode())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
            raise self._refusal(
                _("it is not a lock file of uv ({error})").format(error=exc)
            ) from exc
        for package in lock.get("package", ()):
            source = package.get("source", {})
            for kind in ("editable", "directory", "path"):
                if kind in source:
                    yield from self._package((self.path.parent / source[kind]).resolve())

    def _package(self, path: Path) -> Iterator[tuple[str, bytes]]:
        """Yield the files of a local package: a directory, or a wheel."""
        if path.is_dir():
            yield from self._tree(path)
        else:
            yield path.name, path.read_bytes()

    def _tree(self, root: Path) -> Iterator[tuple[str, bytes]]:
        count = 0
        for directory, subdirectories, files in os.walk(root):
            left_out = _NOT_SOURCES | (_NOT_TOP_SOURCES if Path(directory) == root else frozenset())
            subdirectories[:] = sorted(
                name
                for name in subdirectories
                if name not in left_out
                and not name.startswith(".")
                and not name.endswith(".egg-info")
                and not os.path.exists(os.path.join(directory, name, "pyvenv.cfg"))
            )
            for name in sorted(files):
                path = Path(directory, name)
                count += 1
                if count > _MAX_FILES:
                    raise self._refusal(
                        _("{root} has more than {limit:,} files").format(
                            root=root, limit=_MAX_FILES
                        )
                    )
                if path.is_file() and not name.endswith(".pyc"):
                    yield os.path.relpath(path, root), path.read_bytes()

    def build(self, target: Path) -> None:
        """Make a virtual environment at ``target`` with the packages.

        Raises
        ------
        UsageError
            If uv is missing, or cannot install them; the reason is uv's.
        """
        uv = uv_program()
        self._run([uv, "venv", "--quiet", "--python", sys.executable, str(target)], target)
        python = str(target / "bin" / "python")
        install = [uv, "pip", "install", "--quiet", "--python", python]
        commands = {
            "requirements": [*install, "-r", str(self.path)],
            "pyproject": [*install, str(self.path)],
            "uv": [
                *(uv, "sync", "--quiet", "--locked", "--no-dev", "--no-editable"),
                *("--python", sys.executable, "--project", str(self.path.parent)),
            ],
        }
        self._run(commands[self.kind], target)

    def _run(self, command: Sequence[str], target: Path) -> None:
        environ = {
            name: value
            for name, value in os.environ.items()
            if name not in ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME")
        }
        environ.update(
            UV_PROJECT_ENVIRONMENT=str(target), UV_PYTHON_DOWNLOADS="never", UV_NO_PROGRESS="1"
        )
        try:
            done = subprocess.run(
                command,
                env=environ,
                cwd=self.path if self.kind == "pyproject" else self.path.parent,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=BUILD_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise self._refusal(
                _("uv has not finished after {seconds} s").format(seconds=BUILD_SECONDS)
            ) from None
        except OSError as exc:
            raise self._refusal(f"{command[0]}: {exc.strerror}") from exc
        if done.returncode:
            raise self._refusal(_reason(done.stderr) or f"uv: {done.returncode}")

    def _refusal(self, reason: str) -> UsageError:
        return UsageError(
            _("--python-env {text} cannot be built: {reason}.").format(
                text=self.text, reason=reason.rstrip(".")
            ),
            _("Fix the file; `submarine env build {text}` tries it without a job.").format(
                text=self.text
            ),
        )


def source_of(env: PythonEnv, directory: Path | None = None) -> EnvironmentSource:
    """Return the source of an environment that has to be built.

    Parameters
    ----------
    directory
        Directory of relative paths; None: the working directory.

    Raises
    ------
    UsageError
        If its file does not exist.
    """
    assert env.kind in BUILT_KINDS
    here = directory or Path.cwd()
    text = env.text
    path = (here / Path(env.value).expanduser()).resolve()
    if env.kind == "pyproject":
        candidates = [path] if env.value else [path, *path.parents]
        for one in candidates:
            if (one / "pyproject.toml").is_file():
                return EnvironmentSource(text, env.kind, one)
        raise UsageError(
            _("--python-env {text}: there is no pyproject.toml in {path}.").format(
                text=text, path=path
            ),
            _("Name the directory of the project: pyproject:DIRECTORY."),
        )
    if not path.is_file():
        raise UsageError(
            _("--python-env {text}: there is no such file on this machine.").format(text=text),
            _("Check the path."),
        )
    if env.kind == "uv" and not (path.parent / "pyproject.toml").is_file():
        raise UsageError(
            _("--python-env {text}: there is no pyproject.toml beside the lock file.").format(
                text=text
            ),
            _("Name the uv.lock of a project; `uv lock` writes it."),
        )
    return EnvironmentSource(text, env.kind, path)


def uv_program() -> str:
    """Return the path of uv: on the path, or beside this interpreter.

    Raises
    ------
    UsageError
        If it is not installed.
    """
    beside = os.path.dirname(sys.executable)
    found = shutil.which("uv") or shutil.which("uv", path=beside)
    if found is None:
        raise UsageError(
            _("--python-env: environments are built with uv, which is not installed."),
            _("Install it in this environment: pip install uv."),
        )
    return found


def _lines(content: bytes) -> Iterator[str]:
    """Yield the lines of requirements, without comments and continuations."""
    text = content.decode(errors="replace").replace("\\\n", " ")
    for line in text.splitlines():
        stripped = re.sub(r"(^|\s)#.*$", "", line).strip()
        if stripped:
            yield stripped


def _local_path(line: str) -> str | None:
    """Return the path of a local package that a line names; None for another line."""
    if found := _EDITABLE.match(line):
        line = found[1].strip()
    elif line.startswith("-"):
        return None
    if found := _REFERENCE.match(line):
        line = found[1]
    line = line.partition(" ;")[0].strip()
    if line.startswith("file:"):
        return unquote(urlsplit(line).path)
    if "://" in line:
        return None
    line = re.sub(r"\[[^\]]*\]$", "", line)
    is_path = line.startswith((".", "/", "~")) or "/" in line or line.endswith((".whl", ".tar.gz"))
    return os.path.expanduser(line) if is_path else None


def _platform() -> str:
    """Return what compiled packages depend on: system, processor and C library."""
    return f"{sysconfig.get_platform()} {' '.join(platform.libc_ver())}"


def _reason(output: str) -> str:
    """Return uv's message as one line."""
    lines = [_BOX.sub(" ", line).strip() for line in output.splitlines()]
    text = " ".join(line for line in lines if line and not line.startswith("warning:"))
    return one_line(" ".join(text.split()), _MAX_REASON)
