"""A kernel for whoever wants one: an orphan of the same notebook, or the kernel of a new job.

Belongs to ``tunnel_loop``; what blocks goes into threads. Knows no Jupyter class (``provisioner``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from submarine_jobs.access import tunnel_loop
from submarine_jobs.concurrency import in_thread
from submarine_jobs.errors import SubmarineError
from submarine_jobs.frontends import SubmitLine
from submarine_kernel.remote.keeper_client import KernelGoneError
from submarine_kernel.remote.remote_kernel import RemoteKernel
from submarine_kernel.remote.start_progress import Telling
from submarine_kernel.remote.submission import (
    Asked,
    explain,
    give_up,
    orphans,
    place,
    submit_kernel,
)

if TYPE_CHECKING:
    from submarine_jobs.client import Job, Session

log = logging.getLogger(__name__)


async def get_kernel(
    session: Session, asked: Asked, before: Mapping[str, Any], telling: Telling
) -> RemoteKernel:
    """Get a kernel with a container.

    Parameters
    ----------
    before
        Connection of the kernel before this one, whose clients go on with what they know; empty:
        there was none, and one that has lost its server will do.
    telling
        Told what it waits for, and how far it is.

    Raises
    ------
    SubmarineError
        If there is none to be had; its job is given up then.
    """
    for job in () if before else await in_thread(lambda: orphans(session, asked)):
        found = await _adopt(job)
        if found is not None:
            telling.say(f"The kernel of job {job.id} had lost its server and is taken over.")
            return found
    steps = SubmitLine(telling).show
    job = await in_thread(lambda: submit_kernel(session, asked, steps))
    telling.say(f"The kernel {asked.name} is job {job.id}.")
    try:
        return await _begin(job, asked, before, telling.waits)
    except BaseException:
        # In a thread that nobody waits for: who has given up wants no answer.
        forget(job, "its start was given up")
        raise


async def _begin(
    job: Job, asked: Asked, before: Mapping[str, Any], waits: Callable[[str], None]
) -> RemoteKernel:
    address = await place(job, asked.patience, waits)
    remote = RemoteKernel(job)
    try:
        try:
            await remote.open(address, before)
        except KernelGoneError:
            await explain(job)
            raise
        if key := before.get("key", b""):
            await remote.start(key)
    except BaseException:
        await remote.close()
        raise
    return remote


async def take_over(job: Job, before: Mapping[str, Any]) -> RemoteKernel:
    """Own the kernel of a job that runs, whoever owned it before.

    Raises
    ------
    KernelGoneError
        If it does not run any more, or cannot be reached.
    """
    address = await in_thread(job.directory.address)
    if address is None:
        raise KernelGoneError(f"The job {job.id} has no port; `submarine show {job.id}`.")
    remote = RemoteKernel(job)
    try:
        await remote.open(address, before)
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


def forget(job: Job, why: str) -> None:
    """End a job in the background; for any thread."""
    tunnel_loop().call_soon_threadsafe(_begin_to_forget, job, why)


def _begin_to_forget(job: Job, why: str) -> None:
    task = asyncio.get_running_loop().create_task(in_thread(lambda: give_up(job, why)))
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
