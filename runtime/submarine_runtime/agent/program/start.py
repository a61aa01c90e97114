"""Puts the program in its place and starts it; says how the task ended where that cannot be.

Does not watch it (``watching``).
"""

from __future__ import annotations

import errno
import glob
import os
import shutil
import stat
import threading
from contextlib import suppress
from typing import Callable, Mapping, Sequence

from submarine_runtime import frameworks
from submarine_runtime.agent.program.ending import Ending
from submarine_runtime.agent.program.environment import (
    Found,
    place_launcher,
    program_command,
    program_environment,
)
from submarine_runtime.agent.program.process import Program
from submarine_runtime.agent.program.wakeup import Wakeup
from submarine_runtime.frameworks import Setup
from submarine_runtime.processes import Guard
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.agent_config import CHECKSUMMED, AgentConfig
from submarine_runtime.protocol.link import Member
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.record import Status
from submarine_runtime.storage import Scratch
from submarine_runtime.yarn import LAUNCH_SCRIPT, first_change

#: The first bytes of a file that Hadoop's ChecksumFileSystem writes.
_CHECKSUM_HEADER = b"crc\0"
#: Seconds for a question about the container to each ResourceManager; nothing waits for it.
_RM_SECONDS = 3.0


def unpack_program(scratch: Scratch) -> Ending | None:
    """Unzip the bundle; how the task ended if that cannot be."""
    from submarine_runtime.agent.preparation import BundleError, unpack

    try:
        scratch.make()
        if os.path.exists(scratch.path(layout.BUNDLE)):
            unpack(scratch.path(layout.BUNDLE), scratch.program)
    except BundleError as exc:
        return Ending(EndReason.LAUNCH_FAILED, f"{exc}.")
    except OSError as exc:
        return _of_system(exc)
    return None


def remove_checksum_files(root: str) -> int:
    """Remove the ``.NAME.crc`` files from directories that YARN localized; how many were left.

    The NodeManager copies an HDFS directory to a local file system with checksums, which adds such
    a file beside each file. A file of the user's with that name has no checksum header and stays.
    """
    left = 0
    for name in os.listdir(root):
        if not name.startswith(CHECKSUMMED):
            continue
        for directory, _, files in os.walk(os.path.realpath(os.path.join(root, name))):
            beside = set(files)
            for file in files:
                if not (file.startswith(".") and file.endswith(".crc") and file[1:-4] in beside):
                    continue
                path = os.path.join(directory, file)
                try:
                    with open(path, "rb") as stream:
                        generated = stream.read(len(_CHECKSUM_HEADER)) == _CHECKSUM_HEADER
                    if generated:
                        os.unlink(path)
                except FileNotFoundError:
                    pass  # removed by another task on this node
                except OSError:
                    left += 1
    return left


def copy_writable(scratch: Scratch, targets: Sequence[str]) -> Ending | None:
    """Replace links to localised files by copies that the program may change.

    YARN gives all tasks of a node one copy, which is read-only. Where a target is no link the
    program has a copy of its own already. Returns how the task ended if that cannot be.
    """
    for target in targets:
        path = os.path.join(scratch.program, target)
        if not os.path.islink(path):
            continue
        copy = f"{path}.copy-{os.getpid()}"
        try:
            if os.path.isdir(path):
                shutil.copytree(path, copy, symlinks=True)
            else:
                shutil.copy2(path, copy)
            make_writable(copy)
            os.unlink(path)
            os.rename(copy, path)
        except shutil.Error as exc:
            return Ending(EndReason.LAUNCH_FAILED, f"{target} could not be copied: {exc}."[:500])
        except OSError as exc:
            return _of_system(exc)
    return None


def make_writable(path: str) -> None:
    """Let the owner write to a file, or to a directory with all that is in it; not to links."""
    paths = [path]
    for place, directories, files in os.walk(path):
        paths += [os.path.join(place, name) for name in [*directories, *files]]
    for each in paths:
        if not os.path.islink(each):
            os.chmod(each, os.stat(each).st_mode | stat.S_IWUSR)


def setup_of(config: AgentConfig, members: Sequence[Member], scratch: Scratch) -> Setup | Ending:
    """What the framework wants, and nothing left of an attempt before; how it ended otherwise."""
    task = f"{config.role}:{config.index}"
    me = next((member for member in members if member.task == task), None)
    if me is None:
        return Ending(EndReason.LAUNCH_FAILED, f"The gang was told without {task}.")
    for leftover in ("failure.json", "returns.txt", layout.RESULT, "launch/started"):
        with suppress(FileNotFoundError):
            os.unlink(scratch.path(leftover))
    for leftover in glob.glob(glob.escape(scratch.path("")) + "result-*.zip"):
        with suppress(FileNotFoundError):
            os.unlink(leftover)
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
        scratch.mark_start()
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


def note_beginning(
    status: Status, scratch: Scratch, began: float, resourcemanagers: Sequence[str] = ()
) -> None:
    """The phases before the agent, and its own first.

    Parameters
    ----------
    resourcemanagers
        Asked, in a thread, when this container was granted: YARN unpacks an archive before or after
        it brings the small files whose times can be seen here.
    """
    localized = localized_from(scratch, began)
    launched = max(localized, master_launched(scratch, began))
    status.end_phases(localized)  # the client's last one, the wait in the queue
    status.begin_phase("localizing", localized)
    status.end_phase("localizing", launched)
    if launched < began:
        status.begin_phase("master_start", launched)
        status.end_phase("master_start", began)
    status.begin_phase("start", began)
    container = os.environ.get("CONTAINER_ID")
    if resourcemanagers and container:

        def ask() -> None:
            from submarine_runtime.yarn import container_started

            granted = container_started(resourcemanagers, container, _RM_SECONDS)
            if granted is not None:
                status.localizing_since(granted)

        threading.Thread(target=ask, name="localizing", daemon=True).start()


def localized_from(scratch: Scratch, began: float) -> float:
    """When the first of our files came to this node; ``began`` where that is not known."""
    ours = ("agent.json", "secret.json", layout.BUNDLE)
    return min(first_change([scratch.path(name) for name in ours]) or began, began)


def master_launched(scratch: Scratch, began: float) -> float:
    """When YARN launched this container, if it is the application master's; else ``began``.

    The NodeManager writes the launch script when all files are there.
    """
    if not os.environ.get("CONTAINER_ID", "").endswith("_000001"):
        return began
    return min(first_change([scratch.path(LAUNCH_SCRIPT)]) or began, began)
