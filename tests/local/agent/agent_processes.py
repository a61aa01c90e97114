"""Agents as processes, with job directories on the local disk."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from submarine_jobs.access import AgentAddress, AgentClient, JobSecret, create_secret
from submarine_jobs.model import read_record
from submarine_jobs.submit import write_runtime_zip
from submarine_runtime.protocol import JobRecord, JobStore, to_json
from tests.configurations import make_agent_config
from tests.waiting import PATIENCE, until

_OLDEST = Path.home() / ".pyenv/versions/3.8.18/bin/python"
#: This interpreter, and the oldest that containers may have where it is installed.
OLDEST_PYTHONS = [sys.executable] + ([str(_OLDEST)] if _OLDEST.exists() else [])
#: The agents' interpreter; the whole directory can be run with another by the environment.
AGENT_PYTHON = os.environ.get("SUBMARINE_TEST_AGENT_PYTHON", sys.executable)
JOB_ID = "agent-20261121-0a1b"


def zip_of(files: Mapping[Any, str | bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def joined_segments(directory: Path, stream: str) -> bytes:
    """Return the shipped log of an attempt; fail if segments do not join."""
    whole = b""
    for path in sorted(directory.glob(f"{stream}.[0-9]*")):
        assert int(path.name.split(".")[1]) == len(whole), "segments do not join"
        whole += path.read_bytes()
    return whole


class AgentProcesses:
    """One job directory and the processes of its agents."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.job_dir = root / "job"
        self.job_dir.mkdir(mode=0o700)
        self.secret: JobSecret = create_secret(JOB_ID)
        self.zip = write_runtime_zip(root / "cache")
        self.agents: list[subprocess.Popen[bytes]] = []

    def scratch(self, name: str = "scratch") -> Path:
        return self.root / name

    def prepare(
        self,
        program: str | bytes | None = None,
        *,
        files: Mapping[str, str | bytes] | None = None,
        bundle: bytes | None = None,
        name: str = "scratch",
        values: bytes | None = None,
        **config: Any,
    ) -> Path:
        scratch = self.scratch(name)
        scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        store = config.pop("store", JobStore("local", str(self.job_dir)))
        content = dict(files or {})
        if program is not None:
            content["main.py"] = program
        settings: dict[str, Any] = {
            "python": sys.executable,
            "listen": "127.0.0.1",
            "kill_grace": 1.0,
            **config,
        }
        agent = make_agent_config(
            job_id=JOB_ID,
            name="hidden-name",
            created=time.time(),
            store=store,
            job_dir=f"file://{self.job_dir}",
            **settings,
        )
        (scratch / "agent.json").write_text(json.dumps(to_json(agent)))
        (scratch / "secret.json").write_bytes(self.secret.to_bytes())
        (scratch / "bundle.zip").write_bytes(bundle if bundle is not None else zip_of(content))
        if values is not None:
            (scratch / "values.zip").write_bytes(values)
        return scratch

    def launch(
        self,
        scratch: Path,
        *,
        python: str = AGENT_PYTHON,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        agent = subprocess.Popen(
            [python, "-I", str(self.zip), "agent", "--directory", str(scratch)],
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.agents.append(agent)
        return agent

    def start(self, program: str | bytes | None = None, **options: Any) -> subprocess.Popen[bytes]:
        """Prepare and launch; do not wait."""
        return self.launch(self.prepare(program, **options))

    def run(self, program: str | bytes | None = None, **options: Any) -> JobRecord:
        """Run a program to its end; return the published record."""
        self.finish(self.start(program, **options))
        return self.record()

    def finish(self, agent: subprocess.Popen[bytes], seconds: float = PATIENCE) -> int:
        _, errors = agent.communicate(timeout=seconds)
        self.errors = errors.decode()
        assert "Traceback" not in self.errors, self.errors
        return agent.returncode

    def record(self) -> JobRecord:
        return read_record((self.job_dir / "record.json").read_text())

    def log(self, stream: str, name: str = "scratch") -> bytes:
        return (self.scratch(name) / f"worker-0.{stream}.log").read_bytes()

    def shipped(self, stream: str) -> bytes:
        """Return the log in the job directory; fail if segments do not join."""
        return joined_segments(self.job_dir / "logs/worker-0/e1-a1", stream)

    def wait_for_log(self, text: bytes, stream: str = "stdout") -> None:
        path = self.scratch() / f"worker-0.{stream}.log"
        until(lambda: path.exists() and text in path.read_bytes())

    def client(self, token: str | None = None, host: str | None = None) -> AgentClient:
        until((self.job_dir / "live.json").exists)
        live = json.loads((self.job_dir / "live.json").read_text())
        secret = (
            self.secret
            if token is None
            else JobSecret(token, self.secret.certificate, self.secret.key)
        )
        return AgentClient(AgentAddress(host or live["host"], live["port"], secret))

    def stop_all(self) -> None:
        for agent in self.agents:
            if agent.poll() is None:
                agent.send_signal(signal.SIGKILL)
            agent.communicate()
