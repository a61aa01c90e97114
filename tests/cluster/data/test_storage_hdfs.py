"""The storage of job directories on a real HDFS."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.cluster import HadoopConf
from submarine_jobs.client import Session
from submarine_jobs.errors import RefusedError, StorageError
from submarine_jobs.model import JobSpec, Profile, Role, hadoop_user
from submarine_jobs.storage import HdfsStorage, Storage, WebHdfsStorage, hdfs_storage
from submarine_minicluster.cluster import Minicluster
from submarine_runtime.protocol import JobRecord, State
from tests.cluster.data.test_data_yarn import Door
from tests.waiting import until

pytestmark = pytest.mark.cluster


def storage_of(cluster: Minicluster, tmp_path: Path, user: str | None = None) -> Storage:
    conf = Path(cluster.environ()["HADOOP_CONF_DIR"])
    profile = Profile(backend="yarn", hadoop_conf_dir=conf, state_dir=tmp_path, user=user)
    return YarnBackend(profile).storage


@pytest.fixture(params=["native", "webhdfs"])
def storage(request: pytest.FixtureRequest, minicluster: Minicluster, tmp_path: Path) -> Storage:
    """The process's own user through either client, so that both keep the same promises."""
    own = storage_of(minicluster, tmp_path)
    assert isinstance(own, HdfsStorage)
    if request.param == "native":
        return own
    conf = HadoopConf(Path(minicluster.environ()["HADOOP_CONF_DIR"]))
    return WebHdfsStorage(own.prefix, webhdfs=conf.webhdfs, user=hadoop_user())


@pytest.fixture
def place(storage: Storage) -> Iterator[str]:
    path = f"/user/{os.environ.get('USER') or 'root'}/storage-test-{secrets.token_hex(4)}"
    storage.make_directory(path)
    yield path
    storage.delete(path, recursive=True)


def test_publish_replaces_and_reads_by_offset(storage: Storage, place: str) -> None:
    storage.publish(f"{place}/a/file", b"first")
    storage.publish(f"{place}/a/file", b"0123456789")
    assert storage.read(f"{place}/a/file", 3, 4) == b"3456"
    assert storage.read(f"{place}/a/file", 8, 40) == b"89"
    assert storage.read(f"{place}/a/file", 80, 4) == b""
    assert [(e.name, e.size) for e in storage.list_directory(f"{place}/a")] == [("file", 10)]
    assert storage.stat(f"{place}/none") is None
    with pytest.raises(FileNotFoundError):
        storage.read(f"{place}/none")


def test_one_winner_among_many(storage: Storage, place: str) -> None:
    path = f"{place}/claim"
    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(lambda n: storage.publish_exclusive(path, b"%d" % n), range(12)))
    assert sum(won) == 1
    assert storage.publish_exclusive(path, storage.read(path)), "a repeat is recognised"
    assert [entry.name for entry in storage.list_directory(place)] == ["claim"]


def test_large_files_go_through_without_being_held(
    storage: Storage, place: str, tmp_path: Path
) -> None:
    source, back = tmp_path / "source", tmp_path / "back"
    source.write_bytes(os.urandom(1 << 20) * 9)
    storage.upload(source, f"{place}/big")
    storage.download(f"{place}/big", back)
    assert back.read_bytes() == source.read_bytes()
    assert storage.walk(place) == [("big", 9 << 20)]


def test_another_users_directory_is_closed(
    minicluster: Minicluster, storage: Storage, place: str, tmp_path: Path
) -> None:
    storage.publish(f"{place}/secret.json", b"{}")
    minicluster.admit("mallory")
    stranger = storage_of(minicluster, tmp_path, "mallory")
    for work in (
        lambda: stranger.read(f"{place}/secret.json"),
        lambda: stranger.publish(f"{place}/planted", b"x"),
        lambda: stranger.publish_exclusive(f"{place}/planted", b"x"),
        lambda: stranger.list_directory(place),
        lambda: stranger.delete(place, recursive=True),
    ):
        with pytest.raises(StorageError, match="permission denied"):
            work()
    assert [entry.name for entry in storage.list_directory(place)] == ["secret.json"]


def test_one_process_acts_as_several_users_at_once(
    minicluster: Minicluster, tmp_path: Path
) -> None:
    environment = dict(os.environ)
    users = [f"user-{secrets.token_hex(3)}" for _ in range(3)]
    minicluster.admit(*users)
    storages = {user: storage_of(minicluster, tmp_path, user) for user in users}

    def write(number: int) -> None:
        user = users[number % len(users)]
        storages[user].publish(f"/tmp/{user}/{number}", user.encode())

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(24)))
    own = storage_of(minicluster, tmp_path)
    for user, mine in storages.items():
        names = [entry.name for entry in mine.list_directory(f"/tmp/{user}")]
        assert len(names) == 8
        assert {mine.read(f"/tmp/{user}/{name}") for name in names} == {user.encode()}
        file = f"/tmp/{user}/{names[0]}"
        made = [own.stat(f"/tmp/{user}"), own.stat(file), mine.stat(file)]
        made += [own.list_directory(f"/tmp/{user}")[0], mine.list_directory(f"/tmp/{user}")[0]]
        assert [one.owner for one in made if one is not None] == [user] * 5
        mine.delete(f"/tmp/{user}", recursive=True)
    assert dict(os.environ) == environment, "a user in the environment would be everybody's"


@pytest.mark.parametrize("native", [True, False])
def test_a_job_in_a_shared_root_belongs_to_the_owner_that_the_namenode_names(
    minicluster: Minicluster, tmp_path: Path, native: bool
) -> None:
    mallory, job = "mallory", "digits-20261122-0002"
    minicluster.admit(mallory)
    root = f"/tmp/shared-{secrets.token_hex(3)}"
    theirs = storage_of(minicluster, tmp_path, mallory)
    conf = Path(minicluster.environ()["HADOOP_CONF_DIR"])
    me = hadoop_user()
    record = JobRecord(job, "digits", State.SUCCEEDED, user=me, backend="yarn", created=5.0)
    spec = JobSpec("digits", "yarn", roles=(Role(command="true"),))
    theirs.publish(f"{root}/202611/{job}/record.json", json.dumps(record.to_json()).encode())
    theirs.publish(f"{root}/202611/{job}/spec.json", spec.to_bytes())
    folder = f"{root}/202611/{job}"
    files = (f"{folder}/record.json", f"{folder}/spec.json")
    for path in (root, f"{root}/202611", folder, *files):  # for all to read
        base = HadoopConf(conf).webhdfs[0]
        query = f"op=SETPERMISSION&permission=755&user.name={mallory}"
        asked = Request(f"{base}/webhdfs/v1{path}?{query}", method="PUT")
        urlopen(asked, timeout=20).close()
    profile = Profile(
        backend="yarn", hadoop_conf_dir=conf, state_dir=tmp_path / "state", job_root=root
    )
    session = Session(profile)
    if not native:  # as a process of several users reads it
        own = storage_of(minicluster, tmp_path)
        session.backend().__dict__["storage"] = WebHdfsStorage(
            own.prefix, webhdfs=HadoopConf(conf).webhdfs, user=me
        )
    found = session.job(job)
    assert found.record().user == mallory
    assert f"belongs to {mallory}" in found.record().warnings[0]
    with pytest.raises(RefusedError, match=f"is a job of {mallory}"):
        found.rerun()
    theirs.delete(root, recursive=True)


def test_a_namenode_that_is_away_costs_the_timeout_and_no_more(tmp_path: Path) -> None:
    storage = HdfsStorage("hdfs://127.0.0.1:1", timeout=1)
    began = time.monotonic()
    with pytest.raises(StorageError, match="did not answer in time"):
        storage.stat("/")
    # Left alone, the client tries for three minutes.
    assert time.monotonic() - began < 60


def test_a_user_that_cannot_be_named_to_hdfs_is_said(tmp_path: Path) -> None:
    storage = hdfs_storage("hdfs://127.0.0.1:1", user="mallory", timeout=1)
    with pytest.raises(StorageError, match="cannot be accessed as mallory"):
        storage.stat("/")


def test_a_namenode_that_was_away_is_waited_for(minicluster: Minicluster, tmp_path: Path) -> None:
    """As another user than the process's; hdfs-native waits by itself."""
    conf = HadoopConf(Path(minicluster.environ()["HADOOP_CONF_DIR"]))
    user, door = f"user-{secrets.token_hex(3)}", Door(conf.webhdfs[0])
    minicluster.admit(user)
    mine = WebHdfsStorage("hdfs://away", webhdfs=[door.url], user=user, timeout=60.0)
    place = f"/tmp/{user}"
    (tmp_path / "source").write_bytes(b"12345")
    works: dict[str, Callable[[], object]] = {
        "publish": lambda: mine.publish(f"{place}/a", b"1"),
        "exclusive": lambda: mine.publish_exclusive(f"{place}/b", b"2"),
        "upload": lambda: mine.upload(tmp_path / "source", f"{place}/c"),
        "list": lambda: [entry.name for entry in mine.list_directory(place)],
        "read": lambda: mine.read(f"{place}/a"),
        "delete": lambda: mine.delete(place, recursive=True),
        "stat": lambda: mine.stat(place),
    }
    found: dict[str, object] = {}
    with ThreadPoolExecutor(1) as pool:
        for name, work in works.items():
            door.open, before = False, door.turned_away
            done = pool.submit(work)
            until(lambda before=before: door.turned_away > before + 1)  # type: ignore[misc]
            assert not done.done()
            door.open = True
            found[name] = done.result(120)
    assert found["exclusive"] is True
    assert (found["list"], found["read"]) == (["a", "b", "c"], b"1")
    assert found["stat"] is None
    # An outage that is longer is an error.
    soon = WebHdfsStorage("hdfs://away", webhdfs=[door.url], user=user, timeout=2.0)
    door.open, before = False, door.turned_away
    with pytest.raises(StorageError, match=r"Cannot read hdfs://away/tmp/x|did not answer in time"):
        soon.read("/tmp/x")
    assert door.turned_away > before + 1
    door.shutdown()
    door.server_close()
