"""Each format: what was written is read, by any number of ranks, and damage is one sentence."""

from __future__ import annotations

import gzip
import struct
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from submarine_data import DataError, open_dataset, sharding
from tests.unit.data import writers


@pytest.fixture
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of some kilobytes are divided."""
    monkeypatch.setattr(sharding, "SMALLEST_UNIT", 256)


def read(path: Path | str, **options: Any) -> list[int]:
    return list(writers.records_of(open_dataset(str(path), **options)))


@pytest.mark.usefixtures("small_units")
@pytest.mark.parametrize("suffix", writers.WRITERS)
@pytest.mark.parametrize("world", [1, 3])
def test_every_record_goes_to_one_rank(suffix: str, world: int, tmp_path: Path) -> None:
    for number, ids in enumerate((range(400), range(400, 450))):
        writers.WRITERS[suffix](tmp_path / f"té st {number}.{suffix}", ids)
    found = [read(tmp_path, rank=rank, world=world, batch_size=32) for rank in range(world)]
    assert sorted(chain.from_iterable(found)) == list(range(450))
    assert sum(map(bool, found)) >= min(world, 2)


@pytest.mark.usefixtures("small_units")
@pytest.mark.parametrize("suffix", ["parquet", "orc", "txt", "seq", "tfrecord", "avro", "mdb"])
def test_one_large_file_is_divided(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"data.{suffix}"
    writers.WRITERS[suffix](path, range(2000))
    dataset = open_dataset(path.as_uri(), rank=0, world=2)
    assert dataset.describe()["units"] > 1
    shares = [read(path.as_uri(), rank=rank, world=2) for rank in range(2)]
    assert list(chain.from_iterable(shares)) == list(range(2000))
    assert 600 < len(shares[0]) < 1400


@pytest.mark.parametrize("suffix", writers.WRITERS)
def test_a_truncated_file_is_one_sentence(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"data.{suffix}"
    writers.WRITERS[suffix](path, range(200))
    data = path.read_bytes()
    if suffix in ("csv", "txt"):
        gzip_path = tmp_path / f"data.{suffix}.gz"
        gzip_path.write_bytes(gzip.compress(data)[:-20])
        path = gzip_path
    else:
        path.write_bytes(data[: len(data) * 2 // 3 - 1])
    with pytest.raises(DataError, match=r"data\.\w+(\.gz)? is damaged at .*\.$") as caught:
        read(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", writers.WRITERS)
def test_other_bytes_are_one_sentence(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"data.{suffix}"
    path.write_bytes(b"\xff\x00 these are no records at all, whatever the format is" * 9)
    with pytest.raises(DataError, match=r"^\S+data\.\w+ is damaged at .*\.$") as caught:
        read(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", writers.WRITERS)
def test_an_empty_file(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"data.{suffix}"
    path.touch()
    if suffix in ("txt", "csv", "tfrecord"):
        assert read(path) == []
    else:
        with pytest.raises(DataError, match="is damaged at its"):
            read(path)


# Parquet


def test_a_damaged_row_group_is_named(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    writers.parquet(path, range(200))
    chunk = writers.package("pyarrow.parquet").read_metadata(path).row_group(2).column(0)
    data = bytearray(path.read_bytes())
    data[chunk.dictionary_page_offset : chunk.dictionary_page_offset + 30] = b"\xff" * 30
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"data\.parquet is damaged at row group 2: "):
        read(path)


def test_columns_that_differ_name_both_files(tmp_path: Path) -> None:
    arrow, parquet = writers.package("pyarrow"), writers.package("pyarrow.parquet")
    parquet.write_table(arrow.table({"x": [1]}), tmp_path / "a.parquet")
    parquet.write_table(arrow.table({"x": ["1"]}), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"x is int64 in \S+a\.parquet and string in \S+b\.parq"):
        list(open_dataset(str(tmp_path)))
    parquet.write_table(arrow.table({"x": [2], "y": [3]}), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"y of \S+b\.parquet is missing in \S+a\.parquet"):
        list(open_dataset(str(tmp_path)))
    found = open_dataset(str(tmp_path), columns=["x"]).records()
    assert list(found) == [{"x": 1}, {"x": 2}]
    with pytest.raises(DataError, match=r"There is no column z; the columns are x\."):
        list(open_dataset(str(tmp_path), columns=["z"]))


def test_statistics_exclude_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data.parquet"
    writers.parquet(path, range(200))
    parquet, groups = writers.package("pyarrow.parquet"), []
    whole = parquet.ParquetFile.iter_batches

    def noted(self: Any, **options: Any) -> Any:
        groups.extend(options["row_groups"])
        return whole(self, **options)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", noted)
    conditions = [("id", ">=", 120), ("id", "<", 140), ("text", "!=", "é130")]
    found = read(path, filter=conditions, columns=["id"])
    assert found == [i for i in range(120, 140) if i != 130]
    assert groups == [2]


# ORC, Avro


@pytest.mark.parametrize("suffix", ["orc", "avro"])
def test_columns_of_orc_and_avro_differ(suffix: str, tmp_path: Path) -> None:
    writers.WRITERS[suffix](tmp_path / f"a.{suffix}", range(3))
    other = tmp_path / f"b.{suffix}"
    if suffix == "orc":
        table = writers.package("pyarrow").table({"id": ["x"], "text": ["y"]})
        writers.package("pyarrow.orc").write_table(table, other)
    else:
        fields = [{"name": "id", "type": "string"}, {"name": "text", "type": "string"}]
        with other.open("wb") as target:
            schema = {"type": "record", "name": "r", "fields": fields}
            writers.package("fastavro").writer(target, schema, [{"id": "x", "text": "y"}])
    with pytest.raises(DataError, match=rf"id is \w+ in \S+a\.{suffix} and string in \S+b\."):
        read(tmp_path)
    found = open_dataset(str(tmp_path), columns=["text"]).records()
    assert [record["text"] for record in found] == ["é0", "é1", "é2", "y"]


# CSV and text


def test_types_of_csv(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b,c,d\n1,0.5,true,x\n2,,False,\n", encoding="utf-8")
    first, second = open_dataset(str(path)).records()
    assert first == {"a": 1, "b": 0.5, "c": True, "d": "x"}
    assert second["b"] != second["b"]
    assert (second["c"], second["d"]) == (False, "")
    (only, _) = open_dataset(str(path), columns=["a"], types={"a": float}).records()
    assert only == {"a": 1.0}


def test_csv_without_line_ends_in_values_is_divided(small_units: None, tmp_path: Path) -> None:
    path = tmp_path / "data.tsv"
    path.write_text("id\ttext\n" + "".join(f'{i}\t"a\tb"\n' for i in range(300)))
    found = [read(path, rank=r, world=4, newlines_in_values=False) for r in range(4)]
    assert list(chain.from_iterable(found)) == list(range(300))
    assert all(found)
    path.write_text('id\ttext\n1\t"a\nb"\n')
    with pytest.raises(DataError, match="a value contains a line end"):
        read(path, newlines_in_values=False)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("1,2\n3\n", r"damaged at line 3: 1 values instead of 2\."),
        ('1,"2\n', r"damaged at line 2: unexpected end of data\."),
    ],
)
def test_damaged_csv(body: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b\n" + body)
    with pytest.raises(DataError, match=sentence):
        list(open_dataset(str(path)))


def test_a_value_of_another_type_names_column_and_place(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a\n" + "1\n" * 1000 + "x\n")
    with pytest.raises(DataError, match=r"column a of \S+data\.csv .* no int .* give types="):
        list(open_dataset(str(path)))
    (tmp_path / "e.csv").write_text("b\n1\n")
    with pytest.raises(DataError, match=r"columns of \S+e\.csv are b, those of \S+data\.csv are a"):
        list(open_dataset(str(tmp_path), types={"a": str}))


def test_lines_of_text(small_units: None, tmp_path: Path) -> None:
    lines = [f"é{'x' * (i % 40)}" for i in range(200)] + ["no end"]
    path = tmp_path / "data.txt"
    path.write_bytes("\r\n".join(lines).encode())
    found = []
    for rank in range(7):
        found += [r["text"] for r in open_dataset(str(path), rank=rank, world=7).records()]
    assert found == lines
    with pytest.raises(DataError, match=r"data\.txt is damaged at byte 0: ordinal not in range"):
        list(open_dataset(str(path), encoding="ascii"))


# SequenceFile


@pytest.mark.usefixtures("small_units")
@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("codec", ["", *writers.CODECS])
def test_compression_of_sequence_files(codec: str, blocks: bool, tmp_path: Path) -> None:
    if blocks and not codec:
        return  # Blocks are compressed.
    path = tmp_path / "data.seq"
    records = [(struct.pack(">q", i), writers.hadoop_text("é" * (i % 300))) for i in range(200)]
    writers.sequence_file(path, records, codec=codec, blocks=blocks)
    found = []
    for rank in range(3):
        found += list(open_dataset(str(path), rank=rank, world=3).records())
    assert found == [{"key": i, "value": "é" * (i % 300)} for i in range(200)]


@pytest.mark.parametrize(
    ("name", "data", "value"),
    [
        ("BytesWritable", b"\0\0\0\3abc\0\0", b"abc"),
        ("IntWritable", struct.pack(">i", -5), -5),
        ("ShortWritable", struct.pack(">h", -5), -5),
        ("ByteWritable", b"\xfb", -5),
        ("VIntWritable", writers.vint(-70000), -70000),
        ("VLongWritable", writers.vint(1 << 40), 1 << 40),
        ("FloatWritable", struct.pack(">f", 0.5), 0.5),
        ("DoubleWritable", struct.pack(">d", 0.1), 0.1),
        ("BooleanWritable", b"\1", True),
        ("NullWritable", b"", None),
    ],
)
def test_classes_of_sequence_files(name: str, data: bytes, value: object, tmp_path: Path) -> None:
    path = tmp_path / "data.seq"
    writers.sequence_file(path, [(data, data)], classes=(name, name))
    assert list(open_dataset(str(path)).records()) == [{"key": value, "value": value}]


def test_unknown_classes_and_codecs_are_named(tmp_path: Path) -> None:
    path = tmp_path / "data.seq"
    writers.sequence_file(path, [(b"", b"")], codec="Lz4Codec")
    with pytest.raises(DataError, match=r"compressed by Lz4Codec; the codecs are DefaultCodec, "):
        read(path)
    writers.sequence_file(path, [(b"", b"")], classes=("Text", "MapWritable"))
    with pytest.raises(DataError, match=r"class org\.apache\.hadoop\.io\.MapWritable; the cl"):
        read(path)


# TFRecord, LMDB


def test_a_wrong_checksum_names_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "data.tfrecord"
    writers.tfrecord(path, range(10))
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"damaged at byte \d+: the checksum does not match\."):
        read(path)


def test_examples_and_records(tmp_path: Path) -> None:
    path = tmp_path / "data.tfrecord"
    writers.tfrecord(path, [7, 300])
    assert list(open_dataset(str(path)).records()) == [
        {"id": [7], "text": ["é7".encode()]},
        {"id": [300], "text": ["é300".encode()]},
    ]
    found = open_dataset(str(path), scalars=["id"], columns=["id"]).records()
    assert list(found) == [{"id": 7}, {"id": 300}]
    raw = list(open_dataset(str(path), example=False).records())
    assert raw[0]["record"].startswith(b"\n")
    with pytest.raises(DataError, match=r"at byte 0: the record is no tf\.train\.Example \(the fe"):
        list(open_dataset(str(path), scalars=["other"]))


@pytest.mark.full
def test_examples_of_tensorflow(tmp_path: Path) -> None:
    """Its own writer, and its own reader of the files of the tests."""
    tf = writers.package("tensorflow")
    train = tf.train
    path = tmp_path / "data.tfrecord"
    values = [
        {
            "floats": train.Feature(float_list=train.FloatList(value=[n / 2, -1.0])),
            "ints": train.Feature(int64_list=train.Int64List(value=[n - 3, -(1 << 62), 1 << 40])),
            "one": train.Feature(int64_list=train.Int64List(value=[n])),
            "bytes é": train.Feature(bytes_list=train.BytesList(value=[b"x" * n, b""])),
            "empty": train.Feature(),
        }
        for n in range(200)
    ]
    examples = [train.Example(features=train.Features(feature=one)) for one in values]
    expected = [
        {
            "floats": [n / 2, -1.0],
            "ints": [n - 3, -(1 << 62), 1 << 40],
            "one": n,
            "bytes é": [b"x" * n, b""],
            "empty": [],
        }
        for n in range(200)
    ]
    for kind, suffix in (("", ""), ("GZIP", ".gz")):
        name = f"{path}{suffix}"
        with tf.io.TFRecordWriter(name, tf.io.TFRecordOptions(compression_type=kind)) as target:
            for example in examples:
                target.write(example.SerializeToString())
        assert list(open_dataset(name, scalars=["one"]).records()) == expected
    ours = tmp_path / "ours.tfrecord"
    writers.tfrecord(ours, range(50))
    kinds = {
        "id": tf.io.FixedLenFeature([], tf.int64),
        "text": tf.io.FixedLenFeature([], tf.string),
    }
    data = tf.data.TFRecordDataset(str(ours)).map(
        lambda one: tf.io.parse_single_example(one, kinds)
    )
    assert [int(one["id"]) for one in data] == list(range(50))


def test_lmdb_reads_values_and_no_lock(tmp_path: Path) -> None:
    folder = tmp_path / "data.lmdb"
    folder.mkdir()
    writers.lmdb(folder / "data.mdb", range(5))
    (folder / "lock.mdb").touch()
    (batch,) = open_dataset(str(folder))
    assert batch.column("key") == [b"%08d" % i for i in range(5)]
    assert batch.column("value") == [b"v" * 50] * 5


# Images


def test_images_have_the_label_of_their_directory(tmp_path: Path) -> None:
    image = writers.package("PIL.Image")
    for number, name in enumerate(("cat ü", "dog")):
        (tmp_path / name).mkdir()
        image.new("RGB", (4, 3), (10 * number, 0, 0)).save(tmp_path / name / "1.png")
    first, second = open_dataset(str(tmp_path)).records()
    assert (first["label"], first["class"], second["label"]) == (0, "cat ü", 1)
    assert first["image"].shape == (3, 4, 3)
    assert second["image"][0, 0].tolist() == [10, 0, 0]
    (batch,) = open_dataset(str(tmp_path), image_size=(2, 5)).to_numpy()
    assert batch["image"].shape == (2, 2, 5, 3)
    (raw, _) = open_dataset(str(tmp_path), decode=False).records()
    assert raw["image"].startswith(b"\x89PNG")
    path = tmp_path / "dog" / "1.png"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(DataError, match=r"dog/1\.png is damaged at its image: "):
        list(open_dataset(str(tmp_path)))


# Detection and options


def test_the_format_is_detected_by_the_first_bytes(tmp_path: Path) -> None:
    for suffix in ("parquet", "orc", "seq", "avro"):
        path = tmp_path / f"part-{suffix}"
        writers.WRITERS[suffix](path, range(3))
        assert read(path) == [0, 1, 2]
    (tmp_path / "part-0").write_text("a\n")
    with pytest.raises(DataError, match=r"part-0 cannot be seen from its name: give format="):
        read(tmp_path / "part-0")
    assert len(list(open_dataset(str(tmp_path / "part-0"), format="text"))) == 1


def test_wrong_formats_and_options(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\n")
    with pytest.raises(DataError, match="The format json is unknown; the formats are parquet, "):
        open_dataset(str(tmp_path), format="json")
    with pytest.raises(DataError, match="The format text does not have these options: header"):
        open_dataset(str(tmp_path), header=True)
    (tmp_path / "b.csv").write_text("1\n")
    with pytest.raises(DataError, match=r"a\.txt is text, \S+b\.csv is csv: give a URI of one"):
        open_dataset(str(tmp_path))


def test_a_missing_package_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(DataError, match="The format parquet needs the package pyarrow: pip insta"):
        list(open_dataset(str(tmp_path)))
