"""State machine of a distributed job: events in, actions out; no clock, thread or socket."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.coordinator.machine.actions import (
        Action as Action,
        Ask as Ask,
        End as End,
        Note as Note,
        Release as Release,
        Send as Send,
        Start as Start,
        Survey as Survey,
    )
    from submarine_runtime.coordinator.machine.gang import waiting_sentence as waiting_sentence
    from submarine_runtime.coordinator.machine.losses import silent as silent
    from submarine_runtime.coordinator.machine.restore_point import (
        FINAL as FINAL,
        FIRST_ROUND as FIRST_ROUND,
        PATH as PATH,
        SNAPSHOT as SNAPSHOT,
        Choice as Choice,
        Part as Part,
        Question as Question,
        Snapshot as Snapshot,
        choose as choose,
    )
    from submarine_runtime.coordinator.machine.restore_state import question as question
    from submarine_runtime.coordinator.machine.state import (
        ACTIVE as ACTIVE,
        ATTENDED as ATTENDED,
        Act as Act,
        Outcome as Outcome,
        Play as Play,
        Stage as Stage,
        Task as Task,
        new_play as new_play,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "actions": ("Action", "Ask", "End", "Note", "Release", "Send", "Start", "Survey"),
            "gang": ("waiting_sentence",),
            "losses": ("silent",),
            "restore_point": (
                "Choice",
                "FINAL",
                "FIRST_ROUND",
                "PATH",
                "Part",
                "Question",
                "SNAPSHOT",
                "Snapshot",
                "choose",
            ),
            "restore_state": ("question",),
            "state": ("ACTIVE", "ATTENDED", "Act", "Outcome", "Play", "Stage", "Task", "new_play"),
        },
    )
