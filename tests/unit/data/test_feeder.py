"""The process that writes the records of a stream to a pipe."""

from __future__ import annotations

import datetime
import gzip
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from submarine_data import Batch, DataError, Dataset, Place, feeder, open_dataset
from submarine_data.feeder import History, Mark, Options, Piece
from submarine_data.streams import Position
from tests.waiting import until

START = Mark(0, Position(), 0)


def frames(path: Path, words: list[str], start: Mark = START) -> list[Piece]:
    options = Options.of(words)
    dataset: Dataset = open_dataset(
        str(path), rank=0, world=1, shuffle=options.shuffle, batch_size=options.batch or 1024
    )
    # Some pieces are valid until the next one only.
    pieces = feeder._frames(dataset, options, start)
    return [Piece(bytes(piece.data), piece.after) for piece in pieces]


def joined(pieces: list[Piece]) -> bytes:
    return b"".join(bytes(piece.data) for piece in pieces)


@pytest.mark.parametrize("words", [["epochs=2"], ["epochs=2", "shuffle=3000", "batch=700"]])
@pytest.mark.parametrize("name", ["a.txt", "b.txt.gz", "c.csv"])
def test_a_stream_continues_at_each_of_its_places(
    tmp_path: Path, name: str, words: list[str]
) -> None:
    text = b"".join(b"%d,%s\r\n" % (i, b"x" * (i % 90)) for i in range(7000)) + b"1,last"
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    whole = frames(tmp_path, words)
    assert len(whole) > 4
    assert whole[-1].after.records in (
        14_000,
        14_002,
    )  # The first line of the CSV file is a header.
    for number in (0, 1, len(whole) // 2, len(whole) - 2, len(whole) - 1):
        rest = frames(tmp_path, words, whole[number].after)
        assert joined(rest) == joined(whole[number + 1 :])
        assert [piece.after.records for piece in rest][-1:] in ([], [whole[-1].after.records])
    if not name.endswith("csv") and len(words) == 1:
        assert joined(whole) == (text + b"\n") * 2


@pytest.mark.parametrize(
    ("name", "words"), [("a.txt", []), ("a.txt", ["shuffle=9"]), ("a.csv", [])]
)
def test_a_file_that_became_shorter_is_no_end(tmp_path: Path, name: str, words: list[str]) -> None:
    path = tmp_path / name
    path.write_bytes(b"line\n" * 1000)
    options = Options.of(words)
    dataset = open_dataset(str(path), rank=0, world=1, shuffle=options.shuffle)
    path.write_bytes(b"line\n" * 900)
    with pytest.raises(DataError, match="at byte 4500: it ends there, and had 5000 bytes when"):
        list(feeder._frames(dataset, options, START))


@pytest.mark.parametrize("length", [1, 1000, 70_000, 3_000_000])
def test_long_lines_at_the_borders_of_shares(tmp_path: Path, length: int) -> None:
    count = min(9000, 9_000_000 // length)
    every = [b"%d " % i + b"x" * (length * (i % 3 + 1)) for i in range(count)]
    (tmp_path / "a.txt").write_bytes(b"\n".join(every))
    found = []
    for rank in range(3):
        dataset = open_dataset(str(tmp_path), rank=rank, world=3)
        for piece in feeder._frames(dataset, Options(), START):
            found += bytes(piece.data).split(b"\n")[:-1]
    assert sorted(found) == sorted(every)


def test_arrow_frames_continue_and_keep_the_schema(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = arrow.table(
        {"id": range(5000), "word": arrow.array(["a", "b"] * 2500).dictionary_encode()}
    )
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=1000)
    words = ["frame=arrow", "batch=600", "epochs=2"]
    whole = frames(tmp_path, words)
    read = arrow.ipc.open_stream(joined(whole)).read_all()
    assert read.schema.equals(table.schema)
    assert read.column("id").to_pylist() == [*range(5000), *range(5000)]
    rest = frames(tmp_path, words, whole[3].after)
    ids = arrow.ipc.open_stream(joined(rest)).read_all().column("id").to_pylist()
    assert ids == [*range(2400, 5000), *range(5000)]
    assert arrow.ipc.open_stream(joined(frames(tmp_path, words, whole[-1].after))).read_all() == (
        table.slice(0, 0)
    )


def test_types_of_later_batches_are_those_of_the_first(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    (tmp_path / "a.csv").write_text("x,y\n1,a\n2,b\n")
    (tmp_path / "b.csv").write_text("x,y\n3,c\nword,d\n")
    pieces = frames(tmp_path / "a.csv", ["frame=arrow"])
    assert arrow.ipc.open_stream(joined(pieces)).read_all().to_pydict() == {
        "x": [1, 2],
        "y": ["a", "b"],
    }
    schema = arrow.schema([("x", arrow.int64())])
    with pytest.raises(DataError, match=r"columns x string, which are not those of the stream: "):
        feeder._with_schema(arrow, arrow.record_batch({"x": ["word"]}), schema)
    wide = feeder._with_schema(arrow, arrow.record_batch({"x": [None]}), schema)
    assert wide.schema == schema


def test_json_has_text_for_other_values() -> None:
    numpy = pytest.importorskip("numpy")
    values = {
        "b": b"\xff",
        "d": datetime.date(2026, 1, 2),
        "n": None,
        "a": numpy.arange(2),
        "s": "\u00e9\n",
    }
    line = feeder._json_lines(Batch({name: [value] for name, value in values.items()}))
    assert json.loads(line) == {"b": "/w==", "d": "2026-01-02", "n": None, "a": [0, 1], "s": "é\n"}
    assert line.count(b"\n") == 1


class Fed:
    """A feeder in a thread, for a directory with an order."""

    def __init__(self, folder: Path, files: dict[str, bytes], *words: str) -> None:
        self.folder = folder
        rows = []
        for name, data in files.items():
            (folder / name).write_bytes(data)
            rows.append([str(folder / name), len(data)])
        order = {"files": rows, "rank": 0, "world": 1, "options": words}
        (folder / feeder.ORDER).write_text(json.dumps(order))
        os.mkfifo(folder / feeder.PIPE)
        self.status: int | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        self.status = feeder.main([str(self.folder)])

    def last(self) -> list[Any]:
        entries: list[list[Any]] = json.loads((self.folder / feeder.HISTORY).read_text())["entries"]
        return entries[-1]


def test_the_position_is_behind_what_the_program_has_read(tmp_path: Path) -> None:
    line = b"x" * 99 + b"\n"
    fed = Fed(tmp_path, {"a.txt": line * 30_000}, "ahead=100000")
    with open(tmp_path / "stream", "rb", buffering=0) as source:
        taken = 0
        while taken < 1_000_000:
            taken += len(source.read(50_000))
        until(lambda: fed.last()[3] > 0, seconds=20)
        _time, epoch, position, records, read = fed.last()
        assert (epoch, position) == (0, [0, records, 0])
        assert 0 < records <= (taken - 100_000) // 100
        assert records + 300 <= read <= taken // 100
    fed.thread.join(30)
    assert fed.status == 0
    assert not (tmp_path / "stream").exists()
    assert fed.last()[4] <= taken // 100


def test_the_end_is_noted_when_the_program_has_read_it(tmp_path: Path) -> None:
    fed = Fed(tmp_path, {"a.txt": b"a\nb\n"}, "ahead=0", "epochs=2")
    with open(tmp_path / "stream", "rb", buffering=0) as source:
        assert fed.thread.is_alive()
        text = b""
        while len(text) < 8:
            text += source.read(100)
        assert text == b"a\nb\na\nb\n"
        fed.thread.join(30)
        assert source.read() == b""
    assert fed.last()[1:] == [1, [0, 2, 0], 4, 4]


def test_a_reader_without_data_says_what_is_wrong(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    fed = Fed(tmp_path, {"a.data": b"1"})
    fed.thread.join(30)
    assert fed.status == 1
    assert f"The format of {tmp_path}/a.data cannot be seen from its name" in capfd.readouterr().err
    assert (tmp_path / "stream").exists()


def test_an_old_history_is_thinned_and_other_shares_begin_at_an_epoch(tmp_path: Path) -> None:
    path = str(tmp_path / "history.json")
    history = History(path, Place(0, 2))
    for number in range(600):
        history.add(Mark(1, Position(0, number, 0), number), number + 5, now=True)
    again = History(path, Place(0, 2))
    assert again.entries == history.entries
    assert len(again.entries) <= 240
    assert again.entries[0][3] == 0
    assert [entry[3] for entry in again.entries[-50:]] == list(range(550, 600))
    assert again.start() == Mark(1, Position(0, 599, 0), 599)
    assert History(path, Place(0, 3)).start() == Mark(1, Position(), 599)
