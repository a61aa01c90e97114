"""Build hook of hatchling: build JupyterLab's front end if its sources have changed.

`labextension/dist/sources.sha256` has the digest of the sources of the build. A source archive has
both, so that a wheel can be built from it without Node.js. As a program (`build_front_end.py`) it
writes that file for the present build.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: The sources of the front end, below `labextension`.
SOURCES = ("src", "style", "schema", "package.json", "yarn.lock", "tsconfig.json", ".yarnrc.yml")
BUILT, STAMP = "dist/package.json", "dist/sources.sha256"
OLDEST_NODE = 20
LOG = "front-end-build.log"
FIX = (
    "Install Node.js 20 or newer, or type: scripts/setup.sh python node && pip install . "
    "(with SKIP_JUPYTER_BUILDER=1 pip builds nothing for JupyterLab)."
)


class FrontEndHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs before a wheel or a source archive is built."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the front end unless it is current or SKIP_JUPYTER_BUILDER is set."""
        folder = Path(self.root) / "labextension"
        if os.environ.get("SKIP_JUPYTER_BUILDER") or is_current(folder):
            return
        problem = node_problem()
        if problem:
            refuse(f"The front end of JupyterLab must be built from its sources, and {problem}.")
        build(folder)


def digest_of(folder: Path) -> str:
    """Return the SHA-256 of names and contents of the sources."""
    digest = hashlib.sha256()
    for source in SOURCES:
        place = folder / source
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if file.is_file():
                digest.update(f"{file.relative_to(folder).as_posix()}\0".encode())
                digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def is_current(folder: Path) -> bool:
    """Whether there is a build of the present sources."""
    stamp = folder / STAMP
    if not (folder / BUILT).is_file() or not stamp.is_file():
        return False
    return stamp.read_text(encoding="ascii").strip() == digest_of(folder)


def write_stamp(folder: Path) -> None:
    """Record that the content of `dist` was built from the present sources."""
    (folder / STAMP).write_text(f"{digest_of(folder)}\n", encoding="ascii")


def node_problem() -> str:
    """Return why Node.js cannot be used; empty if it can."""
    node = shutil.which("node")
    if node is None:
        return "Node.js was not found"
    done = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"v(\d+)\.", done.stdout)
    if done.returncode or not found:
        return f"{node} does not run"
    if int(found[1]) < OLDEST_NODE:
        return f"{node} is Node.js {done.stdout.strip()}"
    return ""


def build(folder: Path) -> None:
    """Install the build's dependencies and build; on failure, print where the output is."""
    log = folder / "node_modules" / LOG
    log.parent.mkdir(exist_ok=True)
    with log.open("w", encoding="utf-8") as output:
        for words in (["install", "--immutable"], ["build:prod"]):
            if words == ["build:prod"]:
                # Remove the files of earlier builds.
                for place in (folder / "dist", folder / "lib"):
                    shutil.rmtree(place, ignore_errors=True)
                (folder / "tsconfig.tsbuildinfo").unlink(missing_ok=True)
            jlpm = shutil.which("jlpm") or "jlpm"
            done = subprocess.run(
                [jlpm, *words], cwd=folder, stdout=output, stderr=output, check=False
            )
            if done.returncode:
                print("\n".join(log.read_text("utf-8", "replace").splitlines()[-15:]))
                refuse(f"`jlpm {words[0]}` of the front end failed; its output is in {log}.")
    write_stamp(folder)


def refuse(why: str) -> None:
    """End the build with an instruction as the last line of its output."""
    sys.stdout.flush()
    print(f"{why} {FIX}", file=sys.stderr, flush=True)
    raise SystemExit(1)


if __name__ == "__main__":
    write_stamp(Path(__file__).resolve().parent.parent / "labextension")
