"""The smoke test that `bounds_test.py` runs with each set of versions.

Imports every module, submits a job to the local backend by the command line and reads its record,
and requests the job from a Jupyter server with the extension.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from submarine_runtime.yarn import import_skein

PACKAGES = (
    "runtime",
    "data",
    "jobs",
    "magics",
    "kernel",
    "minicluster",
    "server",
    "workflows",
    "zeppelin",
)
#: Optional packages.
OPTIONAL = ("airflow", "jupyter_scheduler", "tensorboard", "tensorflow", "conda_pack", "pytest")
#: Programs: importing them runs them, some of them only in a kernel.
PROGRAMS = ("__main__", ".launch", ".launch_many", ".kernel_setup", ".kernel_values")
SERVER = (
    "--ServerApp.token=t",
    "--ServerApp.allow_root=True",
    "--ServerApp.open_browser=False",
    "--ServerApp.jpserver_extensions={'submarine_server': True}",
)


def main() -> None:
    """Run the test."""
    print(import_everything(), "modules")
    check_skein()
    check_commands()
    check_server()


def import_everything() -> int:
    """Import all modules; return their number."""
    count = 0
    for package in PACKAGES:
        root = importlib.import_module(f"submarine_{package}")
        for found in pkgutil.walk_packages(root.__path__, f"submarine_{package}."):
            if found.name.endswith(PROGRAMS):
                continue
            try:
                importlib.import_module(found.name)
            except ModuleNotFoundError as exc:
                if not str(exc.name).startswith(OPTIONAL):
                    raise
            count += 1
    return count


def check_skein() -> None:
    """A specification passes through skein's generated protobuf code."""
    skein = import_skein()
    service = skein.Service(resources=skein.Resources("1 GiB", 1), script="true", env={"A": "b"})
    spec = skein.ApplicationSpec(name="x", services={"s": service})
    assert skein.ApplicationSpec.from_protobuf(spec.to_protobuf()) == spec


def submarine(*words: str, code: int = 0) -> str:
    """Run the command; return its output."""
    call = [
        sys.executable,
        "-c",
        "import sys; from submarine_jobs.cli import main; sys.exit(main())",
        *words,
    ]
    done = subprocess.run(call, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, (words, done.stdout[-3000:], done.stderr[-3000:])
    return done.stdout + done.stderr


def check_commands() -> None:
    """Check help, an error, and a job."""
    for words in ("", "run", "workflow", "zeppelin", "notebook", "kernel", "show"):
        assert "Usage" in submarine(*words.split(), "--help"), words
    assert "--memroy" in submarine("run", "hello.py", "--memroy", "1G", code=2)
    Path("hello.py").write_text("print('hello')\nanswer = 42\n", encoding="utf-8")
    submarine("run", "hello.py", "--backend", "local", "--wait", "--return", "answer")
    assert "SUCCEEDED" in json.dumps(json.loads(submarine("show", "last", "--json")))
    assert "hello" in submarine("logs", "last")
    submarine("kernel", "install")


def check_server() -> None:
    """Check that the server extension lists the job."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "jupyter_server", *SERVER, f"--ServerApp.port={port}"]
    with open("server.log", "wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}/submarine/api/v1/jobs?token=t"
    deadline = time.monotonic() + 60
    try:
        while True:
            try:
                with urllib.request.urlopen(url, timeout=30) as reply:
                    assert b"hello" in reply.read()
                return
            except OSError as exc:
                if time.monotonic() > deadline or server.poll() is not None:
                    sys.exit(f"{exc}\n{Path('server.log').read_text(errors='replace')[-3000:]}")
                time.sleep(0.5)
    finally:
        server.terminate()
        server.wait(30)


if __name__ == "__main__":
    main()
