"""Determine why a program ended, or why it could not be started."""

from __future__ import annotations

import errno
import re
import resource
import signal
from dataclasses import dataclass

from submarine_runtime.agent.program.process import Program
from submarine_runtime.protocol import AgentConfig, EndReason, Failure, cancel_sentence

# Imported before it is needed: YARN deletes the archive of this code when it sends SIGTERM.
from submarine_runtime.record import memory_sentence
from submarine_runtime.translation import _

#: An unexplained SIGKILL counts as the kernel's if this share of the memory was in use.
NEAR_LIMIT = 0.9
#: Values of ``ProgramFacts.kind`` for a program that ended with an exception.
_EXCEPTIONS = frozenset({"error", "import", "disk_full"})
#: In the error of a Spark job whose executors YARN has ended.
_EXECUTOR_MEMORY = re.compile(
    r"for exceeding (?:physical )?memory limits\. (.{1,20}) of (.{1,20}) physical"
)
#: In the error of a PyTorch DataLoader whose worker got SIGBUS, or in the cause of that error.
_BUS_ERROR = re.compile(r"killed by signal: Bus error|[Uu]nable to allocate shared memory|\(shm\)")
_WORKER_BUS_ERROR = re.compile(r"DataLoader worker \(pid \d+\) is killed by signal: Bus error")
_LAUNCHER_EXITS = frozenset({126, 127})


@dataclass
class ProgramFacts:
    """What the agent knows of a program that has ended.

    Parameters
    ----------
    status
        Exit status as subprocess returns it; negative for a signal.
    stopped
        Why the agent ended it, if it did.
    started
        Whether the user's own code began; None for a shell command, for which this is unknown.
    peak, limit
        MiB.
    kind
        The launcher's word for the exception: ``error memory import disk_full exit``; empty: the
        launcher reported none.
    kernel_kills
        Processes of the agent's control group that the kernel killed for memory during the run.
    disk_full
        Whether the node's disk is full now.
    port_taken
        The line of stderr that says that a port was taken; empty: none.
    """

    status: int
    shell: bool = False
    stopped: EndReason | None = None
    stopped_detail: str = ""
    started: bool | None = None
    failure: Failure | None = None
    kind: str = ""
    peak: float = 0.0
    limit: float | None = None
    kernel_kills: int = 0
    disk_full: bool = False
    port_taken: str = ""
    last_line: str = ""


@dataclass
class Ending:
    """How a program ended.

    Parameters
    ----------
    unrestored
        The program was not started, because the snapshot of this task that the coordinator chose is
        damaged.
    failed
        When its first process failed, in seconds since the epoch; None if it did not.
    """

    reason: EndReason
    detail: str = ""
    exit_code: int | None = None
    signal: int | None = None
    failure: Failure | None = None
    unrestored: str = ""
    failed: float | None = None


def determine_ending(facts: ProgramFacts) -> Ending:
    """Return the end reason and its sentence."""
    number = -facts.status if facts.status < 0 else None
    if facts.shell and 128 < facts.status <= 128 + 64:
        number = facts.status - 128  # bash reports the signal of its child in this way.
    code = facts.status if facts.status >= 0 else None
    reason, detail = _reason(facts, number)
    failure = None if reason is EndReason.SUCCEEDED else facts.failure
    return Ending(reason, detail, code, number, failure)


def _reason(facts: ProgramFacts, number: int | None) -> tuple[EndReason, str]:
    if facts.stopped is not None:
        return facts.stopped, facts.stopped_detail
    if facts.status == 0:
        return EndReason.SUCCEEDED, ""
    if facts.kind == "memory" or _memory_error(facts):
        return EndReason.OUT_OF_MEMORY, _("MemoryError; the peak was {peak:.0f} MiB.").format(
            peak=facts.peak
        )
    if number == signal.SIGKILL and _killed_for_memory(facts):
        limit = _(" of {limit:.0f}").format(limit=facts.limit) if facts.limit else ""
        return (
            EndReason.OUT_OF_MEMORY,
            _("The kernel killed the program when it used {peak:.0f}{limit} MiB.").format(
                peak=facts.peak, limit=limit
            ),
        )
    if facts.port_taken and number in (None, signal.SIGABRT, signal.SIGSEGV):
        return EndReason.ADDRESS_IN_USE, facts.port_taken
    # Libraries may abort a process that is ending with an exception.
    raised = number == signal.SIGABRT and facts.kind in _EXCEPTIONS
    if number == signal.SIGBUS and not raised:
        return EndReason.KILLED_BY_SIGNAL, _shared_memory_sentence(signal_name(number))
    if number is not None and not raised:
        detail = _("Signal {number} ({number_signal_name}).").format(
            number=number, number_signal_name=signal_name(number)
        )
        # The message of a library that aborted the program, such as NCCL's watchdog.
        told = number == signal.SIGABRT and facts.failure and not facts.failure.frames
        return EndReason.KILLED_BY_SIGNAL, f"{detail} {_sentence(facts)}" if told else detail
    if facts.kind == "disk_full" or (facts.disk_full and not facts.kind):
        return EndReason.DISK_FULL, _sentence(facts)
    if facts.started is False or (facts.shell and facts.status in _LAUNCHER_EXITS):
        return EndReason.LAUNCH_FAILED, facts.last_line or _("Exit code {status}.").format(
            status=facts.status
        )
    lost = facts.failure and _EXECUTOR_MEMORY.search(facts.failure.message)
    if lost:
        return EndReason.OUT_OF_MEMORY, _(
            "An executor used {used} of {limit}; ask for more with --executor_resources or "
            "--conf spark.executor.memoryOverhead."
        ).format(used=lost[1], limit=lost[2])
    if facts.kind == "import" or _import_error(facts):
        return EndReason.IMPORT_ERROR, _sentence(facts)
    if facts.failure and _BUS_ERROR.search(facts.failure.message):
        return EndReason.PROGRAM_ERROR, _shared_memory_sentence(_sentence(facts))
    cause = facts.failure and _WORKER_BUS_ERROR.search(facts.failure.text)
    if cause:
        return EndReason.PROGRAM_ERROR, _shared_memory_sentence(cause.group())
    return EndReason.PROGRAM_ERROR, _sentence(facts)


def _shared_memory_sentence(what: str) -> str:
    return _(
        "{what}: the shared memory in /dev/shm was probably full; use fewer or smaller batches in "
        "worker processes, or a larger /dev/shm in the containers (docker_mounts)."
    ).format(what=what.rstrip("."))


def _sentence(facts: ProgramFacts) -> str:
    failure = facts.failure
    if failure is None or facts.kind == "exit":
        tail = f": {facts.last_line}" if facts.last_line else "."
        return _("Exit code {status}{tail}").format(status=facts.status, tail=tail)
    return f"{failure.type}: {failure.message}" if failure.message else failure.type


def _killed_for_memory(facts: ProgramFacts) -> bool:
    near = facts.limit is not None and facts.peak >= NEAR_LIMIT * facts.limit
    return near or facts.kernel_kills > 0


def _memory_error(facts: ProgramFacts) -> bool:
    return not facts.kind and facts.failure is not None and facts.failure.type == "MemoryError"


def _import_error(facts: ProgramFacts) -> bool:
    names = ("ImportError", "ModuleNotFoundError")
    return not facts.kind and facts.failure is not None and facts.failure.type in names


def signal_name(number: int) -> str:
    """Return ``SIGSEGV`` for 11."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def system_ending(exc: OSError) -> Ending:
    """Return the ending of a task that failed with an error of the operating system."""
    reason = EndReason.LAUNCH_FAILED
    if exc.errno in (errno.ENOSPC, errno.EDQUOT):
        reason = EndReason.DISK_FULL
    return Ending(reason, f"{exc.strerror}: {exc.filename}.")


def memory_ending(program: Program, config: AgentConfig) -> Ending | None:
    """Return an out-of-memory ending if the program uses, or has just used, more than its limit.

    YARN checks a container's memory too, and may be first if much is allocated at once; the agent
    then receives only SIGTERM. A program that the same signal has ended is measured by the kernel's
    counter for children.
    """
    if not config.size.memory:
        return None
    code = program.poll()
    if code is None:
        used = program.tree.recent_peak()
    elif code in (-signal.SIGTERM, -signal.SIGKILL) and not program.sent(-code):
        used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    else:
        return None
    if used <= config.size.memory + config.memory_slack:
        return None
    return Ending(
        EndReason.OUT_OF_MEMORY,
        _("{memory_sentence} Its container was ended.").format(
            memory_sentence=memory_sentence(used, config.size.memory)
        ),
    )


def requested_ending(request: dict[str, str]) -> Ending:
    """Return the ending for a request; see ``Cancellation.request``."""
    if request.get("reason"):
        return Ending(EndReason(request["reason"]), request.get("why") or "")
    return Ending(EndReason.CANCELLED, cancel_sentence(request))
