"""The agent on a real HDFS through WebHDFS, with the NameNode away for a while."""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from submarine_jobs.model import read_record
from submarine_minicluster.cluster import Minicluster
from submarine_minicluster.machine import free_port
from submarine_runtime.cluster_http import simple_access
from submarine_runtime.protocol import STORE_UNAVAILABLE_CODE, EndReason, JobRecord, JobStore, State
from submarine_runtime.storage import StoreError, WebHdfsStore
from tests.local.agent.agent_processes import OLDEST_PYTHONS, AgentProcesses
from tests.waiting import until

pytestmark = pytest.mark.cluster


def dead_url() -> str:
    """An address of this machine where no process listens."""
    return f"http://127.0.0.1:{free_port()}"


@pytest.fixture
def place(minicluster: Minicluster) -> JobStore:
    """A fresh job directory; HDFS makes it with the first file."""
    user = os.environ.get("USER") or "root"
    path = f"/user/{user}/agent-test-{secrets.token_hex(4)}"
    return JobStore("webhdfs", path, [minicluster.url("namenode")], user)


@pytest.fixture
def store(place: JobStore) -> WebHdfsStore:
    return WebHdfsStore(place.webhdfs, place.path, simple_access(place.user), 10)


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[AgentProcesses]:
    made = AgentProcesses(tmp_path)
    yield made
    made.stop_all()


def length_of(store: WebHdfsStore, place: JobStore, path: str) -> int:
    """The length of a file, 0 where there is none."""
    if not store.exists(path):
        return 0
    query = f"op=GETFILESTATUS&user.name={place.user}"
    url = f"{place.webhdfs[0]}/webhdfs/v1{place.path}/{path}?{query}"
    with urlopen(url, timeout=10) as answer:
        return int(json.load(answer)["FileStatus"]["length"])


def record_of(store: WebHdfsStore) -> JobRecord:
    return read_record(store.read("record.json") or b"null")


def test_publish_read_and_replace(store: WebHdfsStore) -> None:
    assert store.read("a b/\xe4#?%.txt") is None
    assert not store.exists("a b/\xe4#?%.txt")
    store.publish("a b/\xe4#?%.txt", b"first")
    store.publish("a b/\xe4#?%.txt", b"second")
    assert store.read("a b/\xe4#?%.txt") == b"second"
    assert store.exists("a b")
    store.publish("empty", b"")
    assert store.read("empty") == b""


def test_upload_of_a_range(store: WebHdfsStore, tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    (tmp_path / "log").write_bytes(data)
    assert store.upload("x/0", str(tmp_path / "log"), 0, 2_000_000) == 2_000_000
    assert store.upload("x/2", str(tmp_path / "log"), 2_000_000) == 1_000_000
    assert store.upload("x/3", str(tmp_path / "log"), 5_000_000) == 0
    assert (store.read("x/2") or b"") == data[2_000_000:]
    assert store.files == 3


def test_of_many_exclusive_publishes_one_wins(store: WebHdfsStore, place: JobStore) -> None:
    won: list[int] = []

    def attempt(number: int) -> None:
        mine = WebHdfsStore(place.webhdfs, place.path, simple_access(place.user), 20)
        if mine.publish_exclusive("claim.json", b"%d" % number):
            won.append(number)

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert store.read("claim.json") == b"%d" % won[0]
    assert store.publish_exclusive("claim.json", b"%d" % won[0])
    assert not store.publish_exclusive("claim.json", b"other")


def test_the_next_namenode_is_asked(place: JobStore) -> None:
    both = WebHdfsStore([dead_url(), *place.webhdfs], place.path, simple_access(place.user), 5)
    both.publish("x", b"1")
    asked = both.operations
    assert both.read("x") == b"1"
    assert both.operations == asked + 1  # the dead one is not asked again
    alone = WebHdfsStore([dead_url()], place.path, simple_access(place.user), 5)
    with pytest.raises(StoreError) as raised:
        alone.publish("x", b"1")
    assert raised.value.transient


def test_refusals_are_one_sentence_and_lasting(minicluster: Minicluster, place: JobStore) -> None:
    minicluster.admit("mallory")
    stranger = WebHdfsStore(place.webhdfs, "/system-of-nobody", simple_access("mallory"), 5)
    with pytest.raises(StoreError, match="Permission denied") as raised:
        stranger.publish("x", b"1")
    assert not raised.value.transient
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("python", OLDEST_PYTHONS)
def test_a_whole_job(
    agents: AgentProcesses, store: WebHdfsStore, place: JobStore, python: str
) -> None:
    source = (
        "import os\nprint('hello')\n"
        "open(os.environ['SUBMARINE_MODEL_DIR'] + '/m', 'wb').write(b'w' * 2000000)\n"
    )
    scratch = agents.prepare(source, store=place, python=python)
    assert agents.finish(agents.launch(scratch, python=python)) == 0
    record = record_of(store)
    assert record.state is State.SUCCEEDED
    assert store.read("logs/worker-0/e1-a1/stdout.000000000000") == b"hello\n"
    assert [(output.path, output.size) for output in record.outputs] == [("model/m", 2_000_000)]
    used = record.resources["used"]
    assert used["files"] <= 8
    assert used["namenode_operations"] <= 50
    live = json.loads(store.read("live.json") or b"{}")
    assert live["pid"] == json.loads(store.read("claim.json") or b"{}")["pid"]


def test_a_killed_agent_has_shipped_all_but_the_last_moments(
    agents: AgentProcesses, store: WebHdfsStore, place: JobStore
) -> None:
    """No segment is due: the interval is an hour."""
    source = (
        "import time\n"
        "for i in range(10000):\n    print('line', i, flush=True)\n    time.sleep(0.02)\n"
    )
    agent = agents.start(source, store=place, ship_interval=3600.0)
    growing = "logs/worker-0/e1-a1/stdout.000000000000.growing"
    until(lambda: store.exists(growing))
    agents.wait_for_log(b"line 60\n")
    lines = len(agents.log("stdout").splitlines())
    # The agent looks once a second; what was there before must have been sent by then.
    agents.wait_for_log(b"line %d\n" % (lines + 60))
    operations = store.operations
    agent.kill()
    until(lambda: length_of(store, place, growing) > 0)
    shipped = store.read(growing) or b""
    assert agents.log("stdout").startswith(shipped)
    assert len(shipped.splitlines()) >= lines
    assert operations < 100


def test_the_namenode_may_be_away_while_the_program_runs(
    agents: AgentProcesses, store: WebHdfsStore, place: JobStore, minicluster: Minicluster
) -> None:
    source = (
        "import os, time\n"
        "i = 0\n"
        "while not os.path.exists('go'):\n"
        "    print(i, flush=True)\n    i += 1\n    time.sleep(0.05)\n"
    )
    # Its owner cannot be heard either meanwhile, for longer than the lease, which ends nothing.
    agent = agents.start(source, store=place, ship_interval=0.5, lease=5.0)

    def shipped() -> bool:
        store.publish("lease.json", b"{}")
        return store.exists("logs/worker-0/e1-a1/stdout.000000000000")

    until(shipped)
    until(lambda: store.exists("live.json"))
    (agents.job_dir / "live.json").write_bytes(store.read("live.json") or b"")
    client = agents.client(host="127.0.0.1")
    minicluster.kill("namenode")
    try:
        before = len(agents.log("stdout"))
        time.sleep(6)
        until(lambda: len(agents.log("stdout")) > before + 100)
        assert agent.poll() is None
        assert client.status().pending == ""  # the program does not wait
        (agents.scratch() / "program/go").touch()
        until(lambda: client.status().pending.startswith("waiting for HDFS ("))
        assert client.status().state is State.FINISHING
        assert agent.poll() is None  # it waits to save what there is
    finally:
        minicluster.restart("namenode")
    agents.finish(agent, 120)
    record = record_of(store)
    assert record.state is State.SUCCEEDED, record.detail
    assert record.missing == []
    assert record.pending == ""
    assert "submarine agent: waiting for HDFS (" in agents.errors
    whole, number = b"", 0
    while data := store.read(f"logs/worker-0/e1-a1/stdout.{len(whole):012d}"):
        whole, number = whole + data, number + 1
    assert whole == agents.log("stdout")
    assert number >= 2
    assert any("Shipping waits" in event.detail for event in record.events)


@pytest.mark.full
def test_a_namenode_that_stays_away_ends_in_a_clear_sentence(
    agents: AgentProcesses, store: WebHdfsStore, place: JobStore, minicluster: Minicluster
) -> None:
    source = "import os, time\nprint(1)\nwhile not os.path.exists('go'): time.sleep(0.05)\n"
    agent = agents.start(source, store=place, save_grace=3.0)
    until(lambda: store.exists("live.json"))
    minicluster.kill("namenode")
    try:
        (agents.scratch() / "program/go").touch()
        assert agents.finish(agent, 120) == STORE_UNAVAILABLE_CODE
    finally:
        minicluster.restart("namenode")
    assert "could not be published" in agents.errors
    assert not store.exists("record.json")


@pytest.mark.full
def test_a_cancel_while_saving_cuts_the_patience_short(
    agents: AgentProcesses, store: WebHdfsStore, place: JobStore, minicluster: Minicluster
) -> None:
    source = "import os, time\nprint(1)\nwhile not os.path.exists('go'): time.sleep(0.05)\n"
    agent = agents.start(source, store=place, save_grace=300.0)
    until(lambda: store.exists("live.json"))
    (agents.job_dir / "live.json").write_bytes(store.read("live.json") or b"")
    minicluster.kill("namenode")
    try:
        (agents.scratch() / "program/go").touch()
        client = agents.client(host="127.0.0.1")
        until(lambda: client.status().state is State.FINISHING)
        client.cancel("ada", "no more patience")
        assert agents.finish(agent, 120) == STORE_UNAVAILABLE_CODE
    finally:
        minicluster.restart("namenode")


def test_segments_of_a_large_log(
    agents: AgentProcesses, store: WebHdfsStore, place: JobStore
) -> None:
    source = "for _ in range(300): print('x' * 99999)\n"
    agents.finish(agents.start(source, store=place))
    record = record_of(store)
    assert record.reason is EndReason.SUCCEEDED
    assert record.logs["worker:0/e1-a1/stdout"] == 30_000_000
    whole = 0
    while length := length_of(store, place, f"logs/worker-0/e1-a1/stdout.{whole:012d}"):
        whole += length
    assert whole == 30_000_000
