"""--localization on the local backend: what the program finds, a rerun without the sources."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from submarine_jobs.backends.job_files import _unpack
from submarine_jobs.client import Session
from submarine_jobs.errors import RefusedError, UsageError
from submarine_jobs.model import Localization, Profile
from submarine_jobs.options import RunOptions, spec_from_options
from tests.submission import make_job

SOURCE = """\
from pathlib import Path
print(Path("words.txt").read_text(), Path("data/set/deep/one").read_text())
Path("words.txt").write_text("changed")
"""


def test_files_and_directories_come_to_the_program_and_to_its_rerun(tmp_path: Path) -> None:
    session = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    words, folder = tmp_path / "words", tmp_path / "folder"
    words.write_text("hello")
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "one").write_text("1")
    items = (Localization(str(words), "words.txt"), Localization(str(folder), "data/set"))
    job = session.submit(*make_job(SOURCE, "read", localization=items))
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
            session.submit(*make_job(SOURCE, localization=(Localization(source, "w"),)))
    item = Localization("http://127.0.0.1:9/words", "w")
    with pytest.raises(UsageError, match="cannot be downloaded"):
        session.submit(*make_job(SOURCE, localization=(item,)))
    assert session.jobs() == []
    assert not list((tmp_path / "state" / "jobs").glob("2*/*"))


def test_the_programs_own_files_keep_their_place(tmp_path: Path) -> None:
    _, bundle = make_job(SOURCE)
    options = RunOptions(name="x", localization=(Localization("/data/main.py", "main.py"),))
    with pytest.raises(UsageError, match=r"main\.py is a file of the program itself"):
        spec_from_options(options, Profile(backend="local", state_dir=tmp_path), bundle)


Member = tuple[str, bytes, str]
HOSTILE: dict[str, list[Member]] = {
    "parent": [("../evil", tarfile.REGTYPE, "")],
    "deep parent": [("a/../../evil", tarfile.REGTYPE, "")],
    "absolute": [("/tmp/evil", tarfile.REGTYPE, "")],
    "link out": [("up", tarfile.SYMTYPE, "../.."), ("up/evil", tarfile.REGTYPE, "")],
    "link only": [("up", tarfile.SYMTYPE, "..")],
    "absolute link": [("etc", tarfile.SYMTYPE, "/etc")],
    "chain": [
        ("a/b/up", tarfile.SYMTYPE, "../.."),
        ("a/b/z", tarfile.SYMTYPE, "up/.."),
        ("a/b/z/evil", tarfile.REGTYPE, ""),
    ],
    "below a link": [("a/b", tarfile.DIRTYPE, ""), ("l", tarfile.SYMTYPE, "a/b"),
                     ("l/up", tarfile.SYMTYPE, "../..")],
    "hard link": [("passwd", tarfile.LNKTYPE, "../../../etc/passwd")],
    "hard link to a link": [
        ("a/b/l", tarfile.SYMTYPE, "../../x"),
        ("z", tarfile.LNKTYPE, "a/b/l"),
    ],
    "fifo": [("pipe", tarfile.FIFOTYPE, "")],
    "device": [("null", tarfile.CHRTYPE, "")],
}  # fmt: skip


def tar_of(path: Path, members: list[Member], mode: int = 0o644) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, kind, link in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode = kind, link, mode
            info.size = 4 if kind == tarfile.REGTYPE else 0
            archive.addfile(info, io.BytesIO(b"evil"))
    return path


def zip_of(path: Path, name: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, "evil")
    return path


@pytest.fixture(params=["filter", "no filter"])
def filters(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python with and without the extraction filters, which Debian 12's 3.11.2 lacks."""
    if request.param == "no filter" and hasattr(tarfile, "data_filter"):
        monkeypatch.delattr(tarfile, "data_filter")


def everything_below(folder: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.usefixtures("filters")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_tar_that_leads_out_of_its_directory_is_refused(tmp_path: Path, name: str) -> None:
    archive = tar_of(tmp_path / "data.tar.gz", HOSTILE[name])
    target = tmp_path / "program" / "data"
    target.parent.mkdir()
    with pytest.raises(RefusedError, match=r"data\.tar\.gz is not unpacked: "):
        _unpack(archive, target, "data.tar.gz")
    found = set(tmp_path.rglob("*")) - set(target.rglob("*"))
    assert found == {archive, target.parent, target}
    assert not any(path.is_symlink() and not path.resolve().is_relative_to(target)
                   for path in target.rglob("*"))  # fmt: skip


@pytest.mark.usefixtures("filters")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_links_inside_are_unpacked_and_special_bits_are_not(tmp_path: Path) -> None:
    members: list[Member] = [
        ("./", tarfile.DIRTYPE, ""),
        ("./bin/tool", tarfile.REGTYPE, ""),
        ("./bin/same", tarfile.LNKTYPE, "./bin/tool"),
        ("./lib/python/deep", tarfile.SYMTYPE, "../../bin/tool"),
        ("./lib/first", tarfile.SYMTYPE, "python"),
    ]
    target = tmp_path / "data"
    _unpack(tar_of(tmp_path / "data.tar.gz", members, 0o6777), target, "data.tar.gz")
    for name in ("bin/tool", "bin/same", "lib/python/deep", "lib/first/deep"):
        assert (target / name).read_bytes() == b"evil"
    assert (target / "bin/tool").stat().st_mode & 0o7777 == 0o755
    assert (target / "bin").stat().st_mode & 0o700 == 0o700


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/tmp/evil", "a\0/../evil"])
def test_a_zip_that_leads_out_of_its_directory_is_refused(tmp_path: Path, name: str) -> None:
    archive = zip_of(tmp_path / "data.jar", name.replace("\0", "%"))
    archive.write_bytes(archive.read_bytes().replace(b"%", b"\0"))
    with pytest.raises(RefusedError, match="is not a path inside it"):
        _unpack(archive, tmp_path / "data", "data.jar")
    assert set(tmp_path.iterdir()) == {archive, tmp_path / "data"}


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tgz", "a.tar", "a.zip", "a.jar"])
def test_a_damaged_archive_is_refused_with_a_sentence(tmp_path: Path, name: str) -> None:
    whole = zip_of(tmp_path / name, "a") if name[2] in "zj" else tar_of(
        tmp_path / name, [("a", tarfile.REGTYPE, "")]
    )  # fmt: skip
    for data in (b"", b"no archive", whole.read_bytes()[:40]):
        whole.write_bytes(data)
        with pytest.raises(RefusedError, match="cannot be unpacked: "):
            _unpack(whole, tmp_path / "data", name)


def test_a_job_with_a_hostile_archive_is_refused_and_leaves_no_scratch(tmp_path: Path) -> None:
    session = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    archive = tar_of(tmp_path / "data.tar.gz", HOSTILE["link out"])
    job = make_job(SOURCE, archives=(Localization(str(archive), "data"),))
    with pytest.raises(RefusedError, match=r"data\.tar\.gz is not unpacked: the link 'up' leads"):
        session.submit(*job)
    assert [path for path in (tmp_path / "state" / "local").rglob("*") if path.is_file()] == []
