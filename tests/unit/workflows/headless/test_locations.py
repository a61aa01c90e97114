"""Where notebooks lie: files in one step, URLs, places that are away."""

from __future__ import annotations

from pathlib import Path

import fsspec
import nbformat
import pytest

from submarine_jobs.errors import StorageError, UsageError
from submarine_workflows.headless.saving import OutputNotebook
from submarine_workflows.locations import (
    Location,
    papermill_handlers as papermill_places,
    urls as places,
    without_password,
)
from tests.notebooks import notebook

# Places


def test_a_local_file_is_replaced_in_one_step_and_keeps_its_mode(tmp_path: Path) -> None:
    target = tmp_path / "real.ipynb"
    target.write_text("old")
    target.chmod(0o640)
    link = tmp_path / "link.ipynb"
    link.symlink_to(target)
    places.find_location(str(link)).write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.ipynb", "real.ipynb"]


def test_a_write_that_fails_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "x.ipynb"
    target.write_text("old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        places.find_location(str(target)).write(b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["x.ipynb"]
    assert target.read_text() == "old"


def test_papermills_own_last_write_replaces_the_output_in_one_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from papermill.iorw import local_file_io_cwd, papermill_io, write_ipynb

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(papermill_io, "_handlers", list(papermill_io._handlers))
    (tmp_path / "elsewhere").mkdir()
    reader = tmp_path / "reader.ipynb"
    reader.write_text("half read")
    reader.rename("out.ipynb")
    (tmp_path / "same").hardlink_to("out.ipynb")
    with local_file_io_cwd():
        before = list(papermill_io._handlers)
        with papermill_places.atomic_last_write("out.ipynb"):
            pass
        assert papermill_io._handlers != before
        monkeypatch.chdir(tmp_path / "elsewhere")  # papermill's --cwd
        write_ipynb(notebook("1 + 1"), "out.ipynb")
        # Papermill is as it was: writes of others are not redirected.
        assert papermill_io._handlers == before
    assert nbformat.read(tmp_path / "out.ipynb", 4).cells[0].source == "1 + 1"
    assert (tmp_path / "same").read_text() == "half read"
    assert {item.name for item in tmp_path.iterdir()} == {"out.ipynb", "same", "elsewhere"}
    for other in (None, "-", "h", "hdfs:///tmp/x.ipynb"):
        with papermill_places.atomic_last_write(other):
            assert papermill_io._handlers == before
    with pytest.raises(SystemExit), papermill_places.atomic_last_write("out.ipynb"):
        raise SystemExit(143)
    assert papermill_io._handlers == before


def test_any_url_that_fsspec_knows(tmp_path: Path) -> None:
    place = places.find_location("memory://headless/x.ipynb")
    with pytest.raises(UsageError, match="There is no file"):
        place.read()
    place.write(b"{}")
    assert place.read() == b"{}"
    assert fsspec.filesystem("memory").cat("/headless/x.ipynb") == b"{}"
    local = places.find_location(f"file://{tmp_path}/y.ipynb")
    assert local.local == tmp_path / "y.ipynb"


def test_a_password_in_a_url_is_not_shown() -> None:
    shown = without_password("sftp://me:secret@host/x.ipynb")
    assert shown == "sftp://host/x.ipynb"


class Away(Location):
    """HDFS that is there again after so many tries."""

    url = "hdfs:///reports/x.ipynb"

    def __init__(self, failures: int = 1 << 30) -> None:
        self.failures = failures
        self.tries = 0
        self.written = b""

    def read(self) -> bytes:
        raise StorageError("away")

    def write(self, data: bytes) -> None:
        self.tries += 1
        if self.tries <= self.failures:
            raise StorageError("The NameNode is away.")
        self.written = data


def test_an_output_whose_place_comes_back_is_saved_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("submarine_workflows.headless.saving.default_state_dir", lambda: tmp_path)
    paused: list[float] = []

    def sleep(seconds: float) -> None:
        paused.append(seconds)
        # Until it is saved it lies on this machine: the process may be killed meanwhile.
        assert list(tmp_path.glob("unsaved/*-x.ipynb"))

    monkeypatch.setattr("time.sleep", sleep)
    place = Away(failures=6)
    OutputNotebook(notebook("x = 1"), place).save_final()
    assert b"x = 1" in place.written
    assert paused == [1, 2, 4, 8, 10, 10]
    assert not list(tmp_path.glob("unsaved/*"))


def test_an_output_that_cannot_be_saved_is_kept_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("submarine_workflows.headless.saving.default_state_dir", lambda: tmp_path)
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    place = Away()
    output = OutputNotebook(notebook("x = 1"), place)
    with pytest.raises(StorageError, match=r"The NameNode is away\. It is in ") as caught:
        output.save_final(lambda: "stopped")
    assert place.tries == 3
    kept = Path(caught.value.fix.removeprefix("It is in ").removesuffix("."))
    assert kept.parent.parent == tmp_path
    assert nbformat.read(kept, 4).cells[0].source == "x = 1"
