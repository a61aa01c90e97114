"""Runs one distributed job in a network namespace of its own and takes the network away meanwhile.

``unshare -n python cut_network.py DIRECTORY SECONDS``: coordinator and agents talk over the
namespace's loopback, which is taken down for so long; the job directory is on a local disk and
stays reachable, as HDFS might. Prints the job's record as one line of JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from submarine_jobs.access import JobDirectory
from submarine_jobs.client import Session
from submarine_jobs.model import JobSpec, Profile, Resources, Role
from submarine_jobs.program import Cell, build_bundle

STEPS = 400
#: Each step leaves a line with its process and time: two attempts that write at the same time
#: would be seen.
PROGRAM = """\
import os, pathlib, sys, time
name = os.environ["SUBMARINE_ROLE"] + "-" + os.environ["SUBMARINE_INDEX"]
diary = pathlib.Path(sys.argv[1]) / name
place = pathlib.Path(os.environ["SUBMARINE_CHECKPOINT_DIR"])
steps = [int(path.name) for path in place.iterdir() if path.name.isdigit()]
step = max(steps, default=0)
while step < int(sys.argv[2]):
    step += 1
    time.sleep(0.1)
    with diary.open("a") as file:
        file.write(f"{time.time():.3f} {os.getpid()} {step}\\n")
    if step % 10 == 0:
        (place / "new").write_text(str(step))
        (place / "new").rename(place / str(step))
print("done", step, flush=True)
"""


def main() -> None:
    """Submit, cut the network, restore it, wait, report."""
    directory, seconds = Path(sys.argv[1]), float(sys.argv[2])
    loopback("up")
    diaries = directory / "diaries"
    diaries.mkdir()
    session = Session(Profile(backend="local", state_dir=directory / "state"))
    cell = Cell(
        cell_id="c1", source=PROGRAM, label="[1]", execution_count=1, first_line=1, only=False
    )
    bundle = build_bundle([cell])
    spec = JobSpec(
        "cut",
        "local",
        roles=(Role("worker", 2, Resources(memory=128)),),
        program=bundle.program,
        python=sys.executable,
        bundle_digest=bundle.digest,
        args=(str(diaries), str(STEPS)),
        framework="any",
        policy="all",
    )
    job = session.submit(spec, bundle)
    try:
        wait_for(lambda: all(lines(diaries / f"worker-{index}") >= 20 for index in (0, 1)), 60)
        loopback("down")
        time.sleep(seconds)
        loopback("up")
        wait_for(lambda: ended(job.directory), 240)
        record = job.directory.record()
        assert record is not None
        print(json.dumps(record.to_json()))
    finally:
        job.backend.stop(job.handle or {})


def loopback(word: str) -> None:
    """Take the namespace's only network up or down."""
    subprocess.run(["ip", "link", "set", "lo", word], check=True)


def lines(path: Path) -> int:
    """How many steps were made."""
    return len(path.read_text().splitlines()) if path.exists() else 0


def ended(directory: JobDirectory) -> bool:
    """Whether the job's record is there."""
    return directory.record() is not None


def wait_for(check: object, seconds: float) -> None:
    """Poll until ``check()`` is true."""
    assert callable(check)
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            raise TimeoutError("it did not come true")
        time.sleep(0.2)


if __name__ == "__main__":
    main()
