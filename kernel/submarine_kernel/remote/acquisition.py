"""Get a kernel in a container: take over an orphan of the same notebook, or submit a new job.

The coroutines run in ``tunnel_loop``; blocking calls run in threads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from submarine_jobs.access import tunnel_loop
from submarine_jobs.concurrency import in_thread
from submarine_jobs.errors import SubmarineError
from submarine_jobs.frontends import SubmitProgress
from submarine_kernel.remote.remote_kernel import RemoteKernel
from submarine_kernel.remote.start_progress import StartProgress
from submarine_kernel.remote.submission import (
    KernelRequest,
    cancel_job,
    find_running,
    raise_if_ended,
    submit_kernel,
    wait_for_container,
)
from submarine_kernel.remote.supervisor_client import KernelLostError
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.client import Job, Session

log = logging.getLogger(__name__)


async def get_kernel(
    session: Session, request: KernelRequest, previous: Mapping[str, Any], progress: StartProgress
) -> RemoteKernel:
    """Get a kernel with a container.

    Parameters
    ----------
    previous
        Connection of the previous kernel. Its clients continue with the same sockets and key. If it
        is empty, an orphaned kernel may be taken over.
    progress
        Reports the steps and the reason of a wait.

    Raises
    ------
    SubmarineError
        If no kernel can be started; its job is then cancelled.
    """
    for job in () if previous else await in_thread(lambda: find_running(session, request)):
        found = await _adopt(job)
        if found is not None:
            progress.say(
                _("The kernel of job {id} had lost its server and is taken over.").format(id=job.id)
            )
            return found
    steps = SubmitProgress(progress).show
    job = await in_thread(lambda: submit_kernel(session, request, steps))
    progress.say(_("The kernel {request} is job {id}.").format(request=request.name, id=job.id))
    try:
        return await _connect(job, request, previous, progress)
    except BaseException:
        # In the background: a cancelled start must not wait for the cluster.
        cancel_in_background(job, _("its start was cancelled"))
        raise


async def _connect(
    job: Job, request: KernelRequest, previous: Mapping[str, Any], progress: StartProgress
) -> RemoteKernel:
    address = await wait_for_container(
        job, request.start_timeout, progress.report_wait, progress.stopped
    )
    remote = RemoteKernel(job)
    try:
        try:
            await remote.open(address, previous)
        except KernelLostError:
            await raise_if_ended(job)
            raise
        if key := previous.get("key", b""):
            await remote.start(key)
    except BaseException:
        await remote.close()
        raise
    return remote


async def end_kernel(remote: RemoteKernel, why: str) -> None:
    """End a kernel and its job. ``why`` is the reason if the job must be cancelled for it."""
    if remote.loss:
        await remote.close()
    elif not await remote.leave():
        await in_thread(lambda: cancel_job(remote.job, why))


async def take_over(job: Job, previous: Mapping[str, Any]) -> RemoteKernel:
    """Become the owner of the kernel of a running job, which may have another owner.

    Raises
    ------
    KernelLostError
        If the kernel does not run any more, or cannot be reached.
    """
    address = await in_thread(job.directory.address)
    if address is None:
        raise KernelLostError(
            _("The job {id} has no port; `submarine show {id}`.").format(id=job.id)
        )
    remote = RemoteKernel(job)
    try:
        await remote.open(address, previous)
    except BaseException:
        await remote.close()
        raise
    return remote


async def _adopt(job: Job) -> RemoteKernel | None:
    remote = RemoteKernel(job, "orphan")
    try:
        address = await in_thread(job.directory.address)
        if address is None:
            return None
        await remote.open(address)
        if remote.code is not None:
            await remote.start()
    except (SubmarineError, OSError, ValueError, KeyError) as error:
        log.debug("kernel of job %s is not taken over: %s", job.id, error)
        await remote.close()
        return None
    return remote


_tasks: set[asyncio.Task[None]] = set()


def cancel_in_background(job: Job, why: str) -> None:
    """Cancel a job in the background; called from any thread."""
    tunnel_loop().call_soon_threadsafe(_start_cancelling, job, why)


def _start_cancelling(job: Job, why: str) -> None:
    task = asyncio.get_running_loop().create_task(in_thread(lambda: cancel_job(job, why)))
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
