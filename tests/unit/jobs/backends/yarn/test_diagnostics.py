"""Diagnostics recorded from real clusters (Hadoop 3.5.0, 3.3.6, skein 0.8.2) and their meaning."""

from __future__ import annotations

import pytest

from submarine_jobs.backends.yarn.cluster.diagnostics import end_reason, wait_reason
from submarine_runtime.protocol import EndReason as R

FAILED_AM = (
    "Application application_1795228515378_0001 failed 1 times (global limit =2; local limit is =1)"
    " due to AM Container for appattempt_1795228515378_0001_000001 exited with  exitCode: {code}\n"
    "Failing this attempt.Diagnostics: [2026-11-21 02:35:28.368]{said}\nFor more detailed output, "
    "check the application tracking page: http://localhost:10621/cluster/app/application_1_0001 "
    "Then click on links to logs of each attempt.\n. Failing the application."
)
OOM = (
    "Container [pid=30675,containerID=container_e01_1795228515378_0001_01_000001] is running "
    "532025344B beyond the 'PHYSICAL' memory limit. Current usage: 1.1 GB of 576 MB physical memory"
    " used; 3.3 GB of 1.2 GB virtual memory used. Killing container.\nDump of the process-tree"
)
OOM_2 = (
    "Container [pid=5,containerID=c] is running beyond physical memory limits. Current usage: "
    "2.1 GB of 2 GB physical memory used; 4 GB of 4.2 GB virtual memory used. Killing container."
)
ENDS = [
    ("FINISHED", "SUCCEEDED", "Application driver completed successfully.", R.SUCCEEDED, ""),
    (
        "FAILED",
        "FAILED",
        FAILED_AM.format(code=-104, said=OOM),
        R.OUT_OF_MEMORY,
        "The container used 1.1 GB of 576 MB.",
    ),
    (
        "FAILED",
        "FAILED",
        FAILED_AM.format(code=-104, said=OOM_2),
        R.OUT_OF_MEMORY,
        "The container used 2.1 GB of 2 GB.",
    ),
    (
        "FAILED",
        "FAILED",
        FAILED_AM.format(
            code=-1000,
            said="java.nio.file.NoSuchFileException: /home/ada/.cache/lib/hadoop-common-3.5.0.jar",
        ),
        R.LOCALISATION_FAILED,
        "java.nio.file.NoSuchFileException: /home/ada/.cache/lib/hadoop-common-3.5.0.jar",
    ),
    (
        "FAILED",
        "FAILED",
        FAILED_AM.format(code=-1000, said="File does not exist: hdfs://127.0.0.1:1/user/ann/b"),
        R.LOCALISATION_FAILED,
        "hdfs://127.0.0.1:1/user/ann/b",
    ),
    (
        "FAILED",
        "FAILED",
        FAILED_AM.format(code=-100, said="Container released on a *lost* node"),
        R.NODE_LOST,
        "The container's node was lost.",
    ),
    (
        "FAILED",
        "FAILED",
        FAILED_AM.format(code=-102, said="Container preempted by scheduler"),
        R.PREEMPTED,
        "The scheduler took the container back.",
    ),
    (
        "FAILED",
        "FAILED",
        FAILED_AM.format(
            code=137,
            said="Container killed on request. Exit code is 137\nKilled by external signal",
        ),
        R.MASTER_LOST,
        "The application master ended with exit code 137.",
    ),
    (
        "FINISHED",
        "FAILED",
        "Application driver failed with exit code 1, see logs for more information.",
        R.AGENT_LOST,
        "The agent ended with exit code 1 and left no record: application.driver.log of the "
        "YARN log says why.",
    ),
    (
        "FINISHED",
        "FAILED",
        "Application driver failed with exit code 73, see logs for more information.",
        R.JOB_DIRECTORY_FULL,
        "The job directory was full, so the agent could not write the record: "
        "application.driver.log of the YARN log names the exceeded quota.",
    ),
    (
        "FINISHED",
        "FAILED",
        "Application driver failed with exit code 127, see logs for more information.",
        R.LAUNCH_FAILED,
        "The Python that should start the job does not exist or does not run on that node.",
    ),
    (
        "FINISHED",
        "FAILED",
        "Failure in service task, see logs for more information.",
        R.AGENT_LOST,
        "The program's container ended and the agent left no record.",
    ),
    (
        "KILLED",
        "KILLED",
        "Application application_1_0006 was killed by user root with diagnostic message: stop it",
        R.KILLED_ON_CLUSTER,
        "Killed by user root.",
    ),
    (
        "KILLED",
        "KILLED",
        "Application application_1_0006 was killed by user alice at 10.0.0.7",
        R.KILLED_ON_CLUSTER,
        "Killed by user alice.",
    ),
    ("KILLED", "KILLED", "Application killed by user.", R.KILLED_ON_CLUSTER, None),
    ("FAILED", "FAILED", "words nobody has seen", R.MASTER_LOST, "words nobody has seen"),
]


@pytest.mark.parametrize(("state", "final", "diagnostics", "reason", "detail"), ENDS)
def test_end_reason(
    state: str, final: str, diagnostics: str, reason: R, detail: str | None
) -> None:
    found, said = end_reason(state, final, diagnostics)
    assert found is reason
    if detail is not None:
        assert said == detail
    assert len(said) <= 300
    assert "\n" not in said


def test_a_stack_trace_never_becomes_the_detail() -> None:
    trace = "Unexpected error\n" + "\tat org.apache.hadoop.Foo.bar(Foo.java:1)\n" * 50
    _, said = end_reason("FAILED", "FAILED", trace)
    assert len(said) <= 300


AM_WAITS = (
    "[Sat Nov 21 02:32:28 +0000 2026] Application is added to the scheduler and is not yet "
    "activated. Queue's AM resource limit exceeded.  Details : AM Partition = <DEFAULT_PARTITION>; "
    "AM Resource Request = <memory:1024, vCores:1>; Queue Resource Limit for AM = <memory:832, "
    "vCores:1>; User AM Resource Limit of the queue = <memory:832, vCores:1>; Queue AM Resource "
    "Usage = <memory:576, vCores:1>; "
)
FREE_WAITS = (
    "[Sat] Application is Activated, waiting for resources to be assigned for AM.  Details : AM "
    "Partition = <DEFAULT_PARTITION> ; Partition Resource = <memory:8192, vCores:8> ; Queue's "
    "Absolute capacity = 50.0 % ; Queue's Absolute used capacity = 62.5 % ; Queue's Absolute max "
    "capacity = 100.0 % ; Queue's capacity (absolute resource) = <memory:4096, vCores:4> ; "
)


@pytest.mark.parametrize(
    ("diagnostics", "sentence"),
    [
        (
            AM_WAITS,
            "queue narrow has 256 of 832 MiB free for masters; this one needs 1024",
        ),
        (
            AM_WAITS.replace("vCores:1", "vCores:1, yarn.io/gpu: 2"),
            "queue narrow has 0 of 2 GPUs free for masters; this one needs 2",
        ),
        (
            AM_WAITS.replace("memory:1024", "memory:1"),
            "queue narrow has 0 of 1 vcores free for masters; this one needs 1",
        ),
        (
            FREE_WAITS,
            "queue narrow: waiting for free resources; 62.5 % of the cluster is used by this "
            "queue, which may use 100.0 %",
        ),
        ("", "queue narrow: submitted, not yet looked at"),
    ],
)
def test_wait_reason(diagnostics: str, sentence: str) -> None:
    assert wait_reason(diagnostics, "narrow") == sentence


def test_another_master_after_the_tokens_have_expired() -> None:
    """As Hadoop 3.5 and skein report it."""
    found, said = end_reason(
        "FINISHED",
        "FAILED",
        "Unexpected error in application master:\nToken  has expired, current time: "
        "2026-11-28 01:28:46,702+0000 expected renewal time: 2026-11-28 01:26:47,051+0000",
    )
    assert found is R.MASTER_LOST
    assert "the delegation tokens of the application have expired" in said
    assert "`submarine rerun --resume`" in said
    _, other = end_reason(
        "FINISHED", "FAILED", "Unexpected error in application master:\nNullPointer"
    )
    assert other == "The application master failed."
