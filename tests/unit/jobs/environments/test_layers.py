"""A changed environment is packed as a delta, from which the agent makes the whole environment."""

from __future__ import annotations

import os
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from submarine_jobs.environments import (
    EnvironmentFile,
    InterpreterLayout,
    cache as caching,
    current_layout,
    list_items,
    provide_environment,
    provision as providing,
    remove_unused,
)
from submarine_jobs.errors import StorageError, UsageError
from submarine_jobs.model import PackedEnvironment, PythonEnv
from submarine_jobs.storage import LocalStorage
from submarine_runtime.agent.preparation.python_environment import place_environment
from submarine_runtime.agent.program import Ending
from submarine_runtime.protocol import EndReason, EnvironmentLayers, layout
from submarine_runtime.storage import Scratch
from tests.random_examples import examples

#: Bytes that do not change, so that the changes are small beside them.
LARGE = 200_000
PLACE = f"lib/python{current_layout().version}/site-packages"


class Kernel:
    """An environment with a few files, its cluster, and a node of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.packages = root / "packages"
        self.storage = LocalStorage()
        self.cache = root / "root" / "cache"
        self.state = root / "state"
        self.steps: list[tuple[str, int, int]] = []
        self.write({"large/weights.bin": os.urandom(LARGE)})

    def write(self, files: Mapping[str, bytes]) -> None:
        for name, content in files.items():
            path = self.packages / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def layout(self) -> InterpreterLayout:
        return replace(current_layout((self.packages,)), scripts=None)

    def items(self) -> list[EnvironmentFile]:
        return [item for item in list_items(self.layout()) if item.name.startswith(PLACE)]

    def tree(self) -> dict[str, bytes]:
        files = (path for path in self.packages.rglob("*") if path.is_file())
        return {str(path.relative_to(self.packages)): path.read_bytes() for path in files}

    def provide(self, state: str = "state", whole: bool = False) -> PackedEnvironment:
        self.steps.clear()
        provided = provide_environment(
            PythonEnv("auto"),
            self.storage,
            str(self.cache),
            self.root / state,
            lambda what, done, total: self.steps.append((what, done, total)),
            whole=whole,
        )
        assert provided is not None
        self.uploaded = provided.uploaded
        return provided.files

    def total(self, step: str) -> int:
        """Return the bytes of a step; 0 if it did not happen."""
        return max((total for what, _, total in self.steps if what == step), default=0)

    def path(self, url: str) -> Path:
        path = self.storage.path_of(url)
        assert path is not None
        return Path(path)

    def members(self, url: str) -> list[str]:
        with tarfile.open(self.path(url)) as archive:
            return sorted(member.name.removeprefix(f"{PLACE}/") for member in archive)

    def unpack(self, files: PackedEnvironment, node: str = "node") -> Path | Ending:
        """Unpack as an agent does; return the site-packages, or the ending."""
        root = Path(tempfile.mkdtemp(prefix="container-", dir=self.root))
        names = (layout.PYTHON_ENV_ARCHIVE, layout.PYTHON_ENV_DELTA, layout.PYTHON_ENV_DESCRIPTION)
        for name, url in zip(names, (files.archive, files.delta, files.description), strict=True):
            if url:
                source = self.path(url)
                local = self.root / node / source.name / source.name
                if not local.exists():
                    local.parent.mkdir(parents=True)
                    local.write_bytes(source.read_bytes())
                (root / name).symlink_to(local)
        scratch = Scratch(str(root), str(root / "logs"), "worker-0")
        ending = place_environment(scratch, lambda text, share: None, time.sleep)
        return ending or root / layout.PYTHON_ENV / PLACE


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel(tmp_path)
    monkeypatch.setattr(providing, "kernel_items", made.items)
    return made


def tree(root: Path | Ending) -> dict[str, bytes]:
    assert isinstance(root, Path), root
    files = (path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def test_one_more_package_is_a_delta_of_its_files(kernel: Kernel) -> None:
    kernel.write({"abacus/__init__.py": b"BEADS = 10\n", "gone.py": b"", "kept.py": b"x = 1\n"})
    kernel.write({"abacus/__pycache__/__init__.cpython-311.pyc": b"old", "gone/more.py": b""})
    kernel.write({f"many/{number}.py": b"" for number in range(10)})
    first = kernel.provide()
    assert first.delta == ""
    kernel.write({"abacus/__init__.py": b"BEADS = 12\n", "added/__init__.py": b"new = 1\n"})
    kernel.write({"abacus/__pycache__/__init__.cpython-311.pyc": b"new"})
    kernel.write({"__pycache__/kept.cpython-311.pyc": b"made by an import"})
    (kernel.packages / "gone.py").unlink()
    (kernel.packages / "gone/more.py").unlink()
    second = kernel.provide()
    assert second.archive == first.archive
    changed = ["abacus/__init__.py", "added/__init__.py"]
    assert kernel.members(second.delta) == [
        changed[0],
        "abacus/__pycache__/__init__.cpython-311.pyc",
        changed[1],
    ]
    # Only changed and new files are read: eleven and eight bytes.
    assert kernel.total("reading") == 19
    layers = EnvironmentLayers.from_bytes(kernel.path(second.description).read_bytes())
    assert layers.omitted == tuple(
        f"{PLACE}/{name}" for name in ("abacus/__init__.py", "gone.py", "gone/more.py")
    )
    unpacked = kernel.unpack(second)
    expected = kernel.tree()
    del expected["__pycache__/kept.cpython-311.pyc"]  # Of a source that has not changed.
    assert tree(unpacked) == expected
    # The base is as it was, for the jobs that use it.
    assert tree(kernel.unpack(first))["abacus/__init__.py"] == b"BEADS = 10\n"
    assert isinstance(unpacked, Path)
    assert (unpacked / "large/weights.bin").stat().st_nlink == 2
    third = kernel.provide()
    assert (third, kernel.uploaded, kernel.steps) == (second, 0, [])


def test_environment_of_before_is_found_again(kernel: Kernel) -> None:
    first = kernel.provide()
    kernel.write({"added.py": b"x = 1\n"})
    assert kernel.provide().delta
    (kernel.packages / "added.py").unlink()
    assert (kernel.provide(), kernel.uploaded) == (first, 0)


def test_a_delta_refers_to_the_whole_archive_and_not_to_another_delta(kernel: Kernel) -> None:
    first = kernel.provide()
    for number in range(3):
        kernel.write({f"added{number}.py": b"x = 1\n"})
        layered = kernel.provide()
        assert layered.archive == first.archive
        assert kernel.members(layered.delta) == [f"added{n}.py" for n in range(number + 1)]
        assert tree(kernel.unpack(layered)) == kernel.tree()


@pytest.mark.parametrize("change", ["many bytes", "many files"])
def test_large_change_is_packed_as_a_whole(kernel: Kernel, change: str) -> None:
    kernel.write({f"small{number}.py": b"" for number in range(10)})
    first = kernel.provide()
    if change == "many bytes":
        kernel.write({"large/more.bin": os.urandom(LARGE)})
    else:
        for number in range(5):
            (kernel.packages / f"small{number}.py").unlink()
    second = kernel.provide()
    assert second.delta == ""
    assert second.archive != first.archive
    kernel.write({"added.py": b"x = 1\n"})
    assert kernel.provide().archive == second.archive, "the new base"


def test_where_yarn_unpacks_the_archive_is_whole(kernel: Kernel) -> None:
    kernel.provide()
    kernel.write({"added.py": b"x = 1\n"})
    layered = kernel.provide()
    whole = kernel.provide(whole=True)
    assert layered.delta
    assert whole.delta == ""
    assert tree(kernel.unpack(whole)) == kernel.tree()
    assert (kernel.provide(whole=True), kernel.uploaded) == (whole, 0)
    assert (kernel.provide(), kernel.uploaded) == (layered, 0)


NAMES = st.sampled_from(["a.py", "b.py", "p/a.py", "p/q/a.py", "p/q/b.so", "q", "r/s.py", "r"])
FILES = st.dictionaries(NAMES, st.binary(max_size=20), max_size=8).map(
    # A name cannot be a file and a directory.
    lambda files: {
        name: content
        for name, content in files.items()
        if not any(other.startswith(f"{name}/") for other in files)
    }
)


@given(FILES, FILES)
@settings(max_examples=examples(30), deadline=None)
def test_base_and_delta_are_the_new_environment(
    before: dict[str, bytes], after: dict[str, bytes]
) -> None:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        kernel = Kernel(Path(directory))
        patch.setattr(providing, "kernel_items", kernel.items)
        kernel.write({f"many/{number}.py": b"" for number in range(50)})
        kernel.write(before)
        kernel.provide()
        for name in before:
            (kernel.packages / name).unlink()
        for path in sorted(kernel.packages.rglob("*"), reverse=True):
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()
        kernel.write(after)
        files = kernel.provide()
        assert bool(files.delta) == (before != after)
        assert tree(kernel.unpack(files)) == kernel.tree()


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("part", ["archive", "delta", "description"])
def test_damaged_file_is_one_sentence_and_no_environment(kernel: Kernel, part: str) -> None:
    kernel.provide()
    kernel.write({"added.py": b"x = 1\n"})
    files = kernel.provide()
    damage(kernel.path(getattr(files, part)))
    ending = kernel.unpack(files)
    assert isinstance(ending, Ending)
    assert ending.reason is EndReason.LAUNCH_FAILED
    words = "its description is damaged; submit" if part == "description" else "is damaged, its"
    assert words in ending.detail
    assert not list(kernel.root.glob(f"container-*/{layout.PYTHON_ENV}"))


def test_delta_without_its_end_is_damaged(kernel: Kernel) -> None:
    """Each member of gzip is complete, so the program tar alone would not always notice."""
    kernel.provide()
    kernel.write({"added.py": b"x = 1\n"})
    files = kernel.provide()
    path = kernel.path(files.delta)
    path.write_bytes(path.read_bytes()[:-30])
    ending = kernel.unpack(files)
    assert isinstance(ending, Ending)
    assert "is damaged, its digest differs" in ending.detail


@pytest.mark.parametrize("lost", ["archive", "delta", "description", "size"])
def test_incomplete_environment_is_uploaded_again(kernel: Kernel, lost: str) -> None:
    kernel.provide()
    kernel.write({"added.py": b"x = 1\n"})
    files = kernel.provide()
    if lost == "size":
        kernel.path(files.archive).write_bytes(b"cut")
    else:
        kernel.path(getattr(files, lost)).unlink()
    again = kernel.provide()
    assert kernel.uploaded > 0
    assert tree(kernel.unpack(again)) == kernel.tree()


class Waiting(LocalStorage):
    """A storage that calls a function before an upload ends."""

    def __init__(self, before: Callable[[], object]) -> None:
        super().__init__()
        self.before = before

    def upload(
        self,
        source: Path,
        path: str,
        progress: Callable[[int], None] | None = None,
        *,
        mode: int = 0o600,
    ) -> None:
        self.before()
        super().upload(source, path, progress, mode=mode)


def test_two_machines_that_pack_at_the_same_time_use_one_archive(kernel: Kernel) -> None:
    barrier = threading.Barrier(2)
    kernel.storage = Waiting(lambda: barrier.wait(20))
    found: list[PackedEnvironment] = []
    threads = [
        threading.Thread(target=lambda name=name: found.append(kernel.provide(name)))
        for name in ("one", "two")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 2
    assert found[0] == found[1]
    assert len(list(kernel.cache.glob("*.tar.gz"))) == 1
    assert tree(kernel.unpack(found[0])) == kernel.tree()


def test_lost_file_system_leaves_no_environment(kernel: Kernel) -> None:
    def lose() -> None:
        raise StorageError("HDFS does not answer")

    first = kernel.provide()
    kernel.write({"added.py": b"x = 1\n"})
    kernel.storage = Waiting(lose)
    with pytest.raises(StorageError, match="does not answer"):
        kernel.provide()
    assert not list(kernel.state.glob("python-env-*")), "the archive on this machine"
    kernel.storage = LocalStorage()
    files = kernel.provide()
    assert files.archive == first.archive
    assert tree(kernel.unpack(files)) == kernel.tree()


def test_full_disk_is_a_sentence(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    mkstemp = tempfile.mkstemp

    def full(*args: str | Path) -> tuple[int, str]:
        descriptor, name = mkstemp(*args)  # type: ignore[call-overload]
        os.unlink(name)
        os.symlink("/dev/full", name)
        return descriptor, name

    monkeypatch.setattr(tempfile, "mkstemp", full)
    with pytest.raises(UsageError) as caught:
        kernel.provide()
    assert f"The disk of {kernel.state} is full" in str(caught.value)
    assert not list(kernel.state.glob("python-env-*"))
    monkeypatch.undo()
    monkeypatch.setattr(providing, "kernel_items", kernel.items)
    assert tree(kernel.unpack(kernel.provide())) == kernel.tree()


def unused_for_a_month(kernel: Kernel) -> None:
    long_ago = time.time() - 31 * 86400
    for path in kernel.cache.glob("*.used"):
        os.utime(path, (long_ago, long_ago))


def test_environment_that_is_used_while_it_is_removed_is_kept(kernel: Kernel) -> None:
    kernel.provide()
    kernel.write({"added.py": b"x = 1\n"})
    files = kernel.provide()
    unused_for_a_month(kernel)

    def submitted() -> set[str]:
        assert kernel.provide() == files
        return set()

    assert remove_unused(kernel.storage, str(kernel.cache), kernel.state, submitted) == []
    assert tree(kernel.unpack(files)) == kernel.tree()


def test_job_that_starts_during_a_removal_uploads_again(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The removal has looked for a use, and the submission begins before the first deletion."""
    first = kernel.provide()
    unused_for_a_month(kernel)
    found: list[PackedEnvironment] = []
    submission = threading.Thread(target=lambda: found.append(kernel.provide()))
    delete = kernel.storage.delete

    def slow(path: str, *, recursive: bool = False) -> None:
        if path.endswith(".json"):
            submission.start()
            time.sleep(1)
            assert found == []
        delete(path, recursive=recursive)

    monkeypatch.setattr(kernel.storage, "delete", slow)
    removed = remove_unused(kernel.storage, str(kernel.cache), kernel.state, set)
    submission.join(20)
    assert len(removed) == 1
    assert found[0].archive != first.archive
    assert tree(kernel.unpack(found[0])) == kernel.tree()


def test_removal_that_was_interrupted_does_not_block(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = kernel.provide()
    key = kernel.path(first.archive).name.partition(".")[0]
    (kernel.cache / f"{key}.removing").touch()
    monkeypatch.setattr(caching, "REMOVAL_SECONDS", 0.5)
    assert kernel.provide() == first
    assert not (kernel.cache / f"{key}.removing").exists()
