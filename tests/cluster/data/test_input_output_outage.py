"""HDFS is away for 60 s while jobs read, save outputs and predict: they wait, and nothing is lost.

All jobs of a test have the same outage: a gang fetches its inputs, a program reads with
`submarine_data`, another a stream, one has ended and its files are being saved, one publishes parts
of a stream, and one predicts. Each shows that it waits, and ends with the data of a run without it.
"""

from __future__ import annotations

import hashlib
import io
import json
import secrets
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.client import Job, Session
from submarine_jobs.commands import execute
from submarine_jobs.model import NamedOutput
from submarine_jobs.options import parse_input
from submarine_jobs.python_api import PythonFrontend
from submarine_minicluster import Minicluster
from submarine_runtime.files import TEMPORARY_PREFIX
from submarine_runtime.protocol import State
from submarine_runtime.publication import staging_path
from submarine_runtime.storage import Store, StoreError
from tests.submission import Submit, cancel_unfinished
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full, pytest.mark.timeout(900)]

AWAY = 60.0
SECONDS = 300
#: Files of the gang's input, of 64 MiB; rows of each of the two Parquet files, of 64 bytes.
FILES, ROWS = 12, 1 << 19
#: Lines of a text file, of 8 bytes; two such files are read as a stream.
LINES = 4 << 20
#: Files of an output that is saved at the end, of 64 MiB; parts of one that is published before.
SAVED, PARTS = 8, 20

FETCHED = """
import hashlib, json, os, pathlib
found = {}
for name in ("ALL", "MINE"):
    for path in sorted(pathlib.Path(os.environ[f"SUBMARINE_INPUT_{name}"]).iterdir()):
        found[f"{name} {path.name}"] = hashlib.sha256(path.read_bytes()).hexdigest()
print(json.dumps(found), flush=True)
"""
#: Reads a list and a mount, one after the other; the outage begins after the first records of both.
READ = """
import json, os, time
from submarine_data import open_dataset
def ids(name):
    uri = os.environ[f"SUBMARINE_INPUT_{name}"]
    uris = open(uri).read().splitlines() if os.path.isfile(uri) else uri
    for batch in open_dataset(uris, rank=0, world=1, batch_size=4096).to_numpy():
        yield batch["id"]
readers = {name: ids(name) for name in ("L", "M")}
found = {name: [next(reader)] for name, reader in readers.items()}
print("up", flush=True)
while not os.path.exists(GO):
    time.sleep(0.05)
for name, reader in readers.items():
    found[name] += reader
    print(name, sum(map(len, found[name])), sum(int(part.sum()) for part in found[name]),
          len(set().union(*map(set, found[name]))), flush=True)
"""
STREAM = """
import hashlib, json, os, time
digest, lines = hashlib.sha256(), 0
with open(os.environ["SUBMARINE_INPUT_T"], "rb", buffering=1 << 20) as file:
    for line in file:
        digest.update(line)
        lines += 1
        if lines == 1000:
            print("up", flush=True)
            while not os.path.exists(GO):
                time.sleep(0.05)
print(lines, digest.hexdigest(), flush=True)
"""
SAVE = """
import os, pathlib, time
place = pathlib.Path(os.environ["SUBMARINE_OUTPUT_OUT"])
for number in range(COUNT):
    (place / f"é {number}.bin").write_bytes(bytes([number]) * (64 << 20))
print("up", flush=True)
while not os.path.exists(GO):
    time.sleep(0.05)
"""
#: Writes three parts before the outage, then one every four seconds.
PUBLISH = """
import os, pathlib, time
place = pathlib.Path(os.environ["SUBMARINE_OUTPUT_OUT"])
for number in range(COUNT):
    (place / f".part {number}").write_bytes(b"%d" % number * (1 << 20))
    os.rename(place / f".part {number}", place / f"part {number}")
    while number == 2 and not os.path.exists(GO):
        time.sleep(0.05)
    time.sleep(4 if number > 2 else 0)
"""
#: Of forty batches, the ten of the first file are processed before the outage.
FUNCTIONS = """
import os, time

def predict(batch):
    while batch["x"][0] >= 1000 and not os.path.exists(GO):
        time.sleep(0.05)
    return {"y": batch["x"] * 2.0}
"""


@pytest.fixture(scope="module")
def data(session: Session) -> Iterator[tuple[Store, str]]:
    """The store, and a directory with the inputs."""
    arrow, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    random = pytest.importorskip("numpy").random.default_rng(1)
    backend = session.backend()
    assert isinstance(backend, YarnBackend)
    storage, root = backend.job_root()
    path = f"{root.rpartition('/')[0]}/outage {secrets.token_hex(4)}"
    store = storage.open_store("/")
    for number in range(FILES):
        store.put(f"{path}/big/{number}.bin", (content(number) for _ in range(64)), 64 << 20)
    noise = {f"x{number}": random.random(ROWS) for number in range(7)}
    for number in range(2):
        ids = list(range(number * ROWS, (number + 1) * ROWS))
        stream = io.BytesIO()
        table = arrow.table({"id": ids, **noise})
        parquet.write_table(table, stream, row_group_size=ROWS // 8, compression="none")
        store.publish(f"{path}/parquet/{number}.parquet", stream.getvalue())
        store.publish(f"{path}/text/{number}.txt", text(number))
    for number in range(4):
        stream = io.BytesIO()
        ids = list(range(number * 1000, (number + 1) * 1000))
        table = arrow.table({"id": ids, "x": [float(one) for one in ids]})
        parquet.write_table(table, stream, row_group_size=100)
        store.publish(f"{path}/rows/{number}.parquet", stream.getvalue())
    yield store, path
    storage.delete(path, recursive=True)


@pytest.fixture(autouse=True)
def no_job_is_left(session: Session) -> Iterator[None]:
    yield
    cancel_unfinished(session)


def content(number: int) -> bytes:
    """One MiB of a file of the gang's input."""
    return bytes([number]) * (1 << 20)


def text(number: int) -> bytes:
    return b"".join(b"%07d\n" % line for line in range(number * LINES, (number + 1) * LINES))


class Watch(threading.Thread):
    """Lists a directory of HDFS again and again, as its readers do."""

    def __init__(self, store: Store, path: str) -> None:
        super().__init__(daemon=True)
        self._store, self._path = store, path
        self._stopped = threading.Event()
        self.seen: list[dict[str, int]] = []

    def run(self) -> None:
        while not self._stopped.wait(0.1):
            try:
                entries = self._store.entries(self._path)
            except StoreError:
                continue
            visible = {entry.name: entry.size for entry in entries if entry.name[0] not in "._"}
            if visible not in self.seen[-1:]:
                self.seen.append(visible)

    def stop(self) -> list[dict[str, int]]:
        self._stopped.set()
        self.join(60)
        return self.seen


def predict(session: Session, go: Path, path: str, output: str) -> Job:
    program = go.with_suffix(".py")
    program.write_text(FUNCTIONS.replace("GO", repr(str(go))))
    words = ["predict", "--input", f"x={path}/rows", "--output", f"{path}/{output}:overwrite"]
    words += ["--program", str(program), "--keys", "id", "--memory", "512M"]
    words += ["--batch-size", "100", "--part-size", "1k"]
    if session.profile.name not in ("default", ""):
        words += ["--profile", session.profile.name]
    job = execute(words, PythonFrontend(session, {})).job
    assert job is not None
    return job


def printed(job: Job, stream: str = "stdout", task: str | None = None) -> str:
    chunks = job.read_log(stream, task=task)
    return b"".join(chunk.data for chunk in chunks).decode()


def is_up(job: Job) -> bool:
    record = job.record()
    assert not record.state.ended, (record.detail, printed(job, "stderr"))
    return "up" in printed(job)


def is_fetching(job: Job, local: Path) -> bool:
    """Whether a file of the input is there; ``local`` are the directories of the node."""
    assert job.handle is not None
    application = str(job.handle["application_id"])
    return any(local.glob(f"usercache/*/appcache/{application}/container_*/**/inputs/ALL/*"))


def card(job: Job) -> str:
    """What is displayed of a job: why it waits, warnings, the end of its log."""
    view = job.view()
    events = [event.detail for event in view.record.events]
    return "\n".join([view.pending, view.record.pending, view.tail, *events])


def warned(job: Job, words: str) -> bool:
    return any(words in event.detail for event in job.record().events)


def away(cluster: Minicluster, daemons: tuple[str, ...], number: int) -> None:
    for name in daemons:
        cluster.kill(name, number)


@pytest.mark.parametrize(
    ("daemons", "number"),
    [
        (("datanode", "namenode"), signal.SIGKILL),
        (("datanode", "namenode"), signal.SIGSTOP),
        (("datanode",), signal.SIGKILL),
    ],
    ids=["killed", "stopped", "datanode"],
)
def test_all_jobs_wait_and_end_as_without_the_outage(
    minicluster_env: Minicluster,
    session: Session,
    submit: Submit,
    data: tuple[Store, str],
    tmp_path: Path,
    daemons: tuple[str, ...],
    number: int,
) -> None:
    store, path = data
    cluster, run = minicluster_env, secrets.token_hex(2)
    go, end = tmp_path / "go", tmp_path / "end"

    def held(source: str, file: Path = go, count: int = 0) -> str:
        return source.replace("GO", repr(str(file))).replace("COUNT", str(count))

    free = tmp_path / "free"
    free.touch()
    undisturbed = predict(session, free, path, f"undisturbed {run}")
    web = cluster.url("namenode").replace("http://", "webhdfs://")  # Another client than hdfs://.
    listed, mounted = f"L={path}/parquet:list", f"M={web}{path}/parquet:mount"
    inputs = (parse_input(listed), parse_input(mounted))
    reads = submit(held(READ), "reads", inputs=inputs, memory=512)
    stream = submit(held(STREAM), "stream", inputs=(parse_input(f"T={path}/text:stream"),))
    saved, parts = f"{path}/saved {run}", f"{path}/parts {run}"
    saves = submit(held(SAVE, end, SAVED), "saves", outputs=(NamedOutput("OUT", saved),))
    undisturbed.wait_success(SECONDS)
    predicts = predict(session, go, path, f"scores {run}")
    publishes = submit(
        held(PUBLISH, count=PARTS), "publishes", outputs=(NamedOutput("OUT", parts, stream=True),)
    )
    for job in (reads, stream, saves):
        until(lambda job=job: is_up(job))  # type: ignore[misc]
    staged = staging_path(f"{path}/scores {run}", predicts.id)
    until(lambda: store.entries(staged), "a part of the prediction")
    watches = [Watch(store, saved), Watch(store, parts)]
    for watch in watches:
        watch.start()
    until(lambda: watches[1].seen[-1:] not in ([], [{}]), "a part")
    whole, mine = f"ALL={path}/big:download", f"MINE={path}/big:shard"
    inputs = (parse_input(whole), parse_input(mine))
    gang = submit(FETCHED, "fetched", instances=2, inputs=inputs)
    until(lambda: is_fetching(gang, cluster.layout.data("nodemanager-0") / "local"))
    read = "is not available, waiting"
    # What the card of each job is to show.
    silent = {
        **{gang: "waiting for HDFS", saves: "waiting for HDFS"},
        **{reads: read, predicts: read, stream: read},
        publishes: "--save-output OUT was not saved: ",
    }
    jobs = list(silent)
    for job in jobs:
        job.record()  # The address of its port, which is not known later.
    end.touch()
    hidden = staging_path(saved, saves.id)
    until(lambda: [e for e in store.entries(hidden) if e.name.startswith(TEMPORARY_PREFIX)])
    away(cluster, daemons, number)
    began = time.monotonic()
    go.touch()
    try:
        while silent and time.monotonic() < began + AWAY - 5:
            with ThreadPoolExecutor(len(silent)) as pool:
                cards = pool.map(card, silent)
            for (job, words), shown in zip(list(silent.items()), cards, strict=True):
                if words in shown:
                    del silent[job]
                    print(f"{job.name}: {time.monotonic() - began:.0f} s")
        time.sleep(max(0.0, began + AWAY - time.monotonic()))
    finally:
        if number == signal.SIGSTOP:
            away(cluster, daemons, signal.SIGCONT)
        cluster.start()
    print(f"away for {time.monotonic() - began:.0f} s")
    assert not silent, [(job.id, words, card(job)) for job, words in silent.items()]
    for job in jobs:
        record = job.wait(SECONDS)
        print(job.id, record.state, f"{time.monotonic() - began:.0f} s", record.warnings)
        assert record.state is State.SUCCEEDED, (record.detail, printed(job, "stderr"))
    seen = [watch.stop() for watch in watches]

    digests = {f"{one}.bin": hashlib.sha256(content(one) * 64).hexdigest() for one in range(FILES)}
    fetched = [json.loads(printed(gang, task=f"worker:{rank}")) for rank in range(2)]
    shares = [{name: one for name, one in found.items() if name[:4] == "MINE"} for found in fetched]
    for found in fetched:
        assert {name[4:]: one for name, one in found.items() if name[:3] == "ALL"} == digests
    assert {name[5:]: one for share in shares for name, one in share.items()} == digests
    assert sum(map(len, shares)) == FILES

    count = 2 * ROWS
    total = f"{count} {count * (count - 1) // 2} {count}"
    assert printed(reads).splitlines() == ["up", f"L {total}", f"M {total}"]
    assert "is available again after" in printed(reads, "stderr")

    expected = hashlib.sha256(text(0) + text(1)).hexdigest()
    assert printed(stream).splitlines() == ["up", f"{2 * LINES} {expected}"]
    assert warned(stream, "is available again after")

    final = {f"é {one}.bin": 64 << 20 for one in range(SAVED)}
    # A directory that is not there, or an empty one, then the complete one: nothing between them.
    assert seen[0] in ([{}, final], [final])
    files = {f"part {one}": len(str(one)) << 20 for one in range(PARTS)}
    assert seen[1][-1] == files
    for before, after in zip(seen[1], seen[1][1:], strict=False):
        assert before.items() <= after.items()
    assert {entry.name for entry in store.entries(f"{parts}/_manifest")} >= {
        f"{name}.json" for name in files
    }
    for one in range(PARTS):
        assert store.read(f"{parts}/part {one}") == b"%d" % one * (1 << 20)

    assert predicts.result["predictions"]["rows"] == 4000
    assert predicts.result["predictions"] == undisturbed.result["predictions"]
