"""--localization on the local backend: what the program finds, a rerun without the sources."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from submarine_jobs.bundle import build_bundle
from submarine_jobs.cells import Cell
from submarine_jobs.errors import RefusedError, UsageError
from submarine_jobs.options.run_options import RunOptions
from submarine_jobs.options.spec_of import spec_from_options
from submarine_jobs.profile import Profile
from submarine_jobs.session import Session
from submarine_jobs.spec import JobSpec, Localization, Resources, Role

SOURCE = """\
from pathlib import Path
print(Path("words.txt").read_text(), Path("data/set/deep/one").read_text())
Path("words.txt").write_text("changed")
"""


def cell() -> Cell:
    return Cell(
        cell_id="c", source=SOURCE, label="[1]", execution_count=1, first_line=1, only=False
    )


def spec(*items: Localization) -> JobSpec:
    role = Role(resources=Resources(memory=256))
    return JobSpec("read", "local", roles=(role,), python=sys.executable, localization=items)


def test_files_and_directories_come_to_the_program_and_to_its_rerun(tmp_path: Path) -> None:
    session = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    words, folder = tmp_path / "words", tmp_path / "folder"
    words.write_text("hello")
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "one").write_text("1")
    items = (Localization(str(words), "words.txt"), Localization(str(folder), "data/set"))
    job = session.submit(spec(*items), build_bundle([cell()]))
    job.wait_success(60)
    assert job.log("stdout").data == b"hello 1\n"
    assert words.read_text() == "hello"
    words.unlink()
    again = job.rerun()
    again.wait_success(60)
    assert again.log("stdout").data == b"hello 1\n"


def test_what_cannot_be_brought_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    session = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    for source, sentence in (
        ("hdfs://nn/words", "the local backend has no HDFS"),
        (str(tmp_path / "gone"), "no such file"),
        ("s3a://bucket/words", "only local paths"),
    ):
        with pytest.raises(RefusedError, match=sentence):
            session.submit(spec(Localization(source, "w")), build_bundle([cell()]))
    with pytest.raises(UsageError, match="cannot be downloaded"):
        session.submit(spec(Localization("http://127.0.0.1:9/words", "w")), build_bundle([cell()]))
    assert session.jobs() == []
    assert not list((tmp_path / "state" / "jobs").glob("2*/*"))


def test_the_programs_own_files_keep_their_place(tmp_path: Path) -> None:
    bundle = build_bundle([cell()])
    options = RunOptions(name="x", localization=(Localization("/data/main.py", "main.py"),))
    with pytest.raises(UsageError, match=r"main\.py is a file of the program itself"):
        spec_from_options(options, Profile(backend="local", state_dir=tmp_path), bundle)
