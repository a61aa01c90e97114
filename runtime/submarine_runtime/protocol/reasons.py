"""The closed list of reasons why a job ended: state, sentence, whether a retry helps, what next.

Does not find out the reason; agent, backends and the closer of an orphaned job do and take a word
from here. Adding a word is a change of the protocol: a reader that meets an unknown one shows it
as it stands.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from submarine_runtime.protocol.states import State


class EndReason(str, Enum):
    """Why a job ended; the value is what JSON holds."""

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
    """What an end reason says to a person."""

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
        "The program ended with an error of its own.",
        False,
        "Read the traceback, or the end of the log: it says where. Mend that and run again.",
    ),
    EndReason.IMPORT_ERROR: Meaning(
        State.FAILED,
        "The program imports a module that its Python environment does not have.",
        False,
        "Install the module where the job's Python lives, or choose another with --python-env.",
    ),
    EndReason.OUT_OF_MEMORY: Meaning(
        State.FAILED,
        "The program used more memory than the job asked for.",
        False,
        "Ask for more with --memory, or make batches smaller.",
    ),
    EndReason.KILLED_BY_SIGNAL: Meaning(
        State.FAILED,
        "A signal ended the program.",
        True,
        "SIGSEGV and SIGABRT come from native code: look at the end of stderr. SIGKILL comes from "
        "the node, often for want of memory, or from somebody there.",
    ),
    EndReason.TIMED_OUT: Meaning(
        State.FAILED,
        "The job ran longer than its --timeout.",
        False,
        "Give it more time with --timeout, or train for fewer steps.",
    ),
    EndReason.LAUNCH_FAILED: Meaning(
        State.FAILED,
        "The program could not be started on its node.",
        False,
        "Put right what the message names; if it is the Python, choose another --python-env.",
    ),
    EndReason.LOCALISATION_FAILED: Meaning(
        State.FAILED,
        "YARN could not bring the job's files to the node.",
        True,
        "Check that the files of the job directory and of --localization exist and are readable.",
    ),
    EndReason.OUTPUT_NOT_SAVED: Meaning(
        State.FAILED,
        "The program ended well, but not all of its output could be saved.",
        True,
        "The detail says what is missing: check free space, quota and permissions of the job "
        "directory; then run again.",
    ),
    EndReason.NOT_COLLECTIVE: Meaning(
        State.FAILED,
        "The programs ended well, but did not train together as --require-collective demands.",
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
        "The job directory takes nothing more: its quota, or its disk, is used up.",
        False,
        "Remove what is not needed there, or ask the operator for more; then run again.",
    ),
    EndReason.QUEUE_REFUSED: Meaning(
        State.FAILED,
        "The queue did not take the job.",
        False,
        "Choose a queue that you may submit to with --queue; `submarine doctor` lists them.",
    ),
    EndReason.NEVER_FITS: Meaning(
        State.FAILED,
        "No node of the cluster could ever hold a container of this size.",
        False,
        "Ask for less memory, fewer vcores or fewer GPUs.",
    ),
    EndReason.SUBMIT_FAILED: Meaning(
        State.FAILED,
        "The job could not be submitted.",
        False,
        "The detail says why; `submarine doctor` checks the set-up.",
    ),
    EndReason.PREEMPTED: Meaning(
        State.FAILED,
        "The scheduler took the containers back for another queue.",
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
        "The coordinator of the job ended before the job, and the job with it.",
        True,
        "Run again; application.driver.log of the YARN log says how the coordinator ended.",
    ),
    EndReason.AGENT_LOST: Meaning(
        State.FAILED,
        "The agent beside the program died and the program with it.",
        True,
        "Run again; the last seconds of the log may be missing.",
    ),
    EndReason.TASK_LOST: Meaning(
        State.FAILED,
        "A task of the job was not heard of any more and could not be replaced.",
        True,
        "Run again; --max-restarts sets how many losses a job survives.",
    ),
    EndReason.GANG_TIMED_OUT: Meaning(
        State.FAILED,
        "The cluster did not give all containers that must start together in time.",
        True,
        "Ask for fewer or smaller tasks, give --min-workers, or wait longer with --gang-timeout.",
    ),
    EndReason.INPUT_MISSING: Meaning(
        State.FAILED,
        "An input could not be fetched.",
        False,
        "Check that the URIs of --input exist and that you may read them.",
    ),
    EndReason.ADDRESS_IN_USE: Meaning(
        State.FAILED,
        "A port that the framework needs was taken by somebody else, again and again.",
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
        "Somebody killed the application on the cluster.",
        False,
        "Ask the operator why, or run again.",
    ),
    EndReason.LEASE_EXPIRED: Meaning(
        State.CANCELLED,
        "Whoever started the job was gone for longer than its --lease, so it ended itself.",
        True,
        "Look at the end of the run that started it: its machine, or its connection, was lost. "
        "Then run again.",
    ),
    EndReason.NEVER_SUBMITTED: Meaning(
        State.LOST,
        "The submitting process ended before the cluster had accepted the job.",
        True,
        "Run again: nothing of it ran.",
    ),
    EndReason.CLUSTER_LOST: Meaning(
        State.LOST,
        "The cluster no longer knows the application and no result was left behind.",
        True,
        "If the cluster comes back the job is looked at again; otherwise run again.",
    ),
    EndReason.HDFS_UNAVAILABLE: Meaning(
        State.FAILED,
        "HDFS, or another file system of the job directory, did not answer for too long.",
        True,
        "Run again when HDFS answers; --conf hdfs_wait_minutes sets how long a job waits for it.",
    ),
}


def meaning_of(reason: EndReason) -> Meaning:
    """What ``reason`` says to a person."""
    return MEANINGS[reason]
