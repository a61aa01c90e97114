"""The parts of `make check`, `make test` and `make test-full`: commands and time budgets.

`run_parts` runs them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Part:
    """A step: name, time budget in seconds on two cores, commands, and working directory.

    ``real``: its only command is pytest, with real programs of varying timing.
    ``beside``: runs in the background, one after another; its output is printed at its end.
    ``niceness``: how much lower than the others' is its priority.
    """

    name: str
    budget: int
    commands: tuple[tuple[str, ...], ...]
    folder: Path = ROOT
    real: bool = False
    beside: bool = False
    niceness: int = 0


def tool(name: str, *arguments: str) -> tuple[str, ...]:
    """Return a command of this environment."""
    return (str(BIN / name), *arguments)


def pytest(*arguments: str) -> tuple[str, ...]:
    """Return a run of pytest, which fails if there are no tests."""
    return tool("python", "-m", "pytest", "-q", *arguments)


def jlpm(*arguments: str) -> tuple[str, ...]:
    """Return a tool of the front end."""
    return tool("jlpm", *arguments)


#: Code that runs in containers, with Python 3.8 or later.
SHIPPED = (
    "runtime",
    "data",
    "kernel/submarine_kernel/remote/container",
    "kernel/submarine_kernel/notebook_server/container",
    "jobs/submarine_jobs/doctor/cuda_probe.py",
    "jobs/submarine_jobs/doctor/node_probe.py",
)
LINT = Part(
    "lint",
    40,
    (
        tool("ruff", "check", "."),
        tool("ruff", "format", "--check", "."),
        tool("mypy"),
        tool("lint-imports"),
        tool("python", "scripts/check_handlers.py"),
        tool("python", "scripts/check_duplicates.py"),
        tool("vermin", "-t=3.8-", "--no-tips", "--violations", "--quiet", *SHIPPED),
    ),
)
#: Without those that read each file anew.
QUICK_LINT = replace(LINT, commands=LINT.commands[:5], beside=True, niceness=5, budget=90)
# The browsers' plugin takes half a second in each worker. A test that hangs fails after its own
# time limit, with its stack.
UNIT_TESTS = ("-q", "tests/unit", "-n", "2", "--timeout", "90", "-p", "no:playwright")
UNIT = Part("unit", 220, (tool("python", "scripts/unit_coverage.py", *UNIT_TESTS),), real=True)
#: Without the tests that take a fifth of a second or more, and with fewer random examples.
QUICK = ("-m", "not slow", "--hypothesis-profile", "quick")
QUICK_UNIT = replace(UNIT, budget=60, commands=(pytest(*UNIT_TESTS[1:], *QUICK),))
LABEXTENSION = ROOT / "labextension"
#: A part of `make check` if the front end is set up: changes of Python code do not need Node.js.
QUICK_FRONT_END = Part(
    "front end",
    90,
    (tool("python", "scripts/check_front_end.py"),),
    beside=True,
    niceness=5,
)
#: Without a cache; the types were checked by the build in set-up.
FRONT_END = Part("front end", 45, (jlpm("lint"), jlpm("test")), LABEXTENSION)
# Programs that sleep and wait: two files at a time use a third of a core.
THREE_FILES = ("-n", "3", "--dist", "loadfile")
LOCAL = (
    "tests/subprocesses",
    "tests/local",
    "tests/headless",
    "tests/notebook",
    "tests/kernel",
)
LOCAL_TESTS = pytest(*LOCAL, "-m", "not full", *THREE_FILES)
# By exclusion, so that a new directory of tests is included. Parts with a browser have their own
# process: its event loop would be the current one of all later tests.
CLUSTER = ("tests", *(f"--ignore={it}" for it in ("tests/unit", *LOCAL, "tests/browser")))
#: The core on several releases of Hadoop, and its results, from which a table is written.
VERSIONS, RESULTS = "tests/cluster/versions", "out/hadoop-versions.xml"
DOCS = Part("docs", 20, (tool("mkdocs", "build", "--strict", "--site-dir", "out/site"),))
WHEEL = Part("wheel", 70, (tool("python", "scripts/wheel_test.py"),))
# One process each, without tests that depend on timing. The parts after them start real programs
# and wait for them, so a core is often idle. At low priority they may take six times as long.
STATIC = tuple(
    replace(part, beside=True, niceness=19, budget=6 * part.budget)
    for part in (LINT, FRONT_END, WHEEL, DOCS)
)
# The browser and the cluster wait for programs for half of the time on two cores. With the local
# backend beside them nothing would wait, and nothing would end earlier.
BROWSER = Part(
    "browser", 1500, (pytest("tests/browser", "-m", "not full"),), real=True, beside=True
)
PLANS = {
    # A third worker of the tests would collect everything again: other checks fill the gaps. They
    # come first, because a part in the foreground ends before the next one begins.
    "check": (
        QUICK_LINT,
        *([QUICK_FRONT_END] if (LABEXTENSION / "node_modules").is_dir() else []),
        QUICK_UNIT,
    ),
    "test": (
        UNIT,
        Part("local backend", 780, (LOCAL_TESTS,), real=True),
        BROWSER,
        *STATIC,
        Part(
            "cluster",
            1380,
            (pytest(*CLUSTER, "-m", "not full", "-p", "no:playwright"),),
            real=True,
        ),
    ),
    "test-full": (
        UNIT,
        Part("local backend", 7200, (pytest(*LOCAL),), real=True),
        *STATIC,
        Part("version bounds", 1800, (tool("python", "scripts/bounds_test.py"),)),
        Part("extras", 900, (tool("python", "scripts/extras_test.py"),)),
        Part("browser", 1800, (pytest("tests/browser"),), real=True),
        Part("hub", 900, (pytest("tests/hub"),), real=True),
        Part(
            "cluster",
            7200,
            (pytest(*CLUSTER, "--ignore=tests/hub", f"--ignore={VERSIONS}"),),
            real=True,
        ),
        Part(
            "Hadoop versions",
            7200,
            (
                pytest(VERSIONS, "--junitxml", RESULTS),
                tool("python", "scripts/hadoop_versions.py", RESULTS),
            ),
        ),
    ),
}
SETUP_BUDGET = 320
