"""The URIs of inputs: parsing, listing, places in other file systems, repositories, advice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from submarine_jobs.backends.yarn.cluster import HadoopConf, other_file_system
from submarine_jobs.errors import UsageError
from submarine_jobs.inputs import FreeDisk, HubSnapshot, TaskInput, mode_advice
from submarine_jobs.inputs.huggingface import Repository, parse_repository
from submarine_jobs.inputs.listings import listed
from submarine_jobs.inputs.locations import Locator, Place, RemotePlace
from submarine_jobs.model import NamedInput
from submarine_jobs.options import format_input, parse_input
from submarine_jobs.storage import LocalStorage, WebHdfsStorage, hdfs_storage
from tests.local.data.data_files import write

_WORDS = st.sampled_from(["", ":shard", ":list", ":mount", ":download", ":stream"])
_ROLES = st.sampled_from(["", "=worker", "=chief,worker"])
_STREAM = st.sampled_from(["", "=epochs=2", "=worker,ahead=64k", "=shuffle=0,to=stdin", "=a=1"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("T=/d", NamedInput("T", "/d")),
        ("T=/d:download", NamedInput("T", "/d")),
        ("T=/d:shard", NamedInput("T", "/d", True)),
        ("T=/d:list=ps", NamedInput("T", "/d", True, ("ps",), "list")),
        ("T=@hdfs://nn:8020/d:mount", NamedInput("T", "@hdfs://nn:8020/d", mode="mount")),
        ("T=hdfs://nn:8020/d", NamedInput("T", "hdfs://nn:8020/d")),
        ("T=/a:b:download", NamedInput("T", "/a:b")),
        ("T=/d:stream", NamedInput("T", "/d", True, mode="stream")),
        (
            "T=/d:stream=epochs=03,worker,ahead=2M,frame=arrow",
            NamedInput(
                "T",
                "/d",
                True,
                ("worker",),
                "stream",
                ("epochs=3", f"ahead={2 << 20}", "frame=arrow"),
            ),
        ),
    ],
)
def test_modes_of_an_input(text: str, expected: NamedInput) -> None:
    assert parse_input(text) == expected
    assert parse_input(format_input(expected)) == expected


@settings(max_examples=40)
@given(
    st.text("ab:09@/ é", min_size=1, max_size=12).map("hdfs://nn:8020/".__add__),
    _WORDS,
    _ROLES,
    _STREAM,
)
def test_an_input_is_parsed_as_it_is_written(uri: str, mode: str, roles: str, words: str) -> None:
    behind = {":shard": roles, ":list": roles, ":stream": words}
    text = f"T={uri}{mode}{behind.get(mode, '')}"
    try:
        parsed = parse_input(text)
    except UsageError:
        return
    assert parse_input(format_input(parsed)) == parsed


@pytest.mark.parametrize(
    "text", ["T=/d:streams", "T=/d:mount=worker", "T=/a/../b", "T=/a/%2e%2e/b"]
)
def test_refused_inputs(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not a mode\. The modes are|leads out"):
        parse_input(text)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("epochs=0", "'epochs=0' behind :stream= has no valid value. Write for example epochs=3."),
        ("ahead=1T", "'ahead=1T' behind :stream= has no valid value"),
        ("frame=rows", "Write for example frame=arrow."),
        ("format=xml", "'format=xml' behind :stream= has no valid value"),
        ("speed=1", "'speed=1' behind :stream= is unknown or given twice. The words are epochs=3,"),
        ("seed=1,seed=2", "'seed=2' behind :stream= is unknown or given twice"),
        ("Worker", "'Worker' behind :stream= is not the name of a role"),
    ],
)
def test_refused_words_of_a_stream(words: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_input(f"T=/d:stream={words}")
    assert message in f"{caught.value}"


def test_an_old_spec_has_the_mode_download() -> None:
    old = NamedInput("T", "/d", True)
    assert (old.mode, old.word, replace(old, mode="list").word) == ("download", "shard", "list")


def test_metadata_is_left_out_of_lists_only(tmp_path: Path) -> None:
    write(tmp_path, {"s/_SUCCESS": b"", "s/.x/a": b"1", "s/b": b"22"})
    place = Place(LocalStorage(), str(tmp_path / "s"))
    whole = listed(NamedInput("T", ""), place)
    assert [(file.path, file.size) for file in whole.files] == [
        (".x/a", 1),
        ("_SUCCESS", 0),
        ("b", 2),
    ]
    assert whole.files[2].source == f"{tmp_path}/s/b"
    assert [f.path for f in listed(NamedInput("T", "", mode="list"), place).files] == [".x/a", "b"]


_SITE = """<configuration>
<property><name>fs.defaultFS</name><value>hdfs://main</value></property>
<property><name>dfs.ha.namenodes.main</name><value>a,b</value></property>
<property><name>dfs.namenode.http-address.main.a</name><value>m1:9870</value></property>
<property><name>dfs.namenode.http-address.main.b</name><value>m2:9870</value></property>
<property><name>dfs.ha.namenodes.other</name><value>x,y</value></property>
<property><name>dfs.namenode.http-address.other.x</name><value>o1:1870</value></property>
<property><name>dfs.namenode.http-address.other.y</name><value>o2:1870</value></property>
<property><name>fs.viewfs.mounttable.all.link./data</name><value>hdfs://other/d</value></property>
<property><name>fs.viewfs.mounttable.all.link./data/own</name><value>hdfs://main/o</value></property>
<property><name>hadoop.security.credential.provider.path</name><value>jceks://x</value></property>
</configuration>
"""


@pytest.fixture
def conf(tmp_path: Path) -> HadoopConf:
    (tmp_path / "core-site.xml").write_text(_SITE)
    return HadoopConf(tmp_path)


class OpenCluster:
    """An identity on a cluster without Kerberos."""

    kerberos = False
    user = "ada"
    file_system_access = None


@pytest.mark.parametrize(
    ("uri", "url", "web"),
    [
        ("hdfs://other/d/x", "hdfs://other/d/x", ["http://o1:1870", "http://o2:1870"]),
        ("hdfs://host:8020/x", "hdfs://host:8020/x", ["http://host:9870"]),
        ("webhdfs://host:1234/x", "webhdfs://host:1234/x", ["http://host:1234"]),
        ("swebhdfs://host/x", "swebhdfs://host/x", ["https://host:9871"]),
        ("viewfs://all/data/y", "hdfs://other/d/y", ["http://o1:1870", "http://o2:1870"]),
    ],
)
def test_places_in_other_file_systems(conf: HadoopConf, uri: str, url: str, web: list[str]) -> None:
    default = hdfs_storage(conf.default_fs, webhdfs=conf.webhdfs, addresses=conf.addresses)
    found = other_file_system(uri, default, conf, OpenCluster())  # type: ignore[arg-type]
    assert found is not None
    storage, path = found
    assert isinstance(storage, WebHdfsStorage)
    store = storage.job_store("/")
    assert (storage.url(path), store.webhdfs, store.user) == (url, web, "ada")


def test_a_mount_table_may_lead_to_the_default_file_system(conf: HadoopConf) -> None:
    default = hdfs_storage(conf.default_fs, webhdfs=conf.webhdfs, addresses=conf.addresses)
    identity = OpenCluster()
    found = other_file_system("viewfs://all/data/own/x", default, conf, identity)  # type: ignore[arg-type]
    assert found == (default, "/o/x")
    with pytest.raises(UsageError, match="no mount table"):
        other_file_system("viewfs://all/nothing", default, conf, identity)  # type: ignore[arg-type]
    identity.kerberos = True
    with pytest.raises(UsageError, match=r"hdfs://other/x is in another file system.*distcp"):
        other_file_system("hdfs://other/x", default, conf, identity)  # type: ignore[arg-type]


def test_the_places_that_no_job_reads() -> None:
    locator = Locator(LocalStorage())
    assert locator.find("--input T", "s3://b/k") == RemotePlace("s3://b/k")
    assert RemotePlace("http://h:1/a%20b?x=1").path == "h:1/a b?x=1"
    with pytest.raises(UsageError, match="no job reads ftp://") as refused:
        locator.find("--input T", "ftp://ada:pw@h/x")
    assert "pw" not in str(refused.value)


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("hf://org/name", Repository("model", "org/name", "main")),
        ("hf://datasets/org/na.me-1@refs/pr/1", Repository("dataset", "org/na.me-1", "refs/pr/1")),
        ("hf://org/name@v1", Repository("model", "org/name", "v1")),
    ],
)
def test_repositories(uri: str, expected: Repository) -> None:
    assert parse_repository("--input T", uri) == expected


@pytest.mark.parametrize(
    "uri", ["hf://name", "hf://../x", "hf://a/b/c", "hf://a/b@x/../y", "hf:a/b"]
)
def test_no_repositories(uri: str) -> None:
    with pytest.raises(UsageError, match="is not hf://ORG/NAME@REVISION"):
        parse_repository("--input T", uri)


def test_a_commit_is_the_branch_main_of_the_job() -> None:
    commit = "a" * 40
    repository = Repository("dataset", "o/n", commit)
    snapshot = HubSnapshot(repository, commit, (), "/jobs/cache")
    assert snapshot.refs == ("main",)
    assert replace(snapshot, repository=repository._replace(revision="v1")).refs == ("main", "v1")
    assert snapshot.directory == f"/jobs/cache/hf/hub/datasets--o--n/snapshots/{commit}"
    assert snapshot.uri == f"hf://datasets/o/n@{commit}"


GB = 1 << 30


@pytest.mark.parametrize(
    ("parts", "disk", "words"),
    [
        ([("download", 3, GB)], None, "does not report its free disk; :download suits if"),
        ([("download", 3, GB)], FreeDisk("n1", 2 * GB), "n1, with the least free disk, has"),
        ([("download", 3, 4 * GB)] * 4, FreeDisk("n1", 2 * GB), "use :shard, or :mount if"),
        ([("shard", 3, 4 * GB)] * 4, FreeDisk("n1", 2 * GB), "use :list or :mount, which need no"),
        ([("download", 9000, GB)], FreeDisk("n1", 2 * GB), "9000 small files take long"),
        ([("download", None, None)], FreeDisk("n1", 2 * GB), "its size is not known"),
        ([("list", 3, 9 * GB)], FreeDisk("n1", GB), ""),
    ],
)
def test_the_recommended_mode(
    parts: list[tuple[str, int | None, int | None]], disk: FreeDisk | None, words: str
) -> None:
    inputs = [
        TaskInput(f"worker:{number}", "T", files, size, mode)
        for number, (mode, files, size) in enumerate(parts)
    ]
    found = mode_advice(inputs, disk)
    assert len(found) == bool(words)
    assert not words or words in found[0]
