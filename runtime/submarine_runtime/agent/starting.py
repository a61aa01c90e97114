"""Puts the program in its place and starts it; says how the task ended where that cannot be.

Does not watch it (``watching``).
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import Callable, Mapping, Sequence

from submarine_runtime import frameworks
from submarine_runtime.agent.ending import Ending
from submarine_runtime.agent.environment import (
    Found,
    place_launcher,
    program_command,
    program_environment,
)
from submarine_runtime.agent.guard import Guard
from submarine_runtime.agent.program import Program
from submarine_runtime.agent.scratch import Scratch
from submarine_runtime.agent.status import Status
from submarine_runtime.agent.wakeup import Wakeup
from submarine_runtime.frameworks import Setup
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.launch import AgentConfig
from submarine_runtime.protocol.link import Member
from submarine_runtime.protocol.reasons import EndReason


def unpack_program(scratch: Scratch) -> Ending | None:
    """Unzip the bundle; how the task ended if that cannot be."""
    from submarine_runtime.agent.unpack import BundleError, unpack

    try:
        scratch.make()
        if os.path.exists(scratch.path(layout.BUNDLE)):
            unpack(scratch.path(layout.BUNDLE), scratch.program)
    except BundleError as exc:
        return Ending(EndReason.LAUNCH_FAILED, f"{exc}.")
    except OSError as exc:
        return _of_system(exc)
    return None


def setup_of(config: AgentConfig, members: Sequence[Member], scratch: Scratch) -> Setup | Ending:
    """What the framework wants, and nothing left of an attempt before; how it ended otherwise."""
    task = f"{config.role}:{config.index}"
    me = next((member for member in members if member.task == task), None)
    if me is None:
        return Ending(EndReason.LAUNCH_FAILED, f"The gang was told without {task}.")
    for leftover in ("failure.json", "returns.txt", layout.RESULT, "launch/started"):
        with suppress(FileNotFoundError):
            os.unlink(scratch.path(leftover))
    try:
        return frameworks.setup(config, me, members)
    except ValueError as exc:
        return Ending(EndReason.LAUNCH_FAILED, str(exc)[:500])


def helper_ending(sentence: str, framework: str) -> Ending:
    """How a task ended whose helpers could not be started."""
    taken = any(word in sentence for word in frameworks.trait(framework, "ADDRESS_IN_USE"))
    reason = EndReason.ADDRESS_IN_USE if taken else EndReason.LAUNCH_FAILED
    return Ending(reason, sentence[:500])


def start_program(
    config: AgentConfig,
    scratch: Scratch,
    logs: Mapping[str, str],
    wakeup: Wakeup,
    hold: Callable[[Program], None],
    setup: Setup,
    found: Found,
    guard: Guard | None = None,
) -> Ending | None:
    """Start the program; how the task ended if it could not be started.

    Parameters
    ----------
    logs
        Stream -> the file that it is written to.
    hold
        Gets the program before a SIGTERM can be heard: somebody must be able to end it.
    guard
        The guard of what runs beside the program already.
    """
    try:
        place_launcher(config, scratch, setup)
        command = program_command(config, scratch, setup, found)
        environment = program_environment(config, scratch, os.environ, setup, found)
        with wakeup.deferred():
            hold(
                Program(
                    command,
                    scratch.program,
                    environment,
                    logs["stdout"],
                    logs["stderr"],
                    guard,
                )
            )
    except ValueError as exc:
        return Ending(EndReason.LAUNCH_FAILED, str(exc)[:500])
    except OSError as exc:
        return _of_system(exc)
    return None


def _of_system(exc: OSError) -> Ending:
    reason = EndReason.LAUNCH_FAILED
    if exc.errno in (errno.ENOSPC, errno.EDQUOT):
        reason = EndReason.DISK_FULL
    return Ending(reason, f"{exc.strerror}: {exc.filename}.")


def note_beginning(status: Status, scratch: Scratch, began: float) -> None:
    """The phases before the agent, and its own first."""
    localised = localised_from(scratch, began)
    status.end_phases(localised)  # the client's last one, the wait in the queue
    status.begin_phase("localisation", localised)
    status.end_phase("localisation", began)
    status.begin_phase("start", began)


def localised_from(scratch: Scratch, began: float) -> float:
    """When the first of our files came to this node; ``began`` where that is not known."""
    times = [began]
    for name in ("agent.json", "secret.json", layout.BUNDLE):
        with suppress(OSError):
            times.append(os.stat(scratch.path(name)).st_ctime)
    return min(times)
