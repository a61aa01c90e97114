"""Run the parts of `make check`, `make test` or `make test-full`, one after another.

Parts that are `beside` others run one after another in the background, with their own scratch
directory. Their output is printed when each command has ended. All parts run, even after a failure.
A part that takes three times its budget is killed.
Tests that failed in at most three files are repeated once in a new process (a server that is shared
by the tests of a file fails for all of them), and the table names them. Fix a test that often
appears there.
The table at the end has the time and the budget of each part. The exit code is 0 if all parts
succeeded and no process was left.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from plans import BIN, PLANS, SETUP_BUDGET, Part

from submarine_minicluster.hadoop import MARK
from submarine_minicluster.machine import Identity, find_marked, terminate

OWN_MARK = "SUBMARINE_TEST_RUN"
#: Failures in more files are not repeated: they are not caused by timing.
SECOND_TRIES = 3
#: Seconds in which a process ends by itself after the end of the process that it watches.
ENDING = 15
TESTS_FAILED = 1  # pytest's exit code.


@dataclass(frozen=True)
class Outcome:
    """Result of a part; ``again`` has the tests that succeeded when they were repeated."""

    name: str
    seconds: float
    budget: int
    result: str
    again: tuple[str, ...] = ()
    beside: bool = False


def run_plan(parts: Iterable[Part], scratch: Path, beside: Path) -> list[Outcome]:
    """Run all parts; return after the last one has ended."""
    background = ThreadPoolExecutor(max_workers=1)
    running: list[Outcome | Future[Outcome]] = []
    try:
        for part in parts:
            if part.beside:
                running.append(background.submit(run_part, part, beside))
            else:
                running.append(run_part(part, scratch))
        return [one.result() if isinstance(one, Future) else one for one in running]
    finally:
        # After an interrupt the thread still starts commands: kill each of them.
        background.shutdown(wait=False, cancel_futures=True)
        while any(isinstance(one, Future) and one.running() for one in running):
            end_leftovers(beside)
            time.sleep(0.2)


def run_part(part: Part, scratch: Path) -> Outcome:
    """Run all commands of a part, and kill the processes that they leave."""
    began = time.monotonic()
    failures: list[str] = []
    again: tuple[str, ...] = ()
    for command in part.commands:
        left = 3 * part.budget - (time.monotonic() - began)
        if part.real:
            result, again = run_tests(command, part, scratch, left)
        else:
            result = run_command(command, part, scratch, left)
        if result != "ok":
            failures.append(f"{Path(command[0]).name} {result}")
    leftovers = end_leftovers(scratch, ENDING)
    if leftovers:
        failures.append(f"left {len(leftovers)} processes: {'; '.join(leftovers)}")
    took = time.monotonic() - began
    result = ", ".join(failures) or "ok"
    return Outcome(part.name, took, part.budget, result, again, part.beside)


def run_tests(
    command: tuple[str, ...], part: Part, scratch: Path, timeout: float
) -> tuple[str, tuple[str, ...]]:
    """Return `ok` or the error, and the tests that failed once and then succeeded."""
    began = time.monotonic()
    cache = Path(tempfile.mkdtemp(prefix="pytest-cache-", dir=scratch))
    command = (*command, "-o", f"cache_dir={cache}")
    result = run_command(command, part, scratch, timeout)
    failed = failed_tests(cache)
    files = {test.partition("::")[0] for test in failed}
    if result != f"failed ({TESTS_FAILED})" or not 0 < len(files) <= SECOND_TRIES:
        return result, ()
    end_leftovers(scratch)
    again = (*command, "--last-failed", "--last-failed-no-failures", "none")
    left = timeout - (time.monotonic() - began)
    result = run_command(again, part, scratch, left)
    return result, failed if result == "ok" else ()


def failed_tests(cache: Path) -> tuple[str, ...]:
    """Return the tests that failed in pytest's last run."""
    try:
        found = json.loads((cache / "v" / "cache" / "lastfailed").read_text())
    except (OSError, ValueError):
        return ()
    return tuple(sorted(found))


def run_command(command: tuple[str, ...], part: Part, scratch: Path, timeout: float) -> str:
    """Run one command in its own process group; return `ok` or the error."""
    title = f"== {part.name}: {Path(command[0]).name} {' '.join(command[1:])}"
    if part.beside:
        with tempfile.TemporaryFile(dir=scratch) as output:
            command = ("nice", "-n", str(part.niceness), *command)
            result = run_process(command, part, scratch, timeout, output)
            output.seek(0)
            print(f"{title}\n{output.read().decode(errors='replace')}", flush=True)
        return result
    print(title, flush=True)
    return run_process(command, part, scratch, timeout)


def run_process(
    command: tuple[str, ...],
    part: Part,
    scratch: Path,
    timeout: float,
    output: IO[bytes] | None = None,
) -> str:
    """Run a command; write its output to `output` if that is given."""
    environment = {
        **os.environ,
        "TMPDIR": str(scratch),
        OWN_MARK: str(scratch),
        "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "NO_MKDOCS_2_WARNING": "1",
    }
    # With this variable, each of the thousands of processes compiles the project again. An
    # installed package has its bytecode.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with subprocess.Popen(
        command,
        cwd=part.folder,
        env=environment,
        stdout=output,
        stderr=subprocess.STDOUT if output else None,
        start_new_session=True,
    ) as process:
        try:
            code = process.wait(max(timeout, 1))
        except subprocess.TimeoutExpired:
            # pytest must be able to stop its cluster.
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


def end_leftovers(scratch: Path, patience: float = 0) -> list[str]:
    """Kill processes with this run's mark that do not end in ``patience`` seconds; return them."""
    deadline = time.monotonic() + patience
    while (found := leftovers_of(scratch)) and time.monotonic() < deadline:
        time.sleep(0.5)
    names = [f"{one.pid} {' '.join(one.command_line)[:120].strip()}" for one in found]
    terminate(found, grace=5)
    return names


def leftovers_of(scratch: Path) -> list[Identity]:
    """Return the processes with this run's mark or a mark of its miniclusters."""
    # By process: a process that loses this run's mark between the two searches is found by both.
    marked = [
        *find_marked(OWN_MARK, str(scratch)),
        *find_marked(MARK, str(scratch), below=True),
    ]
    return list(dict.fromkeys(marked))


def print_table(outcomes: list[Outcome]) -> None:
    """Print a line for each part: seconds, budget, result; the total is that of the foreground."""
    print(f"\n{'part':<16}{'seconds':>9}{'budget':>9}  result")
    for one in outcomes:
        over = " (over budget)" if one.seconds > one.budget else ""
        over += " (beside the others)" if one.beside else ""
        print(f"{one.name:<16}{one.seconds:>9.1f}{one.budget:>9}  {one.result}{over}")
    front = [one for one in outcomes if not one.beside]
    total, budget = sum(one.seconds for one in front), sum(one.budget for one in front)
    print(f"{'total':<16}{total:>9.1f}{budget:>9}")
    for one in outcomes:
        for test in one.again:
            print(f"{one.name}: succeeded at the second try only: {test}")


def main() -> int:
    """Run the plan that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", choices=PLANS)
    parser.add_argument("--setup-began", type=float, help="Unix time at which set-up began.")
    parser.add_argument("--part", action="append", help="Only this part; may be repeated.")
    arguments = parser.parse_args()
    # A shell lets background processes ignore SIGINT, and the tested processes would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    plan = PLANS[arguments.plan]
    chosen = [part for part in plan if part.name in (arguments.part or [part.name])]
    if not chosen:
        parser.error(f"the parts are: {', '.join(part.name for part in plan)}")
    began = arguments.setup_began or time.time()
    outcomes = []
    if arguments.setup_began:
        took = max(0.0, time.time() - arguments.setup_began)
        outcomes.append(Outcome("set-up", took, SETUP_BUDGET, "ok"))
    scratch, beside = (Path(tempfile.mkdtemp(prefix="submarine-make-")) for _ in range(2))
    try:
        outcomes += run_plan(chosen, scratch, beside)
    finally:
        for folder in (scratch, beside):
            end_leftovers(folder)
            shutil.rmtree(folder, ignore_errors=True)
    print_table(outcomes)
    print(f"{'elapsed':<16}{time.time() - began:>9.1f}")
    return 0 if all(one.result == "ok" for one in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
