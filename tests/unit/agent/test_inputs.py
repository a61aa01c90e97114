"""Inputs of a task: fetched, shared out, and taken up where they broke off."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from submarine_jobs.model import default_kind
from submarine_runtime.agent.preparation import InputError, SourceFile, shard_of_task
from submarine_runtime.agent.preparation.inputs import NOTHING, Shard, fetch_inputs, shard_files
from submarine_runtime.frameworks import sharding_tasks
from submarine_runtime.protocol import EndReason, NamedInput, expected_members
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
