from .actions import (
    Action as Action,
    ChooseRestorePoint as ChooseRestorePoint,
    FinishJob as FinishJob,
    RecordEvent as RecordEvent,
    ReleaseContainer as ReleaseContainer,
    RequestContainer as RequestContainer,
    SendMessage as SendMessage,
    StartTask as StartTask,
    TakeStacks as TakeStacks,
)
from .gang import waiting_sentence as waiting_sentence
from .losses import lost_agent_events as lost_agent_events
from .restore_state import restore_query as restore_query
from .stalls import (
    idle_reported as idle_reported,
    schedule_check as schedule_check,
    stacks_taken as stacks_taken,
    take_stacks_if_due as take_stacks_if_due,
)
from .state import (
    ACTIVE as ACTIVE,
    MONITORED as MONITORED,
    JobPhase as JobPhase,
    JobState as JobState,
    Outcome as Outcome,
    Stage as Stage,
    Task as Task,
    new_job_state as new_job_state,
)
from .state_machine import handle as handle, record_heartbeat as record_heartbeat
