"""A real MLflow server in its own environment (`scripts/setup.sh mlflow`)."""

from __future__ import annotations

import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.waiting import until

ROOT = Path(__file__).resolve().parents[3]
MLFLOW = ROOT / ".venv-mlflow/bin/mlflow"


@contextmanager
def mlflow_server(
    folder: Path, port: int, *options: str, variables: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Start a server on this machine with its store in a directory, and give its address."""
    if not MLFLOW.exists():
        pytest.skip("scripts/setup.sh mlflow makes .venv-mlflow")
    uri = f"http://127.0.0.1:{port}"
    folder.mkdir(parents=True, exist_ok=True)
    words = ("--host", "127.0.0.1", "--port", str(port), "--workers", "1")
    store = ("--backend-store-uri", f"sqlite:///{folder}/mlflow.db")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [str(MLFLOW), "server", *words, *store, *options],
            cwd=folder,
            env={**environment, **(variables or {})},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:

            def ready() -> bool:
                assert process.poll() is None, (folder / "server.log").read_text()
                with suppress(OSError), urllib.request.urlopen(f"{uri}/health", timeout=5):
                    return True
                return False

            until(ready, seconds=240)
            yield uri
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
