"""Who decides how a job ends: ``--success chief | all | any | fraction``. Pure questions."""

from __future__ import annotations

from submarine_runtime.coordinator.machine.state import Outcome, Play, Task
from submarine_runtime.protocol.reasons import EndReason

_EPSILON = 1e-9


def after_success(play: Play) -> Outcome | None:
    """The job's outcome now that a task has ended well; None: it goes on."""
    policy, chief = play.config.policy, play.chief
    tracked = _tracked(play)
    good = [task for task in tracked if _well(task)]
    if policy == "chief" and chief.kind == "tracked":
        return chief.outcome if _well(chief) else None
    if policy == "any":
        return good[0].outcome if good else None
    if all(_well(task) or task.failed for task in tracked):
        best = chief if _well(chief) else good[0] if good else None
        return best.outcome if best is not None else None
    return None


def after_failure(play: Play, task: Task, outcome: Outcome) -> Outcome | None:
    """The job's outcome now that ``task`` has failed for good; None: it goes on."""
    policy = play.config.policy
    tracked = _tracked(play)
    if task.kind != "tracked" or policy not in ("any", "fraction"):
        return _because_of(task, outcome)
    failed = sum(other.failed for other in tracked)
    if policy == "any":
        return _because_of(task, outcome) if failed == len(tracked) else after_success(play)
    allowed = play.config.allowed_failures * len(tracked) + _EPSILON
    return _because_of(task, outcome) if failed > allowed else after_success(play)


def _tracked(play: Play) -> list[Task]:
    """Those that count: of a gang that started with fewer, the ones that are in it."""
    tracked = [task for task in play.tasks.values() if task.kind == "tracked"]
    return [task for task in tracked if task.name in play.cast or task.failed] or tracked


def _well(task: Task) -> bool:
    outcome = task.outcome
    return outcome is not None and outcome.reason is EndReason.SUCCEEDED and not task.failed


def _because_of(task: Task, outcome: Outcome) -> Outcome:
    detail = f"{task.name}: {outcome.detail}" if outcome.detail else f"{task.name} failed."
    return Outcome(
        outcome.reason, detail, outcome.exit_code, outcome.signal, failure=outcome.failure
    )
