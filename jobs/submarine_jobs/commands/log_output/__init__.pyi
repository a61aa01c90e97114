from .pieces import followed as followed, kept as kept, shown as shown, start_of as start_of
from .tasks import (
    chosen_attempt as chosen_attempt,
    chosen_tasks as chosen_tasks,
    complete_tasks as complete_tasks,
    others as others,
    unsaved as unsaved,
)
