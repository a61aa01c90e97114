"""Keep the job's record up to date: facts of the state machine and reports of agents."""

from __future__ import annotations

import time
from typing import Any, Mapping

from submarine_runtime.coordinator.job_directory import EarlierAttempts
from submarine_runtime.coordinator.machine import JobState, RecordEvent, Stage, Task
from submarine_runtime.coordinator.record import JobStatus
from submarine_runtime.protocol import (
    CoordinatorConfig,
    EndReason,
    JobRecord,
    State,
    TaskRecord,
    fixed_links,
    resolve_links,
)
from submarine_runtime.record import MAX_MISSING, MAX_WARNINGS, initial_record
from submarine_runtime.translation import _
from submarine_runtime.yarn import localizing_sentence

_STATES = {
    Stage.NONE: State.PENDING,
    Stage.REQUESTED: State.PENDING,
    Stage.PREPARING: State.STARTING,
    Stage.READY: State.STARTING,
    Stage.STARTING: State.STARTING,
    Stage.RUNNING: State.RUNNING,
    Stage.STOPPING: State.FINISHING,
}
#: Fields of a task that are reset when it gets another container.
_NO_CONTAINER: dict[str, Any] = {
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


def new_job_record(config: CoordinatorConfig, job: JobState, earlier: EarlierAttempts) -> JobRecord:
    """Return the record at the start of this attempt of the application."""
    interrupted = earlier.interrupted[:MAX_MISSING]
    warnings = [
        event.detail[:500]
        for event in earlier.events
        if isinstance(event.data, dict) and event.data.get("of") == "restore_point"
    ]
    tasks = []
    for task in job.tasks.values():
        record = TaskRecord(task.name, task.role.name, task.index, epoch=job.epoch)
        old = earlier.tasks.get(task.name) or {}
        record.restarts = int(old.get("restarts") or 0) + bool(old)
        tasks.append(record)
    return initial_record(
        config,
        tasks,
        "coordinator",
        logs=dict(earlier.logs),
        events=list(earlier.events),
        warnings=list(dict.fromkeys(warnings))[:MAX_WARNINGS],
        missing=[
            _("{run} was lost with its master: its log may lack its end.").format(run=run)
            for run in interrupted
        ],
        epoch=job.epoch,
    )


class Reporter:
    """Write the state of the job and the reports of its agents into the record."""

    def __init__(self, job: JobState, status: JobStatus) -> None:
        self._job, self._status = job, status
        config = job.config
        self._settled = fixed_links(config.links, [role.name for role in config.spec.roles])
        self._links = {k: v for k, v in config.links.items() if k not in self._settled}
        self._restarts = {name: status.task_record(name).restarts for name in job.tasks}

    def record_event(self, event: RecordEvent) -> None:
        """Add an event to the job's events."""
        self._status.add_event(
            event.kind, event.detail, event.task, event.state, event.reason, event.data
        )

    def update_task(self, task: Task) -> None:
        """Write the state of one task."""
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
            # The agent has not registered: nothing else is known about this container yet.
            sentence = localizing_sentence(
                [task.placed_on], 0.0, self._job.config.localizes.get(task.role.name, "")
            )
            fields.update(host=task.placed_on.partition(":")[0] or None, detail=sentence)
        elif task.stage in (Stage.STARTING, Stage.RUNNING):
            fields.update(reason=None, detail="")
        self._status.set_task_fields(task.name, **fields)

    def update_all(self) -> None:
        """Write the state of all tasks and of the job."""
        for task in self._job.tasks.values():
            self.update_task(task)
        if self._links:
            members = [task.member for task in self._job.tasks.values() if task.member is not None]
            found = {
                k: v for k, v in resolve_links(self._links, members).items() if v != self._links[k]
            }
            self._status.set_record(links={**self._settled, **found})
        progress = self._status.task_record(self._job.chief.name).progress
        self._status.set_record(epoch=self._job.epoch, progress=progress)

    def _state(self, task: Task) -> State:
        if task.localizing:
            return State.STARTING
        state = _STATES.get(task.stage)
        if state is not None:
            return state
        verdict = self._job.verdict
        if task.outcome is not None and not _ended_with_job(task, self._job):
            return task.outcome.reason.meaning.state
        if verdict is None:
            return State.STARTING if task.stage is Stage.ENDED else State.PENDING
        return State.SUCCEEDED if verdict.outcome.succeeded else State.CANCELLED

    def update_restore_point(self) -> None:
        """Write the gang's newest restore point, and the warnings of all of them."""
        choice = self._job.restore.choice
        if not choice.empty or self._job.epoch > 1:
            self._status.set_record(notes=[*self._job.config.record.notes, choice.sentence()])
        for sentence in self._job.warnings:
            self._status.warn(sentence)

    def add_agent_event(self, name: str, message: Mapping[str, Any]) -> None:
        """Write what an agent reports with an event of the state machine."""
        kind = message.get("type")
        if kind == "register":
            self._registered(name, message)
        elif kind == "state":
            self._program_state(name, message)
        elif kind == "left":
            # The state machine decides what is missing.
            self._status.add_end_report(name, {**message, "missing": []})

    def _registered(self, name: str, message: Mapping[str, Any]) -> None:
        gpus = message.get("gpus")
        container = _text(message.get("container_id"))
        reset = {} if self._status.task_record(name).container_id == container else _NO_CONTAINER
        self._status.set_task_fields(
            name,
            **{
                **reset,
                "detail": "",
                "container_id": container,
                "host": _text(message.get("host")),
                "pid": message.get("pid"),
                "log_url": _text(message.get("log_url")),
                "network": _text(message.get("network")),
                "gpus": [str(gpu)[:100] for gpu in gpus[:64]] if isinstance(gpus, list) else [],
            },
        )

    def _program_state(self, name: str, message: Mapping[str, Any]) -> None:
        state = message.get("state")
        if state == "running":
            started = message.get("started") or time.time()
            self._status.set_task_fields(
                name, pid=message.get("pid"), started=started, finished=None, exit_code=None
            )
            if message.get("network"):
                self._status.set_task_fields(name, network=_text(message.get("network")))
        elif state == "preparing":
            self._status.set_task_fields(name, detail=str(message.get("detail") or "")[:300])
        elif state == "ended":
            self._status.set_task_fields(
                name,
                finished=message.get("finished") or time.time(),
                exit_code=message.get("exit_code"),
                signal=message.get("signal"),
            )
            self._status.add_end_report(name, message)


def _ended_with_job(task: Task, job: JobState) -> bool:
    """Whether a task was stopped because the job ended, so its own outcome does not count."""
    verdict, outcome = job.verdict, task.outcome
    if verdict is None or outcome is None or task.failed or verdict.task == task.name:
        return False
    return task.stop_requested and outcome.reason is not EndReason.SUCCEEDED


def _text(value: Any) -> str | None:
    return str(value)[:300] if value else None
