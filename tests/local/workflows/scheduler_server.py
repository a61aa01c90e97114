"""A real jupyter-server with jupyter-scheduler and our extension, driven by REST as Lab does it."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from submarine_jobs.client import Session
from submarine_jobs.config import load_config
from tests.local.server.jupyter_server import BASE, Server
from tests.notebooks import write_notebook
from tests.waiting import until

OURS = "submarine_workflows.scheduler.SubmarineExecutionManager"


class Scheduler(Server):
    """One server; its jobs run on the local backend."""

    extensions: Mapping[str, bool] = {**Server.extensions, "jupyter_scheduler": True}

    def __init__(self, scratch: Path, manager: str = "", **environment: str) -> None:
        super().__init__(scratch, SUBMARINE_BACKEND="local", **environment)
        (scratch / "data").mkdir()  # For the database; jupyter-scheduler does not create it.
        self.manager = manager
        self.cwd = self.root  # jupyter-scheduler downloads relative to it

    def start(self, *words: str) -> None:
        ours = [f"--Scheduler.execution_manager_class={self.manager}"] if self.manager else []
        super().start(*ours, *words)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.call(method, f"{BASE}scheduler/{path}", body)
        assert answer.status < 300, (answer.status, answer.data)
        return answer.json if answer.data else None

    def write(self, name: str, *sources: str, parameters: str = "") -> str:
        """A notebook in the server's root; its path there."""
        first = [(parameters, ["parameters"])] if parameters else []
        write_notebook(self.root / name, *first, "%load_ext submarine_magics", *sources)
        return name

    def create(
        self,
        notebook: str,
        name: str = "nightly",
        formats: Sequence[str] = ("ipynb", "html"),
        parameters: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> str:
        """Lab's "Create job"; the job's id."""
        order = {
            "input_uri": notebook,
            "name": name,
            "runtime_environment_name": sys.executable,
            "output_formats": list(formats),
            **({"parameters": dict(parameters)} if parameters else {}),
            **more,
        }
        return str(self.ask("POST", "jobs", order)["job_id"])

    def job(self, job_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", f"jobs/{job_id}")
        return found

    def ended(self, job_id: str) -> dict[str, Any]:
        """The job once it is over; one that has not begun is called stopped as well."""
        over = ("COMPLETED", "FAILED")

        def ended() -> bool:
            time.sleep(0.2)
            return self.job(job_id)["status"] in over

        until(ended, seconds=180.0)
        return self.job(job_id)

    def outputs(self, job_id: str) -> dict[str, Path]:
        """Download as Lab does it: format -> file."""
        answer = self.call("GET", f"{BASE}scheduler/jobs/{job_id}/download_files")
        assert answer.status < 300, answer.data
        until(lambda: self.job(job_id)["downloaded"])
        files = self.job(job_id)["job_files"]
        return {item["file_format"]: self.root / item["file_path"] for item in files}

    def end(self, number: signal.Signals) -> None:
        """Send a signal to the server's whole group, as Ctrl-C or a service manager; wait for it.

        The server asks back after one SIGINT: then it gets more of them.
        """
        process = self.process
        assert process is not None
        assert self.own_group
        os.killpg(process.pid, number)

        def gone() -> bool:
            if number == signal.SIGINT and process.poll() is None:
                process.send_signal(number)
            time.sleep(0.5)
            return process.poll() is not None

        until(gone, seconds=180.0)

    def staged(self, job_id: str, ending: str) -> list[Path]:
        """Files of a job where they are written, before anybody downloads them."""
        found = (self.scratch / "data/scheduler_staging_area" / job_id).glob(f"*-*{ending}")
        return sorted(found)

    def session(self, monkeypatch: Any) -> Session:
        """The Submarine jobs as a shell of this user lists them."""
        for name in ("HOME", "XDG_CONFIG_HOME", "SUBMARINE_STATE_DIR", "SUBMARINE_BACKEND"):
            monkeypatch.setenv(name, self.environment[name])
        monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
        return Session(load_config().profile)


def outputs_of(path: Path, kind: str) -> list[dict[str, Any]]:
    """All outputs of one kind of an executed notebook."""
    cells = json.loads(path.read_text())["cells"]
    return [o for cell in cells for o in cell.get("outputs", ()) if o["output_type"] == kind]
