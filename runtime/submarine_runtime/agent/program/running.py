"""From a started program to the judgement of its end; the same for every kind of job.

Measuring and ending it is ``watching``, judging is ``ending``.
"""

from __future__ import annotations

from typing import Callable, Mapping

from submarine_runtime.agent.measurement import SampleLog
from submarine_runtime.agent.program.ending import Ending, judge
from submarine_runtime.agent.program.monitor import Watch
from submarine_runtime.agent.program.process import Program
from submarine_runtime.agent.program.wakeup import Wakeup
from submarine_runtime.network import PortUse
from submarine_runtime.processes import kernel_memory_kills
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.agent_config import AgentConfig
from submarine_runtime.record import Status
from submarine_runtime.storage import Scratch


def watch_to_end(
    config: AgentConfig,
    program: Program,
    status: Status,
    wakeup: Wakeup,
    scratch: Scratch,
    logs: Mapping[str, str],
    asked: Callable[[], dict[str, str] | None],
    samples: SampleLog | None = None,
    port_words: tuple[str, ...] = (),
    meeting: PortUse | None = None,
) -> Ending:
    """Watch the program until it has ended, and nothing of it is left; how it ended.

    Parameters
    ----------
    asked
        Who asked to end it and why, or None; called whenever something has happened.
    samples
        Where measurements are noted.
    port_words
        What stderr says when a port is taken; empty: do not look for it.
    meeting
        Notices whether the program uses its rendezvous port.
    """
    kills = kernel_memory_kills()
    watch = Watch(
        config,
        program,
        status,
        wakeup,
        tuple(logs.values()),
        asked,
        samples,
        scratch.outputs[layout.TENSORBOARD],
        meeting,
    )
    code = watch.until_end()
    left = program.end_stragglers(watch.tree.known)
    program.release()
    # Of a program that was told to end, the children may need a moment longer than it.
    if left and watch.stopped is None:
        what = "a process" if left == 1 else f"{left} processes"
        status.event("warning", f"The program left {what} behind; ended.")
    status.use(memory_peak=round(watch.tree.peak, 1), cpu_seconds=round(watch.tree.cpu_seconds, 1))
    from submarine_runtime.agent.program.evidence import gather

    facts = gather(
        scratch,
        logs["stderr"],
        code,
        shell=config.command is not None,
        watch=watch,
        port_words=port_words,
    )
    facts.kernel_kills = kernel_memory_kills() - kills
    ending = judge(facts)
    status.set_record(hints=watch.hints(ending))
    return ending
