"""Prepare the files of the program and start it; return the ending if that fails.

``watching`` monitors it.
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

#: The first bytes of a file written by Hadoop's ChecksumFileSystem.
_CHECKSUM_HEADER = b"crc\0"
#: Seconds for a request to each ResourceManager; no other step waits for it.
_RM_SECONDS = 3.0


def unpack_program(scratch: Scratch) -> Ending | None:
    """Unpack the bundle; return the ending if that fails."""
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
    """Remove the ``.NAME.crc`` files from directories that YARN localized; return how many remain.

    The NodeManager copies an HDFS directory to a local file system with checksums, which adds such
    a file beside each file. A user's file with such a name has no checksum header and is kept.
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
                    pass  # Removed by another task on this node.
                except OSError:
                    left += 1
    return left


def copy_writable(scratch: Scratch, targets: Sequence[str]) -> Ending | None:
    """Replace links to localised files by copies that the program may change.

    All tasks of a node share one copy, which is read-only. A target that is not a link has been
    copied already. Returns the ending if a copy fails.
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
    """Make a file, or a directory with its content, writable for the owner, without links."""
    paths = [path]
    for place, directories, files in os.walk(path):
        paths += [os.path.join(place, name) for name in [*directories, *files]]
    for each in paths:
        if not os.path.islink(each):
            os.chmod(each, os.stat(each).st_mode | stat.S_IWUSR)


def setup_of(config: AgentConfig, members: Sequence[Member], scratch: Scratch) -> Setup | Ending:
    """Remove files of an earlier attempt; return the framework's setup, or the ending."""
    task = f"{config.role}:{config.index}"
    me = next((member for member in members if member.task == task), None)
    if me is None:
        return Ending(EndReason.LAUNCH_FAILED, f"The member list of the gang lacks {task}.")
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
    """Return the ending of a task whose helpers could not be started."""
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
    """Record the phases before the agent, and its own first phase.

    Parameters
    ----------
    resourcemanagers
        Queried, in a thread, for the time when this container was allocated: YARN unpacks an
        archive before or after it localizes the small files whose times are visible here.
    """
    localized = localized_from(scratch, began)
    launched = max(localized, master_launched(scratch, began))
    status.end_phases(localized)  # The client's last phase, the wait in the queue.
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
    """Return when the first of the job's files was localized on this node, else ``began``."""
    ours = ("agent.json", "secret.json", layout.BUNDLE)
    return min(first_change([scratch.path(name) for name in ours]) or began, began)


def master_launched(scratch: Scratch, began: float) -> float:
    """Return when YARN launched this container, if it is the application master's; else ``began``.

    The NodeManager writes the launch script when all files are there.
    """
    if not os.environ.get("CONTAINER_ID", "").endswith("_000001"):
        return began
    return min(first_change([scratch.path(LAUNCH_SCRIPT)]) or began, began)
