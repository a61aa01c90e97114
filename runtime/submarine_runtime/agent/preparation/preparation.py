"""Prepare a task before its program starts: devices, bundle, inputs."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Callable, Mapping, Sequence

from submarine_runtime.agent.program import Ending, ProgramResources
from submarine_runtime.gpus import NoDeviceError, claim_gpus
from submarine_runtime.protocol import AgentConfig, EndReason, layout
from submarine_runtime.storage import Scratch, Store, StoreError
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_runtime.agent.preparation.inputs import Shard
    from submarine_runtime.gpus import GpuClaim
    from submarine_runtime.protocol import Member

#: File that this executor leaves in the working directory of each container.
WITHOUT_DOCKER = "default_container_executor.sh"


class _CancelRequest(Exception):  # noqa: N818 - not an error: it was requested
    pass


class Preparation:
    """Steps before the program; each returns the ending if it fails, else None.

    Parameters
    ----------
    wait
        Function that waits for some seconds.
    event
        Called with kind and sentence of an event.
    progress
        Called with the progress of the inputs: a sentence, and 0 to 1.
    is_cancelled
        Returns whether the task is to end.

    Attributes
    ----------
    resources
        Resources of the program.
    devices
        The task's GPUs.
    driver
        Whether they can be measured.
    """

    def __init__(
        self,
        config: AgentConfig,
        store: Store,
        scratch: Scratch,
        wait: Callable[[float], object],
        event: Callable[[str, str], None],
        progress: Callable[[str, float], None],
        is_cancelled: Callable[[], bool],
    ) -> None:
        self._config = config
        self._store = store
        self._scratch = scratch
        self._wait = wait
        self._event = event
        self._progress = progress
        self._is_cancelled = is_cancelled
        self._claim: GpuClaim | None = None
        self._shards: dict[str, Shard] | None = None
        self.resources = ProgramResources()
        self.devices: tuple[str, ...] = ()
        self.driver = False

    def claim_devices(self, open_view: Callable[[], object] | None = None) -> Ending | None:
        """Detect or claim the task's GPUs.

        Parameters
        ----------
        open_view
            Called before it waits for one; None: progress is not reported yet.
        """

        def report(sentence: str) -> None:
            if open_view is not None:
                self._progress(sentence, 0.0)
                open_view()

        try:
            self._claim = claim_gpus(self._config, wait=self._wait_unless_over, report=report)
        except _CancelRequest:
            return Ending(EndReason.CANCELLED, _("The task was stopped while it waited for a GPU."))
        except NoDeviceError as exc:
            return Ending(EndReason.LAUNCH_FAILED, str(exc)[:500])
        self.devices, self.driver = tuple(self._claim.devices), self._claim.driver
        self.resources.variables = dict(self._claim.variables)
        if self._claim.note:
            self._event("gpus", self._claim.note)
        if self._claim.warning:
            self._event("warning", self._claim.warning)
        return None

    def _wait_unless_over(self, seconds: float) -> None:
        self._wait(seconds)
        if self._is_cancelled():
            raise _CancelRequest

    def place(self) -> Ending | None:
        """Unpack the bundle, check the image, and clean localized directories."""
        # cost: zipfile; the agent registers before.
        from submarine_runtime.agent.preparation.bundle import (
            copy_writable,
            remove_checksum_files,
            unpack_program,
        )

        left = remove_checksum_files(self._scratch.root)
        if left:
            self._event(
                "warning",
                _(
                    "{left} checksum files (.NAME.crc) that YARN added to localized "
                    "directories could not be removed; a program that reads all files of the "
                    "directory must skip them."
                ).format(left=left),
            )
        here = os.environ.get("PWD") or os.getcwd()
        return (
            check_image(here, os.environ)
            or unpack_program(self._scratch)
            or copy_writable(self._scratch, self._config.spec.writable)
        )

    @property
    def is_environment_packed(self) -> bool:
        """Whether the container has the archive of an environment that is not unpacked."""
        path = self._scratch.path
        return os.path.exists(path(layout.PYTHON_ENV_ARCHIVE)) and not os.path.lexists(
            path(layout.PYTHON_ENV)
        )

    def unpack_environment(self) -> Ending | None:
        """Unpack the Python environment, unless it is there."""
        if not self.is_environment_packed:
            return None
        # cost: gzip and tempfile, for the jobs that have an environment.
        from submarine_runtime.agent.preparation.python_environment import place_environment

        def report(sentence: str, share: float) -> None:
            if self._is_cancelled():
                raise _CancelRequest
            self._progress(sentence, share)

        try:
            return place_environment(self._scratch, report, self._wait)
        except _CancelRequest:
            return Ending(
                EndReason.CANCELLED,
                _("The task was stopped while its Python environment was unpacked."),
            )

    def fetch(self, members: Sequence[Member]) -> Ending | None:
        """Fetch the inputs of a task in a gang of ``members``, unless they are present."""
        config = self._config
        if not config.fetch:
            return None
        # cost: the localization of inputs, which most jobs do not have.
        from submarine_runtime.agent.preparation.inputs import (
            InputError,
            fetch_inputs,
            input_variables,
            shard_of,
        )

        shards = {one.name: shard_of(config, one, members) for one in config.fetch}
        if shards == self._shards:
            return None
        for name, part in (self._shards or {}).items():
            if shards[name] != part:
                # Fewer tasks than requested have started: each gets more of the files.
                shutil.rmtree(self._scratch.path("inputs", name), ignore_errors=True)
        try:
            self.resources.inputs = fetch_inputs(
                config, self._store, self._scratch, shards, self._report_progress
            )
        except InputError as exc:
            return Ending(exc.reason, str(exc)[:1000])
        except StoreError as exc:
            return Ending(
                EndReason.INPUT_MISSING,
                _("An input could not be fetched: {error}.").format(error=exc),
            )
        except _CancelRequest:
            return Ending(EndReason.CANCELLED, _("The task was stopped while inputs were fetched."))
        try:
            self.resources.variables.update(input_variables(config, self._scratch))
        except OSError as exc:
            return Ending(EndReason.LAUNCH_FAILED, str(exc)[:500])
        self._shards = shards
        return None

    def _report_progress(self, done: int, total: int) -> None:
        if self._is_cancelled():
            raise _CancelRequest
        share = done / total if total else 1.0
        sentence = _("Fetching inputs: {done:.0f} of {total:.0f} MiB.").format(
            done=done / 2**20, total=total / 2**20
        )
        self._progress(sentence, round(share, 3))

    def release(self) -> None:
        """Release the devices."""
        if self._claim is not None:
            self._claim.release()


def check_image(directory: str, variables: Mapping[str, str]) -> Ending | None:
    """Return the ending of a task that does not run in its image; None if it does.

    Parameters
    ----------
    directory
        Working directory of the container.
    variables
        Environment of the container, which has YARN's settings.
    """
    if variables.get("YARN_CONTAINER_RUNTIME_TYPE") != "docker":
        return None
    if not os.path.exists(os.path.join(directory, WITHOUT_DOCKER)):
        return None
    image = variables.get("YARN_CONTAINER_RUNTIME_DOCKER_IMAGE", "")[:200]
    return Ending(
        EndReason.LAUNCH_FAILED,
        _(
            "The cluster runs no Docker containers: YARN did not take the image {image} and "
            "started the program on the node itself. Leave the image out, or ask the operator "
            "for YARN's Docker runtime (LinuxContainerExecutor, with docker in "
            "yarn.nodemanager.runtime.linux.allowed-runtimes)."
        ).format(image=image),
    )
