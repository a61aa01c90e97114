"""Inputs, checkpoints and versions on a real HDFS through WebHDFS."""

from __future__ import annotations

import os
import secrets
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from socketserver import BaseRequestHandler, TCPServer, ThreadingMixIn

import pytest

from submarine_minicluster.cluster import Minicluster
from submarine_runtime.agent.preparation import InputError
from submarine_runtime.agent.preparation.inputs import Shard, fetch_inputs
from submarine_runtime.agent.sync import SyncThread
from submarine_runtime.cluster_http import simple_access
from submarine_runtime.protocol import JobStore, NamedInput
from submarine_runtime.snapshots import VersionError, assemble, restore, save_version
from submarine_runtime.storage import NotFoundError, StoreError, WebHdfsStore
from tests.local.data.data_files import at_path, contents, make_config, make_scratch, newest, write
from tests.waiting import until

pytestmark = pytest.mark.cluster

NAMES = ("plain", "a b", "a%20b", "a+b", "ünï-日本", "a&b=c;d", "a#b?c", "100%", "e'\"q", "[x]{y}*")


@pytest.fixture
def place(minicluster: Minicluster) -> JobStore:
    user = os.environ.get("USER") or "root"
    path = f"/user/{user}/data-test-{secrets.token_hex(4)}/job"
    return JobStore("webhdfs", path, [minicluster.url("namenode")], user)


@pytest.fixture
def store(place: JobStore) -> Iterator[WebHdfsStore]:
    made = WebHdfsStore(place.webhdfs, place.path, simple_access(place.user), 10)
    yield made
    made.delete(place.path.rpartition("/")[0], recursive=True)


def test_every_name_comes_through(store: WebHdfsStore, tmp_path: Path) -> None:
    for name in NAMES:
        store.publish(f"odd/{name}/{name}", name.encode())
    assert sorted(entry.name for entry in store.entries("odd")) == sorted(NAMES)
    for name in NAMES:
        path = f"odd/{name}/{name}"
        entry = store.stat(path)
        assert entry is not None
        assert (entry.name, entry.size, entry.is_directory) == (name, len(name.encode()), False)
        assert b"".join(store.stream(path, 1)) == name.encode()[1:]
        assert b"".join(store.stream(path, 1, 2)) == name.encode()[1:3]
        store.move(path, f"odd/{name}/moved {name}")
        assert not store.exists(path)
        store.publish(f"odd/{name}/other", b"other")
        store.move(f"odd/{name}/moved {name}", f"odd/{name}/other")
        assert store.read(f"odd/{name}/other") == name.encode()
    store.delete("odd", recursive=True)
    assert store.entries("odd") == []
    assert store.stat("odd") is None
    store.delete("odd")
    with pytest.raises(NotFoundError):
        b"".join(store.stream("odd/x"))
    with pytest.raises(StoreError, match="Invalid path"):
        store.publish("a:b", b"")


def test_200_megabytes_of_input_shared_and_whole(
    store: WebHdfsStore, place: JobStore, tmp_path: Path
) -> None:
    size = 200 << 20
    block = os.urandom(1 << 20)
    source = place.path.rpartition("/")[0] + "/set é +%"
    store.put(f"{source}/big.bin", (block for _ in range(200)), size)
    for number in range(6):
        store.publish(f"{source}/part {number}.csv", b"%d" % number * (number + 1))
    heard: list[tuple[int, int]] = []
    config = make_config(fetch=[NamedInput("ALL", source), NamedInput("MINE", source, shard=True)])
    where = fetch_inputs(
        config,
        store,
        make_scratch(tmp_path / "s0", config),
        {"MINE": Shard(1, 2)},
        lambda *at: heard.append(at),
    )
    assert os.path.getsize(f"{where['ALL']}/big.bin") == size
    with open(f"{where['ALL']}/big.bin", "rb") as file:
        assert all(file.read(1 << 20) == block for _ in range(200))
    assert len(contents(where["ALL"])) == 7
    # The other task has the large file, and this one all the small ones.
    assert sorted(contents(where["MINE"])) == [f"part {number}.csv" for number in range(6)]
    assert heard[0][0] == 0
    assert heard[-1][0] == heard[-1][1] > size
    missing = make_config(fetch=[NamedInput("ALL", f"{source}/nothing")])
    with pytest.raises(InputError, match="there is nothing at"):
        fetch_inputs(missing, store, make_scratch(tmp_path / "s1", missing), {})


def there(store: WebHdfsStore, path: str, target: Path) -> dict[str, bytes]:
    """What lies at the path; nothing while it changes."""
    try:
        return at_path(store, path, target)
    except StoreError:
        return {}


def test_checkpoints_go_up_and_come_back(
    store: WebHdfsStore, place: JobStore, tmp_path: Path
) -> None:
    path = place.path.rpartition("/")[0] + "/check points"
    config = make_config(sync_interval=0.5, checkpoint_path=path)
    scratch = make_scratch(tmp_path / "s", config)
    # Looks that the test takes are not counted with what the syncing costs.
    eyes = WebHdfsStore(place.webhdfs, place.path, simple_access(place.user), 10)
    assert restore(store, scratch, config, "worker:1", "worker:0").source == ""
    said: list[str] = []
    syncing = SyncThread(
        store, scratch, config, "worker:0", 1, 1, lambda k, d, _: said.append(k + d)
    )
    syncing.start()
    folder, board = scratch.outputs["checkpoints"], scratch.outputs["tensorboard"]
    write(board, {"train/events.out.tfevents.1": b"one"})
    for step in range(3):
        write(folder, {"model 1+%.pt": os.urandom(9 << 20), f"sub é/step {step}": b"%d" % step})
        expected = contents(folder)
        until(
            partial(lambda now: there(eyes, path, tmp_path / "back") == now, expected), seconds=90
        )
    write(board, {"train/events.out.tfevents.1": b"one two"})
    operations = store.operations
    until(
        lambda: assemble(eyes, "growing/worker-0", str(tmp_path / "board")).popitem()[1] == 7,
        seconds=90,
    )
    assert syncing.stop(60.0)
    assert newest(eyes, tmp_path / "again") == expected
    assert contents(tmp_path / "board") == contents(board)
    assert len(store.entries("snapshots/worker-0/e1-a1")) <= 8
    assert store.operations - operations < 200

    # Another attempt in another container; and the same job's other worker has the chief's.
    for task in ("worker:0", "worker:1"):
        other = make_scratch(tmp_path / f"other-{task[-1]}", config)
        restored = restore(store, other, config, task, "worker:0")
        assert (restored.files, restored.skipped) == (4, [])
        assert contents(other.outputs["checkpoints"]) == expected
    # Another job that has the same path.
    fresh = WebHdfsStore(place.webhdfs, place.path + "-2", simple_access(place.user), 10)
    other = make_scratch(tmp_path / "job-2", config)
    assert restore(fresh, other, config, "worker:0", None).source.startswith("checkpoint path")
    assert contents(other.outputs["checkpoints"]) == expected
    assert said == ["snapshotThe first snapshot of checkpoints is complete."]


def test_versions(store: WebHdfsStore, tmp_path: Path) -> None:
    config = make_config()
    scratch = make_scratch(tmp_path / "s", config)
    write(scratch.outputs["model"], {"saved model.pb": b"x" * 1000, "variables/a+b": b"y"})
    first = save_version(store, scratch)
    write(scratch.outputs["model"], {"variables/a+b": b"z"})
    found: list[object] = []

    def save() -> None:
        try:
            found.append(save_version(store, scratch, "best")["name"])
        except VersionError as exc:
            found.append(exc)

    threads = [threading.Thread(target=save) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found.count("best") == 1
    assert sorted(e.name for e in store.entries("models") if e.name[0] != ".") == ["best", "v1"]
    assert store.read("models/v1/model/variables/a+b") == b"y"
    assert store.read("models/best/model/variables/a+b") == b"z"
    assert store.entries("models/best/model/version") == []
    assert (first["name"], first["count"], first["size"]) == ("v1", 2, 1001)


def test_a_download_that_is_cut_off_goes_on(
    store: WebHdfsStore, place: JobStore, tmp_path: Path
) -> None:
    data = os.urandom(3 << 20)
    store.put("big", [data], len(data))
    offsets: list[int] = []

    class Cut(WebHdfsStore):
        def stream(self, path: str, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
            offsets.append(offset)
            for number, block in enumerate(super().stream(path, offset, length)):
                if number == 5:
                    raise StoreError("cut off", transient=True)
                yield block

    cut = Cut(place.webhdfs, place.path, simple_access(place.user), 10)
    config = make_config(fetch=[NamedInput("A", f"{place.path}/big")])
    where = fetch_inputs(config, cut, make_scratch(tmp_path / "s", config), {})
    assert Path(where["A"]).read_bytes() == data
    assert len(offsets) > 2
    assert offsets == sorted(offsets)


class Door(ThreadingMixIn, TCPServer):
    """A way to the NameNode that can be shut."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, url: str) -> None:
        host, _, port = url.rpartition("/")[2].partition(":")
        self.target = (host, int(port))
        self.open = True
        self.turned_away = 0
        super().__init__(("127.0.0.1", 0), Passage)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Passage(BaseRequestHandler):
    """One connection: a request with little in it, and its answer."""

    server: Door

    def handle(self) -> None:
        if not self.server.open:
            self.server.turned_away += 1
            return
        with socket.create_connection(self.server.target) as far:
            ends = {self.request: far, far: self.request}
            while ends:
                for end in select.select(list(ends), [], [])[0]:
                    with suppress(OSError):
                        if data := end.recv(1 << 16):
                            ends[end].sendall(data)
                            continue
                    return


@pytest.mark.full
@pytest.mark.parametrize("seconds", [8, 60])
def test_the_namenode_is_away_and_everything_catches_up(
    store: WebHdfsStore, place: JobStore, tmp_path: Path, seconds: int
) -> None:
    door = Door(place.webhdfs[0])
    away = WebHdfsStore([door.url], place.path, simple_access(place.user), 10)
    path = place.path.rpartition("/")[0] + "/path"
    config = make_config(sync_interval=0.5, checkpoint_path=path, save_grace=120.0)
    scratch = make_scratch(tmp_path / "s", config)
    said: list[str] = []
    syncing = SyncThread(
        away, scratch, config, "worker:0", 1, 1, lambda kind, _, __: said.append(kind)
    )
    syncing.start()
    folder = scratch.outputs["checkpoints"]
    write(folder, {"a.pt": b"1", "b.pt": b"1"})
    until(lambda: there(store, path, tmp_path / "back") == contents(folder), seconds=90)
    door.open = False
    for step in range(seconds * 4):
        # The program goes on and notices nothing.
        write(folder, {"a.pt": b"%d" % step, "b.pt": b"%d" % step})
        time.sleep(0.25)
    until(lambda: "warning" in said, seconds=60)
    opener = threading.Timer(3, lambda: setattr(door, "open", True))
    opener.start()
    # A restore that begins while it is still away waits for it.
    other = make_scratch(tmp_path / "other", config)
    assert restore(away, other, config, "worker:0", None).source
    until(lambda: newest(store, tmp_path / "back") == contents(folder), seconds=120)
    until(lambda: there(store, path, tmp_path / "back") == contents(folder), seconds=120)
    assert syncing.stop(60.0)
    assert said.count("warning") == 1
    door.shutdown()
    door.server_close()
