"""``env build|list|show|check|rm`` and ``gc``, on the job root of this machine."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

import submarine_jobs
from submarine_jobs.client import PackedEnvironments
from submarine_jobs.commands.grammar import execute
from submarine_jobs.environments import EnvironmentFile, check_env, provision as providing
from submarine_jobs.errors import ClusterError, UsageError
from submarine_jobs.frontends import JOB_FAILED
from submarine_runtime.protocol import EnvironmentLayers
from tests.frontends import RecordingFrontend

_CHECK = PackedEnvironments._check


class World:
    """An environment with a few files, whose packed copies are in a cache of this machine."""

    def __init__(self, root: Path) -> None:
        self.files = root / "files"
        self.files.mkdir()
        (self.files / "large.bin").write_bytes(os.urandom(100_000))
        self.jobs = root / "state"

    def items(self) -> list[EnvironmentFile]:
        found = []
        for path in sorted(self.files.iterdir()):
            info = path.stat()
            name, changed = f"lib/{path.name}", info.st_ctime_ns
            found.append(
                EnvironmentFile(name, str(path), info.st_size, info.st_mtime_ns, 0o644, changed)
            )
        return found

    @property
    def cache(self) -> Path:
        (found,) = self.jobs.rglob("cache")
        return found

    def unused_for_days(self, digest: str, days: float) -> None:
        (path,) = self.cache.glob(f"python-env-{digest}*.used")
        os.utime(path, (time.time() - days * 86400,) * 2)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("SUBMARINE_BACKEND", "local")
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.setattr(submarine_jobs, "_sessions", {})
    monkeypatch.chdir(tmp_path)
    made = World(tmp_path)
    monkeypatch.setattr(providing, "kernel_items", made.items)
    # As if this machine were a cluster, whose jobs have packed environments.
    monkeypatch.setattr(
        PackedEnvironments, "_check", lambda self, env: check_env(env, self._storage)
    )
    return made


def command(*words: str, answer: bool | None = None) -> Any:
    return execute(words, RecordingFrontend("cli", answer=answer))


def test_environments_are_built_listed_shown_and_removed(world: World) -> None:
    assert command("env", "list").value == []
    assert command("env", "check", "auto").value == {"on_cluster": False}
    first = command("env", "build", "auto")
    assert re.search(r"auto is on the cluster: [\d.]+ kB were uploaded\.", first.text)
    assert command("env", "build", "auto").text.startswith("The cluster has auto already.")
    assert command("env", "check", "auto").value["on_cluster"] is True
    (world.files / "added.py").write_text("x = 1\n")
    assert command("env", "check", "auto").value == {"on_cluster": False}
    second = command("env", "build", "auto").value
    rows = {row["digest"]: row for row in command("env", "list").value}
    base, delta = (value["digest"][:32] for value in (first.value, second))
    assert set(rows) == {base, delta}
    assert (rows[base]["base"], rows[delta]["base"]) == ("", base)
    assert {row["source"] for row in rows.values()} == {"auto"}
    shown = command("env", "show", delta[:6])
    assert shown.value["archives"][0]["size"] > 100_000
    assert ".delta.tar.gz" in shown.text
    with pytest.raises(UsageError, match=f"{base} is the base of {delta[:12]}"):
        command("env", "rm", base)
    assert command("env", "rm", delta).value["freed"] < 10_000
    assert command("env", "rm", base).value["freed"] > 100_000
    assert command("env", "list").value == []
    assert [path.name for path in world.cache.glob("python-env-*")] == []


def test_environment_of_a_job_is_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = command("env", "build", "auto").value["digest"][:32]
    in_use: set[str] | None = {f"python-env-{digest}"}
    monkeypatch.setattr(PackedEnvironments, "in_use", lambda self: in_use)
    with pytest.raises(UsageError, match="is used by jobs that have not ended"):
        command("env", "rm", digest)
    world.unused_for_days(digest, 60)
    assert command("gc", "--yes").value["removed"] == []
    assert command("env", "list").value[0]["in_use"] == "in use"
    in_use = None
    with pytest.raises(UsageError, match="It is not known whether jobs use"):
        command("env", "rm", digest)
    with pytest.raises(ClusterError, match="It is not known which environments"):
        command("gc", "--yes")
    assert command("env", "rm", digest, "--force").value["freed"] > 100_000


def test_gc_asks_and_keeps_what_is_used(world: World) -> None:
    base = command("env", "build", "auto").value["digest"][:32]
    (world.files / "added.py").write_text("x = 1\n")
    delta = command("env", "build", "auto").value["digest"][:32]
    assert command("gc").text == "No packed environment is unused for 30 d 00 h."
    world.unused_for_days(base, 40)
    world.unused_for_days(delta, 8)
    listed = command("gc", "--older-than", "7d")
    assert (base[:12] in listed.text, listed.exit_code) == (True, JOB_FAILED)
    asking = RecordingFrontend("cli", answer=False)
    refused = execute(("gc", "--older-than", "7d"), asking)
    assert refused.exit_code == JOB_FAILED
    # The table is shown once: before the question.
    assert base[:12] in asking.said[0]
    assert refused.text == "Nothing was removed; --yes asks no question."
    assert {row["digest"] for row in refused.value["unused"]} == {base, delta}
    assert refused.value["removed"] == []
    # The base is not used itself, but by the delta, whose last use is not that long ago.
    assert command("gc", "--older-than", "30d", "--yes").value["removed"] == []
    done = command("gc", "--older-than", "7d", answer=True)
    assert set(done.value["removed"]) == {base, delta}
    assert "2 environments are removed" in done.text
    assert command("env", "list").value == []


def test_gc_keeps_an_environment_that_is_used_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = command("env", "build", "auto").value["digest"][:32]
    world.unused_for_days(digest, 40)

    def answer(question: str) -> bool:
        command("env", "build", "auto")
        return True

    frontend = RecordingFrontend("cli")
    monkeypatch.setattr(frontend, "confirm", answer)
    done = execute(("gc",), frontend)
    assert done.value["removed"] == []
    assert "1 was used meanwhile and is kept" in done.text
    assert command("env", "check", "auto").value["on_cluster"] is True


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("env", "build", "host"), "host is not packed, so there is nothing to build"),
        (("env", "build", "venv:x"), "is not known"),
        (("env", "check", "requirements:none.txt"), "there is no such file"),
        (("env", "show", "00"), "No environment in .* has the digest '00'"),
        (("env", "rm", ""), "No environment in .* has the digest ''"),
        (("gc", "--older-than", "59m"), "is too short. Give at least 1h"),
        (("gc", "--older-than", "soon"), "--older-than"),
    ],
)
def test_bad_input_is_one_sentence(world: World, words: tuple[str, ...], sentence: str) -> None:
    command("env", "build", "auto")
    with pytest.raises(UsageError, match=sentence):
        command(*words)


def test_local_backend_packs_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PackedEnvironments, "_check", _CHECK)
    for verb in ("build", "check"):
        with pytest.raises(UsageError, match="none is packed"):
            execute(("env", verb, "auto", "--backend", "local"), RecordingFrontend("cli"))


def test_description_names_what_it_was_made_for(world: World) -> None:
    command("env", "build", "auto")
    (path,) = world.cache.glob("python-env-*.json")
    assert EnvironmentLayers.from_bytes(path.read_bytes()).source == "auto"
