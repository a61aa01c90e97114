"""The closed list of reasons why a job ended: state, sentence, whether a retry helps, next step.

Agent, coordinator, backends and the client that closes an orphaned job determine the reason. A new
reason changes the protocol: an older reader displays it as it is.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any, Mapping, NamedTuple

from submarine_runtime.protocol.states import State
from submarine_runtime.translation import _

_WORD = re.compile(r"[a-z][a-z_]{0,40}\Z")


class Meaning(NamedTuple):
    """What an end reason means for users; ``value`` is its name in JSON."""

    value: str
    state: State
    sentence: str
    next_step: str
    retry_helps: bool


class EndReason(str, Enum):
    """Why a job ended. The table in ``docs/end-reasons.md`` is generated from these members."""

    meaning: Meaning

    def __new__(cls, *fields: Any) -> EndReason:
        """Create a member from the fields of its meaning."""
        value = str(fields[0])
        member = str.__new__(cls, value)
        member._value_, member.meaning = value, Meaning(*fields)
        return member

    @classmethod
    def _missing_(cls, value: object) -> EndReason | None:
        """Return the reason of a newer version, which is displayed as it is."""
        if not isinstance(value, str) or not _WORD.match(value):
            return None
        member = str.__new__(cls, value)
        member._name_ = member._value_ = value
        sentence = _("The job ended: {reason}.").format(reason=value)
        member.meaning = Meaning(value, State.FAILED, sentence, "", retry_helps=False)
        return member

    SUCCEEDED = Meaning(
        "succeeded",
        State.SUCCEEDED,
        _("The program ended with exit code 0."),
        _("Load the model from the job's model directory, or read the log."),
        retry_helps=False,
    )
    PROGRAM_ERROR = Meaning(
        "program_error",
        State.FAILED,
        _("The program failed."),
        _("Read the traceback or the end of the log. Fix the error and run the job again."),
        retry_helps=False,
    )
    IMPORT_ERROR = Meaning(
        "import_error",
        State.FAILED,
        _("The program imports a module that its Python environment does not have."),
        _("Install the module in the job's environment, or choose another with --python-env."),
        retry_helps=False,
    )
    OUT_OF_MEMORY = Meaning(
        "out_of_memory",
        State.FAILED,
        _("The program used more memory than the job requested."),
        _("Request more with --memory, or use smaller batches."),
        retry_helps=False,
    )
    KILLED_BY_SIGNAL = Meaning(
        "killed_by_signal",
        State.FAILED,
        _("A signal ended the program."),
        _(
            "SIGSEGV and SIGABRT come from native code: read the end of stderr. SIGKILL "
            "comes from the node, often because its memory is exhausted, or from a user there."
        ),
        retry_helps=True,
    )
    TIMED_OUT = Meaning(
        "timed_out",
        State.FAILED,
        _("The job ran longer than its --timeout."),
        _("Increase --timeout, or train for fewer steps."),
        retry_helps=False,
    )
    LAUNCH_FAILED = Meaning(
        "launch_failed",
        State.FAILED,
        _("The program could not be started on its node."),
        _(
            "Fix the cause that the message names; if it is the Python, choose another "
            "--python-env."
        ),
        retry_helps=False,
    )
    LOCALISATION_FAILED = Meaning(
        "localisation_failed",
        State.FAILED,
        _("YARN could not localize the job's files on the node."),
        _(
            "Check that the files of the job directory and of --localization exist and are "
            "readable."
        ),
        retry_helps=True,
    )
    OUTPUT_NOT_SAVED = Meaning(
        "output_not_saved",
        State.FAILED,
        _("The program succeeded, but not all of its output could be saved."),
        _(
            "The detail says what is missing: check free space, quota and permissions of the "
            "job directory, or of the URI of --save-output; then run again."
        ),
        retry_helps=True,
    )
    NOT_COLLECTIVE = Meaning(
        "not_collective",
        State.FAILED,
        _("The programs succeeded, but did not train together as --require-collective requires."),
        _("Add the call or argument that the detail names, and run the job again."),
        retry_helps=False,
    )
    DISK_FULL = Meaning(
        "disk_full",
        State.FAILED,
        _("The disk of the node was full."),
        _("Write less to the working directory, or ask the operator to free the node's disk."),
        retry_helps=True,
    )
    JOB_DIRECTORY_FULL = Meaning(
        "job_directory_full",
        State.FAILED,
        _("The job directory is full: its quota or its disk is used up."),
        _("Delete files there, or ask the operator for a larger quota; then run the job again."),
        retry_helps=False,
    )
    QUEUE_REFUSED = Meaning(
        "queue_refused",
        State.FAILED,
        _("The queue did not accept the job."),
        _("Choose a queue that you may submit to with --queue; `submarine doctor` lists them."),
        retry_helps=False,
    )
    NEVER_FITS = Meaning(
        "never_fits",
        State.FAILED,
        _("No node of the cluster is large enough for a container of this size."),
        _("Request less memory, fewer vcores or fewer GPUs."),
        retry_helps=False,
    )
    SUBMIT_FAILED = Meaning(
        "submit_failed",
        State.FAILED,
        _("The job could not be submitted."),
        _("The detail says why; `submarine doctor` checks the set-up."),
        retry_helps=False,
    )
    PREEMPTED = Meaning(
        "preempted",
        State.FAILED,
        _("The scheduler pre-empted the containers for another queue."),
        _("Run again, or use a queue with a larger guaranteed share."),
        retry_helps=True,
    )
    NODE_LOST = Meaning(
        "node_lost",
        State.FAILED,
        _("The node that ran the program was lost."),
        _("Run again: the cluster will choose another node."),
        retry_helps=True,
    )
    MASTER_LOST = Meaning(
        "master_lost",
        State.FAILED,
        _("The application master died."),
        _("Run again; if this happens twice, read the application's page."),
        retry_helps=True,
    )
    COORDINATOR_LOST = Meaning(
        "coordinator_lost",
        State.FAILED,
        _("The coordinator ended before the job had finished."),
        _("Run again; application.driver.log of the YARN log says how the coordinator ended."),
        retry_helps=True,
    )
    AGENT_LOST = Meaning(
        "agent_lost",
        State.FAILED,
        _("The agent died, and the program ended with it."),
        _("Run again; the last seconds of the log may be missing."),
        retry_helps=True,
    )
    TASK_LOST = Meaning(
        "task_lost",
        State.FAILED,
        _("The job lost contact with a task and could not replace it."),
        _("Run again; --max-restarts sets the number of restarts after losses."),
        retry_helps=True,
    )
    GANG_TIMED_OUT = Meaning(
        "gang_timed_out",
        State.FAILED,
        _("The cluster did not allocate all containers of the gang in time."),
        _("Request fewer or smaller tasks, set --min-workers, or increase --gang-timeout."),
        retry_helps=True,
    )
    INPUT_MISSING = Meaning(
        "input_missing",
        State.FAILED,
        _("An input could not be fetched."),
        _("Check that the URIs of --input exist and that you may read them."),
        retry_helps=False,
    )
    ADDRESS_IN_USE = Meaning(
        "address_in_use",
        State.FAILED,
        "A port that the framework needs was repeatedly taken by another process.",
        "Run again: other ports, and perhaps other nodes, will be chosen.",
        retry_helps=True,
    )
    STALLED = Meaning(
        "stalled",
        State.FAILED,
        _("The program made no progress for longer than --stall, also after restarts."),
        _("The detail shows where each rank waits; `submarine logs` shows its last lines."),
        retry_helps=True,
    )
    CANCELLED = Meaning(
        "cancelled",
        State.CANCELLED,
        _("The job was cancelled."),
        _("What the program had written until then is in the job directory."),
        retry_helps=False,
    )
    KILLED_ON_CLUSTER = Meaning(
        "killed_on_cluster",
        State.CANCELLED,
        _("A user or an administrator killed the application on the cluster."),
        _("Ask the operator why, or run again."),
        retry_helps=False,
    )
    LEASE_EXPIRED = Meaning(
        "lease_expired",
        State.CANCELLED,
        _("The client that started the job did not renew its --lease, so the job ended."),
        _("Check why the client ended: its machine or connection may have failed. Then run again."),
        retry_helps=True,
    )
    IDLE_GPU = Meaning(
        "idle_gpu",
        State.CANCELLED,
        _("The GPUs of the job were idle for longer than --idle-gpu, so the job ended."),
        _("Let the program use its GPUs, request none, or increase --idle-gpu."),
        retry_helps=False,
    )
    NEVER_SUBMITTED = Meaning(
        "never_submitted",
        State.LOST,
        _("The submitting process ended before the cluster had accepted the job."),
        _("Run again: no part of the job has run."),
        retry_helps=True,
    )
    CLUSTER_LOST = Meaning(
        "cluster_lost",
        State.LOST,
        _("The cluster no longer knows the application, and there is no result."),
        _("The job is checked again when the cluster responds; otherwise run it again."),
        retry_helps=True,
    )
    HDFS_UNAVAILABLE = Meaning(
        "hdfs_unavailable",
        State.FAILED,
        _("HDFS, or another file system of the job directory, was not available for too long."),
        _("Run again when HDFS is available; --conf hdfs_wait_minutes sets how long a job waits."),
        retry_helps=True,
    )

    def __str__(self) -> str:
        return str(self.value)


def cancel_sentence(request: Mapping[str, Any]) -> str:
    """Return the sentence of a cancelled job: ``Cancelled by ada: wrong learning rate.``.

    Parameters
    ----------
    request
        Who has cancelled the job (``by``) and the reason (``why``); each may be missing.
    """
    by, why = request.get("by"), str(request.get("why") or "").rstrip(".")
    cancelled = _("Cancelled by {by}").format(by=by) if by else _("Cancelled")
    return f"{cancelled}: {why}." if why else f"{cancelled}."
