"""Datasets in a job root on this machine: digests, descriptors, names, claims, removal."""

from __future__ import annotations

import json
import os
import stat
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from submarine_jobs.datasets import DatasetStore, claims, put_value, resolve_datasets
from submarine_jobs.datasets.claims import claimed
from submarine_jobs.datasets.dataset import parse_descriptor
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.extras import MissingExtraError
from submarine_jobs.model import NamedInput
from submarine_jobs.storage import LocalStorage
from tests.submission import make_job


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def store(root: Path) -> DatasetStore:
    return DatasetStore(LocalStorage(), str(root), "ada")


def files_below(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_the_same_content_is_uploaded_once(store: DatasetStore, root: Path) -> None:
    array = np.arange(12, dtype="float32").reshape(3, 4)
    first = put_value(store, "a", array)
    again = put_value(store, "b", array.copy())
    assert first.uploaded == first.dataset.size > 0
    assert again.uploaded == 0
    assert first.dataset.uri == again.dataset.uri
    digest = first.dataset.digest
    assert files_below(root) == [
        f"data/content/{digest}.json",
        f"data/content/{digest}/data.npy",
        "data/names/a.json",
        "data/names/b.json",
    ]
    assert np.array_equal(np.load(first.dataset.uri.removeprefix("file://")), array)
    assert put_value(store, "c", array + 1).dataset.digest != digest


def test_files_and_directories_are_private(store: DatasetStore, root: Path) -> None:
    put_value(store, "a", np.arange(3))
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [root, *root.rglob("*")]}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


def test_arrays_of_a_dict_are_one_file(store: DatasetStore) -> None:
    arrays = {"x": np.ones((2, 3), "float32"), "y": np.array(["a", "b"])}
    dataset = put_value(store, "both", arrays).dataset
    assert dataset.uri.endswith("/data.npz")
    assert dataset.schema == (("x", "float32 (2, 3)"), ("y", "<U1 (2,)"))
    with np.load(dataset.uri.removeprefix("file://")) as found:
        assert found["y"].tolist() == ["a", "b"]
    assert put_value(store, "again", arrays).uploaded == 0


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.array([{}]), "Python objects or a mask"),
        (np.ma.array([1], mask=[True]), "Python objects or a mask"),
        ({"../x": np.ones(1)}, "not a name for an array"),
        ({1, 2}, "A set cannot be put"),
        ({}, "A dict cannot be put"),
        ("no-such-file", "There is no file no-such-file"),
    ],
)
def test_what_cannot_be_stored_is_refused(store: DatasetStore, value: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        put_value(store, "a", value)
    assert store.names() == []


@pytest.mark.parametrize("name", ["", "../a", "a/b", "-a", "a b", "x" * 65, "ä"])
def test_an_invalid_name_is_refused_before_an_upload(
    store: DatasetStore, root: Path, name: str
) -> None:
    with pytest.raises(UsageError, match="not the name of a dataset"):
        put_value(store, name, np.ones(1))
    with pytest.raises(UsageError, match="not the name of a dataset"):
        store.find(name)
    assert not root.exists()


def test_files_keep_their_names(store: DatasetStore, tmp_path: Path) -> None:
    folder = tmp_path / "train"
    (folder / "a b").mkdir(parents=True)
    (folder / "a b" / "ü.csv").write_text("1")
    (folder / "x.csv").write_text("22")
    directory = put_value(store, "train", folder).dataset
    assert (directory.files, directory.size, directory.file) == (2, 3, None)
    assert (Path(directory.uri.removeprefix("file://")) / "a b" / "ü.csv").read_text() == "1"
    single = put_value(store, "one", str(folder / "x.csv")).dataset
    assert single.uri.endswith("/x.csv")
    several = put_value(store, "all", [folder, folder / "x.csv"]).dataset
    assert [row[0] for row in several.sample.rows] == ["train/a b/ü.csv", "train/x.csv", "x.csv"]


def test_files_that_cannot_be_stored_are_named(store: DatasetStore, tmp_path: Path) -> None:
    folder = tmp_path / "train"
    folder.mkdir()
    with pytest.raises(UsageError, match="no files"):
        put_value(store, "a", folder)
    (folder / "a:b").write_text("1")
    with pytest.raises(UsageError, match=r"a:b has a name"):
        put_value(store, "a", folder)
    (folder / "a:b").unlink()
    (folder / "link").symlink_to(tmp_path)
    with pytest.raises(UsageError, match="link is a link to a directory"):
        put_value(store, "a", folder)
    (folder / "link").unlink()
    os.mkfifo(folder / "pipe")
    with pytest.raises(UsageError, match="pipe is not a file"):
        put_value(store, "a", folder)
    (folder / "x").write_text("1")
    with pytest.raises(UsageError, match="Two of the files"):
        put_value(store, "a", [folder / "x", folder / ".." / "train" / "x"])


def test_a_file_that_changes_meanwhile_is_refused(
    store: DatasetStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x"
    file.write_text("1")
    upload = LocalStorage.upload

    def grow(self: LocalStorage, source: Path, path: str, *rest: Any, **more: Any) -> None:
        upload(self, source, path, *rest, **more)
        file.write_text("12")

    monkeypatch.setattr(LocalStorage, "upload", grow)
    with pytest.raises(UsageError, match="x has changed while it was read"):
        put_value(store, "a", file)
    assert store.names() == []
    assert store.unnamed([]) == []


def test_a_name_is_given_to_other_data_only_on_request(store: DatasetStore) -> None:
    old = put_value(store, "a", np.ones(1)).dataset
    with pytest.raises(UsageError, match="belongs to other data"):
        put_value(store, "a", np.zeros(1))
    new = put_value(store, "a", np.zeros(1), replaces=True).dataset
    assert store.find("a").digest == new.digest
    assert [one.digest for one in store.unnamed(store.names())] == [old.digest]
    assert store.find(old.digest[:8]).digest == old.digest
    with pytest.raises(UsageError, match="Did you mean a"):
        store.find("aa")


def test_content_is_removed_with_its_last_name(store: DatasetStore, root: Path) -> None:
    put_value(store, "a", np.ones(1))
    put_value(store, "b", np.ones(1))
    assert store.others(store.find("a")) == ["b"]
    assert store.remove(store.find("a")) == 0
    size = store.find("b").size
    assert store.remove(store.find("b")) == size
    assert files_below(root) == []
    assert put_value(store, "a", np.ones(1)).uploaded == size


def test_concurrent_puts_upload_once_and_survive_a_removal(
    store: DatasetStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "_POLL", 0.01)
    uploads: list[str] = []
    gate = threading.Barrier(4)
    upload = LocalStorage.upload

    def count(self: LocalStorage, source: Path, path: str, *rest: Any, **more: Any) -> None:
        uploads.append(path)
        upload(self, source, path, *rest, **more)

    monkeypatch.setattr(LocalStorage, "upload", count)
    results = []

    def put(name: str) -> None:
        gate.wait()
        results.append(put_value(DatasetStore(LocalStorage(), str(root), name), name, np.ones(9)))

    threads = [threading.Thread(target=put, args=(f"n{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(uploads) == 1
    assert sorted(result.uploaded > 0 for result in results) == [False, False, False, True]
    assert len(store.names()) == 4

    # Put and remove at the same time: a name that exists has its content.
    stop = threading.Event()

    def remove() -> None:
        while not stop.is_set():
            for one in store.names():
                store.remove(one)

    thread = threading.Thread(target=remove)
    thread.start()
    for number in range(8):
        put_value(store, f"m{number % 3}", np.ones(9))
    stop.set()
    thread.join(30)
    last = put_value(store, "last", np.ones(9)).dataset
    assert Path(last.uri.removeprefix("file://")).is_file()
    assert [name for name in files_below(root) if name.endswith(".claim")] == []


def test_a_stale_claim_is_taken_over(
    store: DatasetStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "STALE_AFTER", 0.3)
    digest = put_value(store, "a", np.ones(1)).dataset.digest
    store.remove(store.find("a"))
    claim = root / "data" / "content" / f"{digest}.claim"
    claim.write_text("of a client that was killed\n")
    assert put_value(store, "a", np.ones(1)).uploaded > 0
    assert not claim.exists()


def test_a_claim_that_is_released_while_it_is_compared_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, storage = str(tmp_path / "content.claim"), LocalStorage()
    Path(path).write_bytes(b"another client")

    def read(path: str, offset: int = 0, length: int | None = None) -> bytes:
        Path(path).unlink(missing_ok=True)  # The other client releases it just now.
        raise FileNotFoundError(path)

    monkeypatch.setattr(storage, "read", read)
    with claimed(storage, path, lambda: False) as held:
        assert held
        assert Path(path).exists()


def test_a_renewed_claim_is_respected(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "STALE_AFTER", 0.4)
    monkeypatch.setattr(claims, "RENEW_EVERY", 0.05)
    path = str(root / "x.claim")
    entered: list[float] = []

    def second() -> None:
        with claimed(LocalStorage(), path) as held:
            entered.append(held)

    with claimed(LocalStorage(), path):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.8)
        assert entered == []
    thread.join(10)
    assert entered == [True]


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"digest": "../../x"},
        {"directory": "../x"},
        {"directory": ".."},
        {"file": "../x"},
        {"file": ""},
        {"size": -1},
        {"rows": "many"},
        {"name": "../x"},
        {"schema": [["a"]]},
        {"sample": {"columns": ["a"], "rows": [["1", "2"]], "columns_left_out": 0}},
        {"sample": None},
        {"user": 7},
    ],
)
def test_a_malformed_descriptor_is_one_error(
    store: DatasetStore, root: Path, change: dict[str, Any]
) -> None:
    put_value(store, "a", np.ones(1))
    path = root / "data" / "names" / "a.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **change}))
    with pytest.raises(SubmarineError, match=r"a\.json cannot be read"):
        store.find("a")
    assert store.names() == []
    # A put repairs it.
    put_value(store, "a", np.ones(1))
    assert store.find("a").rows == 1


def test_no_json_is_an_error() -> None:
    for data in (b"", b"[]", b"{", b"null", b"[" * 100_000):
        with pytest.raises(SubmarineError, match="cannot be read"):
            parse_descriptor(data, "place")


def test_references_become_uris_with_the_digest(store: DatasetStore) -> None:
    dataset = put_value(store, "digits", np.ones(1)).dataset
    inputs = (
        NamedInput("TRAIN", "data:digits", shard=True),
        NamedInput("TEST", "hdfs:///test"),
        NamedInput("SAME", f"data:{dataset.digest[:10]}"),
    )
    spec, _bundle = make_job("pass", inputs=inputs, input_path="data:digits")
    found = resolve_datasets(spec, lambda: store)
    assert [item.uri for item in found.inputs] == [dataset.uri, "hdfs:///test", dataset.uri]
    assert found.inputs[0].shard
    assert found.input_path == dataset.uri
    plain, _bundle = make_job("pass", inputs=inputs[1:2])
    assert resolve_datasets(plain, lambda: pytest.fail("the store is not needed")) is plain
    with pytest.raises(UsageError, match="There is no dataset digit"):
        resolve_datasets(
            make_job("pass", inputs=(NamedInput("A", "data:digit"),))[0], lambda: store
        )


def test_a_frame_needs_the_extra(store: DatasetStore, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"jupyter-submarine\[data\]"):
        put_value(store, "a", pandas.DataFrame({"x": [1]}))
