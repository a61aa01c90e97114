from .choice import (
    UNION as UNION,
    Progress as Progress,
    RestorePoint as RestorePoint,
    RestoreQuery as RestoreQuery,
    choose_restore_point as choose_restore_point,
    progress as progress,
)
from .contents import (
    EACH as EACH,
    FINAL as FINAL,
    FIRST_ROUND as FIRST_ROUND,
    PATH as PATH,
    SNAPSHOT as SNAPSHOT,
    Snapshot as Snapshot,
    StepNames as StepNames,
    TaskRestore as TaskRestore,
)
from .survey import (
    delete_superfluous_snapshots as delete_superfluous_snapshots,
    find_restore_point as find_restore_point,
    order_of_single_task as order_of_single_task,
)
