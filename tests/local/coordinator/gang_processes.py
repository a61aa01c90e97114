"""Distributed jobs on this machine: coordinator, agents and programs are processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from submarine_jobs.access import create_secret
from submarine_jobs.model import read_record
from submarine_jobs.submit import write_runtime_zip
from submarine_runtime.protocol import JobRecord, JobStore, Role, TaskRecord, to_json
from tests.configurations import make_agent_config, make_coordinator_config
from tests.local.agent.agent_processes import AGENT_PYTHON, joined_segments, zip_of
from tests.waiting import until

JOB_ID = "gang-20261121-0a1b"


class GangProcesses:
    """One distributed job below ``root``, in the layout of the local backend."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.job_dir, self.scratch = root / "job", root / "scratch"
        self.job_dir.mkdir(mode=0o700)
        self.scratch.mkdir(mode=0o700)
        self.secret = create_secret(JOB_ID)
        self.zip = write_runtime_zip(root / "cache")
        self.supervisor: subprocess.Popen[bytes] | None = None

    def prepare(
        self,
        program: str,
        roles: list[Role],
        agent: dict[str, Any] | None = None,
        **config: Any,
    ) -> None:
        common: dict[str, Any] = {
            "job_id": JOB_ID,
            "name": "gang",
            "created": time.time(),
            "store": JobStore("local", str(self.job_dir)),
            "job_dir": f"file://{self.job_dir}",
            "kill_grace": 1.0,
            "save_grace": 20.0,
            "listen": "127.0.0.1",
        }
        common.update({key: config.pop(key) for key in set(common) & set(config)})
        # Long enough for a busy machine; tests of a loss set their own limits.
        settings = {"lost_after": 15.0, "lost_margin": 1.0, "heartbeat": 0.3, **config}
        coordinator = make_coordinator_config(roles, **common, application_attempts=1, **settings)
        (self.scratch / "coordinator.json").write_text(json.dumps(to_json(coordinator)))
        self._secret(self.scratch)
        for role in roles:
            place = self.scratch / role.name
            place.mkdir(mode=0o700)
            words: dict[str, Any] = {
                "python": sys.executable,
                "sync_interval": 0.5,
                **(agent or {}),
            }
            own = make_agent_config(**{**common, **words}, role=role.name, roles=roles)
            (place / "agent.json").write_text(json.dumps(to_json(own)))
            (place / "bundle.zip").write_bytes(zip_of({"main.py": program}))
            self._secret(place)

    def _secret(self, place: Path) -> None:
        (place / "secret.json").write_bytes(self.secret.to_bytes())
        (place / "secret.json").chmod(0o600)

    def start(self) -> None:
        with open(self.root / "coordinator.log", "ab") as log:
            self.supervisor = subprocess.Popen(
                [AGENT_PYTHON, "-I", str(self.zip), "supervise", "--directory", str(self.scratch)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait(self, seconds: float = 180.0) -> JobRecord:
        assert self.supervisor is not None
        try:
            self.supervisor.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(self.story()) from None
        if not (self.job_dir / "record.json").exists():
            raise AssertionError(self.story())
        return read_record((self.job_dir / "record.json").read_text())

    def run(self, program: str, roles: list[Role], **config: Any) -> JobRecord:
        self.prepare(program, roles, **config)
        self.start()
        return self.wait()

    def story(self) -> str:
        """Return all logs and events, for a test that failed."""
        logs = [self.root / "coordinator.log", *sorted(self.scratch.glob("tasks/*/agent.log"))]
        said = [f"{path}: {path.read_text()[-3000:]}" for path in logs if path.exists()]
        return "\n".join([*said, *map(str, self.events())])

    def events(self) -> list[dict[str, Any]]:
        path = self.scratch / "events.jsonl"
        # The coordinator may be in the middle of its newest line.
        whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
        return [json.loads(line) for line in whole.splitlines()]

    def shipped_events(self) -> list[dict[str, Any]]:
        found = []
        for path in sorted((self.job_dir / "events").glob("coordinator-1-*.jsonl")):
            found += [json.loads(line) for line in path.read_text().splitlines()]
        return found

    def log(self, task: str, attempt: str = "e1-a1", stream: str = "stdout") -> str:
        """Return a shipped log; fail if segments do not join."""
        directory = self.job_dir / "logs" / task.replace(":", "-") / attempt
        return joined_segments(directory, stream).decode()

    def processes(self, verb: str) -> list[psutil.Process]:
        found = {}
        for process in psutil.process_iter(["cmdline", "ppid"]):
            words = process.info["cmdline"] or []
            if verb in words and any(str(self.scratch) in word for word in words):
                found[process.pid] = process
        # A child that has its parent's command line still is about to become something else.
        return [process for process in found.values() if process.info["ppid"] not in found]

    def agent(self, task: str) -> psutil.Process:
        """The agent process of a task's newest seat."""
        prefix = task.replace(":", "-") + "."

        def find() -> psutil.Process | None:
            for process in self.processes("agent"):
                if Path(process.info["cmdline"][-1]).name.startswith(prefix):
                    return process
            return None

        found: psutil.Process = until(find)
        return found

    def program(self, task: str) -> int:
        """The process id of a task's program."""

        def find() -> int | None:
            with suppress(psutil.NoSuchProcess):
                for process in self.agent(task).children(recursive=True):
                    if any(word.endswith(("main.py", "launch.py")) for word in process.cmdline()):
                        return process.pid
            return None

        return until(find)

    def wait_for_event(
        self, kind: str, detail: str = "", count: int = 1, task: str | None = None
    ) -> None:
        def there() -> bool:
            found = [e for e in self.events() if e["kind"] == kind and detail in e["detail"]]
            return len([e for e in found if task in (None, e.get("task"))]) >= count

        try:
            until(there)
        except AssertionError:
            raise AssertionError(f"no {kind} {detail}\n{self.story()}") from None

    def wait_for_state(self, state: str, count: int = 1) -> None:
        def there() -> bool:
            return sum(event["state"] == state for event in self.events()) >= count

        try:
            until(there)
        except AssertionError:
            raise AssertionError(f"never {state}\n{self.story()}") from None

    def stop_all(self) -> None:
        if self.supervisor is not None and self.supervisor.poll() is None:
            os.kill(self.supervisor.pid, signal.SIGKILL)
            self.supervisor.wait()
        for verb in ("coordinator", "agent"):
            for process in self.processes(verb):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        until(lambda: not self.processes("agent") and not self.processes("coordinator"))


def task_of(record: JobRecord, name: str) -> TaskRecord:
    return next(task for task in record.tasks if task.task == name)
