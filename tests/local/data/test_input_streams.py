"""Whole jobs on the local backend with inputs of mode ``stream``."""

from __future__ import annotations

import gzip
import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.model import Profile
from submarine_jobs.options import parse_input
from submarine_runtime.protocol import EndReason
from tests.local.data.data_files import write
from tests.submission import Submit, submitting
from tests.unit.pages import ROOT
from tests.waiting import until

#: Copies the stream to a file of the task and attempt in the directory OUT, record by record.
COPY = """
import os
name = "{SUBMARINE_INDEX}-e{SUBMARINE_EPOCH}".format(**os.environ)
path = os.environ["SUBMARINE_INPUT_T"]
source = open(0 if path == "-" else path, "rb")
with open(os.path.join(OUT, name), "wb", buffering=0) as target:
    for line in source:
        target.write(line)
print("read to the end", flush=True)
"""


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(Profile(backend="local", state_dir=tmp_path / "state"))


@pytest.fixture
def submit(session: Session) -> Iterator[Submit]:
    with submitting(session) as made:
        yield made


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def lines(count: int, first: int = 0) -> bytes:
    return b"".join(b"%09d %s\n" % (i, b"x" * (i % 80)) for i in range(first, first + count))


def streaming(submit: Submit, source: str, uri: str, out: Path, **fields: Any) -> Job:
    inputs = (parse_input(f"T={uri}"),)
    return submit(f"OUT = {str(out)!r}\n{source}", inputs=inputs, **fields)


def copied(out: Path) -> list[bytes]:
    return [line for path in sorted(out.iterdir()) for line in path.read_bytes().splitlines()]


def test_two_workers_read_each_record_once_in_each_epoch(
    submit: Submit, tmp_path: Path, out: Path
) -> None:
    write(tmp_path / "set é", {"part %2B 1.txt": lines(70_000), "2.txt": lines(9000, 70_000)})
    write(tmp_path / "set é", {"_SUCCESS": b"not data\n", "last.txt": b"no line feed"})
    job = streaming(submit, COPY, f"{tmp_path}/set é:stream=epochs=2", out, instances=2)
    job.wait_success(60)
    every = [*lines(79_000).splitlines(), b"no line feed"]
    assert Counter(copied(out)) == Counter(every + every)
    sizes = [path.stat().st_size for path in out.iterdir()]
    assert len(sizes) == 2
    assert max(sizes) < 1.5 * min(sizes)


#: Processes records slowly; the chief saves a checkpoint. Time and text of each record are in a
#: file of the task and epoch. The programs of the first epoch do not end.
TRAIN = """
import os, time
index, epoch = os.environ["SUBMARINE_INDEX"], os.environ["SUBMARINE_EPOCH"]
folder = os.environ["SUBMARINE_CHECKPOINT_DIR"]
source = open(os.environ["SUBMARINE_INPUT_T"], "rb", buffering=1 << 16)
target = open(os.path.join(OUT, f"{index}-e{epoch}"), "wb", buffering=0)
restored = os.path.exists(os.path.join(folder, "state"))
print("restored", restored, flush=True)
for count, line in enumerate(source, 1):
    target.write(b"%.6f %s" % (time.time(), line))
    if index == "0" and epoch == "1" and count == SAVE:
        with open(os.path.join(OUT, "saved"), "w") as file:
            file.write(str(time.time()))
        with open(os.path.join(folder, "state.tmp"), "w") as file:
            file.write(str(count))
        os.rename(os.path.join(folder, "state.tmp"), os.path.join(folder, "state"))
    if epoch == "1":
        time.sleep(0.0001)
while epoch == "1":
    time.sleep(1)
"""


def processed(out: Path, number: int, epoch: int) -> list[tuple[float, bytes]]:
    """Return time and text of the records that a task processed in an epoch."""
    words = (line.split(b" ", 1) for line in (out / f"{number}-e{epoch}").read_bytes().splitlines())
    return [(float(time), text) for time, text in words]


@pytest.mark.full
@pytest.mark.parametrize("victim", ["worker:0", "worker:1", "agent of worker:1"])
def test_no_record_is_lost_when_a_worker_is_killed_between_snapshots(
    submit: Submit, tmp_path: Path, out: Path, victim: str
) -> None:
    """The chief saves a checkpoint; the stream of the other worker returns to the same time."""
    write(tmp_path / "set", {f"part {n}.txt": lines(9000, n * 9000) for n in range(6)})
    text = f"{tmp_path}/set:stream=ahead=64k,shuffle=500,seed=3"
    job = streaming(submit, f"SAVE = 8000\n{TRAIN}", text, out, instances=2, max_restarts=2)
    until(lambda: list(Path(job.directory.path, "snapshots").rglob("checkpoints-*.json")))
    pid = next(task.pid for task in job.record().tasks if victim.endswith(task.task))
    assert pid
    # Without its agent, the worker continues by the positions in the job directory.
    os.kill(psutil.Process(pid).ppid() if victim.startswith("agent") else pid, signal.SIGKILL)
    job.wait_success(120)
    saved = float((out / "saved").read_text())
    shares = []
    for number in (0, 1):
        before, after = processed(out, number, 1), processed(out, number, 2)
        in_checkpoint = {text for time, text in before if time <= saved}
        assert 1000 < len(in_checkpoint) < len(before)
        shares.append(in_checkpoint | {text for _time, text in after})
        assert len(after) < len(shares[number]), "the stream began anew"
        (warning,) = [
            one for one in job.record().warnings if one.startswith(f"worker:{number}: --input T")
        ]
        (event,) = [
            one
            for one in job.record().events
            if (one.kind, one.task) == ("stream", f"worker:{number}")
        ]
        repeated = event.data["repeated"]
        assert f"had read {repeated} of the records" in warning
        # Also the records that the program had in its buffer count as read.
        again = len({text for _time, text in before} & {text for _time, text in after})
        if not victim.startswith("agent"):
            assert again <= repeated < again + 3000
    # Of the data of both, nothing is missing, and nothing belongs to both.
    assert shares[0] | shares[1] == set(lines(54_000).splitlines())
    assert not shares[0] & shares[1]


def test_a_damaged_file_ends_the_job_and_is_no_end_of_the_data(
    submit: Submit, tmp_path: Path, out: Path
) -> None:
    data = gzip.compress(lines(30_000))
    write(tmp_path / "set", {"a.txt": lines(2000), "b.txt.gz": data[:-1000]})
    job = streaming(submit, COPY, f"{tmp_path}/set:stream", out)
    record = job.wait(60)
    assert record.reason is EndReason.INPUT_MISSING
    assert record.detail.startswith(f"--input T: {tmp_path}/set/b.txt.gz is damaged at byte ")
    assert "read to the end" not in b"".join(chunk.data for chunk in job.read_log()).decode()


@pytest.mark.full
def test_a_reader_that_is_killed_ends_the_job(submit: Submit, tmp_path: Path, out: Path) -> None:
    """The process beside the program dies; the program must not see a clean end."""
    write(tmp_path / "set", {"a.txt": lines(200_000)})
    kill = """
import os, signal
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        words = open(f"/proc/{pid}/cmdline").read().split("\\0")
    except OSError:
        continue
    if "submarine_data.feeder" in words and os.path.dirname(path) in words:
        os.kill(int(pid), signal.SIGKILL)
"""
    source = COPY.replace("with open(os.path", f"next(source)\n{kill}\nwith open(os.path")
    record = streaming(submit, source, f"{tmp_path}/set:stream", out).wait(60)
    assert record.reason is EndReason.INPUT_MISSING
    assert record.detail == "--input T: the process that reads the data ended with status -9"


@pytest.mark.full
def test_a_program_that_reads_no_more_succeeds(submit: Submit, tmp_path: Path) -> None:
    write(tmp_path / "set", {"a.csv": b"id,name\n" + b"1,\xc3\xa9\n2,b\n" * 100_000})
    source = """
import json, os, time
path = os.environ["SUBMARINE_INPUT_T"]
with open(path) as source:
    first = json.loads(next(source))
assert first == {"id": 1, "name": "\u00e9"}, first
while os.path.exists(path):
    time.sleep(0.01)
"""
    job = submit(source, inputs=(parse_input(f"T={tmp_path}/set:stream"),))
    job.wait_success(60)


@pytest.mark.full
def test_a_command_reads_standard_input_and_a_pipe(
    submit: Submit, tmp_path: Path, out: Path
) -> None:
    write(tmp_path / "set", {"a.txt": lines(5000), "b.log": lines(10)})
    inputs = (
        parse_input(f"A={tmp_path}/set/a.txt:stream=to=stdin,epochs=3"),
        parse_input(f"B={tmp_path}/set/b.log:stream"),
    )
    command = f"test $SUBMARINE_INPUT_A = - && cat > {out}/a && cat $SUBMARINE_INPUT_B > {out}/b"
    submit("", command=command, inputs=inputs).wait_success(60)
    assert (out / "a").read_bytes() == lines(5000) * 3
    assert (out / "b").read_bytes() == lines(10)


@pytest.mark.full
def test_arrow_frames_of_parquet(submit: Submit, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "set").mkdir()
    for number in range(2):
        table = arrow.table({"id": range(number * 20_000, (number + 1) * 20_000)})
        parquet.write_table(table, tmp_path / f"set/p{number}.parquet", row_group_size=5000)
    source = """
import os
from collections import Counter
import pyarrow
with open(os.environ["SUBMARINE_INPUT_T"], "rb", buffering=1 << 20) as file:
    ids = Counter()
    for batch in pyarrow.ipc.open_stream(file):
        ids.update(batch.column("id").to_pylist())
assert set(ids) == set(range(40_000)) and set(ids.values()) == {2}, len(ids)
"""
    text = f"T={tmp_path}/set:stream=frame=arrow,epochs=2,shuffle=1000"
    submit(source, inputs=(parse_input(text),)).wait_success(60)
    # A damaged row group is named.
    path = tmp_path / "set/p1.parquet"
    data = bytearray(path.read_bytes())
    offset = parquet.read_metadata(path).row_group(2).column(0).data_page_offset
    data[offset : offset + 2000] = os.urandom(2000)
    path.write_bytes(data)
    record = submit(source, inputs=(parse_input(text),)).wait(60)
    assert record.reason is EndReason.INPUT_MISSING
    assert record.detail.startswith(f"--input T: {path} is damaged at row group 2")


@pytest.mark.full
def test_the_examples_of_the_page(submit: Submit, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    section = (
        (ROOT / "docs/data.md")
        .read_text(encoding="utf-8")
        .partition("\n### Streams\n")[2]
        .partition("\n### ")[0]
    )
    lines_example, arrow_example = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    write(tmp_path / "text", {"a.txt": lines(1000)})
    parquet.write_table(arrow.table({"id": range(20_000)}), tmp_path / "a.parquet")
    for example, words, count in (
        (lines_example, "text:stream=epochs=3,shuffle=100", 3000),
        (arrow_example, "a.parquet:stream=frame=arrow,epochs=2", 6),
    ):
        source = f"import os, pyarrow\ncount = 0\n{example.replace('...', 'count += 1')}"
        source += f"\nassert count == {count}, count\n"
        submit(source, inputs=(parse_input(f"TRAIN={tmp_path}/{words}"),)).wait_success(60)
