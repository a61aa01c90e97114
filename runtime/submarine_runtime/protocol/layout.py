"""Names of files and directories in the job directory; this module accesses no file.

::

    <job root>/<YYYYMM>/<job id>/         0700
        intent.json        exclusive create: reserves the id and records the intended program;
                           published again every few seconds while the client submits
        spec.json          what the user requested; no secrets
        bundle.zip         program, modules, .submarine/sourcemap.json, notebook snapshot
        values.zip         values of --with, if there are any
        inputs/train.json.gz   files of an input, as they were at the submission
        secret.json        0600: token, certificate and key of this job's agent
        secret-env.json    0600: values of --secret, if there are any; deleted at the end
        application.json   the backend's name of the job, once accepted
        claim.json         exclusive: the one container that may run the program
        cancel.json        exclusive: a request to cancel
        lease.json         renewal by the client that started the job, if it cannot use the port
        live.json          host and port where the agent listens
        claim-2.json       the claim of the second attempt of a distributed job's master; the
                           highest number counts, and numbers may be absent
        events/            client-000000.jsonl, agent-000000.jsonl, coordinator-1-000000.jsonl, ...
                           immutable
        logs/worker-0/e1-a1/stdout.000000000000   segments named by the offset of their first byte
        logs/worker-0/e1-a1/stdout.000000004096.growing   the segment that is being written; a
                           container that was killed leaves it, and its content is valid
        logs/worker-0/e1-a1/stdout.index          offset -> time, written at the end
        metrics/worker-0/e1-a1/samples.000000000000   the same for measurements
        checkpoints/ tensorboard/ model/ result.zip   of the chief (or only) task, at the end
        files/             files of the working directory that --keep saves
        ranks/0.zip        values of each rank, with --return-all-ranks
        outputs/worker-0/  SUBMARINE_OUTPUT_DIR of each task that succeeded
        saved/NAME/worker-0.json   files that a task gave to --save-output NAME
        tasks/worker-1/    the same of every other task that wrote any
        snapshots/worker-0/e1-a1/   synced checkpoints: data files, and a manifest for each snapshot
        snapshots/point-000002.json   the restore point of an epoch: what each task restores
        models/<version>/  the model directory at one time, with version.json
        growing/worker-0/e1-a1/     pieces of TensorBoard files that still grow
        record.json        exclusive: the result; it is written after everything else

A file is first written under a name that starts with ``.tmp-`` and then renamed, so a file with its
final name is complete. Readers skip names that start with a dot.
"""

from __future__ import annotations

import re
from typing import Iterable, NamedTuple

from submarine_runtime.files import TEMPORARY_PREFIX as TEMPORARY_PREFIX

INTENT = "intent.json"
SPEC = "spec.json"
BUNDLE = "bundle.zip"
VALUES = "values.zip"
#: The package ``submarine_data`` and the modules of the runtime that it uses, in a container.
DATA_PACKAGE = "submarine_data.zip"
#: Archive of the program's Python environment in a container, that of the files that differ from
#: it, the description of both, and the directory where the agent unpacks them.
PYTHON_ENV_ARCHIVE = "python-env.archive"
PYTHON_ENV_DELTA = "python-env.delta"
PYTHON_ENV_DESCRIPTION = "python-env.json"
PYTHON_ENV = "python-env"
SECRET = "secret.json"  # noqa: S105 - a file's name
#: Fresh delegation tokens of a client that cannot reach the port; mode 0600, until the end.
TOKENS = "tokens.txt"
#: ``--distribute_keytab``: keys of the user; mode 0600, until the end.
KEYTAB = "user.keytab"
#: Values of ``--secret``, NAME -> value; localized for the agents of the program only.
SECRET_ENV = "secret-env.json"  # noqa: S105 - a file's name
#: Files with secrets of the user; the process that closes the job deletes them.
DELETED_AT_END = (SECRET_ENV, TOKENS, KEYTAB)
#: Files that stay private in a shared job directory.
PRIVATE_FILES = (SECRET, *DELETED_AT_END)
APPLICATION = "application.json"
CLAIM = "claim.json"
#: Key of a claim that no container holds: a client closes a job that was not submitted.
CLOSER = "closer"
CANCEL = "cancel.json"
LEASE = "lease.json"
LIVE = "live.json"
RECORD = "record.json"
EVENTS = "events"
LOGS = "logs"
#: Listings of inputs.
INPUTS = "inputs"
CHECKPOINTS = "checkpoints"
TENSORBOARD = "tensorboard"
MODEL = "model"
RESULT = "result.zip"
#: Files of the working directory that ``--keep`` saves, and values of every rank.
FILES = "files"
RANKS = "ranks"
#: ``SUBMARINE_OUTPUT_DIR`` of each task, and lists of the files of ``--save-output``.
OUTPUTS = "outputs"
SAVED = "saved"
METRICS = "metrics"
TASKS = "tasks"
SNAPSHOTS = "snapshots"
MODELS = "models"
GROWING = "growing"
COORDINATOR = "coordinator.json"
AGENT = "agent.json"
RUNTIME_CACHE = "cache"
#: Below the job root, beside the months: the jobs that headless runs have started.
RUNS = "runs"
GROWING_SUFFIX = ".growing"
#: Logs of a task. ``helper`` has what processes beside the program print: XGBoost's tracker.
HELPER_STREAM = "helper"
PROGRAM_STREAMS = ("stdout", "stderr")
STREAMS = (*PROGRAM_STREAMS, HELPER_STREAM)
#: The attempt of a job of one task; its agent does not name it.
FIRST_ATTEMPT = "e1-a1"

_JOB_ID = re.compile(r"^[a-z0-9](?:[a-z0-9-]{0,62})-(\d{4})(\d{2})\d{2}-[0-9a-f]{4,12}\Z")
_SEGMENT = re.compile(r"^(stdout|stderr|helper|samples)\.(\d{12})\Z")
_ATTEMPT = re.compile(r"^e(\d{1,6})-a(\d{1,6})\Z")
_CLAIM = re.compile(r"^claim(?:-([1-9]\d{0,5}))?\.json\Z")
_TASK = re.compile(r"^([a-z][a-z0-9_]{0,31}):(\d{1,5})\Z")


class LogSegment(NamedTuple):
    """A shipped piece of a log; ``offset`` is that of its first byte."""

    stream: str
    offset: int


def month_of(job_id: str) -> str:
    """Return the partition of a job, ``202611`` for ``digits-20261120-7f3a``.

    Raises
    ------
    ValueError
        If ``job_id`` is not a job id; this guards every path that is made from one.
    """
    match = _JOB_ID.match(job_id)
    if not match:
        raise ValueError(f"{job_id[:80]!r} is not a job id (one looks like digits-20261120-7f3a)")
    return match.group(1) + match.group(2)


def is_job_id(text: str) -> bool:
    """Return whether ``text`` has the form of a job id."""
    return bool(_JOB_ID.match(text))


def job_directory(job_root: str, job_id: str) -> str:
    """Return ``<job root>/<YYYYMM>/<job id>``; raise ValueError if it is not a job id."""
    return "{}/{}/{}".format(job_root.rstrip("/"), month_of(job_id), job_id)


def restore_point(epoch: int) -> str:
    """Return the relative path of the published restore point of an epoch."""
    return f"{SNAPSHOTS}/point-{epoch:06d}.json"


def split_task(task: str) -> tuple[str, int]:
    """Return role and index of ``worker:3``; raise ValueError if it is not a task."""
    match = _TASK.match(task)
    if not match:
        raise ValueError(f"{task[:80]!r} is not a task (one looks like worker:0)")
    return match.group(1), int(match.group(2))


def attempt_name(epoch: int, attempt: int) -> str:
    """Return ``e1-a1``."""
    return f"e{epoch}-a{attempt}"


def parse_attempt(name: str) -> tuple[int, int] | None:
    """Return epoch and attempt of ``e1-a1``; None for any other name."""
    match = _ATTEMPT.match(name)
    return (int(match.group(1)), int(match.group(2))) if match else None


def attempt_directory(part: str, task: str, epoch: int, attempt: int) -> str:
    """Return the relative directory of one attempt in ``part``: ``metrics/worker-0/e1-a1``."""
    role, index = split_task(task)
    return f"{part}/{role}-{index}/{attempt_name(epoch, attempt)}"


def task_directory(task: str) -> str:
    """Return the directory name of a task, ``worker-0``."""
    role, index = split_task(task)
    return f"{role}-{index}"


def log_directory(task: str, epoch: int, attempt: int) -> str:
    """Return the relative directory of one attempt's log segments, ``logs/worker-0/e1-a1``."""
    return attempt_directory(LOGS, task, epoch, attempt)


def claim_name(application_attempt: int) -> str:
    """Return the claim of the n-th attempt of a job's master, from 1."""
    return CLAIM if application_attempt <= 1 else f"claim-{application_attempt}.json"


def parse_claim(name: str) -> int | None:
    """Return the attempt in the file name of a claim; None for any other name."""
    match = _CLAIM.match(name)
    return int(match.group(1) or 1) if match else None


def newest_claim(names: Iterable[str]) -> int:
    """Return the highest attempt that has a claim among file names of a job directory; 0: none.

    An attempt that ended before it claimed the job leaves a gap in the numbers.
    """
    return max((parse_claim(name) or 0 for name in names), default=0)


def is_claim(name: str) -> bool:
    """Return whether a file of this name is the claim of an attempt of a job's master."""
    return bool(_CLAIM.match(name))


def coordinator_writer(application_attempt: int) -> str:
    """Return the writer of events in the n-th attempt of a job's master, from 1."""
    return f"coordinator-{application_attempt}"


def segment_name(stream: str, offset: int) -> str:
    """Return the file name of the segment of ``stream`` that begins at byte ``offset``."""
    return f"{stream}.{offset:012d}"


def growing_name(stream: str, offset: int) -> str:
    """Return the file name of the segment from ``offset`` while it is being written."""
    return f"{segment_name(stream, offset)}{GROWING_SUFFIX}"


def parse_growing(name: str) -> LogSegment | None:
    """Return the segment of a ``growing`` file name; None for any other name."""
    end = -len(GROWING_SUFFIX)
    return parse_segment(name[:end]) if name.endswith(GROWING_SUFFIX) else None


def index_name(stream: str) -> str:
    """Return the file name of the index of ``stream``: lines ``offset seconds``."""
    return f"{stream}.index"


def parse_segment(name: str) -> LogSegment | None:
    """Return the segment of a file name; None for any other name."""
    match = _SEGMENT.match(name)
    return LogSegment(match.group(1), int(match.group(2))) if match else None


def event_segment(writer: str, number: int) -> str:
    """Return the relative path of one immutable piece of the event list."""
    return f"{EVENTS}/{writer}-{number:06d}.jsonl"
