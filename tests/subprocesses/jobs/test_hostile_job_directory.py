"""Readers of data that a job wrote: each keeps its limit in bytes, whatever the files hold.

Each reader runs in a process of its own, whose memory may grow by ``GROWTH`` MiB.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from submarine_jobs.access import JobDirectory, job_directory as limits
from submarine_jobs.errors import StorageError
from submarine_jobs.storage import LocalStorage, base
from submarine_runtime.protocol import MAP_PATH

#: MiB by which a reader may make its process grow.
GROWTH = 350
READER = """
import json, sys
from types import SimpleNamespace
from submarine_jobs.access.job_directory import JobDirectory
from submarine_jobs.outputs.metrics import read_metrics
from submarine_jobs.storage.local import LocalStorage
from submarine_server.base.errors import ApiError
from submarine_server.handlers.program import cells_of, script_of

def memory():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))

directory = JobDirectory(LocalStorage(), sys.argv[1])
job = SimpleNamespace(directory=directory, id="hostile-20261123-0a1b")
read = {
    "record": lambda: directory.read_json("record.json"),
    "events": lambda: len(directory.events()),
    "metrics": lambda: len(read_metrics(directory)),
    "cells": lambda: cells_of(job),
    "script": lambda: len(script_of(job)),
    "spec": directory.spec,
}[sys.argv[2]]
before = memory()
try:
    found = read()
except (ApiError, ValueError) as error:
    found = type(error).__name__
print(json.dumps({"found": found, "grown": memory() - before}))
"""


def read(place: Path, reader: str) -> object:
    done = subprocess.run(
        [sys.executable, "-c", READER, str(place), reader],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout)
    assert answer["grown"] < GROWTH, answer["grown"]
    return answer["found"]


def bundle(place: Path, name: str, data: bytes) -> None:
    with zipfile.ZipFile(place / "bundle.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
        archive.writestr("main.py", "print(1)\n")


def test_a_source_map_that_unpacks_to_much_is_not_read(tmp_path: Path) -> None:
    bundle(tmp_path, MAP_PATH, b" " * (400 << 20))
    assert (tmp_path / "bundle.zip").stat().st_size < 1 << 20
    assert read(tmp_path, "cells") == []


def test_a_bundle_that_lists_many_files_is_refused(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("main.py", "")
    data, end = stream.getvalue(), stream.getvalue().rfind(b"PK\x05\x06")
    listed = data[data.find(b"PK\x01\x02") : end] * 100_000
    tail = bytearray(data[end:])
    tail[8:12] = b"\xff\xff\xff\xff"
    tail[12:16] = len(listed).to_bytes(4, "little")
    (tmp_path / "bundle.zip").write_bytes(data[: data.find(b"PK\x01\x02")] + listed + tail)
    assert read(tmp_path, "script") == "ApiError"


@pytest.mark.parametrize("way", ["names", "rows", "line"])
def test_metrics_of_many_names_or_rows(tmp_path: Path, way: str) -> None:
    place = tmp_path / "metrics" / "worker-0" / "e1-a1"
    place.mkdir(parents=True)
    lines = [json.dumps({"v": 1, "start": 1.0, "devices": ["x"] * 1000})]
    if way == "names":  # each line adds to what the rows after it would copy
        names = [{f"n{n}-{m}": 1 for m in range(10)} for n in range(900)]
        lines += [json.dumps({"t": n, "s": scalars}) for n, scalars in enumerate(names)]
    elif way == "rows":
        lines += [f'{{"t":{n},"s":{{"a":{n}}}}}' for n in range(500_000)]
    else:
        lines += ['{"t":1,"s":[' + "[]," * 4_000_000 + "[]]}"]
    (place / "samples.000000000000").write_bytes("\n".join(lines).encode() + b"\n")
    count = {"names": 900, "rows": 40_000, "line": 0}[way]
    assert read(tmp_path, "metrics") == count


@pytest.mark.parametrize("way", ["large", "many", "lists", "wrong"])
def test_event_segments(tmp_path: Path, way: str) -> None:
    place = tmp_path / "events"
    place.mkdir()
    event = {"seq": 0, "time": 1.0, "kind": "x", "writer": "agent", "detail": "x" * 1000}
    good = json.dumps(event).encode() + b"\n"
    data = {
        "large": b" " * (200 << 20),
        "many": good * 100_000,
        "lists": b'{"seq":0,"data":{"a":[' + b"[]," * (5 << 20) + b"[]]}}\n",
        "wrong": b"[" * 200_000 + b'\n{"seq":[]}\n[]\nnull\n{"state":"odd"}\n' + good,
    }[way]
    (place / "agent-00000.jsonl").write_bytes(data)
    found = read(tmp_path, "events")
    assert isinstance(found, int)
    if way == "many":
        assert found == limits.MAX_EVENTS // len(good)
    else:
        assert found == (way == "wrong")


@pytest.mark.parametrize("data", [b'{"a":[' + b"[]," * (5 << 20) + b"[]]}", b"[" * 200_000])
def test_a_record_of_many_values_is_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "record.json").write_bytes(data)
    assert read(tmp_path, "record") is None


@pytest.mark.parametrize("data", [b" " * (300 << 20), b"{}", b"[" * 200_000])
def test_a_specification_that_is_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "spec.json").write_bytes(data)
    assert read(tmp_path, "spec") in ("ValueError", "FieldError", "JSONDecodeError")


def test_a_directory_of_very_many_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "MAX_ENTRIES", 100)
    (tmp_path / "a").mkdir()
    for number in range(99):
        (tmp_path / "a" / str(number)).touch()
    storage = LocalStorage()
    assert len(storage.walk(str(tmp_path))) == 99
    (tmp_path / "b").touch()
    with pytest.raises(StorageError, match="more than 100 files"):
        storage.walk(str(tmp_path))
    for number in range(99, 102):
        (tmp_path / "a" / str(number)).touch()
    with pytest.raises(StorageError, match="more than 100 files"):
        storage.list_directory(str(tmp_path / "a"))
    assert JobDirectory(storage, str(tmp_path)).events() == []
