"""Monitor a started program and determine why it ended; for every kind of job."""

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
    """Monitor the program until it and its processes have ended; return the ending.

    Parameters
    ----------
    asked
        Returns a request to end the program, or None; called after every event.
    samples
        Log of the measurements.
    port_words
        Texts in stderr that mean a taken port; empty: not searched.
    meeting
        Detects whether the program uses its rendezvous port.
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
    # Children of a program that was told to end may need a little longer than the program.
    if left and watch.stopped is None:
        what = "a process" if left == 1 else f"{left} processes"
        status.event("warning", f"The agent ended {what} that the program had left behind.")
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
