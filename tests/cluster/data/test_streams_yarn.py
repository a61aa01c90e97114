"""Inputs of mode ``stream`` on YARN: the process beside the program reads HDFS."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator

import pytest

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.client import Job, Session
from submarine_jobs.options import parse_input
from submarine_runtime.protocol import EndReason
from submarine_runtime.storage import Store
from tests.submission import Submit

pytestmark = [pytest.mark.cluster, pytest.mark.full]

COUNT = """\
import json, os
path = os.environ["SUBMARINE_INPUT_T"]
with open(0 if path == "-" else path, "rb", buffering=1 << 20) as lines:
    numbers = [int(line) for line in lines]
print(json.dumps([len(numbers), sum(numbers)]), flush=True)
"""


@pytest.fixture
def data(session: Session) -> Iterator[tuple[Store, str]]:
    backend = session.backend()
    assert isinstance(backend, YarnBackend)
    storage, root = backend.job_root()
    path = f"{root}/streams-{secrets.token_hex(4)}"
    store = storage.open_store("/")
    for number in range(3):
        text = b"".join(b"%07d\n" % n for n in range(number * 200_000, (number + 1) * 200_000))
        store.publish(f"{path}/set é/part {number} %2B.txt", text)
    store.publish(f"{path}/set é/_SUCCESS", b"")
    yield store, path
    storage.delete(path, recursive=True)


def printed(job: Job) -> list[list[int]]:
    tasks = [task.task for task in job.wait_success(180).tasks]
    texts = [b"".join(chunk.data for chunk in job.read_log(task=task)) for task in tasks]
    return [json.loads(text) for text in texts]


def test_each_record_of_hdfs_is_read_once_in_each_epoch(
    submit: Submit, data: tuple[Store, str]
) -> None:
    _store, path = data
    total = sum(range(600_000))
    gang = submit(COUNT, instances=2, inputs=(parse_input(f"T={path}/set é:stream=epochs=2"),))
    text = f"T={path}/set é/part*:stream=to=stdin,shuffle=1000"
    one = submit(COUNT, inputs=(parse_input(text),))
    found = printed(gang)
    assert [sum(column) for column in zip(*found, strict=True)] == [1_200_000, 2 * total]
    assert all(count > 300_000 for count, _sum in found)
    assert printed(one) == [[600_000, total]]


def test_a_damaged_file_ends_the_job_although_the_program_waits(
    submit: Submit, data: tuple[Store, str]
) -> None:
    store, path = data
    store.publish(f"{path}/set é/part 3.txt.gz", b"not compressed")
    record = submit(COUNT, inputs=(parse_input(f"T={path}/set é:stream"),)).wait(180)
    assert record.reason is EndReason.INPUT_MISSING
    assert "part 3.txt.gz is damaged at byte 0" in record.detail
