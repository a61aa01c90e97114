"""Run the parts of `make check`, `make test` or `make test-full`, one after the other.

Every part runs, whatever became of those before it; a part that takes twice its budget is ended.
At the end a table gives each part's time beside its budget. Exit code 0 only if all succeeded and
left no process behind.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from submarine_minicluster import processes
from submarine_minicluster.config import MARK

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
OWN_MARK = "SUBMARINE_TEST_RUN"


@dataclass(frozen=True)
class Part:
    """One step: its name, the seconds that it may take on two cores, its commands and where."""

    name: str
    budget: int
    commands: tuple[tuple[str, ...], ...]
    folder: Path = ROOT


@dataclass(frozen=True)
class Outcome:
    """What became of a part."""

    name: str
    seconds: float
    budget: int
    result: str


def tool(name: str, *arguments: str) -> tuple[str, ...]:
    """A command of this environment."""
    return (str(BIN / name), *arguments)


def pytest(*arguments: str) -> tuple[str, ...]:
    """A run of pytest; no tests at all is an error, as pytest has it."""
    return tool("python", "-m", "pytest", "-q", *arguments)


def jlpm(*arguments: str) -> tuple[str, ...]:
    """A tool of the front end."""
    return tool("jlpm", *arguments)


CHECK = (
    Part(
        "lint",
        30,
        (
            tool("ruff", "check", "."),
            tool("ruff", "format", "--check", "."),
            tool("mypy"),
            tool("lint-imports"),
            tool("python", "scripts/check_handlers.py"),
        ),
    ),
    # The browsers' plugin costs each worker half a second.
    Part("unit", 120, (pytest("tests/unit", "-n", "2", "-p", "no:playwright"),)),
)
LABEXTENSION = ROOT / "labextension"
#: A part of `make check` where the front end is set up: who changes Python alone needs no Node.
QUICK_FRONT_END = Part(
    "front end",
    20,
    (
        jlpm("eslint", "--cache", "--cache-location", "node_modules/.cache/eslint", "src", "tests"),
        jlpm("prettier", "--cache", "--check", "src", "tests", "style", "schema"),
        jlpm("tsc", "--noEmit"),
        jlpm("test"),
    ),
    LABEXTENSION,
)
#: With no cache; its types were checked when set-up built it.
FRONT_END = Part("front end", 60, (jlpm("lint"), jlpm("test")), LABEXTENSION)
# Programs that sleep and wait: two files at a time cost no more than one.
TWO_FILES = ("-n", "2", "--dist", "loadfile")
LOCAL = Part("local backend", 330, (pytest("tests/local", "-m", "not full", *TWO_FILES),))
# By what it is not, so that a new folder of tests is never left out. The browser has a process of
# its own: its event loop would be the current one of all tests after it.
CLUSTER = ("tests", "--ignore=tests/unit", "--ignore=tests/local", "--ignore=tests/browser")
DOCS = Part("docs", 15, (tool("mkdocs", "build", "--strict", "--site-dir", "out/site"),))
WHEEL = Part("wheel", 120, (tool("python", "scripts/wheel_test.py"),))
PLANS = {
    "check": (*CHECK, *([QUICK_FRONT_END] if (LABEXTENSION / "node_modules").is_dir() else [])),
    "test": (
        *CHECK,
        FRONT_END,
        LOCAL,
        Part("browser", 405, (pytest("tests/browser", "-m", "not full"),)),
        Part("cluster", 1320, (pytest(*CLUSTER, "-m", "not full", "-p", "no:playwright"),)),
        WHEEL,
        DOCS,
    ),
    "test-full": (
        *CHECK,
        FRONT_END,
        Part("local backend", 1800, (pytest("tests/local"),)),
        Part("browser", 1800, (pytest("tests/browser"),)),
        Part("cluster", 7200, (pytest(*CLUSTER),)),
        WHEEL,
        DOCS,
    ),
}
SETUP_BUDGET = 300


def run_part(part: Part, scratch: Path) -> Outcome:
    """Run all of a part's commands, and end whatever they leave behind."""
    began = time.monotonic()
    failures: list[str] = []
    for command in part.commands:
        print(f"== {part.name}: {Path(command[0]).name} {' '.join(command[1:])}", flush=True)
        left = 2 * part.budget - (time.monotonic() - began)
        result = run_command(command, part.folder, scratch, left)
        if result != "ok":
            failures.append(f"{Path(command[0]).name} {result}")
    leftovers = end_leftovers(scratch)
    if leftovers:
        failures.append(f"left {len(leftovers)} processes: {'; '.join(leftovers)}")
    took = time.monotonic() - began
    return Outcome(part.name, took, part.budget, ", ".join(failures) or "ok")


def run_command(command: tuple[str, ...], folder: Path, scratch: Path, timeout: float) -> str:
    """Run one command in a process group of its own; `ok`, or why not."""
    environment = {
        **os.environ,
        "TMPDIR": str(scratch),
        OWN_MARK: str(scratch),
        "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "NO_MKDOCS_2_WARNING": "1",
    }
    with subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True) as process:
        try:
            code = process.wait(max(timeout, 1))
        except subprocess.TimeoutExpired:
            # pytest gets the chance to stop its cluster.
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
            return "too slow"
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGINT)
            process.wait()
            raise
    return "ok" if code == 0 else f"failed ({code})"


def end_leftovers(scratch: Path) -> list[str]:
    """End processes that carry this run's mark or a mark of its miniclusters; what they were."""
    # By process: one that sheds this run's mark between the two looks is found by both.
    marked = [
        *processes.marked(OWN_MARK, str(scratch)),
        *processes.marked(MARK, str(scratch), below=True),
    ]
    found = list(dict.fromkeys(marked))
    names = [f"{one.pid} {' '.join(one.command_line)[:120].strip()}" for one in found]
    processes.end(found, grace=5)
    return names


def print_table(outcomes: list[Outcome]) -> None:
    """One line per part: seconds, budget, result."""
    print(f"\n{'part':<16}{'seconds':>9}{'budget':>9}  result")
    for one in outcomes:
        over = " (over budget)" if one.seconds > one.budget else ""
        print(f"{one.name:<16}{one.seconds:>9.1f}{one.budget:>9}  {one.result}{over}")
    total, budget = sum(one.seconds for one in outcomes), sum(one.budget for one in outcomes)
    print(f"{'total':<16}{total:>9.1f}{budget:>9}")


def main() -> int:
    """Run the plan that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", choices=PLANS)
    parser.add_argument("--setup-began", type=float, help="Unix time at which set-up began.")
    parser.add_argument("--part", action="append", help="Only this part; may be repeated.")
    arguments = parser.parse_args()
    # A shell starts what is in the background deaf to Ctrl-C, and so would be all that is tested.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    plan = PLANS[arguments.plan]
    chosen = [part for part in plan if part.name in (arguments.part or [part.name])]
    if not chosen:
        parser.error(f"the parts are: {', '.join(part.name for part in plan)}")
    outcomes = []
    if arguments.setup_began:
        took = max(0.0, time.time() - arguments.setup_began)
        outcomes.append(Outcome("set-up", took, SETUP_BUDGET, "ok"))
    scratch = Path(tempfile.mkdtemp(prefix="submarine-make-"))
    try:
        outcomes += [run_part(part, scratch) for part in chosen]
    finally:
        end_leftovers(scratch)
        shutil.rmtree(scratch, ignore_errors=True)
    print_table(outcomes)
    return 0 if all(one.result == "ok" for one in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
