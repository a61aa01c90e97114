"""What the job's record says of its tasks: taken from the machine and from agents' own words."""

from __future__ import annotations

import os
import time
from typing import Any, Mapping

from submarine_runtime.coordinator.job_directory import Earlier
from submarine_runtime.coordinator.machine import Play, Stage, Task
from submarine_runtime.coordinator.record import JobStatus
from submarine_runtime.protocol.coordinator_config import CoordinatorConfig
from submarine_runtime.protocol.fields import known
from submarine_runtime.protocol.quicklinks import resolved, settled
from submarine_runtime.protocol.reasons import EndReason, meaning_of
from submarine_runtime.protocol.record import JobRecord, Phase, TaskRecord
from submarine_runtime.protocol.states import State
from submarine_runtime.record import MAX_MISSING, MAX_WARNINGS
from submarine_runtime.storage import application_id
from submarine_runtime.yarn import localizing

_WORDS = {
    Stage.NONE: State.PENDING,
    Stage.ASKED: State.PENDING,
    Stage.PREPARING: State.STARTING,
    Stage.READY: State.STARTING,
    Stage.STARTING: State.STARTING,
    Stage.RUNNING: State.RUNNING,
    Stage.STOPPING: State.FINISHING,
}
#: What is no longer true once a task has another container.
_CLEAN: dict[str, Any] = {
    "container_id": None,
    "host": None,
    "pid": None,
    "started": None,
    "finished": None,
    "exit_code": None,
    "signal": None,
    "log_url": None,
    "memory_now": None,
}


def new_job_record(config: CoordinatorConfig, play: Play, before: Earlier) -> JobRecord:
    """The record before anything has happened in this attempt of the application."""
    requested = config.resources.get("requested", config.resources)
    cut = before.cut[:MAX_MISSING]
    told = [
        event.detail[:500]
        for event in before.events
        if isinstance(event.data, dict) and event.data.get("of") == "restore_point"
    ]
    tasks = []
    for task in play.tasks.values():
        made = TaskRecord(task.name, task.orders.name, task.index, epoch=play.epoch)
        old = before.tasks.get(task.name) or {}
        made.restarts = int(old.get("restarts") or 0) + bool(old)
        tasks.append(made)
    return JobRecord(
        job_id=config.job_id,
        name=config.name,
        state=State.PENDING,
        user=config.user,
        backend=config.backend,
        job_dir=config.job_dir,
        queue=config.queue,
        application_id=application_id(os.environ),
        created=config.created,
        workflow=config.workflow,
        workflow_run=config.workflow_run,
        workflow_node=config.workflow_node,
        phases=[Phase(**known(Phase, phase)) for phase in config.phases],
        tasks=tasks,
        resources={"requested": requested, "used": {}},
        notes=list(config.notes),
        links=settled(config.links, [role.name for role in config.roles]),
        logs=dict(before.logs),
        events=list(before.events),
        warnings=list(dict.fromkeys(told))[:MAX_WARNINGS],
        missing=[f"{run} was lost with its master: its log may lack its end." for run in cut],
        written_by="coordinator",
        epoch=play.epoch,
    )


class Reporter:
    """Keeps the record beside the machine."""

    def __init__(self, play: Play, status: JobStatus) -> None:
        self._play, self._status = play, status
        config = play.config
        self._settled = settled(config.links, [role.name for role in config.roles])
        self._links = {k: v for k, v in config.links.items() if k not in self._settled}
        self._restarts = {name: status.task_record(name).restarts for name in play.tasks}

    def sync(self, task: Task) -> None:
        """The machine's own facts of one task."""
        outcome = task.outcome
        fields: dict[str, Any] = {
            "state": self._state(task),
            "restarts": self._restarts[task.name] + task.restarts,
        }
        if task.epoch:
            fields.update(epoch=task.epoch, attempt=max(1, task.attempt))
        if outcome is not None:
            fields.update(reason=outcome.reason, detail=outcome.detail[:1000])
        elif task.localizing:
            # Its agent has not registered: nothing else is known of this container yet.
            words = localizing([task.placed_on], 0.0, task.orders.localizes)
            fields.update(host=task.placed_on.partition(":")[0] or None, detail=words)
        elif task.stage in (Stage.STARTING, Stage.RUNNING):
            fields.update(reason=None, detail="")
        self._status.set_task_of(task.name, **fields)

    def sync_all(self) -> None:
        """The same of all tasks, and of the job."""
        for task in self._play.tasks.values():
            self.sync(task)
        if self._links:
            members = [task.member for task in self._play.tasks.values() if task.member is not None]
            found = {k: v for k, v in resolved(self._links, members).items() if v != self._links[k]}
            self._status.set_record(links={**self._settled, **found})
        progress = self._status.task_record(self._play.chief.name).progress
        self._status.set_record(epoch=self._play.epoch, progress=progress)

    def _state(self, task: Task) -> State:
        if task.localizing:
            return State.STARTING
        word = _WORDS.get(task.stage)
        if word is not None:
            return word
        verdict = self._play.verdict
        if task.outcome is not None and not _ended_with_job(task, self._play):
            return meaning_of(task.outcome.reason).state
        if verdict is None:
            return State.STARTING if task.stage is Stage.ENDED else State.PENDING
        well = verdict.outcome.reason is EndReason.SUCCEEDED
        return State.SUCCEEDED if well else State.CANCELLED

    def hear(self, name: str, message: Mapping[str, Any]) -> None:
        """An agent's words."""
        kind = message.get("type")
        if kind == "register":
            self._registered(name, message)
        elif kind == "state":
            self._stated(name, message)
        elif kind == "left":
            # What it saved on its way out; the machine has its own view of what is missing.
            self._status.absorb_ending(name, {**message, "missing": []})

    def _registered(self, name: str, message: Mapping[str, Any]) -> None:
        gpus = message.get("gpus")
        container = _text(message.get("container_id"))
        clean = {} if self._status.task_record(name).container_id == container else _CLEAN
        self._status.set_task_of(
            name,
            **{
                **clean,
                "detail": "",
                "container_id": container,
                "host": _text(message.get("host")),
                "pid": message.get("pid"),
                "log_url": _text(message.get("log_url")),
                "network": _text(message.get("network")),
                "gpus": [str(gpu)[:100] for gpu in gpus[:64]] if isinstance(gpus, list) else [],
            },
        )

    def _stated(self, name: str, message: Mapping[str, Any]) -> None:
        word = message.get("state")
        if word == "running":
            started = message.get("started") or time.time()
            self._status.set_task_of(
                name, pid=message.get("pid"), started=started, finished=None, exit_code=None
            )
            if message.get("network"):
                self._status.set_task_of(name, network=_text(message.get("network")))
        elif word == "preparing":
            self._status.set_task_of(name, detail=str(message.get("detail") or "")[:300])
        elif word == "ended":
            self._status.set_task_of(
                name,
                finished=message.get("finished") or time.time(),
                exit_code=message.get("exit_code"),
                signal=message.get("signal"),
            )
            self._status.absorb_ending(name, message)


def _ended_with_job(task: Task, play: Play) -> bool:
    """Whether a task was ended because the job was over, so that how it ended means nothing."""
    verdict, outcome = play.verdict, task.outcome
    if verdict is None or outcome is None or task.failed or verdict.task == task.name:
        return False
    return task.stopped and outcome.reason is not EndReason.SUCCEEDED


def _text(value: Any) -> str | None:
    return str(value)[:300] if value else None
