"""Prepare the files of the program and start it; return the ending if that fails.

``monitor`` monitors it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from shutil import rmtree
from typing import Callable, Mapping, Sequence

from submarine_runtime.agent.program.ending import Ending, system_ending
from submarine_runtime.agent.program.environment import (
    ProgramResources,
    place_launcher,
    program_command,
    program_environment,
)
from submarine_runtime.agent.program.process import Program
from submarine_runtime.agent.program.wakeup import Wakeup
from submarine_runtime.frameworks import Setup, setting_of, setup as framework_setup
from submarine_runtime.processes import Guard
from submarine_runtime.protocol import AgentConfig, EndReason, Member, layout
from submarine_runtime.storage import Scratch, make_directories
from submarine_runtime.translation import _


def setup_of(config: AgentConfig, members: Sequence[Member], scratch: Scratch) -> Setup | Ending:
    """Remove files of an earlier attempt; return the framework's setup, or the ending."""
    task = f"{config.role}:{config.index}"
    member = next((one for one in members if one.task == task), None)
    if member is None:
        return Ending(
            EndReason.LAUNCH_FAILED,
            _("The member list of the gang lacks {task}.").format(task=task),
        )
    results = [
        name
        for name in os.listdir(scratch.root)
        if (name.startswith("result-") and name.endswith(".zip"))
        or name.startswith(("failure-", "torch-error-"))
    ]
    launch = ("launch/started", "launch/exits.json")
    for leftover in ("failure.json", "returns.txt", layout.RESULT, *launch, *results):
        with suppress(FileNotFoundError):
            os.unlink(scratch.path(leftover))
    rmtree(scratch.saved_output(), ignore_errors=True)
    make_directories(scratch.saved_output())
    try:
        link_checkpoints(config.spec.checkpoint_links, scratch)
        setup = framework_setup(config, member, members)
    except ValueError as exc:
        return Ending(EndReason.LAUNCH_FAILED, str(exc)[:500])
    if "TORCHELASTIC_RUN_ID" in setup.env:
        for number, variables in enumerate(setup.processes):
            variables["TORCHELASTIC_ERROR_FILE"] = scratch.path(f"torch-error-{number}.json")
    return setup


def link_checkpoints(names: Sequence[str], scratch: Scratch) -> None:
    """Let directories of the working directory be links into the checkpoint directory.

    What a library writes there is then synced, saved and restored. Existing names are not changed.

    Raises
    ------
    ValueError
        If a link cannot be made.
    """
    for name in names:
        link, target = (
            os.path.join(root, name)
            for root in (scratch.program, scratch.outputs[layout.CHECKPOINTS])
        )
        try:
            if not os.path.lexists(link):
                os.symlink(os.path.relpath(target, scratch.program), link)
            if os.path.islink(link):
                make_directories(target)
        except OSError as exc:
            raise ValueError(
                _("{name}, a directory of checkpoints, cannot be linked: {strerror}.").format(
                    name=name, strerror=exc.strerror
                )
            ) from exc


def helper_ending(sentence: str, framework: str) -> Ending:
    """Return the ending of a task if its helpers could not be started."""
    taken = any(word in sentence for word in setting_of(framework, "ADDRESS_IN_USE"))
    reason = EndReason.ADDRESS_IN_USE if taken else EndReason.LAUNCH_FAILED
    return Ending(reason, sentence[:500])


def start_program(
    config: AgentConfig,
    scratch: Scratch,
    logs: Mapping[str, str],
    wakeup: Wakeup,
    hold: Callable[[Program], None],
    setup: Setup,
    resources: ProgramResources,
    guard: Guard | None = None,
) -> Ending | None:
    """Start the program; return the ending if it could not be started.

    Parameters
    ----------
    logs
        Stream -> the file that it is written to.
    hold
        Receives the program before a SIGTERM is handled, so that it can be ended.
    guard
        The guard of the helpers.
    """
    try:
        place_launcher(config, scratch, setup)
        scratch.mark_start()
        command = program_command(config, scratch, setup, resources)
        environment = program_environment(config, scratch, os.environ, setup, resources)
        with wakeup.deferred():
            hold(
                Program(
                    command,
                    scratch.program,
                    environment,
                    logs["stdout"],
                    logs["stderr"],
                    guard,
                    resources.stdin,
                )
            )
    except ValueError as exc:
        return Ending(EndReason.LAUNCH_FAILED, str(exc)[:500])
    except OSError as exc:
        return system_ending(exc)
    finally:
        if resources.stdin >= 0:
            os.close(resources.stdin)
            resources.stdin = -1
    return None
