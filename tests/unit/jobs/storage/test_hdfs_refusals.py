"""What HDFS refuses, as one sentence; the texts are those that NameNodes of Hadoop 3.5 gave."""

from __future__ import annotations

import pytest

from submarine_jobs.errors import NoAccessError, NoRoomError
from submarine_jobs.storage.client_calls import storage_error

_URL = "hdfs://nn:8020/user/ann/submarine/202611/a-20261122-1a2b/record.json"
_SPACE = (
    'RPCError("org.apache.hadoop.hdfs.protocol.DSQuotaExceededException", "The DiskSpace quota of '
    "/user/ann is exceeded: quota = 1024 B = 1 KB but diskspace consumed = 143032067 B = 136.41 MB"
    '\\n\\tat org.apache.hadoop.hdfs.server.namenode.DirectoryWithQuotaFeature")'
)
_NAMES = (
    'RPCError("org.apache.hadoop.hdfs.protocol.NSQuotaExceededException", "The NameSpace quota '
    "(directories and files) of directory /user/ann is exceeded: quota=200 file count=226"
    '\\n\\tat org.apache.hadoop.hdfs.server.namenode.DirectoryWithQuotaFeature")'
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (_SPACE, "/user/ann is full, its quota of 1 KB (with all replicas) is used up."),
        (_NAMES, "/user/ann is full, its quota of 200 files and directories is used up."),
        ("QuotaExceededException: no numbers", "the HDFS quota is used up."),
    ],
)
def test_a_quota_that_is_used_up_is_named_with_its_size(text: str, said: str) -> None:
    error = storage_error("write", _URL, RuntimeError(text))
    assert isinstance(error, NoRoomError)
    assert error.message == f"Cannot write {_URL}: {said}"


def test_any_other_refusal_does_not_mention_space() -> None:
    error = storage_error("write", _URL, RuntimeError("AccessControlException: Permission denied"))
    assert not isinstance(error, NoRoomError)
    assert "permission denied" in error.message


def test_a_user_whom_the_cluster_does_not_admit_is_named() -> None:
    text = (
        "HDFS refused /user/ann/.tmp: User mallory (auth:SIMPLE) is not authorized for protocol "
        "interface org.apache.hadoop.hdfs.protocol.ClientProtocol: denied by configured ACL"
    )
    error = storage_error("write", _URL, RuntimeError(text))
    assert isinstance(error, NoAccessError)
    assert error.message == f"Cannot write {_URL}: this cluster does not admit the user mallory."


@pytest.mark.parametrize("name", ["hub", "hub@EXAMPLE.COM", "hub/host.example.com@EXAMPLE.COM"])
def test_a_service_that_may_not_act_for_a_user_is_named(name: str) -> None:
    text = (
        "HDFS refused /user/ann: Failed to obtain user group information: "
        f"org.apache.hadoop.security.authorize.AuthorizationException: User: {name} is not "
        "allowed to impersonate ann"
    )
    error = storage_error("list", _URL, RuntimeError(text))
    assert isinstance(error, NoAccessError)
    assert error.message == "The cluster does not allow hub to act for ann."
    assert "hadoop.proxyuser.NAME.hosts" in error.fix


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (
            "HDFS refused /user/ann/a: User:hdfs not allowed to do 'DECRYPT_EEK' on 'key'",
            "Use a directory outside of encryption zones, or ask for access to the zone's key.",
        ),
        (
            'OperationFailed("File is in an HDFS encryption zone but no KMS provider is configured '
            '(set `hadoop.security.key.provider.path` in core-site.xml)")',
            "Name the key server in core-site.xml: hadoop.security.key.provider.path.",
        ),
    ],
)
def test_a_file_that_cannot_be_decrypted_is_named(text: str, fix: str) -> None:
    error = storage_error("read", _URL, RuntimeError(text))
    assert error.message == f"Cannot read {_URL}, which lies in an encryption zone: {text}."
    assert error.fix == fix
