"""A mount namespace in which a test has Unix users of its own.

The accounts are in copies of ``/etc/passwd`` and ``/etc/group`` that only the processes of the
namespace see, so that nothing has to be removed from this machine. Directories that other users may
not enter (such as root's home, which may contain the Python of the tests) are replaced by empty
ones, in which the paths that the users need are mounted.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

#: Both files have lines of ``name:password:number:...``.
_FILES = (Path("/etc/passwd"), Path("/etc/group"))


@dataclass(frozen=True)
class Account:
    """A Unix user with its own group and home."""

    name: str
    uid: int
    home: Path


class Namespace:
    """Prefixes commands, so that they run in a new mount namespace.

    Parameters
    ----------
    scratch
        An existing directory that the users may enter.
    needed
        Paths that the users read.
    """

    def __init__(self, scratch: Path, accounts: Iterable[Account], needed: Iterable[Path]) -> None:
        self._scratch = scratch
        self._script = [*self._users(list(accounts)), *self._visible(needed)]

    def command(self, *words: str) -> list[str]:
        """Return the words that run a command in a new namespace, as root."""
        script = "; ".join(["set -e", *self._script, 'exec "$@"'])
        unshare = ("unshare", "--mount", "--propagation", "private", "sh", "-c")
        return [*unshare, script, "sh", *words]

    def problem(self) -> str:
        """Return why this machine has no such namespaces; empty if it has them."""
        try:
            tried = subprocess.run(
                self.command("true"), capture_output=True, text=True, timeout=30, check=False
            )
        except FileNotFoundError as exc:
            return str(exc)
        return tried.stderr.strip() if tried.returncode else ""

    def _users(self, accounts: list[Account]) -> list[str]:
        lines = {
            "passwd": [f"{it.name}:x:{it.uid}:{it.uid}::{it.home}:/bin/sh" for it in accounts],
            "group": [f"{it.name}:x:{it.uid}:" for it in accounts],
        }
        words = []
        for path in _FILES:
            copy = self._scratch / path.name
            text = path.read_text().rstrip("\n")
            copy.write_text("\n".join([text, *lines[path.name], ""]))
            copy.chmod(0o644)
            words.append(f"mount --bind {_quoted(copy)} {path}")
        return words

    def _visible(self, needed: Iterable[Path]) -> list[str]:
        hidden: dict[Path, list[Path]] = {}
        for path in sorted({it.resolve() for it in needed}):
            closed = next((it for it in reversed(path.parents) if not it.stat().st_mode & 1), None)
            if closed is not None:
                hidden.setdefault(closed, []).append(path)
        kept = self._scratch / "kept"
        words = []
        for directory, paths in hidden.items():
            places = [(kept / str(number), path) for number, path in enumerate(paths)]
            words.append(f"mkdir -p {_quoted(kept)}")
            words += [line for place, path in places for line in _bind(path, place)]
            words.append(f"mount -t tmpfs -o mode=755 tmpfs {_quoted(directory)}")
            for place, path in places:
                words += [*_bind(place, path, is_file=path.is_file()), f"umount {_quoted(place)}"]
        return words


def _bind(source: Path, target: Path, *, is_file: bool | None = None) -> list[str]:
    """Return the commands that show ``source`` at ``target`` too."""
    there, here = _quoted(target), _quoted(source)
    made = f"mkdir -p {there}"
    if source.is_file() if is_file is None else is_file:
        made = f"mkdir -p {_quoted(target.parent)}; rm -rf {there}; touch {there}"
    return [made, f"mount --bind {here} {there}"]


def _quoted(path: Path) -> str:
    return shlex.quote(os.fspath(path))
