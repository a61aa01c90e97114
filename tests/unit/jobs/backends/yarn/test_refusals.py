"""Java's error texts, recorded from the driver, become one sentence each."""

from __future__ import annotations

from pathlib import Path

import pytest

from submarine_jobs.backends.yarn.driver import translate
from submarine_jobs.backends.yarn.driver.refusals import TABLE, JobRefusedError
from submarine_jobs.backends.yarn.driver.start_log import start_error
from submarine_jobs.errors import ClusterError, RefusedError
from submarine_runtime.protocol import EndReason

STACK = "\n\tat org.apache.hadoop.yarn.server.Foo.bar(Foo.java:12)\n\tat java.base/x.Y.z(Y.java:3)"
PREFIX = "Failed to submit application, exception:\n"
CASES = [
    (
        PREFIX + "Application application_1_0002 submitted by user root to unknown queue: nope",
        "There is no queue nope.",
    ),
    (
        PREFIX + "org.apache.hadoop.ipc.RemoteException(org.apache.hadoop.hdfs.server.namenode."
        "SafeModeException): Cannot create directory /user/ann/.skein. Name node is in safe mode.",
        "HDFS is in safe mode and accepts no writes.",
    ),
    (
        PREFIX + "org.apache.hadoop.yarn.exceptions.InvalidResourceRequestException: Invalid "
        "resource request! Cannot allocate containers as requested resource is greater than "
        "maximum allowed allocation. Requested resource type=[memory-mb], Requested resource="
        "<memory:99999, vCores:1>, maximum allowed allocation=<memory:8192, vCores:8>, please ...",
        "The job asks for more memory than a container may have here (8192 MiB).",
    ),
    (
        PREFIX + "Invalid resource request! ... Requested resource type=[yarn.io/gpu], Requested "
        "resource=<memory:512, vCores:1, yarn.io/gpu: 9>, maximum allowed allocation=<memory:8192,"
        " vCores:8, yarn.io/gpu: 4>, please",
        "The job asks for more GPUs than a container may have here (4).",
    ),
    (
        PREFIX + "Resource 'yarn.io/gpu' is not defined",
        "The resource type of GPUs is not defined in the client's Hadoop configuration.",
    ),
    (
        PREFIX + 'Permission denied: user=root, access=WRITE, inode="/user":hdfs:supergroup:'
        "drwxr-xr-x",
        "HDFS denies user root the permission WRITE on /user.",
    ),
    (
        PREFIX + "User alice does not have permission to submit application_1_0003 to queue ml",
        "User alice may not submit to queue ml.",
    ),
    (
        PREFIX + "org.apache.hadoop.security.AccessControlException: User alice cannot submit "
        "applications to queue root.ml",
        "User alice may not submit to queue root.ml.",
    ),
    (
        PREFIX + "Call From vm/127.0.0.1 to 127.0.0.1:16643 failed on connection exception: "
        "java.net.ConnectException: Connection refused; For more details see: http://wiki",
        "The cluster refuses connections on port 16643: ResourceManager or NameNode is down.",
    ),
    (
        PREFIX + "File does not exist: hdfs://127.0.0.1:9000/user/ann/x.zip",
        "The file hdfs://127.0.0.1:9000/user/ann/x.zip that the job needs does not exist.",
    ),
]


@pytest.mark.parametrize(("details", "sentence"), CASES)
def test_sentences(details: str, sentence: str) -> None:
    error = translate(details + STACK)
    assert error.message == sentence
    assert "\tat" not in str(error)
    assert isinstance(error, RefusedError | ClusterError)


def test_unknown_words_are_shown_without_class_names_and_stack() -> None:
    error = translate(PREFIX + "org.apache.hadoop.x.OddException: the moon is full" + STACK)
    assert error.message == "The cluster refused: the moon is full."


@pytest.mark.parametrize(
    ("details", "reason"),
    [(CASES[0][0], EndReason.QUEUE_REFUSED), (CASES[2][0], EndReason.NEVER_FITS)],
)
def test_refusals_carry_the_end_reason_for_the_record(details: str, reason: EndReason) -> None:
    error = translate(details)
    assert isinstance(error, JobRefusedError)
    assert error.reason is reason


def test_every_row_says_what_would_be_right() -> None:
    for row in TABLE:
        assert row.message.endswith(".")
        assert row.fix.endswith(".")


def test_the_documentation_lists_every_refusal() -> None:
    page = (Path(__file__).parents[5] / "docs" / "yarn.md").read_text()
    for row in TABLE:
        assert f"| {row.message} | {row.fix} |" in page


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("Error: UnsupportedClassVersionError: org/apache/hadoop/X", "too old"),
        ("java.lang.NoClassDefFoundError: org/apache/hadoop/Y\n\tat a.b(C.java)", "hadoop/Y"),
        ("Unrecognized VM option 'UseFoo'\nError: Could not create the Java", "UseFoo"),
        ("", "its JVM ended"),
    ],
)
def test_why_the_driver_did_not_start(tmp_path: Path, log: str, words: str) -> None:
    path = tmp_path / "driver.log"
    path.write_text(log)
    error = start_error(path, "its JVM ended")
    assert words in error.message
    assert "\tat" not in str(error)
