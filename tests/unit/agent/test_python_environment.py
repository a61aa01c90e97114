"""The archive of a Python environment becomes a directory, once for the containers of a node."""

from __future__ import annotations

import gzip
import io
import os
import stat
import subprocess
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from submarine_runtime.agent.preparation import python_environment
from submarine_runtime.agent.preparation.python_environment import place_environment
from submarine_runtime.agent.program import Ending
from submarine_runtime.protocol import EndReason, layout
from submarine_runtime.storage import Scratch

Report = Callable[[str, float], None]


def tar_of(files: dict[str, bytes], links: dict[str, str] = {}) -> bytes:  # noqa: B006
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o755 if "/bin/" in f"/{name}" else 0o644
            archive.addfile(info, io.BytesIO(content))
        for name, target in links.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    return stream.getvalue()


def zip_of(files: dict[str, bytes], links: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, target in links.items():  # First: the files must not be written through them.
            info = zipfile.ZipInfo(name)
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, target)
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (stat.S_IFREG | (0o755 if "bin/" in name else 0o644)) << 16
            archive.writestr(info, content)
    return stream.getvalue()


FILES = {"bin/python3.11": b"#!/bin/sh\necho run\n", "lib/a b/ü.py": b"x = 1\n" * 1000}
LINKS = {"bin/python3": "python3.11"}


class Container:
    """A container's directory as YARN makes it, with a link to the localized archive."""

    def __init__(self, node: Path, content: bytes, name: str = "container_1") -> None:
        self.cache = node / "usercache/me/filecache/10"
        self.cache.mkdir(parents=True, exist_ok=True)
        self.archive = self.cache / "env.tar.gz"
        if not self.archive.exists():
            self.archive.write_bytes(content)
        root = node / "usercache/me/appcache/application_1" / name
        root.mkdir(parents=True)
        (root / layout.PYTHON_ENV_ARCHIVE).symlink_to(self.archive)
        self.scratch = Scratch(str(root), str(root / "logs"), "worker-0")
        self.environment = root / layout.PYTHON_ENV
        self.reports: list[tuple[str, float]] = []

    def report(self, sentence: str, share: float) -> None:
        self.reports.append((sentence, share))

    def place(self, report: Report | None = None) -> Ending | None:
        return place_environment(self.scratch, report or self.report, time.sleep)


@pytest.mark.parametrize(
    "content",
    [
        tar_of(FILES, LINKS),
        gzip.compress(tar_of(FILES, LINKS)),
        # Compressed in parallel: gzip members that follow each other.
        b"".join(
            gzip.compress(tar_of(FILES, LINKS)[at : at + 700])
            for at in range(0, len(tar_of(FILES, LINKS)), 700)
        ),
        zip_of(FILES, LINKS),
    ],
    ids=["tar", "gzip", "members", "zip"],
)
def test_archive_is_unpacked_beside_the_archive(tmp_path: Path, content: bytes) -> None:
    container = Container(tmp_path, content)
    assert container.place() is None
    for name, expected in FILES.items():
        assert (container.environment / name).read_bytes() == expected
    assert os.readlink(container.environment / "bin/python3") == "python3.11"
    assert subprocess.check_output([container.environment / "bin/python3"]) == b"run\n"
    assert not os.access(container.environment / "lib/a b/ü.py", os.X_OK) or os.geteuid() == 0
    assert not (container.environment / "lib/a b/ü.py").stat().st_mode & stat.S_IXUSR
    assert container.environment.resolve().parent == container.cache
    assert sorted(path.suffix for path in container.cache.iterdir()) == ["", ".gz", ".lock"]
    assert container.reports[0][0].startswith("Unpacking the Python environment: ")


def test_next_container_uses_the_directory(tmp_path: Path) -> None:
    first = Container(tmp_path, tar_of(FILES, LINKS))
    assert first.place() is None
    second = Container(tmp_path, b"", "container_2")
    assert second.place() is None
    assert second.reports == []
    assert second.environment.resolve() == first.environment.resolve()


def test_changed_archive_is_unpacked_again(tmp_path: Path) -> None:
    first = Container(tmp_path, tar_of(FILES, LINKS))
    assert first.place() is None
    first.archive.write_bytes(tar_of({"bin/python3": b"other"}))
    second = Container(tmp_path, b"", "container_2")
    assert second.place() is None
    assert (second.environment / "bin/python3").read_bytes() == b"other"


def test_concurrent_containers_unpack_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, entered, go = [], threading.Event(), threading.Event()
    extract = python_environment._extract_any

    def slow(archive: str, target: str, progress: python_environment._Progress) -> None:
        calls.append(target)
        progress.at(os.stat(archive).st_size // 2)
        entered.set()
        assert go.wait(20)
        extract(archive, target, progress)

    monkeypatch.setattr(python_environment, "_extract_any", slow)
    first = Container(tmp_path, tar_of(FILES, LINKS))
    second = Container(tmp_path, b"", "container_2")
    thread = threading.Thread(target=first.place)
    thread.start()
    assert entered.wait(20)

    def report(sentence: str, share: float) -> None:
        second.report(sentence, share)
        go.set()

    assert second.place(report) is None
    thread.join()
    assert len(calls) == 1
    # The second container shows the progress of the first.
    assert second.reports[0][1] == 0.5
    assert "50 %" in second.reports[0][0]


def test_container_that_was_killed_leaves_no_environment(tmp_path: Path) -> None:
    first = Container(tmp_path, tar_of(FILES, LINKS))

    class Stopped(Exception):
        pass

    def stop(sentence: str, share: float) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        first.place(stop)
    assert [path.suffix for path in first.cache.iterdir() if path.is_dir()] == []
    assert not os.path.lexists(first.environment)
    # SIGKILL leaves the incomplete directory.
    (lock,) = first.cache.glob("*.lock")
    partial = lock.with_suffix(".partial")
    partial.mkdir()
    (partial / "half").touch()
    second = Container(tmp_path, b"", "container_2")
    assert second.place() is None
    assert not partial.exists()
    assert not (second.environment / "half").exists()


def test_read_only_cache_is_replaced_by_the_directory_of_the_application(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a Docker container; root may write anywhere, so ``access`` answers for it here."""
    container = Container(tmp_path, tar_of(FILES, LINKS))
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: str(path) != str(container.cache) and access(path, mode)
    )
    assert container.place() is None
    assert container.environment.resolve().parent.name == "application_1"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"no archive at all", "could not be unpacked: tar: "),
        (gzip.compress(tar_of(FILES, LINKS))[:-20], "could not be unpacked: Compressed file ended"),
        (gzip.compress(tar_of(FILES))[:40] + b"x" * 400, "could not be unpacked: "),
        (zip_of(FILES, {})[:-30], "could not be unpacked: File is not a zip file"),
        (tar_of({"../../escape": b"x"}), "could not be unpacked: tar: "),
    ],
    ids=["text", "cut", "damaged", "zip", "escape"],
)
def test_damaged_archive_is_one_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    container = Container(tmp_path, content)
    ending = container.place()
    assert ending is not None
    assert ending.reason is EndReason.LAUNCH_FAILED
    assert words in ending.detail
    assert not os.path.lexists(container.environment)
    assert not list(tmp_path.rglob("escape"))
    assert [path for path in container.cache.iterdir() if path.is_dir()] == []


def test_full_disk_is_reported_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of the name tar that fails as GNU tar does on a full disk."""
    programs = tmp_path / "bin"
    programs.mkdir()
    fake = programs / "tar"
    fake.write_text(
        "#!/bin/sh\ncat >/dev/null\necho 'tar: lib/x: Wrote only 512 of 10240 bytes' >&2\n"
        "echo 'tar: lib/y: Cannot write: No space left on device' >&2\nexit 2\n"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    container = Container(tmp_path / "node", tar_of(FILES, LINKS))
    ending = container.place()
    assert ending is not None
    assert ending.reason is EndReason.DISK_FULL
