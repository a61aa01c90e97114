"""Memory of Zeppelin's interpreter process while jobs of several users run on YARN.

The interpreter runs in this process, configured like the process of an interpreter group. Pages
that discard their output replace Zeppelin. Prints resident and private memory after each user's
submission, when all jobs run, and after a paragraph of Python and one of a workflow. The exit code
is 1 if the limit is missed.

    python benchmarks/zeppelin_memory.py [--users 4] [--minicluster NAME]
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from submarine_jobs.backends.yarn.driver import stop_driver
from submarine_jobs.concurrency import use_subprocesses
from submarine_jobs.model import Profile
from submarine_minicluster import Minicluster
from submarine_zeppelin.interface import (
    Code,
    Context,
    Kind,
    Message,
    NoteParagraph,
    Output,
    Server,
    make_interpreter,
)
from submarine_zeppelin.memory import block_unused_imports, limit_retained_memory
from submarine_zeppelin.service import process as _process  # noqa: F401  (what the process loads)

LIMIT_MB = 80.0
PROGRAM = "%submarine.python\nimport time\nprint('it runs', flush=True)\ntime.sleep(3600)"
WORKFLOW = "workflow nightly\nnodes:\n  - name: one\n    cells: [program]\n"
_JOB_ID = re.compile(r"of-[\w-]+-\d{8}-[0-9a-f]{4,}")
_PATIENCE = 300.0


class Shown(Output):
    """A page that keeps its last text."""

    def __init__(self) -> None:
        self.text = ""

    def show(self, messages: Sequence[Message]) -> None:
        """Replace the output."""
        self.text = "".join(one.data for one in messages)

    def append(self, text: str, kind: Kind = Kind.TEXT) -> None:
        """Append to the output."""
        self.text += text

    def link(self, label: str, url: str, tooltip: str = "") -> None:
        """Do nothing."""


class Pages(Server):
    """A note for each user: a program, and the paragraph that runs it."""

    def __init__(self) -> None:
        self.shown: dict[str, Shown] = {}

    def paragraphs(self, note_id: str, user: str) -> list[NoteParagraph]:
        """Return the two paragraphs."""
        return [
            NoteParagraph(note_id, "program", "", PROGRAM),
            NoteParagraph(note_id, "run", "", "%submarine"),
        ]

    def output(self, context: Context) -> Shown:
        """Return the page of a user's paragraph."""
        return self.shown.setdefault(context.user, Shown())


def report(when: str) -> float:
    """Print the memory of this process; return the resident megabytes."""
    process = psutil.Process()
    found = process.memory_full_info()
    resident, private = found.rss / (1 << 20), found.uss / (1 << 20)
    print(f"{when:<32}{resident:>8.1f}{private:>9.1f}{process.num_threads():>9}", flush=True)
    return resident


def measure(cluster: Minicluster, number: int) -> float:
    """Return the largest memory, with jobs of several users."""
    users = [f"user-{count}-{secrets.token_hex(2)}" for count in range(number)]
    for user in users:
        cluster.add_user(user)
    pages = Pages()
    submarine = make_interpreter("submarine_zeppelin.Submarine", {}, pages, "session")
    python = make_interpreter("submarine_zeppelin.Python", {}, pages, "session")

    def run(user: str, line: str) -> str:
        context = Context(f"2NOTE{user}", "run", user=user, text=f"%submarine {line}")
        page = pages.output(context)
        result = submarine.interpret(line, context, page)
        if result.code is Code.ERROR:
            raise SystemExit("".join(one.data for one in result.messages))
        return page.text

    print(f"{'MB':<32}{'resident':>8}{'private':>9}{'threads':>9}")
    held, jobs = [report("before")], {}
    try:
        for user in users:
            found = _JOB_ID.search(run(user, f"run of-{user} --memory 256M"))
            if found is None:
                raise SystemExit("a paragraph shows no job")
            jobs[user] = found[0]
            held.append(report(f"after the submission of {user}"))
        until = time.monotonic() + _PATIENCE
        while not all("it runs" in pages.shown[user].text for user in users):
            if time.monotonic() > until:
                raise SystemExit("not all jobs run: does the cluster have enough resources?")
            time.sleep(0.1)
        held.append(report("all run"))
        context = Context(f"2NOTE{users[0]}", "program", user=users[0], text=PROGRAM)
        python.interpret("\nprint(1)", context, pages.output(context))
        held.append(report("after a paragraph of Python"))
        run(users[0], WORKFLOW)
        held.append(report("after one of a workflow"))
    finally:
        for user, job_id in jobs.items():
            run(user, f"cancel {job_id}")
        submarine.close()
        python.close()
    return max(held)


def main() -> int:
    """Measure and print; return 1 if the limit is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--users", type=int, default=4)
    parser.add_argument("--minicluster", help="use this one; else one is started and removed")
    chosen = parser.parse_args()
    limit_retained_memory()
    block_unused_imports()
    use_subprocesses()
    cluster = Minicluster(chosen.minicluster or "benchmark-zeppelin-memory")
    with tempfile.TemporaryDirectory(prefix="zeppelin-memory-") as scratch:
        try:
            cluster.start()
            os.environ.update(cluster.environ())
            os.environ.update(XDG_CONFIG_HOME=scratch, SUBMARINE_STATE_DIR=scratch)
            most = measure(cluster, chosen.users)
        finally:
            for folder in Path(scratch).glob("users/*"):
                stop_driver(Profile(state_dir=folder))
            if not chosen.minicluster:
                cluster.stop(delete_data=True)
    good = most < LIMIT_MB
    print(f"bar: {LIMIT_MB:.0f} MB: {'met' if good else 'MISSED'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
