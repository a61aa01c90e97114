"""State machine of a distributed job: events in, actions out; no clock, thread or socket."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.coordinator.machine.actions import (
        Action as Action,
        ChooseRestorePoint as ChooseRestorePoint,
        FinishJob as FinishJob,
        RecordEvent as RecordEvent,
        ReleaseContainer as ReleaseContainer,
        RequestContainer as RequestContainer,
        SendMessage as SendMessage,
        StartTask as StartTask,
    )
    from submarine_runtime.coordinator.machine.gang import waiting_sentence as waiting_sentence
    from submarine_runtime.coordinator.machine.losses import lost_agent_events as lost_agent_events
    from submarine_runtime.coordinator.machine.restore_point import (
        FINAL as FINAL,
        FIRST_ROUND as FIRST_ROUND,
        PATH as PATH,
        SNAPSHOT as SNAPSHOT,
        RestorePoint as RestorePoint,
        RestoreQuery as RestoreQuery,
        Snapshot as Snapshot,
        TaskRestore as TaskRestore,
        choose_restore_point as choose_restore_point,
    )
    from submarine_runtime.coordinator.machine.restore_state import restore_query as restore_query
    from submarine_runtime.coordinator.machine.state import (
        ACTIVE as ACTIVE,
        MONITORED as MONITORED,
        JobPhase as JobPhase,
        JobState as JobState,
        Outcome as Outcome,
        Stage as Stage,
        Task as Task,
        new_job_state as new_job_state,
    )
    from submarine_runtime.coordinator.machine.state_machine import (
        handle as handle,
        record_heartbeat as record_heartbeat,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "actions": (
                "Action",
                "ChooseRestorePoint",
                "FinishJob",
                "RecordEvent",
                "ReleaseContainer",
                "RequestContainer",
                "SendMessage",
                "StartTask",
            ),
            "gang": ("waiting_sentence",),
            "losses": ("lost_agent_events",),
            "restore_point": (
                "FINAL",
                "FIRST_ROUND",
                "PATH",
                "RestorePoint",
                "RestoreQuery",
                "SNAPSHOT",
                "Snapshot",
                "TaskRestore",
                "choose_restore_point",
            ),
            "restore_state": ("restore_query",),
            "state": (
                "ACTIVE",
                "JobPhase",
                "JobState",
                "MONITORED",
                "Outcome",
                "Stage",
                "Task",
                "new_job_state",
            ),
            "state_machine": (
                "handle",
                "record_heartbeat",
            ),
        },
    )
