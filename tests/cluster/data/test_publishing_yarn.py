"""Publications to a real HDFS through WebHDFS, interrupted at each step."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator

import pytest

from submarine_jobs.trained_models.directories import PublicationError, switch_alias
from submarine_minicluster.cluster import Minicluster
from submarine_runtime.cluster_http import simple_access
from submarine_runtime.storage import WebHdfsStore
from tests.local.models.interrupted_store import check_each_interruption, publish, word_of

pytestmark = pytest.mark.cluster


@pytest.fixture
def place(minicluster: Minicluster) -> Iterator[tuple[str, WebHdfsStore]]:
    user = os.environ.get("USER") or "root"
    path = f"/user/{user}/publish-test-{secrets.token_hex(4)}"
    made = WebHdfsStore([minicluster.url("namenode")], path, simple_access(user), 10)
    yield path, made
    made.delete(path, recursive=True)


@pytest.mark.parametrize("replaced", [False, True], ids=["new", "replaced"])
def test_a_reader_sees_one_version_at_each_step(
    minicluster: Minicluster, place: tuple[str, WebHdfsStore], replaced: bool
) -> None:
    path, _store = place
    user = os.environ.get("USER") or "root"

    def made() -> WebHdfsStore:
        return WebHdfsStore([minicluster.url("namenode")], path, simple_access(user), 10)

    assert check_each_interruption(made, path, replaced=replaced) >= (10 if replaced else 8)


def test_modes_aliases_and_an_existing_version(place: tuple[str, WebHdfsStore]) -> None:
    path, store = place
    target = f"{path}/digits/7"
    publish(store, target, "old", replace=False)
    assert [(e.name, oct(e.mode)) for e in store.entries(f"{path}/digits")] == [("7", "0o755")]
    assert {e.mode for e in store.entries(target) if not e.is_directory} == {0o644}
    with pytest.raises(PublicationError, match="exists already"):
        publish(store, target, "new", replace=False)
    assert word_of(store, target) == "old"
    for digest in ("1", "2"):
        switch_alias(store, target, "prod", {"digest": digest})
        assert f'"digest": "{digest}"'.encode() in (
            store.read(f"{path}/digits/_aliases/prod.json") or b""
        )
