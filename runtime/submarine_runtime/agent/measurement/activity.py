"""Detect that a process of the program shows no activity, or that the task's GPUs are idle.

Activity is a longer log, new progress or scalars, use of the CPU by the process and its children,
or use of its GPU. Log and progress count for all processes of the container.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Callable, Mapping, Sequence

from submarine_runtime.processes import Process
from submarine_runtime.protocol import IdleLimit

#: Seconds over which the CPU use of a process is measured, and the share of a core that is use:
#: threads that wait for an event with a timeout need less. On a node without a free CPU a process
#: that computes gets less too, but is runnable in most samples.
WINDOW = 5.0
CPU_SHARE = 0.02
#: A GPU is idle below this percentage; as for the advice at the end of a job.
IDLE_PERCENT = 5.0
#: Reports: what is idle (``PROGRAM``, ``GPUS``), and since how many seconds; 0: not any more.
PROGRAM, GPUS = "program", "gpus"


@dataclass
class _Process:
    """Measurements of one process: of the window, and the time of its last activity."""

    active: float
    began: float
    cpu: float
    samples: int = 0
    runnable: int = 0


@dataclass
class Activity:
    """The activity of one program.

    Parameters
    ----------
    stall, idle_gpu
        The limits.
    report
        Called when a limit is exceeded, and when there is activity again.
    ranks
        Returns number -> process id of the processes that train, from the ids of the program's
        processes; empty: the program is one process.
    """

    stall: IdleLimit
    idle_gpu: IdleLimit
    report: Callable[[str, float], None]
    ranks: Callable[[Sequence[int]], Mapping[int, int]]
    _processes: dict[int, _Process] = field(default_factory=dict)
    _shared: object = None
    _gpus_active: float | None = None
    _reported: set[str] = field(default_factory=set)

    def update(
        self,
        root: int,
        members: Mapping[int, Process],
        shared: object,
        gpus: Sequence[float | None],
    ) -> None:
        """Note a measurement.

        Parameters
        ----------
        root, members
            Process id of the program, and its processes.
        shared
            Lengths of logs, progress and scalars: any change is activity.
        gpus
            Percentage of each device; None: not known.
        """
        now = time.monotonic()
        changed, self._shared = shared != self._shared, shared
        ranks = self.ranks(list(members)) or {0: root}
        self._processes = {key: one for key, one in self._processes.items() if key in ranks}
        for number, pid in ranks.items():
            own = gpus[number : number + 1] if len(gpus) == len(ranks) else gpus
            used = any(percent for percent in own if percent is not None)
            # A process of the session may have another parent than the program.
            own_tree = list(members.values()) if pid == root else _tree(pid, members)
            self._note(number, own_tree, changed or used, now)
        busy = any(percent is None or percent >= IDLE_PERCENT for percent in gpus)
        if busy or not gpus or self._gpus_active is None:
            self._gpus_active = now
        self._check(PROGRAM, max(self.quiet().values()), self.stall.seconds)
        self._check(GPUS, now - self._gpus_active, self.idle_gpu.seconds)

    def quiet(self) -> dict[int, float]:
        """Return number of each process -> seconds without activity."""
        now = time.monotonic()
        return {number: now - one.active for number, one in list(self._processes.items())}

    def _note(self, number: int, tree: Sequence[Process], active: bool, now: float) -> None:
        cpu = sum(process.cpu for process in tree)
        one = self._processes.get(number)
        if one is None:
            self._processes[number] = _Process(now, now, cpu)
            return
        one.samples += 1
        one.runnable += any(process.runnable for process in tree)
        child_ended = cpu < one.cpu  # And was not waited for.
        if now - one.began >= WINDOW or child_ended:
            used = cpu - one.cpu >= CPU_SHARE * (now - one.began)
            active = active or used or one.runnable * 2 > max(2, one.samples)
            one.began, one.cpu, one.samples, one.runnable = now, cpu, 0, 0
        if active:
            one.active = now

    def _check(self, what: str, seconds: float, limit: float) -> None:
        idle = bool(limit) and seconds >= limit
        if idle and what not in self._reported:
            self._reported.add(what)
            self.report(what, round(seconds, 1))
        elif not idle and what in self._reported:
            self._reported.discard(what)
            self.report(what, 0.0)


def _tree(root: int, members: Mapping[int, Process]) -> list[Process]:
    """Return a process and its descendants."""
    children: dict[int, list[int]] = {}
    for pid, process in members.items():
        children.setdefault(process.parent, []).append(pid)
    found: dict[int, Process] = {}
    pending = [root]
    while pending:
        pid = pending.pop()
        if pid in members and pid not in found:
            found[pid] = members[pid]
            pending += children.get(pid, ())
    return list(found.values())
