"""Packing the kernel's environment: what goes in, what its digest depends on, that it runs."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from submarine_jobs.environments import (
    current_layout,
    fingerprint,
    list_items,
    provide_environment,
    provision as providing,
    remove_unused,
    write_archive,
)
from submarine_jobs.environments.archive import ParallelGzip, content_digest, relocated
from submarine_jobs.environments.inventory import editable_sources
from submarine_jobs.errors import UsageError
from submarine_jobs.model import PythonEnv, parse_python_env
from submarine_jobs.storage import LocalStorage
from tests.random_examples import examples


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A site-packages with one package in it."""
    root = tmp_path / "packages"
    (root / "abacus").mkdir(parents=True)
    (root / "abacus" / "__init__.py").write_text("BEADS = 10\n")
    (root / "abacus" / "__pycache__").mkdir()
    (root / "abacus" / "__pycache__" / "__init__.pyc").write_bytes(b"x")
    return root


@pytest.mark.parametrize(
    ("text", "kind", "python"),
    [
        ("host", "host", "/k/python"),
        ("auto", "auto", "python-env/bin/python3"),
        ("path:/opt/env/", "path", "/opt/env/bin/python3"),
        ("archive:hdfs://nn/e.tar.gz", "archive", "python-env/bin/python3"),
        ("docker:org/image:1.2", "docker", "python3"),
    ],
)
def test_what_python_env_may_say(text: str, kind: str, python: str) -> None:
    env = parse_python_env(text)
    assert (env.kind, env.interpreter("/k/python")) == (kind, python)


@pytest.mark.parametrize(
    "text", ["", "conda", "path:opt", "archive:x.tar.zst", "docker:", "docker:a b", "path:/a\0b"]
)
def test_what_python_env_may_not_say(text: str) -> None:
    with pytest.raises(UsageError):
        parse_python_env(text)


@given(st.lists(st.binary(max_size=1 << 12), max_size=20))
@settings(max_examples=examples(20))
def test_members_one_after_the_other_are_one_gzip_file(pieces: list[bytes]) -> None:
    import io

    target = io.BytesIO()
    stream = ParallelGzip(target, 2)
    for piece in [*pieces, b"end"]:
        stream.write(piece * 300)
    stream.finish()
    assert gzip.decompress(target.getvalue()) == b"".join(p * 300 for p in [*pieces, b"end"])


def test_digest_is_of_content_and_fingerprint_of_times(packages: Path) -> None:
    layout = replace(current_layout((packages,)), scripts=None)
    items = [i for i in list_items(layout) if "/abacus/" in i.name]
    assert len(items) == 2
    before = fingerprint(items), content_digest(items, layout)
    os.utime(packages / "abacus" / "__init__.py", (1, 1))
    (packages / "abacus" / "__pycache__" / "more.pyc").write_bytes(b"y")
    touched = [i for i in list_items(layout) if "/abacus/" in i.name]
    assert content_digest(touched, layout) == before[1]
    assert fingerprint(touched) != before[0]
    (packages / "abacus" / "__init__.py").write_text("BEADS = 12\n")
    changed = [i for i in list_items(layout) if "/abacus/" in i.name]
    assert content_digest(changed, layout) != before[1]


@pytest.mark.slow
def test_what_is_packed_runs_anywhere(packages: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "count").write_text("#!/nowhere/python3\nimport abacus\nprint('script')\n")
    (tmp_path / "bin" / "count").chmod(0o755)
    layout = replace(current_layout((packages,)), scripts=tmp_path / "bin")
    items = list(list_items(layout))
    archive = tmp_path / "env.tar.gz"
    seen: list[int] = []
    packed = write_archive(items, layout, archive, lambda done, total: seen.append(done))
    assert packed.size == archive.stat().st_size < 80 << 20
    assert packed.sha256 == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert seen == sorted(seen)
    assert seen[-1] == sum(item.size for item in items)
    place = tmp_path / "a place" / "python-env"
    place.mkdir(parents=True)
    # Python has filters since 3.11.4; Debian 12's is older.
    whole: dict[str, Any] = (
        {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}
    )
    with tarfile.open(archive) as tar:
        tar.extractall(place, **whole)
    code = "import abacus, ssl, ctypes, json, sys; print(json.dumps([abacus.BEADS, sys.prefix]))"
    done = subprocess.run(
        [str(place / "bin" / "python3"), "-I", "-c", code],
        env={},
        cwd="/",
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout) == [10, str(place)]
    script = subprocess.run(
        [str(place / "bin" / "count")],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert script.stdout == "script\n"


def test_relocation_keeps_the_length_and_refuses_what_is_too_short() -> None:
    data = b"\x7fELF..\0/opt/some/where/python/lib\0.."
    new = relocated(data, "/opt/some/where/python/lib")
    assert len(new) == len(data)
    assert b"\0$ORIGIN/../lib\0" in new
    assert b"/opt" not in new
    assert relocated(b"#!/bin/sh", "/opt/some/where/python/lib") == b"#!/bin/sh"
    with pytest.raises(ValueError, match="too short"):
        relocated(b"\x7fELF\0/opt/lib\0", "/opt/lib")


def test_editable_packages_are_found_by_path_and_by_finder(tmp_path: Path) -> None:
    site, project, other = tmp_path / "site", tmp_path / "project", tmp_path / "other"
    for package in (project / "mine", other / "theirs"):
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
    (project / "single.py").write_text("")
    (project / "setup.py").write_text("raise SystemExit")
    site.mkdir()
    (site / "mine.pth").write_text(f"import os\n{project}\n/nowhere\n")
    finder = f"MAPPING: dict[str, str] = {{'theirs': {str(other / 'theirs')!r}}}\nboom(\n"
    (site / "__editable___theirs_1_0_finder.py").write_text(finder.replace("boom(\n", ""))
    (site / "__editable___broken_1_0_finder.py").write_text(finder)
    found = dict(editable_sources(site))
    assert found == {
        "mine": project / "mine",
        "single": project / "single.py",
        "theirs": other / "theirs",
    }


def test_an_unchanged_environment_is_uploaded_once(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = replace(current_layout((packages,)), scripts=None)
    chosen = [item for item in list_items(layout) if "/abacus/" in item.name]
    monkeypatch.setattr(providing, "kernel_items", lambda: chosen)
    storage, cache, state = LocalStorage(), str(tmp_path / "root" / "cache"), tmp_path / "state"
    said: list[str] = []

    def progress(what: str, done: int, total: int) -> None:
        said.append(what)

    first = provide_environment(PythonEnv("auto"), storage, cache, state, progress)
    assert first is not None
    assert first.uploaded > 0
    assert list(dict.fromkeys(said)) == ["reading", "packing", "uploading"]
    said.clear()
    second = provide_environment(PythonEnv("auto"), storage, cache, state, progress)
    assert second is not None
    assert (second.files, second.uploaded, said) == (first.files, 0, [])
    # Another machine's state, the same content: nothing is sent either.
    third = provide_environment(PythonEnv("auto"), storage, cache, tmp_path / "elsewhere", progress)
    assert third is not None
    assert third.uploaded == 0
    assert provide_environment(PythonEnv("host"), storage, cache, state) is None
    assert not [path for path in state.iterdir() if path.suffix == ".gz"]


def test_an_archive_of_the_users_own(tmp_path: Path) -> None:
    storage, cache = LocalStorage(), str(tmp_path / "cache")
    archive = tmp_path / "mine.tgz"
    with pytest.raises(UsageError, match="no such file"):
        provide_environment(PythonEnv("archive", str(archive)), storage, cache, tmp_path)
    archive.write_bytes(b"1" * 100)
    given_one = provide_environment(PythonEnv("archive", str(archive)), storage, cache, tmp_path)
    again = provide_environment(PythonEnv("archive", str(archive)), storage, cache, tmp_path)
    assert given_one is not None
    assert again is not None
    assert (given_one.uploaded, again.uploaded, given_one.files) == (100, 0, again.files)
    assert given_one.files.archive.endswith(".tar.gz")
    url = given_one.files.archive
    there = provide_environment(PythonEnv("archive", url), storage, cache, tmp_path)
    assert there is not None
    assert there.files.archive == url
    with pytest.raises(UsageError, match="no such file"):
        provide_environment(PythonEnv("archive", "file:///nowhere/e.zip"), storage, cache, tmp_path)


def test_archives_that_no_job_uses_are_removed_after_a_month(tmp_path: Path) -> None:
    storage, cache, state = LocalStorage(), tmp_path / "cache", tmp_path / "state"
    kinds = ("unused", "used", "going-on", "unknown")
    paths = {kind: cache / f"python-env-{kind}.tar.gz" for kind in kinds}
    for kind, path in paths.items():
        storage.publish(str(path), b"archive")
        storage.publish(f"{cache}/python-env-{kind}.used", b"{}")
    (cache / "runtime-1.zip").write_bytes(b"other")
    long_ago = time.time() - 31 * 86400
    for kind in ("unused", "going-on", "unknown"):
        os.utime(cache / f"python-env-{kind}.used", (long_ago, long_ago))
    for path in (*paths.values(), cache / "runtime-1.zip"):
        os.utime(path, (long_ago, long_ago))
    os.unlink(cache / "python-env-unknown.used")

    def look(in_use: set[str] | None) -> list[str]:
        return remove_unused(storage, str(cache), state, lambda: in_use)

    assert look(None) == []
    assert look({paths["going-on"].name}) == [], "at most once a day"
    for marker in state.glob("environments.looked-*"):
        os.utime(marker, (long_ago, long_ago))
    assert look({paths["going-on"].name}) == ["python-env-unused"]
    left = {path.name for path in cache.iterdir()}
    assert paths["unused"].name not in left
    assert "python-env-unused.used" not in left
    assert {paths[kind].name for kind in ("used", "going-on", "unknown")} <= left
    assert "python-env-unknown.used" in left, "its month begins"
    assert "runtime-1.zip" in left


def test_the_running_interpreter_has_a_layout() -> None:
    layout = current_layout()
    assert layout.executable.is_file()
    assert (layout.library / "os.py").is_file()
    assert layout.version == "{}.{}".format(*sys.version_info[:2])
