"""The modes of ``--input`` on YARN: lists and mounts by HDFS's own clients, other addresses."""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.client import Job, Session
from submarine_jobs.options import parse_input
from submarine_minicluster import Minicluster
from submarine_runtime.storage import Store
from tests.submission import Submit
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

#: Reads what it is given with hdfs-native and the client configuration of the agent only.
READS = """\
import json, os
from hdfs_native import Client
value = os.environ["SUBMARINE_INPUT_T"]
uris = [line.rstrip("\\n") for line in open(value)] if os.path.isfile(value) else [value]
client = Client(config_dir=os.environ["HADOOP_CONF_DIR"])
sizes = {}
for uri in uris:
    path = "/" + uri.partition("://")[2].partition("/")[2]
    names = [path] if os.path.isfile(value) else [s.path for s in client.list_status(path)]
    for name in names:
        reader = client.read(name)
        sizes[name.rpartition("/")[2]] = len(reader.read_range(0, len(reader)))
print(json.dumps(sizes), flush=True)
"""


@pytest.fixture
def backend(session: Session) -> YarnBackend:
    found = session.backend()
    assert isinstance(found, YarnBackend)
    return found


@pytest.fixture
def data(backend: YarnBackend) -> Iterator[tuple[Store, str]]:
    storage, root = backend.job_root()
    path = f"{root}/inputs-{secrets.token_hex(4)}"
    store = storage.open_store("/")
    for number in range(7):
        store.publish(f"{path}/set é/part {number}.csv", b"x" * (number + 1))
    store.publish(f"{path}/set é/_SUCCESS", b"")
    yield store, path
    storage.delete(path, recursive=True)


def read(job: Job) -> list[dict[str, Any]]:
    """What the tasks of a job printed, after its end."""
    tasks = [task.task for task in job.wait_success(180).tasks]
    texts = [b"".join(chunk.data for chunk in job.read_log(task=task)) for task in tasks]
    return [json.loads(text) for text in texts]


def test_lists_and_mounts_are_read_by_the_program(
    submit: Submit, data: tuple[Store, str], minicluster: Minicluster
) -> None:
    _store, path = data
    every = {f"part {number}.csv": number + 1 for number in range(7)}
    web = minicluster.url("namenode").replace("http://", "webhdfs://")
    texts = (f"{path}/set é:list", f"{path}/set é/part*:list", f"{path}/set é:mount")
    jobs = [
        submit(READS, inputs=(parse_input(f"T={text}"),), instances=instances)
        for text, instances in zip(texts, (2, 1, 1), strict=True)
    ]
    gang, pattern, mounted = [read(job) for job in jobs]
    assert len(gang) == 2
    assert Counter(name for task in gang for name in task) == Counter(list(every))
    assert {**gang[0], **gang[1]} == every
    assert pattern == [every]
    assert mounted == [{**every, "_SUCCESS": 0}]
    # The web address of the NameNode is another spelling of the same file system.
    (one,) = read(submit(READS, inputs=(parse_input(f"T={web}{path}/set é:list"),)))
    assert one == every


def test_10000_small_files_start_quickly_and_ask_the_namenode_rarely(
    submit: Submit, data: tuple[Store, str], backend: YarnBackend
) -> None:
    store, path = data
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: store.publish(f"{path}/many/f{n:05}", b"x"), range(10_000)))
    count = "import os; v = os.environ['SUBMARINE_INPUT_T']; print(os.path.exists(v), flush=True)"
    submit("print(1)").wait_success(120)
    for mode in ("list", "mount"):
        began = time.monotonic()
        job = submit(count, inputs=(parse_input(f"T={path}/many:{mode}"),))
        until(lambda job=job: bool(list(job.read_log())), seconds=60)  # type: ignore[misc]
        seconds = time.monotonic() - began
        print(f"{mode}: {seconds:.1f} s to the first line")
        assert seconds < 10
        job.wait_success(60)


def test_the_free_disk_of_the_nodes_is_reported(backend: YarnBackend) -> None:
    found = backend.free_disk()
    assert found is not None
    assert found.node
    assert found.free > 1 << 20
