"""Files of HDFS in a program: `submarine_data` in containers, and during an outage."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import secrets
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from submarine_data.remote import (
    WebHdfsFileSystem,
    filesystem,
    open_file,
    remote_file_system,
    use_hadoop_configuration,
)
from submarine_jobs.client import Job, Session
from submarine_minicluster.cluster import Minicluster
from tests.submission import Submit

pytestmark = pytest.mark.cluster

#: The interpreter that virtual environments are made of: it has no package of this project.
BARE_PYTHON = os.path.realpath(sys.executable)
TEXT = "".join(f"line {number} of a file é\n" for number in range(200_000)).encode()


@pytest.fixture
def directory(minicluster: Minicluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A directory of HDFS, removed at the end."""
    monkeypatch.setenv("HADOOP_CONF_DIR", minicluster.environ()["HADOOP_CONF_DIR"])
    path = f"/tmp/remote files {secrets.token_hex(4)}"
    yield f"hdfs://{path}"
    _place, store = WebHdfsFileSystem().located(f"hdfs://{path}")
    store.delete(path, recursive=True)


def put(uri: str, data: bytes) -> None:
    with open_file(uri, "wb") as file:
        file.write(data)


def printed(job: Job) -> Any:
    """Return the JSON value that the program has printed last."""
    job.wait_success(300)
    return json.loads(job.log().data.decode().strip().splitlines()[-1])


READS = """\
import hashlib, json, os, sys
import submarine_data
from submarine_data import remote_file_system
assert "fsspec" not in sys.modules
system = remote_file_system({directory!r})
digests = {{}}
for entry in system.find({directory!r} + "/part-?.txt"):
    with system.open(entry.uri) as file:
        digests[entry.uri] = hashlib.sha256(file.read()).hexdigest()
print(json.dumps([type(system).__name__, submarine_data.__file__, digests]), flush=True)
"""


def test_a_program_reads_with_the_standard_library_only(submit: Submit, directory: str) -> None:
    for number in range(3):
        put(f"{directory}/part-{number}.txt", TEXT[number:])
    job = submit(READS.format(directory=directory), python=BARE_PYTHON)
    client, place, digests = printed(job)
    assert client == "WebHdfsFileSystem"
    assert "submarine_data.zip" in place
    assert digests == {
        f"{directory}/part-{number}.txt": hashlib.sha256(TEXT[number:]).hexdigest()
        for number in range(3)
    }


def test_each_task_of_a_gang_can_import_it(
    submit: Submit, session: Session, directory: str
) -> None:
    put(f"{directory}/part-0.txt", TEXT)
    job = submit(READS.format(directory=directory), python=BARE_PYTHON, instances=2)
    job.wait_success(300)
    for task in ("worker:0", "worker:1"):
        assert hashlib.sha256(TEXT).hexdigest() in job.log(task=task).data.decode()


NATIVE = """\
import json
import pandas
from submarine_data import remote_file_system
system = remote_file_system({directory!r})
with system.open({directory!r} + "/part-0.txt") as file:
    lines = sum(1 for line in file)
frame = pandas.DataFrame({{"a": range(1000), "b": "é"}})
frame.to_csv({directory!r} + "/new/frame.csv", index=False)
back = pandas.read_csv({directory!r} + "/new/frame.csv")
print(json.dumps([type(system).__name__, lines, bool((back == frame).all().all())]), flush=True)
"""


def test_a_program_reads_by_hdfs_native_and_writes_by_fsspec(
    submit: Submit, directory: str
) -> None:
    put(f"{directory}/part-0.txt", TEXT)
    job = submit(NATIVE.format(directory=directory), memory=512)
    assert printed(job) == ["HdfsNativeFileSystem", 200_000, True]


def test_the_examples_of_the_page_run(submit: Submit, directory: str) -> None:
    page = (Path(__file__).parents[3] / "docs" / "hdfs-in-programs.md").read_text("utf-8")
    examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(examples) == 2
    put(f"{directory}/train.csv", b"a,b\n1,2\n3,4\n")
    source = "\n".join(examples).replace("hdfs:///data/digits", directory)
    job = submit(source, memory=512)
    job.wait_success(300)
    assert f"{directory}/train.csv 12 3" in job.log().data.decode()
    assert open_file(f"{directory}/note.txt").read() == b"done"
    assert open_file(f"{directory}/summary/train.csv").read().startswith(b",a,b\n")


def test_pyarrow_reads_and_writes(directory: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"a": list(range(10_000))})
    system = filesystem()
    parquet.write_table(table, f"{directory}/new/a.parquet", filesystem=system)
    assert parquet.read_table(f"{directory}/new/a.parquet", filesystem=system) == table
    path = directory.removeprefix("hdfs://")
    parquet.write_to_dataset(table, f"{path}/set", filesystem=system)
    assert parquet.read_table(f"{path}/set", filesystem=system) == table


def test_file_systems_are_pickled_for_other_processes(directory: str) -> None:
    put(f"{directory}/part-0.txt", TEXT)
    for client in ("webhdfs", "hdfs-native"):
        system = remote_file_system(directory, client)
        assert len(system.find(directory)) == 1
        again = pickle.loads(pickle.dumps(system))
        assert again.open(f"{directory}/part-0.txt").read() == TEXT


@pytest.mark.full
@pytest.mark.parametrize("client", ["webhdfs", "hdfs-native"])
def test_a_reader_outlasts_a_restart_of_the_namenode(
    minicluster: Minicluster, directory: str, client: str
) -> None:
    block = os.urandom(1 << 20)
    for number in range(2):
        put(f"{directory}/part-{number}", block * 40)
    system = remote_file_system(directory, client)
    with system.open(f"{directory}/part-0") as file:
        begin = file.read(1 << 20)
        minicluster.kill("namenode")
        restart = threading.Timer(10, minicluster.restart, ["namenode"])
        restart.start()
        started = time.monotonic()
        rest = file.read()
        with system.open(f"{directory}/part-1") as other:
            assert other.read() == block * 40
        waited = time.monotonic() - started
        restart.join()
    assert begin + rest == block * 40
    assert waited > 9


def test_a_configuration_of_another_directory(
    minicluster: Minicluster, directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(f"{directory}/one", b"1")
    conf = minicluster.environ()["HADOOP_CONF_DIR"]
    monkeypatch.delenv("HADOOP_CONF_DIR")
    monkeypatch.setenv("SUBMARINE_DATA_CONFIG", "/nowhere")
    use_hadoop_configuration(conf)
    assert open_file(f"{directory}/one").read() == b"1"
