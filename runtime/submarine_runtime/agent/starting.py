"""Puts the program in its place and starts it; says how the task ended where that cannot be.

Does not watch it (``watching``).
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import Callable, Mapping

from submarine_runtime.agent.ending import Ending
from submarine_runtime.agent.environment import (
    place_launcher,
    program_command,
    program_environment,
)
from submarine_runtime.agent.program import Program
from submarine_runtime.agent.scratch import Scratch
from submarine_runtime.agent.wakeup import Wakeup
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.launch import AgentConfig
from submarine_runtime.protocol.reasons import EndReason


def start_program(
    config: AgentConfig,
    scratch: Scratch,
    logs: Mapping[str, str],
    wakeup: Wakeup,
    hold: Callable[[Program], None],
) -> Ending | None:
    """Start the program; how the task ended if it could not be started.

    Parameters
    ----------
    logs
        Stream -> the file that it is written to.
    hold
        Gets the program before a SIGTERM can be heard: somebody must be able to end it.
    """
    from submarine_runtime.agent.unpack import BundleError, unpack

    try:
        scratch.make()
        if os.path.exists(scratch.path(layout.BUNDLE)):
            unpack(scratch.path(layout.BUNDLE), scratch.program)
        place_launcher(config, scratch)
        with wakeup.deferred():
            hold(
                Program(
                    program_command(config, scratch),
                    scratch.program,
                    program_environment(config, scratch, os.environ),
                    *(logs[stream] for stream in layout.STREAMS),
                )
            )
    except BundleError as exc:
        return Ending(EndReason.LAUNCH_FAILED, f"{exc}.")
    except ValueError as exc:
        return Ending(EndReason.LAUNCH_FAILED, str(exc)[:500])
    except OSError as exc:
        if exc.errno in (errno.ENOSPC, errno.EDQUOT):
            return Ending(EndReason.DISK_FULL, f"{exc.strerror}: {exc.filename}.")
        return Ending(EndReason.LAUNCH_FAILED, f"{exc.strerror}: {exc.filename}.")
    return None


def localised_from(scratch: Scratch, began: float) -> float:
    """When the first of our files came to this node; ``began`` where that is not known."""
    times = [began]
    for name in ("agent.json", "secret.json", layout.BUNDLE):
        with suppress(OSError):
            times.append(os.stat(scratch.path(name)).st_ctime)
    return min(times)
