"""Azkaban's web server, as strict as its documents and source: what each call does.

After ``LoginAbstractAzkabanServlet``, ``ProjectManagerServlet``, ``ExecutorServlet`` and
``ScheduleServlet``. What a client did that no document says is noted by ``handler`` in
``violations``; faults are put before a call by ``Azkaban.fault``.
"""

from __future__ import annotations

import html
import json
import re
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.azkaban.executor import Execution
from tests.azkaban.handler import OVERRIDE, Handler
from tests.azkaban.project import BadProjectError, Flow, load_project, unzip
from tests.azkaban.replies import JETTY, Reply, info, made, ms, whole_characters

PROJECT_NAME = re.compile(r"[a-zA-Z][a-zA-Z_0-9|-]*")
MAX_NAME = 64


@dataclass
class Project:
    """A project and its last version."""

    id: int
    name: str
    version: int = 0
    flows: dict[str, Flow] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    readable: bool = True
    writable: bool = True
    locked: bool = False


@dataclass
class Schedule:
    """A cron schedule."""

    id: int
    project: Project
    flow: str
    cron: str
    fields: dict[str, str]


Fault = Callable[["Azkaban"], Reply | None]


class Azkaban:
    """The server's state; ``running`` starts one.

    Attributes
    ----------
    requests
        ``METHOD path name`` of each call, in order.
    raw
        Address and body of each, for tests that look for secrets.
    """

    def __init__(self, folder: Path, kill_seconds: float = 30.0) -> None:
        self.folder, self.kill_seconds = folder, kill_seconds
        self.users = {"alice": "correct horse"}
        self.sessions: dict[str, str] = {}
        self.projects: dict[str, Project] = {}
        self.executions: dict[int, Execution] = {}
        self.owners: dict[int, Project] = {}
        self.schedules: dict[int, Schedule] = {}
        self.requests: list[str] = []
        self.raw: list[tuple[str, bytes]] = []
        self.violations: list[str] = []
        self.url = ""
        self._faults: dict[str, list[Fault]] = {}
        self._ids = iter(range(1, 1_000_000))
        self.lock = threading.RLock()

    def fault(self, name: str, *faults: Fault | Reply) -> None:
        """The next calls of ``name`` meet these, one each, before anything else is done."""
        made = [(lambda _, it=one: it) if isinstance(one, Reply) else one for one in faults]
        self._faults.setdefault(name, []).extend(made)

    def project(self, name: str) -> Project | None:
        """A project by its name, in letters of either size."""
        return {known.lower(): one for known, one in self.projects.items()}.get(name.lower())

    def take_fault(self, name: str) -> Reply | None:
        with self.lock:
            waiting = self._faults.get(name)
            fault = waiting.pop(0) if waiting else None
        return fault(self) if fault is not None else None

    def stop(self) -> None:
        for execution in self.executions.values():
            if not execution.over:
                execution.kill()
        for execution in self.executions.values():
            assert execution.wait(60)

    # What each call does -----------------------------------------------------------------

    def login(self, given: dict[str, Any], _user: str) -> Reply:
        if self.users.get(given["username"]) != given["password"]:
            return Reply({"error": "Incorrect Login. Username/Password not found."})
        session = secrets.token_hex(8)
        self.sessions[session] = given["username"]
        cookie = f"azkaban.browser.session.id={session};Path=/"
        return Reply({"status": "success", "session.id": session}, headers={"Set-Cookie": cookie})

    def create(self, given: dict[str, Any], _user: str) -> Reply:
        name, words = given["name"].strip(), given["description"].strip()
        if not words:
            return made({"status": "error", "message": "Description cannot be empty."})
        if not PROJECT_NAME.fullmatch(name):
            message = (
                "Project names must start with a letter, followed by any number of letters, "
                "digits, '-' or '_'."
            )
            return made({"status": "error", "message": message})
        if self.project(name) is not None:
            return made({"status": "error", "message": "Project already exists."})
        if len(name) > MAX_NAME:
            message = f"Insert project{name} for existing project failed. "
            return made({"status": "error", "message": message})
        self.projects[name] = Project(next(self._ids), name)
        path = f"manager?project={name}"
        return made({"status": "success", "path": path, "action": "redirect"})

    def upload(self, given: dict[str, Any], _user: str) -> Reply:
        name, (filename, kind, packed) = given["project"], given["file"]
        project = self.project(name)
        if project is None:
            error = f"Installation Failed. Project '{name} doesn't exist."
            return Reply({"error": error}, 410)
        if not project.writable:
            error = "Installation Failed. User 'alice' does not have write access."
            return Reply({"error": error}, 400)
        if project.locked:
            return Reply({"error": "Installation Failed. Project has UPLOAD LOCK on. \n"}, 403)
        if not filename.lower().endswith(".zip"):
            return Reply({"error": "File extension 'tar' unrecognized."}, 400)
        if kind not in ("application/zip", "application/x-zip-compressed"):
            return Reply({"error": f"Content type '{kind}' does not match extension 'zip'"}, 400)
        found = {"projectId": str(project.id)}
        try:
            flows, files = load_project(packed), unzip(packed)
        except BadProjectError as exc:
            error = f"Validator Directory Flow reports errors:<br><br>{exc}<br>"
            return Reply({**found, "error": error, "version": str(project.version)}, 500)
        project.flows, project.files, project.version = flows, files, project.version + 1
        for schedule in [one for one in self.schedules.values() if one.project is project]:
            if schedule.flow not in flows:
                del self.schedules[schedule.id]
        return Reply({**found, "version": str(project.version)})

    def fetchprojectflows(self, given: dict[str, Any], _user: str) -> Reply:
        found = {"project": given["project"]}
        project = self.project(given["project"])
        if project is None:
            return Reply({**found, "error": f"Project {given['project']} doesn't exist."})
        found |= {"projectId": project.id}
        if not project.readable:
            return Reply({**found, "error": "Permission denied. Need READ access."})
        return Reply({**found, "flows": [{"flowId": name} for name in project.flows]})

    def fetchFlowExecutions(self, given: dict[str, Any], _user: str) -> Reply:
        project = self.project(given["project"])
        if project is None:
            error = f"Project {given['project']} doesn't exist."
            return Reply({"project": given["project"], "error": error})
        mine = [
            one
            for execid, one in sorted(self.executions.items(), reverse=True)
            if self.owners[execid] is project and one.flow.name == given["flow"]
        ]
        start, length = int(given["start"]), int(given["length"])
        listed = [
            {
                "execId": one.execid, "flowId": one.flow.name, "projectId": project.id,
                "status": one.root.status, "submitTime": ms(one.submitted),
                "startTime": ms(one.root.start), "endTime": ms(one.root.end),
                "submitUser": one.user,
            }
            for one in mine[start : start + length]
        ]  # fmt: skip
        found = {"project": project.name, "projectId": project.id, "flow": given["flow"]}
        return Reply(
            {**found, "total": len(mine), "from": start, "length": length, "executions": listed}
        )

    def executeFlow(self, given: dict[str, Any], user: str) -> Reply:
        found: dict[str, Any] = {"project": given["project"]}
        project = self.project(given["project"])
        if project is None:
            return Reply({**found, "error": f"Project '{given['project']}' doesn't exist."})
        found["flow"] = given["flow"]
        flow = project.flows.get(given["flow"])
        if flow is None:
            error = f"Flow '{given['flow']}' cannot be found in project {project.name}"
            return Reply({**found, "error": error})
        concurrent = given.get("concurrentOption", "skip")
        if concurrent == "pipeline" and "pipelineLevel" not in given:
            error = "Error parsing flow options: Missing required parameter 'pipelineLevel'."
            return Reply({**found, "error": error})
        active = self._active(project, flow.name)
        message = ""
        if active and concurrent == "skip":
            error = (
                f"Error submitting flow {flow.name}. Flow {flow.name} is already running. "
                "Skipping execution."
            )
            return Reply({**found, "error": error, "execid": -1})
        if active:
            ids = ",".join(str(one) for one in active)
            message = f"Flow {flow.name} is already running with exec id {ids}. "
            if concurrent == "pipeline":
                message += f"Pipelining level {given['pipelineLevel']}. \n"
            else:
                message += "Will execute concurrently. \n"
        execid = next(self._ids) + 1000
        folder = self.folder / "executions" / str(execid)
        folder.mkdir(parents=True)
        overrides = {
            key[len("flowOverride[") : -1]: value
            for key, value in given.items()
            if OVERRIDE.fullmatch(key)
        }
        self.owners[execid] = project
        self.executions[execid] = Execution(
            execid, project.name, flow, project.files, folder, user,
            overrides=overrides,
            failure_action=_failure_action(given, flow),
            disabled=tuple(json.loads(given.get("disabled") or "[]")),
            kill_seconds=self.kill_seconds,
        )  # fmt: skip
        message += f"Execution queued successfully with exec id {execid}"
        return Reply({**found, "message": message, "execid": execid})

    def getRunning(self, given: dict[str, Any], _user: str) -> Reply:
        project = self.project(given["project"])
        if project is None:
            return Reply({"error": "Project 'null' not found."})
        active = self._active(project, given["flow"])
        return Reply({"execIds": active} if active else {})

    def fetchexecflow(self, given: dict[str, Any], _user: str) -> Reply:
        execution = self.executions.get(int(given["execid"]))
        if execution is None:
            return Reply({"error": f"Cannot find execution '{given['execid']}'"})
        project = self.owners[execution.execid]
        return Reply(
            {
                "submitTime": ms(execution.submitted), "submitUser": execution.user,
                "execid": execution.execid, "projectId": project.id, "project": project.name,
                **info(execution.root, execution.flow.name),
            }
        )  # fmt: skip

    def fetchExecJobLogs(self, given: dict[str, Any], _user: str) -> Reply:
        execution = self.executions.get(int(given["execid"]))
        if execution is None:
            return Reply({"error": f"Cannot find execution '{given['execid']}'"})
        job = execution.find(given["jobId"])
        if job is None:
            error = f"Job {given['jobId']} doesn't exist in {execution.execid}"
            return Reply({"error": error})
        attempt = int(given.get("attempt", job.attempt))
        offset, length = int(given["offset"]), int(given["length"])
        if attempt >= len(job.logs) and execution.over:
            return Reply({"data": "", "offset": offset, "length": 0})  # the database has none
        if attempt >= len(job.logs):
            return Reply(JETTY.format(500), 500, "text/html")  # the executor has no such file
        data = job.logs[attempt].read_bytes()[offset : offset + length]
        begin, end = whole_characters(data)
        # escapeHtml writes everything beyond ASCII as an entity too.
        text = html.escape(data[begin:end].decode("utf-8", "replace"), quote=True)
        text = "".join(char if ord(char) < 128 else f"&#{ord(char)};" for char in text)
        return Reply({"data": text, "offset": offset + begin, "length": end - begin})

    def cancelFlow(self, given: dict[str, Any], _user: str) -> Reply:
        execution = self.executions.get(int(given["execid"]))
        if execution is None:
            return Reply({"error": f"Cannot find execution '{given['execid']}'"})
        if execution.over:
            error = f"Execution {execution.execid} of flow {execution.flow.name} isn't running."
            return Reply({"error": error})
        execution.kill()
        return Reply({})

    def scheduleCronFlow(self, given: dict[str, Any], _user: str) -> Reply:
        name, flow = given["projectName"], given["flow"]
        project = self.project(name)
        if project is None:
            return Reply({"status": "error", "message": f"Project {name} does not exist"})
        if flow not in project.flows:
            message = f"Flow {flow} cannot be found in project {name}"
            return Reply({"status": "error", "message": message})
        cron = given["cronExpression"]
        fields = cron.split()
        past = len(fields) == 7 and fields[6].isdigit() and int(fields[6]) < 2026
        if len(fields) not in (6, 7) or (fields[3] == "?") == (fields[5] == "?") or past:
            # As it is: an error without a status.
            error = f"This expression <{cron}> can not be parsed to quartz cron."
            return Reply({"error": error})
        for known in self.schedules.values():
            if known.project is project and known.flow == flow:
                known.cron, known.fields = cron, given
                return self._scheduled(known)
        made = Schedule(next(self._ids), project, flow, cron, given)
        self.schedules[made.id] = made
        return self._scheduled(made)

    def _scheduled(self, schedule: Schedule) -> Reply:
        message = f"{schedule.project.name}.{schedule.flow} scheduled."
        return Reply({"status": "success", "scheduleId": schedule.id, "message": message})

    def fetchSchedule(self, given: dict[str, Any], _user: str) -> Reply:
        for one in self.schedules.values():
            if str(one.project.id) == given["projectId"] and one.flow == given["flowId"]:
                found = {
                    "cronExpression": one.cron, "nextExecTime": _next(one.cron),
                    "period": "null", "submitUser": "alice", "executionOptions": {},
                    "backExecuteOnce": False,
                    "scheduleId": str(one.id), "firstSchedTime": "2026-11-22 10:00:00",
                }  # fmt: skip
                return Reply({"schedule": found})
        return Reply({})

    def removeSched(self, given: dict[str, Any], _user: str) -> Reply:
        schedule = self.schedules.pop(int(given["scheduleId"]), None)
        if schedule is None:
            message = f"Schedule with ID {given['scheduleId']} does not exist"
            return Reply({"message": message, "status": "error"})
        message = f"flow {schedule.flow} removed from Schedules."
        return Reply({"message": message, "status": "success"})

    def _active(self, project: Project, flow: str) -> list[int]:
        return [
            execid
            for execid, one in self.executions.items()
            if self.owners[execid] is project and one.flow.name == flow and not one.over
        ]


def _failure_action(given: dict[str, Any], flow: Flow) -> str:
    """A flow's own word counts unless the request says that it goes over it."""
    own = flow.config.get("failure.action")
    over = given.get("failureActionOverride") == "true"
    return own if own and not over else given.get("failureAction", "finishCurrent")


def _next(cron: str) -> str:
    """When a schedule of one time a day comes next, as Azkaban writes it."""
    second, minute, hour = (field.zfill(2) for field in cron.split()[:3])
    return f"2026-11-23 {hour}:{minute}:{second}"


@contextmanager
def running(folder: Path, kill_seconds: float = 30.0) -> Iterator[Azkaban]:
    """A server on loopback. At the end no process of it runs and no request broke its rules."""
    azkaban = Azkaban(folder, kill_seconds)
    handler = type("Handler", (Handler,), {"azkaban": azkaban})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    azkaban.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield azkaban
    finally:
        azkaban.stop()
        server.shutdown()
        server.server_close()
        thread.join()
    assert azkaban.violations == []
