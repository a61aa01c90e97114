"""Faults of HDFS for `submarine_data`: outages, quotas, damaged and different files, odd names."""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from submarine_data import DataError, filesystem, open_dataset, open_file
from submarine_data.remote import WebHdfsFileSystem
from submarine_jobs.model import NamedOutput
from submarine_minicluster.cluster import Minicluster
from submarine_minicluster.hadoop import SUPERUSER
from tests.local.data.large_parquet import GROUPS, LIMIT_MB, ROWS, peak_of_reading, write_large
from tests.submission import Submit

pytestmark = pytest.mark.cluster
ODD = "größe 1+%20 [x] #?&=é"


@pytest.fixture
def path(minicluster: Minicluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A directory of HDFS, removed at the end."""
    monkeypatch.setenv("HADOOP_CONF_DIR", minicluster.environ()["HADOOP_CONF_DIR"])
    path = f"/tmp/data faults {secrets.token_hex(4)}"
    yield path
    _place, store = WebHdfsFileSystem().located(f"hdfs://{path}")
    store.delete(path, recursive=True)


def uris(cluster: Minicluster, path: str) -> list[str]:
    """The URI for each client: hdfs-native where it is installed, and WebHDFS."""
    return [f"hdfs://{path}", cluster.url("namenode").replace("http", "webhdfs", 1) + path]


def write_table(uri: str, columns: dict[str, Any], group: int = 1000) -> None:
    arrow, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    with filesystem().open(uri, "wb") as file:
        parquet.write_table(arrow.table(columns), file, row_group_size=group, compression="none")


def error_of(uri: str) -> str:
    with pytest.raises(DataError) as caught:
        list(open_dataset(uri, rank=0, world=1))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_odd_names_and_files_of_another_time(minicluster: Minicluster, path: str) -> None:
    for number in range(2):
        place = f"hdfs://{path}/{ODD}/day={number}/{number} {ODD}.parquet"
        write_table(place, {"id": [number]})
    _place, store = WebHdfsFileSystem().located(f"hdfs://{path}")
    for uri in uris(minicluster, path):
        dataset = open_dataset(f"{uri}/{ODD}", rank=0, world=1, batch_size=1)
        expected = [{"id": 0, "day": 0}, {"id": 1, "day": 1}]
        assert list(dataset.records()) == expected
        next(iter(dataset.epoch(0)))
        # A clock that is wrong: neither the order of files nor a state depends on times.
        name = f"{path}/{ODD}/day=0/0 {ODD}.parquet"
        for milliseconds in (4_102_444_800_000, 1000):
            store.call("PUT", name, "SETTIMES", {"modificationtime": str(milliseconds)})
            again = open_dataset(f"{uri}/{ODD}", rank=0, world=1, batch_size=1)
            again.restore(dataset.state())
            assert list(again.records()) == expected[1:]


def test_damaged_and_different_files(minicluster: Minicluster, path: str) -> None:
    numbers = list(range(10_000))
    write_table(f"hdfs://{path}/a/1.parquet", {"id": numbers})
    with open_file(f"hdfs://{path}/a/1.parquet") as file:
        data = bytearray(file.read())
    parquet, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    chunk = parquet.read_metadata(arrow.BufferReader(data)).row_group(3).column(0)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    data[start : start + 40] = b"\xff" * 40
    with open_file(f"hdfs://{path}/b/bad é.parquet", "wb") as file:
        file.write(data)
    with open_file(f"hdfs://{path}/c/short.parquet", "wb") as file:
        file.write(data[: len(data) // 2])
    write_table(f"hdfs://{path}/a/2.parquet", {"id": ["x"]})
    for uri in uris(minicluster, path):
        assert error_of(f"{uri}/b").startswith(f"{uri}/b/bad é.parquet is damaged at row group 3: ")
        assert error_of(f"{uri}/c").startswith(f"{uri}/c/short.parquet is damaged at its footer: ")
        assert error_of(f"{uri}/a") == (
            f"The column id is int64 in {uri}/a/1.parquet and string in {uri}/a/2.parquet."
        )
        assert error_of(f"{uri}/nothing") == f"There is no file {uri}/nothing."


def set_quota(cluster: Minicluster, path: str, size: int) -> None:
    base = f"{cluster.url('namenode')}/webhdfs/v1{path}?user.name={SUPERUSER}&op="
    for words in ("MKDIRS&permission=777", f"SETQUOTA&storagespacequota={size}"):
        put = urllib.request.Request(base + words, method="PUT")
        urllib.request.urlopen(put, timeout=20).close()


FULL = """
import json, os, pathlib
from submarine_data import DataError, filesystem, open_file
found = []
for write in (lambda: open_file(URI, "wb"), lambda: filesystem().open(URI, "wb")):
    try:
        with write() as file:
            file.write(b"x" * 100_000)
    except DataError as exc:
        found.append(str(exc))
print(json.dumps(found), flush=True)
pathlib.Path(os.environ["SUBMARINE_OUTPUT_pred"], "a é.csv").write_bytes(b"x" * 100_000)
"""


def test_a_quota_is_one_sentence_at_once(
    minicluster: Minicluster, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", minicluster.environ()["HADOOP_CONF_DIR"])
    path = f"/tmp/quota-{secrets.token_hex(4)}"
    set_quota(minicluster, path, 4096)
    job = submit(
        FULL.replace("URI", repr(f"hdfs://{path}/new/a é.bin")),
        outputs=(NamedOutput("pred", f"hdfs://{path}/saved/pred"),),
        memory=512,
    )
    record = job.wait(300)
    began = time.monotonic()
    sentences = json.loads(job.log().data.decode().splitlines()[-1])
    assert time.monotonic() - began < 60
    assert len(sentences) == 2
    for sentence in sentences:
        assert sentence.startswith(f"hdfs://{path}/new/a é.bin cannot be accessed: ")
        assert "quota of" in sentence
        assert "\n" not in sentence
    assert "quota of" in record.detail
    assert "\n" not in record.detail
    _place, store = WebHdfsFileSystem().located(f"hdfs://{path}")
    assert store.entries(f"{path}/new") == []
    assert store.entries(f"{path}/saved/pred") == []


@pytest.mark.full
@pytest.mark.parametrize("client", [0, 1], ids=["hdfs", "webhdfs"])
def test_reading_and_writing_outlast_an_outage_of_60_s(
    minicluster: Minicluster, path: str, client: int
) -> None:
    numpy = pytest.importorskip("numpy")
    rows = 1 << 20
    ids = numpy.arange(rows)
    noise = {f"x{number}": numpy.random.default_rng(number).random(rows) for number in range(7)}
    write_table(f"hdfs://{path}/a.parquet", {"id": ids, **noise}, group=1 << 17)
    uri = uris(minicluster, path)[client]
    batches = open_dataset(uri, batch_size=1000, prefetch=1 << 20, rank=0, world=1).to_numpy()
    iterator = iter(batches)
    found = [next(iterator)["id"]]
    writer = open_file(f"hdfs://{path}/b.bin", "wb")
    writer.write(os.urandom(1000))
    minicluster.kill("namenode")
    restart = threading.Timer(60, minicluster.restart, ["namenode"])
    restart.start()
    began = time.monotonic()
    try:
        # A writer waits; the reader needs the NameNode for each range of WebHDFS.
        with filesystem().open(f"hdfs://{path}/c.bin", "wb") as other:
            other.write(b"x" * 1000)
        assert time.monotonic() - began > 55
        writer.close()
        found += [batch["id"] for batch in iterator]
    finally:
        restart.join()
    assert numpy.array_equal(numpy.concatenate(found), ids)
    names = {entry.uri.rpartition("/")[2] for entry in WebHdfsFileSystem().find(f"hdfs://{path}")}
    assert names == {"a.parquet", "b.bin", "c.bin"}


@pytest.mark.full
def test_5_gb_in_large_row_groups_are_read_with_little_memory(
    minicluster: Minicluster, path: str, tmp_path: Path
) -> None:
    with filesystem().open(f"hdfs://{path}/large.parquet", "wb") as file:
        write_large(file)
    variables = {"HADOOP_CONF_DIR": minicluster.environ()["HADOOP_CONF_DIR"]}
    for uri in uris(minicluster, path):
        began = time.monotonic()
        records, peak = peak_of_reading(f"{uri}/large.parquet", variables)
        print(f"{uri.partition(':')[0]}: {time.monotonic() - began:.0f} s, peak {peak:.0f} MB")
        assert records == GROUPS * ROWS
        assert peak < LIMIT_MB
