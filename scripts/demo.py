"""`make demo`: execute examples/digits.ipynb headless, on a minicluster or as local processes.

Prints the paths of the trained model, the log and the executed notebook. The minicluster has the
name "demo" and is stopped at the end unless KEEP=1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec.core
import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from submarine_minicluster import Minicluster, MiniclusterError

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "examples" / "digits.ipynb"
OUT = ROOT / "out"
JOB_MIME = "application/vnd.submarine.job.v1+json"
CELL_TIMEOUT = 900


def say(line: str) -> None:
    """Print a line of progress with the seconds since the start."""
    print(f"{time.monotonic() - BEGAN:6.1f} s  {line}", flush=True)


def execute(target: Path) -> nbformat.NotebookNode:
    """Execute the notebook cell by cell, and save it, also if a cell fails."""
    notebook: nbformat.NotebookNode = nbformat.read(NOTEBOOK, as_version=4)
    wanted = notebook.metadata.get("kernelspec", {}).get("name", "python3")
    kernel = wanted if wanted in KernelSpecManager().find_kernel_specs() else "python3"
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT,
        kernel_name=kernel,
        # Hide the warning that it listens on loopback without encryption.
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(NOTEBOOK.parent)}},
        on_cell_execute=announce,
    )
    try:
        client.execute()
    finally:
        target.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, target)
    return notebook


def announce(cell: nbformat.NotebookNode, cell_index: int) -> None:
    """Print the cell that is executed."""
    if cell.cell_type == "code":
        first = next((line for line in cell.source.splitlines() if line.strip()), "")
        say(f"cell {cell_index + 1}: {first[:80]}")


def jobs_in(notebook: nbformat.NotebookNode) -> Iterator[dict[str, Any]]:
    """Return the jobs in the notebook's outputs, each in its last state."""
    found: dict[str, dict[str, Any]] = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            shown = output.get("data", {}).get(JOB_MIME)
            if isinstance(shown, dict) and "job_id" in shown:
                found[shown["job_id"]] = shown
    yield from found.values()


def fetch(job: dict[str, Any]) -> Path:
    """Copy the results of the job from HDFS or a local path to a directory outside the cluster."""
    directory = str(job["job_dir"]).rstrip("/")
    target = OUT / str(job["job_id"])
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    files, root = fsspec.core.url_to_fs(directory)
    for name in ("model", "logs", "record.json"):
        if files.exists(f"{root}/{name}"):
            files.get(f"{root}/{name}", str(target / name), recursive=True)
    join_log(target)
    return target


def join_log(directory: Path) -> None:
    """Join the shipped parts of each stream, named by their offsets, into one file."""
    for stream in ("stdout", "stderr"):
        pieces = sorted(directory.glob(f"logs/*/*/{stream}.[0-9]*"))
        if pieces:
            with (directory / f"{stream}.log").open("wb") as joined:
                for piece in pieces:
                    joined.write(piece.read_bytes())


def report(notebook: nbformat.NotebookNode, target: Path) -> int:
    """Print all paths; return 1 if no job succeeded."""
    jobs = list(jobs_in(notebook))
    for job in jobs:
        kept = fetch(job).relative_to(ROOT)
        print(f"\njob       {job['job_id']}: {job.get('state', '')}")
        print(f"directory {job['job_dir']}")
        print(f"model     {kept}/model")
        print(f"log       {kept}/stdout.log")
    print(f"notebook  {target.relative_to(ROOT)}")
    if not jobs:
        print("The executed notebook shows no job.", file=sys.stderr)
    return 0 if jobs and all(job.get("state") == "SUCCEEDED" for job in jobs) else 1


def run(target: Path) -> int:
    """Execute and report. A failing cell is shown without a traceback of this script."""
    try:
        return report(execute(target), target)
    except CellExecutionError as error:
        print(f"\nA cell failed; the notebook up to there is {target}.\n{error}", file=sys.stderr)
        return 1


def on_yarn(target: Path) -> int:
    """Start the demo's cluster, run on it, stop it."""
    cluster = Minicluster("demo")
    try:
        cluster.start(progress=say)
        os.environ.update(cluster.environ())
        os.environ["SUBMARINE_BACKEND"] = "yarn"
        code = run(target)
        if os.environ.get("KEEP"):
            print('\nThe minicluster runs on: eval "$(submarine minicluster env --name demo)"')
            print("Stop it with: submarine minicluster stop --name demo")
    except MiniclusterError as error:
        print(f"The minicluster did not start: {error}", file=sys.stderr)
        code = 1
    finally:
        if not os.environ.get("KEEP"):
            cluster.stop(say)
    return code


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", choices=("yarn", "local"), default="yarn")
    arguments = parser.parse_args()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    # In the local kernel TensorFlow would log an error because this machine has no GPU.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    target = OUT / "digits.ipynb"
    if arguments.backend == "local":
        os.environ["SUBMARINE_BACKEND"] = "local"
        return run(target)
    return on_yarn(target)


BEGAN = time.monotonic()

if __name__ == "__main__":
    sys.exit(main())
