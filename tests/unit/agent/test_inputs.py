"""Inputs of a task: fetched, shared out, and taken up where they broke off."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from submarine_jobs.model import default_kind
from submarine_runtime.agent.preparation import (
    InputError,
    SourceFile,
    divide,
    shard_of_task,
    write_listing,
)
from submarine_runtime.agent.preparation.inputs import (
    NOTHING,
    Shard,
    fetch_inputs,
    shard_files,
)
from submarine_runtime.frameworks import sharding_tasks
from submarine_runtime.launcher.remote_files import list_files
from submarine_runtime.protocol import EndReason, InputSource, NamedInput, expected_members
from submarine_runtime.storage import LocalStore, StoreError
from tests.configurations import make_role
from tests.local.data.data_files import (
    contents,
    make_config,
    make_scratch,
    write,
)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    (tmp_path / "job").mkdir()
    return LocalStore(str(tmp_path / "job"))


@given(st.lists(st.integers(0, 1000), max_size=40), st.integers(1, 6))
def test_shares_are_disjoint_complete_and_even(sizes: list[int], count: int) -> None:
    files = [SourceFile(f"f{number}", size) for number, size in enumerate(sizes)]
    parts = [shard_files(files, Shard(index, count)) for index in range(count)]
    assert sorted(file for part in parts for file in part) == sorted(files)
    loads = [sum(file.size for file in part) for part in parts]
    assert max(loads) - min(loads) <= max(sizes, default=0)
    assert max(map(len, parts)) - min(map(len, parts)) <= max(1, len(files) - count + 1)


def test_inputs_are_fetched_and_shared_out(store: LocalStore, tmp_path: Path) -> None:
    data = {f"part {n}+%é.csv": bytes([n]) * (n + 1) for n in range(5)}
    write(tmp_path / "set", {**data, "_SUCCESS": b"", "sub/deep.csv": b"d"})
    write(tmp_path, {"one.bin": b"single"})
    wishes = [
        NamedInput("TRAIN", str(tmp_path / "set"), shard=True),
        NamedInput("ALL", str(tmp_path / "set/")),
        NamedInput("ONE", str(tmp_path / "one.bin")),
    ]
    got: dict[str, bytes] = {}
    for index in range(3):
        config = make_config(fetch=wishes)
        scratch = make_scratch(tmp_path / f"s{index}", config)
        heard: list[int] = []
        shards = {"TRAIN": Shard(index, 3)}
        where = fetch_inputs(config, store, scratch, shards, lambda *step: heard.extend(step))  # noqa: B023
        assert heard[-2] == heard[-1] > 0
        assert contents(where["ALL"]) == contents(tmp_path / "set")
        assert Path(where["ONE"]).read_bytes() == b"single"
        part = contents(where["TRAIN"])
        assert part.pop("_SUCCESS") == b""
        assert not got.keys() & part.keys()
        got |= part
    assert got == {**data, "sub/deep.csv": b"d"}


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (NamedInput("A", "/nowhere/at/all"), "nothing at /nowhere/at/all"),
        (NamedInput("A", "{file}", shard=True), "is one file"),
    ],
)
def test_an_input_that_cannot_be_fetched(
    store: LocalStore, tmp_path: Path, wish: NamedInput, words: str
) -> None:
    write(tmp_path, {"file": b"x"})
    wish = replace(wish, uri=wish.uri.replace("{file}", str(tmp_path / "file")))
    config = make_config(fetch=[wish])
    with pytest.raises(InputError, match=words) as refused:
        fetch_inputs(config, store, make_scratch(tmp_path / "s", config), {"A": Shard(0, 2)})
    assert refused.value.reason is EndReason.INPUT_MISSING


def test_an_input_larger_than_the_disk(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(1 << 43)
    config = make_config(fetch=[NamedInput("A", str(tmp_path / "huge"))])
    with pytest.raises(InputError, match="GiB free") as refused:
        fetch_inputs(config, store, make_scratch(tmp_path / "s", config), {})
    assert refused.value.reason is EndReason.DISK_FULL


def listing(store: LocalStore, root: Path, names: list[str]) -> dict[str, InputSource]:
    """Publish the listing of files below a directory, as a submission does."""
    files = [SourceFile(name, (root / name).stat().st_size, f"{root}/{name}") for name in names]
    store.publish("inputs/A.json.gz", write_listing(files, False, f"{root}/"))
    return {"A": InputSource("inputs/A.json.gz", "hdfs://nn:8020")}


def test_a_listing_of_the_submission_and_lists_of_uris(store: LocalStore, tmp_path: Path) -> None:
    names = [f"p é {number}.csv" for number in range(5)]
    write(tmp_path / "set", dict.fromkeys(names, b"x" * 9))
    sources = listing(store, tmp_path / "set", names)
    (tmp_path / "set/new.csv").write_bytes(b"after the submission")
    config = make_config(fetch=[NamedInput("A", "x", True, mode="list")], sources=sources)
    lines = []
    for index in range(2):
        scratch = make_scratch(tmp_path / f"s{index}", config)
        where = fetch_inputs(config, store, scratch, {"A": Shard(index, 2)})
        lines += Path(where["A"]).read_text(encoding="utf-8").splitlines()
    assert sorted(lines) == [f"hdfs://nn:8020{tmp_path}/set/{name}" for name in names]
    where = fetch_inputs(config, store, make_scratch(tmp_path / "ps", config), {"A": NOTHING})
    assert Path(where["A"]).read_bytes() == b""

    fetching = replace(config, fetch=(NamedInput("A", "x"),))
    where = fetch_inputs(fetching, store, make_scratch(tmp_path / "d", fetching), {})
    assert sorted(contents(where["A"])) == names
    (tmp_path / "set" / names[0]).unlink()
    with pytest.raises(
        InputError, match=r"there is no file .*p é 0\.csv.*deleted since"
    ) as refused:
        fetch_inputs(fetching, store, make_scratch(tmp_path / "e", fetching), {})
    assert refused.value.reason is EndReason.INPUT_MISSING
    store.publish("inputs/A.json.gz", b"no gzip")
    with pytest.raises(InputError, match="in the job directory is damaged"):
        fetch_inputs(fetching, store, make_scratch(tmp_path / "f", fetching), {})


@pytest.mark.parametrize(
    ("name", "mode", "words"),
    [
        ("a\nb", "list", "contains a line break"),
        ("a\u2028b", "list", "contains a line break"),
        ("../evil", "download", "is not a valid name"),
        ("a//b", "list", "is not a valid name"),
    ],
)
def test_names_that_no_list_or_directory_can_have(
    store: LocalStore, tmp_path: Path, name: str, mode: str, words: str
) -> None:
    data = write_listing([SourceFile(name, 1, f"/d/{name}")], False, "/d/")
    store.publish("inputs/A.json.gz", data)
    config = make_config(
        fetch=[NamedInput("A", "x", mode=mode)], sources={"A": InputSource("inputs/A.json.gz")}
    )
    with pytest.raises(InputError, match=words):
        fetch_inputs(config, store, make_scratch(tmp_path / "s", config), {})


@settings(max_examples=30)
@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 5), st.integers(0, 3))
def test_shares_depend_on_seed_and_epoch_and_stay_even(
    sizes: list[int], count: int, epoch: int
) -> None:
    files = [SourceFile(f"f{number}", size) for number, size in enumerate(sizes)]
    parts = divide(files, count, 7, epoch)
    assert parts == divide(list(reversed(files)), count, 7, epoch)
    assert sorted(file for part in parts for file in part) == sorted(files)
    loads = [sum(file.size for file in part) for part in parts]
    assert max(loads) - min(loads) <= max(sizes, default=0)


def test_another_epoch_distributes_files_of_one_size_differently() -> None:
    files = [SourceFile(f"f{number}", 5) for number in range(40)]
    found = [divide(files, 2, 1, epoch)[0] for epoch in range(3)]
    assert found[0] != found[1] != found[2]


def test_files_of_a_store_by_fsspec(tmp_path: Path) -> None:
    """With fsspec's own file system, which has the interface of s3fs and gcsfs."""
    write(tmp_path / "b", {"x/p 1": b"1", "x/p 2": b"22", "x/q": b"3", "y/z/p 3": b"333"})
    root = f"file://{tmp_path}/b"
    assert list_files(f"{root}/x/", 9) == (
        [(name, size, f"{root}/x/{name}") for name, size in (("p 1", 1), ("p 2", 2), ("q", 1))],
        False,
    )
    found, single = list_files(f"{root}/**/p*", 9)
    assert ([name for name, _size, _uri in found], single) == (["x/p 1", "x/p 2", "y/z/p 3"], False)
    assert list_files(f"{root}/x/q", 9) == ([("q", 1, f"{root}/x/q")], True)
    with pytest.raises(FileNotFoundError):
        list_files(f"{root}/*.none", 9)
    with pytest.raises(ValueError, match="more than 2 files"):
        list_files(f"{root}", 2)


class BreakingStore(LocalStore):
    """Breaks off each read after some bytes; a read from an offset goes on there."""

    reads: list[int]

    def stream(self, path: str, offset: int = 0, length: int | None = None) -> Any:
        self.reads.append(offset)
        for number, block in enumerate(super().stream(path, offset, length)):
            if number == 2:
                raise StoreError("the connection broke", transient=True)
            yield block


@pytest.mark.slow
def test_a_file_is_taken_up_where_it_broke_off(tmp_path: Path) -> None:
    data = os.urandom(5 * (1 << 18))
    write(tmp_path, {"big": data})
    store = BreakingStore(str(tmp_path))
    store.reads = []
    config = make_config(fetch=[NamedInput("A", str(tmp_path / "big"))])
    where = fetch_inputs(config, store, make_scratch(tmp_path / "s", config), {})
    assert Path(where["A"]).read_bytes() == data
    assert store.reads == [0, 2 << 18, 4 << 18]


@pytest.mark.parametrize(
    ("framework", "roles", "named", "expected"),
    [
        ("any", "worker=3", (), "worker:0 worker:1 worker:2"),
        ("pytorch", "chief worker=2", (), "chief:0 worker:0 worker:1"),
        ("auto", "chief worker=2 ps evaluator", (), "chief:0 worker:0 worker:1"),
        ("tensorflow", "chief worker=2", (), "chief:0 worker:0 worker:1"),
        ("tensorflow", "chief worker=2 ps evaluator tensorboard", (), "worker:0 worker:1"),
        ("keras", "master worker=2 ps", (), "worker:0 worker:1"),
        # Without a chief role, the first worker directs.
        ("tensorflow", "worker=3 ps=2", (), "worker:1 worker:2"),
        ("tensorflow", "worker ps", (), "worker:0"),
        ("mxnet", "worker=2 server scheduler", (), "worker:0 worker:1"),
        ("tensorflow", "chief worker=2 ps", ("chief", "worker"), "chief:0 worker:0 worker:1"),
        ("any", "worker=2 evaluator=2", ("evaluator",), "evaluator:0 evaluator:1"),
        ("any", "worker=11", (), " ".join(f"worker:{n}" for n in range(11))),
    ],
)
def test_the_tasks_that_train_share_the_files(
    framework: str, roles: str, named: tuple[str, ...], expected: str
) -> None:
    gang = []
    for text in roles.split():
        name, _, count = text.partition("=")
        gang.append(make_role(name, int(count or 1), kind=default_kind(name)))
    members = expected_members(gang)
    for order in (members, list(reversed(members))):
        assert sharding_tasks(framework, {}, order, named) == expected.split()


def test_the_part_of_each_task() -> None:
    tasks = ["chief:0", "worker:0"]
    assert shard_of_task("worker:0", tasks) == Shard(1, 2)
    assert shard_of_task("evaluator:0", tasks) == Shard(0, 1)
    assert shard_of_task("evaluator:0", ["evaluator:0", "evaluator:1"]) == Shard(0, 2)
    assert shard_of_task("ps:0", tasks) == shard_of_task("reader:0", tasks) == NOTHING
