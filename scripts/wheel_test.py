"""Build the wheel, install it into an empty environment, and run a job from there.

Shows that the wheel holds everything that a user needs, the part that travels into containers
included, and that nothing leans on the source tree.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEEDED = (
    "submarine_runtime/__init__.py",
    "submarine_jobs/__init__.py",
    "submarine_magics/__init__.py",
    "submarine_kernel/__init__.py",
    "submarine_minicluster/pom.xml",
)
#: Speaks to the installed kernel as a front end does: one collected cell, then its job.
CELLS = """
from jupyter_client.manager import start_new_kernel

manager, client = start_new_kernel(kernel_name="submarine", startup_timeout=60)
try:
    for cell in (
        "%%submarine --only\\nanswer = 6 * 7",
        "job = %submarine run cells --backend local --return answer --wait",
        "print(job.state.value, job.result['answer'])",
    ):
        def show(message):
            content = message["content"]
            print(content.get("text", ""), *content.get("traceback", ()))

        client.execute_interactive(cell, timeout=90, output_hook=show)
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
"""
PROGRAM = "import sys\nprint('hello from the wheel', sys.version_info[:2])\n"


def run(*command: str | Path, cwd: Path, env: dict[str, str], timeout: float = 300) -> str:
    """Run a command; its standard output. Ends the script with its error output on failure."""
    print("  $", *command, flush=True)
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd, env=env, capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"exit code {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def environment(home: Path) -> dict[str, str]:
    """The caller's environment without anything that points at a cluster or a source tree."""
    dropped = ("PYTHON", "SUBMARINE_", "HADOOP_", "VIRTUAL_ENV", "JUPYTER")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    return {**kept, "HOME": str(home), "XDG_DATA_HOME": str(home / "data")}


def main() -> None:
    """Build, install, run."""
    with tempfile.TemporaryDirectory(prefix="submarine-wheel-") as scratch:
        work = Path(scratch)
        cache = os.environ.get("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip"))
        env = {**environment(work), "PIP_CACHE_DIR": cache}
        run(sys.executable, "-m", "build", "--wheel", "--outdir", work / "dist", ROOT,
            cwd=work, env=env)  # fmt: skip
        wheel = next((work / "dist").glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            missing = set(NEEDED) - set(archive.namelist())
        if missing:
            sys.exit(f"{wheel.name} lacks {', '.join(sorted(missing))}")
        venv.create(work / "venv", with_pip=True)
        binaries = work / "venv" / "bin"
        env["PATH"] = f"{binaries}{os.pathsep}{env['PATH']}"
        run(binaries / "python", "-m", "pip", "install", "--quiet", wheel, cwd=work, env=env)
        check_commands(binaries, work, env)
        check_notebook(binaries, work, env)
    print(f"  {wheel.name} works on its own")


def check_commands(binaries: Path, work: Path, env: dict[str, str]) -> None:
    """Help, a job on the local backend, and its record."""
    submarine = binaries / "submarine"
    for arguments in (["--help"], ["run", "--help"], ["minicluster", "--help"]):
        if "Usage" not in run(submarine, *arguments, cwd=work, env=env):
            sys.exit(f"submarine {' '.join(arguments)} prints no usage")
    (work / "hello.py").write_text(PROGRAM, encoding="utf-8")
    run(submarine, "run", "hello.py", "--backend", "local", "--wait", cwd=work, env=env)
    record = json.loads(run(submarine, "show", "last", "--json", cwd=work, env=env))
    if "SUCCEEDED" not in json.dumps(record):
        sys.exit(f"the job did not succeed: {record}")
    log = run(submarine, "logs", "last", cwd=work, env=env)
    if "hello from the wheel" not in log:
        sys.exit(f"the job's log is not what it printed: {log!r}")


def check_notebook(binaries: Path, work: Path, env: dict[str, str]) -> None:
    """The kernel "Python + Submarine", installed by its command, collects and runs a cell."""
    run(binaries / "submarine", "kernel", "install", cwd=work, env=env)
    (work / "cells.py").write_text(CELLS, encoding="utf-8")
    said = run(binaries / "python", "cells.py", cwd=work, env=env)
    if "SUCCEEDED 42" not in said:
        sys.exit(f"the notebook's job did not come back: {said[-4000:]}")


if __name__ == "__main__":
    main()
