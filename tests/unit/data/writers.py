"""Write files of each format, by the package that defines it or byte for byte as specified.

The SequenceFiles are written here as the specification describes them; files of Hadoop's own
classes are read on the minicluster.
"""

from __future__ import annotations

import bz2
import csv
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

#: Bytes with which CRC-32C of TFRecord is masked.
MASK = 0xA282EAD8
MARK = bytes(range(16))
IO = "org.apache.hadoop.io."


def package(name: str) -> Any:
    """An optional package. Set-up installs all of the extra `data`."""
    return pytest.importorskip(name)


def text(path: Path, ids: Sequence[int]) -> None:
    path.write_text("".join(f"{i}\n" for i in ids), encoding="utf-8")


def comma_separated(path: Path, ids: Sequence[int]) -> None:
    with path.open("w", newline="", encoding="utf-8") as target:
        writer = csv.writer(target)
        writer.writerow(["id", "text"])
        writer.writerows([i, f'line, "{i}"\nénd'] for i in ids)


def parquet(path: Path, ids: Sequence[int], group: int = 50) -> None:
    arrow = package("pyarrow")
    table = arrow.table({"id": list(ids), "text": [f"é{i}" for i in ids]})
    package("pyarrow.parquet").write_table(table, path, row_group_size=group)


def orc(path: Path, ids: Sequence[int]) -> None:
    arrow = package("pyarrow")
    table = arrow.table({"id": list(ids), "text": [f"é{i}" for i in ids]})
    package("pyarrow.orc").write_table(table, path, stripe_size=1 << 12, batch_size=64)


def avro(path: Path, ids: Sequence[int]) -> None:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "id", "type": "long"}, {"name": "text", "type": "string"}],
    }
    with path.open("wb") as target:
        records = [{"id": i, "text": f"é{i}"} for i in ids]
        package("fastavro").writer(target, schema, records, codec="deflate", sync_interval=100)


def lmdb(path: Path, ids: Sequence[int]) -> None:
    environment = package("lmdb").open(str(path), subdir=False, map_size=1 << 24, lock=False)
    with environment, environment.begin(write=True) as transaction:
        for i in ids:
            transaction.put(b"%08d" % i, b"v" * 50)


def vint(value: int) -> bytes:
    """An integer of variable length of WritableUtils."""
    if -112 <= value <= 127:
        return struct.pack("b", value)
    base, value = (-112, value) if value >= 0 else (-120, ~value)
    data = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return struct.pack("b", base - len(data)) + data


def hadoop_text(value: str) -> bytes:
    return vint(len(value.encode())) + value.encode()


def snappy(data: bytes) -> bytes:
    """Hadoop's blocks of Snappy: the length of the block, then chunks with their lengths."""
    chunks = [data[i : i + 100] for i in range(0, len(data), 100)]
    packed = [bytes(package("cramjam").snappy.compress_raw(chunk)) for chunk in chunks]
    body = b"".join(struct.pack(">i", len(chunk)) + chunk for chunk in packed)
    return struct.pack(">i", len(data)) + body


def gzipped(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return packer.compress(data) + packer.flush()


CODECS: dict[str, Callable[[bytes], bytes]] = {
    "DefaultCodec": zlib.compress,
    "GzipCodec": gzipped,
    "BZip2Codec": bz2.compress,
    "SnappyCodec": snappy,
}


def sequence_file(
    path: Path,
    records: Sequence[tuple[bytes, bytes]],
    classes: tuple[str, str] = ("LongWritable", "Text"),
    codec: str = "",
    blocks: bool = False,
    every: int = 7,
) -> None:
    """Write serialized records, with a sync mark (or a block) every few of them."""
    compress = CODECS.get(codec, lambda data: data)
    head = b"SEQ\x06" + b"".join(hadoop_text(IO + name) for name in classes)
    head += bytes([bool(codec), blocks])
    head += hadoop_text(f"{IO}compress.{codec}") if codec else b""
    parts = [head + struct.pack(">i", 1) + hadoop_text("a") + hadoop_text("b") + MARK]
    for start in range(0, len(records), every):
        group = records[start : start + every]
        if blocks or start:
            parts.append(b"\xff\xff\xff\xff" + MARK)
        if blocks:
            columns = (
                b"".join(vint(len(key)) for key, _ in group),
                b"".join(key for key, _ in group),
                b"".join(vint(len(value)) for _, value in group),
                b"".join(value for _, value in group),
            )
            packed = [compress(column) for column in columns]
            parts.append(vint(len(group)) + b"".join(vint(len(it)) + it for it in packed))
        else:
            for key, value in group:
                data = compress(value)
                lengths = struct.pack(">ii", len(key) + len(data), len(key))
                parts.append(lengths + key + data)
    path.write_bytes(b"".join(parts))


def sequence(path: Path, ids: Sequence[int]) -> None:
    sequence_file(path, [(struct.pack(">q", i), hadoop_text(f"é{i}")) for i in ids])


def tfrecord(path: Path, ids: Sequence[int]) -> None:
    crc = package("crc32c").crc32c

    def masked(data: bytes) -> bytes:
        value = crc(data)
        return struct.pack("<I", (((value >> 15) | (value << 17)) + MASK) & 0xFFFFFFFF)

    with path.open("wb") as target:
        for i in ids:
            data = example({"id": (3, varint(i)), "text": (1, f"é{i}".encode())})
            length = struct.pack("<Q", len(data))
            target.write(length + masked(length) + data + masked(data))


def varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def example(features: dict[str, tuple[int, bytes]]) -> bytes:
    """A tf.train.Example of features with one value each: its kind, and its bytes (packed)."""
    entries = b""
    for name, (kind, value) in features.items():
        feature = field(kind, field(1, value))
        entries += field(1, field(1, name.encode()) + field(2, feature))
    return field(1, entries)


def records_of(dataset: Any) -> Iterator[int]:
    """The ids of the records, in order, whatever column they are in."""
    for record in dataset.records():
        value = record.get("id", record.get("key", record.get("text")))
        yield int(value[0] if isinstance(value, list) else value)


WRITERS: dict[str, Callable[[Path, Sequence[int]], None]] = {
    "parquet": parquet,
    "orc": orc,
    "csv": comma_separated,
    "txt": text,
    "seq": sequence,
    "tfrecord": tfrecord,
    "avro": avro,
    "mdb": lmdb,
}
