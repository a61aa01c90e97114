"""`pip install .` builds the front end anew where its sources have changed; Node.js is played."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BUILT = "share/jupyter/labextensions/jupyter-submarine/package.json"
NODE = "#!/bin/sh\necho {version}\n"
#: What is built is the entry point itself.
JLPM = """#!/bin/sh
echo "$1" >> "$CALLS"
if [ "$1" = build:prod ]; then mkdir dist && cp src/index.ts dist/package.json; fi
"""


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files that git has, with nothing built."""
    folder = tmp_path / "clone"
    for name in ("pyproject.toml", "README.md", "LICENSE", "scripts/build_front_end.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    for package in ("runtime", "jobs", "magics", "kernel", "minicluster", "server_ext",
                    "workflows", "zeppelin"):  # fmt: skip
        shutil.copytree(
            ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in ("src", "style", "schema"):
        shutil.copytree(ROOT / "labextension" / name, folder / "labextension" / name)
    for name in ("package.json", "yarn.lock", "tsconfig.json", ".yarnrc.yml", "install.json"):
        shutil.copy(ROOT / "labextension" / name, folder / "labextension" / name)
    (folder / "labextension" / "node_modules").mkdir()
    (tmp_path / "tools").mkdir()
    for name in ("sh", "mkdir", "cp"):
        (tmp_path / "tools" / name).symlink_to(str(shutil.which(name)))
    return folder


def pip(clone: Path, tools: Path) -> tuple[int, str]:
    """Make a wheel of the clone with the programs in `tools`; exit code and output."""
    environment = {**os.environ, "PATH": str(tools), "CALLS": str(clone.parent / "calls")}
    environment.pop("SKIP_JUPYTER_BUILDER", None)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index",
         "--wheel-dir", clone.parent / "wheels", clone],
        env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def front_end(clone: Path) -> str:
    (wheel,) = (clone.parent / "wheels").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(BUILT))
        return archive.read(name).decode()


def calls(clone: Path) -> list[str]:
    return (clone.parent / "calls").read_text().split()


def said(output: str) -> list[str]:
    """What the build printed, without what pip adds."""
    lines = [line.strip() for line in output.splitlines()]
    first = next(n for n, line in enumerate(lines) if "lines of output]" in line)
    return lines[first + 1 : lines.index("[end of output]")]


def test_a_changed_source_is_built_and_an_unchanged_one_is_not(clone: Path) -> None:
    tools, source = clone.parent / "tools", clone / "labextension/src/index.ts"
    program(tools, "node", NODE.format(version="v22.1.0"))
    program(tools, "jlpm", JLPM)
    code, output = pip(clone, tools)
    assert (code, front_end(clone)) == (0, source.read_text()), output
    assert calls(clone) == ["install", "build:prod"]
    # Times do not count: an archive or a checkout has others.
    os.utime(source)
    assert pip(clone, tools)[0] == 0
    assert calls(clone) == ["install", "build:prod"]
    source.write_text("// pulled\n")
    assert pip(clone, tools)[0] == 0
    assert front_end(clone) == "// pulled\n"
    assert calls(clone) == ["install", "build:prod"] * 2


@pytest.mark.parametrize(
    ("version", "why"),
    [("", "Node.js was not found."), ("v18.19.0", "/tools/node is Node.js v18.19.0.")],
)
def test_without_node_the_last_line_says_what_to_type(clone: Path, version: str, why: str) -> None:
    tools = clone.parent / "tools"
    program(tools, "jlpm", JLPM)
    if version:
        program(tools, "node", NODE.format(version=version))
    code, output = pip(clone, tools)
    assert code != 0
    assert "Traceback" not in output
    last = said(output)[-1]
    assert why in last
    assert "type: scripts/setup.sh python node && pip install ." in last


def test_a_build_that_fails_says_where_its_output_is(clone: Path) -> None:
    tools = clone.parent / "tools"
    program(tools, "node", NODE.format(version="v22.1.0"))
    program(tools, "jlpm", "#!/bin/sh\necho no network\nexit 1\n")
    code, output = pip(clone, tools)
    assert code != 0
    assert "Traceback" not in output
    assert said(output)[-2] == "no network"
    assert "`jlpm install` of the front end failed" in said(output)[-1]


def test_a_build_for_development_is_no_current_one() -> None:
    scripts = json.loads((ROOT / "labextension/package.json").read_text())["scripts"]
    assert scripts["build"].startswith("rm -f dist/sources.sha256 &&")
