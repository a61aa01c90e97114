"""SequenceFiles that Hadoop's own classes have written, without a cluster."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from submarine_data import open_dataset, sharding
from submarine_minicluster.hadoop import ensure_jars
from submarine_minicluster.machine import find_java
from submarine_minicluster.settings import Settings

pytestmark = pytest.mark.full

SOURCE = Path(__file__).with_name("SequenceFiles.java")
RECORDS = 5000
CODECS = ("DefaultCodec", "DeflateCodec", "GzipCodec", "BZip2Codec", "SnappyCodec")
#: Class of values -> the value of a record, as the Java program computes it.
VALUES: dict[str, Callable[[int], Any]] = {
    "BytesWritable": lambda n: text(n).encode(),
    "ByteWritable": lambda n: struct.unpack("b", struct.pack("B", n & 255))[0],
    "ShortWritable": lambda n: -n,
    "IntWritable": lambda n: -n,
    "VIntWritable": lambda n: n * 1000 - 70_000,
    "VLongWritable": lambda n: n * 1_000_000_007 - 70_000,
    "FloatWritable": lambda n: n / 4,
    "DoubleWritable": lambda n: n / 3,
    "BooleanWritable": lambda n: n % 2 == 0,
    "NullWritable": lambda n: None,
}


def text(number: int) -> str:
    return "é" * (number % 300) + str(number)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A directory with the files, and what the Java program printed."""
    folder = tmp_path_factory.mktemp("sequence-files")
    java = find_java()
    jars = ensure_jars(Settings().hadoop, java, lambda _line: None)
    command = [str(java.binary), "-cp", f"{jars}/*", str(SOURCE)]
    done = subprocess.run(
        [*command, str(folder), *CODECS, "--", *VALUES],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, done.stdout


@pytest.fixture(autouse=True)
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharding, "SMALLEST_UNIT", 10_000)


def read(path: Path) -> list[dict[str, Any]]:
    """The records, by three ranks."""
    shares = [open_dataset(str(path), rank=rank, world=3).records() for rank in range(3)]
    return list(chain.from_iterable(shares))


@pytest.mark.parametrize(
    "name", ["none", *(f"{codec}-{type}" for codec in CODECS for type in ("record", "block"))]
)
def test_each_compression(written: tuple[Path, str], name: str) -> None:
    folder, output = written
    if f"not here: {name.partition('-')[0]}:" in output:
        pytest.skip(output)
    assert read(folder / f"{name}.seq") == [{"key": n, "value": text(n)} for n in range(RECORDS)]


@pytest.mark.parametrize("kind", VALUES)
def test_each_class(written: tuple[Path, str], kind: str) -> None:
    expected = [{"key": n, "value": VALUES[kind](n)} for n in range(RECORDS)]
    assert read(written[0] / f"{kind}.seq") == expected


def test_only_codecs_without_their_native_library_are_left_out(written: tuple[Path, str]) -> None:
    assert set(re.findall(r"^not here: (\w+)", written[1], re.MULTILINE)) <= {"SnappyCodec"}
