"""The closed list of reasons why a job ended: state, sentence, whether a retry helps, next step.

Agent, coordinator, backends and the client that closes an orphaned job determine the reason. A new
reason changes the protocol: a reader displays an unknown one as it is.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from submarine_runtime.protocol.states import State


class EndReason(str, Enum):
    """Why a job ended; the value is used in JSON."""

    SUCCEEDED = "succeeded"
    PROGRAM_ERROR = "program_error"
    IMPORT_ERROR = "import_error"
    OUT_OF_MEMORY = "out_of_memory"
    KILLED_BY_SIGNAL = "killed_by_signal"
    TIMED_OUT = "timed_out"
    LAUNCH_FAILED = "launch_failed"
    LOCALISATION_FAILED = "localisation_failed"
    OUTPUT_NOT_SAVED = "output_not_saved"
    NOT_COLLECTIVE = "not_collective"
    DISK_FULL = "disk_full"
    JOB_DIRECTORY_FULL = "job_directory_full"
    QUEUE_REFUSED = "queue_refused"
    NEVER_FITS = "never_fits"
    SUBMIT_FAILED = "submit_failed"
    PREEMPTED = "preempted"
    NODE_LOST = "node_lost"
    MASTER_LOST = "master_lost"
    COORDINATOR_LOST = "coordinator_lost"
    AGENT_LOST = "agent_lost"
    TASK_LOST = "task_lost"
    GANG_TIMED_OUT = "gang_timed_out"
    INPUT_MISSING = "input_missing"
    ADDRESS_IN_USE = "address_in_use"
    CANCELLED = "cancelled"
    KILLED_ON_CLUSTER = "killed_on_cluster"
    LEASE_EXPIRED = "lease_expired"
    NEVER_SUBMITTED = "never_submitted"
    CLUSTER_LOST = "cluster_lost"
    HDFS_UNAVAILABLE = "hdfs_unavailable"

    def __str__(self) -> str:
        return self.value


class Meaning(NamedTuple):
    """What an end reason means for users."""

    state: State
    sentence: str
    retry_helps: bool
    next_step: str


MEANINGS: dict[EndReason, Meaning] = {
    EndReason.SUCCEEDED: Meaning(
        State.SUCCEEDED,
        "The program ended with exit code 0.",
        False,
        "Load the model from the job's model directory, or look at the log.",
    ),
    EndReason.PROGRAM_ERROR: Meaning(
        State.FAILED,
        "The program failed.",
        False,
        "Read the traceback or the end of the log. Fix the error and run the job again.",
    ),
    EndReason.IMPORT_ERROR: Meaning(
        State.FAILED,
        "The program imports a module that its Python environment does not have.",
        False,
        "Install the module where the job's Python lives, or choose another with --python-env.",
    ),
    EndReason.OUT_OF_MEMORY: Meaning(
        State.FAILED,
        "The program used more memory than the job requested.",
        False,
        "Request more with --memory, or use smaller batches.",
    ),
    EndReason.KILLED_BY_SIGNAL: Meaning(
        State.FAILED,
        "A signal ended the program.",
        True,
        "SIGSEGV and SIGABRT come from native code: look at the end of stderr. SIGKILL comes from "
        "the node, often because its memory is exhausted, or from a user there.",
    ),
    EndReason.TIMED_OUT: Meaning(
        State.FAILED,
        "The job ran longer than its --timeout.",
        False,
        "Increase --timeout, or train for fewer steps.",
    ),
    EndReason.LAUNCH_FAILED: Meaning(
        State.FAILED,
        "The program could not be started on its node.",
        False,
        "Fix the cause that the message names; if it is the Python, choose another --python-env.",
    ),
    EndReason.LOCALISATION_FAILED: Meaning(
        State.FAILED,
        "YARN could not localize the job's files on the node.",
        True,
        "Check that the files of the job directory and of --localization exist and are readable.",
    ),
    EndReason.OUTPUT_NOT_SAVED: Meaning(
        State.FAILED,
        "The program succeeded, but not all of its output could be saved.",
        True,
        "The detail says what is missing: check free space, quota and permissions of the job "
        "directory; then run again.",
    ),
    EndReason.NOT_COLLECTIVE: Meaning(
        State.FAILED,
        "The programs succeeded, but did not train together as --require-collective requires.",
        False,
        "Add the call or argument that the detail names, and run the job again.",
    ),
    EndReason.DISK_FULL: Meaning(
        State.FAILED,
        "The disk of the node was full.",
        True,
        "Write less to the working directory, or ask the operator to free the node's disk.",
    ),
    EndReason.JOB_DIRECTORY_FULL: Meaning(
        State.FAILED,
        "The job directory is full: its quota or its disk is used up.",
        False,
        "Delete files there, or ask the operator for a larger quota; then run the job again.",
    ),
    EndReason.QUEUE_REFUSED: Meaning(
        State.FAILED,
        "The queue did not accept the job.",
        False,
        "Choose a queue that you may submit to with --queue; `submarine doctor` lists them.",
    ),
    EndReason.NEVER_FITS: Meaning(
        State.FAILED,
        "No node of the cluster is large enough for a container of this size.",
        False,
        "Request less memory, fewer vcores or fewer GPUs.",
    ),
    EndReason.SUBMIT_FAILED: Meaning(
        State.FAILED,
        "The job could not be submitted.",
        False,
        "The detail says why; `submarine doctor` checks the set-up.",
    ),
    EndReason.PREEMPTED: Meaning(
        State.FAILED,
        "The scheduler pre-empted the containers for another queue.",
        True,
        "Run again, or use a queue with a larger guaranteed share.",
    ),
    EndReason.NODE_LOST: Meaning(
        State.FAILED,
        "The node that ran the program was lost.",
        True,
        "Run again: the cluster will choose another node.",
    ),
    EndReason.MASTER_LOST: Meaning(
        State.FAILED,
        "The application master died.",
        True,
        "Run again; if it happens twice look at the application's page.",
    ),
    EndReason.COORDINATOR_LOST: Meaning(
        State.FAILED,
        "The coordinator ended before the job had finished.",
        True,
        "Run again; application.driver.log of the YARN log says how the coordinator ended.",
    ),
    EndReason.AGENT_LOST: Meaning(
        State.FAILED,
        "The agent died, and the program ended with it.",
        True,
        "Run again; the last seconds of the log may be missing.",
    ),
    EndReason.TASK_LOST: Meaning(
        State.FAILED,
        "The job lost contact with a task and could not replace it.",
        True,
        "Run again; --max-restarts sets how many losses a job survives.",
    ),
    EndReason.GANG_TIMED_OUT: Meaning(
        State.FAILED,
        "The cluster did not allocate all containers of the gang in time.",
        True,
        "Request fewer or smaller tasks, set --min-workers, or increase --gang-timeout.",
    ),
    EndReason.INPUT_MISSING: Meaning(
        State.FAILED,
        "An input could not be fetched.",
        False,
        "Check that the URIs of --input exist and that you may read them.",
    ),
    EndReason.ADDRESS_IN_USE: Meaning(
        State.FAILED,
        "A port that the framework needs was repeatedly taken by another process.",
        True,
        "Run again: other ports, and perhaps other nodes, will be chosen.",
    ),
    EndReason.CANCELLED: Meaning(
        State.CANCELLED,
        "The job was cancelled.",
        False,
        "What the program had written until then is in the job directory.",
    ),
    EndReason.KILLED_ON_CLUSTER: Meaning(
        State.CANCELLED,
        "A user or an administrator killed the application on the cluster.",
        False,
        "Ask the operator why, or run again.",
    ),
    EndReason.LEASE_EXPIRED: Meaning(
        State.CANCELLED,
        "The client that started the job did not renew its --lease, so the job ended.",
        True,
        "Check why the client ended: its machine or connection may have failed. Then run again.",
    ),
    EndReason.NEVER_SUBMITTED: Meaning(
        State.LOST,
        "The submitting process ended before the cluster had accepted the job.",
        True,
        "Run again: nothing of it ran.",
    ),
    EndReason.CLUSTER_LOST: Meaning(
        State.LOST,
        "The cluster no longer knows the application, and there is no result.",
        True,
        "The job is checked again when the cluster responds; otherwise run it again.",
    ),
    EndReason.HDFS_UNAVAILABLE: Meaning(
        State.FAILED,
        "HDFS, or another file system of the job directory, was not available for too long.",
        True,
        "Run again when HDFS is available; --conf hdfs_wait_minutes sets how long a job waits.",
    ),
}


def meaning_of(reason: EndReason) -> Meaning:
    """Return what ``reason`` means for users."""
    return MEANINGS[reason]
