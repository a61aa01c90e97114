"""Publish the outputs of ``--save-output`` of a job with several tasks at its end."""

from __future__ import annotations

from submarine_runtime.coordinator.machine import JobState, Outcome
from submarine_runtime.coordinator.record import JobStatus
from submarine_runtime.protocol import CoordinatorConfig, EndReason
from submarine_runtime.publication import Attempt, discard_outputs, publish_outputs
from submarine_runtime.storage import Store


def publish_job_outputs(
    config: CoordinatorConfig,
    job: JobState,
    status: JobStatus,
    store: Store,
    attempt: Attempt,
    outcome: Outcome,
) -> Outcome:
    """Publish the outputs if the job has succeeded, else delete what its tasks have staged.

    Parameters
    ----------
    attempt
        Repeats a call after transient errors; raises StoreError.
    outcome
        The outcome of the job so far.

    Returns
    -------
    Outcome
        Another one if an output was not published.
    """
    job_id = config.record.job_id
    if not outcome.succeeded:
        discard_outputs(store, config.publish, job_id)
        return outcome
    tasks = {
        task.name: (task.epoch, task.attempt)
        for task in job.tasks.values()
        if task.kind == "tracked" and task.outcome is not None and task.outcome.succeeded
    }
    done = publish_outputs(store, config.publish, config.spec, job_id, tasks, attempt)
    status.set_record(saved_outputs=done.outputs)
    for sentence in done.warnings:
        status.warn(sentence)
    if done.failure:
        return Outcome(EndReason.OUTPUT_NOT_SAVED, done.failure, outcome.exit_code)
    return outcome
