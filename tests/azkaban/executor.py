"""Azkaban's executor: runs the nodes of a flow as its ``FlowRunner`` and ``ProcessJob`` do.

No shell, words taken apart at spaces and quotes, properties put in before, the unpacked project as
working directory, SIGTERM and then SIGKILL to one process. Shares no code with what it tests.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.azkaban.project import Flow, Node
from tests.azkaban.script import MACRO, holds

GOOD, BAD = {"SUCCEEDED", "FAILED_SUCCEEDED", "SKIPPED"}, {"FAILED", "KILLED", "CANCELLED"}
OVER = GOOD | BAD | {"EXECUTION_STOPPED"}
VARIABLE = re.compile(r"\$\{([a-zA-Z_.0-9]+)\}")


def partition(command: str) -> list[str]:
    """``partitionCommandLine``."""
    words: list[str] = []
    word, apostrophe, quote = "", False, False
    for char in command:
        if char == " " and not quote and not apostrophe:
            if word:
                words.append(word)
            word = ""
        elif char == "'" and not quote:
            apostrophe = not apostrophe
        elif char == '"' and not apostrophe:
            quote = not quote
        else:
            word += char
    return [*words, word] if word else words


def resolve(props: Mapping[str, str]) -> dict[str, str]:
    """``PropsUtils.resolveProps``: every property, or none where one is not known."""

    def one(value: str, seen: tuple[str, ...]) -> str:
        def put(match: re.Match[str]) -> str:
            name = match[1]
            if name in seen:
                raise ValueError(f"Circular variable substitution found: [{'->'.join(seen)}]")
            if name not in props:
                raise ValueError(
                    f"Could not find variable substitution for variable(s) [{'->'.join(seen)}]"
                )
            return one(props[name], (*seen, name))

        return VARIABLE.sub(put, value)

    return {key: one(value, (key,)) for key, value in props.items()}


@dataclass
class Job:
    """A node in an execution."""

    node: Node
    path: str
    parent: Job | None
    type: str
    status: str = "READY"
    attempt: int = 0
    start: float = -1
    end: float = -1
    outputs: dict[str, str] | None = None
    props: dict[str, str] = field(default_factory=dict)
    children: list[Job] = field(default_factory=list)
    process: subprocess.Popen[bytes] | None = None
    killed: bool = False
    logs: list[Path] = field(default_factory=list)

    @property
    def macro(self) -> str:
        match = MACRO.search(self.node.condition or "")
        return match[1].lower() if match else "all_success"


class Execution:
    """One run of a flow, in a thread of its own.

    Parameters
    ----------
    ended
        Called once, with the execution.
    """

    def __init__(
        self,
        execid: int,
        project: str,
        flow: Flow,
        files: Mapping[str, bytes],
        folder: Path,
        user: str,
        *,
        overrides: Mapping[str, str] | None = None,
        failure_action: str = "finishCurrent",
        disabled: tuple[str, ...] = (),
        kill_seconds: float = 30.0,
        ended: Callable[[Execution], None] = lambda _: None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.execid, self.project, self.flow, self.user = execid, project, flow, user
        self.folder = folder
        self.submitted = time.time()
        self._failure_action, self._kill_seconds = failure_action, kill_seconds
        self._environ = dict(os.environ if environ is None else environ)
        self._ended = ended
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._failed = self.killed = False
        root = Node(flow.name, "flow", flow.config, nodes=flow.nodes)
        self.root = self._job(root, "", None)
        self.root.status = "PREPARING"
        for job in self.walk():
            if job.path in disabled:
                job.status = "DISABLED"
        self.root.props = {**self._common(), **flow.config, **(overrides or {})}
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o644)  # Azkaban's unzip keeps no modes
        self._thread = threading.Thread(target=self._run, name=f"execution {execid}")
        self._thread.start()

    def walk(self, job: Job | None = None) -> list[Job]:
        found = []
        for child in (job or self.root).children:
            found += [child, *self.walk(child)]
        return found

    def find(self, path: str) -> Job | None:
        return next((job for job in self.walk() if job.path == path), None)

    @property
    def over(self) -> bool:
        return self.root.status in OVER

    def kill(self) -> None:
        """``FlowRunner.kill``: stop each running job and start nothing else."""
        with self._changed:
            self.killed = True
            if self.root.status not in OVER:
                self.root.status = "KILLING"
            running = [job for job in self.walk() if not job.children and job.status == "RUNNING"]
            for job in running:
                job.status, job.killed = "KILLING", True
            self._changed.notify_all()
        for job in running:
            threading.Thread(target=self._stop, args=(job,)).start()

    def wait(self, timeout: float) -> bool:
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _job(self, node: Node, path: str, parent: Job | None) -> Job:
        job = Job(node, path, parent, node.type)
        job.children = [
            self._job(inner, f"{path}:{inner.name}" if path else inner.name, job)
            for inner in node.nodes
        ]
        return job

    def _common(self) -> dict[str, str]:
        now = datetime.now().astimezone()
        return {
            "azkaban.flow.execid": str(self.execid),
            "azkaban.flow.flowid": self.flow.name,
            "azkaban.flow.projectname": self.project,
            "azkaban.flow.projectid": "1",
            "azkaban.flow.projectversion": "1",
            "azkaban.flow.submituser": self.user,
            "azkaban.flow.start.timestamp": now.isoformat(timespec="milliseconds"),
            "azkaban.flow.start.year": f"{now:%Y}",
            "azkaban.flow.start.month": f"{now:%m}",
            "azkaban.flow.start.day": f"{now:%d}",
            "azkaban.flow.uuid": "00000000-0000-0000-0000-000000000000",
        }

    def _run(self) -> None:
        with self._changed:
            if not self.killed:
                self.root.status, self.root.start = "RUNNING", time.time()
            self._start_ready(self.root)
            while not self._settled(self.root):
                self._changed.wait(1)
                self._start_ready(self.root)
            self._finish(self.root)
        self._ended(self)

    def _settled(self, flow: Job) -> bool:
        return all(job.status in OVER for job in flow.children)

    def _start_ready(self, flow: Job) -> None:
        """Start, skip or cancel all that can be said to be so; again until nothing changes."""
        again = True
        while again:
            again = False
            for job in flow.children:
                if job.children and job.status == "RUNNING":
                    self._start_ready(job)
                    if self._settled(job):
                        self._finish(job)
                        again = True
                elif job.status in ("READY", "DISABLED"):
                    again |= self._one(job, flow)

    def _one(self, job: Job, flow: Job) -> bool:
        status = self._implied(job, flow)
        if status is None:
            return False
        if status in ("CANCELLED", "SKIPPED"):
            self._end(job, status)
            for inner in self.walk(job):
                self._end(inner, status)
            return True
        job.status, job.start = "RUNNING", time.time()
        job.props = self._props(job, flow)
        if job.children:
            return True
        threading.Thread(target=self._work, args=(job,)).start()
        return True

    def _end(self, job: Job, status: str) -> None:
        job.status, job.end = status, time.time()
        if job.start < 0:
            job.start = job.end

    def _implied(self, job: Job, flow: Job) -> str | None:
        before = [
            next(other for other in flow.children if other.node.name == name)
            for name in job.node.depends_on
        ]
        status = "READY"
        if any(other.status not in OVER for other in before):
            return None
        states = {other.status for other in before}
        macro = job.macro
        if (
            (macro == "all_success" and states & BAD)
            or (macro == "all_failed" and states & GOOD)
            or (macro == "one_success" and not states & GOOD)
            or (macro == "one_failed" and not states & BAD)
        ):
            status = "CANCELLED"
        if status != "CANCELLED" and job.node.condition:
            outputs = {other.node.name: other.outputs or {} for other in flow.children}
            if not holds(job.node.condition, outputs):
                status = "CANCELLED"
        if job.status == "DISABLED":
            return "SKIPPED"
        if self.killed or (self._failed and self._failure_action == "finishCurrent"):
            return "CANCELLED"
        return status

    def _props(self, job: Job, flow: Job) -> dict[str, str]:
        """Of the flow, of what it depends on, its own; later ones over earlier ones."""
        outputs: dict[str, str] = {}
        for other in flow.children:
            if other.node.name in job.node.depends_on:
                outputs.update(other.outputs or {})
        own = {**job.node.config, "azkaban.job.id": job.node.name}
        return {**flow.props, **outputs, **own, "azkaban.job.attempt": str(job.attempt)}

    def _work(self, job: Job) -> None:
        log = self.folder / f"_job.{self.execid}.{job.path.replace(':', '.')}.{job.attempt}.log"
        job.logs.append(log)
        status = "FAILED"
        try:
            with log.open("ab", 0) as out:
                try:
                    if job.type == "command":
                        self._commands(job, resolve(job.props), out)
                    elif job.type != "noop":
                        raise RuntimeError(f"Job type '{job.type}' is unrecognized.")
                    status = "SUCCEEDED"
                except (RuntimeError, ValueError, OSError) as exc:
                    _say(out, job, f"ERROR - {exc}")
        finally:
            self._done(job, "KILLED" if job.killed else status)

    def _done(self, job: Job, status: str) -> None:
        with self._changed:
            if status == "FAILED" and int(job.props.get("retries", "0")) > job.attempt:
                delay = int(job.props.get("retry.backoff", "0")) / 1000
                self._changed.wait_for(lambda: self.killed, delay) if delay else None
                job.attempt, job.start = job.attempt + 1, -1
                job.status = "READY"
                self._changed.notify_all()
                return
            self._end(job, status)
            if status == "FAILED":
                self._fail(job)
            self._changed.notify_all()

    def _fail(self, job: Job) -> None:
        """``setFlowFailed``: unless every follower waits for something else than success."""
        siblings = job.parent.children if job.parent is not None else []
        after = [other for other in siblings if job.node.name in other.node.depends_on]
        if after and all(other.macro != "all_success" for other in after):
            return
        flow = job.parent
        while flow is not None:
            if flow.status not in OVER and flow.status != "KILLING":
                flow.status = "FAILED_FINISHING"
            flow = flow.parent
        self._failed = True
        if self._failure_action == "cancelImmediately":
            self.kill()

    def _finish(self, flow: Job) -> None:
        wanted = {name for job in flow.children for name in job.node.depends_on}
        ends = [job for job in flow.children if job.node.name not in wanted]
        flow.outputs = {}
        for job in ends:
            flow.outputs.update(job.outputs or {})
        if flow.status == "RUNNING" and any(job.status in BAD for job in ends):
            flow.status = "KILLED"
        endings = {"FAILED_FINISHING": "FAILED", "KILLING": "KILLED"}
        flow.status = endings.get(flow.status, flow.status)
        if flow.status not in OVER:
            flow.status = "SUCCEEDED"
        flow.end = time.time()

    def _commands(self, job: Job, props: dict[str, str], out: Any) -> None:
        commands = [props["command"]] if "command" in props else []
        if not commands:
            raise RuntimeError("Job set up failed: Missing required property 'command'")
        while f"command.{len(commands)}" in props:
            commands.append(props[f"command.{len(commands)}"])
        _say(out, job, f"INFO - {len(commands)} commands to execute.")
        where = Path(props.get("working.dir", str(self.folder)))
        if not where.resolve().is_relative_to(self.folder.resolve()):
            raise RuntimeError(f"Specified working.dir is not valid: {where}.")
        prefix = job.node.name
        props_file, output = (
            Path(tempfile.mkstemp(f"{suffix}_tmp", prefix + suffix, where)[1])
            for suffix in ("_job_props_", "_output_")
        )
        props_file.write_text("".join(f"{key}={value}\n" for key, value in props.items()))
        given = {key[4:]: value for key, value in props.items() if key.startswith("env.")}
        given |= {
            "JOB_PROP_FILE": str(props_file),
            "JOB_NAME": job.node.name,
            "JOB_OUTPUT_PROP_FILE": str(output),
            "KRB5CCNAME": f"/tmp/krb5cc__{self.project}__{self.flow.name}__{job.node.name}",
        }
        for command in commands:
            _say(out, job, f"INFO - Command: {command}")
            _say(out, job, f"INFO - Environment variables: {given}")
            with self._lock:
                if job.killed:
                    return
                job.process = subprocess.Popen(
                    partition(command), cwd=where, env={**self._environ, **given},
                    stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT,
                )  # fmt: skip
            code = job.process.wait()
            job.process.stdin.close()  # type: ignore[union-attr]
            if code:
                raise RuntimeError(f"Process completed unsuccessfully: exit code {code}")
        job.outputs = _outputs(output)

    def _stop(self, job: Job) -> None:
        """``softKill``, then ``hardKill``."""
        process = job.process
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGTERM)
        try:
            process.wait(self._kill_seconds)
        except subprocess.TimeoutExpired:
            process.kill()


def _outputs(path: Path) -> dict[str, str]:
    """``loadOutputFileProps``: one value of null loses them all."""
    try:
        text = path.read_text().strip()
        found = json.loads(text, parse_constant=_no_constant) if text else {}
        return {key: _java(value) for key, value in found.items()}
    except (ValueError, AttributeError, OSError):
        return {}


def _no_constant(word: str) -> None:
    raise ValueError(word)


def _java(value: Any) -> str:
    if value is None:
        raise ValueError("NullPointerException")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _say(out: Any, job: Job, words: str) -> None:
    stamp = datetime.now().astimezone().strftime("%d-%m-%Y %H:%M:%S %Z")
    out.write(f"{stamp} {job.node.name} {words}\n".encode())
